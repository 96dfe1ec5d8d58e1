#!/usr/bin/env python3
"""
record_gradients.py: records gradients.tar.xz: what torch's autograd gives through the modules of transformers.

    record_gradients.py --transformers DIR [--to FILE] [KIND…]

A kind is one of kinds.tar.xz or heads.tar.xz, with the weights that it has there. Its file has, in float64, the gradients of a metric by
each map (0 where the map hides a key), by the vectors of its words or patches, and integrated gradients of words from vectors of 0, by the
midpoint rule. Its metadata is the request.
"""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import record  # noqa: E402
import tensor_file  # noqa: E402

KINDS = ("bert-classes", "bert-causal", "gpt2-scaled", "llama-llama3", "t5-gelu", "vit-classes", "dinov2-both", "gpt_neox", "opt-350m",
         "bart-scaled", "albert", "olmo2")
IDS, TARGET, STEPS = [[5, 17, 3, 42, 8, 29]], [[2, 9, 31, 44]], 3
MAPS = {"attentions": "attention", "encoder_attentions": "encoder_attention", "decoder_attentions": "decoder_attention",
        "cross_attentions": "cross_attention"}


class Vectors:
    """What the embeddings give, times a share, in the order of the stacks."""

    def __init__(self, model, is_image):
        self.seen, self.share = [], 1
        stacks = [model.get_encoder(), model.get_decoder()] if model.config.is_encoder_decoder else [model]
        modules = [] if is_image else [stack.get_input_embeddings() for stack in stacks]
        for module in dict.fromkeys(modules):
            module.register_forward_hook(self.see)

    def see(self, module, inputs, output):
        output = output * self.share
        output.retain_grad()
        self.seen.append(output)
        return output


def score(logits, config, words, query):
    """The difference of two logits, or one log-probability."""
    row = logits[0] if logits.dim() == 2 else logits[0, query]
    if len(words) == 2:
        return row[words[0]] - row[words[1]]
    if config.problem_type == "regression":
        return row[words[0]]
    if config.problem_type == "multi_label_classification":
        return row[words[0]].sigmoid().log()
    return row.log_softmax(-1)[words[0]]


def run(model, asked, metric, vectors, share=1):
    """The metric, its gradients by the maps and by the vectors."""
    vectors.seen, vectors.share = [], share
    answer = dict(model(**asked, output_attentions=True, output_hidden_states=True, return_dict=True))
    maps = {name: answer[group] for group, name in MAPS.items() if answer.get(group)}
    seen = vectors.seen or [answer["hidden_states"][0]]
    for tensor in [*seen, *(tensor for group in maps.values() for tensor in group)]:
        tensor.retain_grad()
    value = score(answer["logits"], model.config, metric["words"], metric.get("query"))
    model.zero_grad()
    value.backward()
    return value, {name: [tensor.grad * (tensor != 0) for tensor in group] for name, group in maps.items()}, seen


def request_of(model, pixels):
    reads_one = type(model).__name__.endswith(("ForSequenceClassification", "ForImageClassification"))
    metric = {"words": [1]} if reads_one else {"words": [7, 3], "query": -1} if model.config.model_type == "gpt2" else {"words": [7], "query": 2}
    if pixels is not None:
        return {"inputs": {"pixels": {"shape": pixels[0], "data": list(record.float32(pixels[1]))}}, "metric": metric}
    inputs = {"ids": IDS}
    if model.config.is_encoder_decoder:
        inputs["target_ids"] = TARGET
    return {"inputs": inputs, "metric": metric, "steps": STEPS}


def asked_of(torch, request):
    inputs = request["inputs"]
    if "pixels" in inputs:
        return {"pixel_values": torch.tensor(inputs["pixels"]["data"]).reshape(inputs["pixels"]["shape"])}
    ids = torch.tensor(inputs["ids"])
    asked = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if "target_ids" in inputs:
        asked["decoder_input_ids"] = torch.tensor(inputs["target_ids"])
    return asked


def record_kind(transformers, torch, name, files):
    config, cases = (json.loads(files[file]) for file in ("config.json", "cases.json"))
    model = record.make_model(transformers, torch, config)
    record.set_weights(torch, name, model, cases["tensors"])
    is_image = model.main_input_name == "pixel_values"
    request = request_of(model, record.pixels_of(model) if is_image else None)
    asked, vectors = asked_of(torch, request), Vectors(model, is_image)
    value, maps, seen = run(model, asked, request["metric"], vectors)
    found = {name: torch.stack(group) for name, group in maps.items()}
    names = ["encoder_", "decoder_"] if len(seen) == 2 else [""]
    found.update({f"{prefix}embedding": tensor.grad for prefix, tensor in zip(names, seen, strict=True)})
    found["metric"] = value.reshape(1)
    if not is_image:
        words, sums = [tensor.detach() for tensor in seen], [0] * len(seen)
        for k in range(STEPS):
            _, _, seen = run(model, asked, request["metric"], vectors, (k + 0.5) / STEPS)
            sums = [total + tensor.grad / STEPS for total, tensor in zip(sums, seen, strict=True)]
        integrals = [a * b for a, b in zip(words, sums, strict=True)]
        before = run(model, asked, request["metric"], vectors, 0)[0]
        found.update({f"{prefix}integrated": tensor for prefix, tensor in zip(names, integrals, strict=True)})
        found["integrated_error"] = (sum(tensor.sum() for tensor in integrals) - (value - before)).reshape(1)
    tensors = {name: ("F64", list(tensor.shape), tensor.flatten().tolist()) for name, tensor in found.items()}
    return {"gradients.safetensors": tensor_file.write(tensors, {"request": json.dumps(request)})}


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--transformers", required=True, type=pathlib.Path, help="the folder with the package transformers")
    parser.add_argument("--to", default="gradients", help="the name of the archive")
    parser.add_argument("kinds", nargs="*", metavar="KIND", default=KINDS)
    options = parser.parse_args()
    transformers, torch = record.import_transformers(options.transformers.resolve())
    archives = {**record.read_archive("kinds"), **record.read_archive("heads")}
    made = {}
    for name in options.kinds:
        try:
            made[name] = record_kind(transformers, torch, name, archives[name])
        except Exception as error:  # the other kinds shall be tried, too
            print(f"{name}: {error!r}", flush=True)
    record.write_archive(options.to, made)
    return 0 if len(made) == len(options.kinds) else 1


if __name__ == "__main__":
    sys.exit(main())
