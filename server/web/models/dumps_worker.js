/**
 * dumps_worker.js: the worker of reader.js. The build makes it a script of its own, with all its imports.
 */
import { dumpOf } from "./dumps.js";

/** Buffers that are transferred to the page, not copied. @param {import("./textrun.js").TextRun | null} dump */
function buffersOf(dump) {
  const tensors = dump ? [dump.maps, dump.thumbs?.full, dump.thumbs?.withoutFirst] : [];
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
