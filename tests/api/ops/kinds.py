"""kinds.py: a small model of each kind that attnd runs: config.json, and the names and shapes of its tensors."""

import json
import pathlib
import random

import tensor_file

WIDTH, HEADS, INNER, WORDS, PLACES, LAYERS = 8, 2, 12, 20, 16, 2
BASE = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "intermediate_size": INNER,
        "vocab_size": WORDS, "max_position_embeddings": PLACES}
GPT = {"n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_positions": PLACES, "vocab_size": WORDS}
ROPE = {**BASE, "hidden_act": "silu", "rope_theta": 10000.0}


class Model:
    def __init__(self, config):
        self.config, self.tensors = config, {}

    def add(self, name, *shape):
        count = 1
        for length in shape:
            count *= length
        self.tensors[name] = ("F32", list(shape), [random.uniform(-1, 1) for _ in range(count)])

    def linear(self, name, rows, columns, bias=True):
        self.add(f"{name}.weight", rows, columns)
        if bias:
            self.add(f"{name}.bias", rows)

    def norm(self, name, width=WIDTH, bias=True):
        self.add(f"{name}.weight", width)
        if bias:
            self.add(f"{name}.bias", width)

    def save(self, folder):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config))
        (folder / "model.safetensors").write_bytes(tensor_file.write(self.tensors))
        return folder


def llama_like(kind, norms=("input_layernorm", "post_attention_layernorm"), names="qkvo", bias=False, layer_norm=False,
               inner=("gate_proj", "up_proj", "down_proj"), inner_bias=False, head=False, more=(), qk=None, **config):
    model = Model({"model_type": kind, "num_key_value_heads": HEADS, **ROPE, **config})
    model.add("model.embed_tokens.weight", WORDS, WIDTH)
    for n in range(LAYERS):
        layer = f"model.layers.{n}"
        for letter in names:
            model.linear(f"{layer}.self_attn.{letter}_proj", WIDTH, WIDTH, bias)
        for name in norms:
            model.norm(f"{layer}.{name}", bias=layer_norm)
        for name in inner:
            shape = (WIDTH, INNER) if name in ("down_proj", "c_proj", "fc2") else (INNER, WIDTH)
            model.linear(f"{layer}.mlp.{name}", *shape, inner_bias)
        for name in qk or ():
            model.add(f"{layer}.self_attn.{name}.weight", qk[name])
        for name, shape in more:
            model.add(f"{layer}.{name}", *shape)
    model.norm("model.norm", bias=layer_norm)
    if head:
        model.add("lm_head.weight", WORDS, WIDTH)
    return model


SANDWICH = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")


def mixtral(experts=3, **config):
    model = llama_like("mixtral", inner=(), head=True, **{"num_experts_per_tok": 2, **config})
    for n in range(LAYERS):
        layer = f"model.layers.{n}.block_sparse_moe"
        model.add(f"{layer}.gate.weight", experts, WIDTH)
        for e in range(experts):
            for name, shape in (("w1", (INNER, WIDTH)), ("w2", (WIDTH, INNER)), ("w3", (INNER, WIDTH))):
                model.add(f"{layer}.experts.{e}.{name}.weight", *shape)
    return model


def packed(scales=1):
    """Experts of 4 bits, of a width of one block; the scales of a row may be too many."""
    model = llama_like("gpt_oss", inner=(), bias=True, head=True, hidden_size=32, head_dim=4, num_experts_per_tok=1,
                       num_key_value_heads=HEADS, quantization_config={"quant_method": "mxfp4"})
    for name, (dtype, shape, _) in list(model.tensors.items()):
        model.add(name, *(32 if length == WIDTH and (name.endswith("norm.weight") or "self_attn" not in name) else length
                          for length in shape))
    for n in range(LAYERS):
        layer = f"model.layers.{n}"
        for letter in "qkv":
            model.add(f"{layer}.self_attn.{letter}_proj.weight", WIDTH, 32)
        model.linear(f"{layer}.self_attn.o_proj", 32, WIDTH)
        model.add(f"{layer}.self_attn.sinks", HEADS)
        model.linear(f"{layer}.mlp.router", 2, 32)
        for name, rows in (("gate_up_proj", 64), ("down_proj", 32)):
            model.add(f"{layer}.mlp.experts.{name}_bias", 2, rows)
            for end, shape in (("blocks", [2, rows, 1, 16]), ("scales", [2, rows, scales])):
                count = 2 * rows * (16 if end == "blocks" else scales)
                model.tensors[f"{layer}.mlp.experts.{name}_{end}"] = ("U8", shape, [random.randint(118, 124) for _ in range(count)])
    return model


