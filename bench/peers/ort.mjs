// ort.mjs: ONNX Runtime on its CPU provider as a contender; speaks the lines of core_bench.c.
//
//     node ort.mjs attention|multihead|chain   Attention of opset 23, com.microsoft's MultiHeadAttention, or, for
//                                              whole models, products and a softmax
//
// Weights of a layer are constants of the model, which ONNX Runtime packs when it loads it; outputs are allocated once.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import * as ort from 'onnxruntime-node';
import { STREAM, arrayOf, joinHeads, makeStream, readCase, samples } from './bench_case.mjs';
import { Encoder } from './onnx_encoder.mjs';
import { makeModel } from './onnx_model.mjs';

const isMultiHead = process.argv[2] === 'multihead';

// Of a layer, the operator puts its new keys behind the cache.
function makeInputs(c) {
  const place = (len) => isMultiHead ? joinHeads(c, len) : undefined;
  const input = (stream, shape, where) =>
    new ort.Tensor(c.dtype, makeStream(c, stream, shape.reduce((a, b) => a * b), where), shape);
  const past = [c.batch, c.heads, c.pastLen, c.dim];
  if (c.isLayer) {
    const x = { x: input(STREAM.q, [c.batch, c.qLen, c.features]) };
    return c.has.past ? { ...x, past_k: input(STREAM.k, past), past_v: input(STREAM.v, past) } : x;
  }
  const shape = (heads, len) => isMultiHead ? [c.batch, len, c.features] : [c.batch, heads, len, c.dim];
  return { q: input(STREAM.q, shape(c.heads, c.qLen), place(c.qLen)),
           k: input(STREAM.k, shape(c.kvHeads, c.kvLen), place(c.kvLen)),
           v: input(STREAM.v, shape(c.kvHeads, c.kvLen), place(c.kvLen)) };
}

function makeOutputs(c) {
  const shape = isMultiHead || c.isLayer ? [c.batch, c.qLen, c.features] : [c.batch, c.heads, c.qLen, c.dim];
  const tensor = (dims) => new ort.Tensor(c.dtype, arrayOf(c, dims.reduce((a, b) => a * b)), dims);
  const outputs = { out: tensor(shape) };
  if (c.withMaps) {
    outputs.maps = tensor([c.batch, c.heads, c.qLen, c.kvLen]);
  }
  if (c.has.mean) {
    outputs.mean = tensor([c.batch, c.qLen, c.kvLen]);
  }
  if (c.isLayer && c.has.past) {
    outputs.present_k = tensor([c.batch, c.heads, c.kvLen, c.dim]);
    outputs.present_v = tensor([c.batch, c.heads, c.kvLen, c.dim]);
  }
  return outputs;
}

// { name: [rows, columns, values] }
function makeWeights(c) {
  const shapes = c.isLayer ? { wq: [], wk: [], wv: [], wo: [] } : {};
  if (c.has.gate && !c.has.bare) {
    shapes.gate = [];
  }
  if (c.isBlock) {
    Object.assign(shapes, { up: [c.features, c.wide], down: [c.wide, c.features] });
  }
  const weight = ([name, [rows = c.features, columns = c.features]]) =>
    [name, [rows, columns, makeStream(c, STREAM[name], rows * columns)]];
  return Object.fromEntries(Object.entries(shapes).map(weight));
}

function whyNot(c) {
  if (isMultiHead && (c.withMaps || c.has.mean)) {
    return 'MultiHeadAttention does not give its weights';
  }
  if (isMultiHead && (c.has.grouped || (c.isLayer && c.has.past))) {
    return 'left to Attention';
  }
  return isMultiHead && c.window > 0 ? 'MultiHeadAttention has no window' : null;
}

function makeSession(graph, threads) {
  return ort.InferenceSession.create(graph, {
    executionProviders: ['cpu'], intraOpNumThreads: threads, interOpNumThreads: 1, executionMode: 'sequential',
    graphOptimizationLevel: 'all', logSeverityLevel: 4 });
}

// "model FOLDER TOKENS THREADS": a whole model; the maps of all layers are one array
async function prepareModel(text) {
  const [, folder, tokens, threads] = text.split(' '), n = Number(tokens);
  const encoder = new Encoder(folder, n, process.argv[2] === 'chain'), { layers, heads, width } = encoder;
  const maps = new Float32Array(layers * heads * n * n), outputs = {};
  for (let layer = 0; layer < layers; layer++) {
    const own = maps.subarray(layer * heads * n * n, (layer + 1) * heads * n * n);
    outputs['maps' + layer] = new ort.Tensor('float32', own, [1, heads, n, n]);
  }
  outputs.out = new ort.Tensor('float32', new Float32Array(n * width), [1, n, width]);
  const ids = BigInt64Array.from({ length: n }, (_, i) => BigInt(i * 7919 % 30000));
  return { c: {}, session: await makeSession(encoder.make(), Number(threads)),
           inputs: { ids: new ort.Tensor('int64', ids, [1, n]) }, outputs, maps };
}

async function prepare(text) {
  if (text.startsWith('model ')) {
    return prepareModel(text);
  }
  const c = readCase(text);
  const why = whyNot(c);
  if (why !== null) {
    throw new Error(why);
  }
  const session = await makeSession(makeModel(c, isMultiHead, makeWeights(c)), c.threads);
  const outputs = makeOutputs(c);
  return { c, session, inputs: makeInputs(c), outputs, maps: (outputs.mean ?? outputs.maps)?.data };
}

async function run({ session, inputs, outputs }, runs) {
  const times = [];
  for (let i = 0; i < runs; i++) {
    const start = process.hrtime.bigint();
    await session.run(inputs, outputs);
    times.push(Number(process.hrtime.bigint() - start) / 1e6);
  }
  return 'ms ' + times.join(' ');
}

function results({ c, outputs, maps: all }) {
  const place = isMultiHead && !c.isLayer ? joinHeads(c, c.qLen) : undefined;
  const maps = all === undefined ? '' : ' maps ' + samples(all);
  return 'output ' + samples(outputs.out.data, place) + maps;
}

function version() {
  const path = new URL('./node_modules/onnxruntime-node/package.json', import.meta.url);
  return JSON.parse(readFileSync(path)).version;
}

let state = null;
async function obey(line) {
  const [word, ...rest] = line.split(' ');
  switch (word) {
    case 'about':
      return 'about ONNX Runtime ' + version();
    case 'prepare':
      try {
        state = await prepare(rest.join(' '));
        return 'ready ' + process.pid;
      } catch (error) {
        return 'unsupported ' + error.message.split('\n')[0];
      }
    case 'run':
      return state === null ? 'error nothing to run' : run(state, Number(rest[0]));
    case 'results':
      return state === null ? 'error no results' : results(state);
    case 'done':
      await state?.session.release();
      state = null;
      return 'done';
    default:
      return 'error unknown: ' + line;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(await obey(line) + '\n');
}
