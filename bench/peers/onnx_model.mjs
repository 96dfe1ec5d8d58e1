// onnx_model.mjs: writes ONNX models: as much protocol buffers as that takes, and the graphs that are measured.
//
// Field numbers are those of onnx.proto. A message is a list of fields; a field is a tag, (number << 3 | wire type),
// and a varint (wire type 0), four bytes (5), or a length and so many bytes (2).

import { attendMask } from './bench_case.mjs';

export const FLOAT = 1, INT64 = 7;
const BOOL = 9, DOUBLE = 11; // TensorProto.DataType
const IR_VERSION = 10, OPSET = 23;
export const AFTER_SOFTMAX = 3; // what qk_matmul_output is, by qk_matmul_output_mode

function varint(n) {
  const bytes = [];
  for (; n >= 128; n = Math.floor(n / 128)) {
    bytes.push(n % 128 + 128);
  }
  return Buffer.from([...bytes, n]);
}

const integer = (field, n) => Buffer.concat([varint(field * 8), varint(n)]);
const bytes = (field, content) => Buffer.concat([varint(field * 8 + 2), varint(content.length), content]);
const text = (field, words) => bytes(field, Buffer.from(words));
const message = (field, ...parts) => bytes(field, Buffer.concat(parts));

function float(field, x) {
  const four = Buffer.alloc(4);
  four.writeFloatLE(x);
  return Buffer.concat([varint(field * 8 + 5), four]);
}

// AttributeProto: name 1, f 2, i 3, s 4, ints 8, type 20 (FLOAT = 1, INT = 2, STRING = 3, INTS = 7)
function attribute([name, value]) {
  if (typeof value === 'string') {
    return message(5, text(1, name), text(4, value), integer(20, 3));
  }
  if (Array.isArray(value)) {
    return message(5, text(1, name), ...value.map((n) => integer(8, n)), integer(20, 7));
  }
  return Number.isInteger(value) ? message(5, text(1, name), integer(3, value), integer(20, 2))
                                 : message(5, text(1, name), float(2, value), integer(20, 1));
}

// NodeProto: input 1, output 2, op_type 4, attribute 5, domain 7
export function node(type, inputs, outputs, attributes = {}, domain = '') {
  return message(1, ...inputs.map((name) => text(1, name)), ...outputs.map((name) => text(2, name)), text(4, type),
                 ...Object.entries(attributes).map(attribute), text(7, domain));
}

// ValueInfoProto: name 1, type 2 { tensor_type 1 { elem_type 1, shape 2 { dim 1 { dim_value 1 } } } }
export function value(field, name, type, shape) {
  const dims = shape.map((n) => message(1, integer(1, n)));
  return message(field, text(1, name), message(2, message(1, integer(1, type), message(2, ...dims))));
}

// TensorProto: dims 1, data_type 2, name 8, raw_data 9
export function constant(name, type, shape, values) {
  const raw = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return message(5, ...shape.map((n) => integer(1, n)), integer(2, type), text(8, name), bytes(9, raw));
}

// ModelProto: ir_version 1, graph 7 { node 1, name 2, initializer 5, input 11, output 12 }, opset_import 8
export function model(parts) {
  const opset = (domain, version) => message(8, text(1, domain), integer(2, version));
  return Buffer.concat([integer(1, IR_VERSION), message(7, text(2, 'bench'), ...parts), opset('', OPSET),
                        opset('com.microsoft', 1)]);
}

// Attention of opset 23 on inputs of the names given; its heads are split off when inputs are (batch, len, features).
function attention(c, inputs, output) {
  const attributes = { is_causal: c.isCausal && c.window === 0 ? 1 : 0, qk_matmul_output_mode: AFTER_SOFTMAX };
  const hasPast = c.isLayer && c.has.past, hasMaps = c.withMaps || c.has.mean;
  if (c.isLayer) {
    Object.assign(attributes, { q_num_heads: c.heads, kv_num_heads: c.heads });
  }
  const outputs = [output, ...(hasPast ? ['present_k', 'present_v'] : hasMaps ? ['', ''] : []), ...(hasMaps ? ['maps'] : [])];
  return node('Attention', [...inputs, ...(c.window > 0 ? ['mask'] : hasPast ? [''] : []), ...(hasPast ? ['past_k', 'past_v'] : [])],
              outputs, attributes);
}

