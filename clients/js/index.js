/**
 * attnd: attention as a service, from browsers and Node.js, without dependencies.
 *
 * Numbers travel as safetensors, so nothing is written as decimal text. The arrays of an answer are views on its bytes.
 * index.d.ts is the interface; README.md shows it.
 */
const SAFETENSORS = "application/vnd.attnd.safetensors",
  EVENTS = "text/event-stream",
  JSON_TYPE = "application/json";

/** @type {any} where the language has halves, they are read as such; else their bits */
const Half = /** @type {any} */ (globalThis).Float16Array ?? Uint16Array;

/** @type {Record<string, any>} */
const VIEWS = {
  F64: Float64Array,
  F32: Float32Array,
  F16: Half,
  BF16: Uint16Array,
  I64: BigInt64Array,
  I32: Int32Array,
  U8: Uint8Array,
  BOOL: Uint8Array,
};

/** What JSON calls them. @type {Record<string, string>} */
const WORDS = {
  float64: "F64",
  float32: "F32",
  float16: "F16",
  bfloat16: "BF16",
  int64: "I64",
  int32: "I32",
  uint8: "U8",
  bool: "BOOL",
};

/** What a typed array is called. @type {Record<string, string>} */
const NAMES = {
  Float64Array: "F64",
  Float32Array: "F32",
  Float16Array: "F16",
  BigInt64Array: "I64",
  Int32Array: "I32",
  Uint8Array: "U8",
};

/** @type {typeof import("./index.js").AttndError} */
export const AttndError = class extends Error {
  /** @param {number} status @param {any} problem what the server says @param {number | undefined} retryAfter */
  constructor(status, problem, retryAfter) {
    super(problem.error ?? problem.detail ?? `HTTP ${status}`);
    this.name = "AttndError";
    this.status = status;
    this.type = problem.type;
    this.pointer = problem.pointer;
    this.expected = problem.expected;
    this.received = problem.received;
    this.requestId = problem.request_id;
    this.retryAfter = retryAfter;
  }
};

/** @param {any} value @returns {value is import("./index.js").Tensor} */
const isTensor = (value) => ArrayBuffer.isView(value?.data) && Array.isArray(value.shape);

/** What JSON has no form for: typed arrays, which stand for lists, and NaN and infinities. @param {any} value */
function plain(value) {
  if (ArrayBuffer.isView(value)) return Array.from(/** @type {any} */ (value), Number);
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}

/** @param {import("./index.js").Tensor} tensor */
function nameOf({ data, shape }) {
  const name = NAMES[data.constructor.name];
  if (!name) throw new TypeError(`a ${data.constructor.name} cannot be sent: use one of ${Object.keys(NAMES).join(", ")}`);
  const count = shape.reduce((product, size) => product * size, 1);
  if (data.length !== count) throw new TypeError(`shape [${shape}] has ${count} elements, data has ${data.length}`);
  return name;
}

/** @param {any[]} list @param {string} path */
function checkList(list, path) {
  const tensor = list.find(isTensor);
  if (tensor)
    throw new TypeError(
      `/${path.replaceAll(".", "/")} is a list of tensors: send one, { shape: [${[list.length, ...tensor.shape].join(", ")}], data }, with their numbers one behind the other`,
    );
}

/**
 * The request as bytes: a header, then the arrays themselves, to which a Blob refers.
 * @param {any} request
 */
