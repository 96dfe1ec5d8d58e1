"""caches.py: options.cache: a sequence sent token by token gives the same answer as the whole sequence."""

import http.client
import json
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import urllib.parse

from attnd import Server, wait_until
from layer import TENSORS, answered, as_file, expect, layer, matrix, put, refused, send
import tensor_file
from suite import registry

CHECKS = []
TOKENS = matrix(6, 4, "tokens")
CLOSE = 1e-6  # other sums in another order of the same float32 products
NEAR = 1e-2  # likewise of weights that are rounded to bfloat16; a wrong row is off by a tenth and more


check = registry(CHECKS)


def rotary(seed=1):
    body = layer(seed)
    body["options"] = {"num_heads": 2, "rope": {"layout": "half", "theta": 100}, "return": ["output"]}
    return body


def post(client, path, tokens, cache=None, **sections):
    options = {"return": ["output"], **sections.pop("options", {})}
    if cache is not None:
        options["cache"] = cache
    return send(client, "POST", path, {"inputs": {"query": tokens}, "options": options, **sections})


def steps(client, path, cache, parts, **sections):
    outputs = []
    for part in parts:
        reply = answered(post(client, path, part, cache, **sections))
        expect(list(reply["outputs"]) == ["output"], f"{list(reply['outputs'])} are shown")
        outputs += reply["outputs"]["output"]
    return outputs


def close(got, wanted, allowed=CLOSE):
    worst = max(abs(a - b) for one, other in zip(got, wanted) for a, b in zip(one, other))
    expect(len(got) == len(wanted) and worst <= allowed, f"off by {worst}")


@check
def steps_give_what_the_whole_gives(stage):
    with stage.server() as server:
        client, path = server.client(), "/v1/layers/r/attention"
        answered(put(client, "r", rotary()), 201)
        whole = answered(post(client, path, TOKENS))["outputs"]["output"]
        close(steps(client, path, "one", [[row] for row in TOKENS]), whole)
        close(steps(client, path, "other", [TOKENS[:3], TOKENS[3:5], TOKENS[5:]]), whole)
        facts = answered(send(client, "GET", "/v1/caches/one"))
        expect((facts["length"], facts["bytes"], facts["kv_num_heads"]) == (6, 2 * 6 * 4 * 4, 2), facts)
        listed = answered(send(client, "GET", "/v1/caches"))["caches"]
        expect(sorted(row["name"] for row in listed) == ["one", "other"], listed)
        weights = {name: rotary()[name] for name in ("weights", "masks")}
        more = {**weights, "options": {"num_heads": 2, "rope": {"layout": "half", "theta": 100}}}
        close(steps(client, "/v1/multi-head-attention", "stateless", [TOKENS[:2], TOKENS[2:]], **more), whole)
        batch = [TOKENS, TOKENS[::-1]]
        got = [answered(post(client, path, [item[at:at + 2] for item in batch], "batch"))["outputs"]["output"]
               for at in (0, 2, 4)]
        wanted = answered(post(client, path, batch))["outputs"]["output"]
        for b in range(2):
            close(sum((part[b] for part in got), []), wanted[b])


@check
def what_a_step_asks_for_is_shown(stage):
    with stage.server() as server:
        client = server.client()
        answered(put(client, "r", rotary()), 201)
        for wanted in (["present_key"], ["output", "attention", "present_key", "present_value"]):
            reply = answered(post(client, "/v1/layers/r/attention", TOKENS[:2], "c", options={"return": wanted}))
            expect(list(reply["outputs"]) == sorted(wanted, key=list(reply["outputs"]).index), reply["outputs"].keys())
        expect(len(reply["outputs"]["present_key"][0][0]) == 4, "present_key is not that of all steps")
        csv = send(client, "POST", "/v1/layers/r/attention", Accept="text/csv",
                   body={"inputs": {"query": TOKENS[:1]}, "options": {"cache": "c", "return": ["output"]}})
        expect(csv.status == 200, csv.body)
        picture = send(client, "POST", "/v1/layers/r/attention", Accept="image/svg+xml",
                       body={"inputs": {"query": TOKENS[:1]}, "options": {"cache": "c", "return": ["attention"]}})
        expect(picture.status == 200, picture.body)
        expect(answered(send(client, "GET", "/v1/caches/c"))["length"] == 6, "length")


