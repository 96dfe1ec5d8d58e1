"""
gguf.py: a model in a GGUF file answers as the same numbers do in a folder as transformers writes it, and its tokenizer as the
same tokenizer.json does.
"""

import json
import math
import os
import pathlib
import random
import subprocess
import tempfile

import gguf_file
import tensor_file
from attnd import Server
from suite import Skipped, registry

import tokens

CHECKS = []
check = registry(CHECKS)

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD, INNER, WORDS, LENGTH = 2, 256, 4, 2, 32, 64, 48, 40
IDS = [[3, 17, 5, 40, 22, 9, 1, 30, 46, 12]]
NEAR = 1e-5  # llama's rotated pairs are neighbours in the file, so its sums have another order


def llama_like(biases=(), norms=()):
    """{name of transformers: (name of GGUF, shape)} of a layer, with {n}."""
    own = "model.layers.{n}."
    rows = {"self_attn.q_proj": ("attn_q", HEADS * HEAD, HIDDEN), "self_attn.k_proj": ("attn_k", KV_HEADS * HEAD, HIDDEN),
            "self_attn.v_proj": ("attn_v", KV_HEADS * HEAD, HIDDEN), "self_attn.o_proj": ("attn_output", HIDDEN, HEADS * HEAD),
            "mlp.gate_proj": ("ffn_gate", INNER, HIDDEN), "mlp.up_proj": ("ffn_up", INNER, HIDDEN),
            "mlp.down_proj": ("ffn_down", HIDDEN, INNER), "input_layernorm": ("attn_norm", HIDDEN)}
    rows.update(norms or {"post_attention_layernorm": ("ffn_norm", HIDDEN)})
    table = {f"{own}{name}.weight": (f"blk.{{n}}.{to}.weight", shape) for name, (to, *shape) in rows.items()}
    table.update({f"{own}{name}.bias": (f"blk.{{n}}.{rows[name][0]}.bias", rows[name][1:2]) for name in biases})
    return table


ENDS = {"model.embed_tokens.weight": ("token_embd.weight", [WORDS, HIDDEN]), "model.norm.weight": ("output_norm.weight", [HIDDEN])}
HEAD_OF_WORDS = {"lm_head.weight": ("output.weight", [WORDS, HIDDEN])}
HEAD_NORMS = {"self_attn.q_norm": ("attn_q_norm", HEAD), "self_attn.k_norm": ("attn_k_norm", HEAD)}
GEMMA_NORMS = {"post_attention_layernorm": ("post_attention_norm", HIDDEN), "pre_feedforward_layernorm": ("ffn_norm", HIDDEN),
               "post_feedforward_layernorm": ("post_ffw_norm", HIDDEN)}
PHI = {"model.layers.{n}.self_attn.qkv_proj.weight": ("blk.{n}.attn_qkv.weight", [(HEADS + 2 * KV_HEADS) * HEAD, HIDDEN]),
       "model.layers.{n}.mlp.gate_up_proj.weight": ("blk.{n}.ffn_up.weight", [2 * INNER, HIDDEN])}
GPT = {f"transformer.h.{{n}}.{name}.{part}": (f"blk.{{n}}.{to}.{part}", shape if part == "weight" else shape[:1])
       for name, to, shape in (("ln_1", "attn_norm", [HIDDEN]), ("attn.c_attn", "attn_qkv", [3 * HIDDEN, HIDDEN]),
                               ("attn.c_proj", "attn_output", [HIDDEN, HIDDEN]), ("ln_2", "ffn_norm", [HIDDEN]),
                               ("mlp.c_fc", "ffn_up", [INNER, HIDDEN]), ("mlp.c_proj", "ffn_down", [HIDDEN, INNER]))
       for part in ("weight", "bias")}
GPT_ENDS = {"transformer.wte.weight": ("token_embd.weight", [WORDS, HIDDEN]),
            "transformer.wpe.weight": ("position_embd.weight", [LENGTH, HIDDEN]),
            "transformer.ln_f.weight": ("output_norm.weight", [HIDDEN]), "transformer.ln_f.bias": ("output_norm.bias", [HIDDEN])}

CONFIG = {"num_hidden_layers": LAYERS, "hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
          "head_dim": HEAD, "max_position_embeddings": LENGTH, "rms_norm_eps": 1e-6, "rope_theta": 5000.0,
          "vocab_size": WORDS, "intermediate_size": INNER}
KEYS = {"block_count": LAYERS, "embedding_length": HIDDEN, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
        "attention.key_length": HEAD, "attention.value_length": HEAD, "rope.dimension_count": HEAD, "context_length": LENGTH,
        "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 5000.0, "feed_forward_length": INNER}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
          "original_max_position_embeddings": 16}
