/** The map, the links and the grid of heads, for any page. docs/modules.md says more. */

/** Numbers by layers, heads, queries and keys; fewer dimensions leave out layers, then heads. */
export type Numbers =
  | Rows
  | readonly Rows[]
  | readonly (readonly Rows[])[]
  | readonly (readonly (readonly Rows[])[])[]
  | { readonly shape: readonly number[]; readonly data: ArrayLike<number> };

type Rows = readonly (readonly number[])[];
type Words = readonly string[] | readonly (readonly string[])[];

/** One list for queries and keys, or two; for a batch, a list of lists. */
export type Tokens = Words | { readonly query: Words; readonly key?: Words | undefined };

/** Which number the model has for each layer; of an encoder and a decoder, two lists. */
export type Layers = readonly number[] | { readonly encoder?: readonly number[] | undefined; readonly decoder?: readonly number[] | undefined };

/** An answer of attnd, of a layer or of a model, as JSON or with arrays of numbers. */
export interface Answer {
  readonly outputs: object;
  readonly tokens?: object | undefined;
  readonly layers?: Layers | undefined;
}

export type Data = Answer | Numbers | { readonly numbers: Numbers; readonly tokens?: Tokens | undefined; readonly layers?: Layers | undefined };

export interface Options {
  /** Which output of an answer; "attention" unless told. */
  step?: string;
  /** The number that the model has for it; the first one unless told. */
  layer?: number;
  batch?: number;
  head?: number;
  palette?: "viridis" | "cividis" | "grey";
  /** For screen readers: what this is. */
  label?: string;
  /** Words in another language. */
  words?: Partial<Record<"query" | "key" | "queries" | "masked" | "layer" | "head" | "heads", string>>;
}

export interface MapOptions extends Options {
  /** Colours for 0 to 1, for 0 to the largest, or by powers of ten. */
  range?: "full" | "max" | "log";
  /** At most, in CSS pixels; unless told, down to the end of the window. */
  height?: number;
  /** Sums of rows and columns of weights; true unless told. */
  totals?: boolean;
  /** The cell that has the frame. */
  row?: number;
  col?: number;
}

export interface LinksOptions extends Options {
  /** The largest weights of each query, or all from a threshold on. */
  mode?: "top" | "threshold";
  top?: number;
  threshold?: number;
  /** The query whose links stand out; null: all do. */
  row?: number | null;
}

export interface Cell {
  row: number;
  col: number;
  query: string;
  key: string;
  value: number;
  isMasked: boolean;
}

export interface Row {
  row: number;
  query: string;
  links: { col: number; key: string; value: number }[];
}

export interface Head {
  layer: number;
  head: number;
}

interface MapEvents {
  select: CustomEvent<Cell>;
  hover: CustomEvent<Cell | null>;
}

interface LinksEvents {
  select: CustomEvent<Row | null>;
  hover: CustomEvent<Row | null>;
}

interface GridEvents {
  select: CustomEvent<Head>;
  hover: CustomEvent<Head | null>;
  open: CustomEvent<Head>;
}

type Listen<Events> = <Type extends keyof Events>(type: Type, listener: (event: Events[Type]) => void) => void;

export interface Drawing<Wanted, Events> {
  /** Changes the options that are given, and the data where there is new data. On an error all stays as it was. */
  update(options?: Wanted, data?: Data): void;
  /** Takes it out of the page. */
  destroy(): void;
  addEventListener: Listen<Events>;
  removeEventListener: Listen<Events>;
}

/** One head, cell by cell. Throws an Error that says which number or name is not there. */
export function drawMap(element: Element, data: Data, options?: MapOptions): Drawing<MapOptions, MapEvents>;

/** One head: queries on the left, keys on the right, a curve for each of the large weights. */
export function drawLinks(element: Element, data: Data, options?: LinksOptions): Drawing<LinksOptions, LinksEvents>;

/** Every head as a small picture: layers down, heads across. */
export function drawGrid(element: Element, data: Data, options?: Options): Drawing<Options, GridEvents>;
