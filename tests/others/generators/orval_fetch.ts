/** orval_fetch.ts: what orval generates for fetch (orval.config.cjs). It sends no Content-Type, so fetch says text/plain. */
import { check, checkRefusal, key, ofAttention, ofLayer, query, value, weights } from "./expected";
import { attention, multiHeadAttention } from "./generated/orval_fetch/client";

async function main() {
  const plain = await attention({ inputs: { query, key, value }, masks: { causal: true } });
  if (plain.status !== 200 || typeof plain.data !== "object" || !("outputs" in plain.data)) throw new Error("a view");
  check(plain.data.outputs, ofAttention);

  // What a page has to send, in Node, too.
  const json = { headers: { "Content-Type": "application/json" } };
  const layer = await multiHeadAttention({ inputs: { query }, weights, masks: { causal: true } }, undefined, json);
  if (layer.status !== 200 || typeof layer.data !== "object" || !("outputs" in layer.data)) throw new Error("a view");
  check(layer.data.outputs, ofLayer);

  const refused = await attention({ inputs: { query, key: [[1]] } });
  checkRefusal(refused.status === 400 ? refused.data : undefined);

  // @ts-expect-error: no such word
  const misspelt = () => attention({ inputs: { query }, options: { format: "nest" } });
  void misspelt;
}

void main();