// The older operator of ONNX Runtime itself; it takes (batch, len, features).
function multiHead(c, inputs, output) {
  return node('MultiHeadAttention', inputs, [output], { num_heads: c.heads, unidirectional: c.isCausal ? 1 : 0 },
              'com.microsoft');
}

function norm(c, from, to) {
  return node(c.has.rmsnorm ? 'RMSNormalization' : 'LayerNormalization', [from, 'ones'], [to], { epsilon: 1e-5 });
}

// What a branch does around its own nodes, which go from the name that own() is given to `${name}_raw`.
function branch(c, from, name, hasNorm, own) {
  if (!hasNorm) {
    return [...own(from), node('Identity', [name + '_raw'], [name])];
  }
  if (c.has.prenorm) {
    return [norm(c, from, name + '_in'), ...own(name + '_in'), node('Add', [from, name + '_raw'], [name])];
  }
  return [...own(from), node('Add', [from, name + '_raw'], [name + '_sum']), norm(c, name + '_sum', name)];
}

function layerNodes(c, attend) {
  const hasNorm = !c.has.bare && (c.isBlock || c.has.layernorm || c.has.rmsnorm || c.has.prenorm);
  const isGated = c.has.gate && !c.has.bare;
  const product = (x, weight, y) => node('MatMul', [x, weight], [y]);
  const heads = (x) => [
    product(x, 'wq', 'q'), product(x, 'wk', 'k'), product(x, 'wv', 'v'), attend(c, ['q', 'k', 'v'], 'context'),
    ...(isGated ? [product(x, 'gate', 'g'), node('Sigmoid', ['g'], ['s']), node('Mul', ['context', 's'], ['gated'])] : []),
    product(isGated ? 'gated' : 'context', 'wo', c.isBlock ? 'y_raw' : 'out_raw')];
  const network = (y) => [product(y, 'up', 'u'), node(c.has.bare ? 'Relu' : 'Gelu', ['u'], ['a']),
                          product('a', 'down', 'out_raw')];
  return [...branch(c, 'x', c.isBlock ? 'y' : 'out', hasNorm, heads),
          ...(c.isBlock ? branch(c, 'y', 'out', hasNorm, network) : [])];
}

// weights: { name: [rows, columns, values] } of a layer. Inputs are q, k, v or x and its past; outputs out and what is
// wanted.
export function makeModel(c, isMultiHead, weights) {
  const type = c.dtype === 'float32' ? FLOAT : DOUBLE;
  const attend = isMultiHead ? multiHead : attention;
  const isJoined = c.isLayer || isMultiHead;
  const shape = (heads, len) => isJoined ? [c.batch, len, c.features] : [c.batch, heads, len, c.dim];
  const parts = [value(12, 'out', type, shape(c.heads, c.qLen))];
  if (c.withMaps) {
    parts.push(value(12, 'maps', type, [c.batch, c.heads, c.qLen, c.kvLen]));
  }
  if (c.has.mean) {
    parts.push(value(12, 'mean', type, [c.batch, c.qLen, c.kvLen]), constant('axes', INT64, [1], new BigInt64Array([1n])),
               node('ReduceMean', ['maps', 'axes'], ['mean'], { keepdims: 0 }));
  }
  if (c.window > 0) {
    parts.push(constant('mask', BOOL, [c.qLen, c.kvLen], attendMask(c)));
  }
  if (!c.isLayer) {
    parts.unshift(value(11, 'q', type, shape(c.heads, c.qLen)), value(11, 'k', type, shape(c.kvHeads, c.kvLen)),
                  value(11, 'v', type, shape(c.kvHeads, c.kvLen)), attend(c, ['q', 'k', 'v'], 'out'));
    return model(parts);
  }
  if (c.has.past) {
    const cache = (field, name, len) => value(field, name, type, [c.batch, c.heads, len, c.dim]);
    parts.push(cache(11, 'past_k', c.pastLen), cache(11, 'past_v', c.pastLen), cache(12, 'present_k', c.kvLen),
               cache(12, 'present_v', c.kvLen));
  }
  for (const [name, [rows, columns, values]] of Object.entries(weights)) {
    parts.push(constant(name, type, [rows, columns], values));
  }
  const ones = type === FLOAT ? new Float32Array(c.features) : new Float64Array(c.features);
  parts.push(constant('ones', type, [c.features], ones.fill(1)));
  parts.unshift(value(11, 'x', type, shape(c.heads, c.qLen)), ...layerNodes(c, attend));
  return model(parts);
}
