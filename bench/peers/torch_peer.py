#!/usr/bin/env python3
"""
torch_peer.py: PyTorch as a contender; speaks the lines of core_bench.c.

scaled_dot_product_attention where this PyTorch has it and the weights are not wanted, else the formula written out.
"""

import math
import os
import sys
import time

import torch
import torch.nn.functional as F

import torch_model

SAMPLES = 32
GROUP, WIDENING, NORM_EPS = 4, 4, 1e-5
Q, K, V, WEIGHTS, GRAD_OUTPUT, GATE, UP, DOWN = 0, 1, 2, 3, 7, 8, 9, 10
WORDS = {"grouped", "past", "mean", "layernorm", "rmsnorm", "prenorm", "gate", "bare", "linear", "gradients"}


class Case:
    """One case, its inputs and the results of the last run."""

    def __init__(self, text):
        kind, dtype, *rest = text.split()
        (self.threads, self.batch, self.heads, self.q_len, self.kv_len, self.dim, causal, self.window, maps) = \
            map(int, rest[:9])
        self.words = set(rest[9:])
        self.is_layer, self.is_block = kind in ("layer", "block"), kind == "block"
        self.is_causal, self.with_maps = causal != 0, maps != 0 or "mean" in self.words
        self.dtype = torch.float32 if dtype == "float32" else torch.float64
        self.features = self.heads * self.dim
        self.output = self.maps = self.mask = self.gradients = None
        torch.set_num_threads(self.threads)
        if self.is_layer:
            self.make_layer()
        else:
            kv_heads = self.heads // (GROUP if "grouped" in self.words else 1)
            self.q = self.stream(Q, (self.batch, self.heads, self.q_len, self.dim))
            self.k = self.stream(K, (self.batch, kv_heads, self.kv_len, self.dim))
            self.v = self.stream(V, (self.batch, kv_heads, self.kv_len, self.dim))
        if "gradients" in self.words:
            self.make_differentiable()
        if self.is_causal or self.window:
            self.mask = self.make_mask()

    def make_layer(self):
        features = self.features
        self.has_norm = "bare" not in self.words and \
            (self.is_block or bool(self.words & {"layernorm", "rmsnorm", "prenorm"}))
        self.x = self.stream(Q, (self.batch, self.q_len, features))
        self.weights = [self.stream(WEIGHTS + i, (features, features)) for i in range(4)]
        is_gated, is_bare = "gate" in self.words, "bare" in self.words
        self.gate = self.stream(GATE, (features, features)) if is_gated and not is_bare else None
        if self.is_block:
            wide = WIDENING * features + (features // 2 if is_gated and is_bare else 0)
            self.up, self.down = self.stream(UP, (features, wide)), self.stream(DOWN, (wide, features))
        if "past" in self.words:  # whole, with room for the new keys
            past, whole = self.kv_len - self.q_len, (self.batch, self.heads, self.kv_len, self.dim)
            self.cache = [torch.zeros(whole, dtype=self.dtype) for _ in range(2)]
            for stream, cache in zip((K, V), self.cache):
                cache[:, :, :past] = self.stream(stream, (self.batch, self.heads, past, self.dim))

    def make_differentiable(self):
        """What the gradient is taken of: the three that are compared come first."""
        if self.is_layer:
            self.of = [self.x, self.weights[1], self.weights[2], self.weights[0], self.weights[3]]
            self.of += [self.up, self.down] if self.is_block else []
            shape = self.x.shape
        else:
            self.of, shape = [self.q, self.k, self.v], self.q.shape
        self.grad_output = self.stream(GRAD_OUTPUT, shape)
        for tensor in self.of:
            tensor.requires_grad_()

    def stream(self, stream, shape):
        """The numbers of bench_case.h; all arithmetic modulo 2^32."""
        low = 0xFFFFFFFF
        h = (torch.arange(math.prod(shape), dtype=torch.int64) + stream * 0x9E3779B9) & low
        h ^= h >> 16
        h = (h * 0x85EBCA6B) & low
        h ^= h >> 13
        h = (h * 0xC2B2AE35) & low
        h ^= h >> 16
        gain = 1 / 16 if stream >= WEIGHTS and stream != GRAD_OUTPUT else 2
        return (((h >> 9).to(torch.float64) / 4194304 - 1) * gain).to(self.dtype).reshape(shape)

    def make_mask(self):
        """True where a query attends, bottom right."""
        i = torch.arange(self.q_len).reshape(-1, 1) + self.kv_len - self.q_len
        j = torch.arange(self.kv_len).reshape(1, -1)
        mask = j <= i if self.is_causal else torch.ones(self.q_len, self.kv_len, dtype=torch.bool)
        return mask & (j > i - self.window) if self.window else mask

    def attend(self, q, k, v):
        if "linear" in self.words:
            return linear(q, k, v)
        if "grouped" in self.words:
            k, v = (x.repeat_interleave(GROUP, dim=1) for x in (k, v))
        if hasattr(F, "scaled_dot_product_attention") and not self.with_maps:
            is_plain_causal = self.is_causal and not self.window and self.q_len == self.kv_len
            return F.scaled_dot_product_attention(q, k, v, attn_mask=None if is_plain_causal else self.mask,
                                                  is_causal=is_plain_causal)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.dim)
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        if self.with_maps:
            self.maps = weights.mean(dim=1) if "mean" in self.words else weights
        return torch.matmul(weights, v)

    def split(self, x):
        return x.reshape(self.batch, self.q_len, self.heads, self.dim).transpose(1, 2)

    def norm(self, x):
        if "rmsnorm" in self.words:
            return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + NORM_EPS)
        return F.layer_norm(x, (self.features,), eps=NORM_EPS)

    def branch(self, x, own):
        """A residual and a norm around own, where the case has them."""
        if not self.has_norm:
            return own(x)
        return x + own(self.norm(x)) if "prenorm" in self.words else self.norm(x + own(x))

    def attend_heads(self, x):
        q, k, v = (self.split(torch.matmul(x, weight)) for weight in self.weights[:3])
        if "past" in self.words:
            for cache, new in zip(self.cache, (k, v)):
                cache[:, :, -self.q_len:] = new
            k, v = self.cache
        context = self.attend(q, k, v).transpose(1, 2).reshape(self.batch, self.q_len, self.features)
        if self.gate is not None:
            context = context * torch.sigmoid(torch.matmul(x, self.gate))
        return torch.matmul(context, self.weights[3])

    def feed_forward(self, x):
        act = F.relu if "bare" in self.words else F.gelu
        return torch.matmul(act(torch.matmul(x, self.up)), self.down)

    def forward(self):
        if not self.is_layer:
            return self.attend(self.q, self.k, self.v)
        y = self.branch(self.x, self.attend_heads)
        return self.branch(y, self.feed_forward) if self.is_block else y

    def run(self):
        if "gradients" not in self.words:
            self.output = self.forward()
            return
        with torch.enable_grad():
            self.gradients = torch.autograd.grad(self.forward(), self.of, self.grad_output)
        self.output = self.gradients[0]


