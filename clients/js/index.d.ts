/** attnd: attention as a service. README.md shows how to use it. */
import type { components } from "./schema.js";

export type schemas = components["schemas"];

export type NumberArray = Float64Array | Float32Array | BigInt64Array | Int32Array | Uint16Array | Uint8Array;

/** Numbers with a shape, the last dimension fastest. In an answer, data is a view on its bytes. */
export interface Tensor<Data extends NumberArray = NumberArray> {
  readonly shape: readonly number[];
  readonly data: Data;
}

/** The same request, with typed arrays wherever it takes a tensor or a list of numbers. */
export type Arrays<T> = T extends schemas["BinaryTensor"]
  ? T | Tensor
  : T extends object
    ? { readonly [Name in keyof T]: Arrays<T[Name]> } | (T extends readonly (infer Item)[] ? (number extends Item ? NumberArray : never) : never)
    : T;

/** The same options. format and view are forms of JSON, and this client asks for arrays. */
type Options<T, Return, Top> = {
  readonly [Name in keyof T as Exclude<Name, "format" | "view">]: Name extends "return" ? Return : Name extends "top_k" ? Top : Arrays<T[Name]>;
};

/** The same request, whose options.return and options.top_k tell what the answer has. */
export type Request<T, Return, Top> = {
  readonly [Name in keyof T]: Name extends "options" ? Options<NonNullable<T[Name]>, Return, Top> : Arrays<T[Name]>;
};

type Asked<Word> = Word | readonly Word[];
type Step = schemas["Step"];

/** Of float32 or float64, as options.compute says; options.dtype may ask for others: a Uint16Array has the bits of halves. */
export type Floats = Tensor<Float32Array | Float64Array | Uint16Array | Uint8Array>;

/** With options.top_k, the largest weights of each row and their keys. */
export interface Largest {
  indices: Tensor<BigInt64Array>;
  weights: Floats;
}

type Weights<Top> = [Top] extends [never] ? Floats : number extends Top ? Floats | Largest : Largest;

/** An output by its name: "attention", "encoder_mask", "cross_attention", … */
type Output<Name, Top> = Name extends "mask" | `${string}_mask`
  ? Tensor<Uint8Array>
  : Name extends "attention" | `${"encoder" | "decoder" | "cross"}_attention`
    ? Weights<Top>
    : Floats;

type All<Name extends string, Top> = { [Each in Name]: Output<Each, Top> };

/** What options.return asked for. Of words that the compiler does not know, each may be absent. */
export type Outputs<Return = Step, Top = number> = (Return extends readonly (infer Word)[] ? Word : Return) extends infer Word extends Step
  ? [Step] extends [Word] ? Partial<All<Step, Top>> : All<Word, Top>
  : never;

export interface Answer<Return = Step, Top = number> extends Omit<schemas["Answer"], "outputs" | "shapes"> {
  outputs: Outputs<Return, Top>;
}

/** The most probable words, the most probable first; with a tokenizer their spelling, in the nesting of the shape. */
export interface Words extends Partial<Pick<WordScores, "logits" | "log_probabilities" | "ranks">> {
  ids: Tensor<BigInt64Array>;
  tokens?: unknown[];
  probabilities: Floats;
}

export type WordScores = Record<"logits" | "log_probabilities", Floats> & { ranks: Tensor<BigInt64Array>; perplexity?: Floats };

export type Attribution = Record<"heads" | "feed_forward" | "embedding" | "bias", Floats> & { cross_heads?: Floats };

/** Of a head of classes: labels, logits and probabilities; of one for questions: start, end and the best answer of each item. */
export interface Classes {
  labels?: string[];
  logits?: Floats;
  probabilities?: Floats;
  start?: Floats;
  end?: Floats;
  answer?: (schemas["ModelAnswerSpan"] | null)[];
}

/** What each token chose in a mixture of experts, the largest weight first; index -1: the layer has no experts. */
export interface Experts {
  indices: Tensor<BigInt64Array>;
  weights: Floats;
}

/** What options.return asked for; an encoder-decoder answers encoder_attention, decoder_attention and cross_attention. */
export type ModelOutputs<Top = number> = {
  [Name in keyof schemas["ModelOutputs"]]: Name extends "predictions" | "logit_lens"
    ? Words
    : Name extends "word_scores" ? WordScores
    : Name extends "attribution" ? Attribution
    : Name extends "sweep" ? Record<"values" | "unchanged", Floats>
    : Name extends "classes" ? Classes
    : Name extends "experts" ? Experts
    : Name extends "word_times" ? { start: Floats; end: Floats; words?: schemas["ModelSpokenWord"][][] }
    : Name extends "head_scores" | `${string}_head_scores` ? Record<keyof schemas["ModelHeadScores"], Floats>
    : Output<Name, Top>;
};

export interface ModelAnswer<Top = number> extends Omit<schemas["ModelAnswer"], "outputs" | "shapes"> {
  outputs: ModelOutputs<Top>;
}

