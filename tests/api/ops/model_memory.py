"""model_memory.py: the memory of models is a share of --memory, and a model that does not fit is a sentence."""

import json
import os
import pathlib
import re
import shutil
import tempfile

from accounts import counted
from attnd import Server, wait_until
from hostile import Folder
from models import has, models
from suite import registry

TESTS = []
test = registry(TESTS)
SMALL = {"ATTND_MEMORY": "64M", "ATTND_COMPUTE_THREADS": "1"}  # 11 MiB are for models
REASON = re.compile(r"it needs more than (\d+) MB, has room for (\d+) MB; a larger --memory gives models more room")
MB = 1_000_000
WORDS = 150_000  # of which one table fits, and two do not


def table(size):
    """A tokenizer of so many words, whose table of texts alone has 16 bytes for each."""
    return {"version": "1.0", "model": {"type": "BPE", "vocab": {format(i, "x"): i for i in range(size)}, "merges": []}}


def many_objects(count):
    """A tokenizer that is small as text and large as a tree of JSON."""
    return json.dumps({**table(2), "post_processor": {"type": "Sequence", "processors": ["@"]}}).replace('"@"', ",".join(["{}"] * count))


def save(parent, name, tokenizer):
    """Moves the folder of the model into the parent, as a whole."""
    with tempfile.TemporaryDirectory(dir=parent, prefix=".") as aside:
        folder = Folder(aside, name)
        folder.write("tokenizer.json", (tokenizer if isinstance(tokenizer, str) else json.dumps(tokenizer)).encode())
        os.rename(folder.path, pathlib.Path(parent) / name)


def figures(row):
    needed, room = map(int, REASON.fullmatch(row["reason"]).groups())
    assert needed >= room, row
    return needed, room


def start(program, parent):
    return Server(program, environment={**SMALL, "ATTND_MODELS": parent})


def used(server):
    return counted(server, "attnd_models_memory_bytes")


def is_served(server, name):
    return server.client().post(f"/v1/models/{name}/attention", {"inputs": {"ids": [1, 2, 3]}}).status == 200


@test
def a_model_that_does_not_fit_is_broken_and_the_others_are_served(program):
    with tempfile.TemporaryDirectory() as parent:
        save(parent, "good", table(1000))
        with start(program, parent) as server:
            alone = used(server)
            share = next(int(found.group(1)) for line in server.lines if (found := re.search(r" memory total=.* models=(\d+)", line)))
            assert share == counted(server, "attnd_models_memory_limit_bytes") > alone > 0, (share, alone)
        save(parent, "table", table(1_000_000))
        save(parent, "tree", many_objects(400_000))
        with start(program, parent) as server:
            assert figures(has(server, "table", state="broken"))[0] >= 11
            assert figures(has(server, "tree", state="broken"))[0] * MB < 2 * share
            assert used(server) == alone, (used(server), alone)
            assert any("error model name=table" in line and REASON.search(line) for line in server.lines), server.lines
            refused = server.client().post("/v1/models/table/attention", {"inputs": {"ids": [1]}})
            assert refused.status == 409 and REASON.search(refused.json()["detail"]), refused.body
            assert not [row for row in server.client().get("/v1/layers").json()["layers"] if row["name"].startswith("t")]
            assert is_served(server, "good") and is_served(server, "demo")
            save(parent, "later", many_objects(400_000))
            wait_until(lambda: models(server).get("later", {}).get("state") == "broken", "the folder is not read")
            figures(models(server)["later"])
            assert used(server) == alone and is_served(server, "good"), (used(server), alone)


@test
def a_model_is_read_again_when_there_is_room_for_it(program):
    with tempfile.TemporaryDirectory() as parent:
        for name in ("one", "two"):
            save(parent, name, table(WORDS))
        with start(program, parent) as server:
            has(server, "one", state="ready", tokenizer=True)
            figures(has(server, "two", state="broken"))
            assert used(server) > WORDS * 16
            shutil.rmtree(pathlib.Path(parent) / "one")
            wait_until(lambda: models(server)["two"]["state"] == "ready", "it is not read again")
            assert "reason" not in models(server)["two"] and is_served(server, "two")


@test
def a_new_version_that_does_not_fit_beside_the_old_one_leaves_it(program):
    with tempfile.TemporaryDirectory() as parent:
        save(parent, "one", table(WORDS))
        with start(program, parent) as server:
            before = used(server)
            file = pathlib.Path(parent) / "one" / "tokenizer.json"
            file.with_name("new").write_text(json.dumps(table(WORDS + 1)))
            os.replace(file.with_name("new"), file)
            wait_until(lambda: "reason" in models(server)["one"], "the folder is not read again")
            figures(has(server, "one", state="ready", tokenizer=True))
            assert used(server) == before and is_served(server, "one")
            file.with_name("new").write_text(json.dumps(table(100)))
            os.replace(file.with_name("new"), file)
            wait_until(lambda: "reason" not in models(server)["one"], "the folder is not read again")
            wait_until(lambda: used(server) < before, "the old version keeps its memory")


@test
def the_models_of_the_program_answer_in_little_memory(program):
    """--memory 64M leaves less than 14 MB for a request: the estimate counts what a head takes, and not much more."""
    words = [{"return": ["predictions"]}, {"return": ["logit_lens"]}, {"return": ["word_scores"], "words": "next"}]
    attribution = {"return": ["attribution"], "words": [7]}
    gradient = {"return": ["embedding"], "metric": {"words": [7], "query": -1}}
    with Server(program, environment={**SMALL, "ATTND_COMPUTE_THREADS": "2", "ATTND_NO_MODELS": "off"}) as server:
        asked = [("small/attention", options) for options in words] + [("demo/attention", attribution), ("demo/gradients", gradient)]
        for path, options in asked:
            reply = server.client().post(f"/v1/models/{path}", {"inputs": {"ids": [9] * 64}, "options": options})
            assert reply.status == 200, (path, options, reply.body[:400])
