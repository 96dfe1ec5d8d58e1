"""torch_cases.py: calls of PyTorch and of transformers as requests."""

import math

from check import ATTENTION, LAYER, Case, NotExpressible, normalise, send
from tensors import Tensor

def kind_of(vector):
    return vector["name"].split("_")[0]


def translate(vector):
    case = Case(vector)
    name = vector["name"]
    for start, translation in TRANSLATIONS.items():
        if name.startswith(start):
            translation(case)
            return case
    raise NotExpressible("a translation of " + vector["call"])


def sdpa(case):
    given, attributes = case.inputs, case.attributes
    q, k, v = (to_rank_4(given[name]) for name in ("query", "key", "value"))
    request = {"inputs": {"query": send(q), "key": send(k), "value": send(v)}, "masks": {}, "options": {}}
    if attributes.get("is_causal"):
        request["masks"]["causal"] = {"align": "top_left"}
    elif attributes.get("attn_mask") == "causal_lower_right":
        request["masks"]["causal"] = True
    if "attn_mask" in given:
        mask = given["attn_mask"]
        request["masks"]["attend" if mask.dtype == "bool" else "bias"] = send(mask)
    if "scale" in attributes:
        request["options"]["scale"] = attributes["scale"]
    if q.dtype == "float64":
        request["options"].update(compute="float64", format="base64")
    shapes = {name: tensor.shape for name, tensor in case.outputs.items()}
    case.ask(ATTENTION, request, output=("output", lambda answer: answer.reshape(*shapes["output"])),
             attention=("attn_weights", lambda answer: answer.reshape(*shapes["attn_weights"])))


def to_rank_4(x):
    """Leading dimensions are all batch to PyTorch."""
    return x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:])


def flex(case):
    given, attributes, name = case.inputs, case.attributes, case.vector["name"]
    request = {"inputs": {part: send(given[part]) for part in ("query", "key", "value")}, "masks": {}, "options": {}}
    if "window" in attributes:
        request["masks"]["window"] = attributes["window"]
    elif name.endswith("causal"):
        request["masks"]["causal"] = True
    elif "prefix_len" in attributes:
        request["masks"]["blocks"] = {"pattern": "prefix", "length": attributes["prefix_len"]}
    elif "materialized_mask" in given:
        request["masks"]["attend"] = send(given["materialized_mask"])
    if "softcap" in attributes:
        request["options"]["softcap"] = attributes["softcap"]
    case.ask(ATTENTION, request, output="output", lse="lse")