SHORT, LONG = ([1 + i / factor for i in range(HEAD // 2)] for factor in (16, 8))


def llama3_factors():
    """What a file has of LLAMA3: by what each frequency is divided."""
    factors = []
    for i in range(HEAD // 2):
        wave = 2 * math.pi * 5000.0 ** (2 * i / HEAD)
        low, high = (LLAMA3["original_max_position_embeddings"] / LLAMA3[name] for name in ("low_freq_factor", "high_freq_factor"))
        smooth = (LLAMA3["original_max_position_embeddings"] / wave - 1) / 3
        factors.append(1.0 if wave < high else 4.0 if wave > low else 1 / ((1 - smooth) / 4 + smooth))
    return factors


# kind: (layer, ends, members of config.json, metadata, tensors of float32)
KINDS = {
    "llama": (llama_like(), {**ENDS, **HEAD_OF_WORDS}, {"model_type": "llama", "tie_word_embeddings": False, "rope_scaling": LLAMA3}, {},
              {"rope_freqs.weight": llama3_factors()}),
    "qwen2": (llama_like([f"self_attn.{part}_proj" for part in "qkv"]), ENDS, {"model_type": "qwen2", "tie_word_embeddings": True, "rope_scaling": {
                  "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}},
              {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 8}, {}),
    "qwen3": (llama_like(norms={"post_attention_layernorm": ("ffn_norm", HIDDEN), **HEAD_NORMS}), ENDS,
              {"model_type": "qwen3", "tie_word_embeddings": True, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
              {"rope.scale_linear": 2.0}, {}),  # the older name
    "gemma": (llama_like(), ENDS, {"model_type": "gemma"}, {}, {}),
    "gemma2": (llama_like(norms=GEMMA_NORMS), ENDS,
               {"model_type": "gemma2", "sliding_window": 4, "query_pre_attn_scalar": HEAD, "attn_logit_softcapping": 30.0,
                "final_logit_softcapping": 20.0},
               {"attention.sliding_window": 4, "attn_logit_softcapping": 30.0, "final_logit_softcapping": 20.0}, {}),
    "gemma3": (llama_like(norms={**GEMMA_NORMS, **HEAD_NORMS}), ENDS,
               {"model_type": "gemma3_text", "sliding_window": 4, "query_pre_attn_scalar": HEAD,
                "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
               {"attention.sliding_window": 4, "rope.scaling.factor": 8.0}, {}),  # linear is the default type
    "phi3": ({**{name: row for name, row in llama_like().items() if not any(part in name for part in ("q_proj", "k_proj", "v_proj",
                                                                                                       "gate_proj", "up_proj"))}, **PHI},
             {**ENDS, **HEAD_OF_WORDS},
             {"model_type": "phi3", "tie_word_embeddings": False, "original_max_position_embeddings": 8, "partial_rotary_factor": 0.5,
              "rope_scaling": {"type": "longrope", "short_factor": SHORT[:HEAD // 4], "long_factor": LONG[:HEAD // 4],
                               "attention_factor": 1.25}},
             {"rope.scaling.original_context_length": 8, "rope.scaling.attn_factor": 1.25, "rope.dimension_count": HEAD // 2},
             {"rope_factors_short.weight": SHORT[:HEAD // 4], "rope_factors_long.weight": LONG[:HEAD // 4]}),
    "gpt2": (GPT, GPT_ENDS, {"model_type": "gpt2", "n_layer": LAYERS, "n_embd": HIDDEN, "n_head": HEADS, "n_positions": LENGTH,
                             "layer_norm_epsilon": 1e-5}, {"attention.layer_norm_epsilon": 1e-5}, {}),
}
LARGE, SMALL, PLAIN = ("Q4_K", "Q5_K", "Q6_K", "Q8_0", "Q4_0"), ("Q8_0", "Q4_0"), ("F16", "BF16", "F32")


def type_of(shape, turn):
    """Types take turns. Vectors are float32, as in all files."""
    if len(shape) < 2:
        return "F32"
    kinds = (LARGE if shape[-1] % 256 == 0 else SMALL) + PLAIN
    return kinds[turn % len(kinds)]


def neighbours(numbers, heads):
    """The rows of a matrix for rope in halves as llama's files have them, for rope of neighbours."""
    rows = [numbers[i:i + HIDDEN] for i in range(0, len(numbers), HIDDEN)]
    half = len(rows) // heads // 2
    return [number for head in range(heads) for i in range(half) for side in range(2)
            for number in rows[(head * 2 + side) * half + i]]


def halves(numbers, heads):
    """The inverse of neighbours."""
    rows = [numbers[i:i + HIDDEN] for i in range(0, len(numbers), HIDDEN)]
    half = len(rows) // heads // 2
    return [number for head in range(heads) for side in range(2) for i in range(half) for number in rows[(head * half + i) * 2 + side]]


def transposed(numbers, rows):
    columns = len(numbers) // rows
    return [numbers[i * columns + j] for j in range(columns) for i in range(rows)]


def make(kind, turn=0):
    """(config.json, {name: tensor} of transformers, metadata, {name: tensor} of GGUF)"""
    layer, ends, config, keys, vectors = KINDS[kind]
    rows = {**ends, **{name.replace("{n}", str(n)): (to.replace("{n}", str(n)), shape) for n in range(LAYERS)
                       for name, (to, shape) in layer.items()}}
    own, files = {}, {to: ("F32", [len(numbers)], gguf_file.draw("F32", 0, random, 0)[0] +
                           b"".join(map(float_bytes, numbers))) for to, numbers in vectors.items()}
    for name, (to, shape) in rows.items():
        turn += 1
        stored, is_gain = type_of(shape, turn), len(shape) == 1 and name.endswith("weight")
        spread = 0.3 if len(shape) == 1 else 1.2 / math.sqrt(shape[-1])
        data, numbers = gguf_file.draw(stored, math.prod(shape), random.Random(f"{kind} {name}"), spread, 1 if is_gain else 0)
        files[to] = (stored, shape, data)
        if kind == "llama" and "q_proj" in name or kind == "llama" and "k_proj" in name:
            numbers = halves(numbers, HEADS if "q_proj" in name else KV_HEADS)
        if kind.startswith("gemma") and is_gain:
            numbers = [number - 1 for number in numbers]
        if kind == "gpt2" and len(shape) == 2 and ".h." in name:
            numbers, shape = transposed(numbers, shape[0]), shape[::-1]
        own[name] = ("F32", shape, numbers)
    metadata = {"general.architecture": kind, **{f"{kind}.{key}": value for key, value in {**KEYS, **keys}.items()}}
    if kind == "gpt2":
        metadata = {key: value for key, value in metadata.items() if "key_length" not in key and "rope" not in key}
    return {**CONFIG, **config} if kind != "gpt2" else config, own, metadata, files


def float_bytes(number):
    return gguf_file.struct.pack("<f", number)


def stage(folder, kind, turn):
    config, own, metadata, files = make(kind, turn)
    (folder / f"{kind}.gguf").write_bytes(gguf_file.write(metadata, files))
    (folder / f"{kind}-folder").mkdir()
    (folder / f"{kind}-folder" / "config.json").write_text(json.dumps(config))
    (folder / f"{kind}-folder" / "model.safetensors").write_bytes(tensor_file.write(own))


def flat(nested):
    return [number for row in nested for number in flat(row)] if isinstance(nested, list) else [nested]


def answers(client, name):
    reply = client.post(f"/v1/models/{name}/attention",
                        {"inputs": {"ids": IDS}, "options": {"return": ["attention", "hidden", "logits"]}})
    assert reply.status == 200, (name, reply.body[:400])
    return {result: flat(values) for result, values in reply.json()["outputs"].items()}


@check
def a_file_of_each_kind_and_type_answers_as_the_folder_with_its_numbers(program):
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        for turn, kind in enumerate(KINDS):
            stage(folder, kind, turn)
        with Server(program, environment={"ATTND_MODELS": text}) as server:
            client = server.client()
            for kind in KINDS:
                is_of, should = answers(client, kind), answers(client, f"{kind}-folder")
                for result, numbers in should.items():
                    apart = max(abs(a - b) for a, b in zip(is_of[result], numbers, strict=True))
                    assert apart <= NEAR, (kind, result, apart)


def kib(server, name):
    """A figure of the memory of the process: VmHWM is the peak of VmRSS."""
    lines = pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


@check
def a_file_is_not_in_memory_beside_its_widened_numbers(program):
    _, _, metadata, files = make("qwen3")
    inner = 1 << 14  # six tensors of 2^22 numbers
    for name, (stored, shape, data) in files.items():
        if "ffn" in name and len(shape) == 2:
            files[name] = ("Q8_0", [inner if size == INNER else size for size in shape], bytes(inner * HIDDEN // 32 * 34))
    body = gguf_file.write({**metadata, "qwen3.feed_forward_length": inner}, files)
    with tempfile.TemporaryDirectory() as text:
        (pathlib.Path(text) / "large.gguf").write_bytes(body)
        with Server(program, environment={"ATTND_MODELS": text}) as server:
            assert server.client().get("/v1/models/large").json()["state"] == "ready"
            assert kib(server, "VmHWM") - kib(server, "VmRSS") < len(body) / 2 / 1024, (kib(server, "VmHWM"), kib(server, "VmRSS"))


@check
def metadata_that_would_change_the_maps_is_refused(program):
    refused = {"both-ways": ({"attention.causal": False}, "attention.causal is false"),
               "louder": ({"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.attn_factor": 1.5}, "attn_factor is 1.5"),
               "other": ({"rope.scaling.type": "spiral"}, "rope.scaling.type is spiral")}
    with tempfile.TemporaryDirectory() as text:
        _, _, metadata, files = make("qwen3")
        for name, (more, _) in refused.items():
            own = {f"qwen3.{key}": value for key, value in more.items()}
            (pathlib.Path(text) / f"{name}.gguf").write_bytes(gguf_file.write({**metadata, **own}, files))
        with Server(program, environment={"ATTND_MODELS": text}) as server:
            rows = {row["name"]: row for row in server.client().get("/v1/models").json()["models"]}
            for name, (_, reason) in refused.items():
                assert rows[name]["state"] == "broken" and reason in rows[name]["reason"], rows[name]
                assert "config.json" not in rows[name]["reason"], rows[name]


# ---- tokenizers ----


def metadata_of(tokenizer, pre):
    """The metadata that files have of a tokenizer.json."""
    model, special = tokenizer["model"], {token["id"]: token for token in tokenizer["added_tokens"]}
    vocabulary = {**model["vocab"], **{token["content"]: token["id"] for token in special.values()}}
    texts = [text for text, _ in sorted(vocabulary.items(), key=lambda item: item[1])]
    assert sorted(vocabulary.values()) == list(range(len(texts)))
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    found = {"tokenizer.ggml.model": "llama" if pre is None else "gpt2", "tokenizer.ggml.tokens": texts}
    kinds = [3 if i in special and special[i]["special"] else 4 if i in special else 1 for i in range(len(texts))]
    if pre is None:
        # Each token that merges make has the rank of its first merge as its score.
        ranks = {}
        for rank, merge in enumerate(merges):
            ranks.setdefault(merge.replace(" ", ""), -float(rank))
        kinds = [2 if text == model["unk_token"] else 6 if text.startswith("<0x") else kind for text, kind in zip(texts, kinds)]
        found["tokenizer.ggml.scores"] = [ranks.get(text, -1e9) for text in texts]
        found["tokenizer.ggml.bos_token_id"] = vocabulary["<s>"]
    else:
        found |= {"tokenizer.ggml.pre": pre, "tokenizer.ggml.merges": merges}
        first = tokenizer["post_processor"].get("processors", [{}])[-1].get("single", [{}])[0].get("SpecialToken")
        if first is not None:
            found |= {"tokenizer.ggml.bos_token_id": vocabulary[first["id"]], "tokenizer.ggml.add_bos_token": True}
    return {**found, "tokenizer.ggml.token_type": kinds}


def add_tokenizer(folder, name, path, pre):
    tokenizer = json.loads(path.read_text())
    _, _, metadata, files = make("qwen3")
    (folder / f"{name}.gguf").write_bytes(gguf_file.write({**metadata, **metadata_of(tokenizer, pre)}, files))
    tokens.add_model(folder, f"{name}-folder", path.read_bytes())


def recorded():
    """(name, tokenizer.json, tokenizer.ggml.pre)"""
    places = (("gpt2", tokens.OWN / "gpt2", "gpt-2"), ("llama3", tokens.SHARED / "llama", "llama-bpe"),
              ("qwen3", tokens.SHARED / "qwen3", "qwen2"), ("llama2", tokens.SHARED / "tokenizers" / "llama2", None))
    return [(name, place / "tokenizer.json", pre) for name, place, pre in places if (place / "tokenizer.json").exists()]


def texts_of(place):
    cases = place.parent / "tokenizer_cases.json"
    texts = [case["text"] for case in json.loads(cases.read_text())["cases"] if "text" in case] if cases.exists() else []
    return [text for text in texts if text] + ["Hello  world, it's 1234567 o'clock!\n\n\tde\u0301ja\u0300 vu \u4f60\u597d \U0001f600", "a", " b "]


@check
def a_tokenizer_of_a_file_gives_the_tokens_of_the_same_tokenizer_json(program):
    with tempfile.TemporaryDirectory() as text:
        folder, found = pathlib.Path(text), recorded()
        for name, path, pre in found:
            add_tokenizer(folder, name, path, pre)
        with Server(program, environment={"ATTND_MODELS": text}) as server:
            client = server.client()
            for name, path, _ in found:
                for words in texts_of(path):
                    is_of, should = (client.post(f"/v1/models/{model}/tokens", {"inputs": {"text": [words]}})
                                     for model in (name, f"{name}-folder"))
                    assert should.status == is_of.status, (name, words, is_of.body[:300], should.body[:300])
                    if should.status == 200:
                        for member in ("ids", "tokens", "special"):  # a file does not say whether spaces are cut off offsets
                            assert is_of.json()[member] == should.json()[member], (name, words, is_of.body, should.body)
    if len(found) < 4:
        raise Skipped("needs the recorded tokenizers of llama, qwen3 and llama2 (ATTN_SHARED)")


# ---- refusals ----


def broken():
    """(name, bytes, words of the reason)"""
    _, _, metadata, files = make("qwen3")
    whole = gguf_file.write(metadata, files)
    yield "short", whole[:-1], "but the data has"
    yield "cut", whole[:-1], "cut.gguf: the download is incomplete (the tensor "
    yield "cut-tables", whole[:200], "download it again: hf download ORG/NAME cut-tables.gguf --force-download"
    yield "empty", b"", "empty.gguf: the file is empty; download it again"
    yield "pointer", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"
    yield "other", b"PK" + whole[2:], "the file is not GGUF"
    yield "big-endian", whole[:4] + whole[4:8][::-1] + whole[8:], "big-endian"
    yield "version", whole[:4] + b"\1" + whole[5:], "GGUF's version 1"
    yield "mamba", gguf_file.write({**metadata, "general.architecture": "mamba"}, files), '"mamba"; of GGUF files, attnd has llama'
    yield "none", gguf_file.write({}, files), "general.architecture, the kind of model, is missing"
    yield "split", gguf_file.write({**metadata, "split.count": 3}, files), "one of 3 parts; llama-gguf-split --merge"
    yield "scaled", gguf_file.write({**metadata, "qwen3.rope.scaling.type": "su"}, files), "rope.scaling.type is su"
    yield "lists", gguf_file.write({**metadata, "qwen3.attention.head_count": [4, 4]}, files), "not one finite number"
    yield "heads", gguf_file.write({key: value for key, value in metadata.items() if "head_count" not in key}, files), "head_count is missing"
    yield "lora", gguf_file.write(metadata, {**files, "blk.0.attn_q.lora_a": ("F32", [1], bytes(4))}), "blk.0.attn_q.lora_a has no place"
    yield "lacking", gguf_file.write(metadata, {name: row for name, row in files.items() if "ffn_down" not in name}), "down_proj"


def tokenizers_of_no_use():
    """(name, metadata, words of the log)"""
    words = {"tokenizer.ggml.tokens": ["a", "b", "ab"], "tokenizer.ggml.merges": ["a b"]}
    yield "t-kind", {**words, "tokenizer.ggml.model": "bert"}, 'tokenizer.ggml.model is "bert"; attnd has gpt2 and llama'
    yield "t-pre", {**words, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "tekken"}, 'tokenizer.ggml.pre is "tekken"'
    yield "t-scores", {**words, "tokenizer.ggml.model": "llama"}, "tokenizer.ggml.scores"
    yield "t-merges", {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a"]}, "tokenizer.ggml.merges"
    yield "t-twice", {**words, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a", "a"]}, "t-twice.gguf: /model/vocab"


@check
def a_file_that_cannot_run_says_why_in_one_sentence(program):
    with tempfile.TemporaryDirectory() as text:
        folder, (_, _, metadata, files) = pathlib.Path(text), make("qwen3")
        for name, body, _ in broken():
            (folder / f"{name}.gguf").write_bytes(body)
        for name, more, _ in tokenizers_of_no_use():
            (folder / f"{name}.gguf").write_bytes(gguf_file.write({**metadata, **more}, files))
        (folder / "notes.txt").write_text("no model")
        with Server(program, environment={"ATTND_MODELS": text}) as server:
            client = server.client()
            rows = {row["name"]: row for row in client.get("/v1/models").json()["models"]}
            assert "notes.txt" not in rows and "notes" not in rows
            for name, _, words in broken():
                assert rows[name]["state"] == "broken" and words in rows[name]["reason"], rows[name]
            for name, _, _ in tokenizers_of_no_use():
                assert rows[name]["state"] == "ready" and not rows[name]["tokenizer"], rows[name]
                reply = client.post(f"/v1/models/{name}/tokens", {"inputs": {"text": "ab"}})
                assert reply.status == 409 or reply.status == 400, reply.body