def linear(q, k, v):
    """Linear attention without a mask: elu(x) + 1 for both."""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    sums = torch.matmul(k.transpose(-2, -1), v)
    return torch.matmul(q, sums) / torch.matmul(q, k.sum(dim=-2).unsqueeze(-1))


def why_not(text):
    """What this peer does not know of a case; empty: nothing."""
    kind, _, *rest = text.split()
    words = set(rest[9:])
    if kind not in ("attention", "layer", "block"):
        return "kind " + kind
    if "linear" in words and rest[6] != "0":
        return "linear attention with a causal mask"
    if "past" in words and kind == "attention":
        return "keys in two arrays"
    return " ".join(sorted(words - WORDS))


def samples(tensor):
    flat = tensor.reshape(-1)
    chosen = [flat[k * 2654435761 % flat.numel()].item() for k in range(SAMPLES)]
    return " ".join(map(repr, [flat.abs().to(torch.float64).mean().item()] + chosen))


def results(case):
    """Of a case, or of a model, which has no gradients."""
    text, gradients = "output " + samples(case.output), getattr(case, "gradients", None)
    if gradients is not None:
        return text + " key " + samples(gradients[1]) + " value " + samples(gradients[2])
    return text if case.maps is None else text + " maps " + samples(case.maps)


def timed(case, runs):
    times = []
    with torch.no_grad():
        for _ in range(runs):
            start = time.perf_counter()
            case.run()
            times.append((time.perf_counter() - start) * 1e3)
    return "ms " + " ".join(map(repr, times))


def obey(case, line):
    """The answer to one line and the case from now on."""
    word, _, rest = line.partition(" ")
    if word == "about":
        return "about PyTorch " + torch.__version__, case
    if word == "prepare" and rest.startswith("model "):
        return "ready %d" % os.getpid(), torch_model.Model(rest)
    if word == "prepare" and why_not(rest):
        return "unsupported " + why_not(rest), None
    if word == "prepare":
        return "ready %d" % os.getpid(), Case(rest)
    if case is None and word in ("run", "results"):
        return "error nothing to run", None
    if word == "run":
        return timed(case, int(rest)), case
    if word == "results":
        return results(case), case
    if word == "done":
        return "done", None
    return "error unknown: " + line, case


def read_line():
    """Byte by byte: what a child is to read must not wait in a buffer of its parent."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return None
        line += byte
    return line.decode().rstrip("\n")


def main():
    """A child for each case: importing torch takes a second, and its memory and threads are to be fresh."""
    case, is_child = None, False
    while (line := read_line()) is not None:
        if line.startswith("prepare ") and not is_child:
            child = os.fork()
            if child != 0:
                os.waitpid(child, 0)
                continue
            is_child = True
        answer, case = obey(case, line)
        print(answer, flush=True)
        if line == "done" and is_child:
            os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
