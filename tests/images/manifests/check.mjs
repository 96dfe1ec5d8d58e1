// check.mjs FILE…: every object in these YAML files against the schema of its kind. Types, ranges and members that must
// be there; a member that the kind does not know passes, as it does in these schemas.

import fs from "node:fs";
import yaml from "yaml";

// KServe publishes no schemas as a package: the containers of its runtime are held against a Pod's; kserve.mjs has the rest.
const KSERVE = /^serving\.kserve\.io\//;

const HOMES = { "keda.sh": "@kubernetes-models/keda", "monitoring.coreos.com": "@kubernetes-models/prometheus-operator" };

async function modelOf(apiVersion, kind) {
  const home = HOMES[apiVersion.split("/")[0]] ?? "kubernetes-models";
  return (await import(`${home}/${apiVersion}`))[kind];
}

async function check(object) {
  if (!KSERVE.test(object.apiVersion)) {
    new (await modelOf(object.apiVersion, object.kind))(object).validate();
  } else if (object.kind === "ClusterServingRuntime") {
    const Pod = await modelOf("v1", "Pod");
    new Pod({ metadata: { name: "pod" }, spec: { containers: object.spec.containers } }).validate();
  }
}

let failed = 0;
let checked = 0;
for (const file of process.argv.slice(2)) {
  for (const document of yaml.parseAllDocuments(fs.readFileSync(file, "utf8"), { uniqueKeys: true })) {
    if (document.toJS() === null) continue;
    checked += 1;
    try {
      if (document.errors.length > 0) throw document.errors[0];
      await check(document.toJS());
    } catch (wrong) {
      failed += 1;
      console.log(`${file}: ${document.get("apiVersion")} ${document.get("kind")}: ${wrong.message}`);
    }
  }
}
console.log(`manifests: ${checked - failed} objects pass, ${failed} do not`);
process.exit(failed > 0 ? 1 : 0);
