"""
variants.py: recorded models with one mistake each, in config.json or in the shapes of their tensors: the reason of each names
the member or the tensor that is in the files, and no path of attnd's own.
"""

import json
import pathlib
import sys
import tarfile
import tempfile

from attnd import Server
from suite import registry

MODELS = pathlib.Path(__file__).resolve().parents[2] / "others" / "models"
sys.path.insert(0, str(MODELS))

import made_weights  # noqa: E402
import tensor_file  # noqa: E402

MOE, EXPERTS = "model.layers.0.block_sparse_moe", "model.layers.0.mlp.experts"
BERT = "bert.encoder.layer.0"
VARIANTS = {  # name: archive, kind; members of config.json; new first sizes of tensors, None: absent; words of the reason
    "many-chosen": ("experts", "mixtral", {"num_experts_per_tok": 9}, {}, ("9, expected 1 to 4", "num_experts_per_tok in config.json")),
    "none-chosen": ("experts", "mixtral", {"num_experts_per_tok": 0}, {}, ("num_experts_per_tok in config.json must be an integer",)),
    "few-experts": ("experts", "mixtral", {"num_local_experts": 3}, {}, (f"num_local_experts is 3, and {MOE}.gate has 4 experts",)),
    "wide-expert": ("experts", "mixtral", {}, {f"{MOE}.experts.0.w3.weight": 49}, (f"({MOE}.experts.0.w3.weight)",)),
    "no-scales": ("experts", "gpt_oss-mxfp4", {}, {f"{EXPERTS}.down_proj_scales": None},
                  (f"there is no tensor {EXPERTS}.down_proj_scales",)),
    "few-biases": ("experts", "gpt_oss", {}, {f"{EXPERTS}.down_proj_bias": 3},
                   (f"{EXPERTS}.down_proj: there are 4 experts, and biases of 3",)),
    "no-shared-gate": ("experts", "qwen2_moe", {}, {"model.layers.0.mlp.shared_expert_gate.weight": None},
                       ("there is no tensor model.layers.0.mlp.shared_expert_gate.weight",)),
    "rope": ("experts", "qwen3_moe", {"rope_theta": -1}, {}, ("rope_theta or rope_scaling in config.json must be a number above 0",)),
    "buckets": ("kinds", "mpnet", {"relative_attention_num_buckets": 16}, {}, ("relative_attention_num_buckets is 16", "only if it is 32")),
    "wide-inner": ("heads", "bert-classes", {}, {f"{BERT}.intermediate.dense.weight": 49}, (f"({BERT}.intermediate.dense.bias)",)),
    "label": ("heads", "bert-classes", {"id2label": {"1": "a\0b"}}, {}, ("the label 1 of id2label has U+0000",)),
    "nested": ("kinds", "llava", {"text_config": {"model_type": "new_thing"}}, {}, ('model_type "new_thing", which is within a llava',)),
}
CHECKS = []
check = registry(CHECKS)


def recorded(archive, kind):
    """config.json and the shapes of the tensors."""
    with tarfile.open(MODELS / f"{archive}.tar.xz") as tar:
        config, cases = (json.load(tar.extractfile(f"./{kind}/{file}")) for file in ("config.json", "cases.json"))
    return config, cases["tensors"]


def write(folder, archive, kind, members, sizes):
    config, shapes = recorded(archive, kind)
    for tensor, size in sizes.items():
        shapes[tensor] = None if size is None else [size, *shapes[tensor][1:]]
    shapes = {tensor: shape for tensor, shape in shapes.items() if shape is not None}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**config, **members}))
    (folder / "model.safetensors").write_bytes(tensor_file.write(made_weights.tensors(shapes)))


@check
def reasons_name_what_is_in_the_files(program, _):
    with tempfile.TemporaryDirectory() as parent:
        for name, (*variant, _words) in VARIANTS.items():
            write(pathlib.Path(parent) / name, *variant)
        with Server(program, environment={"ATTND_MODELS": parent}) as server:
            rows = {row["name"]: row for row in server.client().get("/v1/models").json()["models"]}
        for name, (*_variant, words) in VARIANTS.items():
            reason = rows[name]["reason"]
            assert rows[name]["state"] == "broken" and "/options" not in reason and "/weights" not in reason, (name, reason)
            for word in words:
                assert word in reason, (name, word, reason)


@check
def vectors_that_are_wider_than_the_residual_are_planned(program, _):
    """What does not fit is refused before it runs."""
    config, shapes = recorded("kinds", "albert")
    wide, length = 2048, 1000
    narrow, positions = config["embedding_size"], config["max_position_embeddings"]
    assert narrow not in (config["hidden_size"], config["vocab_size"], positions), config
    for tensor, shape in shapes.items():
        if "embed" in tensor or "predictions" in tensor:
            shapes[tensor] = [length if (size, at) == (positions, 0) and "position" in tensor else wide if size == narrow else size
                              for at, size in enumerate(shape)]
    small = {"ATTND_MAX_MEMORY": "28M", "ATTND_MAX_BODY": "1M", "ATTND_COMPUTE_THREADS": "1"}
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent) / "wide"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({**config, "embedding_size": wide, "max_position_embeddings": length}))
        (folder / "model.safetensors").write_bytes(tensor_file.write(made_weights.tensors(shapes)))
        with Server(program, environment={"ATTND_MODELS": parent, **small}) as server:
            for path, wanted in (("attention", {"return": ["output"]}), ("gradients", {"return": ["attention_gradient"], "metric": {"words": [1]}})):
                for count, status in ((length, 413), (10, 200)):
                    body = {"inputs": {"ids": [5] * count}, "options": {"compute": "float64", "digits": 1, **wanted}}
                    reply = server.client().post(f"/v1/models/wide/{path}", body)
                    assert reply.status == status, (path, count, reply.status, reply.body[:300])
                    assert status == 200 or "the computation would take" in reply.json()["error"], (path, reply.body[:300])
