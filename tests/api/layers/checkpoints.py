"""
checkpoints.py: imports small checkpoints of every architecture, with the tensor names and shapes of its model code, and
compares each output with the formula of that model.
"""

import json
import math
import os
import pathlib
import random
import struct
import subprocess

from attnd import Server, StartError
import formulas as f
from layer import DEMO, Wrong, answered, expect, layer, put, refused, send
import tensor_file
from suite import Skipped, registry

CHECKS = []
LENGTH, WIDTH, HEADS = 5, 8, 2
CLOSE = 2e-5  # float32 sums of at most 16 products, against double


check = registry(CHECKS)


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def half(value):
    return struct.unpack("<e", struct.pack("<e", value))[0]


def brain(value):
    return struct.unpack("<f", b"\0\0" + struct.pack("<f", value)[2:])[0]


ROUND = {"F32": single, "F16": half, "BF16": brain}


class Checkpoint:
    """Tensors of random numbers that the dtype can hold, made as they are asked for."""

    def __init__(self, folder, config, dtype="F32"):
        self.folder, self.config, self.dtype = folder, config, dtype
        self.source, self.tensors = random.Random(config["model_type"]), {}
        folder.mkdir(parents=True)

    def matrix(self, name, rows, columns):
        numbers = [[ROUND[self.dtype](self.source.uniform(-1, 1)) for _ in range(columns)] for _ in range(rows)]
        self.tensors[name] = ([rows, columns], [x for row in numbers for x in row])
        return numbers

    def vector(self, name, count):
        numbers = [ROUND[self.dtype](self.source.uniform(-1, 1)) for _ in range(count)]
        self.tensors[name] = ([count], numbers)
        return numbers

    def linear(self, name, out=WIDTH, into=WIDTH, bias=True):
        return self.matrix(f"{name}.weight", out, into), self.vector(f"{name}.bias", out) if bias else None

    def save(self, shards=1):
        (self.folder / "config.json").write_text(json.dumps(self.config))
        names, found = sorted(self.tensors), {}
        for i in range(shards):
            file = "model.safetensors" if shards == 1 else f"model-{i + 1:05}-of-{shards:05}.safetensors"
            part = {name: self.tensors[name] for name in names[i::shards]}
            found.update(dict.fromkeys(part, file))
            (self.folder / file).write_bytes(write(part, self.dtype))
        if shards > 1:
            index = {"metadata": {"total_size": 0}, "weight_map": found}
            (self.folder / "model.safetensors.index.json").write_text(json.dumps(index))


def write(tensors, dtype):
    """As tensor_file.write, which has no code for BF16: the upper half of a float32."""
    if dtype != "BF16":
        return tensor_file.write({name: (dtype, *tensor) for name, tensor in tensors.items()}, {"format": "pt"})
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, numbers) in tensors.items():
        start = len(data)
        data += b"".join(struct.pack("<f", x)[2:] for x in numbers)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def rows(count, width, seed):
    source = random.Random(seed)
    return [[single(source.uniform(-1, 1)) for _ in range(width)] for _ in range(count)]


X = rows(LENGTH, WIDTH, "x")
Y = rows(LENGTH + 2, WIDTH, "y")


def projected(x, *parts):
    return [f.linear(x, *part) for part in parts]


def plain(x, y, q, k, v, o, heads=HEADS, scale=None, sees=lambda i, j: True, distance=lambda h, i, j: 0.0):
    """Attention with separate projections."""
    query = f.heads_of(f.linear(x, *q), heads)
    key, value = f.heads_of(f.linear(y, *k), heads), f.heads_of(f.linear(y, *v), heads)
    scale = scale if scale is not None else 1 / math.sqrt(len(query[0][0]))
    return f.linear(f.attention(query, key, value, scale, sees, distance), *o)


def self_attention(checkpoint, base, names, bias=True, **more):
    q, k, v, o = (checkpoint.linear(f"{base}.{name}", bias=bias) for name in names)
    return plain(X, X, q, k, v, o, **more)


