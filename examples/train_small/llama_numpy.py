"""
llama_numpy.py: reads the folder of the small model, and runs its LlamaForCausalLM in float64. NumPy alone.
"""

import math
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "train_demo"))

from model_numpy import Model, softmax  # noqa: E402


def turned(x, angles):
    """Rotary positions: feature f turns with feature f + half."""
    first, second = np.split(x, 2, -1)
    cosines, sines = np.cos(angles), np.sin(angles)
    return np.concatenate((first * cosines - second * sines, second * cosines + first * sines), -1)


class Llama(Model):
    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T

    def norm(self, x, name):
        size = np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"])
        return x / size * self.weights[name + ".weight"]

    def run(self, ids, ablate=()):
        """
        Returns the maps (layers, heads, tokens, tokens) and the logits (tokens, vocabulary). The context of each
        (layer, head) in `ablate` is 0.
        """
        n, d_k = len(ids), self.config["head_dim"]
        angles = np.arange(n)[:, None] * self.config["rope_theta"] ** (-np.arange(0, d_k, 2) / d_k)
        future = np.triu(np.full((n, n), -np.inf), 1)
        words = self.weights["model.embed_tokens.weight"]
        x, maps = words[ids], []
        for layer in range(self.layers):
            name = f"model.layers.{layer}"
            inner = self.norm(x, name + ".input_layernorm")
            q, k, v = (self.linear(inner, f"{name}.self_attn.{part}_proj").reshape(n, self.heads, d_k)
                       .transpose(1, 0, 2) for part in "qkv")
            attention = softmax(turned(q, angles) @ turned(k, angles).transpose(0, 2, 1) / math.sqrt(d_k) + future)
            maps.append(attention)
            context = attention @ v
            for _, head in (pair for pair in ablate if pair[0] == layer):
                context[head] = 0
            x = x + self.linear(context.transpose(1, 0, 2).reshape(n, -1), name + ".self_attn.o_proj")
            inner = self.norm(x, name + ".post_attention_layernorm")
            gate, up = (self.linear(inner, f"{name}.mlp.{part}_proj") for part in ("gate", "up"))
            x = x + self.linear(gate / (1 + np.exp(-gate)) * up, name + ".mlp.down_proj")
        return np.array(maps), self.norm(x, "model.norm") @ words.T
