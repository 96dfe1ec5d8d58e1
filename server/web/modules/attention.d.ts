/** Draws attention as a map, as links, and as a grid of heads, in any page. See docs/modules.md. */

/** Numbers by layer, head, query and key. With fewer dimensions, there is one layer, then one head. */
export type Numbers =
  | Rows
  | readonly Rows[]
  | readonly (readonly Rows[])[]
  | readonly (readonly (readonly Rows[])[])[]
  | { readonly shape: readonly number[]; readonly data: ArrayLike<number> };

type Rows = readonly (readonly number[])[];
type Words = readonly string[] | readonly (readonly string[])[];

/** One list for queries and keys, or one for each. For a batch, each is a list of lists. */
export type Tokens = Words | { readonly query: Words; readonly key?: Words | undefined };

/** The model's numbers of the layers that are given; two lists for an encoder and a decoder. */
export type Layers = readonly number[] | { readonly encoder?: readonly number[] | undefined; readonly decoder?: readonly number[] | undefined };

/** An answer of attnd, for a layer or a model, as JSON or with arrays of numbers. */
export interface Answer {
  readonly outputs: object;
  readonly tokens?: object | undefined;
  readonly layers?: Layers | undefined;
}

export type Data = Answer | Numbers | { readonly numbers: Numbers; readonly tokens?: Tokens | undefined; readonly layers?: Layers | undefined };

export interface Options {
  /** Which output of an answer; by default "attention". */
  step?: string;
  /** The model's number of the layer; by default the first one. */
  layer?: number;
  batch?: number;
  head?: number;
  palette?: "viridis" | "cividis" | "grey";
  /** Accessible name. */
  label?: string;
  /** Translations of the words that are shown. */
  words?: Partial<Record<"query" | "key" | "queries" | "masked" | "layer" | "head" | "heads", string>>;
}

export interface MapOptions extends Options {
  /** The colours cover 0 to 1, 0 to the largest weight, or powers of ten. */
  range?: "full" | "max" | "log";
  /** Maximum in CSS pixels; by default down to the end of the window. */
  height?: number;
  /** Whether sums of rows and columns of weights are shown; by default true. */
  totals?: boolean;
  /** The selected cell. */
  row?: number;
  col?: number;
}

export interface LinksOptions extends Options {
  /** The largest weights of each query, or all weights from a threshold on. */
  mode?: "top" | "threshold";
  top?: number;
  threshold?: number;
  /** The query whose links stand out; null: all links look the same. */
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
  /** Changes the given options, and the data if there is new data. After an error, the drawing is as it was. */
  update(options?: Wanted, data?: Data): void;
  /** Removes the drawing from the page. */
  destroy(): void;
  addEventListener: Listen<Events>;
  removeEventListener: Listen<Events>;
}

/** One head, cell by cell. Throws an Error that names what is missing. */
export function drawMap(element: Element, data: Data, options?: MapOptions): Drawing<MapOptions, MapEvents>;

/** One head: queries on the left, keys on the right, and a curve for each large weight. */
export function drawLinks(element: Element, data: Data, options?: LinksOptions): Drawing<LinksOptions, LinksEvents>;

/** Every head as a small picture: layers down, heads across. */
export function drawGrid(element: Element, data: Data, options?: Options): Drawing<Options, GridEvents>;