# ---- one function a model: what its modules give for X (and Y, where there is an encoder) ----

def bert(make, kind="bert"):
    c = make({"model_type": kind, "num_attention_heads": HEADS, "hidden_size": WIDTH, "layer_norm_eps": 1e-3})
    wanted = {}
    for n in (0, 10):
        base = f"{kind}.encoder.layer.{n}.attention"
        out = self_attention(c, base, ("self.query", "self.key", "self.value", "output.dense"))
        gain, shift = (c.vector(f"{base}.output.LayerNorm.{name}", WIDTH) for name in ("weight", "bias"))
        added = [[a + b for a, b in zip(one, other)] for one, other in zip(out, X)]
        wanted[base] = f.layer_norm(added, gain, shift, 1e-3)
    c.matrix(f"{kind}.embeddings.word_embeddings.weight", 11, WIDTH)
    c.linear(f"{kind}.encoder.layer.0.intermediate.dense", 16)
    return c, wanted


def roberta(make):
    return bert(make, "roberta")


def distilbert(make):
    c = make({"model_type": "distilbert", "n_heads": HEADS, "dim": WIDTH})
    base = "distilbert.transformer.layer.0.attention"
    return c, {base: self_attention(c, base, ("q_lin", "k_lin", "v_lin", "out_lin"))}


def gpt2(make):
    c = make({"model_type": "gpt2", "n_head": HEADS, "n_embd": WIDTH, "scale_attn_by_inverse_layer_idx": True})
    wanted = {}
    for n in (0, 1):
        base = f"transformer.h.{n}.attn"
        fused = f.transposed(c.matrix(f"{base}.c_attn.weight", WIDTH, 3 * WIDTH)), c.vector(f"{base}.c_attn.bias", 24)
        out = f.transposed(c.matrix(f"{base}.c_proj.weight", WIDTH, WIDTH)), c.vector(f"{base}.c_proj.bias", WIDTH)
        parts = [(fused[0][i:i + WIDTH], fused[1][i:i + WIDTH]) for i in (0, WIDTH, 2 * WIDTH)]
        wanted[base] = plain(X, X, *parts, out, scale=0.5 / (n + 1), sees=f.causal)
    return c, wanted


def per_head(c, base, names=("query_key_value", "dense")):
    """q, k, v of head 0, then of head 1: (3 heads width, in)."""
    weight, bias = c.linear(f"{base}.{names[0]}", 3 * WIDTH)
    width = WIDTH // HEADS
    parts = []
    for part in range(3):
        index = [h * 3 * width + part * width + d for h in range(HEADS) for d in range(width)]
        parts.append(([weight[i] for i in index], [bias[i] for i in index]))
    return parts, c.linear(f"{base}.{names[1]}")


def gpt_neox(make):
    c = make({"model_type": "gpt_neox", "num_attention_heads": HEADS, "hidden_size": WIDTH, "rotary_pct": 0.5,
              "rotary_emb_base": 100})
    base = "gpt_neox.layers.0.attention"
    parts, out = per_head(c, base)
    q, k, v = (f.heads_of(part, HEADS) for part in projected(X, *parts))
    q, k = ([f.rotated(head, 100, 2) for head in part] for part in (q, k))
    return c, {base: f.linear(f.attention(q, k, v, 0.5, f.causal), *out)}


def bloom(make):
    c = make({"model_type": "bloom", "n_head": HEADS, "hidden_size": WIDTH})
    base = "transformer.h.0.self_attention"
    parts, out = per_head(c, base)
    q, k, v = (f.heads_of(part, HEADS) for part in projected(X, *parts))
    slopes = f.alibi_slopes(HEADS)
    return c, {base: f.linear(f.attention(q, k, v, 0.5, f.causal, lambda h, i, j: slopes[h] * (j - i)), *out)}


