#!/usr/bin/env python3
"""
record_heads.py: records the models of heads.tar.xz, which end in heads of classes, as record.py does those of kinds.tar.xz.

    record_heads.py --transformers DIR [HEAD…]    records these, or all below

A case is a batch: its ids with an attention mask, and the logits of transformers, by "logits", or "start_logits" and
"end_logits". Padding stands on the side that the name of the case says. Positions count the tokens that the mask does not hide,
as transformers' generate makes them.
"""

import argparse
import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import record  # noqa: E402
import tensor_file  # noqa: E402
from record import BERT, GROUPED, IMAGE, T5, TEXT, V3, kind  # noqa: E402

record.ARCHIVE = HERE / "heads.tar.xz"
ROWS = [[5, 17, 3, 42, 8, 8, 29, 51, 11], [36, 23, 7, 9, 12], [44]]
ENDED = [[*row, 2] for row in ROWS]
TRAILING = [[5, 17, 3, 42, 0, 0]]  # padding that no mask hides
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
    "mbart-classes": kind("end token of the decoder", "MBartForSequenceClassification", model_type="mbart", **BART, **THREE),
    "t5-classes": kind("end token of the decoder", "T5ForSequenceClassification", model_type="t5", **T5_ENDED, **THREE),
    "deberta-v2-classes": kind("pooler", "DebertaV2ForSequenceClassification", **DEBERTA, **THREE),
    "deberta-v2-tanh": kind("pooler of tanh", "DebertaV2ForSequenceClassification", **DEBERTA, **FIVE, pooler_hidden_act="tanh"),
    "deberta-v2-tokens": kind("classes of tokens", "DebertaV2ForTokenClassification", **DEBERTA, **FIVE),
    "deberta-v2-questions": kind("starts and ends", "DebertaV2ForQuestionAnswering", **DEBERTA),
    "vit-classes": kind("class token", "ViTForImageClassification", model_type="vit", **IMAGE, **THREE),
    "dinov2-both": kind("class token, and mean of the patches", "Dinov2ForImageClassification", model_type="dinov2", **{
        name: value for name, value in IMAGE.items() if name != "intermediate_size"}, mlp_ratio=2, **THREE),
    "t5-questions": kind("starts and ends of the decoder", "T5ForQuestionAnswering", model_type="t5", **T5_ENDED),
}


def padded(rows, pad, on_left):
    """Ids and masks of one length."""
    longest = max(len(row) for row in rows)
    fill = [[pad] * (longest - len(row)) for row in rows]
    hide = [[0] * len(some) for some in fill]
    show = [[1] * len(row) for row in rows]
    if on_left:
        return [a + b for a, b in zip(fill, rows)], [a + b for a, b in zip(hide, show)]
    return [b + a for a, b in zip(fill, rows)], [b + a for a, b in zip(hide, show)]


def batches(config):
    """{name of a case: (ids, mask)}"""
    pad = config.get("pad_token_id", 0)
    if config["model_type"] in ("bart", "mbart", "t5"):
        return {f"row{i}": ([row], [[1] * len(row)]) for i, row in enumerate(ENDED)}
    found = {"right": padded(ROWS, pad, False)}
    if config["model_type"] in ("gpt2", "llama", "qwen3"):
        found["left"] = padded(ROWS, pad, True)
        found["trailing"] = (TRAILING, [[1] * len(TRAILING[0])])
    return found


def compute_image(torch, model, pixels):
    shape, numbers = pixels
    numbers = struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers))
    with torch.no_grad():
        return {"logits": model(pixel_values=torch.tensor(numbers).reshape(shape)).logits}


def compute(torch, model, ids, mask):
    asked = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "return_dict": True}
    if model.config.model_type == "gpt2":
        asked["position_ids"] = (torch.tensor(mask).cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        answer = dict(model(**asked))
    return {name: answer[name] for name in ("logits", "start_logits", "end_logits") if name in answer}


def record_head(transformers, torch, name):
    """{file name: bytes}"""
    about, config = HEADS[name]
    model = record.make_model(transformers, torch, config)
    shapes = record.set_weights(torch, name, model)
    cases, outputs, files = [], {}, {}
    is_image = model.main_input_name == "pixel_values"
    for case, (ids, mask) in ({"plain": (None, None)} if is_image else batches(config)).items():
        if is_image:
            pixels = record.pixels_of(model)
            found, given = compute_image(torch, model, pixels), {"pixel_values": f"{case}/pixel_values"}
            files["inputs.safetensors"] = tensor_file.write({given["pixel_values"]: ("F32", *pixels)})
        else:
            found, given = compute(torch, model, ids, mask), {"input_ids": ids, "attention_mask": mask}
        cases.append({"name": case, **given, "classes": {key: list(tensor.shape) for key, tensor in found.items()}, "outputs": {}})
        for key, tensor in found.items():
            outputs[f"{case}/{key}"] = ("F32", list(tensor.shape), tensor.flatten().tolist())
    version = f"transformers {transformers.__version__} (torch {torch.__version__}), eager, float64"
    text = {"about": about, "recorded_with": version, "tensors": shapes, "cases": cases}
    return {**files, "config.json": json.dumps(config, indent=1, sort_keys=True).encode() + b"\n",
            "cases.json": json.dumps(text, separators=(",", ":")).encode() + b"\n",
            "outputs.safetensors": tensor_file.write(outputs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--transformers", required=True, type=pathlib.Path, help="the folder with the package transformers")
    parser.add_argument("heads", nargs="*", metavar="HEAD")
    options = parser.parse_args()
    transformers, torch = record.import_transformers(options.transformers.resolve())
    heads = record.read_archive() if record.ARCHIVE.exists() else {}
    for name in options.heads or HEADS:
        heads[name] = record_head(transformers, torch, name)
        print(f"{name}: recorded", flush=True)
    record.write_archive(heads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
