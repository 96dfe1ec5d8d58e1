/**
 * trial.js: what the model says at a token, and one switch for the head that matters there: of the heads with a role, the
 * one without which the most probable word changes most.
 */
import { bdi, h, sayOnce } from "../dom.js";
import { isChanged, isIn, toggled } from "./changes.js";
import { headsWithRole } from "./examples.js";
import { plain } from "./measured.js";
import { percent } from "./predictions.js";
import { sweptHeads } from "./asked/sweep.js";
import { canPredict, PASSED_MS, predictionsAt } from "./textrun.js";

/** Words with a bar. */
const BARS = 3;

/** @typedef {import("./textrun.js").TextRun} TextRun @typedef {import("./textrun.js").Prediction} Prediction */

/** The role that a switch is about. @param {TextRun} base @returns {Promise<{role: string, layer: number, head: number}>} */
async function headThatMatters(base, row) {
  const heads = headsWithRole(base.facts.name),
    { word, id } = (await predictionsAt(base, row)).last[0];
  const { values, before } = await sweptHeads(base, row, [id ?? word]),
    sizeOf = ({ layer, head }) => Math.abs(values[layer][head] - before);
  return heads.reduce((most, one) => (sizeOf(one) > sizeOf(most) ? one : most));
}

/** @param {TextRun} base */
const isFor = (base) => headsWithRole(base.facts?.name).length > 0 && canPredict(base) && base.facts.returns.includes("sweep");

/** @param {import("../main.js").App} app @param {{change: (patch: object) => void}} hooks */
export function createTrial(app, { change }) {
  const { t } = app,
    said = h("p.trial-said", { role: "status" }),
    bars = h("ul.bars-of", {}),
    role = h("p", {}),
    toggle = h("button.main", { type: "button", hidden: true, onclick: () => change({ ablate: toggled(seen.viewState.ablate, found.layer, found.head) }) }),
    element = h("section.trial", { hidden: true }, h("div.answer-of", {}, said, bars), h("div.row-of", {}, role, toggle));
  let seen = { run: null, base: null, viewState: null },
    found = null,
    drawn = [],
    wanted = null;

  /** The words that are likeliest now, and the one that was. @param {Prediction[]} now @param {Prediction[]} was */
  function showBars(now, was) {
    const words = now.slice(0, BARS);
    if (!words.some(({ word }) => word === was[0].word)) words.push(now.find(({ word }) => word === was[0].word) ?? { word: was[0].word, probability: NaN });
    while (bars.childElementCount > words.length) bars.lastElementChild.remove();
    while (bars.childElementCount < words.length) bars.append(h("li", {}, h("b", {}), h("span", { "aria-hidden": "true" }, h("i", {})), h("span", {})));
    words.forEach(({ word, probability }, at) => {
      const [name, bar, number] = bars.children[at].children;
      name.replaceChildren(bdi(plain(word)));
      bar.firstElementChild.style.width = 100 * (probability || 0) + "%";
      number.textContent = Number.isNaN(probability) ? "–" : percent(probability);
    });
  }

  /** @param {{run: TextRun, base: TextRun}} runs */
  async function fill({ run, base }, row) {
    const mine = (wanted = [run, row]);
    element.setAttribute("aria-busy", "true");
    await new Promise((resolve) => setTimeout(resolve, PASSED_MS));
    if (wanted !== mine) return;
    try {
      const [was, now, head] = await Promise.all([predictionsAt(base, row), predictionsAt(run, row), headThatMatters(base, row)]);
      if (wanted !== mine) return;
      const [best] = now.last;
      found = head;
      showBars(now.last, was.last);
      if (run === base) tell(t(run.facts.kind === "encoder" ? "models.trial.itself" : "models.trial.next", { token: plain(run.queries[row]), word: plain(best.word), size: percent(best.probability) }));
      role.textContent = `${t("role.head", found)} ${t("role." + found.role)} ${t("models.trial.most")}`;
      showSwitch();
      element.setAttribute("aria-busy", "false");
    } catch {
      if (wanted === mine) element.hidden = true; // what cannot be asked is said beside the predictions
    }
  }

  function showSwitch() {
    toggle.hidden = !found;
    if (!found) return;
    const isOff = isIn(seen.viewState.ablate, found.layer, found.head);
    toggle.textContent = t(isOff ? "models.trial.on" : "models.trial.off");
  }

  /** @param {string} sentence what the model says, or what the changes do */
  const tell = (sentence) => sayOnce(said, sentence);

  /** Whether nothing but the switch has changed the model. @param {import("./changes.js").Changes} changes */
  const isAlone = ({ ablate, ...others }) =>
    !element.hidden && found !== null && !isChanged({ ...others, ablate: [] }) && ablate.length === 1 && isIn(ablate, found.layer, found.head);

  /** @param {TextRun} run @param {TextRun} base without changes @param {import("./view_state.js").ViewState} viewState */
  function update(run, base, viewState) {
    const { row } = viewState,
      key = [run, base, row];
    seen = { run, base, viewState };
    showSwitch();
    if (key.every((part, at) => part === drawn[at])) return;
    drawn = key;
    wanted = null;
    element.hidden = !isFor(base);
    element.setAttribute("aria-busy", "false");
    if (!element.hidden) fill(seen, row);
  }
  return { element, update, tell, isAlone };
}
