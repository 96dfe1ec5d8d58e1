/**
 * share.js: the state in the hash of the address, and in a file that opens from disk.
 */
import { base64OfBytes, bytesOfBase64 } from "./tensor.js";
import { caseOver, fetchLayer, ownRequest } from "./layers.js";
import { PRESETS, presetCase } from "./presets.js";
import { USUAL_VIEW } from "./store.js";

/** Longer addresses are cut by mail programs and proxies. */
const HASH_MAX = 48000;

async function through(stream, bytes) {
  const piped = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

const toUrl = (text) => text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const fromUrl = (text) =>
  text
    .replace(/-/g, "+")
    .replace(/_/g, "/")
    .padEnd(Math.ceil(text.length / 4) * 4, "=");

/** What differs from the usual. */
export function viewToShare(view) {
  return Object.fromEntries(
    Object.entries(view).filter(
      ([name, value]) => value !== USUAL_VIEW[name] && name !== "compare" && name !== "paint",
    ),
  );
}

/** Only names that there are, and only values of the same type. */
export function viewFromShared(given) {
  const view = { ...USUAL_VIEW };
  for (const name of Object.keys(USUAL_VIEW))
    if (typeof given?.[name] === typeof USUAL_VIEW[name]) view[name] = given[name];
  return view;
}

/**
 * A preset that nobody has edited goes by its name, a kept layer too; anything else whole.
 * @returns {Promise<string | null>} null: too long for an address
 */
export async function hashOf({ given, view }) {
  const { id, endpoint, layer } = given;
  const content = id ? { preset: id } : { endpoint, layer: layer?.name, request: ownRequest(given) };
  const bytes = new TextEncoder().encode(JSON.stringify({ ...content, view: viewToShare(view) }));
  const hash = "#v1=" + toUrl(base64OfBytes(await through(new CompressionStream("deflate-raw"), bytes)));
  return hash.length <= HASH_MAX ? hash : null;
}

/** @returns {Promise<{given: object, view: object} | null>} null: no hash of ours */
export async function stateOfHash(hash) {
  const [, packed] = /^#v1=([\w-]+)$/.exec(hash) ?? [];
  if (!packed) return null;
  const bytes = await through(new DecompressionStream("deflate-raw"), bytesOfBase64(fromUrl(packed)));
  return stateOf(JSON.parse(new TextDecoder().decode(bytes)));
}

/** @param {object} content as hashOf and pageWith write it */
export async function stateOf({ preset, endpoint, layer, request, view }) {
  if (preset && PRESETS.includes(preset)) {
    const given = presetCase(preset);
    return { given, view: viewFromShared({ ...given.view, ...view }) };
  }
  if (typeof request !== "object" || request === null) return null;
  const given = layer ? caseOver(await fetchLayer(String(layer)), request) : { id: "", endpoint, request };
  return { given, view: viewFromShared(view) };
}
