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
  if (c.isLayer) {
    Object.assign(attributes, { q_num_heads: c.heads, kv_num_heads: c.heads });
  }
  return node('Attention', c.window > 0 ? [...inputs, 'mask'] : inputs,
              c.withMaps ? [output, '', '', 'maps'] : [output], attributes);
}

// The older operator of ONNX Runtime itself; it takes (batch, len, features).
function multiHead(c, inputs, output) {
  return node('MultiHeadAttention', inputs, [output], { num_heads: c.heads, unidirectional: c.isCausal ? 1 : 0 },
              'com.microsoft');
}

// weights: { wq, wk, wv, wo } of a layer. Inputs are q, k, v or x; outputs out and, when wanted, maps.
export function makeModel(c, isMultiHead, weights) {
  const type = c.dtype === 'float32' ? FLOAT : DOUBLE;
  const joined = c.isLayer || isMultiHead;
  const shape = (len) => joined ? [c.batch, len, c.features] : [c.batch, c.heads, len, c.dim];
  const attend = isMultiHead ? multiHead : attention;
  const parts = [value(12, 'out', type, shape(c.qLen))];
  if (c.withMaps) {
    parts.push(value(12, 'maps', type, [c.batch, c.heads, c.qLen, c.kvLen]));
  }
  if (c.window > 0) {
    parts.push(constant('mask', BOOL, [c.qLen, c.kvLen], attendMask(c)));
  }
  if (!c.isLayer) {
    parts.push(value(11, 'q', type, shape(c.qLen)), value(11, 'k', type, shape(c.kvLen)),
               value(11, 'v', type, shape(c.kvLen)), attend(c, ['q', 'k', 'v'], 'out'));
    return model(parts);
  }
  parts.push(value(11, 'x', type, shape(c.qLen)), node('MatMul', ['x', 'wq'], ['q']),
             node('MatMul', ['x', 'wk'], ['k']),
             node('MatMul', ['x', 'wv'], ['v']), attend(c, ['q', 'k', 'v'], 'context'),
             node('MatMul', ['context', 'wo'], ['out']));
  for (const [name, values] of Object.entries(weights)) {
    parts.push(constant(name, type, [c.features, c.features], values));
  }
  return model(parts);
}
