// ort_http.mjs: attention behind Node's http server, computed by ONNX Runtime; what `make bench-http` compares with.
//
//     node ort_http.mjs
//
// JSON.parse and JSON.stringify, nested arrays of (batch, heads, len, dim). A session is made for the first request of
// a shape and kept. Prints "listening on 127.0.0.1:PORT".

import { createServer } from 'node:http';
import * as ort from 'onnxruntime-node';
import { readCase } from './bench_case.mjs';
import { makeModel } from './onnx_model.mjs';

const sessions = new Map();

function sessionFor(shape, withMaps) {
  const key = JSON.stringify([shape, withMaps]);
  if (!sessions.has(key)) {
    const [batch, heads, len, dim] = shape;
    const c = readCase(`attention float32 1 ${batch} ${heads} ${len} ${len} ${dim} 0 0 ${withMaps ? 1 : 0}`);
    sessions.set(key, ort.InferenceSession.create(makeModel(c, false, {}), { executionProviders: ['cpu'] }));
  }
  return sessions.get(key);
}

function shapeOf(rows) {
  return Array.isArray(rows) ? [rows.length, ...shapeOf(rows[0])] : [];
}

function tensorOf(rows) {
  return new ort.Tensor('float32', Float32Array.from(rows.flat(3)), shapeOf(rows));
}

function nested(values, dims) {
  if (dims.length === 1) {
    return Array.from(values);
  }
  const step = values.length / dims[0];
  return Array.from({ length: dims[0] }, (_, i) => nested(values.subarray(i * step, (i + 1) * step), dims.slice(1)));
}

async function attend(text) {
  const { inputs, options } = JSON.parse(text);
  const wanted = options?.return ?? ['output', 'attention'];
  const [q, k, v] = [inputs.query, inputs.key, inputs.value].map(tensorOf);
  const session = await sessionFor(q.dims, wanted.includes('attention'));
  const found = await session.run({ q, k, v });
  const named = { output: found.out, attention: found.maps };
  return { outputs: Object.fromEntries(wanted.map((name) => [name, nested(named[name].data, named[name].dims)])) };
}

const server = createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', async () => {
    const answer = Buffer.from(JSON.stringify(await attend(Buffer.concat(pieces).toString())));
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': answer.length });
    response.end(answer);
  });
});
server.listen(0, '127.0.0.1', () => console.log('listening on 127.0.0.1:' + server.address().port));
