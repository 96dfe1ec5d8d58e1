#!/usr/bin/env python3
"""
record.py: records the models of kinds.tar.xz: transformers computes them from its sources.

    record.py --transformers DIR [KIND…]            records these kinds, or all below, into kinds.tar.xz
    record.py --transformers DIR --check [KIND…]    computes recorded kinds again, and compares the numbers

DIR holds the package transformers, as its source repository does in src/ (4.57; Debian 13 has a torch that fits: python3-torch,
python3-safetensors, python3-numpy, python3-regex, python3-requests, python3-yaml, python3-tqdm, python3-filelock,
python3-packaging). Its own dependencies that Debian lacks (huggingface_hub, tokenizers, httpx) only move files and cut texts, so
empty modules stand for them. To add a kind, add it to KINDS: the text about it, and a config.json of small numbers.

A model is computed in float64 with eager attention, its steps in float32 too. Its weights follow from their names
(made_weights.py). Files have the names that transformers saves: tied weights once, no buffers. RENAMED are names that older
versions saved. Kinds that transformers lacks are computed by references.py. The config.json of a kind without "-" in its name is the one
that transformers saves, with the members that it adds; others are short.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.metadata
import io
import json
import pathlib
import random
import re
import struct
import sys
import tarfile
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
sys.dont_write_bytecode = True

import made_weights  # noqa: E402
import references  # noqa: E402
import tensor_file  # noqa: E402

ARCHIVE = HERE / "kinds.tar.xz"
IDS = [[5, 17, 3, 42, 8, 8, 29, 51, 11, 36, 23]]
TARGET = [[2, 9, 31, 9, 44, 13, 6]]
CLOSE = 2e-6  # numbers of the archive are rounded to float32

# ---- what Debian lacks ----

ABSENT = ("huggingface_hub", "tokenizers", "httpx")
VERSIONS = {"huggingface-hub": "1.0.0", "huggingface_hub": "1.0.0", "tokenizers": "0.22.1"}


class Absent(types.ModuleType):
    """A module that has every name: a class that does nothing, or an exception."""

    __path__ = []
    __version__ = "0.36.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        bases = (Exception,) if name.endswith(("Error", "Enabled")) else ()
        made = type(name, bases, {"__init__": lambda self, *rest, **named: None, "__class_getitem__": classmethod(lambda c, i: c)})
        setattr(self, name, made)
        return made


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules that are absent."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        if module.__name__ == "huggingface_hub.constants":
            module.HF_HOME = module.HF_HUB_CACHE = "cache"
        if module.__name__ == "huggingface_hub.file_download":
            module.REGEX_COMMIT_HASH = re.compile("^[0-9a-f]{40}$")


def stand_in():
    sys.meta_path.insert(0, AbsentFinder())
    real = importlib.metadata.version
    importlib.metadata.version = lambda name: VERSIONS.get(name) or real(name)
    sys.modules["transformers.dependency_versions_check"] = Absent("transformers.dependency_versions_check")
    for name in ("constants", "file_download", "utils"):
        importlib.import_module(f"huggingface_hub.{name}")


def import_transformers(path):
    """transformers and torch, with float64 wherever transformers asks for float32."""
    sys.path.insert(0, str(path))
    stand_in()
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415
    transformers.logging.set_verbosity_error()
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.FloatTensor = torch.DoubleTensor
    torch.Tensor.float = torch.Tensor.double
    return transformers, torch


# ---- kinds ----

TEXT = {"vocab_size": 60, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
GROUPED = {**TEXT, "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0}
IMAGE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 12,
         "patch_size": 4, "num_channels": 3}
T5 = {"vocab_size": 60, "d_model": 32, "d_kv": 12, "d_ff": 48, "num_layers": 2, "num_heads": 4,
      "relative_attention_num_buckets": 8, "relative_attention_max_distance": 10}
BERT = {"max_position_embeddings": 32, "pad_token_id": 1}


def kind(about, architecture, **config):
    return about, {"architectures": [architecture], **config}


KINDS = {
    "mpnet": kind("relative bias and positions", "MPNetForMaskedLM", model_type="mpnet", **TEXT, **BERT),
    "mpnet-plain": kind("no head; relu; short configuration", "MPNetModel", model_type="mpnet", **TEXT,
                        max_position_embeddings=32, hidden_act="relu", layer_norm_eps=1e-5),
    "modernbert": kind("local and global layers, no norm in layer 0", "ModernBertForMaskedLM", model_type="modernbert", **TEXT,
                       pad_token_id=0, local_attention=6),
    "modernbert-bias": kind("biases; local layers two of three; silu", "ModernBertModel", model_type="modernbert",
                            **{**TEXT, "num_hidden_layers": 4}, pad_token_id=0, local_attention=4, global_attn_every_n_layers=2,
                            norm_bias=True, attention_bias=True, mlp_bias=True, hidden_activation="silu", norm_eps=1e-6,
                            global_rope_theta=10000.0, local_rope_theta=None),
    "modernbert-plain": kind("no bias of words, no tied words", "ModernBertForMaskedLM", model_type="modernbert", **TEXT,
                             pad_token_id=0, local_attention=8, decoder_bias=False, classifier_bias=True,
                             tie_word_embeddings=False),
    "gpt_neo": kind("local layers, no scale", "GPTNeoForCausalLM", model_type="gpt_neo", vocab_size=60, hidden_size=32,
                    num_layers=4, num_heads=4, attention_types=[[["global", "local"], 2]], window_size=4,
                    max_position_embeddings=32),
    "gpt_neo-wide": kind("own width between, relu", "GPTNeoModel", model_type="gpt_neo", vocab_size=60, hidden_size=32,
                         num_layers=3, num_heads=2, attention_types=[[["global"], 1], [["local"], 2]], window_size=3,
                         max_position_embeddings=32, intermediate_size=40, activation_function="relu"),
    "esm": kind("rotary, token dropout", "EsmForMaskedLM", model_type="esm", **TEXT, max_position_embeddings=32,
                pad_token_id=1, mask_token_id=50, position_embedding_type="rotary", token_dropout=True),
    "esm-masked": kind("masked tokens", "EsmForMaskedLM", model_type="esm", **TEXT, max_position_embeddings=32, pad_token_id=1,
                       mask_token_id=8, position_embedding_type="rotary", token_dropout=True, emb_layer_norm_before=True),
    "esm-absolute": kind("learned positions, norm before, no token dropout", "EsmModel", model_type="esm", **TEXT,
                         max_position_embeddings=32, pad_token_id=1, mask_token_id=50, position_embedding_type="absolute",
                         token_dropout=False, emb_layer_norm_before=True, layer_norm_eps=1e-5),
    "roformer": kind("rotary, interleaved", "RoFormerForMaskedLM", model_type="roformer", **TEXT, max_position_embeddings=32,
                     pad_token_id=0),
    "roformer-small": kind("narrow embedding, relu", "RoFormerForMaskedLM", model_type="roformer", **TEXT, embedding_size=20,
                           max_position_embeddings=32, pad_token_id=0, hidden_act="relu"),
    "roformer-causal": kind("is_decoder", "RoFormerForCausalLM", model_type="roformer", **TEXT, is_decoder=True,
                            max_position_embeddings=32, pad_token_id=0),
    "clip_vision": kind("image tower, class token", "CLIPVisionModel", model_type="clip_vision_model", **IMAGE),
    "clip_vision-gelu": kind("gelu, projection left out", "CLIPVisionModelWithProjection", model_type="clip_vision_model",
                             **IMAGE, hidden_act="gelu", projection_dim=20),
    "siglip_vision": kind("image tower without class token", "SiglipVisionModel", model_type="siglip_vision_model", **IMAGE),
    "siglip_vision-edge": kind("patches that do not cover the image", "SiglipVisionModel", model_type="siglip_vision_model",
                               **{**IMAGE, "image_size": 14}),
    "siglip_text": kind("two-sided text tower", "SiglipTextModel", model_type="siglip_text_model", **TEXT,
                        max_position_embeddings=32, projection_size=20),
    "dinov2_registers": kind("register tokens", "Dinov2WithRegistersModel", model_type="dinov2_with_registers", **{
        name: value for name, value in IMAGE.items() if name != "intermediate_size"}, mlp_ratio=2, num_register_tokens=4),
    "dinov2_registers-swiglu": kind("gated, one register, no biases of queries", "Dinov2WithRegistersModel",
                                    model_type="dinov2_with_registers", **{
        name: value for name, value in IMAGE.items() if name != "intermediate_size"}, mlp_ratio=2, num_register_tokens=1,
        use_swiglu_ffn=True, qkv_bias=False),
    "t5-encoder": kind("encoder alone", "T5EncoderModel", model_type="t5", **T5),
    "t5-encoder-gated": kind("encoder alone, gated gelu", "T5EncoderModel", model_type="t5", **T5,
                             feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "mt5-encoder": kind("encoder alone", "MT5EncoderModel", model_type="mt5", **T5),
    "umt5": kind("relative bias in each layer", "UMT5ForConditionalGeneration", model_type="umt5", **T5),
    "umt5-encoder": kind("encoder alone, relu", "UMT5EncoderModel", model_type="umt5", **T5, feed_forward_proj="relu"),
    "olmo": kind("norms without gains", "OlmoForCausalLM", model_type="olmo", **TEXT, max_position_embeddings=64,
                 pad_token_id=1),
    "olmo-grouped": kind("grouped heads, biases, tied, scaled rope", "OlmoForCausalLM", model_type="olmo", **GROUPED,
                         attention_bias=True, tie_word_embeddings=True, rope_theta=500.0,
                         rope_scaling={"type": "linear", "factor": 4.0}),
    "olmo3": kind("windows in three of four layers", "Olmo3ForCausalLM", model_type="olmo3",
                  **{**GROUPED, "num_hidden_layers": 4}, sliding_window=4),
    "olmo3-yarn": kind("scaled rope in full layers alone", "Olmo3ForCausalLM", model_type="olmo3", **GROUPED, sliding_window=5,
                       layer_types=["sliding_attention", "full_attention", "sliding_attention"], rope_theta=500000.0,
                       rope_scaling={"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16,
                                     "attention_factor": 1.2, "beta_fast": 32.0, "beta_slow": 1.0}),
    "cohere": kind("parallel, interleaved rope, scaled logits", "CohereForCausalLM", model_type="cohere", **GROUPED),
    "cohere-norms": kind("norms of queries and keys, biases", "CohereForCausalLM", model_type="cohere", **GROUPED,
                         use_qk_norm=True, attention_bias=True, logit_scale=0.5, rope_theta=8000000.0,
                         tie_word_embeddings=False),
    "mpt": kind("ALiBi", "MptForCausalLM", model_type="mpt", vocab_size=60, d_model=32, n_heads=4, n_layers=2, max_seq_len=32),
    "mpt-6": kind("six heads, own scale", "MptForCausalLM", model_type="mpt", vocab_size=60, d_model=48, n_heads=6,
                  n_layers=2, max_seq_len=32, attn_config={"softmax_scale": 0.3}),
    "glm4": kind("half rope, norms before and behind", "Glm4ForCausalLM", model_type="glm4", **GROUPED, head_dim=12),
    "glm4-plain": kind("no biases, whole rope, tied", "Glm4ForCausalLM", model_type="glm4", **GROUPED, head_dim=8,
                       attention_bias=False, partial_rotary_factor=1.0, tie_word_embeddings=True),
    "exaone4": kind("rope in local layers alone, norms behind", "Exaone4ForCausalLM", model_type="exaone4",
                    **{**GROUPED, "num_hidden_layers": 4}, sliding_window=4, sliding_window_pattern=4),
    "exaone4-full": kind("no windows, own head width", "Exaone4ForCausalLM", model_type="exaone4", **GROUPED, head_dim=12,
                         sliding_window=None, layer_types=["full_attention"] * 3, tie_word_embeddings=True),
    "seed_oss": kind("own head width, biases of queries, keys and values", "SeedOssForCausalLM", model_type="seed_oss", **GROUPED,
                     head_dim=12),
    "seed_oss-bias": kind("bias of the output, rope scaling", "SeedOssForCausalLM", model_type="seed_oss", **GROUPED, head_dim=8,
                          attention_out_bias=True, rope_scaling={"rope_type": "dynamic", "factor": 2.0}),
    "gemma3-nested": kind("text tower of text and images", "Gemma3ForConditionalGeneration", model_type="gemma3",
                          text_config={**GROUPED, "model_type": "gemma3_text", "head_dim": 12, "sliding_window": 4,
                                       "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
                          vision_config={**IMAGE, "model_type": "siglip_vision_model"}, mm_tokens_per_image=9),
    "gemma3-both": kind("reads in both directions, as embedding models do", "Gemma3TextModel", model_type="gemma3_text", **GROUPED,
                        head_dim=12, query_pre_attn_scalar=20, sliding_window=6, use_bidirectional_attention=True,
                        layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "mistral3": kind("text tower of text and images", "Mistral3ForConditionalGeneration", model_type="mistral3",
                     text_config={**GROUPED, "model_type": "mistral", "head_dim": 12, "sliding_window": None},
                     vision_config={**IMAGE, "model_type": "pixtral", "head_dim": 8}),
    "qwen2_vl": kind("text tower of text and images", "Qwen2VLForConditionalGeneration", model_type="qwen2_vl",
                     text_config={**GROUPED, "model_type": "qwen2_vl_text",
                                  "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}},
                     vision_config={"depth": 1, "embed_dim": 32, "hidden_size": 32, "num_heads": 4}),
    "qwen2_vl-flat": kind("older form: the text tower's members at the top, tied", "Qwen2VLForConditionalGeneration",
                          model_type="qwen2_vl", **GROUPED, tie_word_embeddings=True,
                          rope_scaling={"type": "mrope", "mrope_section": [1, 1, 2]},
                          vision_config={"depth": 1, "embed_dim": 32, "hidden_size": 32, "num_heads": 4}),
    "qwen2_5_vl": kind("text tower of text and images", "Qwen2_5_VLForConditionalGeneration", model_type="qwen2_5_vl",
                       text_config={**GROUPED, "model_type": "qwen2_5_vl_text",
                                    "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}},
                       vision_config={"depth": 1, "hidden_size": 32, "intermediate_size": 48, "num_heads": 4,
                                      "out_hidden_size": 32, "fullatt_block_indexes": [0]}),
    "llava": kind("text tower of text and images", "LlavaForConditionalGeneration", model_type="llava",
                  text_config={**GROUPED, "model_type": "llama"}, vision_config={**IMAGE, "model_type": "clip_vision_model"}),
    "llava-mistral": kind("mistral below; names of older files", "LlavaForConditionalGeneration", model_type="llava",
                          text_config={**GROUPED, "model_type": "mistral", "sliding_window": 4},
                          vision_config={**IMAGE, "model_type": "clip_vision_model"}),
    "paligemma": kind("text tower of text and images", "PaliGemmaForConditionalGeneration", model_type="paligemma",
                      text_config={**GROUPED, "model_type": "gemma", "head_dim": 12},
                      vision_config={**IMAGE, "model_type": "siglip_vision_model", "projection_dim": 32}, projection_dim=32,
                      hidden_size=32),
    "paligemma-2": kind("gemma2 below", "PaliGemmaForConditionalGeneration", model_type="paligemma",
                        text_config={**GROUPED, "model_type": "gemma2", "head_dim": 12, "query_pre_attn_scalar": 20,
                                     "sliding_window": 4},
                        vision_config={**IMAGE, "model_type": "siglip_vision_model", "projection_dim": 32}, projection_dim=32,
                        hidden_size=32),
}

NOMIC = {"model_type": "nomic_bert", "vocab_size": 60, "n_embd": 32, "n_head": 4, "n_layer": 3, "n_inner": 48, "type_vocab_size": 2,
         "n_positions": 32, "prenorm": False, "causal": False, "rotary_emb_fraction": 1.0, "rotary_emb_scale_base": None,
         "layer_norm_epsilon": 1e-12}

KINDS.update({
    "minicpm": kind("factors of embeddings, branches and logits", "MiniCPMForCausalLM", model_type="minicpm", **GROUPED,
                    scale_emb=12, scale_depth=1.4, dim_model_base=8),
    "minicpm-plain": kind("no factors, own words of the head; short configuration", "MiniCPMForCausalLM", model_type="minicpm",
                          **TEXT, tie_word_embeddings=False, rope_theta=500.0),
    "nomic_bert": kind("rotary, gated silu", "NomicBertModel", **NOMIC, activation_function="swiglu", rotary_emb_base=1000,
                       rotary_emb_interleaved=False, qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False,
                       rotary_scaling_factor=None),
    "nomic_bert-words": kind("head of words, biases, gated gelu, interleaved rope", "NomicBertForPreTraining", **NOMIC,
                             activation_function="geglu", rotary_emb_base=10000, rotary_emb_interleaved=True,
                             qkv_proj_bias=True, mlp_fc1_bias=True, mlp_fc2_bias=True, rotary_scaling_factor=2,
                             max_trained_positions=16),
    "nomic_bert-plain": kind("no gates", "NomicBertModel", **NOMIC, activation_function="gelu", rotary_emb_base=1000,
                             qkv_proj_bias=True, mlp_fc1_bias=True, mlp_fc2_bias=True),
})

CLIP = {"text_config": {**TEXT, "max_position_embeddings": 32, "bos_token_id": 0, "eos_token_id": 7}, "vision_config": IMAGE}

KINDS.update({
    "clip": kind("text tower of both", "CLIPModel", model_type="clip", **CLIP, projection_dim=20),
    "clip-images": kind("image tower, as the architecture says", "CLIPForImageClassification", model_type="clip", **CLIP,
                        projection_dim=20),
    "siglip": kind("text tower of both", "SiglipModel", model_type="siglip", **CLIP),
    "siglip-images": kind("image tower, as the architecture says", "SiglipForImageClassification", model_type="siglip", **CLIP),
})
CLASSES = {"model_type": "mpnet", **TEXT, **BERT, "id2label": {"0": "no", "1": "yes", "2": "perhaps"}}
KINDS.update({
    "mpnet-classes": kind("head of classes", "MPNetForSequenceClassification", **CLASSES),
    "esm-classes": kind("head of classes", "EsmForSequenceClassification", **{**CLASSES, "model_type": "esm"}, mask_token_id=50),
    "roformer-classes": kind("head of classes, relu", "RoFormerForSequenceClassification",
                             **{**CLASSES, "model_type": "roformer", "pad_token_id": 0}, hidden_act="relu"),
    "modernbert-classes": kind("head of classes of the first token", "ModernBertForSequenceClassification",
                               **{**CLASSES, "model_type": "modernbert"}, local_attention=6),
    "modernbert-labels": kind("head of classes of each token", "ModernBertForTokenClassification",
                              **{**CLASSES, "model_type": "modernbert"}, local_attention=6),
})
V2 = {"model_type": "deberta-v2", **TEXT, "max_position_embeddings": 32, "pad_token_id": 0, "relative_attention": True}
V3 = {**V2, "position_buckets": 4, "pos_att_type": "p2c|c2p", "share_att_key": True, "norm_rel_ebd": "layer_norm",
      "position_biased_input": False}
KINDS.update({
    "deberta-v2": kind("both terms of positions in buckets, shared weights, normed table", "DebertaV2ForMaskedLM", **V3),
    "deberta-v2-v3": kind("the newer head of words; a list of terms", "DebertaV2ForMaskedLM",
                          **{**V3, "pos_att_type": ["c2p", "p2c"], "position_buckets": 6}, max_relative_positions=9,
                          legacy=False, tie_word_embeddings=False),
    "deberta-v2-own": kind("weights of their own, no buckets, positions and types", "DebertaV2ForMaskedLM", **V2,
                           pos_att_type="c2p|p2c", max_relative_positions=5, type_vocab_size=2, hidden_act="relu"),
    "deberta-v2-keys": kind("content to position alone, narrow embedding", "DebertaV2ForMaskedLM", **V2, pos_att_type=["c2p"],
                            position_buckets=8, max_relative_positions=12, embedding_size=20, layer_norm_eps=1e-5),
    "deberta-v2-queries": kind("position to content alone; no head", "DebertaV2Model",
                               **{**V3, "pos_att_type": " P2C ", "norm_rel_ebd": "none"}, type_vocab_size=2),
    "deberta-v2-plain": kind("no relative positions; short configuration", "DebertaV2Model", model_type="deberta-v2", **TEXT,
                             max_position_embeddings=32),
})
WITHOUT_LOGITS = ("clip-images", "siglip-images")  # heads of classes that attnd leaves out
TOWERS = {"CLIPModel": "text_model", "SiglipModel": "text_model"}  # the part that is computed

# Names of tensors: what transformers calls them in a model, and what older versions saved.
RENAMED = {
    "llava-mistral": [("model.language_model.", "language_model.model."), ("lm_head.", "language_model.lm_head."),
                      ("model.vision_tower.", "vision_tower."), ("model.multi_modal_projector.", "multi_modal_projector.")],
    "gemma3-nested": [("model.language_model.", "language_model.model."), ("model.vision_tower.", "vision_tower."),
                      ("model.multi_modal_projector.", "multi_modal_projector.")],
    "qwen2_vl-flat": [("model.language_model.", "model."), ("model.visual.", "visual.")],
}

# ---- one model ----


def saved_name(name, model):
    for start, saved in RENAMED.get(name, []):
        if model.startswith(start):
            return saved + model[len(start):]
    return model


def make_model(transformers, torch, config):
    model_class = getattr(transformers, config["architectures"][0])
    own = {name: value for name, value in config.items() if name != "model_type"}
    settings = model_class.config_class(**own)
    settings._attn_implementation = "eager"
    for part in ("text_config", "vision_config"):
        if hasattr(getattr(settings, part, None), "_attn_implementation"):
            getattr(settings, part)._attn_implementation = "eager"
    torch.manual_seed(0)
    return model_class(settings).double().eval()


def set_weights(torch, name, model, shapes=None):
    """Gives the model made weights; the shapes of the tensors that a file has, by name. shapes: those that it shall have."""
    made, seen = {}, set()
    trained = {key for key, value in model.named_parameters(remove_duplicate=False) if value.requires_grad}
    tied = tuple(model._tied_weights_keys or ())
    for key, tensor in sorted(model.state_dict(keep_vars=True).items(), key=lambda item: item[0] in tied):
        saved = saved_name(name, key)
        is_made = key in trained or key.endswith("final_logits_bias")
        if not is_made or tensor.data_ptr() in seen or (shapes is not None and saved not in shapes):
            continue
        seen.add(tensor.data_ptr())
        made[saved] = list(tensor.shape)
        numbers = made_weights.numbers(saved, made[saved])
        rounded = struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers))
        tensor.data.copy_(torch.tensor(rounded).reshape(tensor.shape))
    return made


def pixels_of(model):
    settings = getattr(model.config, "vision_config", model.config)
    side, channels = settings.image_size, settings.num_channels
    source = random.Random("pixels")
    shape = [1, channels, side, side]
    return shape, [2 * source.random() - 1 for _ in range(channels * side * side)]


def results_of(answer):
    """{name: tensor} of what transformers answers."""
    found = {}
    for group in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions", "hidden_states",
                  "encoder_hidden_states", "decoder_hidden_states"):
        for layer, tensor in enumerate(answer.get(group) or []):
            found[f"{group}.{layer}"] = tensor
    logits = answer.get("logits")
    if logits is not None:
        found["logits"] = logits
    elif answer.get("last_hidden_state") is not None:
        found["last_hidden_state"] = answer["last_hidden_state"]
    return found


def compute(torch, model, pixels, ids=IDS, target=TARGET):
    """The answers, and the members of the case that say what was asked."""
    asked = {"output_attentions": True, "output_hidden_states": True}
    case = {}
    if pixels is not None:
        case["pixel_values"] = "plain/pixel_values"
        shape, numbers = pixels
        numbers = struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers))
        asked["pixel_values"] = torch.tensor(numbers).reshape(shape)
    else:
        case.update(input_ids=ids, attention_mask=[[1] * len(ids[0])])
        asked.update(input_ids=torch.tensor(ids), attention_mask=torch.tensor(case["attention_mask"]))
    if model.config.is_encoder_decoder and model.main_input_name == "input_ids" and hasattr(model, "get_decoder") and \
            "Encoder" not in type(model).__name__:
        case.update(decoder_input_ids=target, decoder_attention_mask=[[1] * len(target[0])])
        asked["decoder_input_ids"] = torch.tensor(target)
    with torch.no_grad():
        return results_of(dict(getattr(model, TOWERS.get(type(model).__name__, ""), model)(**asked))), case


def text_of(about, version, shapes, case):
    rows = [f"  {json.dumps(name)}: {json.dumps(shape, separators=(',', ':'))}" for name, shape in shapes.items()]
    return (f'{{\n "about": {json.dumps(about)},\n "recorded_with": {json.dumps(version)},\n "tensors": {{\n'
            + ",\n".join(rows) + '\n },\n "cases": [\n  ' + json.dumps(case, separators=(",", ":")) + "\n ]\n}\n")


def saved_config(model):
    """config.json as save_pretrained writes it."""
    config = json.loads(model.config.to_json_string())
    for name in ("transformers_version", "dtype", "_name_or_path"):
        config.pop(name, None)
    return {**config, "architectures": [type(model).__name__]}


def float32(numbers):
    return struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers))


def refer(config, shapes=None):
    """The same as compute, and the shapes of the tensors, of a kind that references.py has."""
    import numpy  # noqa: PLC0415
    shapes_of, answers_of = references.REFERENCES[config["model_type"]]
    shapes = shapes or shapes_of(config)
    weights = {name: numpy.array(float32(made_weights.numbers(name, shape)), dtype=numpy.float64).reshape(shape)
               for name, shape in shapes.items()}
    return shapes, answers_of(config, weights, IDS[0]), {"input_ids": IDS, "attention_mask": [[1] * len(IDS[0])]}


def record(transformers, torch, name):
    """{file name: bytes} of a kind."""
    about, config = KINDS[name]
    if config["model_type"] in references.REFERENCES:
        shapes, found, case = refer(config)
        return files_of(about, config, "references.py, float64", shapes, found, case, None)
    model = make_model(transformers, torch, config)
    shapes = set_weights(torch, name, model)
    pixels = pixels_of(model) if model.main_input_name == "pixel_values" else None
    found, case = compute(torch, model, pixels)
    if name in WITHOUT_LOGITS:
        del found["logits"]
    version = f"transformers {transformers.__version__} (torch {torch.__version__}), eager, float64"
    return files_of(about, config if "-" in name else saved_config(model), version, shapes, found, case, pixels)


def files_of(about, config, version, shapes, found, case, pixels):
    outputs = {f"plain/{key}": ("F32", list(tensor.shape), tensor.flatten().tolist()) for key, tensor in found.items()}
    shown = {"name": "plain", "outputs": {key: list(tensor.shape) for key, tensor in found.items()}, **case}
    files = {"config.json": json.dumps(config, indent=1, sort_keys=True).encode() + b"\n",
             "cases.json": text_of(about, version, shapes, shown).encode(),
             "outputs.safetensors": tensor_file.write(outputs)}
    if pixels is not None:
        files["inputs.safetensors"] = tensor_file.write({"plain/pixel_values": ("F32", *pixels)})
    return files


def check(transformers, torch, name, files):
    """The largest difference between what the archive has of a kind and what is computed now."""
    config, cases = (json.loads(files[file]) for file in ("config.json", "cases.json"))
    if config["model_type"] in references.REFERENCES:
        return largest_difference(files, refer(config, cases["tensors"])[1])
    model = make_model(transformers, torch, config)
    shapes = set_weights(torch, name, model, cases["tensors"])
    left = set(cases["tensors"]) - set(shapes)
    assert not left, f"{name}: transformers has no tensors {sorted(left)}"
    pixels = None
    if "inputs.safetensors" in files:
        pixels = tensor_file.read(files["inputs.safetensors"])[0]["plain/pixel_values"][1:]
    case = cases["cases"][0]
    found, _ = compute(torch, model, pixels, case.get("input_ids"), case.get("decoder_input_ids"))
    return largest_difference(files, found)


def largest_difference(files, found):
    recorded, largest = tensor_file.read(files["outputs.safetensors"])[0], 0
    for key, (_, _, numbers) in recorded.items():
        case, _, output = key.partition("/")
        if case == "plain" and output in found:
            now = found[output].flatten().tolist()
            largest = max(largest, *(abs(a - b) / max(1, abs(b)) for a, b in zip(now, numbers, strict=True)))
    return largest


# ---- the archive ----


def read_archive():
    """{kind: {file name: bytes}}"""
    kinds = {}
    with tarfile.open(ARCHIVE) as tar:
        for member in tar:
            if member.isfile():
                folder, file = pathlib.PurePath(member.name).parts[-2:]
                kinds.setdefault(folder, {})[file] = tar.extractfile(member).read()
    return kinds


def write_archive(kinds):
    """The same bytes for the same kinds."""
    with tarfile.open(ARCHIVE, "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as tar:
        for folder in sorted(kinds):
            entry = tarfile.TarInfo(f"./{folder}")
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
            for file, content in sorted(kinds[folder].items()):
                entry = tarfile.TarInfo(f"./{folder}/{file}")
                entry.size, entry.mode = len(content), 0o644
                tar.addfile(entry, io.BytesIO(content))


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--transformers", type=pathlib.Path,
                        help="the folder with the package transformers; kinds of references.py do not need it")
    parser.add_argument("--check", action="store_true", help="compare with the archive, and write nothing")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    options = parser.parse_args()
    transformers, torch = import_transformers(options.transformers.resolve()) if options.transformers else (None, None)
    kinds, failed = read_archive(), 0
    for name in options.kinds or (sorted(kinds) if options.check else KINDS):
        try:
            if options.check:
                largest = check(transformers, torch, name, kinds[name])
                failed += largest > CLOSE
            else:
                kinds[name], largest = record(transformers, torch, name), None
        except Exception as error:  # the other kinds shall be tried, too
            print(f"{name}: {error!r}")
            failed += 1
            continue
        print(f"{name}: recorded" if largest is None else f"{name}: {largest:.1e}")
    if not options.check:
        write_archive(kinds)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
