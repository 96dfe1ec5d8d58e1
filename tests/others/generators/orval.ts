/** orval.ts: what orval generates, by axios. */
import axios from "axios";
import { check, checkRefusal, key, ofAttention, ofLayer, query, server, value, weights } from "./expected";
import { attention, multiHeadAttention } from "./generated/orval/client";

async function main() {
  axios.defaults.baseURL = server;
  const plain = await attention({ inputs: { query, key, value }, masks: { causal: true } });
  if (typeof plain.data !== "object" || !("outputs" in plain.data)) throw new Error("a view");
  check(plain.data.outputs, ofAttention);

  const layer = await multiHeadAttention({ inputs: { query }, weights, masks: { causal: true } });
  if (typeof layer.data !== "object" || !("outputs" in layer.data)) throw new Error("a view");
  check(layer.data.outputs, ofLayer);

  const refused = await attention({ inputs: { query, key: [[1]] } }, {}, { validateStatus: () => true });
  checkRefusal(JSON.parse(JSON.stringify(refused.data)));

  // @ts-expect-error: no such word
  const misspelt = () => attention({ inputs: { query }, options: { format: "nest" } });
  void misspelt;
}

void main();
