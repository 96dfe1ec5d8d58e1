/**
 * random_model.mjs: a model of any size with random weights: a BERT with the tokens of "demo".
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const DEMO = new URL("../../../examples/train_demo/model/", import.meta.url).pathname;

/** Numbers that are the same every time (mulberry32). */
function randomNumbers(state) {
    return () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let t = Math.imul(state ^ (state >>> 15), 1 | state);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
}

/** Name and shape of each tensor of "demo", in other sizes. */
function shapesOf(header, { layers, width, longest }) {
    const shapes = new Map();
    for (const [name, { shape }] of Object.entries(header)) {
        if (name === "__metadata__" || /\.layer\.[1-9]/.test(name)) continue;
        const sized = name.includes("position_embeddings")
            ? [longest, width]
            : shape.map((size) => ({ 64: width, 128: 2 * width })[size] ?? size);
        const copies = name.includes(".layer.0.") ? layers : 1;
        for (let l = 0; l < copies; l++) shapes.set(name.replace(".layer.0.", `.layer.${l}.`), sized);
    }
    return shapes;
}

/** The tensors of a head of classes behind a pooler. */
const shapesOfClasses = (width, count) =>
    Object.entries({
        "bert.pooler.dense.weight": [width, width],
        "bert.pooler.dense.bias": [width],
        "classifier.weight": [count, width],
        "classifier.bias": [count],
    });

/** @param {string} folder @param {{layers: number, heads: number, width: number, longest: number, labels?: string[]}} sizes */
export function writeModel(folder, sizes) {
    mkdirSync(folder, { recursive: true });
    const config = JSON.parse(readFileSync(DEMO + "config.json", "utf8"));
    Object.assign(config, {
        num_hidden_layers: sizes.layers,
        num_attention_heads: sizes.heads,
        hidden_size: sizes.width,
        intermediate_size: 2 * sizes.width,
        max_position_embeddings: sizes.longest,
        dtype: "float32",
    });
    if (sizes.labels) Object.assign(config, { architectures: ["BertForSequenceClassification"], id2label: { ...sizes.labels } });
    writeFileSync(join(folder, "config.json"), JSON.stringify(config));
    copyFileSync(DEMO + "tokenizer.json", join(folder, "tokenizer.json"));
    const model = readFileSync(DEMO + "model.safetensors"),
        random = randomNumbers(7);
    const shapes = shapesOf(JSON.parse(model.subarray(8, 8 + Number(model.readBigUInt64LE())).toString()), sizes);
    if (sizes.labels) for (const [name, shape] of shapesOfClasses(sizes.width, sizes.labels.length)) shapes.set(name, shape);
    const header = {},
        parts = [];
    let at = 0;
    for (const [name, shape] of shapes) {
        const isGain = name.endsWith("LayerNorm.weight");
        const numbers = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => (isGain ? 1 : 0.3 * (random() - 0.5)));
        header[name] = { dtype: "F32", shape, data_offsets: [at, at + numbers.byteLength] };
        at += numbers.byteLength;
        parts.push(Buffer.from(numbers.buffer));
    }
    const text = JSON.stringify(header),
        length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length + ((8 - (text.length % 8)) % 8)));
    writeFileSync(join(folder, "model.safetensors"), Buffer.concat([length, Buffer.from(text.padEnd(text.length + ((8 - (text.length % 8)) % 8))), ...parts]));
}
