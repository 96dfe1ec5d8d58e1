// kserve.mjs DEFINITIONS… -- FILE…: KServe's objects in these files against its own definitions (CustomResourceDefinitions).
// As in the API server with strict validation, a member that a definition does not know is refused.

import assert from "node:assert";
import fs from "node:fs";
import Ajv from "ajv";
import yaml from "yaml";

const read = (file) => yaml.parseAllDocuments(fs.readFileSync(file, "utf8")).map((document) => document.toJS()).filter(Boolean);
const split = process.argv.indexOf("--");
const definitions = process.argv.slice(2, split).flatMap(read).filter(({ kind }) => kind === "CustomResourceDefinition");
const objects = process.argv.slice(split + 1).flatMap(read);
const ajv = new Ajv({ strict: false, validateFormats: false });

// close SCHEMA: the same without further members wherever members are listed; metadata is the API server's own.
function close(schema) {
  if (Array.isArray(schema)) return schema.map(close);
  if (schema === null || typeof schema !== "object") return schema;
  const closed = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, close(value)]));
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] || schema.additionalProperties || !schema.properties;
  return typeof schema.properties === "object" && !isOpen ? { ...closed, additionalProperties: false } : closed;
}

function schemaOf({ apiVersion, kind }) {
  const [group, name] = apiVersion.split("/");
  const definition = definitions.find(({ spec }) => spec.group === group && spec.names.kind === kind);
  const version = definition?.spec.versions.find((one) => one.name === name && one.served);
  assert.ok(version, `no definition of ${apiVersion} ${kind}`);
  return close(version.schema.openAPIV3Schema);
}

function errorsOf(object) {
  const validate = ajv.compile(schemaOf(object));
  return validate(object) ? [] : validate.errors;
}

for (const object of objects) assert.deepEqual(errorsOf(object), [], `${object.kind} ${object.metadata.name}`);
// The check itself: it refuses what is not known.
const service = objects.find(({ kind }) => kind === "InferenceService");
assert.notDeepEqual(errorsOf({ ...service, spec: { ...service.spec, nobody: "knows" } }), []);
console.log(`kserve: ${objects.length} objects pass`);