def t5(make):
    c = make({"model_type": "t5", "num_heads": HEADS, "d_model": WIDTH, "d_kv": 4, "relative_attention_max_distance": 6})
    wanted, buckets = {}, 8
    for stack, bidirectional in (("encoder", True), ("decoder", False)):
        table = c.matrix(f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", buckets, HEADS)

        def bias(h, i, j, table=table, bidirectional=bidirectional):
            return table[f.t5_bucket(j - i, bidirectional, buckets, 6)][h]

        for n in (0, 1):
            base = f"{stack}.block.{n}.layer.0.SelfAttention"
            wanted[base] = self_attention(c, base, "qkvo", bias=False, scale=1, distance=bias,
                                          sees=(lambda i, j: True) if bidirectional else f.causal)
    base = "decoder.block.0.layer.1.EncDecAttention"
    wanted[base] = plain(X, Y, *(c.linear(f"{base}.{name}", bias=False) for name in "qkvo"), scale=1)
    return c, wanted


def bart(make):
    c = make({"model_type": "bart", "encoder_attention_heads": HEADS, "decoder_attention_heads": 4, "d_model": WIDTH})
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    base, cross = "model.decoder.layers.0.self_attn", "model.decoder.layers.0.encoder_attn"
    wanted = {"model.encoder.layers.0.self_attn": self_attention(c, "model.encoder.layers.0.self_attn", names),
              base: self_attention(c, base, names, heads=4, sees=f.causal)}
    wanted[cross] = plain(X, Y, *(c.linear(f"{cross}.{name}") for name in names), heads=4)
    return c, wanted


def vit(make):
    c = make({"model_type": "vit", "num_attention_heads": HEADS, "hidden_size": WIDTH})
    base = "vit.encoder.layer.0.attention"
    return c, {base: self_attention(c, base, ("attention.query", "attention.key", "attention.value", "output.dense"))}


def decoder_only(make, config, number=0, bias=False, norm=None, theta=10000, scaling=None, **more):
    """Llama and those that came after: 4 query heads, 2 key heads, rotary positions."""
    c = make({"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": WIDTH, "head_dim": 4, **config})
    base = f"model.layers.{number}.self_attn"
    q, k, v = (c.linear(f"{base}.{name}_proj", width, bias=bias) for name, width in (("q", 16), ("k", 8), ("v", 8)))
    out = c.linear(f"{base}.o_proj", WIDTH, 16, bias=False)
    query, key, value = projected(X, q, k, v)
    query, key, value = f.heads_of(query, 4), f.heads_of(key, 2), f.heads_of(value, 2)
    if norm:
        gains = {name: c.vector(f"{base}.{name}_norm.weight", 4) for name in "qk"}
        query, key = [f.rms_norm(h, gains["q"], norm) for h in query], [f.rms_norm(h, gains["k"], norm) for h in key]
    query, key = ([f.rotated(head, theta, None, scaling) for head in part] for part in (query, key))
    more = {"scale": 0.5, "sees": f.causal, **more}
    return c, {base: f.linear(f.attention(query, key, value, **more), *out)}


def llama(make):
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}
    return decoder_only(make, {"model_type": "llama", "rope_theta": 500.0, "rope_scaling": scaling},
                        theta=500, scaling=scaling)


def llama_of_today(make):
    scaling = {"rope_type": "linear", "rope_theta": 77.0, "factor": 4.0}
    return decoder_only(make, {"model_type": "llama", "rope_parameters": scaling}, theta=77, scaling=scaling)


def mistral(make):
    return decoder_only(make, {"model_type": "mistral", "sliding_window": 3, "rope_theta": 1000.0, "rope_scaling": None},
                        theta=1000, sees=f.window(3))


def qwen2(make):
    return decoder_only(make, {"model_type": "qwen2", "sliding_window": 2, "use_sliding_window": False,
                               "max_window_layers": 0}, bias=True)


def qwen2_with_windows(make):
    return decoder_only(make, {"model_type": "qwen2", "sliding_window": 2, "use_sliding_window": True,
                               "max_window_layers": 3}, number=3, bias=True, sees=f.window(2))