@check
def whatever_reads_the_cache_reads_it_where_it_lies(stage):
    """Grouped heads of a batch, while the cache grows: each mechanism, each type, and with the kept keys shown or not."""
    queries, keys = ([matrix(7, width, f"{width} {item}") for item in range(2)] for width in (8, 4))
    kinds = [{"compute": kind} for kind in ("float32", "float64", "bfloat16")]
    kinds += [{"mechanism": "linear"}, {"mechanism": {"type": "performer", "features": 8, "seed": 1}}]
    with stage.server() as server:
        client = server.client()

        def attend(cut, **more):
            options = {"num_heads": 4, "kv_num_heads": 2, "rope": True, **more}
            inputs = {"query": [item[cut] for item in queries], "key": [item[cut] for item in keys]}
            return answered(send(client, "POST", "/v1/attention",
                                 {"inputs": inputs, "masks": {"causal": True}, "options": options}))["outputs"]

        for number, kind in enumerate(kinds):
            whole = attend(slice(0, 7), **kind, **{"return": ["output", "present_key", "k_rotated"]})
            for name, shown in (("hidden", []), ("shown", ["present_key"]), ("rotated", ["k_rotated"])):
                cache = {"cache": f"{name}-{number}", "return": ["output", *shown]}
                for row in range(7):
                    got = attend(slice(row, row + 1), **kind, **cache)
                    for b in range(2):
                        close(got["output"][b], whole["output"][b][row:row + 1], NEAR)
                        for step in shown:
                            for h in range(2):
                                close(got[step][b][h], whole[step][b][h][:row + 1])


@check
def an_answer_shows_what_was_kept_when_it_was_computed(stage):
    """It is still being written when later steps move the cache: its text is longer than what is written ahead."""
    length, width = 1 << 15, 64
    row = [c + 1 / 3 for c in range(width)]
    tensors = {"inputs.query": ("F32", [1, width], [0.0] * width), "inputs.key": ("F32", [length, width], row * length)}
    headers = {"Content-Type": TENSORS, "Accept": "application/json"}

    def body(**options):
        return tensor_file.write(tensors, {"request": json.dumps({"options": {"cache": "c", **options}})})

    with stage.server() as server:
        parts = urllib.parse.urlsplit(server.url)
        slow = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        for shown in ("present_key", "present_value"):
            slow.request("POST", "/v1/attention", body(**{"return": [shown]}), headers)
            reply = slow.getresponse()
            expect(reply.status == 200, f"status {reply.status}")
            for _ in range(3):
                answered(server.client().send("POST", "/v1/attention", body(**{"return": ["output"]}), headers))
            kept = json.loads(reply.read())["outputs"][shown][0][0]
            expect(len(kept) == length and all(seen == kept[0] for seen in kept), shown)
            close(kept[:1], [row], NEAR)
            expect(send(server.client(), "DELETE", "/v1/caches/c").status == 204, "delete")


@check
def a_failure_leaves_the_cache_as_it_was(stage):
    with stage.server() as server:
        client, path = server.client(), "/v1/layers/r/attention"
        answered(put(client, "r", rotary()), 201)
        answered(post(client, path, TOKENS[:2], "c"))
        refused(post(client, path, [row[:3] for row in TOKENS], "c"), 400)
        refused(post(client, path, [TOKENS, TOKENS], "c"), 400, "batch")
        refused(post(client, path, TOKENS, "c", options={"compute": "float64"}), 400, "float32")
        refused(post(client, path, TOKENS, {"name": "c", "length": 1}), 409, "2 positions")
        refused(post(client, path, TOKENS, {"name": "new", "length": 1}), 410)
        refused(post(client, path, TOKENS, {"length": 1}), 400, "name")
        refused(post(client, path, TOKENS, ".c"), 400, "cannot name")
        refused(post(client, path, TOKENS, 7), 400, "name")
        past = {"query": TOKENS, "past_key": [[[[0, 0]]] * 2], "past_value": [[[[0, 0]]] * 2]}
        refused(send(client, "POST", path, {"inputs": past, "options": {"cache": "c"}}), 400, "past_key")
        refused(send(client, "POST", "/v1/multi-head-attention/gradients",
                     {"inputs": {"query": TOKENS, "grad_output": TOKENS}, "weights": layer()["weights"],
                      "options": {"cache": "c"}}), 400, "gradients")
        refused(put(client, "x", {**layer(), "options": {"num_heads": 2, "cache": "c"}}), 400, "cache")
        infer = {"inputs": [{"name": "QUERY", "shape": [1, 4], "datatype": "FP32", "data": TOKENS[0]}],
                 "parameters": {"cache": "c"}}
        refused(send(client, "POST", "/v2/models/r/infer", infer), 400, "cache")
        expect(answered(send(client, "GET", "/v1/caches/c"))["length"] == 2, "length")
        expect(len(answered(send(client, "GET", "/v1/caches"))["caches"]) == 1, "caches that were begun in vain")
        answered(put(client, "other", rotary(2)), 201)
        refused(post(client, "/v1/layers/other/attention", TOKENS, "c"), 409, "another layer")
        answered(put(client, "r", rotary(3)))
        refused(post(client, path, TOKENS, "c"), 409, "another version")
        expect(send(client, "DELETE", "/v1/caches/c").status == 204, "delete")
        refused(send(client, "DELETE", "/v1/caches/c"), 404)
        refused(send(client, "GET", "/v1/caches/c"), 404)
        answered(post(client, path, TOKENS, "c"))


