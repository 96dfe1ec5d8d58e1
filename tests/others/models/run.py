#!/usr/bin/env python3
"""
run.py: whole models against recorded answers: maps of every layer, hidden states, logits, and what is read from maps.

    run.py --attnd PROGRAM [--only WORD] [--report FILE]

Each folder here is a model with its inputs and with the answers of transformers in float64. Those in kinds.tar.xz, those with
heads of classes in heads.tar.xz, mixtures of experts in experts.tar.xz, and models of audio in audio.tar.xz (record_audio.py), which
are unpacked below build/, have no weights, which follow from the names of their tensors (made_weights.py). There are more models in
the folder that ATTN_SHARED names. Models are random: they compute something, and mean nothing. gradients.tar.xz has gradients of
some of them (autograd.py, record_gradients.py).

record.py recorded them with transformers 4.57.0.dev0 (torch 2.6.0), eager, all of its float32 steps in float64. ALiBi of
Falcon, which its eager attention adds twice, was added once, as its other attention does.

--report writes the section "Whole models" of FILE, which is its last one: for each model the largest differences.
"""

import argparse
import base64
import hashlib
import json
import math
import os
import pathlib
import shutil
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
sys.dont_write_bytecode = True

import autograd  # noqa: E402
import made_audio  # noqa: E402
import made_weights  # noqa: E402
import tensor_file  # noqa: E402
from attnd import Server  # noqa: E402
from suite import conclude, run_tests  # noqa: E402

MAPS, STATES = 2e-5, 1e-4  # the largest error that is allowed, absolute
ANALYSIS = FEATURES = 1e-5
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


