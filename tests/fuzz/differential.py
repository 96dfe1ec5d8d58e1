#!/usr/bin/env python3
"""
differential.py: sends random requests to a running server, and compares every number of every step with the
reference (tests/support/reference) and its error bounds. It also checks laws between answers: the bytes do not depend on
other requests, other wanted steps, the threads, or the neighbours in the batch. --seconds and --seed; the first differing
request is written to a file.
"""

import argparse
import base64
import concurrent.futures
import contextlib
import math
import pathlib
import random
import struct
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support" / "reference"), str(HERE.parent / "support")]

import attention  # noqa: E402
from attnd import Client, Server, parse_json  # noqa: E402
from bounded import Double, Single, parts, total  # noqa: E402
from random_request import CACHE, MAPS, PACKED, Builder, text_of, to_type  # noqa: E402

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, None: -math.inf}
REPLAYED = 300


class Difference(Exception):
    """An answer that is not what it should be."""


def main():
    options = read_arguments()
    threads = [int(count) for count in options.threads.split(",")]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server(options.attnd, options.url, {"ATTND_COMPUTE_THREADS": str(count)}))
                   for count in (threads[:1] if options.url else threads)]
        return compare(options, [server.url for server in servers])


def read_arguments():
    parser = argparse.ArgumentParser(description="compare a server with a reference in plain Python")
    parser.add_argument("--attnd", default=str(HERE.parents[1] / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--seconds", type=float, default=5, help="how long to send requests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, default=9, help="largest length and number of features, mostly")
    parser.add_argument("--longest", type=int, default=1500, help="longest sequence, now and then")
    parser.add_argument("--threads", default="1,2,3", help="compute threads of the servers to start")
    return parser.parse_args()


def compare(options, urls):
    clients = [Client(url) for url in urls]
    replayed, sent, deadline = [], 0, time.monotonic() + options.seconds
    while time.monotonic() < deadline:
        seed = options.seed * 1_000_000 + sent
        chance = random.Random(seed)
        request = random_request(options, chance, sent)
        try:
            answer = check_request(request, clients, chance)
        except Difference as difference:
            return report(seed, request, difference)
        if len(replayed) < REPLAYED:
            replayed.append((request, answer))
        sent += 1
    wrong = replay(urls, replayed)
    print(f"differential: {sent} requests agree, {len(replayed)} again among others, {wrong} differ")
    return 1 if wrong else 0


def random_request(options, chance, number):
    """Small ones mostly; now and then more features, or sequences that take several tiles and splits of the kernel."""
    if number % 10 == 3:
        return Builder(chance, 5 * options.largest)
    if number % 10 == 6:
        return Builder(chance, 4, longest=options.longest)
    return Builder(chance, options.largest)


def report(seed, request, difference):
    path = pathlib.Path(f"difference-{seed}.json")
    path.write_text(text_of(request.body))
    print(f"differential: seed {seed}: {difference}\nthe request is in {path}, for POST {request.path}")
    return 1


def post(client, request, body=None):
    reply = client.post(request.path, text_of(body or request.body).encode())
    if reply.status != 200:
        raise Difference(f"status {reply.status}: {reply.body[:600].decode(errors='replace')}")
    return reply


def check_request(request, clients, chance):
    reply = post(clients[0], request)
    try:
        answer = parse_json(reply.body)
    except ValueError as error:
        raise Difference(f"not JSON: {error}") from error
    check_answer(request, answer)
    for client in clients[1:]:
        if post(client, request).body != reply.body:
            raise Difference("other bytes with another number of threads")
    check_subset(request, clients[0], answer, chance)
    check_neighbours(request, clients[0], answer, chance)
    check_shown(request, clients[0], answer)
    return reply.body


# ---- one answer against the reference ----

def check_answer(request, answer):
    spec, outputs = request.spec, answer["outputs"]
    if sorted(outputs) != sorted(request.wanted):
        raise Difference(f"outputs {sorted(outputs)}, asked for {sorted(request.wanted)}")
    if spec.drops_weights():
        request.meant["options"]["dropout"] = answer["effective"]["dropout"]  # which has the seed
    kind = Single if spec.compute == "float32" else Double
    exact, request.steps = attention.answer(request.path.removeprefix("/v1/"), request.meant, kind)
    for name in request.wanted:
        shape, values = read(outputs[name])
        if spec.compute == "float32" and not request.options.get("digits"):
            values = [to_type(value, "float32") for value in values]
        if shape != answer["shapes"][name]:
            raise Difference(f"{name} has shape {shape}, shapes says {answer['shapes'][name]}")
        check_step(request, name, shape, values, exact[name])
    check_laws(request, outputs)
    check_diagnostics(request, answer)


def read(form):
    """(shape, flat values) of any of the three forms."""
    if isinstance(form, dict) and "base64" in form:
        raw = base64.b64decode(form["base64"], validate=True)
        if form["dtype"] == "bfloat16":
            return form["shape"], [value for (value,) in struct.iter_unpack("<f", b"".join(
                b"\0\0" + raw[at:at + 2] for at in range(0, len(raw), 2)))]
        kind = PACKED[form["dtype"]]
        return form["shape"], list(struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw))
    if isinstance(form, dict):
        return form["shape"], [WORDS.get(v, v) if v is None or isinstance(v, str) else v for v in form["data"]]
    shape, items = [], [form]
    while isinstance(items[0], list):
        shape.append(len(items[0]))
        items = [inner for item in items for inner in item]
    return shape, [WORDS[v] if v is None or isinstance(v, str) else v for v in items]