@check
def a_step_counts_when_it_is_answered(stage):
    """Whenever the deadline passes: while it is computed, written or compressed."""
    body = {"inputs": {"query": [[0.5, 0.25]] * 1200}, "options": {"return": ["attention"], "cache": "c"}}
    status, timeout = 504, 0.05
    with stage.server() as server:
        client = server.client()
        while status == 504:
            reply = send(client, "POST", "/v1/attention", body, Request_Timeout=f"{timeout:.3f}", Accept="text/csv",
                         Accept_Encoding="zstd")
            status, timeout = reply.status, timeout * 1.15
            expect(status in (200, 504), f"status {status}: {reply.body[:300]}")
            look = send(client, "GET", "/v1/caches/c")
            expect(look.status == (200 if status == 200 else 404), f"answered {status}, and the cache {look.status}")


@check
def a_step_that_was_late_leaves_no_row_behind(stage):
    """Whenever the deadline passes, also while the cache grows."""
    rows, timeout, late = matrix(900, 2, "late"), 0.002, 0
    with stage.server() as server:
        client = server.client()
        answered(post(client, "/v1/attention", rows[:3], "c"))
        while (reply := post_late(client, rows[3:], timeout)).status == 504:
            timeout, late = timeout * 1.3, late + 1
            expect(answered(send(client, "GET", "/v1/caches/c"))["length"] == 3, "length")
        expect(reply.status == 200, f"status {reply.status}: {reply.body[:300]}")
        kept = answered(post(client, "/v1/attention", rows[:1], "c", options={"return": ["present_key"]}))
        close(kept["outputs"]["present_key"][0][0], rows + rows[:1])
        expect(late > 0, "every step was in time")


def post_late(client, tokens, timeout):
    body = {"inputs": {"query": tokens}, "options": {"cache": "c", "return": ["output", "attention"]}}
    return send(client, "POST", "/v1/attention", body, Request_Timeout=f"{timeout:.4f}", Accept="text/csv")


@check
def idle_caches_are_gone_and_said_to_be(stage):
    with stage.server(cache_idle=1) as server:
        client, path = server.client(), "/v1/layers/r/attention"
        answered(put(client, "r", rotary()), 201)
        answered(post(client, path, TOKENS, "c"))
        time.sleep(1.2)
        refused(post(client, path, TOKENS, "c"), 410, "idle")
        refused(send(client, "GET", "/v1/caches/c"), 410)
        expect(send(client, "DELETE", "/v1/caches/c").status == 204, "delete")
        answered(post(client, path, TOKENS, "c"))


@check
def caches_are_bounded(stage):
    with Server(stage.program, environment={"ATTND_CACHE_BYTES": "400", "ATTND_CACHE_MAX": "2"}) as server:
        client, path = server.client(), "/v1/layers/r/attention"
        answered(put(client, "r", as_file(layer())), 201)
        answered(post(client, path, TOKENS, "a"))
        refused(post(client, path, TOKENS + TOKENS, "b"), 507, "--cache-bytes")
        refused(post(client, path, TOKENS + TOKENS, "a"), 507, "DELETE /v1/caches/")
        expect(answered(send(client, "GET", "/v1/caches/a"))["length"] == 6, "length")
        answered(post(client, path, TOKENS[:1], "b"))
        refused(post(client, path, TOKENS[:1], "c"), 507, "--cache-max")
        expect(send(client, "DELETE", "/v1/caches/a").status == 204, "delete")
        answered(post(client, path, TOKENS[:1], "c"))


