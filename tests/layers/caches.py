"""caches.py: options.cache: a sequence that is sent token by token gives what it gives as a whole."""

import threading
import time

from attnd import Server
from layer import answered, as_file, expect, layer, matrix, put, refused, send

CHECKS = []
TOKENS = matrix(6, 4, "tokens")
CLOSE = 1e-6  # other sums in another order of the same float32 products


def check(function):
    CHECKS.append(function)
    return function


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


def close(got, wanted):
    worst = max(abs(a - b) for one, other in zip(got, wanted) for a, b in zip(one, other))
    expect(len(got) == len(wanted) and worst <= CLOSE, f"off by {worst}")


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
        refused(post(client, path, TOKENS + TOKENS, "b"), 507, "cache-bytes")
        refused(post(client, path, TOKENS + TOKENS, "a"), 507, "cache-bytes")
        expect(answered(send(client, "GET", "/v1/caches/a"))["length"] == 6, "length")
        answered(post(client, path, TOKENS[:1], "b"))
        refused(post(client, path, TOKENS[:1], "c"), 507, "cache-max")
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