def unpacked(archive):
    """The folder below build/ with what the archive has: unpacked once, and again when the archive is another."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    folder = HERE.parents[2] / "build" / f"recorded-models-{digest}"
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        beside = tempfile.mkdtemp(dir=folder.parent)
        with tarfile.open(archive) as tar:
            tar.extractall(beside)
        try:
            os.rename(beside, folder)
        except OSError:  # another run was first
            shutil.rmtree(beside)
    return folder


def folders():
    """The models of this folder and of the archive, and those of the shared folder that are not here."""
    shared = pathlib.Path(os.environ.get("ATTN_SHARED", HERE.parents[3] / "shared")) / "vectors" / "models"
    found = {}
    archives = (unpacked(HERE / f"{name}.tar.xz") for name in ("kinds", "heads", "experts", "audio"))
    for parent in (HERE, *archives, shared):
        for path in sorted(parent.glob("*/config.json")) if parent.is_dir() else []:
            found.setdefault(path.parent.name, path.parent)
    return found


def prepare(folder, to):
    """The model as attnd reads it."""
    if (folder / "model.safetensors").exists() or (folder / "model.safetensors.index.json").exists():
        to.symlink_to(folder)
        return
    shapes = json.loads((folder / "cases.json").read_text())["tensors"]
    to.mkdir()
    for file in ("config.json", "generation_config.json"):
        if (folder / file).exists():
            shutil.copy(folder / file, to)
    (to / "model.safetensors").write_bytes(tensor_file.write(made_weights.tensors(shapes)))


# ---- requests ----


def inputs_of(case, folder):
    """The inputs of a request, as a client would send them."""
    if "pixel_values" in case:
        pixels = read(folder / "inputs.safetensors")[case["pixel_values"]]
        return {"pixels": {"shape": pixels.shape, "data": pixels.numbers}}
    if "input_features" in case:
        features = read(folder / "inputs.safetensors")[case["input_features"]]
        return {"features": {"shape": features.shape, "data": features.numbers}, "target_ids": case["decoder_input_ids"]}
    if "text" not in case and "batch" not in case:
        target = {"target_ids": case["decoder_input_ids"]} if "decoder_input_ids" in case else {}
        return {"ids": case["input_ids"], **target}
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


def places_of(mask):
    """The places of the tokens of each item that the mask does not hide."""
    return [[place for place, is_real in enumerate(row) if is_real] for row in mask]


# ---- comparison ----


def compare(name, got, expected, rows, columns, tolerance):
    """
    The largest difference of two (…, rows, columns) tensors of one item. rows and columns are the places of real tokens in the
    recorded one; what attnd answers has no padding before them.
    """
    height, width = expected.shape[-2], expected.shape[-1]
    planes, largest = len(expected.numbers) // (height * width), 0
    for plane in range(planes):
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                here = got.numbers[(plane * got.shape[-2] + i) * got.shape[-1] + j]
                there = expected.numbers[(plane * height + row) * width + column]
                assert abs(here - there) <= tolerance, f"{name}[{plane},{i},{j}] is {here}, expected {there}"
                largest = max(largest, abs(here - there))
    return largest


def compare_output(case, name, got, expected):
    """The largest difference of one recorded output from what the answer has under our name, without its axis of layers."""
    kind = name.partition(".")[0]
    _, of_decoder, keys_of_decoder = NAMES[kind]
    tolerance = MAPS if "attention" in kind else STATES
    is_of_classes = len(expected.shape) == 2  # one row of scores
    if is_of_classes:
        expected, got = (Tensor([t.shape[0], 1, t.shape[1]], t.numbers) for t in (expected, got))
    has_decoder = "decoder_input_ids" in case
    of_decoder = has_decoder if of_decoder is None else of_decoder
    places = {False: places_of(case["attention_mask"]) if "attention_mask" in case else None,
              True: places_of(case["decoder_attention_mask"]) if has_decoder else None}
    largest = 0
    for item in range(expected.shape[0]):
        rows = places[of_decoder][item] if places[of_decoder] and not is_of_classes else range(expected.shape[-2])
        columns = range(expected.shape[-1])
        if keys_of_decoder is not None and places[keys_of_decoder]:
            columns = places[keys_of_decoder][item]
        largest = max(largest, compare(f"{name} item {item}", got.at(item), expected.at(item), rows, columns, tolerance))
    return largest


def real(rows, mask):
    """The ids that the mask does not hide."""
    return [[token for token, is_real in zip(row, flags) if is_real] for row, flags in zip(rows, mask)]


def compare_experts(name, outputs, recorded):
    """The experts that each token of a layer chose, and the largest difference of their weights."""
    layers = [key.rpartition(".")[2] for key in recorded if key.startswith(f"{name}/experts_indices.")]
    largest = 0
    for layer in layers:
        indices, weights = (outputs[f"experts.{part}"].at(int(layer), 0).numbers for part in ("indices", "weights"))
        expected = recorded[f"{name}/experts_weights.{layer}"]
        assert indices == recorded[f"{name}/experts_indices.{layer}"].numbers, f"experts of layer {layer}: {indices}"
        largest = max(largest, compare(f"weights of experts {layer}", Tensor(expected.shape, weights), expected,
                                       range(expected.shape[-2]), range(expected.shape[-1]), MAPS))
    for layer in range(outputs["experts.indices"].shape[0]):
        if str(layer) not in layers:
            assert set(outputs["experts.indices"].at(layer).numbers) == {-1}, f"layer {layer} has no experts"
    return largest


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


class Row:
    """A model in the report."""

    def __init__(self, model, folder):
        about = json.loads((folder / "cases.json").read_text()).get("about", "")
        self.kind, self.model, self.about = json.loads((folder / "config.json").read_text())["model_type"], model, about
        self.tests, self.passed, self.largest = [], 0, {"maps": None, "states": None, "logits": None}

    def see(self, kind, difference):
        group = "maps" if "attention" in kind else "logits" if kind == "logits" else "states"
        self.largest[group] = max(self.largest[group] or 0, difference)

    def test(self, test):
        """Counts when the test passes."""
        def counted(client):
            test(client)
            self.passed += 1
        counted.__name__ = test.__name__
        self.tests.append(counted)
        return counted

    def line(self):
        numbers = ["" if number is None else f"{number:.1e}" for number in self.largest.values()]
        return f"| {self.kind} | {self.model} | {self.about} | {len(self.tests)} | {self.passed} | {' | '.join(numbers)} |"


def recorded_case(row, folder, case):
    """A test of one recorded case."""
    def test(client):
        recorded = read(folder / "outputs.safetensors")
        wanted = ["attention", "hidden", "output"]
        wanted += ["logits"] if "logits" in case["outputs"] else []
        has_experts = any(name.startswith("experts_") for name in case["outputs"])
        wanted += ["experts"] if has_experts else []
        options = {} if case.get("options", {}).get("add_special_tokens", True) else {"special_tokens": False}
        outputs, texts = ask(client, row.model, inputs_of(case, folder), **{"return": wanted, **options})
        for name in case["outputs"]:
            kind, _, layer = name.partition(".")
            if kind not in NAMES:
                continue
            got = outputs[NAMES[kind][0]]
            expected = recorded[f"{case['name']}/{name}"]
            row.see(kind, compare_output(case, name, got.at(int(layer)) if layer else got, expected))
        if has_experts:
            row.see("experts", compare_experts(case["name"], outputs, recorded))
        if "input_ids" in case:
            compare_tokens(case, texts)
    test.__name__ = f"{row.model}: {case['name']}"
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
                compare(f"{kind} {layer}", outputs[ours].at(layer, 0), expected, range(n), range(n), ANALYSIS)
        ablated = recorded.get(f"{name}/ablated_last_hidden_state")
        for layer in range(ablated.shape[0] if ablated else 0):
            for head in range(ablated.shape[1]):
                outputs, _ = ask(client, model, ids, **{"return": ["output"], "ablate": [[layer, head]]})
                expected = ablated.at(layer, head)
                compare(f"ablated {layer},{head}", outputs["output"].at(0), expected, range(n), range(expected.shape[-1]), STATES)
        if "logit_lens_top5" in entry:
            outputs, _ = ask(client, model, ids, **{"return": ["logit_lens"]})
            layers = outputs["logit_lens.ids"].shape[0]
            for layer, expected in enumerate(entry["logit_lens_top5"][-layers:]):
                got = outputs["logit_lens.ids"].at(layer, 0).numbers
                assert got == [word for row in expected["ids"] for word in row], f"lens of layer {layer}"
    test.__name__ = f"{model}: analysis of {name}"
    return test


def attribution_case(model, folder, case):
    """What the parts of a model add is the logit. Where no tensor is a bias, nothing else is added."""
    def test(client):
        inputs, words = inputs_of(case, folder), [3, 7, 11]
        if "attribution" not in client.get(f"/v1/models/{model}").json()["returns"]:
            return
        for compute, tolerance in (("float32", 1e-4), ("float64", 1e-10)):
            outputs, _ = ask(client, model, inputs, compute=compute, words=words, **{"return": ["attribution", "word_scores"]})
            scores, sums = outputs["word_scores.logits"], list(outputs["attribution.bias"].numbers)
            for i, bias in enumerate(sums if has_no_bias(folder) else []):
                assert abs(bias) < tolerance, f"bias {i} is {bias}"
            for name in ("heads", "cross_heads", "feed_forward", "embedding"):
                parts = outputs.get(f"attribution.{name}", Tensor([0], []))
                # (layers, batch, heads, queries, words) without layers and heads
                item, row = len(sums) // scores.shape[0], len(parts.numbers)
                heads = parts.shape[2] if name.endswith("heads") and row else 1
                for at, number in enumerate(parts.numbers):
                    sums[at // (heads * item) % scores.shape[0] * item + at % item] += number
            for at, (total, score) in enumerate(zip(sums, scores.numbers, strict=True)):
                assert abs(total - score) <= tolerance, f"{compute} {at}: {total}, expected {score}"
    test.__name__ = f"{model}: attribution"
    return test


def has_no_bias(folder):
    file = folder / "model.safetensors"
    names = tensor_file.read(file.read_bytes())[0] if file.exists() else json.loads((folder / "cases.json").read_text()).get("tensors")
    return names is not None and not any(name.endswith(("bias", "beta", "bias_v")) for name in names)


def labels_case(model, case):
    """Views and pictures of ids have what these ids show as labels."""
    def test(client):
        body = {"inputs": {"ids": case["input_ids"][:1]}, "options": {"view": "inspectus"}}
        shown = client.post(f"/v1/models/{model}/tokens", {"inputs": body["inputs"]}).json()["shown"]
        view = client.send("POST", f"/v1/models/{model}/attention", json.dumps(body),
                           {"Content-Type": "application/json"})
        assert view.status == 200, view.body[:400]
        for token in shown[0]:
            assert json.dumps(token, ensure_ascii=False).encode() in view.body, token
        picture = client.send("POST", f"/v1/models/{model}/attention", json.dumps({"inputs": body["inputs"]}),
                              {"Content-Type": "application/json", "Accept": "image/png"})
        assert picture.status == 200, picture.body[:400]

    test.__name__ = f"{model}: labels of ids"
    return test


def audio_case(row, folder, case):
    """The features of a sound, and what the model makes of it. A WAV file and a batch give the same numbers."""
    def test(client):
        recorded, expected = read(folder / "outputs.safetensors"), read(folder / "inputs.safetensors")[case["input_features"]]
        samples = made_audio.samples(case["name"], case["samples"])
        wav = base64.b64encode(made_audio.wav(samples, kind=3, bits=32)).decode()
        target = case["decoder_input_ids"]
        outputs, _ = ask(client, row.model, {"audio": samples, "target_ids": target}, **{"return": ["features", "logits"]})
        rows, columns = (range(length) for length in expected.shape[1:])
        row.see("features", compare("features", outputs["features"], expected, rows, columns, FEATURES))
        row.see("logits", compare_output(case, "logits", outputs["logits"], recorded[f"{case['name']}/logits"]))
        times, _ = ask(client, row.model, {"audio": samples, "target_ids": target}, **{"return": ["word_times"], "layers": [0]})
        starts, ends, begins = (times["word_times.start"].numbers, times["word_times.end"].numbers,
                                recorded[f"{case['name']}/token_times"].numbers)
        assert starts[:case["prefix"]] == ends[:case["prefix"]] == [0] * case["prefix"], starts
        for got, wanted in ((starts, begins[:-1]), (ends, begins[1:])):
            assert all(abs(a - b) < 1e-6 for a, b in zip(got[case["prefix"]:], wanted, strict=True)), f"{got}, expected {wanted}"
        both, _ = ask(client, row.model, {"audio": [wav, wav], "target_ids": target * 2}, **{"return": ["features", "logits"]})
        for name, output in both.items():
            assert output.at(0).numbers == output.at(1).numbers == outputs[name].numbers, name

    test.__name__ = f"{row.model}: audio of {case['name']}"
    return test


def probabilities_of(config, logits):
    """As the pipelines of transformers make them. None: a regression has none."""
    if config.get("problem_type") == "regression":
        return None
    if config.get("problem_type") == "multi_label_classification" or len(logits) == 1:
        return [1 / (1 + math.exp(-z)) for z in logits]
    powers = [math.exp(z - max(logits)) for z in logits]
    return [power / sum(powers) for power in powers]


def compare_row(row, config, where, outputs, expected):
    """One row of classes."""
    logits = outputs["classes.logits"].at(*where).numbers
    row.see("logits", max(abs(a - b) for a, b in zip(logits, expected, strict=True)))
    assert row.largest["logits"] <= STATES, f"{where}: {logits}, expected {expected}"
    assert outputs["logits"].at(*where).numbers == logits, where
    wanted = probabilities_of(config, logits)
    if wanted is None:
        assert "classes.probabilities" not in outputs
        return
    got = outputs["classes.probabilities"].at(*where).numbers
    assert all(abs(a - b) < 1e-6 for a, b in zip(got, wanted, strict=True)), f"{where}: {got}, expected {wanted}"


def best_answer(starts, ends):
    """The place of the highest sum with start <= end."""
    pairs = [(starts[i] + ends[j], -j, i) for j in range(len(ends)) for i in range(j + 1)]
    _, j, i = max(pairs)
    return [i, -j]


def classes_case(row, folder, case):
    """A test of the classes of a batch, or of the answers to its questions."""
    def test(client):
        recorded, config = read(folder / "outputs.safetensors"), json.loads((folder / "config.json").read_text())
        expected = {name: recorded[f"{case['name']}/{name}"] for name in case["classes"]}
        is_image = "pixel_values" in case
        inputs = inputs_of(case, folder) if is_image else {"ids": real(case["input_ids"], case["attention_mask"])}
        outputs, texts = ask(client, row.model, inputs, **{"return": ["classes", "logits"]})
        of_rows = "logits" in expected and len(expected["logits"].shape) == 3
        for item, places in enumerate([[]] if is_image else places_of(case["attention_mask"])):
            if "start_logits" in expected:
                starts, ends = ([expected[name].at(item).numbers[place] for place in places]
                                for name in ("start_logits", "end_logits"))
                for name, wanted in (("classes.start", starts), ("classes.end", ends)):
                    got = outputs[name].at(item).numbers
                    row.see("logits", max(abs(a - b) for a, b in zip(got, wanted)))
                    assert row.largest["logits"] <= STATES, f"{name} {item}: {got}, expected {wanted}"
                assert texts["classes.answer"][item]["tokens"] == best_answer(starts, ends), texts["classes.answer"]
            elif of_rows:
                for i, place in enumerate(places):
                    compare_row(row, config, (item, i), outputs, expected["logits"].at(item, place).numbers)
            else:
                compare_row(row, config, (item,), outputs, expected["logits"].at(item).numbers)
        labels = config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
        assert texts.get("classes.labels", list(labels.values())) == list(labels.values()), texts
    test.__name__ = f"{row.model}: {case['name']}"
    return test


def tests_of(row, folder):
    cases = json.loads((folder / "cases.json").read_text())["cases"]
    tests = [recorded_case(row, folder, case) for case in cases if case["outputs"]]
    tests += [classes_case(row, folder, case) for case in cases if "classes" in case]
    tests += [audio_case(row, folder, case) for case in cases if "samples" in case]
    if (folder / "analysis.json").exists():
        recorded = read(folder / "analysis.safetensors")
        by_name = {case["name"]: case for case in cases}
        tests += [analysis_case(row.model, folder, by_name[entry["case"]], entry, recorded)
                  for entry in json.loads((folder / "analysis.json").read_text())["cases"]]
    labels = [labels_case(row.model, case) for case in cases if "tokens" in case and case["outputs"]][:1]
    parts = [attribution_case(row.model, folder, case) for case in cases if "logits" in case["outputs"]][:1]
    return [row.test(test) for test in tests] + labels + parts


# ---- report ----

TITLE = "## Whole models"
INTRODUCTION = f"""
Models of each kind of `server/codec/checkpoint/architectures.json` with random weights. transformers computed the answers in
float64 with eager attention; it has no minicpm and nomic_bert, which `tests/others/models/references.py` computed in NumPy from their
published descriptions. A case passes when every map is within {MAPS:g} absolute, and every hidden state and logit within {STATES:g}. The
last three columns are the largest differences. Models with a text about them are in `kinds.tar.xz`, `experts.tar.xz`, `audio.tar.xz` and, with heads of
classes, `heads.tar.xz` of `tests/others/models`. The others have several inputs, and also compare tokens and analyses. A short
configuration lacks members for which transformers has a default.

