/** codegen.ts: what openapi-typescript-codegen generates. */
import { check, checkRefusal, key, ofAttention, ofLayer, query, server, value, weights } from "./expected";
import { ApiError, AttentionService, OpenAPI } from "./generated/codegen";

async function main() {
  OpenAPI.BASE = server;
  const plain = await AttentionService.attention({ inputs: { query, key, value }, masks: { causal: true } });
  if (!("outputs" in plain)) throw new Error("a view");
  check(plain.outputs, ofAttention);

  const layer = await AttentionService.multiHeadAttention({ inputs: { query }, weights, masks: { causal: true } });
  if (!("outputs" in layer)) throw new Error("a view");
  check(layer.outputs, ofLayer);

  const refused = await AttentionService.attention({ inputs: { query, key: [[1]] } }).catch((error: unknown) => error);
  checkRefusal(refused instanceof ApiError ? refused.body : undefined);

  // @ts-expect-error: no such word
  const misspelt = () => AttentionService.attention({ inputs: { query }, options: { format: "nest" } });
  void misspelt;
}

void main();