def decoders():
    yield "mixtral", mixtral()
    yield "llama", llama_like("llama", head=True)
    yield "mistral", llama_like("mistral", head=True, sliding_window=4)
    yield "qwen2", llama_like("qwen2", bias=True, tie_word_embeddings=True)
    yield "qwen3", llama_like("qwen3", head=True, qk={"q_norm": 4, "k_norm": 4})
    gemma = {"head_dim": 4, "hidden_act": "gelu_pytorch_tanh"}
    yield "gemma", llama_like("gemma", **gemma)
    yield "gemma2", llama_like("gemma2", norms=SANDWICH, query_pre_attn_scalar=4, attn_logit_softcapping=50.0,
                               final_logit_softcapping=30.0, sliding_window=4, **gemma)
    yield "gemma3", llama_like("gemma3_text", norms=SANDWICH, query_pre_attn_scalar=4, sliding_window=4,
                               sliding_window_pattern=2, rope_local_base_freq=100.0, qk={"q_norm": 4, "k_norm": 4}, **gemma)
    yield "starcoder2", llama_like("starcoder2", bias=True, layer_norm=True, inner=("c_fc", "c_proj"), inner_bias=True,
                                   norm_epsilon=1e-5)
    yield "smollm3", llama_like("smollm3", no_rope_layers=[1, 0])
    yield "stablelm", llama_like("stablelm", layer_norm=True, head=True, partial_rotary_factor=0.5)
    yield "stablelm_parallel", llama_like("stablelm", norms=("input_layernorm",), layer_norm=True, head=True,
                                          partial_rotary_factor=0.5,
                                          use_parallel_residual=True)
    yield "granite", llama_like("granite", tie_word_embeddings=True, embedding_multiplier=12.0, attention_multiplier=0.2,
                                residual_multiplier=0.5, logits_scaling=8.0)
    yield "olmo2", llama_like("olmo2", norms=("post_attention_layernorm", "post_feedforward_layernorm"), head=True,
                              qk={"q_norm": WIDTH, "k_norm": WIDTH})
    phi = llama_like("phi", norms=("input_layernorm",), names="qkv", bias=True, layer_norm=True, inner=("fc1", "fc2"),
                     inner_bias=True, head=True, partial_rotary_factor=0.5)
    for n in range(LAYERS):
        phi.linear(f"model.layers.{n}.self_attn.dense", WIDTH, WIDTH)
    for kind in ("weight", "bias"):
        phi.tensors[f"model.final_layernorm.{kind}"] = phi.tensors.pop(f"model.norm.{kind}")
    phi.add("lm_head.bias", WORDS)
    yield "phi", phi
    yield "phi3", llama_like("phi3", names="o", inner=("down_proj",), head=True,
                             more=(("self_attn.qkv_proj.weight", (3 * WIDTH, WIDTH)),
                                   ("mlp.gate_up_proj.weight", (2 * INNER, WIDTH))))


def falcon(wide, norms, **config):
    model = Model({"model_type": "falcon", **BASE, "hidden_act": "gelu", **config})
    model.add("transformer.word_embeddings.weight", WORDS, WIDTH)
    for n in range(LAYERS):
        layer = f"transformer.h.{n}"
        model.linear(f"{layer}.self_attention.query_key_value", wide, WIDTH, False)
        model.linear(f"{layer}.self_attention.dense", WIDTH, WIDTH, False)
        model.linear(f"{layer}.mlp.dense_h_to_4h", INNER, WIDTH, False)
        model.linear(f"{layer}.mlp.dense_4h_to_h", WIDTH, INNER, False)
        for name in norms:
            model.norm(f"{layer}.{name}")
    model.norm("transformer.ln_f")
    return model


