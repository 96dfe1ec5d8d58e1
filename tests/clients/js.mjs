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

function run(program, ...options) {
    const { stdout, stderr, status } = spawnSync(program, options, { encoding: "utf8", cwd: CLIENT });
    assert.equal(status, 0, stdout + stderr);
    return stdout;
}

/** Compiles a program that uses the package. */
function compiled(text) {
    const folder = mkdtempSync(join(tmpdir(), "attnd-clients-"));
    try {
        writeFileSync(join(folder, "use.mts"), text.replace("attnd-package", join(CLIENT, "index.js")));
        const options = "--noEmit --strict --target es2022 --module nodenext --moduleResolution nodenext".split(" ");
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
    async "all arrays of an answer are views on one buffer"() {
        const { outputs } = await client.attention({ inputs: { query: QUERY }, options: { return: ["output", "attention", "scores"] } });
        const buffers = new Set(Object.values(outputs).map(({ data }) => data.buffer));
        assert.equal(buffers.size, 1);
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
                const weight: number = outputs.attention.data[0] + outputs.mask.data[0];
                const heads: number | undefined = (await client.models.get("demo")).heads;
                const found = await client.models.attention("demo", { inputs: { text: "a" }, options: { layers: [0] } });
                const id: bigint = found.outputs.predictions.ids.data[0];
                try { await client.layers.put("a", { weights: { query: { weight: query }, key: { weight: query }, value: { weight: query } } }); }
                catch (problem) { if (problem instanceof AttndError) console.log(problem.pointer, weight, heads, id, tokens); }`)),
            "",
        );
        for (const wrong of [
            "await client.attention({ inputs: { query, kye: query } });",
            "await client.attention({ inputs: { query }, mask: { causal: true } });",
            "await client.attention({ inputs: { query }, options: { scale: true } });",
            "(await client.attention({ inputs: { query } })).outputs.atention;",
        ])
            assert.match(compiled(use(wrong)), /error TS/, wrong);
    },
    async "the types are those of the server's document"() {
        const folder = mkdtempSync(join(tmpdir(), "attnd-clients-"));
        try {
            run(process.execPath, "types.mjs", url, join(folder, "schema.d.ts"));
            const made = readFileSync(join(folder, "schema.d.ts"), "utf8");
            assert.ok(made === readFileSync(join(CLIENT, "schema.d.ts"), "utf8"), "run `make client-types`");
        } finally {
            rmSync(folder, { recursive: true });
        }
    },
    "the package has its files and the version of the program, and its code is small"() {
        const [{ files, version }] = JSON.parse(run("npm", "pack", "--dry-run", "--json", "--ignore-scripts"));
        assert.equal(version, readFileSync(join(ROOT, "VERSION"), "utf8").trim());
        assert.deepEqual(
            files.map(({ path }) => path).sort(),
            ["README.md", "index.d.ts", "index.js", "package.json", "schema.d.ts"],
        );
        const lines = readdirSync(CLIENT).filter((name) => /^(index|types)\./.test(name))
            .map((name) => readFileSync(join(CLIENT, name), "utf8").split("\n").length);
        assert.ok(lines.reduce((sum, one) => sum + one) <= 400, `${lines}`);
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
