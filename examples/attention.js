// attention.js: asks a server for attention and draws the weights as a table; page.html shows it, Node.js can load it.
"use strict";

// POST /v1/attention. Resolves to the answer; rejects with the server's own words and the place they are about.
async function attend(server, request) {
  const reply = await fetch(new URL("/v1/attention", server), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(request),
  });
  const answer = await reply.json();
  if (!reply.ok) throw new Error(`${answer.pointer ?? ""}: ${answer.error}`);
  return answer;
}

// One head as a table: a row a query, a column a key, darker the more it attends.
function drawWeights(document, weights, tokens) {
  const table = document.createElement("table");
  const head = table.insertRow();
  for (const text of ["", ...tokens]) head.insertCell().textContent = text;
  weights.forEach((row, i) => {
    const line = table.insertRow();
    line.insertCell().textContent = tokens[i];
    for (const weight of row) {
      const cell = line.insertCell();
      cell.textContent = weight.toFixed(4);
      cell.style.backgroundColor = `rgba(70, 110, 200, ${weight})`;
    }
  });
  return table;
}

const EXAMPLE = {
  inputs: {
    query: [[0.3, 0.8], [1.2, 0.4], [1.2, 1.3]],
    key: [[0.8, 0.3], [0.4, 1.2], [1.3, 1.2]],
    value: [[0.2, 0.7], [0.9, 0.1], [0.4, 0.5]],
  },
  masks: { causal: true },
  tokens: { query: ["Ben", "okula", "gidiyorum"] },
};

if (typeof module !== "undefined") module.exports = { attend, drawWeights, EXAMPLE };
