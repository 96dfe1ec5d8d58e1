// onnx_encoder.mjs: BERT and GPT-2 as an ONNX graph, from the model's own file, with the maps of all layers as outputs.
//
// The heads are the operator Attention of opset 23, or products and a softmax (`chain`). Matrices are constants, which
// ONNX Runtime packs when it loads the graph.

import { readFileSync } from 'node:fs';
import { AFTER_SOFTMAX, FLOAT, INT64, constant, model, node, value } from './onnx_model.mjs';

const HIDDEN = -3.4028234663852886e38; // added to the scores of later tokens

// { name: { shape, values } } of a safetensors file
function readTensors(path) {
  const file = readFileSync(path), length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + length));
  return Object.fromEntries(Object.entries(header).map(([name, { shape, data_offsets: [from, to] }]) =>
    [name, { shape, values: new Float32Array(file.buffer, file.byteOffset + 8 + length + from, (to - from) / 4) }]));
}

function transpose({ shape: [rows, columns], values }) {
  const turned = new Float32Array(values.length);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      turned[c * rows + r] = values[r * columns + c];
    }
  }
  return { shape: [columns, rows], values: turned };
}

function causalMask(n) {
  const values = new Float32Array(n * n);
  for (let i = 0; i < n; i++) {
    values.fill(HIDDEN, i * n + i + 1, (i + 1) * n);
  }
  return { shape: [1, 1, n, n], values };
}

export class Encoder {
  constructor(folder, tokens, isChain) {
    const config = JSON.parse(readFileSync(folder + '/config.json'));
    this.isGpt = config.model_type === 'gpt2';
    this.tensors = readTensors(folder + '/model.safetensors');
    this.tokens = tokens;
    this.isChain = isChain;
    this.layers = config.num_hidden_layers ?? config.n_layer;
    this.heads = config.num_attention_heads ?? config.n_head;
    this.width = config.hidden_size ?? config.n_embd;
    this.eps = config.layer_norm_eps ?? config.layer_norm_epsilon;
    this.parts = [];
    this.count = 0;
  }

  // Adds a node of one output, and returns the name of that.
  op(type, inputs, attributes = {}, output = 't' + this.count++) {
    this.parts.push(node(type, inputs, [output], attributes));
    return output;
  }

  add(name, { shape, values }, type = FLOAT) {
    this.parts.push(constant(name, type, shape, values));
    return name;
  }

  use(name) {
    return this.add(name, this.tensors[name]);
  }

  dims(...shape) {
    return this.add('c' + this.count++, { shape: [shape.length], values: BigInt64Array.from(shape, BigInt) }, INT64);
  }

  norm(x, name, output) {
    return this.op('LayerNormalization', [x, this.use(name + '.weight'), this.use(name + '.bias')],
                   { axis: 2, epsilon: this.eps }, output);
  }

  // BERT keeps matrices (out, in), GPT-2 (in, out).
  affine(x, name) {
    const weight = this.tensors[name + '.weight'];
    const product = this.op('MatMul', [x, this.add(name + '.weight', this.isGpt ? weight : transpose(weight))]);
    return this.op('Add', [product, this.use(name + '.bias')]);
  }

  chain(q, k, v, maps) {
    const d = this.width / this.heads;
    const split = (x, perm) => this.op('Transpose', [this.op('Reshape', [x, this.dims(1, -1, this.heads, d)])], { perm });
    const scale = this.add('s' + this.count++, { shape: [], values: Float32Array.of(1 / Math.sqrt(d)) });
    let scores = this.op('Mul', [this.op('MatMul', [split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1])]), scale]);
    if (this.isGpt) {
      scores = this.op('Add', [scores, 'mask']);
    }
    this.op('Softmax', [scores], { axis: 3 }, maps);
    const context = this.op('Transpose', [this.op('MatMul', [maps, split(v, [0, 2, 1, 3])])], { perm: [0, 2, 1, 3] });
    return this.op('Reshape', [context, this.dims(1, -1, this.width)]);
  }

  attend(q, k, v, maps) {
    if (this.isChain) {
      return this.chain(q, k, v, maps);
    }
    const output = 't' + this.count++;
    this.parts.push(node('Attention', [q, k, v], [output, '', '', maps],
                         { is_causal: this.isGpt ? 1 : 0, qk_matmul_output_mode: AFTER_SOFTMAX,
                           q_num_heads: this.heads, kv_num_heads: this.heads }));
    return output;
  }

  gelu(x) {
    return this.op('Gelu', [x], { approximate: this.isGpt ? 'tanh' : 'none' });
  }

  bertLayer(x, layer) {
    const at = 'encoder.layer.' + layer;
    const [q, k, v] = ['query', 'key', 'value'].map((role) => this.affine(x, at + '.attention.self.' + role));
    const attended = this.affine(this.attend(q, k, v, 'maps' + layer), at + '.attention.output.dense');
    const y = this.norm(this.op('Add', [attended, x]), at + '.attention.output.LayerNorm');
    const inner = this.gelu(this.affine(y, at + '.intermediate.dense'));
    return this.norm(this.op('Add', [this.affine(inner, at + '.output.dense'), y]), at + '.output.LayerNorm',
                     layer + 1 === this.layers ? 'out' : undefined);
  }

  gptLayer(x, layer) {
    const at = 'h.' + layer, roles = ['q', 'k', 'v'].map((role) => role + layer);
    const qkv = this.affine(this.norm(x, at + '.ln_1'), at + '.attn.c_attn');
    this.parts.push(node('Split', [qkv], roles, { axis: 2, num_outputs: 3 }));
    const y = this.op('Add', [this.affine(this.attend(...roles, 'maps' + layer), at + '.attn.c_proj'), x]);
    const inner = this.gelu(this.affine(this.norm(y, at + '.ln_2'), at + '.mlp.c_fc'));
    return this.op('Add', [this.affine(inner, at + '.mlp.c_proj'), y]);
  }

  embed() {
    const n = this.tokens, w = this.width;
    const words = this.op('Gather', [this.use(this.isGpt ? 'wte.weight' : 'embeddings.word_embeddings.weight'), 'ids']);
    const table = this.tensors[this.isGpt ? 'wpe.weight' : 'embeddings.position_embeddings.weight'];
    const positions = this.add('positions', { shape: [1, n, w], values: table.values.subarray(0, n * w) });
    const x = this.op('Add', [words, positions]);
    if (this.isGpt) {
      return x;
    }
    const types = this.tensors['embeddings.token_type_embeddings.weight'];
    const first = this.add('types', { shape: [w], values: types.values.subarray(0, w) });
    return this.norm(this.op('Add', [x, first]), 'embeddings.LayerNorm');
  }

  // The model: ids (1, tokens) -> out (1, tokens, width), maps0 … (1, heads, tokens, tokens).
  make() {
    const n = this.tokens;
    if (this.isGpt && this.isChain) {
      this.add('mask', causalMask(n));
    }
    let x = this.embed();
    for (let layer = 0; layer < this.layers; layer++) {
      x = this.isGpt ? this.gptLayer(x, layer) : this.bertLayer(x, layer);
      this.parts.push(value(12, 'maps' + layer, FLOAT, [1, this.heads, n, n]));
    }
    if (this.isGpt) {
      this.norm(x, 'ln_f', 'out');
    }
    return model([value(11, 'ids', INT64, [1, n]), value(12, 'out', FLOAT, [1, n, this.width]), ...this.parts]);
  }
}
