#!/usr/bin/env python3
"""
record_experts.py: records the mixtures of experts of experts.tar.xz, as record.py does other kinds.

    record_experts.py --transformers DIR

Beside what record.py records, an archive has the chosen experts of each layer that has some, and their weights, as the
modules of transformers hand them on. The weights of gpt_oss-mxfp4 are blocks and scales, widened by made_weights.py.
"""

import argparse
import json
import pathlib
import sys

import made_weights
import record
import tensor_file

SMALL = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64}
GROUPED = {**SMALL, "intermediate_size": 48, "num_key_value_heads": 2}
QWEN = {**GROUPED, "num_hidden_layers": 3, "moe_intermediate_size": 20, "num_experts": 6}
GPT_OSS = {**GROUPED, "intermediate_size": 64, "head_dim": 12, "num_hidden_layers": 3, "num_local_experts": 4,
           "sliding_window": 5, "num_experts_per_tok": 2}
YARN = {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 16}


def of(model_type, about, architecture, **config):
    return about, {"architectures": [architecture], "model_type": model_type, **config}


KINDS = {
    "mixtral": of("mixtral", "two of four experts; head_dim apart", "MixtralForCausalLM", **GROUPED, num_local_experts=4,
                  num_experts_per_tok=2, head_dim=12),
    "mixtral-window": of("mixtral", "one of five experts; sliding window; gelu; tied; short configuration", "MixtralForCausalLM",
                         **GROUPED, num_local_experts=5, num_experts_per_tok=1, sliding_window=4, hidden_act="gelu",
                         rope_theta=10000.0, tie_word_embeddings=True),
    "qwen2_moe": of("qwen2_moe", "a shared expert; short configuration", "Qwen2MoeForCausalLM", **QWEN,
                    shared_expert_intermediate_size=28),
    "qwen2_moe-mixed": of("qwen2_moe", "a layer without experts; normalised weights; sliding layers", "Qwen2MoeForCausalLM", **QWEN,
                          shared_expert_intermediate_size=40, num_experts_per_tok=2, norm_topk_prob=True, mlp_only_layers=[1],
                          use_sliding_window=True, sliding_window=4,
                          layer_types=["sliding_attention", "full_attention", "sliding_attention"], qkv_bias=False),
    "qwen3_moe": of("qwen3_moe", "normalised weights", "Qwen3MoeForCausalLM", **QWEN, num_experts_per_tok=3, norm_topk_prob=True,
                    head_dim=12),
    "qwen3_moe-mixed": of("qwen3_moe", "experts in every second layer; biases; sliding window", "Qwen3MoeForCausalLM", **QWEN,
                          num_experts_per_tok=6, decoder_sparse_step=2, attention_bias=True, use_sliding_window=True,
                          sliding_window=3, head_dim=8),
    "olmoe": of("olmoe", "probabilities of all experts", "OlmoeForCausalLM", **{**GROUPED, "num_key_value_heads": 4},
                num_experts=7, num_experts_per_tok=2),
    "olmoe-normed": of("olmoe", "normalised weights; grouped heads; biases", "OlmoeForCausalLM", **GROUPED, num_experts=5,
                       num_experts_per_tok=3, norm_topk_prob=True, attention_bias=True, rope_theta=500.0),
    "granitemoe": of("granitemoe", "four multipliers", "GraniteMoeForCausalLM", **GROUPED, num_local_experts=5,
                     num_experts_per_tok=2, embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.4,
                     logits_scaling=2.0),
    "granitemoe-tied": of("granitemoe", "all experts; tied; short configuration", "GraniteMoeForCausalLM", **GROUPED,
                          num_local_experts=3, num_experts_per_tok=3, tie_word_embeddings=True, hidden_act="relu"),
    "gpt_oss": of("gpt_oss", "sinks; sliding layers; yarn", "GptOssForCausalLM", **GPT_OSS, rope_scaling=YARN),
    "gpt_oss-plain": of("gpt_oss", "one of three experts; no window", "GptOssForCausalLM",
                        **{**GPT_OSS, "num_local_experts": 3, "num_experts_per_tok": 1}, rope_scaling=None,
                        layer_types=["full_attention"] * 3, rope_theta=10000.0),
    "gpt_oss-mxfp4": of("gpt_oss", "experts of 4 bits; clamped; short configuration", "GptOssForCausalLM", **GPT_OSS,
                        quantization_config={"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}),
}

# ---- experts ----


def choices_of(torch, inputs, named):
    """Indices and weights, (tokens, k), of what a module of experts is given."""
    indices, weights = inputs[1:] if len(inputs) > 1 else (named["router_indices"], named["routing_weights"])
    return indices, weights.gather(1, indices) if weights.shape != indices.shape else weights


def choices_of_gating(torch, k, outputs):
    """The same of the gating of Granite, which gives its pairs in the order of the experts."""
    order, _, gates, sizes, _ = outputs
    experts = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    indices, weights = torch.empty_like(order), torch.empty_like(gates)
    indices[order], weights[order] = experts, gates
    return indices.reshape(-1, k), weights.reshape(-1, k)


def watch(torch, model):
    """{layer: (indices, weights)}, which the next run of the model fills."""
    seen = {}
    for name, module in model.named_modules():
        kind = type(module).__name__
        layer = next((int(part) for part in name.split(".") if part.isdigit()), None)
        if kind.endswith("TopKGating"):
            module.register_forward_hook(
                lambda own, _, outputs, layer=layer: seen.update({layer: choices_of_gating(torch, own.top_k, outputs)}))
        elif kind.endswith("Experts") and not kind.endswith("ParallelExperts"):
            module.register_forward_pre_hook(
                lambda _, inputs, named, layer=layer: seen.update({layer: choices_of(torch, inputs, named)}), with_kwargs=True)
    return seen


def pack(torch, model, shapes):
    """Gives the experts weights of 4 bits, and replaces their names."""
    for name, tensor in model.named_parameters():
        if not name.endswith(("gate_up_proj", "down_proj")):
            continue
        experts, inner, outer = shapes.pop(name)
        blocks, scales = [experts, outer, inner // 32, 16], [experts, outer, inner // 32]
        shapes[f"{name}_blocks"], shapes[f"{name}_scales"] = blocks, scales
        numbers = made_weights.widened(made_weights.packed(f"{name}_blocks", blocks), made_weights.packed(f"{name}_scales", scales))
        tensor.data.copy_(torch.tensor(numbers).reshape(experts, outer, inner).transpose(1, 2))


def record_mixture(transformers, torch, name):
    about, config = KINDS[name]
    own = {key: value for key, value in config.items() if key != "quantization_config"}
    model = record.make_model(transformers, torch, own)
    shapes = record.set_weights(torch, name, model)
    if "quantization_config" in config:
        pack(torch, model, shapes)
    seen = watch(torch, model)
    found, case = record.compute(torch, model, None)
    outputs = {f"plain/{key}": ("F32", list(tensor.shape), tensor.flatten().tolist()) for key, tensor in found.items()}
    shown = {key: list(tensor.shape) for key, tensor in found.items()}
    for layer, choices in sorted(seen.items()):
        for part, tensor in zip(("indices", "weights"), choices):
            shape = [1, *tensor.shape]
            shown[f"experts_{part}.{layer}"] = shape
            outputs[f"plain/experts_{part}.{layer}"] = ("I64" if part == "indices" else "F32", shape, tensor.flatten().tolist())
    version = f"transformers {transformers.__version__} (torch {torch.__version__}), eager, float64"
    return {"config.json": json.dumps(config, indent=1, sort_keys=True).encode() + b"\n",
            "cases.json": record.text_of(about, version, shapes, {"name": "plain", "outputs": shown, **case}).encode(),
            "outputs.safetensors": tensor_file.write(outputs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--transformers", required=True, type=pathlib.Path, help="the folder with the package transformers")
    options = parser.parse_args()
    transformers, torch = record.import_transformers(options.transformers.resolve())
    record.ARCHIVE = record.HERE / "experts.tar.xz"
    record.write_archive({name: record_mixture(transformers, torch, name) for name in KINDS})
    return 0


if __name__ == "__main__":
    sys.exit(main())
