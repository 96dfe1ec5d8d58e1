/**
 * links.js: queries on the left, keys on the right, and a curve per drawn weight.
 *
 * Tokens are elements, so that they can be read, focused and searched. The curves are one canvas.
 */
import { bdi, cssColour, h, sizeCanvas } from "../dom.js";
import { chosenLinks } from "./chosen_links.js";
import { labelAt } from "../request/steps.js";
import { short } from "../request/tensor.js";

const ROW = 26,
  BETWEEN = 260;
/** Most tokens per side. */
const MOST = 64;

export class LinksView {
  /** @param {{onselect: (row: number | null) => void, onhover?: (row: number | null) => void}} hooks */
  constructor(hooks) {
    this.hooks = hooks;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.queries = h("div.tokens", { role: "group" });
    this.keys = h("div.tokens.keys", {});
    this.spoken = h("p.note", { "aria-live": "polite" });
    this.element = h("div.links", {}, h("div.sides", {}, this.queries, this.canvas, this.keys), this.spoken);
    this.chosen = null;
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }

  /**
   * @param {{matrix: object, rowLabels: string[] | null, colLabels: string[] | null, row: number, queriesName: string,
   *          rowAxis?: string, colAxis?: string,
   *          mode: string, top: number, threshold: number,
   *          heads?: {matrix: object, colour: string, name: string}[], chosen?: number | null}} sheet
   *          heads: several maps of the same tokens, each in a colour; without it, matrix in the accent colour
   *          chosen: the query whose links stand out, if the caller chooses it
   */
  show(sheet) {
    this.sheet = sheet;
    this.heads = sheet.heads ?? [{ matrix: sheet.matrix, colour: "", name: "" }];
    const { matrix, row } = sheet,
      from = (length, at) => Math.max(0, Math.min(at - MOST / 2, length - MOST));
    this.fromRow = from(matrix.rows, row);
    this.fromCol = from(matrix.cols, row + matrix.cols - matrix.rows);
    this.toRow = Math.min(matrix.rows, this.fromRow + MOST);
    this.toCol = Math.min(matrix.cols, this.fromCol + MOST);
    this.queries.setAttribute("aria-label", sheet.queriesName);
    this.element.classList.toggle("named", Boolean(sheet.rowAxis));
    this.queries.dataset.name = sheet.rowAxis ?? "";
    this.keys.dataset.name = sheet.colAxis ?? "";
    const key = [this.fromRow, this.toRow, this.fromCol, this.toCol, sheet.rowLabels, sheet.colLabels];
    if (!this.made || key.some((part, at) => part !== this.made[at])) this.#makeTokens();
    this.made = key;
    this.#mark(sheet.chosen === undefined ? this.chosen : sheet.chosen);
    this.#draw();
  }

  #makeTokens() {
    const { sheet } = this,
      range = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);
    this.queries.replaceChildren(
      ...range(this.fromRow, this.toRow).map((i) => {
        const choose = () => this.#choose(this.chosen === i ? null : i);
        return h(
          "button",
          {
            type: "button",
            "aria-pressed": "false",
            "data-row": i,
            onclick: choose,
            onpointerenter: () => this.#hint(i),
            onpointerleave: () => this.#hint(null),
            onfocus: () => this.#hint(i),
            onblur: () => this.#hint(null),
          },
          bdi(labelAt(sheet.rowLabels, i)),
        );
      }),
    );
    this.keys.replaceChildren(
      ...range(this.fromCol, this.toCol).map((j) => h("span", {}, bdi(labelAt(sheet.colLabels, j)))),
    );
    this.chosen = this.hinted = null;
  }

  #choose(row) {
    this.#mark(row);
    this.hooks.onselect(row);
    this.#draw();
  }

  #mark(row) {
    this.chosen = row;
    for (const button of this.queries.children)
      button.setAttribute("aria-pressed", String(Number(button.dataset.row) === row));
    this.#say(row);
  }

  #hint(row) {
    this.hinted = row;
    this.hooks.onhover?.(row);
    this.#draw();
  }

  #linksOf(row, { matrix }) {
    const { mode, top, threshold } = this.sheet;
    return chosenLinks(matrix.data.subarray(row * matrix.cols, (row + 1) * matrix.cols), mode, top, threshold);
  }

  #say(row) {
    const { rowLabels, colLabels } = this.sheet;
    const words =
      row === null
        ? []
        : this.heads.flatMap((head) =>
            this.#linksOf(row, head).flatMap(({ j, weight }) => [
              bdi(labelAt(colLabels, j)),
              ` ${short(weight, 3)}${head.name && ` (${head.name})`}, `,
            ]),
          );
    if (words.length > 0) words[words.length - 1] = words[words.length - 1].slice(0, -2);
    const said = h("p", {}, row === null ? [] : [bdi(labelAt(rowLabels, row)), " → ", ...words]);
    if (said.textContent !== this.spoken.textContent) this.spoken.replaceChildren(...said.childNodes); // no repetition
  }

  #draw() {
    if (!this.sheet || this.element.clientWidth === 0) return;
    const { fromRow, toRow, fromCol, toCol } = this,
      only = this.hinted ?? this.chosen;
    const width = Math.min(BETWEEN, Math.max(80, this.element.clientWidth - 240));
    const context = sizeCanvas(this.canvas, width, Math.max(toRow - fromRow, toCol - fromCol) * ROW);
    context.lineCap = "round";
    for (const head of this.heads) {
      context.strokeStyle = head.colour || cssColour("accent", this.element);
      for (let i = fromRow; i < toRow; i++) this.#drawRow(context, head, i, width, only !== null && only !== i);
    }
    context.globalAlpha = 1;
  }

  #drawRow(context, head, i, width, isQuiet) {
    const { fromRow, fromCol, toCol } = this;
    for (const { j, weight } of this.#linksOf(i, head)) {
      if (j < fromCol || j >= toCol) continue;
      const [a, b] = [(i - fromRow + 0.5) * ROW, (j - fromCol + 0.5) * ROW];
      context.globalAlpha = (0.12 + 0.88 * weight) * (isQuiet ? 0.12 : 1);
      context.lineWidth = 0.75 + 5 * weight;
      context.beginPath();
      context.moveTo(2, a);
      context.bezierCurveTo(width / 2, a, width / 2, b, width - 2, b);
      context.stroke();
    }
  }
}