function packed(request) {
  /** @type {Record<string, any>} */
  const header = {};
  /** @type {any[]} */
  const arrays = [];
  let end = 0;
  /** @param {any} value @param {string} path @returns {any} what is left of it for JSON */
  const rest = (value, path) => {
    if (Array.isArray(value)) checkList(value, path);
    if (value === null || typeof value !== "object" || Array.isArray(value) || ArrayBuffer.isView(value)) return value;
    if (isTensor(value)) {
      header[path] = { dtype: nameOf(value), shape: value.shape, data_offsets: [end, (end += value.data.byteLength)] };
      arrays.push(value.data);
      return undefined;
    }
    const left = Object.entries(value).map(([name, inner]) => [name, rest(inner, path ? `${path}.${name}` : name)]);
    return Object.fromEntries(left.filter(([, inner]) => inner !== undefined));
  };
  const json = JSON.stringify(rest(request, ""), (_, value) => plain(value));
  if (arrays.length === 0) return { type: JSON_TYPE, body: json };
  const text = new TextEncoder().encode(JSON.stringify({ __metadata__: { request: json }, ...header })),
    size = new DataView(new ArrayBuffer(8));
  size.setBigUint64(0, BigInt(text.length), true);
  return { type: SAFETENSORS, body: new Blob([size, text, ...arrays]) };
}

/** Puts a value at "predictions.ids". @param {any} into @param {string} path @param {any} value */
function place(into, path, value) {
  const names = path.split("."),
    last = /** @type {string} */ (names.pop());
  for (const name of names) into = into[name] ??= {};
  into[last] = value;
}

/** Tensors of a header in the order of their bytes. @param {any} header @returns {[string, any][]} */
const entriesOf = ({ __metadata__, ...tensors }) =>
  Object.entries(tensors).sort(([, a], [, b]) => a.data_offsets[1] - b.data_offsets[1]);

/** A view on the bytes of an answer, from where its data starts. @param {ArrayBuffer} buffer @param {number} start @param {any} entry */
function tensorAt(buffer, start, { dtype, shape, data_offsets: [begin, end] }) {
  const View = VIEWS[dtype];
  return { shape, data: new View(buffer, start + begin, (end - begin) / View.BYTES_PER_ELEMENT) };
}

/** @param {any} header @param {any} outputs */
function answerOf({ __metadata__: metadata = {} }, outputs) {
  const { gradients, ...steps } = outputs,
    answer = gradients ? { outputs: steps, gradients } : { outputs };
  for (const [name, json] of Object.entries(metadata)) // words stand beside their ids, although they are no tensor
    place(name.includes(".") ? answer.outputs : answer, name, JSON.parse(/** @type {string} */ (json)));
  return answer;
}

/** @param {ArrayBuffer | Uint8Array} bytes */
const headerIn = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
const sizeIn = (/** @type {ArrayBuffer} */ buffer) => Number(new DataView(buffer).getBigUint64(0, true));

/** @param {ArrayBuffer} buffer a whole answer */
function unpacked(buffer) {
  const size = sizeIn(buffer),
    header = headerIn(new Uint8Array(buffer, 8, size)),
    outputs = {};
  for (const [name, entry] of entriesOf(header)) place(outputs, name, tensorAt(buffer, 8 + size, entry));
  return answerOf(header, outputs);
}

/**
 * Reads an answer while it arrives, and tells of each tensor when its last byte is there.
 * @param {ReadableStream<Uint8Array>} stream
 * @param {(name: string, tensor: any) => void} tell
 */
async function streamed(stream, tell) {
  const reader = stream.getReader(),
    outputs = {};
  /** @type {Uint8Array} */
  let rest = new Uint8Array(0);
  /** @param {Uint8Array} bytes */
  const fill = async (bytes) => {
    for (let at = 0; at < bytes.length; ) {
      if (rest.length === 0) {
        const { done, value } = await reader.read();
        if (done) throw new Error("the answer ends too early");
        rest = value;
      }
      const piece = rest.subarray(0, bytes.length - at);
      bytes.set(piece, at);
      at += piece.length;
      rest = rest.subarray(piece.length);
    }
    return bytes;
  };
  const size = await fill(new Uint8Array(8)),
    header = headerIn(await fill(new Uint8Array(sizeIn(/** @type {ArrayBuffer} */ (size.buffer))))),
    entries = entriesOf(header),
    data = new Uint8Array(entries.at(-1)?.[1].data_offsets[1] ?? 0);
  for (const [name, entry] of entries) {
    await fill(data.subarray(...entry.data_offsets));
    const tensor = tensorAt(data.buffer, 0, entry);
    place(outputs, name, tensor);
    tell(name, tensor);
  }
  return answerOf(header, outputs);
}

