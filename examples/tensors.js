// tensors.js: attention on typed arrays, in a browser or in Node.js: bytes both ways, and nothing is copied on either.
"use strict";

const MEDIA_TYPE = "application/vnd.attnd.safetensors";

// A safetensors message of {name: {data: Float32Array, shape}}: the header, then the arrays themselves, which a Blob
// refers to rather than copies.
function pack(tensors, request) {
  const header = { __metadata__: { request: JSON.stringify(request) } };
  let end = 0;
  for (const [name, { data, shape }] of Object.entries(tensors)) {
    header[name] = { dtype: "F32", shape, data_offsets: [end, (end += data.byteLength)] };
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = new DataView(new ArrayBuffer(8));
  length.setBigUint64(0, BigInt(text.length), true);
  return new Blob([length, text, ...Object.values(tensors).map(({ data }) => data)]);
}

// The tensors of a message, as views of its own bytes: the server starts data at a multiple of 64.
function unpack(buffer) {
  const size = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  const tensors = {};
  delete header.__metadata__;
  for (const [name, { shape, data_offsets: [begin, end] }] of Object.entries(header)) {
    tensors[name] = { shape, data: new Float32Array(buffer, 8 + size + begin, (end - begin) / 4) };
  }
  return tensors;
}

// POST /v1/attention with tensors by path ("inputs.query") and the rest of the request (options, masks).
async function attendTensors(server, tensors, request = {}) {
  const reply = await fetch(new URL("/v1/attention", server), {
    method: "POST",
    headers: { "Content-Type": MEDIA_TYPE, Accept: MEDIA_TYPE },
    body: pack(tensors, request),
  });
  if (!reply.ok) {
    const problem = await reply.json();
    throw new Error(`${problem.pointer ?? ""}: ${problem.error}`);
  }
  return unpack(await reply.arrayBuffer());
}

if (typeof module !== "undefined") module.exports = { attendTensors, pack, unpack };