def others():
    head = WIDTH // HEADS
    yield "falcon_40b", falcon(WIDTH + 2 * head, ("ln_attn", "ln_mlp"), new_decoder_architecture=True, num_kv_heads=1)
    yield "falcon_7b", falcon(WIDTH + 2 * head, ("input_layernorm",), multi_query=True, parallel_attn=True)
    yield "falcon_rw", falcon(3 * WIDTH, ("input_layernorm", "post_attention_layernorm"), multi_query=False,
                              parallel_attn=False, alibi=True)
    gptj = Model({"model_type": "gptj", **GPT, "rotary_dim": 2, "activation_function": "gelu_new"})
    bigcode = Model({"model_type": "gpt_bigcode", **GPT, "multi_query": True})
    for model in (gptj, bigcode):
        model.add("transformer.wte.weight", WORDS, WIDTH)
        model.norm("transformer.ln_f")
    bigcode.add("transformer.wpe.weight", PLACES, WIDTH)
    for n in range(LAYERS):
        for letter in ("q", "k", "v", "out"):
            gptj.linear(f"transformer.h.{n}.attn.{letter}_proj", WIDTH, WIDTH, False)
        gptj.linear(f"transformer.h.{n}.mlp.fc_in", INNER, WIDTH)
        gptj.linear(f"transformer.h.{n}.mlp.fc_out", WIDTH, INNER)
        bigcode.linear(f"transformer.h.{n}.attn.c_attn", WIDTH + 2 * head, WIDTH)
        bigcode.linear(f"transformer.h.{n}.attn.c_proj", WIDTH, WIDTH)
        bigcode.linear(f"transformer.h.{n}.mlp.c_fc", INNER, WIDTH)
        bigcode.linear(f"transformer.h.{n}.mlp.c_proj", WIDTH, INNER)
        gptj.norm(f"transformer.h.{n}.ln_1")
        bigcode.norm(f"transformer.h.{n}.ln_1")
        bigcode.norm(f"transformer.h.{n}.ln_2")
    gptj.linear("lm_head", WORDS, WIDTH)
    yield "gptj", gptj
    yield "gpt_bigcode", bigcode
    for name in ("gpt_neox", "bloom"):
        model = Model({"model_type": name, **BASE, **GPT, "hidden_act": "gelu", "rotary_pct": 0.5})
        model.add("gpt_neox.embed_in.weight" if name == "gpt_neox" else "transformer.word_embeddings.weight", WORDS, WIDTH)
        for n in range(LAYERS):
            layer = f"gpt_neox.layers.{n}" if name == "gpt_neox" else f"transformer.h.{n}"
            attention = f"{layer}.{'attention' if name == 'gpt_neox' else 'self_attention'}"
            model.linear(f"{attention}.query_key_value", 3 * WIDTH, WIDTH)
            model.linear(f"{attention}.dense", WIDTH, WIDTH)
            model.linear(f"{layer}.mlp.dense_h_to_4h", INNER, WIDTH)
            model.linear(f"{layer}.mlp.dense_4h_to_h", WIDTH, INNER)
            model.norm(f"{layer}.input_layernorm")
            model.norm(f"{layer}.post_attention_layernorm")
        model.norm("gpt_neox.final_layer_norm" if name == "gpt_neox" else "transformer.ln_f")
        if name == "gpt_neox":
            model.add("embed_out.weight", WORDS, WIDTH)
        else:
            model.norm("transformer.word_embeddings_layernorm")
        yield name, model


def bart_layers(model, side, norm):
    for n in range(LAYERS):
        layer = f"model.{side}.layers.{n}"
        for attention in ("self_attn", "encoder_attn") if side == "decoder" else ("self_attn",):
            for letter in ("q", "k", "v", "out"):
                model.linear(f"{layer}.{attention}.{letter}_proj", WIDTH, WIDTH)
            model.norm(f"{layer}.{attention}_layer_norm")
        model.linear(f"{layer}.fc1", INNER, WIDTH)
        model.linear(f"{layer}.fc2", WIDTH, INNER)
        model.norm(f"{layer}.final_layer_norm")
    if norm:
        model.norm(f"model.{side}.layer_norm")


