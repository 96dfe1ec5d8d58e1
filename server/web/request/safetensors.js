/**
 * safetensors.js: reads files of tensors, and the requests that they hold.
 */
import { Problem } from "../texts.js";
import { countOf, numbersOfBytes } from "./tensor.js";

export const SAFETENSORS = "application/vnd.attnd.safetensors";

/** @param {ArrayBuffer} buffer @throws {Problem} */
export function safetensorsFrom(buffer) {
  try {
    return tensorsIn(buffer);
  } catch (problem) {
    throw problem instanceof Problem ? problem : new Problem("own.safetensors");
  }
}

function tensorsIn(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const names = {
    F64: "float64",
    F32: "float32",
    F16: "float16",
    BF16: "bfloat16",
    I64: "int64",
    I32: "int32",
    U8: "uint8",
    BOOL: "bool",
  };
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: range }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const bytes = new Uint8Array(buffer, 8 + length + range[0], range[1] - range[0]);
    const isInPlace = dtype === "F32" && bytes.byteOffset % 4 === 0;
    const data = isInPlace
      ? new Float32Array(buffer, bytes.byteOffset, countOf(shape))
      : numbersOfBytes(bytes, names[dtype] ?? dtype);
    tensors[name] = { shape, data };
  }
  return { tensors, metadata: header.__metadata__ ?? {} };
}

/**
 * The name of a tensor is its path in the request, "weights.query.weight". The metadata has the rest as JSON.
 * @param {{tensors: object, metadata: any}} file
 * @param {(tensor: import("./tensor.js").Tensor) => any} write
 */
export function requestFrom({ tensors, metadata }, write) {
  const request = metadata.request ? JSON.parse(metadata.request) : {};
  for (const [name, tensor] of Object.entries(tensors)) {
    const path = name.split(".");
    let place = request;
    for (const part of path.slice(0, -1)) place = place[part] = Object.hasOwn(place, part) ? place[part] : {};
    place[path.at(-1)] = write(tensor);
  }
  return request;
}