def mha_bias_kv(case):
    """A key and a value of the layer's own, behind all others: a cache of one position, which stands before them."""
    given, heads = case.inputs, case.attributes["num_heads"]
    batch, length, _ = given["key"].shape
    inputs = {name: send(given[name]) for name in ("query", "key", "value")}
    for name in ("key", "value"):
        own = given[f"bias_{name[0]}"]
        inputs[f"past_{name}"] = send(Tensor((batch, heads, 1, own.shape[-1] // heads), own.data * batch))
    real = inverted(given["key_padding_mask"]).rows(length)
    masks = {"padding": send(Tensor((batch, length + 1), [item for row in real for item in [True, *row]], "bool"))}

    def first_to_last(weights):
        return Tensor(weights.shape, [item for row in weights.rows(length + 1) for item in [*row[1:], row[0]]])

    for name in ("attn_output", "attn_output_need_weights_false"):
        request = {"inputs": inputs, "masks": masks, "weights": torch_weights(given), "options": {"num_heads": heads}}
        case.ask(LAYER, request, output=name, attention=("attn_output_weights", first_to_last))


def linear_of(x, weight, bias=None):
    """y = x W^T + b for every token, as torch.nn.Linear; in double."""
    width = x.shape[-1]
    columns, shift = weight.rows(width), bias.data if bias else [0.0] * weight.shape[0]
    data = [math.fsum(map(float.__mul__, map(float, row), map(float, column))) + b
            for row in x.rows(width) for column, b in zip(columns, shift)]
    return Tensor((*x.shape[:-1], weight.shape[0]), data)


def heads_first(x, heads):
    """(batch, len, heads * d) to (batch, heads, len, d)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def llama4_temperature(case):
    """
    No rope, and a factor for every query: the queries are those of a layer, scaled here, and attended with by heads.
    """
    given, attributes = case.inputs, case.attributes
    heads, kv_heads = attributes["num_attention_heads"], attributes["num_key_value_heads"]
    hidden = given["hidden_states"]
    case.outside.append("the projections, and the temperature of each query")
    query = heads_first(linear_of(hidden, given["q_proj.weight"]), heads)
    d = query.shape[3]
    factors = [math.log1p((i + 1) // attributes["floor_scale"]) * attributes["attn_scale"] + 1
               for i in range(hidden.shape[1])]
    query = Tensor(query.shape, [x * factors[at // d % len(factors)] for at, x in enumerate(query.data)])
    key, value = (heads_first(linear_of(hidden, given[name + "_proj.weight"]), kv_heads) for name in "kv")
    request = {"inputs": {"query": send(query), "key": send(key), "value": send(value)},
               "masks": {"bias": send(given["attention_mask"])}}
    case.ask(ATTENTION, request, attention="attn_weights",
             output=("attn_output", lambda answer: linear_of(merged(answer), given["o_proj.weight"])))


def merged(x):
    """(batch, heads, len, d) to (batch, len, heads * d)."""
    batch, heads, length, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * d)


def gated_delta_rule(case):
    """(batch, len, heads, d), and the gates (batch, len, heads)."""
    given = {name: x.reshape(*x.shape, 1) if len(x.shape) == 3 else x for name, x in case.inputs.items()}
    inputs = {ours: send(given[name].transpose(0, 2, 1, 3)) for ours, name in
              (("query", "query"), ("key", "key"), ("value", "value"), ("decay", "g"), ("beta", "beta"))}
    inputs["past_state"] = send(given["initial_state"])
    options = {"scale": case.attributes["scale"], "mechanism": {"type": "linear", "update_rule": "gated_delta"}}
    case.ask(ATTENTION, {"inputs": inputs, "options": options}, present_state="final_state",
             output=("output", lambda answer: answer.transpose(0, 2, 1, 3)))


def deepseek_mla(case):
    """
    Multi-head latent attention: keys and values are made of a normalised latent of few features, and every key has a
    rotated part that all heads share. The latent's expansion is done here; what attnd computes is the rotation of both
    parts, interleaved to half, and attention with d_k = 10 and d_v = 5.
    """
    given, a = case.inputs, case.attributes
    heads, rank, turned = a["num_heads"], a["kv_lora_rank"], a["qk_rope_head_dim"]
    plain, d_v = a["qk_nope_head_dim"], a["v_head_dim"]
    hidden, rope = given["hidden_states"], {"layout": "interleaved_to_half", "cos": send(halves(given["cos"])),
                                            "sin": send(halves(given["sin"]))}
    case.outside.append("the projections and the norm of the latent")
    query = heads_first(linear_of(hidden, given["q_proj.weight"]), heads)
    latent = linear_of(hidden, given["kv_a_proj_with_mqa.weight"])
    rows = latent.rows(rank + turned)
    normed = []
    for row in rows:
        spread = math.sqrt(math.fsum(x * x for x in row[:rank]) / rank + 1e-6)
        normed += [x / spread * w for x, w in zip(row[:rank], given["kv_a_layernorm.weight"].data)]
    expanded = linear_of(Tensor((*hidden.shape[:2], rank), normed), given["kv_b_proj.weight"])
    both = heads_first(expanded, heads)
    shared = [row[rank:] for row in rows]
    length = hidden.shape[1]
    keys, values, queries = [], [], []
    for at, row in enumerate(both.rows(plain + d_v)):
        token = at // (heads * length) * length + at % length
        keys += [*shared[token], *row[:plain]]  # the part that is turned stands first, for rope.dim
        values += row[plain:]
    for row in query.rows(plain + turned):
        queries += [*row[plain:], *row[:plain]]
    shape = (hidden.shape[0], heads, length, plain + turned)
    request = {"inputs": {"query": send(Tensor(shape, queries)), "key": send(Tensor(shape, keys)),
                          "value": send(Tensor((*shape[:3], d_v), values))},
               "masks": {"bias": send(given["attention_mask"])}, "options": {"rope": {**rope, "dim": turned}}}
    case.ask(ATTENTION, request, attention="attn_weights",
             output=("attn_output", lambda answer: linear_of(merged(answer), given["o_proj.weight"])))


def mha(case):
    given, attributes = case.inputs, case.attributes
    swap = (lambda x: x) if attributes["batch_first"] else (lambda x: x.transpose(1, 0, 2))
    inputs = {name: send(swap(given[name])) for name in ("query", "key", "value")}
    masks = {}
    if "key_padding_mask" in given:
        masks["padding"] = send(inverted(given["key_padding_mask"]))
    if "attn_mask" in given:
        batch = swap(given["query"]).shape[0]
        masks["attend"] = send(inverted(given["attn_mask"].reshape(batch, attributes["num_heads"],
                                                                   *given["attn_mask"].shape[1:])))
    request = {"inputs": inputs, "masks": masks, "weights": torch_weights(given),
               "options": {"num_heads": attributes["num_heads"]}}
    maps = "attention_mean" if attributes["average_attn_weights"] else "attention"
    case.ask(LAYER, request, output=("attn_output", swap), **{maps: "attn_output_weights"})
    alone = {**request, "options": {"num_heads": attributes["num_heads"]}}
    case.ask(LAYER, alone, output=("attn_output_need_weights_false", swap))


def inverted(mask):
    """PyTorch's true is attnd's false in key_padding_mask and in the attn_mask of MultiheadAttention."""
    return mask.map(lambda item: not item)


def torch_weights(given):
    """in_proj stacks q, k and v along its rows, which are outputs; with kdim or vdim the three stand alone."""
    weights = {"layout": "out_in"}
    bias = given.get("in_proj_bias")
    if "in_proj_weight" in given:
        weights["qkv"] = {"weight": send(given["in_proj_weight"])}
        if bias:
            weights["qkv"]["bias"] = send(bias)
    else:
        width = len(bias.data) // 3
        for at, name in enumerate(("query", "key", "value")):
            weights[name] = {"weight": send(given[f"{name[0]}_proj_weight"]),
                             "bias": send(bias.slice_first(at * width, (at + 1) * width))}
    weights["output"] = {"weight": send(given["out_proj.weight"])}
    if "out_proj.bias" in given:
        weights["output"]["bias"] = send(given["out_proj.bias"])
    return weights


def block_pre_norm(case):
    given, attributes = case.inputs, case.attributes
    weights = torch_weights(given)
    weights["norm"] = {"weight": send(given["ln_weight"]), "bias": send(given["ln_bias"])}
    request = {"inputs": {"query": send(given["x"])}, "weights": weights,
               "options": {"num_heads": attributes["num_heads"], "residual": True,
                           "norm": {"type": "layer", "position": "pre", "eps": attributes["eps"]}}}
    case.ask(LAYER, request, output="y", projected="attn_output", attention="attn_weights")
    normalise(case, given["x"], -1, "layer", attributes["eps"], given["ln_weight"], given["ln_bias"], "normed")


def encoder_layer(case):
    """The whole layer as one block."""
    given, attributes = case.inputs, case.attributes
    own = {name.removeprefix("self_attn."): tensor for name, tensor in given.items()}

    def both(name):
        return {part: send(given[f"{name}.{part}"]) for part in ("weight", "bias")}

    weights = torch_weights(own)
    weights["norm"] = both("norm1")
    weights["feed_forward"] = {"up": both("linear1"), "down": both("linear2"), "norm": both("norm2")}
    position = "pre" if attributes["norm_first"] else "post"
    request = {"inputs": {"query": send(given["src"])}, "weights": weights,
               "masks": {"attend": send(inverted(given["src_mask"])),
                         "padding": send(inverted(given["src_key_padding_mask"]))},
               "options": {"num_heads": attributes["nhead"], "residual": True,
                           "norm": {"type": "layer", "position": position, "eps": attributes["eps"]},
                           "feed_forward": {"activation": attributes["activation"]}}}
    case.ask(LAYER, request, output="y")


def layernorm(case):
    given = case.inputs
    normalise(case, given["x"], -1, "layer", case.attributes["eps"], given["weight"], given["bias"], "y")


def t5(case):
    """
    Once with attnd's own relative bias, and once with the bias that PyTorch made of the table. What transformers calls
    position_bias is the score of a query of zeros, with finfo.min or -infinity where the mask hides.
    """
    given, attributes = case.inputs, case.attributes
    weights = {"layout": "out_in"}
    for name in ("query", "key", "value", "output"):
        weights[name] = {"weight": send(given[f"{name[0]}.weight"])}
    relative = {"table": send(given["relative_attention_bias.weight"]), "max_distance": attributes["max_distance"],
                "bidirectional": attributes["bidirectional"]}
    options = {"num_heads": attributes["num_heads"], "scale": "none"}
    request = {"inputs": {"query": send(given["hidden_states"])}, "weights": weights}
    made = {"bias": send(given["mask"])}
    case.ask(LAYER, {**request, "masks": made, "options": {**options, "relative_bias": relative}},
             output="attn_output", attention="attn_weights")
    torch_made = {"bias": send(case.outputs["position_bias_plus_mask"])}
    case.ask(LAYER, {**request, "masks": torch_made, "options": dict(options)}, output="attn_output",
             attention="attn_weights")
    zeros = Tensor.filled(given["hidden_states"].shape, 0.0)
    batch, heads, q_len, kv_len = case.outputs["position_bias_plus_mask"].shape
    size = batch * heads * q_len * kv_len
    case.ask(LAYER, {"inputs": {"query": send(zeros)}, "weights": weights, "masks": made,
                     "options": {**options, "relative_bias": relative}},
             masked=("position_bias_plus_mask",
                     lambda answer: Tensor((batch, heads, q_len, kv_len), answer.data[:size])))


def alibi(case):
    """
    The score of a query of zeros at the last position is -slope (last - j): what MPT adds. BLOOM adds slope j, which is
    that and a number more, the same for the whole row. MPT orders the slopes of 12 and 20 heads otherwise: they are sent.
    """
    expected = case.outputs["alibi"]
    heads, _, length = expected.shape
    is_bloom = "bloom" in case.vector["name"]
    slopes = True if is_bloom else [row[-1] - row[-2] for row in expected.rows(length)]
    request = {"inputs": {"query": send(Tensor.filled((1, heads, 1, 1), 0.0)),
                          "key": send(Tensor.filled((1, heads, length, 1), 0.0))}, "options": {"alibi": slopes}}

    def as_bloom(answer):
        rows = answer.rows(length)
        return Tensor(expected.shape, [item - row[0] if is_bloom else item for row in rows for item in row])

    case.ask(ATTENTION, {**request, "options": dict(request["options"])}, masked=("alibi", as_bloom))
    if "slopes" in case.outputs:
        case.ask(ATTENTION, request, masked=("slopes", lambda answer: Tensor(
            (heads,), [row[1] - row[0] for row in answer.rows(length)])))


def longformer(case):
    """
    Global tokens have projections of their own in transformers: a second request. Each request checks its own rows of
    the output; the other rows are taken from the vector. Weights come as the global key and the window around a query.
    """
    given, attributes = case.inputs, case.attributes
    reach, tokens, heads = attributes["one_sided_window"], attributes["global_tokens"], attributes["num_heads"]
    hidden = given["hidden_states"]
    length, width = hidden.shape[1:]
    real = [index not in attributes["padding_tokens"] for index in range(length)]
    masks = {"padding": [real], "query_lengths": [sum(real)]}

    def projections(suffix):
        return {"layout": "out_in", **{part: {"weight": send(given[f"{part}{suffix}.weight"]),
                                              "bias": send(given[f"{part}{suffix}.bias"])}
                                       for part in ("query", "key", "value")}}

    def rows_from(answer, chosen):
        expected = case.outputs["output"].rows(width)
        rows = [mine if (i in tokens) == chosen else theirs
                for i, (mine, theirs) in enumerate(zip(answer.rows(width), expected))]
        return Tensor(hidden.shape, [item for row in rows for item in row])

    def as_windows(answer):
        data = []
        for i in range(length):
            for h in range(heads):
                row = answer.data[(h * length + i) * length:][:length]
                window = [row[j] if 0 <= j < length and j not in tokens else 0.0 for j in range(i - reach, i + reach + 1)]
                data += [0.0] * (len(tokens) + len(window)) if i in tokens else [row[j] for j in tokens] + window
        return Tensor(case.outputs["local_attn_probs"].shape, data)

    local = {**masks, "blocks": {"pattern": "longformer", "window": reach, "global_tokens": tokens}}
    case.ask(LAYER, {"inputs": {"query": send(hidden)}, "weights": projections(""), "masks": local,
                     "options": {"num_heads": heads}},
             output=("output", lambda answer: rows_from(answer, False)), attention=("local_attn_probs", as_windows))
    case.ask(LAYER, {"inputs": {"query": send(hidden)}, "weights": projections("_global"), "masks": masks,
                     "options": {"num_heads": heads, "queries": list(tokens)}},
             output=("output", lambda answer: rows_from(answer, True)), attention="global_attn_probs")


def mask_chunked(case):
    """The mask itself is the answer: causal within chunks of positions."""
    batch, _, q_len, kv_len = case.outputs["mask"].shape
    request = {"inputs": {"query": send(Tensor.filled((batch, q_len, 1), 0.0)),
                          "key": send(Tensor.filled((batch, kv_len, 1), 0.0))},
               "masks": {"causal": True, "blocks": {"pattern": "chunked", "size": case.attributes["chunk_size"]}}}
    case.ask(ATTENTION, request, mask="mask")


def mask_sliding_bidirectional(case):
    """The mask itself is the answer; the queries and keys that it masks do not matter."""
    reach = case.attributes["sliding_window"]
    batch, _, q_len, kv_len = case.outputs["mask"].shape
    request = {"inputs": {"query": send(Tensor.filled((batch, q_len, 1), 0.0)),
                          "key": send(Tensor.filled((batch, kv_len, 1), 0.0))},
               "masks": {"window": [reach, reach]}}
    case.ask(ATTENTION, request, mask="mask")


def rope(case):
    """The rotated queries and keys; a rope of the attributes' parameters at the given positions."""
    given, parameters = case.inputs, dict(case.attributes["rope_parameters"])
    options = {"layout": "half", "theta": parameters.pop("rope_theta"), "positions": send(given["position_ids"]),
               "scaling": {**parameters, "max_position_embeddings": case.attributes["max_position_embeddings"]}}
    ask_rope(case, options)
    for name in ("inv_freq", "attention_scaling"):
        case.checked.add(name)  # what cos and sin are made of
    half, length = case.outputs["cos"].shape[-1] // 2, given["q"].shape[2]
    unit = Tensor((1, 1, length, 2 * half), ([1.0] * half + [0.0] * half) * length)  # turns into cos, then sin

    def part(first):
        return lambda answer: Tensor((1, length, half),
                                     [x for row in answer.rows(2 * half) for x in row[first:first + half]])

    for name, first in (("cos", 0), ("sin", half)):
        case.outputs[name] = halves(case.outputs[name])
        case.ask(ATTENTION, {"inputs": {"query": send(unit)}, "options": {"rope": options}},
                 q_rotated=(name, part(first)))


def ask_rope(case, options):
    given = case.inputs
    inputs = {"query": send(given["q"]), "key": send(given["k"])}
    case.ask(ATTENTION, {"inputs": inputs, "options": {"rope": options}}, q_rotated="q_rot", k_rotated="k_rot")


def halves(table):
    """cos or sin of transformers holds every number twice."""
    half = table.shape[-1] // 2
    return Tensor((*table.shape[:-1], half), [item for row in table.rows(2 * half) for item in row[:half]])


def rope_interleave_to_half(case):
    given = case.inputs
    ask_rope(case, {"layout": "interleaved_to_half", "cos": send(halves(given["cos"])),
                    "sin": send(halves(given["sin"]))})


def hf_norms(case):
    """Attention modules of transformers with norms of queries and keys, and maybe a gate among the queries."""
    given, attributes = case.inputs, case.attributes
    heads, kv_heads = attributes["num_attention_heads"], attributes["num_key_value_heads"]
    weights = {"layout": "out_in"}
    for name in ("query", "key", "value", "output"):
        weights[name] = {"weight": send(given[f"{name[0]}_proj.weight"])}
    is_gated = "next" in case.vector["name"]
    if is_gated:
        weights["query"], weights["gate"] = (
            {"weight": send(part)} for part in alternate_rows(given["q_proj.weight"], attributes["head_dim"]))
    for name in ("query", "key"):
        norm = given[f"{name[0]}_norm.weight"]
        weights[name + "_norm"] = {"weight": send(norm.map(lambda item: item + 1) if is_gated else norm)}
    request = {"inputs": {"query": send(given["hidden_states"])}, "weights": weights,
               "masks": {"bias": send(given["attention_mask"])},
               "options": {"num_heads": heads, "kv_num_heads": kv_heads,
                           "qk_norm": {"type": "rms", "eps": attributes["rms_norm_eps"]},
                           "rope": {"cos": send(halves(given["cos"])), "sin": send(halves(given["sin"]))}}}
    case.ask(LAYER, request, output="attn_output", attention="attn_weights")


def alternate_rows(weight, size):
    """Rows in turns of size: those of the queries of a head, those of its gate."""
    rows, width = weight.rows(weight.shape[1]), weight.shape[1]
    for first in (0, size):
        chosen = [row for at, row in enumerate(rows) if at // size * size % (2 * size) == first]
        yield Tensor((len(chosen), width), [item for row in chosen for item in row])


def swinv2(case):
    """Cosine similarity, times exp of the logit scale: the scale goes into the gain of the norm of the queries."""
    given, heads = case.inputs, case.attributes["num_heads"]
    weights = {"layout": "out_in"}
    for name in ("query", "key", "value"):
        weights[name] = {"weight": send(given[name + ".weight"])}
        if name + ".bias" in given:
            weights[name]["bias"] = send(given[name + ".bias"])
    d_k = given["query.weight"].shape[0] // heads
    scales = [math.exp(min(item, math.log(100))) for item in given["logit_scale"].data[:heads]]
    weights["query_norm"] = {"weight": [[scale] * d_k for scale in scales]}
    request = {"inputs": {"query": send(given["hidden_states"])}, "weights": weights,
               "masks": {"bias": send(given["relative_position_bias_16sigmoid"])},
               "options": {"num_heads": heads, "scale": "none", "qk_norm": {"type": "l2"}}}
    case.ask(LAYER, request, output="output", attention="attn_weights")


def feature_maps(case):
    given, attributes = case.inputs, case.attributes
    mechanism = {"type": "performer" if "projection" in given else "linear", "eps": attributes["eps"]}
    if "projection" in given:
        mechanism["projection"] = send(given["projection"])
    request = {"inputs": {"query": send(given["q"]), "key": send(given["k"]), "value": send(given["v"])},
               "masks": {"causal": "causal" in case.vector["name"]},
               "options": {"compute": "float64", "format": "base64", "mechanism": mechanism}}
    case.ask(ATTENTION, request, output="output", attention="equivalent_weights")
    if "final_S" in case.outputs:
        ask_sums(case)
    if "q_prime" in case.outputs:
        case.needs.append("the features of a mechanism (no step)")


def ask_sums(case):
    """
    S = sum phi(k) v and z = sum phi(k): elu + 1 makes a query of zeros all ones, and one with a 1 in it differs from
    them there by 1, so that differences of unnormalised outputs are rows of S, and with values of 1, numbers of z.
    """
    given = case.inputs
    batch, heads, _, d = given["k"].shape
    probes = [[0.0] * d] + [[float(f == i) for f in range(d)] for i in range(d)]
    query = Tensor((batch, heads, d + 1, d), [x for _ in range(batch * heads) for row in probes for x in row], "float64")
    options = {"compute": "float64", "format": "base64", "scale": "none",
               "mechanism": {"type": "linear", "normalize": False}}

    def differences(name):
        def adapt(answer):
            shape = case.outputs[name].shape
            width = answer.shape[-1]
            data = []
            for head in answer.rows((d + 1) * width):
                data += [head[(i + 1) * width + f] - head[f] for i in range(d) for f in range(width)]
            return Tensor(shape, data)
        return adapt

    ones = Tensor((*given["k"].shape[:3], 1), [1.0] * math.prod(given["k"].shape[:3]), "float64")
    for name, value in (("final_S", given["v"]), ("final_z", ones)):
        request = {"inputs": {"query": send(query), "key": send(given["k"]), "value": send(value)},
                   "options": dict(options)}
        case.ask(ATTENTION, request, context=(name, differences(name)))


TRANSLATIONS = {"hf_gated_delta_rule": gated_delta_rule, "sdpa_": sdpa, "flex_": flex, "mha_add_bias_kv": mha_bias_kv, "hf_deepseek": deepseek_mla,
                "hf_llama4": llama4_temperature, "mha_": mha, "block_pre_norm": block_pre_norm,
                "encoder_layer_": encoder_layer, "layernorm_": layernorm, "hf_t5_": t5,
                "rope_deepseek": rope_interleave_to_half, "rope_": rope, "hf_olmo2": hf_norms, "hf_qwen3": hf_norms,
                "hf_swinv2": swinv2, "linear_attention": feature_maps, "performer": feature_maps,
                "mask_hf_sliding3_bidirectional": mask_sliding_bidirectional, "mask_hf_chunked": mask_chunked,
                "alibi_": alibi, "hf_longformer": longformer}