/** The request of a model; the options named by Made are required, and stand beside its inputs. */
export type ModelRequest<Top, Made extends keyof schemas["ModelOptions"] = never> = Request<schemas["ModelAttentionRequest"], Asked<schemas["ModelResult"]>, Top> &
  Arrays<Required<Pick<schemas["ModelOptions"], Made>>>;

/** Gradients at the place of what they belong to: gradients.inputs.query, gradients.weights.query.weight. */
export interface GradientAnswer extends Omit<schemas["Answer"], "outputs" | "shapes"> {
  gradients: { inputs: Record<string, Floats>; weights?: Record<string, any>; [member: string]: any };
}

export interface ModelGradientAnswer extends Omit<schemas["ModelGradientAnswer"], "outputs" | "shapes"> {
  outputs: { [Name in keyof schemas["ModelGradientOutputs"]]: Floats };
}

export interface Call {
  signal?: AbortSignal | undefined;
  /** Told of each tensor when its last byte has arrived, before the answer is whole: "attention", "predictions.ids". */
  onTensor?: ((name: string, tensor: Tensor) => void) | undefined;
  /**
   * Told how far the server is while it computes, at most ten times a second. what is "layer", "token", "preparation" or "task".
   * The answer then comes as a whole, so onTensor is not told of it.
   */
  onProgress?: ((progress: { done: number; of: number; what: string }) => void) | undefined;
  /** Such as If-Match or traceparent. */
  headers?: Record<string, string> | undefined;
}

export interface Settings {
  key?: string | undefined;
  /** Another fetch, such as one with a proxy or with tries. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Sent with every request. */
  headers?: Record<string, string> | undefined;
}

export interface Client {
  attention<const Return extends Asked<Step> = "attention" | "output", Top extends number = never>(
    request: Request<schemas["AttentionRequest"], Return, Top>,
    call?: Call,
  ): Promise<Answer<Return, Top>>;
  multiHeadAttention<const Return extends Asked<Step> = "attention" | "output", Top extends number = never>(
    request: Request<schemas["LayerRequest"], Return, Top>,
    call?: Call,
  ): Promise<Answer<Return, Top>>;
  gradients: {
    attention(request: Arrays<schemas["AttentionGradientRequest"]>, call?: Call): Promise<GradientAnswer>;
    multiHeadAttention(request: Arrays<schemas["LayerGradientRequest"]>, call?: Call): Promise<GradientAnswer>;
    layer(name: string, request: Arrays<schemas["KeptLayerGradientRequest"]>, call?: Call): Promise<GradientAnswer>;
    model(name: string, request: Arrays<schemas["ModelGradientRequest"]>, call?: Call): Promise<ModelGradientAnswer>;
  };
  layers: {
    list(call?: Call): Promise<schemas["KeptLayers"]>;
    get(name: string, call?: Call): Promise<schemas["KeptLayer"]>;
    put(name: string, layer: Arrays<schemas["KeptLayerBody"]>, call?: Call): Promise<schemas["KeptLayer"]>;
    delete(name: string, call?: Call): Promise<unknown>;
    /** Without options.return, the outputs are those that the layer was kept with. */
    attention<const Return extends Asked<Step> = Step, Top extends number = never>(
      name: string,
      request: Request<schemas["KeptLayerRequest"], Return, Top>,
      call?: Call,
    ): Promise<Answer<Return, Top>>;
  };
  models: {
    list(call?: Call): Promise<schemas["Models"]>;
    get(name: string, call?: Call): Promise<schemas["Model"]>;
    tokens(name: string, request: Arrays<schemas["ModelTokensRequest"]>, call?: Call): Promise<schemas["ModelTokens"]>;
    attention<Top extends number = never>(name: string, request: ModelRequest<Top>, call?: Call): Promise<ModelAnswer<Top>>;
    intervene<Top extends number = never>(name: string, request: ModelRequest<Top, "interventions">, call?: Call): Promise<ModelAnswer<Top>>;
    /** options.return names what is wanted beside "sweep". */
    sweep<Top extends number = never>(
      name: string,
      request: ModelRequest<Top, "sweep" | "metric">,
      call?: Call,
    ): Promise<ModelAnswer<Top> & { outputs: Required<Pick<ModelOutputs, "sweep">> }>;
  };
}

/**
 * url: default that of ATTND_URL in Node.js, else of the server that this module comes from, else http://127.0.0.1:8080.
 * Throws AttndError when the server refuses, a TypeError with its address when it cannot be reached or breaks off, and
 * what fetch throws when the signal aborts.
 */
export function attnd(url?: string, settings?: Settings): Client;

/** A refusal; message is a sentence. */
export class AttndError extends Error {
  constructor(status: number, problem: object, retryAfter?: number);
  status: number;
  /** Such as "/problems/shape". */
  type?: string;
  /** Where in the request, such as "/inputs/key". */
  pointer?: string;
  expected?: unknown;
  received?: unknown;
  requestId?: string;
  /** Seconds to wait before another try. */
  retryAfter?: number;
}
