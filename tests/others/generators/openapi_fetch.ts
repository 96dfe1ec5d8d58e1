/** openapi_fetch.ts: what openapi-typescript generates, by openapi-fetch. */
import createClient from "openapi-fetch";
import { check, checkRefusal, key, ofAttention, ofLayer, query, server, value, weights } from "./expected";
import type { paths } from "./generated/openapi_fetch/schema";

async function main() {
  const client = createClient<paths>({ baseUrl: server });
  const plain = await client.POST("/v1/attention", { body: { inputs: { query, key, value }, masks: { causal: true } } });
  if (typeof plain.data !== "object" || !("outputs" in plain.data)) throw new Error("no answer, or a view");
  check(plain.data.outputs, ofAttention);

  const layer = await client.POST("/v1/multi-head-attention", { body: { inputs: { query }, weights, masks: { causal: true } } });
  if (typeof layer.data !== "object" || !("outputs" in layer.data)) throw new Error("no answer, or a view");
  check(layer.data.outputs, ofLayer);

  const refused = await client.POST("/v1/attention", { body: { inputs: { query, key: [[1]] } } });
  checkRefusal(refused.error);

  // @ts-expect-error: no such word
  const misspelt = () => client.POST("/v1/attention", { body: { inputs: { query }, options: { format: "nest" } } });
  void misspelt;
}

void main();