def check_step(request, name, shape, values, exact):
    if tuple(shape) != exact.shape:
        raise Difference(f"{name} has shape {shape}, expected {exact.shape}")
    drops = request.spec.drops_residual() and name in ("residual", "output")
    if drops and request.spec.norm and request.spec.norm["position"] == "post" and name == "output":
        return
    rounding = rounding_of(request.options)
    for place, (got, number) in enumerate(zip(values, exact.data)):
        want, error = parts(number)
        if math.isinf(want) or math.isnan(got) or math.isinf(got):
            good = got == want
        else:
            good = abs(got - want) <= 1.01 * error + 1.01 * rounding * (abs(want) + error)
        if not good and not (drops and is_dropped(request, got, place, rounding)):
            raise Difference(f"{name}: element {place} is {got!r}, expected {want!r} within {error:.3g}")


def rounding_of(options):
    """The relative error of a number cut to the digits asked for, read back as a double."""
    if "digits" not in options or options.get("format") == "base64":
        return 0.0
    return 0.5 * 10.0 ** (1 - options["digits"]) + 2e-16


def is_dropped(request, got, place, rounding):
    """With dropout before the residual, an element is query alone or query + projected / (1 - p)."""
    spec = request.spec
    base = spec.query.data[place] if spec.residual else 0.0
    if abs(got - base) <= (1e-6 + 1.01 * rounding) * (abs(base) + 1):
        return True
    if spec.dropout["p"] == 1:
        return False
    projected, error = parts(request.steps["projected"].data[place])
    want = base + projected / (1 - spec.dropout["p"])
    error = error / (1 - spec.dropout["p"]) + 1e-6 * (abs(base) + abs(want)) + 1e-30
    return abs(got - want) <= 1.01 * error + 1.01 * rounding * abs(want) + 1e-6


def check_laws(request, outputs):
    """What holds to the last bit: a masked weight is 0, a masked score null, nothing is NaN."""
    for name in set(MAPS) & set(outputs):
        for place, (got, may) in enumerate(zip(read(outputs[name])[1], allowed(request))):
            if not may and (name in ("attention", "dropped", "contribution") and got != 0 or
                                       name == "masked" and got != -math.inf):
                raise Difference(f"{name}: element {place} is masked and {got!r}")
    if "attention" in outputs and not request.options.get("digits") and not request.spec.has_sinks and \
            not request.spec.mechanism and request.spec.start != "attention" and request.kept["keys"] == list(range(request.spec.kv_len)):
        check_row_sums(request, read(outputs["attention"])[1])


