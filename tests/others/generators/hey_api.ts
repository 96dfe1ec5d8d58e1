/** hey_api.ts: what @hey-api/openapi-ts generates. */
import { check, checkRefusal, key, ofAttention, ofLayer, query, server, value, weights } from "./expected";
import { client } from "./generated/hey_api/client.gen";
import { attention, multiHeadAttention } from "./generated/hey_api/sdk.gen";

async function main() {
  client.setConfig({ baseUrl: server });
  const plain = await attention({ body: { inputs: { query, key, value }, masks: { causal: true } }, throwOnError: true });
  if (!("outputs" in plain.data)) throw new Error("a view");
  check(plain.data.outputs, ofAttention);

  const layer = await multiHeadAttention({ body: { inputs: { query }, weights, masks: { causal: true } }, throwOnError: true });
  if (!("outputs" in layer.data)) throw new Error("a view");
  check(layer.data.outputs, ofLayer);

  const refused = await attention({ body: { inputs: { query, key: [[1]] } } });
  checkRefusal(refused.error);

  // @ts-expect-error: no such word
  const misspelt = () => attention({ body: { inputs: { query }, options: { format: "nest" } } });
  void misspelt;
}

void main();
