#!/usr/bin/env python3
"""
record.py: records the models of kinds.py: transformers computes them from its sources.

    record.py --transformers DIR [KIND…]            records these kinds, or all of kinds.py, each into its archive
    record.py --transformers DIR --check [KIND…]    computes recorded kinds again, and compares the numbers

kinds.tar.xz has maps, hidden states and logits of whole models. A case of heads.tar.xz, of models that end in a head of classes,
is a batch: its ids with an attention mask, and the logits, by "logits", or "start_logits" and "end_logits". Padding stands on the
side that the name of the case says. Positions count the tokens that the mask does not hide, as transformers' generate makes them.
experts.tar.xz has mixtures of experts, with the chosen experts of each layer and their weights, as the modules of transformers hand
them on. The weights of gpt_oss-mxfp4 are blocks and scales, widened by made_weights.py.

DIR holds the package transformers, as its source repository does in src/ (4.57; Debian 13 has a torch that fits: python3-torch,
python3-safetensors, python3-numpy, python3-regex, python3-requests, python3-yaml, python3-tqdm, python3-filelock,
python3-packaging). Its own dependencies that Debian lacks (huggingface_hub, tokenizers, httpx) only move files and cut texts, so
empty modules stand for them.

A model is computed in float64 with eager attention, its steps in float32 too. Its weights follow from their names
(made_weights.py). Files have the names that transformers saves: tied weights once, no buffers. RENAMED are names that older
versions saved. Kinds that transformers lacks are computed by references.py.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.metadata
import io
import json
import pathlib
import random
import re
import struct
import sys
import tarfile
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
sys.dont_write_bytecode = True

import made_weights  # noqa: E402
import references  # noqa: E402
import tensor_file  # noqa: E402
from kinds import ARCHIVES, RENAMED, TOWERS, WITHOUT_LOGITS  # noqa: E402

IDS = [[5, 17, 3, 42, 8, 8, 29, 51, 11, 36, 23]]
TARGET = [[2, 9, 31, 9, 44, 13, 6]]
ROWS = [[5, 17, 3, 42, 8, 8, 29, 51, 11], [36, 23, 7, 9, 12], [44]]
ENDED = [[*row, 2] for row in ROWS]
TRAILING = [[5, 17, 3, 42, 0, 0]]  # padding that no mask hides
CLOSE = 2e-6  # numbers of the archive are rounded to float32

# ---- what Debian lacks ----

ABSENT = ("huggingface_hub", "tokenizers", "httpx")
VERSIONS = {"huggingface-hub": "1.0.0", "huggingface_hub": "1.0.0", "tokenizers": "0.22.1"}


class Absent(types.ModuleType):
    """A module that has every name: a class that does nothing, or an exception."""

    __path__ = []
    __version__ = "0.36.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        bases = (Exception,) if name.endswith(("Error", "Enabled")) else ()
        made = type(name, bases, {"__init__": lambda self, *rest, **named: None, "__class_getitem__": classmethod(lambda c, i: c)})
        setattr(self, name, made)
        return made


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules that are absent."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        if module.__name__ == "huggingface_hub.constants":
            module.HF_HOME = module.HF_HUB_CACHE = "cache"
        if module.__name__ == "huggingface_hub.file_download":
            module.REGEX_COMMIT_HASH = re.compile("^[0-9a-f]{40}$")


def stand_in():
    sys.meta_path.insert(0, AbsentFinder())
    real = importlib.metadata.version
    importlib.metadata.version = lambda name: VERSIONS.get(name) or real(name)
    sys.modules["transformers.dependency_versions_check"] = Absent("transformers.dependency_versions_check")
    for name in ("constants", "file_download", "utils"):
        importlib.import_module(f"huggingface_hub.{name}")


def import_transformers(path):
    """transformers and torch, with float64 wherever transformers asks for float32."""
    sys.path.insert(0, str(path))
    stand_in()
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415
    transformers.logging.set_verbosity_error()
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.FloatTensor = torch.DoubleTensor
    torch.Tensor.float = torch.Tensor.double
    return transformers, torch


# ---- one model ----


def saved_name(name, model):
    for start, saved in RENAMED.get(name, []):
        if model.startswith(start):
            return saved + model[len(start):]
    return model


def make_model(transformers, torch, config):
    model_class = getattr(transformers, config["architectures"][0])
    own = {name: value for name, value in config.items() if name != "model_type"}
    settings = model_class.config_class(**own)
    settings._attn_implementation = "eager"
    for part in ("text_config", "vision_config"):
        if hasattr(getattr(settings, part, None), "_attn_implementation"):
            getattr(settings, part)._attn_implementation = "eager"
    torch.manual_seed(0)
    return model_class(settings).double().eval()


def set_weights(torch, name, model, shapes=None):
    """Gives the model made weights; the shapes of the tensors that a file has, by name. shapes: those that it shall have."""
    made, seen = {}, set()
    trained = {key for key, value in model.named_parameters(remove_duplicate=False) if value.requires_grad}
    tied = tuple(model._tied_weights_keys or ())
    for key, tensor in sorted(model.state_dict(keep_vars=True).items(), key=lambda item: item[0] in tied):
        saved = saved_name(name, key)
        is_made = key in trained or key.endswith("final_logits_bias")
        if not is_made or tensor.data_ptr() in seen or (shapes is not None and saved not in shapes):
            continue
        seen.add(tensor.data_ptr())
        made[saved] = list(tensor.shape)
        numbers = made_weights.numbers(saved, made[saved])
        rounded = struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers))
        tensor.data.copy_(torch.tensor(rounded).reshape(tensor.shape))
    return made


def pixels_of(model):
    settings = getattr(model.config, "vision_config", model.config)
    side, channels = settings.image_size, settings.num_channels
    source = random.Random("pixels")
    shape = [1, channels, side, side]
    return shape, [2 * source.random() - 1 for _ in range(channels * side * side)]


def results_of(answer):
    """{name: tensor} of what transformers answers."""
    found = {}
    for group in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions", "hidden_states",
                  "encoder_hidden_states", "decoder_hidden_states"):
        for layer, tensor in enumerate(answer.get(group) or []):
            found[f"{group}.{layer}"] = tensor
    logits = answer.get("logits")
    if logits is not None:
        found["logits"] = logits
    elif answer.get("last_hidden_state") is not None:
        found["last_hidden_state"] = answer["last_hidden_state"]
    return found


def compute(torch, model, pixels, ids=IDS, target=TARGET):
    """The answers, and the members of the case that say what was asked."""
    asked = {"output_attentions": True, "output_hidden_states": True}
    case = {}
    if pixels is not None:
        case["pixel_values"] = "plain/pixel_values"
        shape, numbers = pixels
        numbers = struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers))
        asked["pixel_values"] = torch.tensor(numbers).reshape(shape)
    else:
        case.update(input_ids=ids, attention_mask=[[1] * len(ids[0])])
        asked.update(input_ids=torch.tensor(ids), attention_mask=torch.tensor(case["attention_mask"]))
    if model.config.is_encoder_decoder and model.main_input_name == "input_ids" and hasattr(model, "get_decoder") and \
            "Encoder" not in type(model).__name__:
        case.update(decoder_input_ids=target, decoder_attention_mask=[[1] * len(target[0])])
        asked["decoder_input_ids"] = torch.tensor(target)
    with torch.no_grad():
        return results_of(dict(getattr(model, TOWERS.get(type(model).__name__, ""), model)(**asked))), case


def text_of(about, version, shapes, case):
    rows = [f"  {json.dumps(name)}: {json.dumps(shape, separators=(',', ':'))}" for name, shape in shapes.items()]
    return (f'{{\n "about": {json.dumps(about)},\n "recorded_with": {json.dumps(version)},\n "tensors": {{\n'
            + ",\n".join(rows) + '\n },\n "cases": [\n  ' + json.dumps(case, separators=(",", ":")) + "\n ]\n}\n")


def saved_config(model):
    """config.json as save_pretrained writes it."""
    config = json.loads(model.config.to_json_string())
    for name in ("transformers_version", "dtype", "_name_or_path"):
        config.pop(name, None)
    return {**config, "architectures": [type(model).__name__]}


def float32(numbers):
    return struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers))


def refer(config, shapes=None):
    """The same as compute, and the shapes of the tensors, of a kind that references.py has."""
    import numpy  # noqa: PLC0415
    shapes_of, answers_of = references.REFERENCES[config["model_type"]]
    shapes = shapes or shapes_of(config)
    weights = {name: numpy.array(float32(made_weights.numbers(name, shape)), dtype=numpy.float64).reshape(shape)
               for name, shape in shapes.items()}
    return shapes, answers_of(config, weights, IDS[0]), {"input_ids": IDS, "attention_mask": [[1] * len(IDS[0])]}


def version_of(transformers, torch):
    return f"transformers {transformers.__version__} (torch {torch.__version__}), eager, float64"


def record_kind(transformers, torch, name):
    """{file name: bytes} of a kind."""
    about, config = ARCHIVES["kinds"][name]
    if config["model_type"] in references.REFERENCES:
        shapes, found, case = refer(config)
        return files_of(about, config, "references.py, float64", shapes, found, case, None)
    model = make_model(transformers, torch, config)
    shapes = set_weights(torch, name, model)
    pixels = pixels_of(model) if model.main_input_name == "pixel_values" else None
    found, case = compute(torch, model, pixels)
    if name in WITHOUT_LOGITS:
        del found["logits"]
    version = version_of(transformers, torch)
    return files_of(about, config if "-" in name else saved_config(model), version, shapes, found, case, pixels)


def files_of(about, config, version, shapes, found, case, pixels):
    outputs = {f"plain/{key}": ("F32", list(tensor.shape), tensor.flatten().tolist()) for key, tensor in found.items()}
    shown = {"name": "plain", "outputs": {key: list(tensor.shape) for key, tensor in found.items()}, **case}
    files = {"config.json": json.dumps(config, indent=1, sort_keys=True).encode() + b"\n",
             "cases.json": text_of(about, version, shapes, shown).encode(),
             "outputs.safetensors": tensor_file.write(outputs)}
    if pixels is not None:
        files["inputs.safetensors"] = tensor_file.write({"plain/pixel_values": ("F32", *pixels)})
    return files


def check(transformers, torch, archive, name, files):
    """The largest difference between what the archive has of a kind and what is computed now."""
    if archive != "kinds":
        now = tensor_file.read(RECORDERS[archive](transformers, torch, name)["outputs.safetensors"])[0]
        return largest_difference(files, now)
    config, cases = (json.loads(files[file]) for file in ("config.json", "cases.json"))
    if config["model_type"] in references.REFERENCES:
        return largest_difference(files, plain(refer(config, cases["tensors"])[1]))
    model = make_model(transformers, torch, config)
    shapes = set_weights(torch, name, model, cases["tensors"])
    left = set(cases["tensors"]) - set(shapes)
    assert not left, f"{name}: transformers has no tensors {sorted(left)}"
    pixels = None
    if "inputs.safetensors" in files:
        pixels = tensor_file.read(files["inputs.safetensors"])[0]["plain/pixel_values"][1:]
    case = cases["cases"][0]
    found, _ = compute(torch, model, pixels, case.get("input_ids"), case.get("decoder_input_ids"))
    return largest_difference(files, plain(found))


def plain(found):
    return {f"plain/{key}": (None, None, tensor.flatten().tolist()) for key, tensor in found.items()}


def largest_difference(files, found):
    recorded, largest = tensor_file.read(files["outputs.safetensors"])[0], 0
    for key, (_, _, numbers) in recorded.items():
        if key in found:
            now = found[key][2]
            largest = max(largest, *(abs(a - b) / max(1, abs(b)) for a, b in zip(now, numbers, strict=True)))
    return largest


# ---- heads of classes ----


def padded(rows, pad, on_left):
    """Ids and masks of one length."""
    longest = max(len(row) for row in rows)
    fill = [[pad] * (longest - len(row)) for row in rows]
    hide = [[0] * len(some) for some in fill]
    show = [[1] * len(row) for row in rows]
    if on_left:
        return [a + b for a, b in zip(fill, rows)], [a + b for a, b in zip(hide, show)]
    return [b + a for a, b in zip(fill, rows)], [b + a for a, b in zip(hide, show)]


def batches(config):
    """{name of a case: (ids, mask)}"""
    pad = config.get("pad_token_id", 0)
    if config["model_type"] in ("bart", "mbart", "t5"):
        return {f"row{i}": ([row], [[1] * len(row)]) for i, row in enumerate(ENDED)}
    found = {"right": padded(ROWS, pad, False)}
    if config["model_type"] in ("gpt2", "llama", "qwen3"):
        found["left"] = padded(ROWS, pad, True)
        found["trailing"] = (TRAILING, [[1] * len(TRAILING[0])])
    return found


def compute_image(torch, model, pixels):
    shape, numbers = pixels
    with torch.no_grad():
        return {"logits": model(pixel_values=torch.tensor(float32(numbers)).reshape(shape)).logits}


def compute_classes(torch, model, ids, mask):
    asked = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "return_dict": True}
    if model.config.model_type == "gpt2":
        asked["position_ids"] = (torch.tensor(mask).cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        answer = dict(model(**asked))
    return {name: answer[name] for name in ("logits", "start_logits", "end_logits") if name in answer}


def record_head(transformers, torch, name):
    """{file name: bytes}"""
    about, config = ARCHIVES["heads"][name]
    model = make_model(transformers, torch, config)
    shapes = set_weights(torch, name, model)
    cases, outputs, files = [], {}, {}
    is_image = model.main_input_name == "pixel_values"
    for case, (ids, mask) in ({"plain": (None, None)} if is_image else batches(config)).items():
        if is_image:
            pixels = pixels_of(model)
            found, given = compute_image(torch, model, pixels), {"pixel_values": f"{case}/pixel_values"}
            files["inputs.safetensors"] = tensor_file.write({given["pixel_values"]: ("F32", *pixels)})
        else:
            found, given = compute_classes(torch, model, ids, mask), {"input_ids": ids, "attention_mask": mask}
        cases.append({"name": case, **given, "classes": {key: list(tensor.shape) for key, tensor in found.items()}, "outputs": {}})
        for key, tensor in found.items():
            outputs[f"{case}/{key}"] = ("F32", list(tensor.shape), tensor.flatten().tolist())
    text = {"about": about, "recorded_with": version_of(transformers, torch), "tensors": shapes, "cases": cases}
    return {**files, "config.json": json.dumps(config, indent=1, sort_keys=True).encode() + b"\n",
            "cases.json": json.dumps(text, separators=(",", ":")).encode() + b"\n",
            "outputs.safetensors": tensor_file.write(outputs)}


# ---- experts ----


def choices_of(torch, inputs, named):
    """Indices and weights, (tokens, k), of what a module of experts is given."""
    indices, weights = inputs[1:] if len(inputs) > 1 else (named["router_indices"], named["routing_weights"])
    return indices, weights.gather(1, indices) if weights.shape != indices.shape else weights


def choices_of_gating(torch, k, outputs):
    """The same of the gating of Granite, which gives its pairs in the order of the experts."""
    order, _, gates, sizes, _ = outputs
    experts = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    indices, weights = torch.empty_like(order), torch.empty_like(gates)
    indices[order], weights[order] = experts, gates
    return indices.reshape(-1, k), weights.reshape(-1, k)


def watch(torch, model):
    """{layer: (indices, weights)}, which the next run of the model fills."""
    seen = {}
    for name, module in model.named_modules():
        kind = type(module).__name__
        layer = next((int(part) for part in name.split(".") if part.isdigit()), None)
        if kind.endswith("TopKGating"):
            module.register_forward_hook(
                lambda own, _, outputs, layer=layer: seen.update({layer: choices_of_gating(torch, own.top_k, outputs)}))
        elif kind.endswith("Experts") and not kind.endswith("ParallelExperts"):
            module.register_forward_pre_hook(
                lambda _, inputs, named, layer=layer: seen.update({layer: choices_of(torch, inputs, named)}), with_kwargs=True)
    return seen


def pack(torch, model, shapes):
    """Gives the experts weights of 4 bits, and replaces their names."""
    for name, tensor in model.named_parameters():
        if not name.endswith(("gate_up_proj", "down_proj")):
            continue
        experts, inner, outer = shapes.pop(name)
        blocks, scales = [experts, outer, inner // 32, 16], [experts, outer, inner // 32]
        shapes[f"{name}_blocks"], shapes[f"{name}_scales"] = blocks, scales
        numbers = made_weights.widened(made_weights.packed(f"{name}_blocks", blocks), made_weights.packed(f"{name}_scales", scales))
        tensor.data.copy_(torch.tensor(numbers).reshape(experts, outer, inner).transpose(1, 2))


def record_mixture(transformers, torch, name):
    about, config = ARCHIVES["experts"][name]
    own = {key: value for key, value in config.items() if key != "quantization_config"}
    model = make_model(transformers, torch, own)
    shapes = set_weights(torch, name, model)
    if "quantization_config" in config:
        pack(torch, model, shapes)
    seen = watch(torch, model)
    found, case = compute(torch, model, None)
    outputs = {f"plain/{key}": ("F32", list(tensor.shape), tensor.flatten().tolist()) for key, tensor in found.items()}
    shown = {key: list(tensor.shape) for key, tensor in found.items()}
    for layer, choices in sorted(seen.items()):
        for part, tensor in zip(("indices", "weights"), choices):
            shape = [1, *tensor.shape]
            shown[f"experts_{part}.{layer}"] = shape
            outputs[f"plain/experts_{part}.{layer}"] = ("I64" if part == "indices" else "F32", shape, tensor.flatten().tolist())
    version = version_of(transformers, torch)
    return {"config.json": json.dumps(config, indent=1, sort_keys=True).encode() + b"\n",
            "cases.json": text_of(about, version, shapes, {"name": "plain", "outputs": shown, **case}).encode(),
            "outputs.safetensors": tensor_file.write(outputs)}


# ---- the archive ----


def read_archive(name):
    """{kind: {file name: bytes}}"""
    kinds = {}
    with tarfile.open(HERE / f"{name}.tar.xz") as tar:
        for member in tar:
            if member.isfile():
                folder, file = pathlib.PurePath(member.name).parts[-2:]
                kinds.setdefault(folder, {})[file] = tar.extractfile(member).read()
    return kinds


def write_archive(name, kinds):
    """The same bytes for the same kinds."""
    with tarfile.open(HERE / f"{name}.tar.xz", "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as tar:
        for folder in sorted(kinds):
            entry = tarfile.TarInfo(f"./{folder}")
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
            for file, content in sorted(kinds[folder].items()):
                entry = tarfile.TarInfo(f"./{folder}/{file}")
                entry.size, entry.mode = len(content), 0o644
                tar.addfile(entry, io.BytesIO(content))


RECORDERS = {"kinds": record_kind, "heads": record_head, "experts": record_mixture}


def run(transformers, torch, archive, options):
    """Records or checks the kinds of one archive. Returns how many failed."""
    kinds, failed = read_archive(archive), 0
    wanted = sorted(kinds) if options.check else ARCHIVES[archive]
    chosen = [name for name in wanted if not options.kinds or name in options.kinds]
    for name in chosen:
        try:
            if options.check:
                largest = check(transformers, torch, archive, name, kinds[name])
                failed += largest > CLOSE
            else:
                kinds[name], largest = RECORDERS[archive](transformers, torch, name), None
        except Exception as error:  # the other kinds shall be tried, too
            print(f"{name}: {error!r}")
            failed += 1
            continue
        print(f"{name}: recorded" if largest is None else f"{name}: {largest:.1e}", flush=True)
    if chosen and not options.check:
        write_archive(archive, kinds)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--transformers", type=pathlib.Path,
                        help="the folder with the package transformers; kinds of references.py do not need it")
    parser.add_argument("--check", action="store_true", help="compare with the archives, and write nothing")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    options = parser.parse_args()
    transformers, torch = import_transformers(options.transformers.resolve()) if options.transformers else (None, None)
    return 1 if sum(run(transformers, torch, archive, options) for archive in ARCHIVES) else 0


if __name__ == "__main__":
    sys.exit(main())
