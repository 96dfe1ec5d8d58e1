#!/usr/bin/env python3
"""core_ctypes.py: the library from Python by ctypes, without a server and without a package.

    python3 core_ctypes.py [PATH/libattn.so]
"""
import ctypes
import sys
from ctypes import c_bool, c_double, c_int, c_size_t, c_void_p

SIZES = ("batch", "heads", "q_len", "kv_len", "d_k", "d_v", "kv_heads")


class Strides(ctypes.Structure):
    _fields_ = [(name, c_size_t) for name in ("batch", "head", "row")]


class Args(ctypes.Structure):
    """attn_attention_args of attn/attention.h; members that are not given are 0."""
    _fields_ = [("compute", c_int), *[(name, c_size_t) for name in SIZES], ("scale", c_double),
                ("causal", c_bool), ("has_window", c_bool), ("window_left", c_size_t), ("window_right", c_size_t),
                *[(name, c_void_p) for name in ("q", "k", "v", "mask", "out", "weights", "lse")],
                *[(name, Strides) for name in ("q_strides", "k_strides", "v_strides", "out_strides")]]


def floats(*numbers):
    return (ctypes.c_float * len(numbers))(*numbers)


library = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libattn.so")
q, k, v = floats(.3, .8, 1.2, .4, 1.2, 1.3), floats(.8, .3, .4, 1.2, 1.3, 1.2), floats(.2, .7, .9, .1, .4, .5)
out, weights = floats(*[0] * 6), floats(*[0] * 9)
arrays = {name: ctypes.addressof(array) for name, array in
          {"q": q, "k": k, "v": v, "out": out, "weights": weights}.items()}
args = Args(batch=1, heads=1, q_len=3, kv_len=3, d_k=2, d_v=2, causal=True, **arrays)
status = library.attn_attention(ctypes.byref(args), None, None, None)
if status != 0:
    sys.exit(f"attn_attention returned {status}")
for i in range(3):
    print("weights {:.4f} {:.4f} {:.4f}   out {:.4f} {:.4f}".format(*weights[3 * i:3 * i + 3], *out[2 * i:2 * i + 2]))
