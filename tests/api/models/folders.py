"""
folders.py: what a model's folder may hold (the table of docs/models.md): folders that run, and the sentence of each that cannot.

A row of REFUSED is a folder: its files, and words of the sentence. {config} and {weights} are those of a small model.
"""

import json
import pathlib
import shutil
import tempfile

from attnd import Server
from suite import registry

ROOT = pathlib.Path(__file__).resolve().parents[3]
BERT = ROOT / "tests" / "others" / "models" / "bert"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
PAGE = b"\n<!DOCTYPE html>\n<html><head><title>Log in</title></head></html>\n"
CONFIG, WEIGHTS, TOKENIZER = ((BERT / name).read_bytes() for name in ("config.json", "model.safetensors", "tokenizer.json"))
INDEX = json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode()
SAVE = "from_pretrained(\"DIR\").save_pretrained(\"NEW\")"
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
    "beside-others": {"config.json": CONFIG, "model.safetensors": WEIGHTS, "pytorch_model.bin": b"PK", "adapter.gguf": b""},
}
# Files of slow tokenizers, those that fuzzing keeps, without the byte that chooses among them; a text, and its ids.
KEPT = {path.name: path.read_bytes()[1:] for path in (ROOT / "tests" / "fuzz" / "corpus" / "slow").iterdir()}
LINES = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n"
SLOW = {
    "BertTokenizer": ({"vocab.txt": LINES}, "A\u00e4b [MASK]", [2, 1, 4, 3]),
    "MPNetTokenizer": ({"vocab.txt": b"<s>\n<pad>\n</s>\n[UNK]\na\n##b\n<mask>\n"}, "ab <mask>", [0, 4, 5, 6, 2]),
    "RobertaTokenizer": ({"vocab.json": KEPT["vocab"], "merges.txt": KEPT["merges"]}, "abb", [0, 6, 5, 2]),
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
        for name, content in (("pointer", POINTER), ("page", PAGE)):
            write(parent / name, {"config.json": CONFIG, "model.safetensors": WEIGHTS, "tokenizer.json": content})
        with serve(program, parent) as server:
            for name, word in (("pointer", "git lfs pull"), ("page", "web page")):
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
        write(pathlib.Path(parent) / "same", files)
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
            reply = client.post("/v1/models/damaged/tokens", {"inputs": {"text": "ab"}})
            assert reply.status == 400 and "target.spm: is not a model of SentencePiece" in reply.json()["detail"], reply.body[:500]