def translators():
    sizes = {"d_model": WIDTH, "encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_attention_heads": HEADS,
             "decoder_attention_heads": HEADS, "vocab_size": WORDS, "max_position_embeddings": PLACES,
             "activation_function": "relu", "scale_embedding": True, "pad_token_id": 1, "decoder_start_token_id": 2}
    for kind, places, embedding_norm in (("mbart", PLACES + 2, True), ("marian", 0, False), ("pegasus", 0, False),
                                         ("blenderbot", PLACES, False), ("m2m_100", 0, False)):
        model = Model({"model_type": kind, **sizes})
        model.add("model.shared.weight", WORDS, WIDTH)
        for side in ("encoder", "decoder"):
            bart_layers(model, side, kind != "marian")
            if places:
                model.add(f"model.{side}.embed_positions.weight", places, WIDTH)
            if embedding_norm:
                model.norm(f"model.{side}.layernorm_embedding")
        model.add("final_logits_bias", 1, WORDS)
        yield kind, model
    opt = Model({"model_type": "opt", **BASE, "activation_function": "relu", "word_embed_proj_dim": WIDTH})
    opt.add("model.decoder.embed_tokens.weight", WORDS, WIDTH)
    opt.add("model.decoder.embed_positions.weight", PLACES + 2, WIDTH)
    bart_layers(opt, "decoder", False)
    opt.tensors = {name: tensor for name, tensor in opt.tensors.items() if "encoder_attn" not in name}
    opt.norm("model.decoder.final_layer_norm")
    yield "opt", opt


def deberta(**config):
    model = Model({"model_type": "deberta-v2", "relative_attention": True, "pos_att_type": "c2p|p2c", "position_buckets": 4,
                   "share_att_key": False, "norm_rel_ebd": "layer_norm", "position_biased_input": False, **BASE, **config})
    model.add("deberta.embeddings.word_embeddings.weight", WORDS, WIDTH)
    model.norm("deberta.embeddings.LayerNorm")
    model.add("deberta.encoder.rel_embeddings.weight", 8, WIDTH)
    model.norm("deberta.encoder.LayerNorm")
    for n in range(LAYERS):
        layer = f"deberta.encoder.layer.{n}"
        for name in ("query_proj", "key_proj", "value_proj", "pos_key_proj", "pos_query_proj"):
            model.linear(f"{layer}.attention.self.{name}", WIDTH, WIDTH)
        model.linear(f"{layer}.attention.output.dense", WIDTH, WIDTH)
        model.linear(f"{layer}.intermediate.dense", INNER, WIDTH)
        model.linear(f"{layer}.output.dense", WIDTH, INNER)
        for part in ("attention.output", "output"):
            model.norm(f"{layer}.{part}.LayerNorm")
    return model