| model_type | model | what it has | cases | passed | maps | states | logits |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def write_report(path, rows):
    before = path.read_text().partition(TITLE)[0].rstrip()
    lines = [row.line() for row in sorted(rows, key=lambda row: (row.kind, row.model))]
    total = f"| all | {len(rows)} models | | {sum(len(row.tests) for row in rows)} | {sum(row.passed for row in rows)} | | | |"
    path.write_text(f"{before}\n\n{TITLE}\n{INTRODUCTION}" + "\n".join([*lines, total]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--attnd", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--report", type=pathlib.Path, help="the file whose last section is to be written")
    options = parser.parse_args()
    found = {name: folder for name, folder in folders().items() if (folder / "outputs.safetensors").exists()}
    rows = {name: Row(name, folder) for name, folder in found.items()}
    with tempfile.TemporaryDirectory() as parent:
        for name, folder in found.items():
            prepare(folder, pathlib.Path(parent) / name)
        with Server(options.attnd, environment={"ATTND_MODELS": parent}) as server:
            client = server.client()
            tests = [test for name, folder in found.items() for test in tests_of(rows[name], folder)]
            tests += autograd.tests_of(unpacked(HERE / "gradients.tar.xz"))
            counts = run_tests(tests, lambda test: test(client), options.only)
    if options.report:
        write_report(options.report, list(rows.values()))
    return conclude("models", *counts)


if __name__ == "__main__":
    sys.exit(main())