@check
def steps_at_once_are_told_apart(stage):
    with stage.server() as server:
        client = server.client()
        answered(put(client, "r", rotary()), 201)
        seen = []

        def work():
            own = server.client()
            for _ in range(40):
                seen.append(post(own, "/v1/layers/r/attention", TOKENS[:1], "shared").status)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        expect(set(seen) <= {200, 409}, f"{set(seen)}")
        length = answered(send(client, "GET", "/v1/caches/shared"))["length"]
        expect(length == seen.count(200), f"{length} positions after {seen.count(200)} steps")


class Keys:
    """A server with keys of these names, NAME or NAME:RIGHTS: each has a way to ask as one of them."""

    def __init__(self, stage, folder, names, **environment):
        self.program, self.path, self.tokens = stage.program, pathlib.Path(folder) / "keys", {}
        self.write(names)
        self.server = Server(stage.program, environment={"ATTND_KEYS": str(self.path), **environment})

    def write(self, names):
        lines = ""
        for name in names:
            words = name.split(":")
            made = subprocess.run([self.program, "key", *words], capture_output=True, text=True, check=True)
            self.tokens[words[0]] = made.stderr.split()[-1]
            lines += made.stdout
        self.path.write_text(lines)

    def read_again(self, *names):
        self.write(names)
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.ask(names[-1], "GET", "/v1/caches").status == 200, "the keys are not read again")

    def ask(self, name, method, path, body=None):
        return send(self.server.client(), method, path, body, X_API_Key=self.tokens[name])

    def step(self, name, cache, tokens=TOKENS[:1], wanted=("output",)):
        body = {"inputs": {"query": tokens}, "options": {"cache": cache, "return": list(wanted)}}
        return self.ask(name, "POST", "/v1/attention", body)

    def names(self, name):
        return [row["name"] for row in answered(self.ask(name, "GET", "/v1/caches"))["caches"]]


@check
def a_cache_belongs_to_the_key_that_began_it(stage):
    with tempfile.TemporaryDirectory() as folder:
        keys = Keys(stage, folder, ("ann", "ben", "boss:all"))
        with keys.server:
            answered(keys.step("ann", "chat", TOKENS[:3]))
            for other in ("ben", "boss"):
                expect(keys.names(other) == [], keys.names(other))
                refused(keys.ask(other, "GET", "/v1/caches/chat"), 404, 'no cache "chat"')
                refused(keys.ask(other, "DELETE", "/v1/caches/chat"), 404, 'no cache "chat"')
            reply = answered(keys.step("ben", "chat", wanted=("present_key",)))
            expect(len(reply["outputs"]["present_key"][0][0]) == 1, "another key's cache was gone on with")
            expect(answered(keys.ask("ann", "GET", "/v1/caches/chat"))["length"] == 3, "length")
            expect(keys.names("ann") == ["chat"] and keys.names("ben") == ["chat"], "names")
            expect(keys.ask("ann", "DELETE", "/v1/caches/chat").status == 204, "the compute right deletes its own")
            expect(keys.names("ann") == [] and keys.names("ben") == ["chat"], "names")


@check
def a_key_holds_half_of_what_there_is(stage):
    with tempfile.TemporaryDirectory() as folder:
        keys = Keys(stage, folder, ("ann", "ben"), ATTND_CACHE_MAX="4", ATTND_CACHE_BYTES="512")
        with keys.server:
            answered(keys.step("ann", "1"))
            answered(keys.step("ann", "2"))
            refused(keys.step("ann", "3"), 507, "half of --cache-max")
            refused(keys.step("ann", "1", [TOKENS[0]] * 8), 507, "half of --cache-bytes")
            answered(keys.step("ben", "1"))
            expect(keys.ask("ann", "DELETE", "/v1/caches/1").status == 204, "delete")
            answered(keys.step("ann", "3"))


@check
def caches_of_a_key_that_is_removed_come_back_with_its_name(stage):
    with tempfile.TemporaryDirectory() as folder:
        keys = Keys(stage, folder, ("ann", "ben"))
        with keys.server:
            answered(keys.step("ann", "chat"))
            keys.read_again("ben")
            refused(keys.ask("ann", "GET", "/v1/caches/chat"), 401)
            expect(keys.names("ben") == [], "caches of a removed key")
            keys.read_again("ben", "ann")
            expect(keys.names("ann") == ["chat"], "a new secret of the same name has the same caches")
