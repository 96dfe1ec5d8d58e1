// page.js URL: what examples/page.html does, in Node.js: one request, one table, one refusal. Prints the table's text.
"use strict";

const { attend, drawWeights, EXAMPLE } = require("../../../examples/attention.js");

// The few parts of a document that the example uses.
const cell = () => ({ textContent: "", style: {} });
const row = () => ({ cells: [], insertCell() { return this.cells[this.cells.push(cell()) - 1]; } });
const table = () => ({ rows: [], insertRow() { return this.rows[this.rows.push(row()) - 1]; } });
const page = { createElement: table };

async function main(server) {
  const answer = await attend(server, EXAMPLE);
  const drawn = drawWeights(page, answer.outputs.attention[0][0], answer.tokens.query);
  for (const line of drawn.rows) console.log(line.cells.map((item) => item.textContent).join(" ").trim());
  await attend(server, { inputs: { query: [[1, 2], [3]] } }).catch((problem) => console.log("refused", problem.message));
}

main(process.argv[2]);