def allowed(request):
    """The mask, of the selected heads, queries and keys."""
    return attention.select("mask", request.steps["mask"], request.meant.get("options", {})).data


def check_row_sums(request, weights):
    kv_len = request.spec.kv_len
    ulp = 2.0 ** -23 if request.spec.compute == "float32" else 2.0 ** -52
    for at in range(0, len(weights), kv_len):
        total = math.fsum(weights[at:at + kv_len])
        if total != 0 and abs(total - 1) > 4 * ulp * kv_len:
            raise Difference(f"attention: a row sums to {total!r}")


def check_diagnostics(request, answer):
    diagnostics, effective, spec, steps = answer["diagnostics"], answer["effective"], request.spec, request.steps
    empty_rows = [list(row) for row in steps["rows_without_keys"]]
    if diagnostics["rows_without_keys"] != empty_rows[:4096]:
        raise Difference(f"rows_without_keys {diagnostics['rows_without_keys']}, expected {empty_rows}")
    if diagnostics["rows_without_keys_count"] != len(empty_rows):
        raise Difference(f"rows_without_keys_count {diagnostics['rows_without_keys_count']}")
    scores = zip(steps["scaled"].data, steps["mask"].data) if "scaled" in steps else ()
    max_abs_score = max((abs(parts(score)[0]) for score, may in scores if may), default=0.0)
    if abs(diagnostics["max_abs_score"] - max_abs_score) > 1e-4 * max_abs_score + 1e-30:
        raise Difference(f"max_abs_score {diagnostics['max_abs_score']}, expected {max_abs_score}")
    check_means(request, diagnostics)
    wanted = {"num_heads": spec.heads, "kv_num_heads": spec.kv_heads, "d_k": spec.d_k, "d_v": spec.d_v, "batch": spec.batch,
              "q_len": spec.q_len, "kv_len": spec.kv_len, "scale": spec.scale, "compute": spec.compute}
    for name, value in wanted.items():
        if effective[name] != value:
            raise Difference(f"effective.{name} is {effective[name]!r}, expected {value!r}")
    if spec.window and not spec.sliding and \
            effective["window"] != [None if reach == 2 ** 63 - 1 else reach for reach in spec.window]:
        raise Difference(f"effective.window is {effective['window']}, expected {spec.window}")
    if "tokens" in request.body and "query" in request.body["tokens"] and \
            answer["tokens"]["query"] != request.body["tokens"]["query"]:
        raise Difference("tokens.query came back changed")


def check_means(request, diagnostics):
    """Where all keys of the weights are shown, the mean entropy and the mean weight of key 0, head by head."""
    if "attention" not in request.wanted or request.spec.mechanism or request.spec.start == "attention" or request.kept["keys"] != list(range(request.spec.kv_len)) or \
            "keys" in request.options:
        return
    spec, steps, empty = request.spec, request.steps, set(request.steps["rows_without_keys"])
    for at, h in enumerate(request.kept["heads"]):
        rows = [(b * spec.heads + h) * spec.q_len + i
                for b in range(spec.batch) for i in request.kept["queries"] if (b, h, i) not in empty]
        for name, numbers in (("entropy_per_head", steps["entropy"].data),
                              ("first_key_share_per_head", steps["attention"].data[::spec.kv_len])):
            mean, error = parts(total(numbers[row] for row in rows) / len(rows)) if rows else (0.0, 0.0)
            if abs(diagnostics[name][at] - mean) > 1.01 * error + 1e-4 * (1 + abs(mean)):
                raise Difference(f"{name}[{at}] is {diagnostics[name][at]}, expected {mean}")


# ---- answers against each other ----

