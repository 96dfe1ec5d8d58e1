/**
 * js.mjs URL: clients/js against a server, and the types in TypeScript's strict mode.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attnd, AttndError } from "../../clients/js/index.js";

const [url] = process.argv.slice(2),
    ROOT = new URL("../../", import.meta.url).pathname,
    CLIENT = join(ROOT, "clients/js"),
    client = attnd(url);

const tensor = (shape, values, Type = Float32Array) => ({ shape, data: Type.from(values) });
const QUERY = tensor([2, 2], [1, 0, 0, 1]);

/** softmax(q qᵀ / √2), equation 1 in plain numbers. */
function weightsOf({ shape: [rows, cols], data }) {
    const row = (i) => data.subarray(i * cols, (i + 1) * cols);
    return Array.from({ length: rows }, (_, i) => {
        const exps = Array.from({ length: rows }, (__, j) =>
            Math.exp(row(i).reduce((sum, value, n) => sum + Number(value) * Number(row(j)[n]), 0) / Math.sqrt(cols)));
        return exps.map((value) => value / exps.reduce((sum, one) => sum + one, 0));
    }).flat();
}

function assertClose(actual, expected, bound = 1e-6) {
    assert.equal(actual.length, expected.length);
    expected.forEach((value, at) => assert.ok(Math.abs(Number(actual[at]) - value) <= bound, `[${at}]: ${actual[at]}, not ${value}`));
}

const LAYER = {
    weights: Object.fromEntries(["query", "key", "value"].map((name) => [name, { weight: tensor([2, 2], [1, 0, 0, 1]) }])),
};

/** A body that ends by an error. */
const cut = () => new ReadableStream({ start: (controller) => controller.error(new Error("cut")) });

function run(program, ...options) {
    const { stdout, stderr, status } = spawnSync(program, options, { encoding: "utf8", cwd: CLIENT });
    assert.equal(status, 0, stdout + stderr);
    return stdout;
}

/** Compiles a program that uses the package. */
function compiled(text) {
    const folder = mkdtempSync(join(tmpdir(), "attnd-clients-"));
    try {
        const modules = { "attnd-package": join(CLIENT, "index.js"), "attnd-module": join(ROOT, "server/web/modules/attention.js") };
        writeFileSync(join(folder, "use.mts"), text.replace(/attnd-(package|module)/g, (name) => modules[name]));
        const strict = "--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess",
            options = `--noEmit ${strict} --target es2022 --module nodenext --moduleResolution nodenext`.split(" ");
        return spawnSync(join(CLIENT, "node_modules/.bin/tsc"), [...options, join(folder, "use.mts")], { encoding: "utf8" }).stdout;
    } finally {
        rmSync(folder, { recursive: true });
    }
}