def encoders():
    clip = Model({"model_type": "clip_text_model", **BASE, "hidden_act": "quick_gelu"})
    clip.add("text_model.embeddings.token_embedding.weight", WORDS, WIDTH)
    clip.add("text_model.embeddings.position_embedding.weight", PLACES, WIDTH)
    clip.norm("text_model.final_layer_norm")
    images = {**BASE, "hidden_act": "gelu", "image_size": 8, "patch_size": 4, "num_channels": 3}
    deit, dino = Model({"model_type": "deit", **images}), Model({"model_type": "dinov2", **images})
    for model, rows in ((deit, 6), (dino, 5)):
        model.add("m.embeddings.cls_token", 1, 1, WIDTH)
        model.add("m.embeddings.position_embeddings", 1, rows, WIDTH)
        model.add("m.embeddings.patch_embeddings.projection.weight", WIDTH, 3, 4, 4)
        model.add("m.embeddings.patch_embeddings.projection.bias", WIDTH)
        model.norm("m.layernorm")
    deit.add("m.embeddings.distillation_token", 1, 1, WIDTH)
    dino.add("m.embeddings.mask_token", 1, WIDTH)
    for n in range(LAYERS):
        layer = f"text_model.encoder.layers.{n}"
        for letter in ("q", "k", "v", "out"):
            clip.linear(f"{layer}.self_attn.{letter}_proj", WIDTH, WIDTH)
        clip.linear(f"{layer}.mlp.fc1", INNER, WIDTH)
        clip.linear(f"{layer}.mlp.fc2", WIDTH, INNER)
        clip.norm(f"{layer}.layer_norm1")
        clip.norm(f"{layer}.layer_norm2")
        layer = f"m.encoder.layer.{n}"
        for model in (deit, dino):
            for name in ("query", "key", "value"):
                model.linear(f"{layer}.attention.attention.{name}", WIDTH, WIDTH)
            model.linear(f"{layer}.attention.output.dense", WIDTH, WIDTH)
        deit.linear(f"{layer}.intermediate.dense", INNER, WIDTH)
        deit.linear(f"{layer}.output.dense", WIDTH, INNER)
        deit.norm(f"{layer}.layernorm_before")
        deit.norm(f"{layer}.layernorm_after")
        dino.linear(f"{layer}.mlp.fc1", INNER, WIDTH)
        dino.linear(f"{layer}.mlp.fc2", WIDTH, INNER)
        for i in (1, 2):
            dino.norm(f"{layer}.norm{i}")
            dino.add(f"{layer}.layer_scale{i}.lambda1", WIDTH)
    yield "clip_text", clip
    yield "deit", deit
    yield "dinov2", dino
    yield "deberta", deberta()
    narrow = 6
    for kind in ("albert", "electra"):
        model = Model({"model_type": kind, **BASE, "embedding_size": narrow, "hidden_act": "gelu_new", "pad_token_id": 0})
        model.add(f"{kind}.embeddings.word_embeddings.weight", WORDS, narrow)
        model.add(f"{kind}.embeddings.position_embeddings.weight", PLACES, narrow)
        model.add(f"{kind}.embeddings.token_type_embeddings.weight", 2, narrow)
        model.norm(f"{kind}.embeddings.LayerNorm", narrow)
        head = "predictions" if kind == "albert" else "generator_predictions"
        model.linear(f"{head}.dense", narrow, WIDTH)
        model.norm(f"{head}.LayerNorm", narrow)
        model.add("predictions.bias" if kind == "albert" else "generator_lm_head.bias", WORDS)
        for n in range(LAYERS if kind == "electra" else 1):
            layer = f"electra.encoder.layer.{n}" if kind == "electra" else "albert.encoder.albert_layer_groups.0.albert_layers.0"
            inner = "self." if kind == "electra" else ""
            for name in ("query", "key", "value"):
                model.linear(f"{layer}.attention.{inner}{name}", WIDTH, WIDTH)
            output = f"{layer}.attention.output" if kind == "electra" else f"{layer}.attention"
            model.linear(f"{output}.dense", WIDTH, WIDTH)
            model.norm(f"{output}.LayerNorm")
            up, down, norm = (("intermediate.dense", "output.dense", "output.LayerNorm") if kind == "electra"
                              else ("ffn", "ffn_output", "full_layer_layer_norm"))
            model.linear(f"{layer}.{up}", INNER, WIDTH)
            model.linear(f"{layer}.{down}", WIDTH, INNER)
            model.norm(f"{layer}.{norm}")
        model.linear("electra.embeddings_project" if kind == "electra" else "albert.encoder.embedding_hidden_mapping_in",
                     WIDTH, narrow)
        yield kind, model


def whisper(mels=5, words=WORDS):
    model = Model({"model_type": "whisper", "d_model": WIDTH, "encoder_layers": LAYERS, "decoder_layers": LAYERS,
                   "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "num_mel_bins": mels,
                   "max_target_positions": PLACES, "decoder_start_token_id": words - 1, "eos_token_id": words - 2})
    model.add("model.decoder.embed_tokens.weight", words, WIDTH)
    for side, places in (("encoder", 6), ("decoder", PLACES)):
        bart_layers(model, side, True)
        model.add(f"model.{side}.embed_positions.weight", places, WIDTH)
    for name, channels in (("conv1", mels), ("conv2", WIDTH)):
        model.add(f"model.encoder.{name}.weight", WIDTH, channels, 3)
        model.add(f"model.encoder.{name}.bias", WIDTH)
    return model


def listeners():
    yield "whisper", whisper()


def all_kinds():
    for part in (decoders, others, translators, listeners, encoders):
        yield from part()