def qwen3(make):
    return decoder_only(make, {"model_type": "qwen3", "rms_norm_eps": 1e-3, "sliding_window": None}, norm=1e-3)


def gemma2(make, number=0, sees=f.window(2), **config):
    return decoder_only(make, {"model_type": "gemma2", "query_pre_attn_scalar": 9, "attn_logit_softcapping": 0.5,
                               "sliding_window": 2, **config}, number, scale=1 / 3, softcap=0.5, sees=sees)


def gemma2_full_layer(make):
    return gemma2(make, 1, f.causal)


def gemma2_of_today(make):
    return gemma2(make, 0, f.causal, layer_types=["full_attention"])


MODELS = (bert, roberta, distilbert, gpt2, gpt_neox, bloom, t5, bart, vit, llama, llama_of_today, mistral, qwen2,
          qwen2_with_windows, qwen3, gemma2, gemma2_full_layer, gemma2_of_today)


# ---- checks ----

def run_import(program, checkpoint, into, *words):
    return subprocess.run([program, "import", str(checkpoint.folder), "--into", str(into), *words], check=False,
                          capture_output=True, text=True, timeout=60)


def output(client, name, is_cross):
    inputs = {"query": X, "key": Y} if is_cross else {"query": X}
    reply = send(client, "POST", f"/v1/layers/{name}/attention", {"inputs": inputs, "options": {"return": ["output"]}})
    return answered(reply)["outputs"]["output"]


def compare(client, wanted, prefix=""):
    for name, matrix in wanted.items():
        got = output(client, prefix + name, name.endswith(("EncDecAttention", "encoder_attn")))
        worst = max(abs(a - b) for one, other in zip(got, matrix) for a, b in zip(one, other))
        size = max(abs(a) for row in matrix for a in row)
        expect(worst <= CLOSE * max(size, 1), f"{name} is off by {worst}")


@check
def every_architecture_is_imported(stage):
    into = stage.folder / "into"  # which the first import makes
    expected = {}
    for model in MODELS:
        checkpoint, wanted = model(lambda config, name=model.__name__: Checkpoint(stage.folder / name, config))
        checkpoint.save()
        done = run_import(stage.program, checkpoint, into, "--prefix", model.__name__)
        expect(done.returncode == 0, f"{model.__name__}: {done.stderr}")
        expect(f"{len(wanted)} layers written" in done.stdout, done.stdout)
        counts = [line.split(":")[0] for line in done.stdout.splitlines()[:-1]]
        expect(counts == [f"{n} of {len(wanted)}" for n in range(1, len(wanted) + 1)], done.stdout)
        expected.update({f"{model.__name__}.{name}": matrix for name, matrix in wanted.items()})
    with Server(stage.program, environment={"ATTND_LAYERS": str(into)}) as server:
        listed = [row["name"] for row in answered(send(server.client(), "GET", "/v1/layers"))["layers"]]
        expect(listed == sorted([*expected, *DEMO]), f"{set(listed) ^ set(expected)}")
        compare(server.client(), expected)


@check
def sixteen_bits_stay_sixteen_bits_and_shards_are_one_checkpoint(stage):
    for dtype, name in (("F16", "float16"), ("BF16", "bfloat16")):
        checkpoint, wanted = gpt2(lambda config, d=dtype: Checkpoint(stage.folder / d, config, d))
        checkpoint.save(shards=3)
        into = stage.folder / f"into {dtype}"
        into.mkdir()
        done = run_import(stage.program, checkpoint, into)
        expect(done.returncode == 0, done.stderr)
        with Server(stage.program, environment={"ATTND_LAYERS": str(into)}) as server:
            for row in answered(send(server.client(), "GET", f"/v1/layers?after={DEMO[-1]}"))["layers"]:
                expect(row["dtype"] == name and row["bytes"] < 2 * row["parameters"] + 1024, row)
            compare(server.client(), wanted)


