/**
 * zip.js: reads zip files, as NumPy writes them.
 */
import { Problem } from "../texts.js";

export const isZip = (bytes) => bytes[0] === 0x50 && bytes[1] === 0x4b;

/** The files of a zip, by its central directory. @param {ArrayBuffer} buffer @throws {Problem} */
export const unzipped = (buffer) =>
  filesIn(buffer).catch(() => {
    throw new Problem("models.zip");
  });

async function filesIn(buffer) {
  const view = new DataView(buffer),
    files = new Map();
  let end = buffer.byteLength - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end--;
  if (end < 0) throw new Problem("models.zip");
  let at = view.getUint32(end + 16, true);
  for (let n = view.getUint16(end + 10, true); n > 0; n--) {
    const [method, size, nameLength, extra, comment, local] = [
      view.getUint16(at + 10, true),
      view.getUint32(at + 20, true),
      view.getUint16(at + 28, true),
      view.getUint16(at + 30, true),
      view.getUint16(at + 32, true),
      view.getUint32(at + 42, true),
    ];
    const name = new TextDecoder().decode(new Uint8Array(buffer, at + 46, nameLength)),
      start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    files.set(name, await plainOf(buffer.slice(start, start + size), method));
    at += 46 + nameLength + extra + comment;
  }
  return files;
}

async function plainOf(packed, method) {
  if (method === 0) return packed;
  if (method !== 8) throw new Problem("models.zip");
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
}
