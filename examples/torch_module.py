#!/usr/bin/env python3
"""
torch_module.py [FILE]: an attention module of PyTorch on the server: its state_dict goes as it is.

Without FILE it makes a torch.nn.MultiheadAttention, which needs PyTorch. A FILE in the safetensors format needs only
Python. It holds a state_dict, the module's input "x", its "output", and its "attention" where it returns one. Its
metadata "request" is the rest of the request, such as {"options": {"num_heads": 8}}.
tests/others/examples/modules/record.py writes such files. ATTND_URL names another server.
"""

import json
import sys

from safetensors_client import attention, unpack

# Parameters of attention modules, and the part of "weights" that each is here.
PARTS = {"in_proj": "qkv", "out_proj": "output",  # torch.nn.MultiheadAttention
         "q_lin": "query", "k_lin": "key", "v_lin": "value", "out_lin": "output",  # modules of four nn.Linear
         "q_proj": "query", "k_proj": "key", "v_proj": "value",
         "Wq": "query", "Wk": "key", "Wv": "value", "Wo": "output",
         "qkv_proj": "qkv", "layernorm": "norm"}  # one nn.Linear for all three, and a norm behind the residual
TOLERANCE = 1e-5  # both compute in float32, and add up in different orders


def member(name):
    """weights.qkv.weight of in_proj_weight, weights.query.bias of q_lin.bias."""
    part, _, kind = name.replace("_weight", ".weight").replace("_bias", ".bias").rpartition(".")
    if part not in PARTS:
        sys.exit(f"{name} is not a parameter that PARTS names; add its part of the weights there")
    return f"weights.{PARTS[part]}.{kind}"


def from_torch():
    """(state_dict, input and outputs, the rest of the request) of a module that PyTorch makes and runs."""
    import torch
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(64, 8, batch_first=True).eval()
    x = torch.randn(2, 5, 64)
    is_token = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])
    with torch.no_grad():
        output, weights = module(x, x, x, key_padding_mask=is_token == 0, average_attn_weights=False)
    tensors = {**module.state_dict(), "x": x, "output": output, "attention": weights}
    request = {"masks": {"padding": is_token.tolist()}, "options": {"num_heads": 8}}
    return {name: item.contiguous().numpy() for name, item in tensors.items()}, request


def from_file(path):
    with open(path, "rb") as file:
        tensors, metadata = unpack(file.read())
    return tensors, json.loads(metadata["request"])


def floats(item):
    return memoryview(item.tobytes()).cast("f")


def main():
    tensors, request = from_file(sys.argv[1]) if len(sys.argv) > 1 else from_torch()
    x = tensors.pop("x")
    expected = {name: tensors.pop(name) for name in ("attention", "output") if name in tensors}
    # The profile says how PyTorch lays out weights: nn.Linear keeps (out, in), and computes x W^T.
    options = {"profile": "torch_mha", "return": list(expected), **request.pop("options")}
    answer, _ = attention({"inputs.query": x, **{member(name): item for name, item in tensors.items()}},
                          path="/v1/multi-head-attention", options=options, **request)
    differences = []
    for name, wanted in expected.items():
        assert tuple(answer[name].shape) == tuple(wanted.shape), f"{name} should be {tuple(wanted.shape)}"
        differences.append(max(abs(mine - theirs) for mine, theirs in zip(floats(answer[name]), floats(wanted))))
        print(name, tuple(wanted.shape), "the same" if differences[-1] <= TOLERANCE else f"off by {differences[-1]:g}")
    return max(differences) > TOLERANCE


if __name__ == "__main__":
    sys.exit(main())
