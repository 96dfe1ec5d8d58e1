/**
 * export_formats.js: writes what is shown as files and as commands.
 */
import { cssAt } from "../maps/colour.js";
import { classOfRole, h, ROLE } from "../dom.js";
import { originOf } from "../models/case.js";
import { hasKey } from "../exchange/server.js";
import { textOfExpected, viewToShare } from "../exchange/share.js";
import { tableOfTexts } from "../texts.js";

const escapeXml = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/** A title whose Q, K and V have their colours. */
const colouredXml = (text, colours) =>
  text
    .split(ROLE)
    .map((part, at) => (at % 2 === 1 ? `<tspan fill="${colours[classOfRole(part).at(-1)]}">${escapeXml(part)}</tspan>` : escapeXml(part)))
    .join("");

/** Most cells of an SVG. For more, PNG is the better format. */
export const SVG_CELLS = 1 << 16;

/** @param {import("../maps/heatmap.js").Sheet} sheet */
export function svgOf(sheet, colours) {
  const { matrix, scale, isHidden, leavesFirst, rowLabels, colLabels, rowPrefix, colPrefix, fileTitle } = sheet;
  const size = Math.max(4, Math.min(28, Math.round(900 / Math.max(matrix.rows, matrix.cols)))),
    left = 120,
    top = 100;
  const width = left + matrix.cols * size + 80,
    height = top + matrix.rows * size + 20;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"` +
      ` font-family="system-ui, sans-serif" font-size="12"><title>${escapeXml(fileTitle)}</title>`,
    `<defs><pattern id="hidden" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
      `<rect width="6" height="6" fill="${colours.hidden}"/><path d="M0 0V6" stroke="${colours.hatch}"/></pattern></defs>`,
    `<rect width="${width}" height="${height}" fill="${colours.panel}"/>`,
    `<text x="8" y="18" font-weight="600" fill="${colours.ink}">${colouredXml(fileTitle, colours)}</text>`,
  ];
  for (let i = 0; i < matrix.rows; i++) {
    for (let j = 0; j < matrix.cols; j++) {
      const value = matrix.data[i * matrix.cols + j];
      const fill = isHidden(i, j) || (leavesFirst && j === 0) ? "url(#hidden)" : cssAt(scale, value).colour;
      parts.push(
        `<rect x="${left + j * size}" y="${top + i * size}" width="${size}" height="${size}" fill="${fill}"/>`,
      );
    }
    if (size >= 10) {
      const text = escapeXml(rowLabels ? rowLabels[i] : rowPrefix + i);
      parts.push(
        `<text x="${left - 8}" y="${top + (i + 0.5) * size + 4}" text-anchor="end" fill="${colours.ink}">${text}</text>`,
      );
    }
  }
  for (let j = 0; j < matrix.cols && size >= 10; j++) {
    const text = escapeXml(colLabels ? colLabels[j] : colPrefix + j),
      x = left + (j + 0.5) * size;
    parts.push(`<text transform="translate(${x} ${top - 8}) rotate(-45)" fill="${colours.ink}">${text}</text>`);
  }
  return parts.join("\n") + "\n</svg>\n";
}

/** The cells as they are on the screen, with their title above. @returns {HTMLCanvasElement} */
export function pictureOf(cells, { fileTitle }, colours) {
  const size = Math.round(14 * (window.devicePixelRatio || 1)),
    top = 2 * size;
  const canvas = h("canvas", { width: cells.width, height: cells.height + top }),
    context = canvas.getContext("2d");
  context.fillStyle = colours.panel;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = colours.ink;
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.fillText(fileTitle, size / 2, 1.4 * size, cells.width - size);
  context.drawImage(cells, 0, top);
  return canvas;
}

/** A run as a JSON file, which this page can open. */
export function jsonOf({ given, answer }) {
  const { endpoint, request } = given;
  const word = (value) => (Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
  const numbers = ({ shape, data }) => ({ shape, data: Array.from(data, (x) => (Number.isFinite(x) ? x : word(x))) });
  const outputs = Object.entries(answer.outputs).map(([name, tensor]) => [name, numbers(tensor)]);
  return JSON.stringify({ endpoint, request, ...originOf(given), outputs: Object.fromEntries(outputs) });
}

/** The apostrophe keeps spreadsheets from reading the field as a formula. */
function csvField(text) {
  const safe = /^[=+@\t]|^-(?![\d.])/.test(text) ? "'" + text : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/** Masked cells are empty, because they are not zeros. */
export function csvOf({ matrix, isHidden, rowLabels, colLabels, rowPrefix, colPrefix, corner }) {
  const names = Array.from({ length: matrix.cols }, (_, j) => csvField(colLabels ? colLabels[j] : colPrefix + j));
  const lines = [[corner, ...names].join(",")];
  for (let i = 0; i < matrix.rows; i++) {
    const row = Array.from({ length: matrix.cols }, (_, j) =>
      isHidden(i, j) ? "" : String(matrix.data[i * matrix.cols + j]),
    );
    lines.push([csvField(rowLabels ? rowLabels[i] : rowPrefix + i), ...row].join(","));
  }
  return lines.join("\n") + "\n";
}

/**
 * NumPy's file format, version 1.0. The type is the one in which the server computed, float32 or float64. The type in
 * which the numbers were sent does not matter.
 */
export function npyOf({ shape, data: numbers }, isDouble) {
  const data = isDouble ? Float64Array.from(numbers) : Float32Array.from(numbers);
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  let header = `{'descr': '<f${isDouble ? 8 : 4}', 'fortran_order': False, 'shape': ${tuple}, }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + "\n";
  const head = new Uint8Array(10 + header.length);
  head.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  head.set(new TextEncoder().encode(header), 10);
  return new Blob([head, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]);
}

