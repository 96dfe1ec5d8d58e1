"""models.py: models in folders: which kinds are read, what is refused, and what happens when a folder changes."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import kinds
from attnd import Server, wait_until
from suite import Skipped, registry

ROOT = pathlib.Path(__file__).resolve().parents[3]
OWN = ROOT / "tests" / "others" / "models"
TESTS = []
test = registry(TESTS)


def models(server):
    return {row["name"]: row for row in json.loads(server.client().get("/v1/models").body)["models"]}


def has(server, name, **facts):
    row = models(server)[name]
    assert {key: row.get(key) for key in facts} == facts, (row, facts)
    return row


@test
def the_models_of_the_program_are_served_and_all_but_demo_can_be_left_out(program):
    with Server(program, environment={"ATTND_NO_MODELS": "off"}) as server:
        assert set(models(server)) == {"demo", "small"}
        has(server, "small", state="ready", type="llama", tokenizer=True)
    with Server(program) as server:  # tests say --no-models
        assert set(models(server)) == {"demo"}
    with tempfile.TemporaryDirectory() as folder:  # its name stays its own: pages of every origin may ask for it
        refused = subprocess.run([program, "--no-models", "--listen", "127.0.0.1:0", "--model", f"small={folder}"],
                                 capture_output=True, text=True)
        assert refused.returncode != 0 and "small is the name of the program's own model" in refused.stderr, refused


@test
def every_kind_of_model_is_read_and_every_tensor_has_a_place(program):
    with tempfile.TemporaryDirectory() as folder:
        wanted = {}
        for name, model in kinds.all_kinds():
            model.save(pathlib.Path(folder) / name)
            wanted[name] = model
        with Server(program, environment={"ATTND_MODELS": folder}) as server:
            rows = models(server)
            for name, model in wanted.items():
                assert rows[name]["state"] == "ready", rows[name]
                assert rows[name]["layers"] == kinds.LAYERS and rows[name]["d_model"] == kinds.WIDTH, rows[name]
                unused = ("mask_token",)
                numbers = sum(len(data) for key, (_, _, data) in model.tensors.items() if not key.endswith(unused))
                assert rows[name]["parameters"] == numbers, (name, rows[name]["parameters"], numbers)


@test
def recorded_models_are_read(program):
    shared = pathlib.Path(os.environ.get("ATTN_SHARED", ROOT.parent / "shared")) / "vectors" / "models"
    if not shared.exists():
        raise Skipped("needs the recorded models (ATTN_SHARED)")
    with Server(program, environment={"ATTND_MODELS": str(shared)}) as server:
        rows = models(server)
        names = {path.parent.name for path in shared.glob("*/config.json")}
        assert len(names) >= 10 and names < set(rows), (names, rows)
        for name in names:
            assert rows[name]["state"] == "ready", rows[name]
        assert rows["t5"]["kind"] == "encoder-decoder" and rows["vit"]["kind"] == "image", rows
        assert rows["llama"]["dtype"] == "bfloat16" and rows["gpt2"]["kind"] == "decoder", rows


@test
def what_attnd_cannot_run_is_refused_by_name(program):
    def llama(**config):
        return kinds.llama_like("llama", head=True, **config)

    extra = llama()
    extra.add("model.layers.1.self_attn.rotary_gate", 3)
    lacking = llama()
    del lacking.tensors["model.layers.1.mlp.up_proj.weight"]
    wrong = llama()
    wrong.add("model.norm.weight", 5)
    cases = {"moe": (kinds.llama_like("deepseek_v3"), 'model_type is "deepseek_v3", a mixture of experts that attnd cannot run; '
                     "it runs mixtral, qwen2_moe, qwen3_moe, olmoe, granitemoe, gpt_oss"),
             "unknown": (kinds.Model({"model_type": "brandnew"}), '"brandnew"'),
             "activation": (llama(hidden_act="xielu"), 'hidden_act is "xielu"'),
             "quantized": (llama(quantization_config={"bits": 4}), "or a GGUF file of it"),
             "quantized-moe": (kinds.mixtral(quantization_config={"quant_method": "gptq"}), "take the model that it was made from"),
             "gemma3": (kinds.llama_like("gemma3_text", attn_logit_softcapping=30), "config.json has attn_logit_softcapping"),
             "phi": (kinds.llama_like("phi", qk_layernorm=True), "qk_layernorm is true"),
             "stablelm": (kinds.llama_like("stablelm", qk_layernorm=True), "qk_layernorm is true"),
             "rope": (llama(rope_scaling={"rope_type": "spiral", "factor": 2.0}), "spiral"),
             "extra": (extra, "model.layers.1.self_attn.rotary_gate has no place"),
             "lacking": (lacking, "there is no tensor model.layers.1.mlp.up_proj.weight"),
             "wrong": (wrong, "5 features"),
             "layers": (llama(num_hidden_layers=10**9), "num_hidden_layers is 1e+09"),
             "fewer": (llama(num_hidden_layers=1), "model.layers.1")}
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, _) in cases.items():
            model.save(pathlib.Path(folder) / name)
        for name, text in (("damaged", b"\xff" * 40), ("short", b"\x08")):
            llama().save(pathlib.Path(folder) / name)
            (pathlib.Path(folder) / name / "model.safetensors").write_bytes(text)
        with Server(program, environment={"ATTND_MODELS": folder}) as server:
            for name, (_, reason) in cases.items():
                assert reason in has(server, name, state="broken")["reason"], (name, models(server)[name])
            for name in ("damaged", "short"):
                assert "model.safetensors: " in has(server, name, state="broken")["reason"], models(server)[name]
            has(server, "demo", state="ready")


@test
def refusals_name_all_kinds_of_a_sort_that_run(_):
    table = json.loads((ROOT / "server" / "codec" / "checkpoint" / "architectures.json").read_text())
    types = {kind: entry for entry in table["architectures"] for kind in entry["model_types"]}
    for what, group in table["refused"].items():
        assert set(group["runs"]) <= set(types) and not set(group["runs"]) & set(group["types"]), what
    mixtures = {kind for kind, entry in types.items() if '"experts":' in json.dumps(entry["modules"])}
    assert set(table["refused"]["a mixture of experts"]["runs"]) == mixtures, mixtures


@test
def relative_positions_that_do_not_fit_are_refused_by_name(program):
    lacking, rows, norm, width = (kinds.deberta() for _ in range(4))
    del lacking.tensors["deberta.encoder.rel_embeddings.weight"]
    rows.add("deberta.encoder.rel_embeddings.weight", 6, kinds.WIDTH)
    norm.add("deberta.encoder.LayerNorm.weight", 5)
    width.add("deberta.encoder.layer.1.attention.self.pos_key_proj.weight", kinds.WIDTH, 5)
    cases = {"lacking": (lacking, "there is no tensor deberta.encoder.rel_embeddings.weight"),
             "rows": (rows, "[6,8], expected [8, "), "width": (width, "embedding has 8 features"),
             "norm": (norm, "the norm of encoder.rel_embeddings.weight has not one number for each column"),
             "buckets-0": (kinds.deberta(position_buckets=0), "expected [32, "),
             "buckets-less": (kinds.deberta(position_buckets=-7), "expected [32, "),
             "buckets-1": (kinds.deberta(position_buckets=1), "position_buckets in config.json must be an integer of at least 2, received 1"),
             "buckets-many": (kinds.deberta(position_buckets=10**9), "with 1000000000 buckets it must be above 500000001"),
             "buckets-real": (kinds.deberta(position_buckets=1e300), "received 1e300"),
             "near": (kinds.deberta(max_relative_positions=3), "max_distance is 3; with 4 buckets it must be above 3"),
             "shared": (kinds.deberta(position_biased_input=True), "there is no tensor deberta.embeddings.position_embeddings"),
             "off": (kinds.deberta(relative_attention=False), "relative_attention is false; attnd has true"),
             "conv": (kinds.deberta(conv_kernel_size=3), "conv_kernel_size is 3")}
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, _) in cases.items():
            model.save(pathlib.Path(folder) / name)
        kinds.deberta().save(pathlib.Path(folder) / "fine")
        with Server(program, environment={"ATTND_MODELS": folder}) as server:
            for name, (_, reason) in cases.items():
                assert reason in has(server, name, state="broken")["reason"], (name, models(server)[name])
            has(server, "fine", state="ready")


@test
def experts_are_chosen_and_wrong_ones_are_refused_by_name(program):
    wrong, lacking, router = kinds.mixtral(), kinds.mixtral(), kinds.mixtral()
    wrong.add("model.layers.0.block_sparse_moe.experts.2.w1.weight", 5, kinds.WIDTH)
    del lacking.tensors["model.layers.1.block_sparse_moe.experts.1.w2.weight"]
    router.add("model.layers.0.block_sparse_moe.gate.weight", 4, kinds.WIDTH)
    broken = {"wrong": (wrong, "gate gives 5 features, up gives 12"),
              "lacking": (lacking, "experts.each.1.down.weight is missing"),
              "router": (router, "the router has 4 experts, and there are 3"),
              "many": (kinds.mixtral(num_experts_per_tok=4), "expected 1 to 3, the number of experts"),
              "words": (kinds.mixtral(num_experts_per_tok="two"), "num_experts_per_tok in config.json must be"),
              "scales": (kinds.packed(scales=2), "uint8 blocks of shape [rows,n,16] and scales of shape [rows,n]")}
    runs = {"mixtral": (kinds.mixtral(), 2, 3), "packed": (kinds.packed(), 1, 2)}
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, *_) in {**broken, **runs}.items():
            model.save(pathlib.Path(folder) / name)
        with Server(program, environment={"ATTND_MODELS": folder}) as server:
            for name, (_, reason) in broken.items():
                assert reason in has(server, name, state="broken")["reason"], (name, models(server)[name])
            client, batch = server.client(), [[5, 17, 3], [8, 8]]
            for name, (_, each, count) in runs.items():
                for compute in ("float32", "float64"):
                    def ask(ids):
                        body = {"inputs": {"ids": ids}, "options": {"return": ["experts", "output"], "compute": compute}}
                        answer = client.post(f"/v1/models/{name}/attention", body)
                        assert answer.status == 200, answer.body[:400]
                        return answer.json()["outputs"]
                    both = ask(batch)
                    for item, ids in enumerate(batch):
                        alone = ask([ids])
                        assert alone["output"][0] == both["output"][item][:len(ids)], (name, compute)
                        for layer in range(kinds.LAYERS):
                            chosen = both["experts"]["indices"][layer][item]
                            assert alone["experts"]["indices"][layer][0] == chosen[:len(ids)], (name, compute)
                            assert all(len(set(row)) == each and max(row) < count for row in chosen[:len(ids)]), chosen
                            assert chosen[len(ids):] == [[-1] * each] * (3 - len(ids)), chosen


@test
def a_changed_folder_is_read_again_and_a_damaged_one_keeps_the_version(program):
    with tempfile.TemporaryDirectory() as parent:
        folder = shutil.copytree(OWN / "bert", pathlib.Path(parent) / "one")
        with Server(program, environment={"ATTND_MODELS": parent}) as server:
            has(server, "one", type="bert", state="ready")

            def replace(name, data):
                (folder / "new").write_bytes(data)
                os.replace(folder / "new", folder / name)

            replace("config.json", b"{")
            wait_until(lambda: "reason" in models(server)["one"], "the folder is not read again")
            assert "config.json" in has(server, "one", type="bert", state="ready")["reason"], models(server)
            for name in ("config.json", "model.safetensors"):
                replace(name, (OWN / "gpt2" / name).read_bytes())
            wait_until(lambda: models(server)["one"].get("type") == "gpt2", "the folder is not read again")
            wait_until(lambda: "reason" not in models(server)["one"], "the folder is not read again")
            layers = [row["name"] for row in json.loads(server.client().get("/v1/layers").body)["layers"]]
            assert "one.h.0.attn" in layers and "one.bert.encoder.layer.0.attention" not in layers, layers
            shutil.copytree(OWN / "t5", pathlib.Path(parent) / "two")
            wait_until(lambda: models(server).get("two", {}).get("state") == "ready", "the folder is not read again")
            shutil.copytree(OWN / "t5", pathlib.Path(parent) / "attention")
            wait_until(lambda: any("one_of_them=attention" in line for line in server.lines), "a taken name is not told")
            assert server.client().get("/v2/models/attention").json()["inputs"][0]["name"] == "QUERY"
            shutil.rmtree(folder)
            wait_until(lambda: "one" not in models(server), "the folder is not read again")
            has(server, "two", kind="encoder-decoder", layers=2, decoder_layers=3)


@test
def a_file_that_is_cut_in_place_is_read_by_no_later_request(program):
    with tempfile.TemporaryDirectory() as parent:
        folder = shutil.copytree(OWN / "bert", pathlib.Path(parent) / "one")
        whole = (folder / "model.safetensors").read_bytes()
        with Server(program, environment={"ATTND_MODELS": parent}) as server:
            def status(path, inputs):
                return server.client().post(path, {"inputs": inputs}).status

            ids = {"name": "IDS", "datatype": "INT64", "shape": [3], "data": [1, 2, 3]}
            asked = (("/v1/models/one/attention", {"ids": [1, 2, 3]}), ("/v2/models/one/infer", [ids]))
            assert [status(*one) for one in asked] == [200, 200]
            os.truncate(folder / "model.safetensors", 4096)
            assert [status(*one) for one in asked] == [409, 409]
            (folder / "new").write_bytes(whole)
            os.replace(folder / "new", folder / "model.safetensors")
            wait_until(lambda: status(*asked[0]) == 200, "the folder is not read again")


@test
def a_name_that_means_something_else_is_an_error_at_the_start(program):
    for names, reason in ((f"attention={OWN / 'bert'}", "the server's own"), (f"a={OWN / 'bert'},a={OWN / 'gpt2'}", "twice"),
                          ("a", "NAME=DIR")):
        try:
            with Server(program, environment={"ATTND_MODEL": names}):
                raise AssertionError(names)
        except Exception as error:  # pylint: disable=broad-except
            assert reason in str(error), (names, str(error))
