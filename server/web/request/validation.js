/**
 * validation.js: checks whether the page can handle data from outside as a request. The server checks the rest.
 */
import { Problem } from "../texts.js";
import { tensorFrom } from "./tensor.js";

export const isCount = (value) => Number.isSafeInteger(value) && value >= 0;

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const isWords = (list) => Array.isArray(list) && list.every((word) => typeof word === "string");

function isTensor(json) {
  try {
    return tensorFrom(json).shape.length >= 2;
  } catch {
    return false;
  }
}

/**
 * @param {any} given
 * @returns {any} the request without members that are null, which means "not given"
 * @throws {Problem} if the page could not show it
 */
export function checkedRequest(given) {
  if (!isObject(given)) throw new Problem("request.member", { name: "request" });
  const request = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  for (const name of ["inputs", "weights", "masks", "options", "tokens"])
    if (request[name] !== undefined && !isObject(request[name])) throw new Problem("request.member", { name });
  if (!isTensor(request.inputs?.query)) throw new Problem("request.inputs");
  for (const list of Object.values(request.tokens ?? {}))
    if (!isWords(list) && !(Array.isArray(list) && list.every(isWords))) throw new Problem("request.tokens");
  return request;
}