const shellQuoted = (text) => "'" + text.replace(/'/g, "'\\''") + "'";

const urlOf = (path) => new URL(path, location.href).href;

/** The command reads an API key from a variable. @param {string} path @param {object} body */
export function curlOf(path, body) {
  const key = hasKey() ? ' -H "Authorization: Bearer $ATTND_KEY"' : "";
  return `curl -s ${shellQuoted(urlOf(path))} -H 'Content-Type: application/json'${key} -d ${shellQuoted(JSON.stringify(body))}`;
}

/** Needs only Python's standard library. Quotes are escaped, because a raw string cannot contain its own. */
export function pythonOf(path, body) {
  const json = JSON.stringify(body).replace(/'/g, "\\u0027");
  const key = hasKey() ? ', "Authorization": "Bearer " + os.environ["ATTND_KEY"]' : "";
  return [
    "import json",
    ...(key ? ["import os"] : []),
    "import urllib.request",
    "",
    `request = json.loads(r'''${json}''')`,
    `call = urllib.request.Request(${JSON.stringify(urlOf(path))}, json.dumps(request).encode(),`,
    `                              {"Content-Type": "application/json"${key}})`,
    "with urllib.request.urlopen(call) as response:",
    "    answer = json.load(response)",
    'print(json.dumps(answer["outputs"], indent=1))',
    "",
  ].join("\n");
}

/** JSON that cannot close its script element. */
const inert = (json) => json.replace(/</g, "\\u003c");

/**
 * This page as one file: its style and script to the byte, so that the hashes of the policy hold; the texts of one
 * language; the parts by name; answers of the server; and the state, with the lesson if there is one.
 */
export function pageWith({ given, view, language, parts, answers, lesson, expected }) {
  const policy = document.querySelector("meta[http-equiv]").getAttribute("content");
  const own = (what) => document.querySelector(what).textContent,
    data = (attributes, json) => `<script type="application/json" ${attributes}>${inert(json)}</` + "script>";
  const state = JSON.stringify({
    preset: given.isUnused ? given.id : undefined,
    endpoint: given.endpoint,
    request: given.request,
    ...originOf(given),
    view: viewToShare(view),
    lesson,
    expected: expected && JSON.parse(textOfExpected(expected)),
  });
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    "<title>attnd</title>",
    `<style>${own("style")}</style>`,
    "</head>",
    "<body>",
    data(`id="texts" lang="${language}"`, JSON.stringify(tableOfTexts(language))),
    data('id="answers"', JSON.stringify(answers)),
    data('id="state"', state),
    ...Object.entries(parts).map(([name, text]) => data(`id="part-${name}"`, JSON.stringify(text))),
    `<script>${own("body > script:not([type])")}</` + "script>",
    "</body>",
    "</html>",
    "",
  ].join("\n");
}
