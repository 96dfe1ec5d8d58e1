#!/usr/bin/env python3
"""
run.py: whole models against recorded answers: maps of every layer, hidden states, logits, and what is read from maps.

    run.py --attnd PROGRAM [--only WORD]

Each folder here is a model with its inputs and with the answers of transformers in float64. There are more in the folder
that ATTN_SHARED names. Models are random: they compute something, and mean nothing.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
sys.dont_write_bytecode = True

import tensor_file  # noqa: E402
from attnd import Server  # noqa: E402
from suite import conclude, run_tests  # noqa: E402

MAPS, STATES = 2e-5, 1e-4  # the largest error that is allowed, absolute
ANALYSIS = 1e-5
# Names of recorded outputs: what they are called here, and whether queries and keys are tokens of the decoder.
NAMES = {
    "attentions": ("attention", False, False),
    "encoder_attentions": ("encoder_attention", False, False),
    "decoder_attentions": ("decoder_attention", True, True),
    "cross_attentions": ("cross_attention", True, False),
    "hidden_states": ("hidden", False, None),
    "encoder_hidden_states": ("encoder_hidden", False, None),
    "decoder_hidden_states": ("decoder_hidden", True, None),
    "last_hidden_state": ("output", None, None),
    "logits": ("logits", None, None),
}


class Tensor:
    """Numbers in row-major order."""

    def __init__(self, shape, numbers):
        self.shape, self.numbers = shape, numbers

    def at(self, *indices):
        """What stands at the first axes."""
        start, size = 0, len(self.numbers)
        for index, length in zip(indices, self.shape):
            size //= length
            start += index * size
        return Tensor(self.shape[len(indices):], self.numbers[start:start + size])


def read(path):
    tensors, _ = tensor_file.read(path.read_bytes())
    return {name: Tensor(shape, numbers) for name, (_, shape, numbers) in tensors.items()}


def folders():
    """The models of this folder, and those of the shared folder that are not here."""
    shared = pathlib.Path(os.environ.get("ATTN_SHARED", HERE.parents[3] / "shared")) / "vectors" / "models"
    found = {}
    for parent in (HERE, shared):
        for path in sorted(parent.glob("*/config.json")) if parent.is_dir() else []:
            found.setdefault(path.parent.name, path.parent)
    return found


# ---- requests ----


def inputs_of(case, folder):
    """The inputs of a request, as a client would send them."""
    if "pixel_values" in case:
        pixels = read(folder / "inputs.safetensors")[case["pixel_values"]]
        return {"pixels": {"shape": pixels.shape, "data": pixels.numbers}}
    if "text" not in case and "batch" not in case:
        return {"ids": case["input_ids"]}
    inputs = {"text": case.get("batch", case.get("text"))}
    if "pair" in case:
        inputs["pair"] = case["pair"]
    target = case.get("decoder_batch", case.get("decoder_text"))
    return inputs if target is None else {**inputs, "target": target}


def ask(client, model, inputs, **options):
    """The answer as tensors, and the texts beside them."""
    reply = client.send("POST", f"/v1/models/{model}/attention", json.dumps({"inputs": inputs, "options": options}),
                        {"Content-Type": "application/json", "Accept": "application/vnd.attnd.safetensors"})
    assert reply.status == 200, reply.body[:400]
    tensors, texts = tensor_file.read(reply.body)
    return ({name: Tensor(shape, numbers) for name, (_, shape, numbers) in tensors.items()},
            {name: json.loads(text) for name, text in texts.items()})


def lengths_of(mask):
    return [sum(row) for row in mask]


# ---- comparison ----


def compare(name, got, expected, rows, columns, tolerance):
    """Two (…, rows, columns) tensors of one item, where only the first rows and columns are real."""
    height, width = expected.shape[-2], expected.shape[-1]
    planes = len(expected.numbers) // (height * width)
    for plane in range(planes):
        for i in range(rows):
            for j in range(columns):
                here = got.numbers[(plane * got.shape[-2] + i) * got.shape[-1] + j]
                there = expected.numbers[(plane * height + i) * width + j]
                assert abs(here - there) <= tolerance, f"{name}[{plane},{i},{j}] is {here}, expected {there}"


def compare_output(case, name, got, expected):
    """One recorded output with what the answer has under our name, without its axis of layers."""
    kind = name.partition(".")[0]
    _, of_decoder, keys_of_decoder = NAMES[kind]
    tolerance = MAPS if "attention" in kind else STATES
    if len(expected.shape) == 2:  # scores of classes, for images
        expected, got = (Tensor([t.shape[0], 1, t.shape[1]], t.numbers) for t in (expected, got))
    has_decoder = "decoder_input_ids" in case
    of_decoder = has_decoder if of_decoder is None else of_decoder
    lengths = {False: lengths_of(case["attention_mask"]) if "attention_mask" in case else None,
               True: lengths_of(case["decoder_attention_mask"]) if has_decoder else None}
    for item in range(expected.shape[0]):
        rows = lengths[of_decoder][item] if lengths[of_decoder] else expected.shape[-2]
        columns = expected.shape[-1]
        if keys_of_decoder is not None and lengths[keys_of_decoder]:
            columns = lengths[keys_of_decoder][item]
        compare(f"{name} item {item}", got.at(item), expected.at(item), rows, columns, tolerance)


def real(rows, mask):
    """The ids that the mask does not hide."""
    return [[token for token, is_real in zip(row, flags) if is_real] for row, flags in zip(rows, mask)]


def compare_tokens(case, texts):
    tokens = texts["tokens"]
    if "decoder_input_ids" in case:
        assert tokens["decoder"]["ids"] == real(case["decoder_input_ids"], case["decoder_attention_mask"]), tokens
    tokens = tokens.get("encoder", tokens)
    assert tokens["ids"] == real(case["input_ids"], case["attention_mask"]), tokens
    if "text" in case or "batch" in case:
        assert tokens["text"] == real(case["tokens"], case["attention_mask"]), tokens
        assert tokens["offsets"] == real(case["offsets"], case["attention_mask"]), tokens


# ---- tests ----


def recorded_case(model, folder, case):
    """A test of one recorded case."""
    def test(client):
        recorded = read(folder / "outputs.safetensors")
        wanted = ["attention", "hidden", "output"]
        wanted += ["logits"] if "logits" in case["outputs"] else []
        options = {} if case.get("options", {}).get("add_special_tokens", True) else {"special_tokens": False}
        outputs, texts = ask(client, model, inputs_of(case, folder), **{"return": wanted, **options})
        for name in case["outputs"]:
            kind, _, layer = name.partition(".")
            if kind not in NAMES:
                continue
            got = outputs[NAMES[kind][0]]
            compare_output(case, name, got.at(int(layer)) if layer else got, recorded[f"{case['name']}/{name}"])
        if "input_ids" in case:
            compare_tokens(case, texts)
    test.__name__ = f"{model}: {case['name']}"
    return test


def analysis_case(model, folder, case, entry, recorded):
    """A test of rollout, contributions, ablations and the lens of one case."""
    ids = {"ids": case["input_ids"]} if "pair" not in case else {"text": case["text"], "pair": case["pair"]}
    n, name = len(case["input_ids"][0]), case["name"]

    def all_of(kind):
        layers = [key for key in recorded if key.startswith(f"{name}/{kind}.")]
        return [recorded[f"{name}/{kind}.{layer}"] for layer in range(len(layers))]

    def test(client):
        outputs, _ = ask(client, model, ids, **{"return": ["rollout", "contribution"]})
        for kind, ours in (("rollout", "rollout"), ("weighted_norm", "contribution")):
            for layer, expected in enumerate(all_of(kind)):
                compare(f"{kind} {layer}", outputs[ours].at(layer, 0), expected, n, n, ANALYSIS)
        ablated = recorded.get(f"{name}/ablated_last_hidden_state")
        for layer in range(ablated.shape[0] if ablated else 0):
            for head in range(ablated.shape[1]):
                outputs, _ = ask(client, model, ids, **{"return": ["output"], "ablate": [[layer, head]]})
                expected = ablated.at(layer, head)
                compare(f"ablated {layer},{head}", outputs["output"].at(0), expected, n, expected.shape[-1], STATES)
        if "logit_lens_top5" in entry:
            outputs, _ = ask(client, model, ids, **{"return": ["logit_lens"]})
            layers = outputs["logit_lens.ids"].shape[0]
            for layer, expected in enumerate(entry["logit_lens_top5"][-layers:]):
                got = outputs["logit_lens.ids"].at(layer, 0).numbers
                assert got == [word for row in expected["ids"] for word in row], f"lens of layer {layer}"
    test.__name__ = f"{model}: analysis of {name}"
    return test


def labels_case(model, case):
    """Views and pictures of ids have the words of these ids as labels."""
    def test(client):
        body = {"inputs": {"ids": case["input_ids"][:1]}, "options": {"view": "inspectus"}}
        view = client.send("POST", f"/v1/models/{model}/attention", json.dumps(body),
                           {"Content-Type": "application/json"})
        assert view.status == 200, view.body[:400]
        for tokens in case.get("tokens", [])[:1]:
            for token in tokens:
                assert json.dumps(token, ensure_ascii=False).encode() in view.body, token
        picture = client.send("POST", f"/v1/models/{model}/attention", json.dumps({"inputs": body["inputs"]}),
                              {"Content-Type": "application/json", "Accept": "image/png"})
        assert picture.status == 200, picture.body[:400]

    test.__name__ = f"{model}: labels of ids"
    return test


def tests_of(model, folder):
    cases = json.loads((folder / "cases.json").read_text())["cases"]
    # Padding on the left is for programs that pad; here each item of a batch runs alone.
    tests = [recorded_case(model, folder, case) for case in cases if case["outputs"] and case["name"] != "batch_left"]
    tests += [labels_case(model, case) for case in cases if "input_ids" in case and case["outputs"]][:1]
    if (folder / "analysis.json").exists():
        recorded = read(folder / "analysis.safetensors")
        by_name = {case["name"]: case for case in cases}
        tests += [analysis_case(model, folder, by_name[entry["case"]], entry, recorded)
                  for entry in json.loads((folder / "analysis.json").read_text())["cases"]]
    return tests


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--attnd", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    found = folders()
    with tempfile.TemporaryDirectory() as parent:
        for name, folder in found.items():
            (pathlib.Path(parent) / name).symlink_to(folder)
        with Server(options.attnd, environment={"ATTND_MODELS": parent}) as server:
            client = server.client()
            tests = [test for name, folder in found.items() if (folder / "outputs.safetensors").exists()
                     for test in tests_of(name, folder)]
            return conclude("models", *run_tests(tests, lambda test: test(client), options.only))


if __name__ == "__main__":
    sys.exit(main())