def check_subset(request, client, answer, chance):
    """Asking for less, or for another part, changes nothing that is asked for in both."""
    wanted = chance.sample(request.wanted, chance.randint(1, len(request.wanted)))
    body = {**request.body, "options": {**request.options, "return": wanted}}
    less = parse_json(post(client, request, body).body)["outputs"]
    for name in wanted:
        if text_of(less[name]) != text_of(answer["outputs"][name]):
            raise Difference(f"{name} differs when only {wanted} is asked for")


def check_neighbours(request, client, answer, chance):
    """An item of a batch gives the same numbers alone."""
    spec, options = request.spec, request.options
    if spec.batch == 1 or options.get("format") in ("flat", "base64") or options.get("dropout"):
        return
    alone = item_alone(request, chance.randrange(spec.batch))
    if alone is None:
        return
    b, body = alone
    lonely = parse_json(post(client, request, body).body)["outputs"]
    for name, form in lonely.items():
        if text_of(form[0]) != text_of(answer["outputs"][name][b]):
            raise Difference(f"{name} of item {b} differs without its neighbours")


def check_shown(request, client, answer):
    """The same maps pooled, sorted, rounded or as a view, and the same outputs behind a cache that was empty."""
    for kind, body in request.shown.items():
        try:
            shown = parse_json(post(client, request, body).body)
        finally:
            if kind == "cache":
                client.send("DELETE", f"/v1/caches/{CACHE}")
        outputs = shown["outputs"] if kind != "view" else None
        if kind == "cache" and text_of(outputs) != text_of(answer["outputs"]):
            raise Difference("other outputs with a cache that was empty")
        if kind == "pool":
            for name in set(MAPS) & set(outputs):
                check_pooled(request, name, read(outputs[name]), read(answer["outputs"][name]), body["options"]["pool"])
        if kind == "top_k":
            check_largest(request, outputs["attention"], read(answer["outputs"]["attention"]))
        if kind == "dtype" and "attention" in outputs and "digits" not in request.options:
            values = [to_type(value, request.spec.compute) for value in read(answer["outputs"]["attention"])[1]]
            check_rounded(read(outputs["attention"])[1], values, body["options"]["dtype"])
        if kind == "view":
            check_view(request, shown, answer["outputs"].get("attention"), body["options"]["view"])


