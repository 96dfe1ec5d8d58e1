"""onnx_cases.py: node tests of the ONNX project as requests (Attention 23 to 25, Softmax 13, the normalisations)."""

import math

from check import ATTENTION, Case, NotExpressible, normalise, normalise_numbers, send
from tensors import Tensor

HALF_RTOL = 2e-3  # results were rounded to float16, eleven bits, after every step
FLOAT64 = 11      # TensorProto.DOUBLE, for softmax_precision


def kind_of(vector):
    return vector["op_type"]


def translate(vector):
    case = Case(vector)
    if any(tensor.dtype == "float16" for tensor in case.outputs.values()):
        case.rtol = max(case.rtol, HALF_RTOL)
    TRANSLATIONS[vector["op_type"]](case)
    return case


def attention(case):
    given, attributes = case.inputs, case.attributes
    q, k, v = given["Q"], given["K"], given["V"]
    past_len = 0
    heads, kv_heads = attributes.get("q_num_heads"), attributes.get("kv_num_heads")
    options = {}
    if len(q.shape) == 3:
        options.update(num_heads=heads, kv_num_heads=kv_heads)
    if "scale" in attributes:
        options["scale"] = attributes["scale"]
    if attributes.get("softcap"):
        options["softcap"] = attributes["softcap"]
    if attributes.get("softmax_precision") == FLOAT64:
        options["compute"] = "float64"
    inputs = {"query": send(q), "key": send(k), "value": send(v)}
    if "past_key" in given:
        past_len = given["past_key"].shape[2]
        inputs.update(past_key=send(given["past_key"]), past_value=send(given["past_value"]))
    kv_len = k.shape[-2] + past_len
    request = {"inputs": inputs, "masks": masks(given, attributes, q.shape[-2], kv_len, past_len), "options": options}
    wanted = {"output": "Y"}
    wanted.update({name: name for name in ("present_key", "present_value") if name in case.outputs})
    mode = attributes.get("qk_matmul_output_mode", 0)
    if mode in (2, 3):
        wanted[{2: "masked", 3: "attention"}[mode]] = "qk_matmul_output"
    if "qk_matmul_output" not in case.outputs:
        wanted = {step: name for step, name in wanted.items() if name != "qk_matmul_output"}
    case.ask(ATTENTION, request, **wanted)
    if "qk_matmul_output" in case.outputs and mode in (0, 1):
        ask_scores(case, inputs, options, mode)


def ask_scores(case, inputs, options, mode):
    """Scores before the mask, without masks: attnd does not compute those of keys that nobody may attend to."""
    kept = {name: value for name, value in options.items() if mode == 1 or name != "softcap"}
    case.ask(ATTENTION, {"inputs": inputs, "options": kept}, scaled="qk_matmul_output")


def masks(given, attributes, q_len, kv_len, past_len):
    """ONNX counts positions from the cache: its causal offset is past_len, or nonpad_kv_seqlen - q_len per item."""
    result = {}
    mask = given.get("attn_mask")
    if mask is not None and mask.dtype == "bool":
        result["attend"] = send(mask.pad_last(kv_len, False))
    elif mask is not None:
        result["bias"] = send(mask.pad_last(kv_len, -math.inf))
    offset = past_len
    if "nonpad_kv_seqlen" in given:
        lengths = given["nonpad_kv_seqlen"].data
        result["key_lengths"] = lengths
        offset = [length - q_len for length in lengths]
    left, right = attributes.get("left_window_size", -1), attributes.get("right_window_size", -1)
    is_causal = bool(attributes.get("is_causal"))
    if is_causal:
        result["causal"] = {"align": "top_left", "offset": offset}
    if left >= 0 or right >= 0:
        if not is_causal and offset != kv_len - q_len:
            raise NotExpressible("an offset for masks.window without causal")
        result["window"] = [left if left >= 0 else None, right if right >= 0 else None]
    return result


def merge_heads(x):
    batch, heads, length, width = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * width)


def softmax(case):
    """softmax(x) = the weights of a query of zeros whose bias is x; the axis is made the last."""
    x = case.inputs["x"]
    rank = len(x.shape)
    axis = case.attributes.get("axis", -1) % rank
    swap = list(range(rank))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    moved = x.transpose(*swap)
    kv_len = moved.shape[-1]
    q_len = len(moved.data) // kv_len
    request = {"inputs": {"query": send(Tensor.filled((q_len, 1), 0.0)), "key": send(Tensor.filled((kv_len, 1), 0.0))},
               "masks": {"bias": send(moved.reshape(q_len, kv_len))}}
    case.ask(ATTENTION, request, attention=("y", lambda answer: answer.reshape(*moved.shape).transpose(*swap)))


def layer_normalization(case):
    given, attributes = case.inputs, case.attributes
    normalise(case, given["X"], attributes.get("axis", -1), "layer", attributes.get("epsilon", 1e-5), given["W"],
              given.get("B"), "Y")
    normalise_numbers(case, given["X"], attributes.get("axis", -1), attributes.get("epsilon", 1e-5), "Mean", "InvStdDev")


def rms_normalization(case):
    given, attributes = case.inputs, case.attributes
    normalise(case, given["X"], attributes.get("axis", -1), "rms", attributes.get("epsilon", 1e-5), given["W"], None,
              "Y")


def rotary_embedding(case):
    """The rotated queries of a self-attention, whose output is not asked for."""
    given, attributes = case.inputs, case.attributes
    rope = {"layout": "interleaved" if attributes.get("interleaved") else "half",
            "cos": send(given["cos_cache"]), "sin": send(given["sin_cache"])}
    if "position_ids" in given:
        rope["positions"] = send(given["position_ids"])
    request = {"inputs": {"query": send(given["input"])}, "options": {"rope": rope}}
    if len(given["input"].shape) == 3:
        request["options"]["num_heads"] = attributes["num_heads"]
    merge = merge_heads if len(given["input"].shape) == 3 else None
    case.ask(ATTENTION, request, q_rotated=("output", merge))


def linear_attention(case):
    """The update rules, with the state before and behind."""
    given, attributes = case.inputs, case.attributes
    options = {"num_heads": attributes["q_num_heads"], "kv_num_heads": attributes["kv_num_heads"],
               "mechanism": {"type": "linear", "update_rule": attributes.get("update_rule", "gated_delta")}}
    if "scale" in attributes:
        options["scale"] = attributes["scale"]
    inputs = {name: send(tensor) for name, tensor in given.items()}
    case.ask(ATTENTION, {"inputs": inputs, "options": options}, output="output", present_state="present_state")


TRANSLATIONS = {"Attention": attention, "Softmax": softmax, "LayerNormalization": layer_normalization,
                "RMSNormalization": rms_normalization, "RotaryEmbedding": rotary_embedding,
                "LinearAttention": linear_attention}
