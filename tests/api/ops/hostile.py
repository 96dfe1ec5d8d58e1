"""hostile.py: folders that no program writes. Each is a sentence in GET /v1/models, and costs next to no memory."""

import json
import os
import pathlib
import shutil
import struct
import tempfile

from attnd import Server
from models import OWN, has, models
from suite import registry

TESTS = []
test = registry(TESTS)
SPARSE = 1 << 40  # bytes of a file that takes no room
MEMORY_MAX_KIB = 300 << 10  # a megabyte for each folder, and what a server takes; of any file it would be more


class Folder:
    """A copy of a small encoder, to be spoiled."""

    def __init__(self, parent, name):
        ignored = shutil.ignore_patterns("cases*", "outputs*")
        self.path = pathlib.Path(shutil.copytree(OWN / "bert", pathlib.Path(parent) / name, ignore=ignored))

    def config(self, **change):
        file = self.path / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **change}))

    def write(self, name, data):
        (self.path / name).write_bytes(data)

    def stretch(self, name):
        os.truncate(self.path / name, SPARSE)

    def replace(self, name, target):
        (self.path / name).unlink()
        (self.path / name).symlink_to(target)

    def tensors(self, change=lambda header: None, fill=None):
        """Writes the header again after a change; fill: what every byte of data becomes."""
        content = (self.path / "model.safetensors").read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header, data = json.loads(content[8:8 + length]), content[8 + length:]
        change(header)
        text = json.dumps(header).encode()
        self.write("model.safetensors", struct.pack("<Q", len(text)) + text + (data if fill is None else fill * len(data)))

    def index(self, file):
        content = (self.path / "model.safetensors").read_bytes()
        names = [name for name in json.loads(content[8:8 + struct.unpack("<Q", content[:8])[0]]) if name != "__metadata__"]
        (self.path / "model.safetensors").unlink()
        self.write("model.safetensors.index.json", json.dumps({"weight_map": dict.fromkeys(names, file)}).encode())


def first(header):
    return header[min(name for name in header if name != "__metadata__")]


BROKEN = {
    "deep": (lambda at: at.write("config.json", b"[" * 100000), "maximum parsing depth"),
    "twice": (lambda at: at.write("config.json", b'{"model_type": "bert", "model_type": "gpt2"}'), "duplicate object key"),
    "not-utf8": (lambda at: at.write("config.json", b'{"model_type": "\xff"}'), "0xff"),
    "empty": (lambda at: at.write("config.json", b""), "config.json: the file is empty"),
    "no-end": (lambda at: at.stretch("config.json"), "config.json is no JSON"),
    "endless": (lambda at: at.replace("model.safetensors", "/dev/zero"), "model.safetensors: "),
    "layers": (lambda at: at.config(num_hidden_layers=10 ** 9), "num_hidden_layers is 1e+09"),
    "no-layers": (lambda at: at.config(num_hidden_layers=0), "0 layers"),
    "heads": (lambda at: at.config(num_attention_heads=3), "3 heads do not divide"),
    "negative": (lambda at: at.config(num_attention_heads=-4), "received -4"),
    "nested": (lambda at: at.config(num_attention_heads={"a": [1]}), "received an object"),
    "text": (lambda at: at.config(num_attention_heads="4"), 'received "4"'),
    "longest": (lambda at: at.config(max_position_embeddings=2 ** 40), "max_position_embeddings is 1.09951e+12"),
    "audio": (lambda at: at.config(model_type="wav2vec2"), '"wav2vec2", a model of audio that attnd cannot run; it runs whisper'),
    "quantized": (lambda at: at.config(quantization_config={"bits": 4}), "config.json has quantization_config"),
    "header": (lambda at: at.write("model.safetensors", b"\xff" * 7 + b"\x7f{}"), "claims a header of"),
    "huge-file": (lambda at: at.stretch("model.safetensors"), "the data, which has"),
    "outside": (lambda at: at.index("../../../../etc/passwd"), "no file name"),
    "absolute": (lambda at: at.index("/etc/passwd"), "no file name"),
    "itself": (lambda at: at.index("model.safetensors.index.json"), "not safetensors"),
    "linked": (lambda at: at.replace("model.safetensors", "/etc/passwd"), "not safetensors"),
    "uncountable": (lambda at: at.tensors(lambda header: first(header).update(shape=[2 ** 32, 2 ** 32])), "cannot be counted"),
    "lying": (lambda at: at.tensors(lambda header: first(header).update(data_offsets=[0, 4])), "has 4 bytes of data"),
    "no-rows": (lambda at: at.tensors(lambda header: first(header).update(shape=[0, 32], data_offsets=[0, 0])), "unused bytes"),
}
WITHOUT_TOKENIZER = {
    "t-empty": (lambda at: at.write("tokenizer.json", b""), "tokenizer.json: "),
    "t-deep": (lambda at: at.write("tokenizer.json", b"[" * 1000000), "maximum parsing depth"),
    "t-no-end": (lambda at: at.stretch("tokenizer.json"), "not JSON"),
}
SERVED = {
    "nan": lambda at: at.tensors(fill=b"\xff"),
    "plain": lambda at: None,
}
MISNAMED = ("two words", "x" * 65)


def make(parent):
    for name, (spoil, _) in {**BROKEN, **WITHOUT_TOKENIZER}.items():
        spoil(Folder(parent, name))
    for name, spoil in SERVED.items():
        spoil(Folder(parent, name))
    for name in MISNAMED:
        Folder(parent, name)
    (pathlib.Path(parent) / "no-model").mkdir()


def peak_kib(server):
    lines = pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@test
def hostile_folders_are_sentences(program):
    with tempfile.TemporaryDirectory() as parent:
        make(parent)
        with Server(program, environment={"ATTND_MODELS": parent}) as server:
            for name, (_, reason) in BROKEN.items():
                assert reason in has(server, name, state="broken")["reason"], (name, models(server)[name])
            for name, (_, reason) in WITHOUT_TOKENIZER.items():
                row = has(server, name, state="ready", tokenizer=False)
                assert reason in row["tokenizer_reason"], row
            assert set(models(server)) == {*BROKEN, *WITHOUT_TOKENIZER, *SERVED, "demo"}
            said = [line for line in server.lines if "because of their names" in line]
            assert len(said) == 1 and "folders=2" in said[0], server.lines
            for name in (*SERVED, *WITHOUT_TOKENIZER):
                reply = server.client().post(f"/v1/models/{name}/attention", {"inputs": {"ids": [1, 2, 3]}})
                assert reply.status == 200, (name, reply.body[:300])
            assert peak_kib(server) < MEMORY_MAX_KIB, peak_kib(server)
