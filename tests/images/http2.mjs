// http2.mjs URL TYPE FILE COUNT FOLDER: COUNT requests side by side on one HTTP/2 connection; each answer becomes a file of
// FOLDER, each status a line. An https address may have any certificate.

import fs from "node:fs";
import http2 from "node:http2";

const [address, type, file, count, folder] = process.argv.slice(2);
const body = fs.readFileSync(file);
const session = http2.connect(address, { rejectUnauthorized: false });
let open = Number(count);

function ask(number) {
  const stream = session.request({ ":method": "POST", ":path": "/v1/attention", "content-type": type });
  const parts = [];
  stream.on("response", (fields) => console.log(fields[":status"]));
  stream.on("data", (part) => parts.push(part));
  stream.on("end", () => {
    fs.writeFileSync(`${folder}/answer-${number}`, Buffer.concat(parts));
    open -= 1;
    if (open === 0) session.close();
  });
  stream.end(body);
}

for (let number = 0; number < Number(count); number += 1) ask(number);
