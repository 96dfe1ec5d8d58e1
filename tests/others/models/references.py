"""
references.py: kinds that transformers 4.57 does not have, because their code stands beside their weights. NumPy computes them in
float64 from their published descriptions:

    minicpm     Hu et al., "MiniCPM" (2024), arXiv:2404.06395, section 4: Llama with factors for embeddings, branches and logits
    nomic_bert  Nussbaum et al., "Nomic Embed" (2024), arXiv:2402.01613, section 3: BERT with rotary positions and gated layers

A reference has the shapes of its tensors, and gives what transformers would: {"attentions.0": …, "hidden_states.0": …, "logits": …}.
"""

import math

import numpy


def silu(x):
    return x / (1 + numpy.exp(-x))


def gelu(x):
    return x * (1 + numpy.vectorize(math.erf)(x / math.sqrt(2))) / 2


def softmax(x):
    x = numpy.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def layer_norm(x, weights, name, eps):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def rms_norm(x, weights, name, eps):
    return x / numpy.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weights[f"{name}.weight"]


def linear(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0)


def heads_of(x, count):
    return x.reshape(len(x), count, -1).transpose(1, 0, 2)


def rotated(x, theta, is_interleaved=False):
    """x (heads, tokens, features), turned by the position of each token."""
    width = x.shape[-1]
    angles = numpy.outer(numpy.arange(x.shape[1]), theta ** (-numpy.arange(0, width, 2) / width))
    first, second = (x[..., 0::2], x[..., 1::2]) if is_interleaved else (x[..., :width // 2], x[..., width // 2:])
    turned = [first * numpy.cos(angles) - second * numpy.sin(angles), second * numpy.cos(angles) + first * numpy.sin(angles)]
    return numpy.stack(turned, axis=-1).reshape(x.shape) if is_interleaved else numpy.concatenate(turned, axis=-1)


def attend(q, k, v, is_causal):
    """The map, and what the heads give side by side."""
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
    if is_causal:
        scores = numpy.where(numpy.tri(scores.shape[-1], dtype=bool), scores, -numpy.inf)
    weights = softmax(scores)
    return weights, (weights @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)


def answers(maps, states, logits=None):
    """What transformers answers for a batch of one."""
    found = {f"attentions.{layer}": weights[None] for layer, weights in enumerate(maps)}
    found.update({f"hidden_states.{layer}": state[None] for layer, state in enumerate(states)})
    found["last_hidden_state" if logits is None else "logits"] = (states[-1] if logits is None else logits)[None]
    return found


# ---- minicpm ----


def minicpm_shapes(config):
    width, inner, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    narrow = width // config["num_attention_heads"] * config.get("num_key_value_heads", config["num_attention_heads"])
    shapes = {"model.embed_tokens.weight": [words, width], "model.norm.weight": [width]}
    for n in range(config["num_hidden_layers"]):
        layer = f"model.layers.{n}"
        shapes.update({f"{layer}.self_attn.{name}_proj.weight": [rows, width]
                       for name, rows in (("q", width), ("k", narrow), ("v", narrow), ("o", width))})
        shapes.update({f"{layer}.mlp.gate_proj.weight": [inner, width], f"{layer}.mlp.up_proj.weight": [inner, width],
                       f"{layer}.mlp.down_proj.weight": [width, inner], f"{layer}.input_layernorm.weight": [width],
                       f"{layer}.post_attention_layernorm.weight": [width]})
    if not config.get("tie_word_embeddings", True):
        shapes["lm_head.weight"] = [words, width]
    return shapes


def minicpm(config, weights, ids):
    heads, eps, theta = config["num_attention_heads"], config.get("rms_norm_eps", 1e-6), config.get("rope_theta", 10000.0)
    groups = config.get("num_key_value_heads", heads)
    factor = config.get("scale_depth", 1) / math.sqrt(config["num_hidden_layers"])
    x, maps, states = weights["model.embed_tokens.weight"][ids] * config.get("scale_emb", 1), [], []
    for n in range(config["num_hidden_layers"]):
        states.append(x)
        layer = f"model.layers.{n}"
        normed = rms_norm(x, weights, f"{layer}.input_layernorm", eps)
        q, k, v = (heads_of(linear(normed, weights, f"{layer}.self_attn.{name}_proj"), count)
                   for name, count in (("q", heads), ("k", groups), ("v", groups)))
        k, v = (numpy.repeat(each, heads // groups, axis=0) for each in (k, v))
        attention, context = attend(rotated(q, theta), rotated(k, theta), v, True)
        maps.append(attention)
        x = x + factor * linear(context, weights, f"{layer}.self_attn.o_proj")
        normed = rms_norm(x, weights, f"{layer}.post_attention_layernorm", eps)
        inner = silu(linear(normed, weights, f"{layer}.mlp.gate_proj")) * linear(normed, weights, f"{layer}.mlp.up_proj")
        x = x + factor * linear(inner, weights, f"{layer}.mlp.down_proj")
    states.append(rms_norm(x, weights, "model.norm", eps))
    output = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    return answers(maps, states, states[-1] / (config["hidden_size"] / config.get("dim_model_base", 1)) @ output.T)


# ---- nomic_bert ----


def nomic_bert_shapes(config):
    width, inner, has_head = config["n_embd"], config["n_inner"], config["architectures"][0] == "NomicBertForPreTraining"
    prefix = "bert." if has_head else ""
    shapes = {f"{prefix}embeddings.word_embeddings.weight": [config["vocab_size"], width],
              f"{prefix}embeddings.token_type_embeddings.weight": [config["type_vocab_size"], width],
              f"{prefix}emb_ln.weight": [width], f"{prefix}emb_ln.bias": [width]}

    def add(name, rows, columns, has_bias):
        shapes[f"{name}.weight"] = [rows, columns]
        if has_bias:
            shapes[f"{name}.bias"] = [rows]

    for n in range(config["n_layer"]):
        layer = f"{prefix}encoder.layers.{n}"
        add(f"{layer}.attn.Wqkv", 3 * width, width, config["qkv_proj_bias"])
        add(f"{layer}.attn.out_proj", width, width, config["qkv_proj_bias"])
        for name in ("fc11", "fc12") if config["activation_function"] in ("swiglu", "geglu") else ("fc1",):
            add(f"{layer}.mlp.{name}", inner, width, config["mlp_fc1_bias"])
        add(f"{layer}.mlp.fc2", width, inner, config["mlp_fc2_bias"])
        for norm in ("norm1", "norm2"):
            shapes.update({f"{layer}.{norm}.weight": [width], f"{layer}.{norm}.bias": [width]})
    if has_head:
        add("cls.predictions.transform.dense", width, width, config["mlp_fc1_bias"])
        shapes.update({f"cls.predictions.transform.layer_norm.{part}": [width] for part in ("weight", "bias")})
        if config["mlp_fc1_bias"]:
            shapes["cls.predictions.decoder.bias"] = [config["vocab_size"]]
    return shapes


def nomic_bert(config, weights, ids):
    eps, heads, has_head = config["layer_norm_epsilon"], config["n_head"], "cls.predictions.transform.dense.weight" in weights
    prefix = "bert." if has_head else ""
    act = silu if config["activation_function"] == "swiglu" else gelu
    words = weights[f"{prefix}embeddings.word_embeddings.weight"]
    x = words[ids] + weights[f"{prefix}embeddings.token_type_embeddings.weight"][0]
    x, maps, states = layer_norm(x, weights, f"{prefix}emb_ln", eps), [], []
    for n in range(config["n_layer"]):
        states.append(x)
        layer = f"{prefix}encoder.layers.{n}"
        q, k, v = (heads_of(part, heads) for part in numpy.split(linear(x, weights, f"{layer}.attn.Wqkv"), 3, axis=-1))
        q, k = (rotated(each, config["rotary_emb_base"], config.get("rotary_emb_interleaved", False)) for each in (q, k))
        attention, context = attend(q, k, v, False)
        maps.append(attention)
        x = layer_norm(x + linear(context, weights, f"{layer}.attn.out_proj"), weights, f"{layer}.norm1", eps)
        if config["activation_function"] in ("swiglu", "geglu"):
            inner = linear(x, weights, f"{layer}.mlp.fc11") * act(linear(x, weights, f"{layer}.mlp.fc12"))
        else:
            inner = act(linear(x, weights, f"{layer}.mlp.fc1"))
        x = layer_norm(x + linear(inner, weights, f"{layer}.mlp.fc2"), weights, f"{layer}.norm2", eps)
    states.append(x)
    if not has_head:
        return answers(maps, states)
    x = layer_norm(act(linear(x, weights, "cls.predictions.transform.dense")), weights, "cls.predictions.transform.layer_norm", eps)
    return answers(maps, states, x @ words.T + weights.get("cls.predictions.decoder.bias", 0))


REFERENCES = {"minicpm": (minicpm_shapes, minicpm), "nomic_bert": (nomic_bert_shapes, nomic_bert)}
