/**
 * main.js: the page of GET /docs: reads /openapi.json, lists its operations, shows the one that the address names.
 */
import { attemptView, bytesOf, contentView } from "./attempt.js";
import { h } from "../web/element.js";
import { inline, prose } from "./dom.js";
import { kind, resolve, schemaView, setDocument } from "./schema.js";

const METHODS = ["get", "post", "put", "delete"];

function operationsOf(root) {
  return Object.entries(root.paths).flatMap(([path, item]) => METHODS.filter((method) => item[method]).map((method) => {
    const operation = item[method];
    const parameters = [...(item.parameters || []), ...(operation.parameters || [])].map(resolve);
    return { path, method, operation, parameters, id: operation.operationId };
  }));
}

/* ---- the list on the side ---- */

function entry({ path, method, operation, id }) {
  return h("li", { "data-words": `${method} ${path} ${operation.summary} ${id}`.toLowerCase() },
    h("a", { href: `#${id}`, title: operation.summary }, h(`span.method.${method}`, {}, method.toUpperCase()), h("span", {}, path.replaceAll("/", "/\u200b"))));
}

function navigation(root, operations) {
  const groups = root.tags.map(({ name, description }) => {
    const mine = operations.filter(({ operation }) => operation.tags.includes(name));
    return h("section", {}, h("h2", { title: description }, name), h("ul", {}, mine.map(entry)));
  });
  const filter = h("input", { type: "search", placeholder: "Find an operation", "aria-label": "Find an operation", oninput: () => narrow(groups, filter.value.toLowerCase()) });
  return h("nav", { "aria-label": "Operations" }, h("a.home", { href: "#" }, `${root.info.title} ${root.info.version}`), h("a.page", { href: "./" }, "The page"), filter, groups);
}

function narrow(groups, wanted) {
  for (const group of groups) {
    for (const item of group.querySelectorAll("li")) item.hidden = !item.dataset.words.includes(wanted);
    group.hidden = !group.querySelector("li:not([hidden])");
  }
}

/* ---- one operation ---- */

function parameterTable(parameters) {
  return parameters.length > 0 && [h("h2", {}, "Parameters"), h("ul.members", {}, parameters.map((parameter) => {
    const schema = resolve(parameter.schema);
    return h("li", {}, h("div.member", {}, h("code", {}, parameter.name), h("span.type", {}, `${parameter.in}, ${kind(schema)}`), parameter.required && h("span.need", {}, "required"),
      "default" in schema && h("span.type", {}, `default ${schema.default}`)), h("p", {}, inline(parameter.description || "")));
  }))];
}

function bodyView(operation) {
  if (!operation.requestBody) return null;
  const body = resolve(operation.requestBody);
  return [h("h2", {}, "Body"), h("p.text", {}, inline(body.description || "")), Object.entries(body.content).map(([media, content]) => [
    h("p.media", {}, h("code", {}, media)), content.schema && schemaView(content.schema)])];
}

function exampleView(media, [name, example]) {
  const box = h("details", { ontoggle: () => box.children.length > 1 || box.append(contentView(media, bytesOf(media, example))) },
    h("summary", {}, `Example: ${example.summary || name}`));
  return box;
}

function mediaView([media, content]) {
  return h("div", {}, h("p.media", {}, h("code", {}, media)),
    content.schema && later("Schema", () => schemaView(content.schema)), Object.entries(content.examples || {}).map((example) => exampleView(media, example)));
}

function later(title, make) {
  const box = h("details", { ontoggle: () => box.children.length > 1 || box.append(...make().filter(Boolean)) }, h("summary", {}, title));
  return box;
}

function fieldsOf(response) {
  return Object.entries(response.headers || {}).map(([name, node]) => h("li", {}, h("div.member", {}, h("code", {}, name)), h("p", {}, inline(resolve(node).description))));
}

function answerView([status, node]) {
  const response = resolve(node);
  const fields = fieldsOf(response);
  return h("details.answer", {}, h("summary", {}, h(status[0] === "2" ? "span.status" : "span.status.bad", {}, status), h("span", {}, inline(response.description))),
    h("div", {}, Object.entries(response.content || {}).map(mediaView), fields.length > 0 && later("Header fields", () => [h("ul.members", {}, fields)])));
}

function operationView({ path, method, operation, parameters }) {
  const text = h("div", {},
    operation.description && h("div.prose", {}, prose(operation.description)),
    parameterTable(parameters), bodyView(operation),
    h("h2", {}, "Answers"), Object.entries(operation.responses).map(answerView));
  return [h("h1", {}, operation.summary), h("div.head", {}, h(`span.method.${method}`, {}, method.toUpperCase()), h("code", {}, path)),
    h("div.columns", {}, text, attemptView(path, method.toUpperCase(), operation, parameters))];
}

function introduction(root) {
  return [h("h1", {}, root.info.summary), h("div.prose", {}, prose(root.info.description),
    h("h2", {}, "The document"), h("p", {}, h("a", { href: "/openapi.json" }, "/openapi.json"), `, OpenAPI ${root.openapi}.`))];
}

/* ---- the page ---- */

async function begin() {
  const main = h("main#content", { tabindex: "-1" }, h("p", {}, "Reading /openapi.json …"));
  document.body.append(h("a.skip", { href: "#content", onclick: (event) => { event.preventDefault(); main.focus(); } }, "To the content"), main);
  const reply = await fetch("/openapi.json");
  const root = await reply.json();
  setDocument(root);
  const operations = operationsOf(root);
  const list = navigation(root, operations);
  main.before(list);

  function show() {
    const found = operations.find(({ id }) => id === decodeURIComponent(location.hash.slice(1)));
    main.replaceChildren(...(found ? operationView(found) : introduction(root)).flat(9).filter(Boolean));
    document.title = `${found ? found.operation.summary : "API"} – ${root.info.title}`;
    for (const link of list.querySelectorAll("a")) {
      const isHere = link.hash === (found ? `#${found.id}` : "");
      link.toggleAttribute("aria-current", isHere);
      if (isHere) link.setAttribute("aria-current", "page");
    }
    scrollTo(0, 0);
  }
  addEventListener("hashchange", () => { show(); main.focus({ preventScroll: true }); });
  show();
}

begin().catch((error) => document.body.append(h("p", { role: "alert" }, `The document cannot be read: ${error.message}`)));