const cases = {
    async "arrays of every kind go in, and the numbers are those of equation 1"() {
        for (const Type of [Float32Array, Float64Array]) {
            const query = tensor([3, 2], [0.2, 0.7, 0.9, 0.1, 0.4, 0.5], Type);
            const { outputs, effective } = await client.attention({ inputs: { query }, options: { compute: "float64" } });
            assert.deepEqual(outputs.attention.shape, [1, 1, 3, 3]);
            assert.ok(outputs.attention.data instanceof Float64Array);
            assertClose(outputs.attention.data, weightsOf(query));
            assert.equal(effective.kv_len, 3);
        }
        const attend = tensor([2, 2], [1, 0, 1, 1], Uint8Array);
        const { outputs } = await client.attention({ inputs: { query: QUERY }, masks: { attend }, options: { return: ["attention", "mask"] } });
        assert.deepEqual([...outputs.mask.data], [1, 0, 1, 1]);
        assert.equal(outputs.attention.data[1], 0);
    },
    async "a part of a larger array goes in as it is, and plain arrays of JSON do too"() {
        const whole = Float32Array.of(9, 1, 0, 0, 1, 9);
        const { outputs } = await client.attention({ inputs: { query: { shape: [2, 2], data: whole.subarray(1, 5) } } });
        const plain = await client.attention({ inputs: { query: [[1, 0], [0, 1]] } });
        assert.deepEqual(outputs.attention.data, plain.outputs.attention.data);
    },
    async "a weight may be an array alone, by every way in"() {
        const weights = Object.fromEntries(["query", "key", "value"].map((name) => [name, tensor([2, 2], [1, 0, 0, 1])])),
            request = { inputs: { query: QUERY }, options: { num_heads: 1 } };
        const whole = await client.multiHeadAttention({ ...LAYER, ...request });
        assert.deepEqual((await client.multiHeadAttention({ weights, ...request })).outputs, whole.outputs);
        await client.layers.put("js-short", { weights });
        assert.deepEqual((await client.layers.attention("js-short", request)).outputs, whole.outputs);
        await client.layers.delete("js-short");
        const inputs = { query: QUERY, grad_output: QUERY };
        const short = await client.gradients.multiHeadAttention({ weights, inputs });
        assert.deepEqual(short.gradients.inputs, (await client.gradients.multiHeadAttention({ ...LAYER, inputs })).gradients.inputs);
    },
    async "typed arrays stand for lists too: rows, and indices; NaN and infinities are sent"() {
        const query = [Float32Array.of(1, 0), Float32Array.of(0, 1)],
            plain = await client.attention({ inputs: { query: [[1, 0], [0, 1]] } });
        assert.deepEqual((await client.attention({ inputs: { query } })).outputs, plain.outputs);
        const four = tensor([1, 4, 1, 1], [1, 2, 3, 4]);
        for (const Type of [Int32Array, BigInt64Array, Uint8Array]) {
            const heads = Type.from([0, 1, 3].map((at) => (Type === BigInt64Array ? BigInt(at) : at)));
            const { outputs } = await client.attention({ inputs: { query: four }, options: { heads, return: ["scores"] } });
            assert.deepEqual([...outputs.scores.data], [1, 4, 16]);
        }
        const hidden = await client.attention({ inputs: { query, value: [[1, 2], [NaN, Infinity]] }, masks: { bias: [[0, -Infinity], [0, -Infinity]] } });
        assert.deepEqual([...hidden.outputs.attention.data], [1, 0, 1, 0]);
        const { gradients } = await client.gradients.attention({ inputs: { query, grad_output: query }, masks: { bias: [[0, -Infinity], [0, 0]] } });
        assert.deepEqual(gradients.inputs.query.shape, [2, 2]);
    },
    async "predicted words come with their ids"() {
        const request = { inputs: { text: "the animal [MASK] ." }, options: { return: ["predictions", "logit_lens"], predictions_k: 2, layers: [3] } };
        const response = await fetch(url + "/v1/models/demo/attention", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) });
        const json = await response.json();
        for (const call of [undefined, { onTensor() {} }]) {
            const { outputs } = await client.models.attention("demo", request, call);
            assert.deepEqual(outputs.predictions.tokens, json.outputs.predictions.tokens);
            assert.deepEqual(outputs.logit_lens.tokens, json.outputs.logit_lens.tokens);
        }
    },
    async "gradients of a model are outputs"() {
        const request = { inputs: { text: "Anna likes tea, and Tom likes [MASK] too." }, options: { metric: { words: ["tea"], query: 8 }, return: ["embedding"] } };
        const { outputs } = await client.gradients.model("demo", request);
        assert.deepEqual([outputs.metric.shape, outputs.embedding.shape.slice(0, 2)], [[1], [1, 12]]);
    },
    async "given words have scores"() {
        const request = { inputs: { text: "it is" }, options: { return: ["word_scores", "logit_lens"], words: "next" } };
        const { word_scores: scores, logit_lens: lens } = (await client.models.attention("demo", request)).outputs;
        assert.deepEqual([scores.perplexity.shape, scores.ranks.shape], [[1], [1, 4, 1]]);
        assert.deepEqual([...lens.ranks.data.slice(-4)], [...scores.ranks.data]);
    },
    async "sweeps and interventions are methods, of two stacks with their part"() {
        const inputs = { text: ["Anna likes tea", "Tom likes milk"] },
            metric = { words: ["tea"], query: 3 },
            sweep = { at: "context", over: ["layer", "head"], do: "replace", from: 1 },
            ask = (options) => client.models.attention("demo", { inputs, options });
        const swept = await client.models.sweep("demo", { inputs, sweep, metric, options: { compute: "float64" } });
        assert.deepEqual(swept, await ask({ return: ["sweep"], sweep, metric, compute: "float64" }));
        assert.deepEqual([Object.keys(swept.outputs), swept.outputs.sweep.values.shape], [["sweep"], [2, 4, 4]]);
        const interventions = [{ at: "hidden", layers: [1], do: "add", value: new Float32Array(64).fill(0.5) }];
        assert.deepEqual(await client.models.intervene("demo", { inputs, interventions }), await ask({ interventions }));
        for (const wanted of ["attention", ["attention"], ["sweep", "attention"]]) {
            const { outputs } = await client.models.sweep("demo", { inputs, sweep, metric, options: { return: wanted } });
            assert.deepEqual(Object.keys(outputs).sort(), ["attention", "sweep"]);
        }
        await assert.rejects(client.models.intervene("small"), { name: "TypeError", message: "models.intervene(name, request) needs inputs in its request" });
        await assert.rejects(client.models.sweep("demo", { inputs, sweep }), /needs metric in its request/);
        await assert.rejects(client.models.intervene("demo", { inputs, interventions, options: { interventions } }), /options has interventions, which/);
        await assert.rejects(client.models.sweep("demo", { inputs, sweep, metric, options: { metric } }), /options has metric, which/);
        const two = { inputs: { text: "the cat", target: "a street" }, sweep: { at: "context", over: ["layer", "head"], do: "zero" }, metric: { words: [3] } };
        await assert.rejects(client.models.sweep("t5", two), ({ pointer, message }) => pointer === "/options/sweep" && message.includes('no "part"'));
        const { outputs } = await client.models.sweep("t5", { ...two, sweep: { ...two.sweep, part: "cross" } });
        assert.deepEqual(outputs.sweep.unchanged.shape, [1]);
    },
    async "new tokens are facts beside the outputs"() {
        const ask = (wanted) => client.models.attention("gpt2", { inputs: { text: "the cat" }, options: { new_tokens: 3, return: [wanted] } });
        const { generated, tokens, outputs } = await ask("attention");
        assert.deepEqual(tokens.ids[0].slice(-3), generated.ids[0]);
        assert.equal(outputs.attention.shape.at(-1), tokens.ids[0].length);
        const alone = await ask("generated");
        assert.deepEqual([alone.generated, alone.outputs], [generated, {}]);
    },
    async "parts add up to a logit"() {
        const request = { inputs: { text: "it is" }, options: { return: ["attribution", "word_scores"], words: ["tea"], queries: [1], layers: [0] } };
        const { attribution: parts, word_scores: scores } = (await client.models.attention("demo", request)).outputs;
        assert.deepEqual([parts.heads.shape, parts.feed_forward.shape, parts.bias.shape], [[1, 1, 4, 1, 1], [1, 1, 1, 1], [1, 1, 1]]);
        assert.equal(parts.cross_heads, undefined);
        assert.equal(scores.logits.data.length, 1);
    },
    async "classes come with their labels"() {
        const ask = (name, inputs, wanted) => client.models.attention(name, { inputs, options: { return: [wanted] } });
        const { classes } = (await ask("head-sentiment", { text: "the animal" }, "classes")).outputs;
        assert.deepEqual(classes.labels, ["bad", "so so", "good"]);
        assert.deepEqual(classes.logits.shape, [1, 3]);
        const asked = (await ask("head-answers", { text: "what", pair: "the animal" }, "classes")).outputs.classes;
        assert.ok(asked.answer[0].text.length > 0 && asked.start.shape[0] === 1);
        assert.deepEqual((await ask("pooled-mean", { text: "the animal" }, "embedding")).outputs.embedding.shape, [1, 32]);
    },
    async "a server that is away is named"() {
        await assert.rejects(attnd("http://127.0.0.1:9").models.list(), { name: "TypeError", message: /^http:\/\/127\.0\.0\.1:9 cannot be reached: ./ });
        for (const [body, words] of [["<html>", /^http:\/\/a is no server of attnd: it answers text\/html/], [cut(), /^http:\/\/a broke off its answer: cut/]]) {
            const other = attnd("http://a", { fetch: async () => new Response(body, { headers: { "Content-Type": "text/html" } }) });
            await assert.rejects(other.models.list(), { name: "TypeError", message: words });
        }
    },
    async "an error of a proxy has its status; its words are the message, a page of HTML is not"() {
        const page = "HTTP 502, a page of HTML that attnd did not write";
        for (const [type, body, message] of [["text/html; charset=utf-8", "<html><h1>Bad Gateway", page], ["text/plain", "no backend", "no backend"]]) {
            const other = attnd("http://a", { fetch: async () => new Response(body, { status: 502, headers: { "Content-Type": type } }) });
            await assert.rejects(other.models.list(), { name: "AttndError", status: 502, message });
        }
    },
    async "the address comes from the environment, and a wrong one is named"() {
        process.env.ATTND_URL = url + "/";
        assert.ok((await attnd().models.list()).models.length > 0);
        delete process.env.ATTND_URL;
        let asked;
        await attnd(undefined, { fetch: async (address) => ((asked = address), new Response("{}")) }).models.list();
        assert.equal(asked, "http://127.0.0.1:8080/v1/models");
        for (const wrong of ["localhost:8080", "http://", 5]) assert.throws(() => attnd(wrong), { message: `${wrong} is not an address such as http://127.0.0.1:8080` });
    },
    async "a list of tensors is refused in words, by the place where it stands"() {
        const words = /^\/inputs\/query is a list of tensors: send one, { shape: \[3, 2, 2\], data }/;
        assert.throws(() => client.attention({ inputs: { query: [QUERY, QUERY, QUERY] } }), { name: "TypeError", message: words });
    },
    async "the server serves it, as the module client.js with its types"() {
        const version = readFileSync(join(ROOT, "VERSION"), "utf8").trim(),
            series = version.replace(/\.\d+$/, "");
        for (const folder of [version, series]) {
            const types = await fetch(`${url}/web/${folder}/client.d.ts`);
            assert.equal(await types.text(), readFileSync(join(CLIENT, "index.d.ts"), "utf8"));
            assert.match(types.headers.get("Content-Type"), /^application\/typescript/);
            const script = await fetch(`${url}/web/${folder}/client.js`);
            assert.match(script.headers.get("Content-Type"), /^text\/javascript/);
            assert.match(script.headers.get("Cache-Control"), folder === version ? /immutable/ : /no-cache/);
            const served = await import(`data:text/javascript,${encodeURIComponent(await script.text())}`);
            assert.deepEqual((await served.attnd(url).attention({ inputs: { query: QUERY } })).outputs, (await client.attention({ inputs: { query: QUERY } })).outputs);
        }
        const { error } = await (await fetch(`${url}/web/0.1/client.js`)).json();
        assert.equal(error, `the module of this server is /web/${version}/client.js`);
    },
    async "all arrays of an answer are views on one buffer"() {
        const { outputs } = await client.attention({ inputs: { query: QUERY }, options: { return: ["output", "attention", "scores"] } });
        const buffers = new Set(Object.values(outputs).map(({ data }) => data.buffer));
        assert.equal(buffers.size, 1);
    },
    async "progress is told, and the answer is the same"() {
        const request = { inputs: { text: ["Anna likes tea", "Tom likes milk"] }, options: { return: ["sweep", "attention", "predictions"], metric: { words: ["tea"], query: 3 },
            sweep: { at: "hidden", over: ["layer", "query"], do: "zero" } } };
        const told = [],
            onProgress = (progress) => told.push(progress);
        assert.deepEqual(await client.models.attention("demo", request, { onProgress }), await client.models.attention("demo", request));
        assert.ok(told.every(({ done, of, what }) => done >= 0 && done <= of && ["layer", "preparation"].includes(what)), JSON.stringify(told));
        const graded = { inputs: { query: QUERY, grad_output: QUERY }, options: { compute: "float64" } };
        assert.deepEqual(await client.gradients.attention(graded, { onProgress }), await client.gradients.attention(graded));
        await assert.rejects(client.attention({ inputs: { query: QUERY }, options: { digit: 3 } }, { onProgress }), ({ pointer }) => pointer === "/options/digit");
    },
    async "events in pieces of any size are read; the last may be an error, or be missing"() {
        const progress = 'event: progress\ndata: {"done":1,"of":2,"what":"layer"}\n\n';
        const ask = async (events, size, told = []) => {
            const bytes = new TextEncoder().encode(events);
            const body = () => new ReadableStream({
                start(controller) {
                    for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
                    controller.close();
                },
            });
            const one = attnd(url, { fetch: async () => new Response(body(), { headers: { "Content-Type": "text/event-stream" } }) });
            return [await one.attention({ inputs: { query: QUERY } }, { onProgress: (got) => told.push(got) }), told];
        };
        for (const size of [1, 7, 1000])
            assert.deepEqual(await ask(progress + progress + 'event: result\ndata: {"outputs":{},"é":1}\n\n', size), [{ outputs: {}, é: 1 }, Array(2).fill({ done: 1, of: 2, what: "layer" })]);
        await assert.rejects(ask(progress + 'event: error\ndata: {"error":"late","status":504}\n\n', 9), ({ status, message }) => status === 504 && message === "late");
        await assert.rejects(ask(progress + "event: result\ndata: {", 9), /ends too early/);
    },
    async "a streamed answer tells of each tensor, and is the same"() {
        const request = { inputs: { text: "The animal did not cross the street" }, options: { return: ["attention", "predictions"] } };
        const told = new Map();
        const { outputs, tokens } = await client.models.attention("demo", request, { onTensor: (name, { data }) => told.set(name, data) });
        const whole = await client.models.attention("demo", request);
        assert.deepEqual(outputs, whole.outputs);
        assert.deepEqual([...told.keys()].sort(), ["attention", "predictions.ids", "predictions.probabilities"]);
        assert.equal(told.get("attention"), outputs.attention.data);
        assert.ok(outputs.predictions.ids.data instanceof BigInt64Array);
        assert.equal(outputs.attention.shape.at(-1), tokens.text[0].length);
    },
    async "a stream in pieces of any size is read, and one that is cut is told"() {
        const pieces = (size, cut = 0) => attnd(url, {
            fetch: async (...call) => {
                const response = await fetch(...call),
                    bytes = new Uint8Array(await response.arrayBuffer()),
                    end = bytes.length - cut;
                const body = new ReadableStream({
                    start(controller) {
                        for (let at = 0; at < end; at += size) controller.enqueue(bytes.slice(at, Math.min(end, at + size)));
                        controller.close();
                    },
                });
                return new Response(body, { headers: response.headers });
            },
        });
        const request = { inputs: { query: QUERY } },
            expected = await client.attention(request);
        for (const size of [1, 7, 64, 1000])
            assert.deepEqual((await pieces(size).attention(request, { onTensor() {} })).outputs, expected.outputs);
        await assert.rejects(pieces(64, 1).attention(request, { onTensor() {} }), /ends too early/);
    },
    async "a layer computes, is kept, changed only as it was read, and removed"() {
        const request = { inputs: { query: QUERY }, options: { return: ["attention", "output"] } };
        const once = await client.multiHeadAttention({ ...LAYER, ...request });
        assertClose(once.outputs.attention.data, weightsOf(QUERY));
        const { name } = await client.layers.put("js/one".replace("/", "-"), LAYER);
        assert.ok((await client.layers.list()).layers.some((one) => one.name === name));
        assert.equal((await client.layers.get(name)).num_heads, 1);
        assert.deepEqual((await client.layers.attention(name, request)).outputs.output.data, once.outputs.output.data);
        const late = client.layers.put(name, LAYER, { headers: { "If-Match": '"another"' } });
        await assert.rejects(late, ({ status }) => status === 412);
        await client.layers.delete(name);
        await assert.rejects(client.layers.get(name), ({ status }) => status === 404);
    },
    async "gradients are those of differences"() {
        const grad = tensor([2, 2], [1, 0, 0, 0], Float64Array),
            compute = { compute: "float64" };
        const query = tensor([2, 2], [0.3, 0.8, 1.2, 0.4], Float64Array),
            value = tensor([2, 2], [1, 2, 3, 5], Float64Array);
        const { gradients } = await client.gradients.attention({ inputs: { query, value, grad_output: grad }, options: compute });
        const outputAt = async (step) => {
            const moved = tensor([2, 2], query.data, Float64Array);
            moved.data[0] += step;
            const { outputs } = await client.attention({ inputs: { query: moved, key: query, value }, options: compute });
            return outputs.output.data[0];
        };
        const key = await client.gradients.attention({ inputs: { query, key: query, value, grad_output: grad }, options: compute });
        assertClose([key.gradients.inputs.query.data[0]], [((await outputAt(1e-4)) - (await outputAt(-1e-4))) / 2e-4], 1e-8);
        assert.deepEqual(gradients.inputs.query.shape, [2, 2]);
        const told = [];
        await client.gradients.attention({ inputs: { query, grad_output: grad } }, { onTensor: (name) => told.push(name) });
        assert.deepEqual(told, ["gradients.inputs.query"]);
        await client.layers.put("js-gradient", LAYER);
        const kept = await client.gradients.layer("js-gradient", { inputs: { query: QUERY, grad_output: QUERY } });
        const given = await client.gradients.multiHeadAttention({ ...LAYER, inputs: { query: QUERY, grad_output: QUERY } });
        assert.deepEqual(kept.gradients.inputs, given.gradients.inputs);
        await client.layers.delete("js-gradient");
    },
    async "models are described, and give tokens"() {
        assert.ok((await client.models.list()).models.some(({ name }) => name === "demo"));
        const { heads } = await client.models.get("demo");
        const { ids } = await client.models.tokens("demo", { inputs: { text: "it is" } });
        assert.equal(ids[0].length, 4);
        const { outputs } = await client.models.attention("demo", { inputs: { ids } });
        assert.equal(outputs.attention.shape[2], heads);
        const vectors = Float32Array.from({ length: 3 * 64 }, (_, at) => Math.sin(at)),
            rows = [0, 1, 2].map((row) => vectors.subarray(64 * row, 64 * row + 64));
        const [whole, listed] = await Promise.all([{ shape: [3, 64], data: vectors }, rows].map((embeddings) => client.models.attention("demo", { inputs: { embeddings } })));
        assert.deepEqual(whole.outputs, listed.outputs);
        assert.throws(() => client.models.attention("demo", { inputs: { embeddings: [{ shape: [3, 64], data: vectors }] } }), /embeddings is a list of tensors/);
    },
    async "a refusal says where, what was expected, and what came"() {
        const wrong = client.attention({ inputs: { query: QUERY, key: tensor([2, 3], [1, 2, 3, 4, 5, 6]) } });
        await assert.rejects(wrong, (problem) => {
            assert.ok(problem instanceof AttndError);
            assert.deepEqual([problem.status, problem.type, problem.pointer], [400, "/problems/shape", "/inputs/key"]);
            assert.deepEqual([problem.expected, problem.received], [[2, 2], [2, 3]]);
            assert.match(problem.message, /3 features/);
            assert.match(problem.requestId, /./);
            return true;
        });
        const ragged = { inputs: { query: { shape: [2, 2], data: Float32Array.of(1) } } };
        assert.throws(() => client.attention(ragged), /shape \[2,2\] has 4 elements, data has 1/);
        const busy = attnd(url, { fetch: async () => new Response("no", { status: 503, headers: { "Retry-After": "7" } }) });
        await assert.rejects(busy.models.list(), ({ status, retryAfter, message }) => status === 503 && retryAfter === 7 && message === "no");
    },
    async "a signal ends a call, and keys and other header fields are sent"() {
        await assert.rejects(client.attention({ inputs: { query: QUERY } }, { signal: AbortSignal.abort() }), { name: "AbortError" });
        let sent;
        const keyed = attnd(url + "/", {
            key: "secret",
            headers: { traceparent: "t" },
            fetch: async (address, { headers }) => ((sent = { address, headers }), new Response("{}")),
        });
        await keyed.layers.get("a b", { headers: { "X-Priority": "low" } });
        assert.equal(sent.address, url + "/v1/layers/a%20b");
        assert.deepEqual([sent.headers["X-API-Key"], sent.headers.traceparent, sent.headers["X-Priority"]], ["secret", "t", "low"]);
    },
    "the code agrees with its types in TypeScript's strict mode"() {
        assert.equal(run(join(CLIENT, "node_modules/.bin/tsc"), "-p", "."), "");
    },
    "a program compiles in strict mode, and one with a wrong word does not"() {
        const use = (line) => `import { attnd, AttndError } from "attnd-package";
            const client = attnd("http://127.0.0.1:8080", { key: "k" });
            const query = { shape: [1, 2], data: Float32Array.of(1, 2) };
            ${line}`;
        assert.equal(
            compiled(use(`const { outputs, tokens } = await client.attention({ inputs: { query, key: [[1, 2]] }, masks: { causal: true } });
                const weight: number | undefined = outputs.attention.data[0];
                const heads: number | undefined = (await client.models.get("demo")).heads;
                const found = await client.models.attention("demo", { inputs: { text: "a" }, options: { layers: [0] } });
                const id: bigint | undefined = found.outputs.predictions?.ids.data[0];
                const sweep = { at: "hidden", over: ["layer", "query"], do: "zero", part: "encoder" } as const, metric = { words: ["tea"] };
                const swept = await client.models.sweep("demo", { inputs: { text: "a" }, sweep, metric, options: { layers: [0] } });
                console.log(swept.outputs.sweep.values.data, swept.outputs.attention?.data);
                await client.models.intervene("demo", { inputs: { text: "a" }, interventions: [{ at: "context", do: "zero", heads: Int32Array.of(0) }] });
                try { await client.layers.put("a", { weights: { query: { weight: query }, key: { weight: query }, value: { weight: query } } }); }
                catch (problem) { if (problem instanceof AttndError) console.log(problem.pointer, weight, heads, id, tokens); }`)),
            "",
        );
        const wrong = [
            "await client.attention({ inputs: { query, kye: query } });",
            "await client.attention({ inputs: { query }, mask: { causal: true } });",
            "await client.attention({ inputs: { query }, options: { scale: true } });",
            'await client.attention({ inputs: { query }, options: { view: "bertviz" } });',
            'await client.attention({ inputs: { query }, options: { return: ["atention"] } });',
            "(await client.attention({ inputs: { query } })).outputs.atention;",
            "(await client.attention({ inputs: { query } })).outputs.lse;",
            'const steps: ("lse" | "mask")[] = []; (await client.layers.attention("a", { inputs: { query } })).outputs.lse.data;',
            '(await client.models.attention("demo", { inputs: { text: "a" } })).outputs.logits.data;',
            'await client.models.sweep("demo", { inputs: { text: "a" }, metric: { words: ["a"] }, sweep: { att: "hidden", over: ["layer", "query"], do: "zero" } });',
            'await client.models.sweep("demo", { inputs: { text: "a" }, sweep: { at: "hidden", over: ["layer", "query"], do: "zero" } });',
            'await client.models.intervene("demo", { inputs: { text: "a" }, interventions: [{ at: "hidden", do: "zeros" }] });',
        ];
        const text = use(wrong.map((line) => `void (async () => { ${line} });`).join("\n")),
            first = text.split("\n").findIndex((line) => line.includes("void (async")) + 1,
            found = new Set([...compiled(text).matchAll(/\((\d+),\d+\): error TS/g)].map(([, line]) => Number(line) - first));
        wrong.forEach((line, at) => assert.ok(found.has(at), line));
    },
    "outputs have the types of what options.return and top_k ask for, and lists may be readonly"() {
        assert.equal(
            compiled(`import { attnd } from "attnd-package";
                const client = attnd(), query = { shape: [1, 2], data: Float32Array.of(1, 2) } as const;
                const asked = await client.attention({ inputs: { query }, options: { return: ["lse", "mask"], heads: Int32Array.of(0, 1) } });
                const flags: Uint8Array = asked.outputs.mask.data, lse = asked.outputs.lse.shape;
                const largest = await client.multiHeadAttention({ inputs: { query }, weights: { query, key: query, value: { weight: query } },
                    options: { top_k: 2, num_heads: 1 } });
                const keys: BigInt64Array = largest.outputs.attention.indices.data;
                const rows = await client.attention({ inputs: { query: [[1, 2]], key: [Float32Array.of(1, 2)] } as const, options: { heads: [0, [2, 3]] } as const });
                const kept = await client.layers.attention("a", { inputs: { query } });
                const told = await client.models.attention("demo", { inputs: { text: ["a"] as const }, options: { return: "predictions" } });
                console.log(flags, lse, keys, rows.outputs.output.data, kept.outputs.scores?.data, told.outputs.predictions?.tokens);`),
            "",
        );
    },
    "the drawing module of the server takes the answers of the client, by their types"() {
        assert.equal(
            compiled(`import { attnd, type ModelAnswer } from "attnd-package";
                import { drawGrid, drawLinks, drawMap } from "attnd-module";
                const client = attnd(), element = document.body;
                const answer: ModelAnswer = await client.models.attention("demo", { inputs: { text: "a" } });
                const { outputs, tokens, layers } = answer;
                drawGrid(element, answer).update({ layer: 1 }, { outputs, tokens, layers });
                const layer = await client.attention({ inputs: { query: [[1, 2]] }, options: { return: ["attention", "mask"] } });
                drawMap(element, layer, { range: "max" });
                drawMap(element, { outputs: layer.outputs, tokens: layer.tokens });
                drawLinks(element, { numbers: layer.outputs.attention, tokens: ["a"] as const });
                drawMap(element, [[1, 0]] as const);`),
            "",
        );
    },
    "the package has its files and the version of the program, and its code is small"() {
        const [{ files, version }] = JSON.parse(run("npm", "pack", "--dry-run", "--json", "--ignore-scripts"));
        assert.equal(version, readFileSync(join(ROOT, "VERSION"), "utf8").trim());
        assert.deepEqual(
            files.map(({ path }) => path).sort(),
            ["LICENSE", "README.md", "index.d.ts", "index.js", "package.json", "schema.d.ts"],
        );
        const { keywords, sideEffects, description, engines, types } = JSON.parse(readFileSync(join(CLIENT, "package.json"), "utf8"));
        assert.ok(keywords.length > 0 && sideEffects === false && description && engines.node && types);
        const read = (path) => readFileSync(join(ROOT, path), "utf8");
        assert.equal(read("clients/js/LICENSE"), read("LICENSE"));
        assert.doesNotMatch(read("clients/js/README.md"), /\]\(\.\./, "a link leaves the package");
        const lines = readdirSync(CLIENT).filter((name) => /^(index|types)\./.test(name))
            .map((name) => readFileSync(join(CLIENT, name), "utf8").split("\n").length);
        assert.ok(lines.reduce((sum, one) => sum + one) <= 571, `${lines}`);
    },
};

let passed = 0,
    failed = 0;
for (const [name, check] of Object.entries(cases)) {
    try {
        await check();
        passed++;
    } catch (problem) {
        failed++;
        console.log(`FAILED  ${name}\n${String(problem.stack ?? problem)}`);
    }
}
console.log(`client-js: ${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