/** Puts arrays in the place of their base64, in an answer of JSON. @param {any} value @returns {any} */
function decoded(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  if (typeof value.base64 !== "string") return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, decoded(inner)]));
  const bytes = Uint8Array.from(atob(value.base64), (letter) => letter.charCodeAt(0));
  return { shape: value.shape, data: new VIEWS[WORDS[value.dtype]](bytes.buffer) };
}

/**
 * Tells of each progress. Returns the name and the data of the last event.
 * @param {ReadableStream<Uint8Array>} stream @param {(progress: any) => void} tell
 */
async function followed(stream, tell) {
  const reader = stream.getReader(),
    decoder = new TextDecoder();
  let text = "";
  for (let end; ; ) {
    while ((end = text.indexOf("\n\n")) >= 0) {
      const [name, ...lines] = text.slice("event: ".length, end).split("\ndata: "),
        data = JSON.parse(lines.join("\n"));
      text = text.slice(end + 2);
      if (name !== "progress") return { name, data };
      tell(data);
    }
    const { done, value } = await reader.read();
    if (done) throw new Error("the answer ends too early");
    text += decoder.decode(value, { stream: true });
  }
}

/** A browser says the same of a server that is away and of one that refuses its page. @param {string} address @param {any} error of fetch */
const unreached = (address, error) =>
  new TypeError(`${address} cannot be reached${/** @type {any} */ (globalThis).location ? ", or its --cors-origin does not name this page" : ""}: ${error.cause?.message || error.cause?.code || error.message}`, { cause: error });

/** The server of ATTND_URL, in Node.js; else that which this module comes from; else the usual one. */
const defaultAddress = () =>
  /** @type {any} */ (globalThis).process?.env?.ATTND_URL ||
  /^(https?:.*)\/web\/[^/]+\/client\.js$/.exec(import.meta.url)?.[1] ||
  "http://127.0.0.1:8080";

