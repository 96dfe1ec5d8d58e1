// json_peer.mjs: Node's JSON on the file of json_bench.c; speaks its lines.

import { readFileSync } from 'node:fs';

const ROUNDS = 7;
const text = readFileSync(process.argv[2], 'utf8');
const tree = JSON.parse(text);
const count = tree.length * tree[0].length;

function measure(what, run) {
  let best = Infinity, bytes = 0;
  for (let i = 0; i < ROUNDS; i++) {
    const start = process.hrtime.bigint();
    bytes = run();
    best = Math.min(best, Number(process.hrtime.bigint() - start));
  }
  console.log(`node ${what} ${(best / count).toFixed(2)} ${(bytes * 1e3 / best).toFixed(1)}`);
}

measure('read', () => { JSON.parse(text); return text.length; });
measure('write', () => JSON.stringify(tree).length);