def check_pooled(request, name, pooled, whole, pool):
    """Each cell against those that it stands for: of the cells that the mask does not hide, the largest or the mean."""
    (shape, got), (full, values) = pooled, whole
    rows, cols = pool.get("rows", full[2]), pool.get("cols", full[3])
    if shape != [*full[:2], rows, cols]:
        raise Difference(f"{name} has shape {shape} under pool {pool}")
    mask = allowed(request)
    nothing = 0 if name in ("attention", "dropped", "contribution", "mask") else -math.inf
    slack = 1e-6 + 4 * rounding_of(request.options)
    for at, value in enumerate(got):
        matrix, r, c = at // (rows * cols), at // cols % rows, at % cols
        cells = [(matrix * full[2] + i) * full[3] + j for i in range(r * full[2] // rows, (r + 1) * full[2] // rows)
                 for j in range(c * full[3] // cols, (c + 1) * full[3] // cols)]
        some = [values[cell] for cell in cells if mask[cell]]
        want = max(some, default=nothing)
        if pool.get("op") == "mean" and some and name != "mask":
            want = math.fsum(some) / len(some)
        if value != want and not abs(value - want) <= slack * (1 + max(map(abs, some), default=0)):
            raise Difference(f"{name}: pooled cell {at} is {value!r}, expected {want!r}")


def check_largest(request, largest, whole):
    (shape, indices), (_, weights), (full, values) = read(largest["indices"]), read(largest["weights"]), whole
    keys, k = request.kept["keys"], shape[3]
    for row in range(len(indices) // k):
        mine = values[row * full[3]:(row + 1) * full[3]]
        found = [(i, w) for i, w in zip(indices[row * k:(row + 1) * k], weights[row * k:(row + 1) * k]) if i >= 0]
        largest_first = [w for _, w in found]
        # Hidden keys weigh 0 and are never listed, not even before a key of negative weight (linear attention).
        rest = [w for i, w in zip(keys, mine) if w != 0 and i not in dict(found)]
        if largest_first != sorted(largest_first, reverse=True) or max(rest, default=-math.inf) > min(largest_first, default=0) or \
                any(mine[keys.index(i)] != w for i, w in found) or len({i for i, _ in found}) != len(found):
            raise Difference(f"top_k: row {row} is {found}, of {mine}")


def check_rounded(got, values, dtype):
    for value, rounded in zip(values, got):
        want = math.floor(255 * value + 0.5) if dtype == "uint8" else to_type(value, dtype)
        if rounded != want and not (dtype == "uint8" and abs(rounded - 255 * value) <= 0.5001):
            raise Difference(f"{value!r} as {dtype} is {rounded!r}, expected {want!r}")


def check_view(request, view, attention, name):
    """Where the answer has the whole map in full digits, the view has the same numbers."""
    if attention is None or {"heads", "queries", "keys", "digits"} & set(request.options):
        return
    values, kind = read(attention)[1], "float32" if name == "inspectus" else request.spec.compute
    if name == "rows":
        got = [cell["weight"] for cell in view]
    elif name == "inspectus":
        got = [value for item in view["attention"]
               for (value,) in struct.iter_unpack("<f", base64.b64decode(item["values"]))]
    else:
        got = read(view["attention"] if name == "circuitsvis" else view["attention"][0]["attn"])[1]
    # One may be decimal text and the other bytes: they are compared as what they stand for.
    got = [WORDS.get(value, value) if isinstance(value, str) else value for value in got]
    if [to_type(value, kind) for value in got] != [to_type(value, kind) for value in values]:
        raise Difference(f"view {name} has other weights")


def item_alone(request, b):
    """The request with item b alone; None when a tensor that has a batch axis is not in nested form."""
    inputs, masks, batch = request.body["inputs"], {}, request.spec.batch
    if not all(isinstance(form, list) for form in inputs.values()):
        return None
    if {"positions", "cos"} & set(request.options.get("rope", {})):  # which may have a batch axis
        return None
    for name, form in request.masks.items():
        if name == "documents":
            form = {side: ids[b:b + 1] if isinstance(ids[0], list) else ids for side, ids in form.items()} \
                if isinstance(form, dict) else form[b:b + 1] if isinstance(form[0], list) else form
        if name == "blocks":
            if isinstance(form.get("attend"), dict):
                return None
            if "attend" in form and depth(form["attend"]) == 4 and len(form["attend"]) == batch:
                form = {**form, "attend": [form["attend"][b]]}
            if "length" in form:
                form = {**form, "length": [form["length"][b if len(form["length"]) > 1 else 0]]}
        if name in ("padding", "key_lengths", "query_lengths") or name in ("attend", "bias"):
            if not isinstance(form, list):
                return None
            has_batch = name not in ("attend", "bias") or depth(form) == 4
            form = [form[b]] if has_batch and len(form) == batch else form
        if name in ("query_lengths", "key_lengths") and isinstance(form, dict):
            return None
        if name == "causal" and isinstance(form, dict) and isinstance(form.get("offset"), list):
            form = {**form, "offset": [form["offset"][b]]}
        masks[name] = form
    body = {**request.body, "inputs": {name: [form[b]] for name, form in inputs.items()}, "masks": masks}
    body.pop("tokens", None)
    return b, body


def depth(form):
    levels = 0
    while isinstance(form, list):
        form, levels = form[0], levels + 1
    return levels


def replay(urls, answers):
    """All of them again, 32 at once: the same bytes."""
    def one(pair):
        request, answer = pair
        return post(Client(urls[-1]), request).body == answer
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        return sum(not same for same in pool.map(one, answers))


if __name__ == "__main__":
    sys.exit(main())