@check
def the_modules_of_a_model_are_layers_even_if_the_model_cannot_run(stage):
    checkpoint, wanted = bert(lambda config: Checkpoint(stage.folder / "bert", config))
    checkpoint.save(shards=2)
    kept = stage.folder / "kept"
    kept.mkdir()
    for more in ({}, {"ATTND_LAYERS": str(kept)}):
        environment = {"ATTND_MODEL": f"m={checkpoint.folder}", **more}
        with Server(stage.program, environment=environment) as server:
            client = server.client()
            compare(client, wanted, "m.")
            name = "m." + min(wanted)
            refused(put(client, name, layer()), 409, "belongs to a model")
            refused(put(client, "m", layer()), 409, "name of a model")
            refused(send(client, "DELETE", f"/v1/layers/{name}"), 409, "belongs to a model")
            answered(put(client, "own", layer()), 201)
            names = [row["name"] for row in answered(send(client, "GET", "/v1/layers"))["layers"]]
            expect(sum(name.startswith("m.") for name in names) == len(wanted) and "own" in names, names)
            compare(client, wanted, "m.")
            metadata = answered(send(client, "GET", f"/v2/models/{name}"))
            expect(metadata["inputs"][0]["shape"] == [-1, -1, WIDTH], metadata)
            (kept / "own.safetensors").unlink(missing_ok=True)


@check
def an_unknown_architecture_gets_a_mapping_to_fill_in(stage):
    checkpoint = Checkpoint(stage.folder / "new", {"model_type": "brandnew", "heads": HEADS})
    into = stage.folder / "into"
    wanted = {}
    for n in range(3):
        base = f"net.{n}.attn"
        fused = (checkpoint.matrix(f"{base}.in_proj_weight", 3 * WIDTH, WIDTH),
                 checkpoint.vector(f"{base}.in_proj_bias", 3 * WIDTH))
        parts = [(fused[0][i:i + WIDTH], fused[1][i:i + WIDTH]) for i in (0, WIDTH, 2 * WIDTH)]
        wanted[base] = plain(X, X, *parts, checkpoint.linear(f"{base}.out_proj"), scale=0.25)
    checkpoint.save()
    done = run_import(stage.program, checkpoint, into)
    expect(done.returncode == 1 and "brandnew" in done.stderr and "llama" in done.stderr, done.stderr)
    expect("net.{n}.attn.in_proj_weight  F32 [24,8]  3 times" in done.stderr, done.stderr)
    file = into / "attnd-mapping.json"
    mapping = json.loads(file.read_text())
    module = mapping["modules"][0]
    expect(module["path"] == "net.{n}.attn" and "in_proj_bias" in module["tensors_found"], module)
    module["weights"] = {"layout": "out_in", "qkv": {"weight": "in_proj_weight", "bias": "in_proj_bias"},
                         "output": "out_proj"}
    module["options"] = {"num_heads": "$heads", "scale": "$no_such|0.25"}
    file.write_text(json.dumps(mapping))
    done = run_import(stage.program, checkpoint, into, "--mapping", str(file))
    expect(done.returncode == 0, done.stderr)
    with Server(stage.program, environment={"ATTND_LAYERS": str(into)}) as server:
        compare(server.client(), wanted)


