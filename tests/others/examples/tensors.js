// tensors.js URL: what examples/tensors.js gets from a server, as text; and that the answer's tensors share one buffer.
"use strict";

const { attendTensors } = require("../../../examples/tensors.js");

async function main(server) {
  const tensor = (values) => ({ data: new Float32Array(values), shape: [3, 2] });
  const tensors = {
    "inputs.query": tensor([0.3, 0.8, 1.2, 0.4, 1.2, 1.3]),
    "inputs.key": tensor([0.8, 0.3, 0.4, 1.2, 1.3, 1.2]),
    "inputs.value": tensor([0.2, 0.7, 0.9, 0.1, 0.4, 0.5]),
  };
  const { attention, output } = await attendTensors(server, tensors, { masks: { causal: true } });
  if (attention.data.buffer !== output.data.buffer) throw new Error("a tensor was copied");
  const row = (data, width, i) =>
    Array.from(data.subarray(i * width, (i + 1) * width), (value) => value.toFixed(4)).join(" ");
  for (let i = 0; i < 3; i++) console.log(`weights ${row(attention.data, 3, i)}   out ${row(output.data, 2, i)}`);
  await attendTensors(server, { ...tensors, "inputs.key": { data: new Float32Array(9), shape: [3, 3] } })
    .catch((problem) => console.log(`refused ${problem.message}`));
}

main(process.argv[2]);
