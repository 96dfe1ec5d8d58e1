/**
 * dumps_worker.js: what the worker of reader.js does. The build makes it a part that stands alone, with all that it imports.
 */
import { dumpOf } from "./dumps.js";

/** What the page gets without a copy. @param {import("./textrun.js").TextRun | null} dump */
function buffersOf(dump) {
  const tensors = dump ? [dump.maps, dump.thumbs?.whole, dump.thumbs?.withoutFirst] : [];
  return tensors.flatMap((tensor) => (tensor ? [tensor.data.buffer] : []));
}

onmessage = async ({ data: file }) => {
  try {
    const dump = await dumpOf(file);
    postMessage({ dump }, /** @type {any} */ (buffersOf(dump)));
  } catch (problem) {
    postMessage({ problem: { key: problem.key ?? "own.form", values: problem.values } });
  }
};
