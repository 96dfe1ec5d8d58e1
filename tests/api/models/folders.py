"""
folders.py: what a model's folder may hold (the table of docs/models.md): folders that run, and the sentence of each that cannot.

A row of REFUSED is a folder: its files, and words of the sentence. {config} and {weights} are those of a small model.
"""

import gzip
import json
import pathlib
import shutil
import struct
import tempfile

import tensor_file
from attnd import Server
from suite import registry

ROOT = pathlib.Path(__file__).resolve().parents[3]
BERT = ROOT / "tests" / "others" / "models" / "bert"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
PAGE = b"\n<!DOCTYPE html>\n<html><head><title>Log in</title></head></html>\n"
CONFIG, WEIGHTS, TOKENIZER = ((BERT / name).read_bytes() for name in ("config.json", "model.safetensors", "tokenizer.json"))
INDEX = json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode()
SAVE = "from_pretrained(\"DIR\").save_pretrained(\"NEW\")"


def without(member):
    return json.dumps({name: value for name, value in json.loads(CONFIG).items() if name != member}).encode()


REFUSED = {
    "pointer": ({"config.json": CONFIG, "model.safetensors": POINTER}, ("model.safetensors", "Git LFS", "git lfs pull")),
    "pointer-config": ({"config.json": POINTER, "model.safetensors": WEIGHTS}, ("config.json", "git lfs pull")),
    "page": ({"config.json": CONFIG, "model.safetensors": PAGE}, ("model.safetensors", "web page", "download the file itself")),
    "page-config": ({"config.json": PAGE, "model.safetensors": WEIGHTS}, ("config.json", "web page")),
    "page-index": ({"config.json": CONFIG, "model.safetensors.index.json": PAGE}, ("index.json", "web page")),
    "pytorch": ({"config.json": CONFIG, "pytorch_model.bin": b"PK"}, ("pytorch_model.bin", "import BertForMaskedLM;", SAVE)),
    "placeholder": ({"config.json": CONFIG.replace(b"BertForMaskedLM", b"CLASSModel"), "pytorch_model.bin": b"PK"},
                    ("import CLASSModel; CLASSModel.from_pretrained", SAVE)),
    "pytorch-parts": ({"config.json": CONFIG, "pytorch_model.bin.index.json": b"{}"}, ("pytorch_model.bin.index.json", SAVE)),
    "tensorflow": ({"config.json": CONFIG, "tf_model.h5": b"H"}, ("tf_model.h5", "from_tf=True")),
    "flax": ({"config.json": CONFIG, "flax_model.msgpack": b"F"}, ("flax_model.msgpack", "from_flax=True")),
    "onnx": ({"config.json": CONFIG, "onnx/model.onnx": b"O"}, ("onnx", "ONNX graph", "model.safetensors of the model")),
    "onnx-file": ({"config.json": CONFIG, "model.onnx": b"O"}, ("model.onnx", "ONNX graph")),
    "adapter": ({"adapter_config.json": b"{}", "adapter_model.safetensors": WEIGHTS}, ("adapter_config.json", "merge_and_unload()")),
    "cut": ({"config.json": CONFIG, "model.safetensors": WEIGHTS[:-100]},
            ("model.safetensors: the download is incomplete", "data_offsets", "hf download ORG/NAME model.safetensors")),
    "cut-header": ({"config.json": CONFIG, "model.safetensors": WEIGHTS[:500]}, ("the download is incomplete", "claims a header")),
    "empty": ({"config.json": CONFIG, "model.safetensors": b""}, ("model.safetensors: the file is empty", "hf download")),
    "empty-config": ({"config.json": b"", "model.safetensors": WEIGHTS}, ("config.json: the file is empty", "download it again")),
    "gzip": ({"config.json": CONFIG, "model.safetensors": gzip.compress(WEIGHTS)}, ("model.safetensors", "packed with gzip", "gunzip")),
    "zip": ({"config.json": CONFIG, "model.safetensors": b"PK\3\4" + WEIGHTS}, ("model.safetensors", "a ZIP archive", "unzip", "pytorch_model.bin")),
    "no-type": ({"config.json": without("model_type"), "model.safetensors": WEIGHTS}, ("config.json has no model_type", "names the kind")),
    "no-heads": ({"config.json": without("num_attention_heads"), "model.safetensors": WEIGHTS}, ("config.json has no num_attention_heads",)),
    "no-layers": ({"config.json": without("num_hidden_layers"), "model.safetensors": WEIGHTS}, ("config.json has no num_hidden_layers",)),
    "ctranslate2": ({"config.json": CONFIG, "model.bin": b"C"}, ("model.bin", "format of CTranslate2", "model.safetensors of the model")),
    "gguf": ({"small.gguf": b"GGUF"}, ("small.gguf", "--model NAME=DIR/FILE")),
    "authors": ({"params.json": b"{}", "consolidated.00.pth": b"PK"}, ("consolidated.00.pth", "format of the model's authors")),
    "part-missing": ({"config.json": CONFIG, "model.safetensors.index.json": INDEX}, ("model-00001-of-00002.safetensors", "download it too")),
    "index-missing": ({"config.json": CONFIG, "model-00001-of-00002.safetensors": WEIGHTS}, ("model.safetensors.index.json", "download it too")),
    "misnamed": ({"config.json": CONFIG, "weights.safetensors": WEIGHTS}, ("weights.safetensors", "rename")),
    "nothing": ({"config.json": CONFIG}, ("model.safetensors", "docs/models.md")),
    "read-infinity": ({"config.json": CONFIG.replace(b"{", b'{"layer_norm_eps": Infinity,', 1) if b"layer_norm_eps" not in CONFIG
                       else CONFIG.replace(b'"layer_norm_eps": 1e-12', b'"layer_norm_eps": Infinity'), "model.safetensors": WEIGHTS},
                      ("eps", "received \"Infinity\"")),
}
POOLED = b'{"pooling_mode_mean_tokens": true}'
MODULES = json.dumps([{"idx": i, "path": path, "type": f"sentence_transformers.models.{name}"}
                      for i, (path, name) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling")))]).encode()
RUN = {
    "plain": {"config.json": CONFIG, "model.safetensors": WEIGHTS},
    "marked": {"config.json": b"\xef\xbb\xbf" + CONFIG, "model.safetensors": WEIGHTS, "tokenizer.json": b"\xef\xbb\xbf" + TOKENIZER},
    "infinity": {"config.json": CONFIG.replace(b"{", b'{"a": NaN, "b": [Infinity, "Infinity"], "c": {"d": -Infinity},', 1),
                 "model.safetensors": WEIGHTS},
    "digits": {"config.json": CONFIG.replace(b"{", b'{"a": 9999999999999999999, "b": [-9223372036854775809],', 1), "model.safetensors": WEIGHTS},
    "beside-others": {"config.json": CONFIG, "model.safetensors": WEIGHTS, "pytorch_model.bin": b"PK", "adapter.gguf": b""},
}
# Files of slow tokenizers, those that fuzzing keeps, without the byte that chooses among them; a text, and its ids.
KEPT = {path.name: path.read_bytes()[1:] for path in (ROOT / "tests" / "fuzz" / "corpus" / "slow").iterdir()}
LINES = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n"


def pieces(*names, kind=1):
    """A model of SentencePiece, Unigram or BPE (2): control pieces in <> or [], of them one that is unknown, then ▁ a b ▁a ab."""
    def field(number, content):
        return bytes((number << 3 | 2, len(content))) + content

    scores = {**{name: 0 for name in names}, "\u2581": -2, "a": -3, "b": -4, "\u2581a": -1, "ab": -2.5}
    types = {name: 2 if "unk" in name.lower() else 3 for name in names}
    listed = b"".join(field(1, field(1, name.encode()) + b"\x15" + struct.pack("<f", score) + bytes((0x18, types.get(name, 1))))
                      for name, score in scores.items())
    return listed + field(2, bytes((0x18, kind))) + field(3, b"" if kind == 1 else b"\x18\0\x20\0")


def byte_level(*names, end=""):
    """vocab.json and merges.txt: the names, then a b ab Ġ Ġab; with an end of words those of a, b and ab instead of Ġ."""
    words = ("a", "b", f"a{end}", f"b{end}", f"ab{end}") if end else ("a", "b", "ab", "\u0120", "\u0120ab")
    return {"vocab.json": json.dumps({word: i for i, word in enumerate((*names, *words))}).encode(),
            "merges.txt": ("#version: 0.2\n" + (f"a b{end}\n" if end else "a b\n\u0120 ab\n")).encode()}


PLAIN, MARIAN = ("<unk>", "<s>", "</s>"), {"</s>": 0, "<unk>": 1, "ab": 2, "\u2581": 3, "\u2581a": 4, "<pad>": 5}
SLOW = {
    "BertTokenizer": ({"vocab.txt": LINES}, "A\u00e4b [MASK]", [2, 1, 4, 3]),
    "MPNetTokenizer": ({"vocab.txt": b"<s>\n<pad>\n</s>\n[UNK]\na\n##b\n<mask>\n"}, "ab <mask>", [0, 4, 5, 6, 2]),
    "RobertaTokenizer": ({"vocab.json": KEPT["vocab"], "merges.txt": KEPT["merges"]}, "abb", [0, 6, 5, 2]),
    "GPT2Tokenizer": (byte_level("<|endoftext|>"), "ab ab", [3, 5]),
    "Qwen2Tokenizer": (byte_level("<|endoftext|>"), "ab ab", [3, 5]),
    "BartTokenizer": (byte_level("<s>", "<pad>", "</s>", "<unk>", "<mask>"), "ab", [0, 7, 2]),
    "LongformerTokenizer": (byte_level("<s>", "<pad>", "</s>", "<unk>", "<mask>"), "ab ab", [0, 7, 9, 2]),
    "LEDTokenizer": (byte_level("<s>", "<pad>", "</s>", "<unk>", "<mask>"), "a <mask>", [0, 5, 4, 2]),
    "BlenderbotTokenizer": (byte_level("<s>", "<pad>", "</s>", "<unk>"), "ab", [6, 2]),
    "DebertaTokenizer": (byte_level("[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"), "ab", [0, 7, 1]),
    "WhisperTokenizer": (byte_level("<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>"), "ab", [1, 2, 5, 0]),
    "CLIPTokenizer": (byte_level("<|startoftext|>", "<|endoftext|>", end="</w>"), "AB a", [0, 6, 4, 1]),
    "XLMRobertaTokenizer": ({"sentencepiece.bpe.model": pieces(*PLAIN)}, "a ab <mask>", [0, 7, 4, 8, 9, 2]),
    "CamembertTokenizer": ({"sentencepiece.bpe.model": pieces(*PLAIN)}, "ab <mask>", [5, 7, 11, 12, 6]),
    "BigBirdTokenizer": ({"spiece.model": pieces("<pad>", *PLAIN, "[CLS]", "[SEP]", "[MASK]")}, "ab [MASK]", [4, 7, 11, 6, 5]),
    "DebertaV2Tokenizer": ({"spm.model": pieces("[PAD]", "[CLS]", "[SEP]", "[UNK]")}, "ab [MASK]", [1, 4, 8, 9, 2]),
    "MBartTokenizer": ({"sentencepiece.bpe.model": pieces(*PLAIN)}, "ab", [4, 8, 2, 12]),
    "GemmaTokenizer": ({"tokenizer.model": pieces("<pad>", "<eos>", "<bos>", "<unk>", kind=2)}, "a ab", [2, 5, 7, 6]),
    "MarianTokenizer": ({"source.spm": pieces(*PLAIN), "vocab.json": json.dumps(MARIAN).encode()}, "ab a", [3, 2, 4, 0]),
    "T5Tokenizer": ({"spiece.model": KEPT["t5"]}, "a  ab", [6, 3, 7, 1]),
    "LlamaTokenizerFast": ({"tokenizer.model": KEPT["llama"]}, "ab", [1, 5, 9]),
    "AlbertTokenizer": ({"spiece.model": KEPT["albert"]}, "A", [2, 7, 3]),
    "MBart50Tokenizer": ({"sentencepiece.bpe.model": KEPT["mbart"]}, "a", [14, 7, 2]),
    "M2M100Tokenizer": ({"sentencepiece.bpe.model": KEPT["m2m"], "vocab.json": b'{"</s>":0,"<unk>":1,"a":2,"b":3,"ab":4,"\\u2581":5}'}, "ab", [24, 5, 4, 0]),
}
CHECKS = []
check = registry(CHECKS)


def write(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def cache(folder, revisions, main=None):
    """A folder as huggingface_hub writes it: files by their digest, links to them per revision, and the name of the newest."""
    write(folder / "blobs", {"c0": CONFIG, "5a": WEIGHTS, "70": TOKENIZER})
    for revision in revisions:
        snapshot = folder / "snapshots" / revision
        snapshot.mkdir(parents=True)
        for blob, name in (("c0", "config.json"), ("5a", "model.safetensors"), ("70", "tokenizer.json")):
            (snapshot / name).symlink_to(f"../../blobs/{blob}")
    if main is not None:
        write(folder, {"refs/main": main.encode()})


def serve(program, parent):
    return Server(program, environment={"ATTND_MODELS": str(parent)})


def serve_one(program, model):
    return Server(program, environment={"ATTND_MODEL": f"m={model}"})


def rows_of(server):
    return {row["name"]: row for row in server.client().get("/v1/models").json()["models"]}


def ask(server, model):
    """The output of its tokens, and its logits."""
    reply = server.client().post(f"/v1/models/{model}/attention", {"inputs": {"ids": [5, 6, 7]}, "options": {"return": ["output", "logits"]}})
    assert reply.status == 200, (model, reply.body[:300])
    return [number for rows in reply.json()["outputs"].values() for row in rows[0] for number in row]


@check
def each_folder_that_cannot_run_says_why(program, _):
    with tempfile.TemporaryDirectory() as parent:
        parent = pathlib.Path(parent)
        for name, (files, _words) in REFUSED.items():
            write(parent / name, files)
        with serve(program, parent) as server:
            rows = rows_of(server)
            for name, (_files, words) in REFUSED.items():
                assert name in rows and rows[name]["state"] != "ready", (name, rows.get(name))
                for word in words:
                    assert word in rows[name]["reason"], (name, word, rows[name]["reason"])
                reply = server.client().post(f"/v1/models/{name}/attention", {"inputs": {"ids": [1]}})
                assert reply.status == 409 and words[0] in reply.json()["detail"], reply.body[:500]


@check
def each_folder_that_can_run_does(program, _):
    with tempfile.TemporaryDirectory() as parent:
        parent = pathlib.Path(parent)
        for name, files in RUN.items():
            write(parent / name, files)
        cache(parent / "models--org--small", ["aa", "bb"], "bb\n")
        cache(parent / "models--org--single", ["aa"])
        with serve(program, parent) as server:
            rows = rows_of(server)
            for name in (*RUN, "models--org--small", "models--org--single"):
                assert name in rows and rows[name]["state"] == "ready", (name, rows.get(name))
            assert rows["marked"]["tokenizer"] and rows["models--org--small"]["tokenizer"]


@check
def parts_and_halves_of_a_model_answer_as_the_whole(program, _):
    """Numbers of 16 bits, which float32 has, too: in one file of them, in one of float32, and in two that an index names."""
    def cut(number, dtype):
        return struct.unpack("<e", struct.pack("<e", number))[0] if dtype == "F16" else struct.unpack("<f", b"\0\0" + struct.pack("<f", number)[2:])[0]

    weights, _ = tensor_file.read(WEIGHTS)
    with tempfile.TemporaryDirectory() as parent:
        parent = pathlib.Path(parent)
        for dtype in ("F16", "BF16"):
            narrow = {name: (dtype, shape, [cut(number, dtype) for number in numbers]) for name, (_, shape, numbers) in weights.items()}
            wide = {name: ("F32", shape, numbers) for name, (_, shape, numbers) in narrow.items()}
            write(parent / dtype, {"config.json": CONFIG, "model.safetensors": tensor_file.write(narrow)})
            write(parent / f"{dtype}-wide", {"config.json": CONFIG, "model.safetensors": tensor_file.write(wide)})
        names = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
        of = {name: names[i % 2] for i, name in enumerate(weights)}
        write(parent / "parts", {"config.json": CONFIG, "model.safetensors.index.json": json.dumps({"weight_map": of}).encode(), **{
            file: tensor_file.write({name: tensor for name, tensor in weights.items() if of[name] == file}) for file in names}})
        write(parent / "whole", {"config.json": CONFIG, "model.safetensors": WEIGHTS})
        with serve(program, parent) as server:
            rows = rows_of(server)
            answers = {name: ask(server, name) for name in rows if name != "demo"}
        assert [rows[name]["dtype"] for name in ("F16", "BF16", "parts")] == ["float16", "bfloat16", "float32"], rows
        assert answers["parts"] == answers["whole"]
        for dtype in ("F16", "BF16"):
            assert all(abs(a - b) < 1e-5 for a, b in zip(answers[dtype], answers[f"{dtype}-wide"])), dtype
            assert answers[dtype] != answers["whole"], dtype


@check
def a_bias_that_one_layer_lacks_is_listed(program, _):
    weights, _ = tensor_file.read(WEIGHTS)
    biases = [f"bert.encoder.layer.{n}.output.dense.bias" for n in range(3)]
    with tempfile.TemporaryDirectory() as parent:
        for name, lacking in (("none", biases[:0]), ("one", biases[1:2]), ("two", biases[::2]), ("all", biases)):
            kept = {key: tensor for key, tensor in weights.items() if key not in lacking}
            write(pathlib.Path(parent) / name, {"config.json": CONFIG, "model.safetensors": tensor_file.write(kept)})
        with serve(program, parent) as server:
            rows = rows_of(server)
            told = {name: rows[name]["absent"] for name in ("none", "one", "two", "all")}
            assert told == {"none": [], "one": biases[1:2], "two": biases[::2], "all": []}, told
            lines = {name: [line for line in server.lines if f"name={name} " in line and "type=bert" in line] for name in told}
            assert ["absent=" in line for name in told for line in lines[name]] == [False, True, True, False], lines
            assert "absent=2" in lines["two"][0], lines


@check
def files_of_a_pooling_are_told_as_others_are(program, _):
    base = {"config.json": CONFIG, "model.safetensors": WEIGHTS}
    cases = {"marked": ({"modules.json": b"\xef\xbb\xbf" + MODULES, "1_Pooling/config.json": b"\xef\xbb\xbf" + POOLED}, None),
             "modules": ({"modules.json": POINTER, "1_Pooling/config.json": POOLED}, "modules.json: it is a pointer of Git LFS"),
             "config": ({"modules.json": MODULES, "1_Pooling/config.json": PAGE}, "1_Pooling/config.json: it is a web page")}
    with tempfile.TemporaryDirectory() as parent:
        for name, (files, _words) in cases.items():
            write(pathlib.Path(parent) / name, {**base, **files})
        with serve(program, parent) as server:
            for name, (_files, words) in cases.items():
                reply = server.client().post(f"/v1/models/{name}/attention", {"inputs": {"ids": [5]}, "options": {"return": ["embedding"]}})
                assert reply.status == (400 if words else 200) and (words or "embedding") in reply.body.decode(), (name, reply.body[:500])


@check
def a_folder_of_the_cache_is_followed_to_its_newest_revision(program, _):
    with tempfile.TemporaryDirectory() as parent:
        model = pathlib.Path(parent) / "models--org--small"
        cache(model, ["aa", "bb"])
        with serve_one(program, model) as server:
            row = rows_of(server)["m"]
            assert row["state"] != "ready" and "refs/main" in row["reason"] and "snapshots/REVISION" in row["reason"], row
        write(model, {"refs/main": b"aa"})
        with serve_one(program, model) as server:
            assert rows_of(server)["m"]["state"] == "ready"
        write(model, {"refs/main": b"../../.."})
        shutil.rmtree(model / "snapshots" / "bb")
        with serve_one(program, model) as server:
            assert rows_of(server)["m"]["state"] == "ready"


@check
def a_tokenizer_that_was_not_downloaded_is_named(program, _):
    with tempfile.TemporaryDirectory() as parent:
        parent = pathlib.Path(parent)
        for name, content in (("pointer", POINTER), ("page", PAGE), ("empty", b"")):
            write(parent / name, {"config.json": CONFIG, "model.safetensors": WEIGHTS, "tokenizer.json": content})
        with serve(program, parent) as server:
            for name, word in (("pointer", "git lfs pull"), ("page", "web page"), ("empty", "tokenizer.json: the file is empty")):
                reply = server.client().post(f"/v1/models/{name}/tokens", {"inputs": {"text": "a"}})
                assert reply.status in (400, 409) and word in reply.json()["detail"], reply.body[:500]


@check
def a_folder_without_tokenizer_json_takes_text_by_the_files_of_a_slow_one(program, _):
    with tempfile.TemporaryDirectory() as parent:
        parent = pathlib.Path(parent)
        base = {"config.json": CONFIG, "model.safetensors": WEIGHTS}
        for name, (files, _text, _ids) in SLOW.items():
            settings = json.dumps({"tokenizer_class": name, "model_max_length": 1000000000000000019884624838656})
            write(parent / name, {**base, **files, "tokenizer_config.json": settings.encode()})
        write(parent / "by-kind", {**base, "vocab.txt": LINES, "special_tokens_map.json": b'{"unk_token": "[UNK]"}',
                                   "added_tokens.json": b'{"new": 7}'})
        write(parent / "other", {**base, "vocab.txt": LINES, "tokenizer_config.json": b'{"tokenizer_class": "OwnTokenizer"}'})
        write(parent / "pointer", {**base, "vocab.txt": POINTER})
        with serve(program, parent) as server:
            client = server.client()
            for name, (_files, text, ids) in {**SLOW, "by-kind": (None, "A new", [2, 5, 7, 3])}.items():
                reply = client.post(f"/v1/models/{name}/tokens", {"inputs": {"text": text}})
                assert reply.status == 200 and reply.json()["ids"] == [ids], (name, ids, reply.body[:500])
            for name, word in (("other", "AutoTokenizer.from_pretrained"), ("pointer", "vocab.txt: it is a pointer of Git LFS")):
                reply = client.post(f"/v1/models/{name}/tokens", {"inputs": {"text": "a"}})
                assert reply.status == 400 and word in reply.json()["detail"], reply.body[:500]


@check
def targets_of_marian_are_cut_by_their_own_pieces(program, _):
    source, vocab = KEPT["t5"], {"</s>": 0, "<unk>": 1, "\u2581": 2, "a": 3, "b": 4, "\u2581a": 5, "ab": 6, "<pad>": 7}
    target = source.replace(b"\n\x02ab", b"\n\x02zz")
    base = {name: (ROOT / "tests" / "others" / "models" / "t5" / name).read_bytes() for name in ("config.json", "model.safetensors")}
    files = {**base, "vocab.json": json.dumps(vocab).encode(), "source.spm": source, "tokenizer_config.json": b'{"tokenizer_class": "MarianTokenizer"}'}
    with tempfile.TemporaryDirectory() as parent:
        write(pathlib.Path(parent) / "own", {**files, "target.spm": target})
        write(pathlib.Path(parent) / "same", {**files, "target.spm": source})
        write(pathlib.Path(parent) / "lacking", files)
        write(pathlib.Path(parent) / "damaged", {**files, "target.spm": b"no protobuf"})
        with serve(program, pathlib.Path(parent)) as server:
            client = server.client()
            for name, cut in (("own", ["\u2581a", "b"]), ("same", ["\u2581", "ab"])):
                reply = client.post(f"/v1/models/{name}/attention",
                                    {"inputs": {"text": "ab", "target": "ab"}, "options": {"return": ["output"]}})
                assert reply.status == 200, reply.body[:500]
                tokens = reply.json()["tokens"]
                assert tokens["encoder"]["text"] == [["\u2581", "ab", "</s>"]], (name, tokens)
                assert tokens["decoder"]["text"] == [["</s>", *cut]], (name, tokens)
                words = {"inputs": {"text": "ab", "target": "ab"}, "options": {"return": ["word_scores"], "words": ["ab"]}}
                reply = client.post(f"/v1/models/{name}/attention", words)
                assert reply.status == 400 and "is 2 tokens, " + ", ".join(f'"{token}"' for token in cut) in reply.json()["detail"], reply.body[:500]
            for inputs, options, pointer in (({"target": "ab"}, {"return": ["output"]}, "/inputs/target"),
                                             ({"target_ids": [0]}, {"return": ["word_scores"], "words": ["ab"]}, "/options/words/0"),
                                             ({"target_ids": [0]}, {"return": ["word_scores"], "words": [6]}, None)):
                reply = client.post("/v1/models/lacking/attention", {"inputs": {"text": "ab", **inputs}, "options": options})
                told = reply.json()
                assert reply.status == (400 if pointer else 200) and told.get("pointer") == pointer, reply.body[:500]
                assert pointer is None or "target.spm" in told["detail"] and "download it beside source.spm" in told["detail"], told
            reply = client.post("/v1/models/damaged/tokens", {"inputs": {"text": "ab"}})
            assert reply.status == 400 and "target.spm: is not a model of SentencePiece" in reply.json()["detail"], reply.body[:500]
