/** attnd: attention as a service. README.md shows how to use it. */
import type { schemas } from "./schema.js";

export type { schemas };

export type NumberArray = Float64Array | Float32Array | BigInt64Array | Int32Array | Uint16Array | Uint8Array;

/** Numbers with a shape, the last dimension fastest. In an answer, data is a view on its bytes. */
export interface Tensor<Data extends NumberArray = NumberArray> {
  shape: number[];
  data: Data;
}

/** The same request, with typed arrays wherever it takes a tensor. */
export type Arrays<T> = T extends schemas["BinaryTensor"]
  ? T | Tensor
  : T extends readonly unknown[]
    ? T
    : T extends object
      ? { [Name in keyof T]: Arrays<T[Name]> }
      : T;

type Floats = Tensor<Float32Array | Float64Array>;

/** What options.return asked for; what it did not ask for is absent. */
export type Outputs = { [Step in Exclude<schemas["Step"], "mask">]: Floats } & { mask: Tensor<Uint8Array> };

export interface Answer extends Omit<schemas["Answer"], "outputs" | "shapes"> {
  outputs: Outputs;
}

export interface ModelAnswer extends Omit<schemas["ModelAnswer"], "outputs" | "shapes"> {
  outputs: Outputs & {
    rollout: Floats;
    hidden: Floats;
    logits: Floats;
    encoder_attention: Floats;
    decoder_attention: Floats;
    cross_attention: Floats;
    head_scores: Record<string, Floats>;
    predictions: { ids: Tensor<BigInt64Array>; probabilities: Floats };
    logit_lens: { ids: Tensor<BigInt64Array>; probabilities: Floats };
  };
}

/** Gradients at the place of what they belong to: gradients.inputs.query, gradients.weights.query.weight. */
export interface GradientAnswer extends Omit<schemas["Answer"], "outputs" | "shapes"> {
  gradients: { inputs: Record<string, Floats>; weights?: Record<string, any>; [member: string]: any };
}

export interface Call {
  signal?: AbortSignal;
  /** Told of each tensor when its last byte has arrived, before the answer is whole: "attention", "predictions.ids". */
  onTensor?: (name: string, tensor: Tensor) => void;
  /** Such as If-Match or traceparent. */
  headers?: Record<string, string>;
}

export interface Settings {
  key?: string;
  /** Another fetch, such as one with a proxy or with tries. */
  fetch?: typeof globalThis.fetch;
  /** Sent with every request. */
  headers?: Record<string, string>;
}

export interface Client {
  attention(request: Arrays<schemas["AttentionRequest"]>, call?: Call): Promise<Answer>;
  multiHeadAttention(request: Arrays<schemas["LayerRequest"]>, call?: Call): Promise<Answer>;
  gradients: {
    attention(request: Arrays<schemas["AttentionGradientRequest"]>, call?: Call): Promise<GradientAnswer>;
    multiHeadAttention(request: Arrays<schemas["LayerGradientRequest"]>, call?: Call): Promise<GradientAnswer>;
    layer(name: string, request: Arrays<schemas["KeptLayerGradientRequest"]>, call?: Call): Promise<GradientAnswer>;
  };
  layers: {
    list(call?: Call): Promise<schemas["KeptLayers"]>;
    get(name: string, call?: Call): Promise<schemas["KeptLayer"]>;
    put(name: string, layer: Arrays<schemas["KeptLayerBody"]>, call?: Call): Promise<schemas["KeptLayer"]>;
    delete(name: string, call?: Call): Promise<unknown>;
    attention(name: string, request: Arrays<schemas["KeptLayerRequest"]>, call?: Call): Promise<Answer>;
  };
  models: {
    list(call?: Call): Promise<schemas["Models"]>;
    get(name: string, call?: Call): Promise<schemas["Model"]>;
    tokens(name: string, request: schemas["ModelTokensRequest"], call?: Call): Promise<schemas["ModelTokens"]>;
    attention(name: string, request: Arrays<schemas["ModelAttentionRequest"]>, call?: Call): Promise<ModelAnswer>;
  };
}

/** Throws AttndError when the server refuses, and what fetch throws when there is none or the signal aborts. */
export function attnd(url: string, settings?: Settings): Client;

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
