// overlays.mjs FOLDER FILL: the overlays as kustomize made them, OVERLAY.yaml in FOLDER, and the Pod that fills the volume of models.

import assert from "node:assert";
import fs from "node:fs";
import yaml from "yaml";

const [folder, fill] = process.argv.slice(2);
const read = (file) => yaml.parseAllDocuments(fs.readFileSync(file, "utf8")).map((document) => document.toJS());
const overlays = Object.fromEntries(fs.readdirSync(folder).filter((name) => name.endsWith(".yaml"))
  .map((name) => [name.replace(".yaml", ""), read(`${folder}/${name}`)]));
const find = (overlay, kind) => overlays[overlay].find((object) => object.kind === kind);
const the = (overlay, kind) => find(overlay, kind) ?? assert.fail(`${overlay} has no ${kind}`);

for (const overlay of Object.keys(overlays)) {
  const isScaled = find(overlay, "HorizontalPodAutoscaler") ?? find(overlay, "ScaledObject");
  assert.equal(the(overlay, "Deployment").spec.replicas, isScaled ? undefined : 3, `replicas of ${overlay}`);
}

// The Prometheus that KEDA asks must reach the Pods.
const [, namespace] = /^http:\/\/\w+\.(\w+)\.svc:/.exec(the("keda", "ScaledObject").spec.triggers[0].metadata.serverAddress);
const { from } = the("keda", "NetworkPolicy").spec.ingress[0];
assert.ok(from.some(({ namespaceSelector: one }) => one?.matchLabels["kubernetes.io/metadata.name"] === namespace));
assert.equal(from.length, 1 + the("base", "NetworkPolicy").spec.ingress[0].from.length);

const { containers: [container], volumes: [volume] } = the("models", "Deployment").spec.template.spec;
const claim = the("models", "PersistentVolumeClaim").metadata.name;
const [pod] = read(fill);
assert.equal(volume.persistentVolumeClaim.claimName, claim);
assert.equal(pod.spec.volumes[0].persistentVolumeClaim.claimName, claim);
assert.equal(container.env.find(({ name }) => name === "ATTND_MODELS").value, container.volumeMounts[0].mountPath);
