"""
whole_models.py: requests to whole models, as operators see them: counts, rights and quotas of keys, no text in the log,
and Pods under KServe.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from accounts import counted, key
from attnd import Server, wait_until
from suite import registry

TESTS = []
test = registry(TESTS)

MARK = "sesquipedalian"
MAPS, TOKENS, GRADIENTS = "/v1/models/demo/attention", "/v1/models/demo/tokens", "/v1/models/demo/gradients"
INFER = "/v2/models/demo/infer"
ROOT = pathlib.Path(__file__).resolve().parents[3]
RUNTIMES = ROOT / "docker" / "kubernetes" / "kserve" / "runtime.yaml"
BERT = ROOT / "tests" / "others" / "models" / "bert"


def post(server, path, body, token=None):
    fields = {"Content-Type": "application/json", **({"X-API-Key": token} if token else {})}
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return server.client().send("POST", path, body, fields)


def of_text(text, **options):
    return {"inputs": {"text": text}, "options": options}



def by_protocol(*texts, **parameters):
    return {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [len(texts)], "data": list(texts)}],
            "parameters": parameters}


@test
def whole_models_are_counted_by_their_names(program):
    def count(name):
        return counted(server, f'{name}{{model="demo",version="1"}}')

    with Server(program) as server:
        assert 'model="demo"' not in server.client().get("/metrics").body.decode()
        assert post(server, MAPS, of_text(["one", "two"])).status == 200
        assert post(server, MAPS, of_text("one", layers=[99])).status == 400
        assert count("nv_inference_request_success") == 1 and count("nv_inference_request_failure") == 1
        assert count("nv_inference_count") == 2
        assert post(server, INFER, by_protocol("one")).status == 200
        assert post(server, INFER, by_protocol("one", layers="[99]")).status == 400
        assert count("nv_inference_request_success") == 2 and count("nv_inference_request_failure") == 2
        stats = server.client().get("/v2/models/demo/stats").json()["model_stats"][0]
        assert stats["inference_count"] == 3 and stats["inference_stats"]["fail"]["count"] == 2
        assert count("nv_inference_compute_infer_duration_us") > 0
        assert counted(server, "attnd_layers_prepared_bytes") > 0


@test
def the_log_says_what_reading_and_preparing_a_model_took(program):
    def lines_of(message):
        return [line for line in map(json.loads, server.lines) if line["message"] == message and line["name"] == "demo"]

    graded = of_text("one", metric={"words": ["tea"], "query": 1}, **{"return": ["embedding"]})
    for path, body in ((MAPS, of_text("one")), (GRADIENTS, graded)):
        with Server(program, environment={"ATTND_LOG_FORMAT": "json"}) as server:
            (read,), told = lines_of("model"), server.client().get("/v1/models/demo").json()
            assert (read["bytes"], read["parameters"]) == (told["bytes"], told["parameters"]) and read["read_ms"] >= 0, (read, told)
            for _ in range(2):
                assert post(server, path, body).status == 200
            server.client().send("GET", "/end", None, {"X-Request-Id": "the-end"})
            wait_until(lambda: any("the-end" in line for line in server.lines), "no line")
            (prepared,) = lines_of("model prepared")
            assert prepared["bytes"] == counted(server, "attnd_layers_prepared_bytes") > 0 and prepared["prepare_ms"] > 0, prepared


@test
def no_text_reaches_log_metrics_or_errors(program):
    wrong = [of_text(f"{MARK}\0"), of_text(f"{MARK} " * 2000), of_text([MARK, 5]), of_text(MARK, layers=[99]),
             of_text(MARK, **{"return": ["nothing"]}), {"inputs": {"text": MARK, "ids": [1]}},
             {"inputs": {"ids": MARK}}, {"inputs": {"pixels": MARK}}, {"inputs": {"text": {MARK: 1}}},
             {"inputs": {"text": "a", "pair": [MARK, MARK]}}, {"inputs": {"text": "a", "target": MARK}}, {"inputs": MARK},
             f'{{"inputs": {{"text": "{MARK}'.encode(), f'{{"inputs": {{"text": "{MARK}\xff"}}}}'.encode("latin-1"),
             f'{{"inputs": {{"text": "\\q{MARK}"}}}}'.encode(), f'{{"inputs": {{"text": {MARK}}}}}'.encode()]
    wrong += [by_protocol(f"{MARK}\0"), by_protocol(f"{MARK} " * 2000), by_protocol(MARK, layers="[99]"),
              {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [2], "data": [MARK]}]},
              {"inputs": [{"name": "IDS", "datatype": "INT64", "shape": [1], "data": [MARK]}]},
              {"inputs": [{"name": "IDS", "datatype": "INT64", "shape": [1], "data": MARK}]},
              {"inputs": [{"name": "TEXT", "datatype": "FP32", "shape": [1], "data": [MARK]}]}, {"inputs": [MARK]}]
    for form in ("json", "text"):
        with Server(program, environment={"ATTND_LOG_FORMAT": form, "ATTND_LOG_LEVEL": "debug"}) as server:
            for body in wrong:
                for path in (MAPS, TOKENS, INFER):
                    reply = post(server, path, body)
                    assert reply.status in (400, 413) or path == TOKENS, (path, reply.body[:300])
                    assert MARK not in reply.body.decode() or reply.status == 200, (path, reply.body[:300])
            assert post(server, MAPS, of_text(MARK)).status == 200 and post(server, TOKENS, of_text(MARK)).status == 200
            assert MARK not in server.client().get("/metrics").body.decode()
            server.client().send("GET", "/end", None, {"X-Request-Id": "the-end"})
            wait_until(lambda: any("the-end" in line for line in server.lines), "no line")
            assert any(MAPS in line for line in server.lines) and MARK not in "".join(server.lines)


@test
def keys_run_models_by_the_right_to_compute(program):
    with tempfile.NamedTemporaryFile("w") as file:
        worker, watcher = key(program, file, "worker", "compute"), key(program, file, "watcher", "metrics")
        with Server(program, environment={"ATTND_KEYS": file.name}) as server:
            for path, body in ((MAPS, of_text("a")), (TOKENS, of_text("a")), (INFER, by_protocol("a"))):
                assert post(server, path, body).status == 401, path
                assert post(server, path, body, watcher).status == 403, path
                assert post(server, path, body, worker).status == 200, path


@test
def a_run_of_a_model_is_charged(program):
    for path, body in ((MAPS, of_text("a")), (INFER, by_protocol("a"))):
        with tempfile.NamedTemporaryFile("w") as file:
            few = key(program, file, "few", "compute", "flops=1e3")
            with Server(program, environment={"ATTND_KEYS": file.name}) as server:
                assert post(server, path, body, few).status == 200
                wait_until(lambda: post(server, path, body, few).status == 429, "the run is not owed")
                assert b"quota of flops" in post(server, path, body, few).body


def of_kserve(runtime, name, folder):
    """What KServe gives a container of that runtime: its arguments and its variables, as settings."""
    text = next(one for one in RUNTIMES.read_text().split("\n---\n") if f"\n  name: {runtime}\n" in one)
    variables = dict(re.findall(r"- name: (ATTND_\w+)\n +value: (\S+)\n", text))
    named = re.search(r'args: \["--model", "(.*)"\]', text)
    if named:
        variables["ATTND_MODEL"] = named[1].replace("{{.Name}}", name)
    return {variable: value.strip('"').replace("/mnt/models", str(folder)) for variable, value in variables.items()
            if variable != "ATTND_LISTEN"}


def readiness(server):
    """Both probes say the same, unless a model was read between the two requests."""
    for _ in range(5):
        reply = server.client().get("/readyz")
        if server.client().get("/v2/health/ready").status == reply.status:
            return reply.status, reply.json().get("reasons")
    raise AssertionError("/readyz and /v2/health/ready disagree")


@test
def kserve_serves_a_folder_under_the_name_of_its_service(program):
    with Server(program, environment=of_kserve("attnd", "my-bert", BERT)) as server:
        wait_until(lambda: readiness(server) == (200, None), "never ready")
        assert server.client().get("/v2/models/my-bert/ready").status == 200
        assert post(server, "/v2/models/my-bert/infer", by_protocol("one")).status == 200


@test
def a_server_that_can_use_nothing_is_not_ready(program):
    useless = (503, ["no model or layer can be used"])
    with tempfile.TemporaryDirectory() as folder:
        with Server(program, environment=of_kserve("attnd", "empty", folder)) as server:
            wait_until(lambda: readiness(server) == useless, "ready without its model")
            assert server.client().get("/livez").status == 200
            shutil.copytree(BERT, folder, dirs_exist_ok=True)
            wait_until(lambda: readiness(server) == (200, None), "not ready with its model")
        with Server(program, environment=of_kserve("attnd-layers", "bert", folder)) as server:
            assert readiness(server) == useless
            reply = server.client().get("/v1/layers/model")
            assert reply.status == 409 and "--model NAME=DIR" in reply.json()["detail"], reply.body
        with Server(program, environment={"ATTND_LAYERS": folder}) as server:
            assert readiness(server) == (200, None), "here clients can put layers"


@test
def a_layer_that_can_be_used_makes_a_server_with_a_broken_model_ready(program):
    with tempfile.TemporaryDirectory() as model, tempfile.TemporaryDirectory() as layers:
        (pathlib.Path(model) / "config.json").write_text("{}")
        with Server(program, environment={"ATTND_MODEL": f"broken={model}", "ATTND_LAYERS": layers}) as server:
            assert readiness(server) == (503, ["no model or layer can be used"])
            layer = {"weights": {part: {"weight": [[1, 0], [0, 1]]} for part in ("query", "key", "value")}}
            reply = server.client().send("PUT", "/v1/layers/mine", json.dumps(layer), {"Content-Type": "application/json"})
            assert reply.status == 201, reply.body
            assert readiness(server) == (200, None)


@test
def a_signal_ends_the_reading_of_models(program):
    models, words = 40, {"[UNK]": 0, **{f"word{i}": i for i in range(1, 100000)}}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        text = json.dumps({"version": "1.0", "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": words}})
        (folder / "text").write_text(text)
        for i in range(models):
            model = folder / "models" / f"m{i}"
            model.mkdir(parents=True)
            for name in ("config.json", "model.safetensors"):
                (model / name).symlink_to(BERT / name)
            (model / "tokenizer.json").symlink_to(folder / "text")
        environment = {**os.environ, "ATTND_LISTEN": "127.0.0.1:0", "ATTND_MODELS": str(folder / "models")}
        with subprocess.Popen([program], env=environment, stderr=subprocess.PIPE, text=True) as process:
            read = 0
            for line in process.stderr:
                read += " model name=m" in line
                if read == 1 and process.poll() is None:
                    process.terminate()
            assert process.wait() == 0 and 1 <= read < models, (process.returncode, read)
