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
Q, K, V, WEIGHTS, GRAD_OUTPUT = 0, 1, 2, 3, 7


class Case:
    """One case, its inputs and the results of the last run."""

    def __init__(self, text):
        kind, dtype, *numbers = text.split()
        (self.threads, self.batch, self.heads, self.q_len, self.kv_len, self.dim, causal, self.window, maps) = \
            map(int, numbers)
        self.is_layer, self.is_causal, self.with_maps = kind == "layer", causal != 0, maps != 0
        self.is_gradients = kind == "gradients"
        self.dtype = torch.float32 if dtype == "float32" else torch.float64
        self.features = self.heads * self.dim
        self.output = self.maps = self.mask = None
        torch.set_num_threads(self.threads)
        if self.is_layer:
            self.x = self.stream(Q, (self.batch, self.q_len, self.features))
            self.weights = [self.stream(WEIGHTS + i, (self.features, self.features)) for i in range(4)]
        else:
            self.q = self.stream(Q, (self.batch, self.heads, self.q_len, self.dim))
            self.k = self.stream(K, (self.batch, self.heads, self.kv_len, self.dim))
            self.v = self.stream(V, (self.batch, self.heads, self.kv_len, self.dim))
        if self.is_gradients:
            self.grad_output = self.stream(GRAD_OUTPUT, (self.batch, self.heads, self.q_len, self.dim))
            for tensor in (self.q, self.k, self.v):
                tensor.requires_grad_()
        if self.is_causal or self.window:
            self.mask = self.make_mask()

    def stream(self, stream, shape):
        """The numbers of bench_case.h; all arithmetic modulo 2^32."""
        low = 0xFFFFFFFF
        h = (torch.arange(math.prod(shape), dtype=torch.int64) + stream * 0x9E3779B9) & low
        h ^= h >> 16
        h = (h * 0x85EBCA6B) & low
        h ^= h >> 13
        h = (h * 0xC2B2AE35) & low
        h ^= h >> 16
        gain = 1 / 16 if WEIGHTS <= stream < GRAD_OUTPUT else 2
        return (((h >> 9).to(torch.float64) / 4194304 - 1) * gain).to(self.dtype).reshape(shape)

    def make_mask(self):
        """True where a query attends, bottom right."""
        i = torch.arange(self.q_len).reshape(-1, 1) + self.kv_len - self.q_len
        j = torch.arange(self.kv_len).reshape(1, -1)
        mask = j <= i if self.is_causal else torch.ones(self.q_len, self.kv_len, dtype=torch.bool)
        return mask & (j > i - self.window) if self.window else mask

    def attend(self, q, k, v):
        if hasattr(F, "scaled_dot_product_attention") and not self.with_maps:
            is_plain_causal = self.is_causal and not self.window and self.q_len == self.kv_len
            return F.scaled_dot_product_attention(q, k, v, attn_mask=None if is_plain_causal else self.mask,
                                                  is_causal=is_plain_causal)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.dim)
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        self.maps = weights if self.with_maps else None
        return torch.matmul(weights, v)

    def split(self, x):
        return x.reshape(self.batch, self.q_len, self.heads, self.dim).transpose(1, 2)

    def run(self):
        if self.is_gradients:
            with torch.enable_grad():
                context = self.attend(self.q, self.k, self.v)
                self.output = torch.autograd.grad(context, (self.q, self.k, self.v), self.grad_output)[0]
            return
        if not self.is_layer:
            self.output = self.attend(self.q, self.k, self.v)
            return
        q, k, v = (self.split(torch.matmul(self.x, weight)) for weight in self.weights[:3])
        context = self.attend(q, k, v).transpose(1, 2).reshape(self.batch, self.q_len, self.features)
        self.output = torch.matmul(context, self.weights[3])


def samples(tensor):
    flat = tensor.reshape(-1)
    chosen = [flat[k * 2654435761 % flat.numel()].item() for k in range(SAMPLES)]
    return " ".join(map(repr, [flat.abs().to(torch.float64).mean().item()] + chosen))


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
    if word == "prepare" and len(rest.split()) > 11:
        return "unsupported variant", None
    if word == "prepare":
        return "ready %d" % os.getpid(), Case(rest)
    if case is None and word in ("run", "results"):
        return "error nothing to run", None
    if word == "run":
        return timed(case, int(rest)), case
    if word == "results":
        maps = "" if case.maps is None else " maps " + samples(case.maps)
        return "output " + samples(case.output) + maps, case
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