@check
def what_is_wrong_with_a_checkpoint_is_told(stage):
    into = stage.folder / "into"
    into.mkdir()
    checkpoint, _ = vit(lambda config: Checkpoint(stage.folder / "vit", config))

    def told(*words):
        done = run_import(stage.program, checkpoint, into)
        expect(done.returncode == 1, f"imported: {done.stdout}")
        for word in words:
            expect(word in done.stderr, f"{word!r} is not in {done.stderr!r}")

    told("config.json", "there is no such file")
    checkpoint.save()
    tensors, name = dict(checkpoint.tensors), "vit.encoder.layer.0.attention.attention.key.weight"
    del checkpoint.tensors[name]
    checkpoint.save()
    told(name)
    checkpoint.tensors = {**tensors, name: ([4, 4], [0.5] * 16)}
    checkpoint.save()
    told("vit.encoder.layer.0.attention:")
    checkpoint.tensors = tensors
    checkpoint.save(shards=2)
    index = checkpoint.folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: "../../etc/passwd"}}))
    told("index.json", "file name")
    index.write_text("{")
    told("index.json", "line 1")
    index.unlink()
    (checkpoint.folder / "model.safetensors").write_bytes(b"short")
    told("model.safetensors", "not safetensors")
    (checkpoint.folder / "config.json").write_text("[]")
    checkpoint.folder.joinpath("model.safetensors").write_bytes(write(tensors, "F32"))
    told("config.json")
    try:
        with Server(stage.program, environment={"ATTND_CHECKPOINT": str(checkpoint.folder)}):
            raise Wrong("started with a checkpoint")
    except StartError as error:
        expect("--model NAME=DIR" in str(error), str(error)[:200])
    done = subprocess.run([stage.program, "import", str(checkpoint.folder)], check=False, capture_output=True, text=True)
    expect(done.returncode == 2 and "--into" in done.stderr, done.stderr)
    expect(into.is_dir(), "a refused import removed a folder that was there")
    into = stage.folder / "new"
    told("config.json")
    expect(not into.exists(), "a refused import left its empty folder")
    into = stage.folder / "no" / "folder"
    told(f"import: {into}: No such file or directory")
    into = stage.folder / "file"
    into.write_text("")
    told(f"layers: {into}: Not a directory")


# ---- what transformers itself computed ----

def vector(name):
    folder = pathlib.Path(os.environ.get("ATTN_SHARED", pathlib.Path(__file__).resolve().parents[4] / "shared"))
    file = folder / "vectors" / "torch" / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


VECTORS = {
    "hf_qwen3_qk_rmsnorm_per_head": ("qwen3", "model.layers.0.self_attn", {}),
    "hf_t5_encoder": ("t5", "encoder.block.0.layer.0.SelfAttention",
                      {"max_distance": "relative_attention_max_distance"}),
    "hf_t5_decoder": ("t5", "decoder.block.0.layer.0.SelfAttention",
                      {"max_distance": "relative_attention_max_distance"}),
}


@check
def layers_compute_what_transformers_computed(stage):
    for name, (kind, base, renamed) in VECTORS.items():
        case = vector(name)
        if case is None:
            raise Skipped("needs the vectors of PyTorch (ATTN_SHARED)")
        config = {renamed.get(key, key): value for key, value in case["attributes"].items()}
        checkpoint = Checkpoint(stage.folder / name, {"model_type": kind, **config})
        given = case["inputs"]
        checkpoint.tensors = {f"{base}.{key}": (tensor["shape"], tensor["data"]) for key, tensor in given.items()
                              if key.endswith(".weight")}
        checkpoint.save()
        masks = {"bias": without_dtype(given["mask"])} if name == "hf_t5_encoder" else {}
        with Server(stage.program, environment={"ATTND_MODEL": f"m={checkpoint.folder}"}) as server:
            request = {"inputs": {"query": without_dtype(given["hidden_states"])}, "masks": masks,
                       "options": {"format": "flat"}}
            outputs = answered(send(server.client(), "POST", f"/v1/layers/m.{base}/attention", request))["outputs"]
        for got, wanted in (("output", "attn_output"), ("attention", "attn_weights")):
            data = case["outputs"][wanted]["data"]
            numbers = outputs[got]["data"] if isinstance(outputs[got], dict) else outputs[got]
            expect(len(numbers) == len(data), f"{name}: {len(numbers)} numbers")
            worst = max(abs(a - b) - case["rtol"] * abs(b) for a, b in zip(numbers, data))
            expect(worst <= case["atol"], f"{name}: {got} is off by {worst}")


def without_dtype(tensor):
    return {"shape": tensor["shape"], "data": tensor["data"]}
