"""
model_numpy.py: reads a folder as transformers writes it, and runs its BertForMaskedLM in float64. NumPy alone.
"""

import json
import math
import pathlib

import numpy as np

TYPES = {"F16": np.float16, "F32": np.float32}
erf = np.frompyfunc(math.erf, 1, 1)


def read_safetensors(path):
    """name -> array: eight bytes of length, a JSON header, the bytes of the tensors."""
    raw = pathlib.Path(path).read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, entry in json.loads(raw[8:start]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(raw[start + begin:start + end], TYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    """Writes float16 arrays, in the order of their names."""
    header, size = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        header[name] = {"dtype": "F16", "shape": list(tensors[name].shape),
                        "data_offsets": [size, size + tensors[name].nbytes]}
        size += tensors[name].nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text +
                                   b"".join(tensors[name].tobytes() for name in sorted(tensors)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)).astype(np.float64))


class Model:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = {name: tensor.astype(np.float64)
                        for name, tensor in read_safetensors(folder / "model.safetensors").items()}
        self.layers, self.heads = self.config["num_hidden_layers"], self.config["num_attention_heads"]

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred * centred).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return centred / deviation * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def run(self, ids, segments=None, ablate=()):
        """
        Returns the maps (layers, heads, tokens, tokens) and the logits (tokens, vocabulary). The context of each
        (layer, head) in `ablate` is 0.
        """
        n = len(ids)
        word, position, segment = (self.weights[f"bert.embeddings.{kind}_embeddings.weight"]
                                   for kind in ("word", "position", "token_type"))
        x = word[ids] + position[:n] + segment[segments or [0] * n]
        x = self.norm(x, "bert.embeddings.LayerNorm")
        maps = []
        for layer in range(self.layers):
            name = f"bert.encoder.layer.{layer}"
            q, k, v = (self.linear(x, f"{name}.attention.self.{part}").reshape(n, self.heads, -1).transpose(1, 0, 2)
                       for part in ("query", "key", "value"))
            attention = softmax(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]))
            maps.append(attention)
            context = attention @ v
            for _, head in (pair for pair in ablate if pair[0] == layer):
                context[head] = 0
            mixed = self.linear(context.transpose(1, 0, 2).reshape(n, -1), f"{name}.attention.output.dense")
            x = self.norm(x + mixed, f"{name}.attention.output.LayerNorm")
            wide = gelu(self.linear(x, f"{name}.intermediate.dense"))
            x = self.norm(x + self.linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        head = self.norm(gelu(self.linear(x, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm")
        return np.array(maps), head @ word.T + self.weights["cls.predictions.bias"]
