"""
kinds.py: the models that record.py records, by archive: for each kind, the text about it, and a config.json of small numbers.

The config.json of a kind of KINDS without "-" in its name is the one that transformers saves, with the members that it adds;
others are short.
"""

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
    "gemma3-nested": kind("text tower of text and images, whose logits are not capped", "Gemma3ForConditionalGeneration", model_type="gemma3",
                          text_config={**GROUPED, "model_type": "gemma3_text", "head_dim": 12, "sliding_window": 4,
                                       "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "final_logit_softcapping": 0.5},
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

# ---- heads of classes ----

THREE = {"id2label": {"0": "bad", "1": "so so", "2": "good"}, "label2id": {"bad": 0, "so so": 1, "good": 2}}
FIVE = {"id2label": {str(i): f"LABEL_{i}" for i in range(5)}, "label2id": {f"LABEL_{i}": i for i in range(5)}}
ONE = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
SMALL = {**TEXT, "num_hidden_layers": 2}
PLAIN, FAIR = {**SMALL, "max_position_embeddings": 32, "pad_token_id": 0}, {**SMALL, **BERT}
DISTIL = {"vocab_size": 60, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 32}
ALBERT = {**PLAIN, "embedding_size": 20}
GPT2 = {"vocab_size": 60, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32, "pad_token_id": 0}
WIDE = {**GROUPED, "num_hidden_layers": 2}
BART = {"vocab_size": 60, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 32,
        "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
T5_ENDED = {**T5, "num_layers": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 0}

DEBERTA = {**V3, "num_hidden_layers": 2}

HEADS = {
    "bert-classes": kind("pooler", "BertForSequenceClassification", model_type="bert", **PLAIN, **THREE),
    "bert-each": kind("several labels at once", "BertForSequenceClassification", model_type="bert", **PLAIN, **FIVE,
                      problem_type="multi_label_classification"),
    "bert-number": kind("a regression", "BertForSequenceClassification", model_type="bert", **PLAIN, **ONE,
                        problem_type="regression"),
    "bert-reranker": kind("one label", "BertForSequenceClassification", model_type="bert", **PLAIN, **ONE),
    "bert-tokens": kind("classes of tokens", "BertForTokenClassification", model_type="bert", **PLAIN, **FIVE),
    "bert-questions": kind("starts and ends", "BertForQuestionAnswering", model_type="bert", **PLAIN),
    "bert-next": kind("next sentence", "BertForNextSentencePrediction", model_type="bert", **PLAIN),
    "roberta-classes": kind("dense and out_proj", "RobertaForSequenceClassification", model_type="roberta", **FAIR, **THREE),
    "roberta-tokens": kind("classes of tokens", "RobertaForTokenClassification", model_type="roberta", **FAIR, **FIVE),
    "roberta-questions": kind("starts and ends", "RobertaForQuestionAnswering", model_type="roberta", **FAIR),
    "xlm-roberta-classes": kind("dense and out_proj", "XLMRobertaForSequenceClassification", model_type="xlm-roberta", **FAIR,
                                **THREE),
    "camembert-tokens": kind("classes of tokens", "CamembertForTokenClassification", model_type="camembert", **FAIR, **THREE),
    "electra-classes": kind("gelu", "ElectraForSequenceClassification", model_type="electra", **ALBERT, **THREE),
    "electra-tokens": kind("classes of tokens", "ElectraForTokenClassification", model_type="electra", **ALBERT, **FIVE),
    "electra-questions": kind("starts and ends", "ElectraForQuestionAnswering", model_type="electra", **ALBERT),
    "distilbert-classes": kind("relu", "DistilBertForSequenceClassification", model_type="distilbert", **DISTIL, **THREE),
    "distilbert-tokens": kind("classes of tokens", "DistilBertForTokenClassification", model_type="distilbert", **DISTIL, **FIVE),
    "distilbert-questions": kind("starts and ends", "DistilBertForQuestionAnswering", model_type="distilbert", **DISTIL),
    "albert-classes": kind("pooler", "AlbertForSequenceClassification", model_type="albert", **ALBERT, **THREE),
    "albert-tokens": kind("classes of tokens", "AlbertForTokenClassification", model_type="albert", **ALBERT, **FIVE),
    "albert-questions": kind("starts and ends", "AlbertForQuestionAnswering", model_type="albert", **ALBERT),
    "gpt2-classes": kind("last token", "GPT2ForSequenceClassification", model_type="gpt2", **GPT2, **THREE),
    "gpt2-tokens": kind("classes of tokens", "GPT2ForTokenClassification", model_type="gpt2", **GPT2, **FIVE),
    "gpt2-questions": kind("starts and ends", "GPT2ForQuestionAnswering", model_type="gpt2", **GPT2),
    "llama-classes": kind("last token", "LlamaForSequenceClassification", model_type="llama", **WIDE, **ONE),
    "llama-tokens": kind("classes of tokens", "LlamaForTokenClassification", model_type="llama", **WIDE, **FIVE),
    "llama-questions": kind("starts and ends", "LlamaForQuestionAnswering", model_type="llama", **WIDE),
    "mistral-classes": kind("last token", "MistralForSequenceClassification", model_type="mistral", **WIDE, **THREE,
                            sliding_window=4),
    "qwen2-classes": kind("last token", "Qwen2ForSequenceClassification", model_type="qwen2", **WIDE, **THREE),
    "qwen3-classes": kind("last token; tied words are not run", "Qwen3ForSequenceClassification", model_type="qwen3", **WIDE,
                          **ONE, head_dim=12, tie_word_embeddings=True),
    "gemma2-classes": kind("last token", "Gemma2ForSequenceClassification", model_type="gemma2", **WIDE, **THREE, head_dim=12,
                           sliding_window=4),
    "phi3-tokens": kind("classes of tokens", "Phi3ForTokenClassification", model_type="phi3", **WIDE, **FIVE, bos_token_id=1,
                        eos_token_id=2),
    "opt-classes": kind("projection out of the width", "OPTForSequenceClassification", model_type="opt", vocab_size=60,
                        hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32,
                        word_embed_proj_dim=20, pad_token_id=1, do_layer_norm_before=False, **THREE),
    "bloom-classes": kind("last token", "BloomForSequenceClassification", model_type="bloom", vocab_size=60, hidden_size=32,
                          n_layer=2, n_head=4, pad_token_id=3, **THREE),
    "gpt_neox-classes": kind("last token", "GPTNeoXForSequenceClassification", model_type="gpt_neox", **PLAIN, **THREE),
    "bart-classes": kind("end token of the decoder", "BartForSequenceClassification", model_type="bart", **BART, **THREE),
    "bart-questions": kind("starts and ends of the decoder", "BartForQuestionAnswering", model_type="bart", **BART),
    "mbart-classes": kind("end token of the decoder, which starts with the last token", "MBartForSequenceClassification",
                          model_type="mbart", **{**BART, "decoder_start_token_id": 0}, **THREE),
    "deberta-v2-classes": kind("pooler", "DebertaV2ForSequenceClassification", **DEBERTA, **THREE),
    "deberta-v2-tanh": kind("pooler of tanh", "DebertaV2ForSequenceClassification", **DEBERTA, **FIVE, pooler_hidden_act="tanh"),
    "deberta-v2-tokens": kind("classes of tokens", "DebertaV2ForTokenClassification", **DEBERTA, **FIVE),
    "deberta-v2-questions": kind("starts and ends", "DebertaV2ForQuestionAnswering", **DEBERTA),
    "t5-classes": kind("end token of the decoder", "T5ForSequenceClassification", model_type="t5", **T5_ENDED, **THREE),
    "vit-classes": kind("class token", "ViTForImageClassification", model_type="vit", **IMAGE, **THREE),
    "dinov2-both": kind("class token, and mean of the patches", "Dinov2ForImageClassification", model_type="dinov2", **{
        name: value for name, value in IMAGE.items() if name != "intermediate_size"}, mlp_ratio=2, **THREE),
    "t5-tokens": kind("encoder alone, classes of tokens", "T5ForTokenClassification", model_type="t5", **T5_ENDED, **FIVE),
    "t5-questions": kind("starts and ends of the decoder", "T5ForQuestionAnswering", model_type="t5", **T5_ENDED),
}

# ---- mixtures of experts ----

FEW = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64}
PAIRED = {**FEW, "intermediate_size": 48, "num_key_value_heads": 2}
QWEN = {**PAIRED, "num_hidden_layers": 3, "moe_intermediate_size": 20, "num_experts": 6}
GPT_OSS = {**PAIRED, "intermediate_size": 64, "head_dim": 12, "num_hidden_layers": 3, "num_local_experts": 4,
           "sliding_window": 5, "num_experts_per_tok": 2}
YARN = {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 16}


EXPERTS = {
    "mixtral": kind("two of four experts; head_dim apart", "MixtralForCausalLM", model_type="mixtral", **PAIRED, num_local_experts=4,
                  num_experts_per_tok=2, head_dim=12),
    "mixtral-window": kind("one of five experts; sliding window; gelu; tied; short configuration", "MixtralForCausalLM", model_type="mixtral",
                         **PAIRED, num_local_experts=5, num_experts_per_tok=1, sliding_window=4, hidden_act="gelu",
                         rope_theta=10000.0, tie_word_embeddings=True),
    "qwen2_moe": kind("a shared expert; short configuration", "Qwen2MoeForCausalLM", model_type="qwen2_moe", **QWEN,
                    shared_expert_intermediate_size=28),
    "qwen2_moe-mixed": kind("a layer without experts; normalised weights; sliding layers", "Qwen2MoeForCausalLM", model_type="qwen2_moe", **QWEN,
                          shared_expert_intermediate_size=40, num_experts_per_tok=2, norm_topk_prob=True, mlp_only_layers=[1],
                          use_sliding_window=True, sliding_window=4,
                          layer_types=["sliding_attention", "full_attention", "sliding_attention"], qkv_bias=False),
    "qwen3_moe": kind("normalised weights", "Qwen3MoeForCausalLM", model_type="qwen3_moe", **QWEN, num_experts_per_tok=3, norm_topk_prob=True,
                    head_dim=12),
    "qwen3_moe-mixed": kind("experts in every second layer; biases; sliding window", "Qwen3MoeForCausalLM", model_type="qwen3_moe", **QWEN,
                          num_experts_per_tok=6, decoder_sparse_step=2, attention_bias=True, use_sliding_window=True,
                          sliding_window=3, head_dim=8),
    "olmoe": kind("probabilities of all experts", "OlmoeForCausalLM", model_type="olmoe", **{**PAIRED, "num_key_value_heads": 4},
                num_experts=7, num_experts_per_tok=2),
    "olmoe-normed": kind("normalised weights; grouped heads; biases", "OlmoeForCausalLM", model_type="olmoe", **PAIRED, num_experts=5,
                       num_experts_per_tok=3, norm_topk_prob=True, attention_bias=True, rope_theta=500.0),
    "granitemoe": kind("four multipliers", "GraniteMoeForCausalLM", model_type="granitemoe", **PAIRED, num_local_experts=5,
                     num_experts_per_tok=2, embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.4,
                     logits_scaling=2.0),
    "granitemoe-tied": kind("all experts; tied; short configuration", "GraniteMoeForCausalLM", model_type="granitemoe", **PAIRED,
                          num_local_experts=3, num_experts_per_tok=3, tie_word_embeddings=True, hidden_act="relu"),
    "gpt_oss": kind("sinks; sliding layers; yarn", "GptOssForCausalLM", model_type="gpt_oss", **GPT_OSS, rope_scaling=YARN),
    "gpt_oss-plain": kind("one of three experts; no window", "GptOssForCausalLM", model_type="gpt_oss",
                        **{**GPT_OSS, "num_local_experts": 3, "num_experts_per_tok": 1}, rope_scaling=None,
                        layer_types=["full_attention"] * 3, rope_theta=10000.0),
    "gpt_oss-mxfp4": kind("experts of 4 bits; clamped; short configuration", "GptOssForCausalLM", model_type="gpt_oss", **GPT_OSS,
                        quantization_config={"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}),
}

ARCHIVES = {"kinds": KINDS, "heads": HEADS, "experts": EXPERTS}
