/**
 * waiting.js: the requests whose answers are waited for, and how far the server is with each.
 *
 * @typedef {{since: number, stop: () => void, isStopped: boolean, progress: Progress | null}} Wait
 * @typedef {{done: number, of: number, what: string}} Progress of an event (docs/requests.md); null: none has come
 */

/** In the order in which they were sent. @type {Set<Wait>} */
export const waits = new Set();

let told = () => {};

/** @param {() => void} listener called when a request is sent, tells of its progress, or ends */
export const listenToWaits = (listener) => (told = listener);

/**
 * Does what takes a while, in sight of the page, which may stop it. A signal of the caller aborts it as well.
 * @template T
 * @param {AbortSignal | undefined} signal
 * @param {(signal: AbortSignal, tell: (progress: Progress) => void) => Promise<T>} work
 * @param {() => Error} stopped what is thrown when the page has stopped it
 * @returns {Promise<T>}
 */
export async function inSight(signal, work, stopped) {
  const own = new AbortController(),
    abort = () => own.abort();
  /** @type {Wait} */
  const wait = { since: performance.now(), isStopped: false, progress: null, stop };
  function stop() {
    wait.isStopped = true;
    abort();
  }
  const tell = (progress) => {
    wait.progress = progress;
    told();
  };
  // AbortSignal.any is younger than some browsers.
  signal?.addEventListener("abort", abort);
  if (signal?.aborted) abort();
  waits.add(wait);
  told();
  try {
    return await work(own.signal, tell);
  } catch (problem) {
    throw wait.isStopped ? stopped() : problem;
  } finally {
    waits.delete(wait);
    told();
  }
}
