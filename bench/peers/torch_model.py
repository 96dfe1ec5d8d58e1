"""torch_model.py: BERT and GPT-2 in PyTorch, one operation after another, with the maps of all layers kept."""

import functools
import json
import math
import pathlib
import struct

import torch
import torch.nn.functional as F


def read_tensors(path):
    """{name: tensor} of a safetensors file of float32."""
    data = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, tensor in json.loads(data[8:8 + length]).items():
        start, stop = tensor["data_offsets"]
        flat = torch.frombuffer(data, dtype=torch.float32, count=(stop - start) // 4, offset=8 + length + start)
        tensors[name] = flat.reshape(tensor["shape"])
    return tensors


class Model:
    """A model, its input, and the results of the last run; made from "model FOLDER TOKENS THREADS"."""

    def __init__(self, text):
        _, folder, tokens, threads = text.split()
        torch.set_num_threads(int(threads))
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        self.tensors = read_tensors(pathlib.Path(folder) / "model.safetensors")
        self.is_gpt = config["model_type"] == "gpt2"
        self.layers = config.get("num_hidden_layers") or config["n_layer"]
        self.heads = config.get("num_attention_heads") or config["n_head"]
        self.eps = config.get("layer_norm_eps") or config["layer_norm_epsilon"]
        n = self.tokens = int(tokens)
        self.ids = torch.arange(n) * 7919 % 30000
        self.mask = torch.ones(n, n, dtype=torch.bool).triu(1) if self.is_gpt else None
        self.output, self.kept = None, []
        self.gelu = functools.partial(F.gelu, approximate="tanh") if self.is_gpt else F.gelu

    @property
    def maps(self):
        return torch.stack(self.kept)

    def affine(self, x, name):
        """BERT keeps matrices (out, in), GPT-2 (in, out)."""
        weight, bias = self.tensors[name + ".weight"], self.tensors[name + ".bias"]
        return torch.addmm(bias, x, weight) if self.is_gpt else F.linear(x, weight, bias)

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.tensors[name + ".weight"], self.tensors[name + ".bias"], self.eps)

    def attend(self, *roles):
        q, k, v = (x.reshape(self.tokens, self.heads, -1).transpose(0, 1) for x in roles)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        if self.mask is not None:
            scores = scores.masked_fill(self.mask, torch.finfo(torch.float32).min)
        maps = torch.softmax(scores, dim=-1)
        self.kept.append(maps)
        return torch.matmul(maps, v).transpose(0, 1).reshape(self.tokens, -1)

    def bert(self):
        words, positions, types = (self.tensors["embeddings.%s_embeddings.weight" % of]
                                   for of in ("word", "position", "token_type"))
        x = self.norm(words[self.ids] + positions[:self.tokens] + types[0], "embeddings.LayerNorm")
        for layer in range(self.layers):
            at = "encoder.layer.%d." % layer
            roles = [self.affine(x, at + "attention.self." + role) for role in ("query", "key", "value")]
            attended = self.affine(self.attend(*roles), at + "attention.output.dense")
            y = self.norm(attended + x, at + "attention.output.LayerNorm")
            inner = self.gelu(self.affine(y, at + "intermediate.dense"))
            x = self.norm(self.affine(inner, at + "output.dense") + y, at + "output.LayerNorm")
        return x

    def gpt(self):
        x = self.tensors["wte.weight"][self.ids] + self.tensors["wpe.weight"][:self.tokens]
        for layer in range(self.layers):
            at = "h.%d." % layer
            roles = self.affine(self.norm(x, at + "ln_1"), at + "attn.c_attn").chunk(3, dim=-1)
            y = self.affine(self.attend(*roles), at + "attn.c_proj") + x
            inner = self.gelu(self.affine(self.norm(y, at + "ln_2"), at + "mlp.c_fc"))
            x = self.affine(inner, at + "mlp.c_proj") + y
        return self.norm(x, "ln_f")

    def run(self):
        self.kept = []
        self.output = self.gpt() if self.is_gpt else self.bert()
