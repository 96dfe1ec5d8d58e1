/**
 * readers.mjs: what numpy, torch, spreadsheets and terminals write is read into the same numbers; what is not whole is
 * refused.
 */
import assert from "node:assert/strict";
import { readText, writtenNumber } from "../../../server/web/request/parsing.js";
import { foundInText } from "../../../server/web/expected/own_data.js";

/** What every form below says. */
const MATRIX = { shape: [2, 3], data: [0.1, -0.25, 3, 0, 1e-5, -Infinity] };

const FORMS = {
    "array(…, dtype=float32)": "array([[ 1.0e-01, -2.5e-01,  3.],\n       [ 0.,  1e-05, -inf]], dtype=float32)",
    "np.array, one line": "np.array([[0.1, -0.25, 3.0], [0.0, 1e-05, -np.inf]])".replace("-np.inf", "-inf"),
    "printed array": "[[ 1.00e-01 -2.50e-01  3.00e+00]\n [ 0.00e+00  1.00e-05      -inf]]",
    "scalars of NumPy 2": "[[np.float32(0.1), np.float32(-0.25), np.float32(3.0)], [0, np.float64(1e-05), -inf]]",
    "tensor on a device": "tensor([[0.1, -0.25, 3.],\n        [0, 1e-05, -inf]], device='cuda:0', dtype=torch.float16,\n       grad_fn=<SoftmaxBackward0>)",
    "parameter": "Parameter containing:\ntensor([[0.1, -0.25, 3.], [0, 1e-05, -inf]], requires_grad=True)",
    "tf.Tensor": "<tf.Tensor: shape=(2, 3), dtype=float32, numpy=\narray([[0.1, -0.25, 3. ],\n       [0, 1e-05, -inf]], dtype=float32)>",
    "JSON": '[[0.1, -0.25, 3], [0, 1e-5, "-Infinity"]]',
    "terminal": "  0.1 -0.25 3.\n 0.0 1e-05 -inf \n",
    "terminal with decimal commas": "0,1 -0,25 3\n0 0,00001 -inf",
    "spreadsheet": "0,1;−0,25;3\r\n0;1e-5;-Inf\r\n",
    "CSV": "0.1,-0.25,3\n0,0.00001,-inf\n",
    "tabs": "0.1\t-0.25\t3\n0\t1e-5\t-inf",
};

const problem = (key) => (error) => error.key === key;

export const cases = {
    "readers: one matrix in thirteen forms"() {
        for (const [name, text] of Object.entries(FORMS)) {
            const [{ tensor }, ...rest] = foundInText(text);
            assert.deepEqual(rest, [], name);
            assert.deepEqual(tensor.shape, MATRIX.shape, name);
            assert.deepEqual(Array.from(tensor.data), MATRIX.data, name);
        }
    },
    "readers: tensors with names, of one to four dimensions, one after the other"() {
        const found = foundInText("q = tensor([[[[1.0000, 2.5000]]]])\nattn: array([[0.5, 0.5]])\n\n[nan 1.] ");
        assert.deepEqual(found.map(({ name }) => name), ["q", "attn", ""]);
        assert.deepEqual(found.map(({ tensor }) => tensor.shape), [[1, 1, 1, 2], [1, 2], [2]]);
        assert.deepEqual(found.map(({ digits }) => digits), [4, 0, 0]);
        assert.ok(Number.isNaN(found[2].tensor.data[0]));
    },
    "readers: lists, objects and tables tell how many digits they are rounded to, as tensors do"() {
        for (const text of [
            "tensor([[0.6309, 0.1]])",
            "[[0.6309, 0.1]]",
            '{"attention": [[0.6309, 0.1]]}',
            "0.6309 0.1\n0.5 0.25",
            "0.6309,0.1\n0.5,0.25",
            "0,6309;0,1\n0,5;0,25",
        ])
            assert.equal(foundInText(text)[0].digits, 4, text);
        for (const text of ["[[0.5, 0.25]]", "[[0.6309298157691956, 0.1]]", "[[6.309e-1, 1.0]]", "0.5,0.25\n1,0"])
            assert.equal(foundInText(text)[0].digits, 0, text);
    },
    "readers: an answer of the server is its steps"() {
        const json = { outputs: { q: [[[[1, 2]]]], attention: [[[[1]]]] }, shapes: {}, effective: { scale: 1 } };
        assert.deepEqual(foundInText(JSON.stringify(json)).map(({ name }) => name), ["q", "attention"]);
    },
    "readers: masks of True and False, words for numbers"() {
        assert.deepEqual(Array.from(foundInText("tensor([[ True, False],\n        [ True,  True]])")[0].tensor.data), [1, 0, 1, 1]);
        assert.deepEqual(["NaN", "Infinity", "-INF", "−∞", "1,5", "1.", "-.5e1"].map(writtenNumber), [NaN, Infinity, -Infinity, -Infinity, 1.5, 1, -5]);
        for (const text of ["", "x", "1.2.3", "0x10", "1 2", "[CLS]"]) assert.equal(writtenNumber(text), undefined, text);
    },
    "readers: tokens in brackets are names, not arrays"() {
        const [{ table, tensor }] = readText("[CLS],1,2\n[SEP],3,4").found;
        assert.deepEqual(table.rows, ["[CLS]", "[SEP]"]);
        assert.deepEqual(Array.from(tensor.data), [1, 2, 3, 4]);
    },
    "readers: what is left out, ragged, open or foreign is refused in a sentence of its own"() {
        for (const [text, key] of [
            ["[[0.1 0.2 ... 0.3]\n [0.1 0.2 ... 0.3]]", "expected.dots"],
            ["array([[1., 2., ..., 3.]])", "expected.dots"],
            ["0.1 0.2\n... 0.4", "expected.dots"],
            ["array([[1., 2.], [3.]])", "expected.ragged"],
            ["array([[1., 2.], 3.])", "expected.ragged"],
            ["tensor([[1., 2.], [3., 4.]", "expected.brackets"],
            ["array([[1., 2.]]) and more", "expected.form"],
            ["array([[1., 2j]])", "own.number"],
            ["tensor([])", "own.empty"],
            ["{}", "own.empty"],
            ["", "own.empty"],
        ])
            assert.throws(() => foundInText(text), problem(key), text);
        assert.throws(() => foundInText('{"outputs": '), problem("own.json"));
    },
};
