#!/usr/bin/env python3
"""
record.py: writes what PyTorch makes of three attention modules, for the test of examples/torch_module.py.

It needs PyTorch and NumPy. The files here were recorded with Debian 12's python3-torch 1.13.1.
"""

import json
import math
import pathlib
import sys

import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[3] / "examples"))

from safetensors_client import pack  # noqa: E402

D_MODEL, HEADS = 8, 2
IS_TOKEN = [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]


def heads_of(x):
    return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)


def attend(q, k, v, hidden):
    scores = heads_of(q) @ heads_of(k).transpose(-2, -1) / math.sqrt(D_MODEL // HEADS)
    weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
    return (weights @ heads_of(v)).transpose(1, 2).reshape(q.shape), weights


class Separate(nn.Module):
    """Four nn.Linear, and a mask of padding."""

    def __init__(self):
        super().__init__()
        self.q_lin, self.k_lin, self.v_lin, self.out_lin = (nn.Linear(D_MODEL, D_MODEL) for _ in range(4))

    def forward(self, x, is_token):
        context, weights = attend(self.q_lin(x), self.k_lin(x), self.v_lin(x), is_token[:, None, None, :] == 0)
        return self.out_lin(context), weights


class Fused(nn.Module):
    """One nn.Linear for q, k and v; causal, with a residual and LayerNorm behind it."""

    def __init__(self):
        super().__init__()
        self.qkv_proj, self.out_proj = nn.Linear(D_MODEL, 3 * D_MODEL), nn.Linear(D_MODEL, D_MODEL)
        self.layernorm = nn.LayerNorm(D_MODEL)

    def forward(self, x):
        later = torch.triu(torch.ones(x.shape[1], x.shape[1]), diagonal=1).bool()
        context, weights = attend(*self.qkv_proj(x).chunk(3, dim=-1), later)
        return self.layernorm(x + self.out_proj(context)), weights


def write(name, module, x, result, request):
    tensors = {**module.state_dict(), "x": x, "output": result[0], "attention": result[1]}
    arrays = {key: item.detach().contiguous().numpy() for key, item in tensors.items()}
    (HERE / f"{name}.safetensors").write_bytes(pack(arrays, request=json.dumps(request), torch=torch.__version__))


def main():
    torch.manual_seed(0)
    x, is_token = torch.randn(2, 5, D_MODEL), torch.tensor(IS_TOKEN)
    padding = {"masks": {"padding": IS_TOKEN}, "options": {"num_heads": HEADS}}
    module = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
    write("multihead_attention", module, x,
          module(x, x, x, key_padding_mask=is_token == 0, average_attn_weights=False), padding)
    module = Separate()
    write("separate", module, x, module(x, is_token), padding)
    module = Fused()
    for parameter in module.layernorm.parameters():
        nn.init.normal_(parameter)
    write("fused", module, x, module(x), {"masks": {"causal": True}, "options": {
        "num_heads": HEADS, "residual": True, "norm": {"type": "layer"}}})


if __name__ == "__main__":
    main()
