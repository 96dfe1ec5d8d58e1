/** types.mjs ADDRESS: writes schema.d.ts, the types of requests and answers, from the /openapi.json of a server. */
import { writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const response = await fetch(process.argv[2] + "/openapi.json"),
  { openapi, info, components } = await response.json();

/** A branch without a type of its own, such as {required: [...]}, would make the whole of it unknown. */
function withoutBareBranches(schema) {
  if (schema === null || typeof schema !== "object") return schema;
  if (Array.isArray(schema)) return schema.map(withoutBareBranches);
  const isBare = (branch) => Object.keys(branch).every((name) => ["required", "not", "title", "description"].includes(name));
  const kept = Object.entries(schema).filter(
    ([name, value]) => !(["anyOf", "oneOf", "allOf"].includes(name) && Array.isArray(value) && value.every(isBare)),
  );
  return Object.fromEntries(kept.map(([name, value]) => [name, withoutBareBranches(value)]));
}

const schemas = withoutBareBranches(components.schemas);
const document = { openapi, info: { ...info, version: "" }, paths: {}, components: { schemas } },
  text = astToString(await openapiTS(document, { defaultNonNullable: false }));
const note = "/** Made by types.mjs from the server's /openapi.json: `make client-types`. */\n";
writeFileSync(process.argv[3] ?? new URL("schema.d.ts", import.meta.url), note + text);
