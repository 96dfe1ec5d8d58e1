// public.mjs FILE: the objects of the overlay public/ fit together: what one names, another has.

import assert from "node:assert";
import fs from "node:fs";
import yaml from "yaml";

const objects = yaml.parseAllDocuments(fs.readFileSync(process.argv[2], "utf8")).map((document) => document.toJS());
const the = (kind) => objects.find((object) => object.kind === kind) ?? assert.fail(`no ${kind}`);

const { containers: [container], volumes } = the("Deployment").spec.template.spec;
const service = the("Service");
const settings = the("ConfigMap");
const policy = the("NetworkPolicy").spec;
const [rule] = the("Ingress").spec.rules;
const [endpoint] = the("ServiceMonitor").spec.endpoints;
const backend = rule.http.paths[0].backend.service;
const portNames = service.spec.ports.map((port) => port.name);

assert.match(container.image, /^registry\.example\//);
assert.equal(volumes[0].secret.secretName, "attnd-keys");
assert.deepEqual(container.env.map(({ name, value }) => `${name}=${value}`), ["ATTND_KEYS=/etc/attnd/keys", "ATTND_OPEN=off"]);
// The alert of wrong keys says that the log has the client's address, not the Ingress's.
assert.equal(container.envFrom[0].configMapRef.name, settings.metadata.name);
assert.equal(settings.data.ATTND_TRUSTED_PROXIES, "10.0.0.0/8");
assert.equal(settings.data.ATTND_LISTEN, "0.0.0.0:8080");
assert.deepEqual(backend, { name: service.metadata.name, port: { name: portNames[0] } });
assert.deepEqual(the("Ingress").spec.tls[0].hosts, [rule.host]);
assert.ok(portNames.includes(endpoint.port));
for (const [label, value] of Object.entries(the("ServiceMonitor").spec.selector.matchLabels))
  assert.equal(service.metadata.labels[label], value);
// The job of the dashboard and of the alerts.
assert.equal(service.metadata.labels[the("ServiceMonitor").spec.jobLabel], "attnd");
assert.deepEqual(policy.ingress[0].from[1].namespaceSelector.matchExpressions[0].values, ["ingress-nginx", "monitoring"]);