/** @type {typeof import("./index.js").attnd} */
export function attnd(url, { key, fetch: send = globalThis.fetch.bind(globalThis), headers = {} } = {}) {
  const base = String(url ?? defaultAddress()).replace(/\/+$/, "");
  if (!/^(https?:\/\/[^/]|\/[^/]|$)/.test(base)) throw new TypeError(`${url} is not an address such as http://127.0.0.1:8080`);

  /**
   * @param {string} method @param {string} path @param {any} [content] type and body
   * @param {import("./index.js").Call} [call] @param {string} [accept]
   */
  async function ask(method, path, content, { signal, onTensor, onProgress, headers: more } = {}, accept = JSON_TYPE) {
    const response = await send(base + path, {
      method,
      signal: signal ?? null,
      body: content?.body,
      headers: {
        ...headers,
        ...(key ? { "X-API-Key": key } : {}),
        ...(content ? { "Content-Type": content.type } : {}),
        Accept: accept,
        ...more,
      },
    }).catch((error) => {
      throw signal?.aborted ? error : unreached(base, error);
    });
    const media = response.headers.get("Content-Type"),
      isTensors = response.ok && media === SAFETENSORS,
      events = onProgress && media === EVENTS ? response.body : null,
      stream = onTensor && isTensors ? response.body : null;
    /** @type {any} */
    const got = await (events && onProgress ? followed(events, onProgress) : stream && onTensor ? streamed(stream, onTensor) : isTensors ? response.arrayBuffer() : response.text()).catch((error) => {
      throw signal?.aborted ? error : new TypeError(`${base} broke off its answer: ${error.cause?.message || error.message}`, { cause: error });
    });
    if (isTensors) return stream ? got : unpacked(got);
    if (events && got.name === "error") throw new AttndError(got.data.status, got.data, undefined);
    if (events) {
      const { shapes, ...answer } = got.data;
      return { ...answer, ...decoded({ outputs: answer.outputs, ...(answer.gradients && { gradients: answer.gradients }) }) };
    }
    if (!response.ok) throw refusalOf(response, got);
    try {
      return got === "" ? undefined : JSON.parse(got);
    } catch (error) {
      throw new TypeError(`${base} is no server of attnd: it answers ${media ?? "without a type"}`, { cause: error });
    }
  }

  const named = (/** @type {string} */ folder, /** @type {string} */ name) => `/v1/${folder}/${encodeURIComponent(name)}`;
  /** Bytes both ways; events are text, so arrays come in base64. @param {string} path */
  const compute = (path) => (/** @type {any} */ request, /** @type {any} */ call) =>
    call?.onProgress
      ? ask("POST", path, packed({ ...request, options: { format: "base64", ...request.options } }), call, EVENTS)
      : ask("POST", path, packed(request), call, SAFETENSORS);

  /** Options that stand beside the inputs of a model. @param {string} verb @param {string[]} own @param {string[]} [wanted] */
  const changed = (verb, own, wanted) => async (/** @type {string} */ name, /** @type {any} */ request, /** @type {any} */ call) => {
    const { inputs, options, ...made } = request ?? {},
      missing = ["inputs", ...own].find((one) => request?.[one] === undefined),
      twice = own.find((one) => options?.[one] !== undefined);
    if (missing) throw new TypeError(`models.${verb}(name, request) needs ${missing} in its request`);
    if (twice) throw new TypeError(`options has ${twice}, which stands beside the inputs: give it once`);
    const asked = wanted && { return: [...new Set([options?.return ?? [], wanted].flat())] };
    return compute(named("models", name) + "/attention")({ inputs, options: { ...options, ...asked, ...made } }, call);
  };

  return {
    attention: compute("/v1/attention"),
    multiHeadAttention: compute("/v1/multi-head-attention"),
    gradients: {
      attention: compute("/v1/attention/gradients"),
      multiHeadAttention: compute("/v1/multi-head-attention/gradients"),
      layer: (name, request, call) => compute(named("layers", name) + "/gradients")(request, call),
      model: (name, request, call) => compute(named("models", name) + "/gradients")(request, call),
    },
    layers: {
      list: (call) => ask("GET", "/v1/layers", undefined, call),
      get: (name, call) => ask("GET", named("layers", name), undefined, call),
      put: (name, layer, call) => ask("PUT", named("layers", name), packed(layer), call),
      delete: (name, call) => ask("DELETE", named("layers", name), undefined, call),
      attention: (name, request, call) => compute(named("layers", name) + "/attention")(request, call),
    },
    models: {
      list: (call) => ask("GET", "/v1/models", undefined, call),
      get: (name, call) => ask("GET", named("models", name), undefined, call),
      tokens: (name, request, call) => ask("POST", named("models", name) + "/tokens", packed(request), call),
      attention: (name, request, call) => compute(named("models", name) + "/attention")(request, call),
      intervene: changed("intervene", ["interventions"]),
      sweep: changed("sweep", ["sweep", "metric"], ["sweep"]),
    },
  };
}

/** @param {Response} response @param {string} text */
function refusalOf(response, text) {
  const wait = Number(response.headers.get("Retry-After") ?? NaN);
  /** @type {any} */
  let problem = {};
  try {
    problem = JSON.parse(text);
  } catch {
    problem.error = response.headers.get("Content-Type")?.startsWith("text/html") ? `HTTP ${response.status}, a page of HTML that attnd did not write` : text.slice(0, 500) || undefined; // a proxy's words
  }
  return new AttndError(response.status, problem, Number.isNaN(wait) ? undefined : wait);
}
