/**
 * schema.js: the document's references, and schemas as lists that open member by member.
 */
import { h } from "../web/element.js";
import { inline } from "./dom.js";

let root = {};

export function setDocument(value) {
  root = value;
}

/** What a reference leads to, with what stands beside it. */
export function resolve(node) {
  let found = node;
  while (found && found.$ref) {
    const { $ref, ...beside } = found;
    const target = $ref.slice(2).split("/").reduce((at, name) => at[name.replaceAll("~1", "/").replaceAll("~0", "~")], root);
    found = { ...target, ...beside };
  }
  return found;
}

const nameOf = (node) => (node.$ref && node.$ref.startsWith("#/components/schemas/") && node.$ref.split("/").length === 4 ? node.$ref.split("/").pop() : null);
const alternatives = (schema) => schema.oneOf || schema.anyOf;

/** The kind of a value in a few words; what may contain itself has a name. */
export function kind(node) {
  const schema = resolve(node);
  if (nameOf(node) && (alternatives(schema) || schema.items)) return nameOf(node);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((item) => JSON.stringify(item)).join(" | ");
  if (alternatives(schema)) return alternatives(schema).map(kind).join(" | ");
  if (schema.items) return `list of ${kind(schema.items)}`;
  return nameOf(node) || [].concat(schema.type || "any").join(" | ");
}

const bounds = { minimum: "≥", maximum: "≤", exclusiveMinimum: ">", minItems: "items ≥", maxItems: "items ≤", pattern: "matches" };

function facts(schema) {
  const found = Object.entries(bounds).filter(([name]) => name in schema).map(([name, sign]) => `${sign} ${schema[name]}`);
  if ("default" in schema) found.push(`default ${JSON.stringify(schema.default)}`);
  return found.join(", ");
}

/** Objects that the value may be: itself, an alternative, an item. */
function inside(node, seen) {
  const schema = resolve(node);
  const name = nameOf(node);
  if (name && seen.includes(name)) return [];
  const path = name ? [...seen, name] : seen;
  if (schema.properties) return [{ name, schema, path }];
  return [...(alternatives(schema) || []), ...(schema.items ? [schema.items] : [])].flatMap((part) => inside(part, path));
}

function members(schema, path) {
  const required = schema.required || [];
  return h("ul.members", {}, Object.entries(schema.properties).map(([name, node]) => member(name, node, required.includes(name), path)));
}

function member(name, node, isRequired, path) {
  const schema = resolve(node);
  return h("li", {}, h("div.member", {}, h("code", {}, name), h("span.type", {}, kind(node)), isRequired && h("span.need", {}, "required"),
    facts(schema) && h("span.type", {}, facts(schema))), schema.description && h("p", {}, inline(schema.description)), nested(node, path));
}

/** Built when it is opened: schemas contain themselves. */
function nested(node, path) {
  return inside(node, path).map(({ name, schema, path: below }) => {
    const box = h("details", { ontoggle: () => box.children.length > 1 || box.append(members(schema, below)) },
      h("summary", {}, name || "members"));
    return box;
  });
}

export function schemaView(node) {
  const schema = resolve(node);
  const text = schema.description && h("p.text", {}, inline(schema.description));
  return schema.properties ? [text, members(schema, [nameOf(node)].filter(Boolean))] : [text, h("p.type", {}, kind(node)), ...nested(node, [])];
}
