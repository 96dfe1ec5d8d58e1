/**
 * reader.js: reads files of maps in a worker, because unpacking and converting hundreds of megabytes takes seconds.
 */
import { fetchPart } from "../exchange/files.js";
import { Problem } from "../texts.js";
import { dumpOf } from "./dumps.js";

/** @returns {Promise<string | null>} URL of the worker's script; null: not available */
async function addressOfWorker() {
  try {
    return URL.createObjectURL(new Blob([await fetchPart("dumps_worker")], { type: "text/javascript" }));
  } catch {
    return null;
  }
}

/** @param {Worker} worker @param {File} file @returns {Promise<import("./textrun.js").TextRun | null>} */
const answerOfWorker = (worker, file) =>
  new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { dump, problem } }) => (problem ? reject(new Problem(problem.key, problem.values)) : resolve(dump));
    worker.onerror = () => resolve(dumpOf(file)); // this browser does not allow the worker
    worker.postMessage(file);
  });

/** @param {File} file @returns {Promise<import("./textrun.js").TextRun | null>} null: not a file of maps @throws {Problem} */
export async function readDump(file) {
  const address = await addressOfWorker();
  if (address === null) return dumpOf(file);
  const worker = new Worker(address);
  try {
    return await answerOfWorker(worker, file);
  } finally {
    worker.terminate();
    URL.revokeObjectURL(address);
  }
}
