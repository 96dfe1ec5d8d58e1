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

/** The tensors of each head of classes; that of sequences stands behind a pooler. */
const HEADS = {
    BertForSequenceClassification: (width, count) => ({
        "bert.pooler.dense.weight": [width, width],
        "bert.pooler.dense.bias": [width],
        "classifier.weight": [count, width],
        "classifier.bias": [count],
    }),
    BertForTokenClassification: (width, count) => ({ "classifier.weight": [count, width], "classifier.bias": [count] }),
    BertForQuestionAnswering: (width) => ({ "qa_outputs.weight": [2, width], "qa_outputs.bias": [2] }),
};

/** Writes tensors of these shapes; those that isGain says are 1, others random. */
function writeTensors(folder, shapes, isGain) {
    const random = randomNumbers(7),
        header = {},
        parts = [];
    let at = 0;
    for (const [name, shape] of shapes) {
        const numbers = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => (isGain(name) ? 1 : 0.3 * (random() - 0.5)));
        header[name] = { dtype: "F32", shape, data_offsets: [at, at + numbers.byteLength] };
        at += numbers.byteLength;
        parts.push(Buffer.from(numbers.buffer));
    }
    const text = JSON.stringify(header),
        length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length + ((8 - (text.length % 8)) % 8)));
    writeFileSync(join(folder, "model.safetensors"), Buffer.concat([length, Buffer.from(text.padEnd(text.length + ((8 - (text.length % 8)) % 8))), ...parts]));
}

/**
 * With labels it has the head of the architecture, one of sequences unless it is named.
 * @param {string} folder @param {{layers: number, heads: number, width: number, longest: number, labels?: string[], architecture?: string}} sizes
 */
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
    const architecture = sizes.architecture ?? "BertForSequenceClassification";
    if (sizes.labels) Object.assign(config, { architectures: [architecture], id2label: { ...sizes.labels } });
    if (sizes.problem) config.problem_type = sizes.problem;
    writeFileSync(join(folder, "config.json"), JSON.stringify(config));
    copyFileSync(DEMO + "tokenizer.json", join(folder, "tokenizer.json"));
    const model = readFileSync(DEMO + "model.safetensors");
    const shapes = shapesOf(JSON.parse(model.subarray(8, 8 + Number(model.readBigUInt64LE())).toString()), sizes);
    if (sizes.labels) for (const [name, shape] of Object.entries(HEADS[architecture](sizes.width, sizes.labels.length))) shapes.set(name, shape);
    writeTensors(folder, shapes, (name) => name.endsWith("LayerNorm.weight"));
}

/** A mixture of experts with the tokens of "demo": a mixtral of two layers. */
export function writeMixture(folder) {
    const width = 32,
        inner = 24,
        experts = 4,
        words = JSON.parse(readFileSync(DEMO + "config.json", "utf8")).vocab_size;
    mkdirSync(folder, { recursive: true });
    const config = {
        model_type: "mixtral",
        hidden_size: width,
        intermediate_size: inner,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: 2,
        num_local_experts: experts,
        num_experts_per_tok: 2,
        vocab_size: words,
        max_position_embeddings: 64,
    };
    writeFileSync(join(folder, "config.json"), JSON.stringify(config));
    copyFileSync(DEMO + "tokenizer.json", join(folder, "tokenizer.json"));
    const shapes = new Map([["model.embed_tokens.weight", [words, width]], ["model.norm.weight", [width]]]);
    for (const layer of ["model.layers.0", "model.layers.1"]) {
        for (const letter of "qkvo") shapes.set(`${layer}.self_attn.${letter}_proj.weight`, [width, width]);
        for (const norm of ["input", "post_attention"]) shapes.set(`${layer}.${norm}_layernorm.weight`, [width]);
        shapes.set(`${layer}.block_sparse_moe.gate.weight`, [experts, width]);
        for (let e = 0; e < experts; e++)
            for (const [name, shape] of [["w1", [inner, width]], ["w2", [width, inner]], ["w3", [inner, width]]])
                shapes.set(`${layer}.block_sparse_moe.experts.${e}.${name}.weight`, shape);
    }
    writeTensors(folder, shapes, (name) => name.endsWith("norm.weight"));
}
