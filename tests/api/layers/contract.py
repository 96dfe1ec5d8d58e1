"""contract.py: the contract of /v1/layers and of the models of kept layers, with and without a directory."""

import hashlib
import json
import threading

from layer import DEMO, JSON, TENSORS, answered, as_file, expect, layer, matrix, put, refused, send
from oip import flat, tensor
import tensor_file
from suite import registry

QUERY = [[0.5, -0.25, 1.0, 0.125], [1.5, 0.5, -1.0, 0.75], [0.25, 0.5, 0.5, -0.5]]
CHECKS = []
check = registry(CHECKS)


def whole(client, body, inputs, **sections):
    """The answer of /v1/multi-head-attention to the same request."""
    request = {**body, "inputs": inputs}
    for name, members in sections.items():
        request[name] = {**body.get(name, {}), **members}
    return answered(send(client, "POST", "/v1/multi-head-attention", request))


def run(client, name, inputs, **sections):
    return answered(send(client, "POST", f"/v1/layers/{name}/attention", {"inputs": inputs, **sections}))


@check
def gradients_through_a_layer_are_those_of_the_whole_request(client, durable):
    answered(put(client, "differentiated", layer()), 201)
    inputs = {"query": QUERY, "grad_output": QUERY}
    whole_layer = answered(send(client, "POST", "/v1/multi-head-attention/gradients", {**layer(), "inputs": inputs}))
    kept = answered(send(client, "POST", "/v1/layers/differentiated/gradients", {"inputs": inputs}))
    expect(kept["gradients"] == whole_layer["gradients"], "other gradients than of the whole request")
    refused(send(client, "POST", "/v1/layers/differentiated/gradients", {"inputs": {"query": QUERY}}), 400, "grad_output")
    refused(send(client, "POST", "/v1/layers/differentiated/gradients", {**layer(), "inputs": inputs}), 400, "weights")
    refused(send(client, "POST", "/v1/layers/absent/gradients", {"inputs": inputs}), 404)
    foreign = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
    refused(send(client, "POST", "/v1/layers/differentiated/gradients", {"inputs": inputs}, **foreign), 403)


@check
def a_layer_that_is_put_is_there(client, durable):
    made = put(client, "first", layer())
    facts = answered(made, 201)
    expect(made.headers["ETag"] == f'"{facts["digest"]}"', made.headers["ETag"])
    expect(facts["durable"] is durable, f"durable is {facts['durable']}")
    reply = send(client, "GET", "/v1/layers/first")
    expect(answered(reply) == facts, "GET tells other facts than PUT")
    for name, wanted in {"d_model": 4, "num_heads": 2, "d_k": 2, "d_out": 4, "parameters": 80}.items():
        expect(facts[name] == wanted, f"{name} is {facts[name]}")
    expect(facts["request"]["options"] == {"num_heads": 2}, facts["request"])
    head = send(client, "HEAD", "/v1/layers/first")
    expect(head.status == 200 and head.body == b"" and head.headers["ETag"] == reply.headers["ETag"], "HEAD")
    expect(answered(put(client, "first", layer(2)), 200)["digest"] != facts["digest"], "the digest did not change")


@check
def its_file_is_safetensors_and_its_digest_the_sum_of_it(client, durable):
    put(client, "file", layer())
    reply = send(client, "GET", "/v1/layers/file", Accept=TENSORS)
    expect(reply.headers["Content-Type"] == TENSORS, reply.headers["Content-Type"])
    expect(reply.headers["ETag"] == f'"{hashlib.sha256(reply.body).hexdigest()}"', "digest")
    tensors, metadata = tensor_file.read(reply.body)
    expect(tensors["weights.key.weight"][2] == [x for row in layer()["weights"]["key"]["weight"] for x in row], "key")
    expect(json.loads(metadata["request"])["masks"] == {"causal": True}, metadata)
    sent = as_file(layer(3))
    answered(put(client, "sent", sent), 201)
    expect(send(client, "GET", "/v1/layers/sent", Accept=TENSORS).body == sent, "a file is not kept as it came")


@check
def a_kept_layer_computes_what_its_weights_would(client, durable):
    put(client, "same", layer())
    inputs = {"query": QUERY}
    wanted = whole(client, layer(), inputs)
    expect(run(client, "same", inputs) == wanted, "JSON")
    put(client, "same", as_file(layer()))
    expect(run(client, "same", inputs) == wanted, "from a file")
    body = tensor_file.write({"inputs.query": ("F32", [3, 4], [x for row in QUERY for x in row])})
    reply = send(client, "POST", "/v1/layers/same/attention", body, Content_Type=TENSORS)
    expect(answered(reply) == wanted, "request as a file")


@check
def an_update_rule_takes_what_comes_with_a_request(client, durable):
    decay, beta = {"decay": [[-0.5, -1], [0, -0.25], [-2, -0.125]]}, {"beta": [[0.5], [1], [0.25]]}
    for rule, more in (("linear", {}), ("gated", decay), ("delta", beta), ("gated_delta", {**decay, **beta})):
        body, inputs = layer(), {"query": QUERY, "past_state": [[[0.5, 1], [-1, 0.25]], [[1, 0], [0, 1]]], **more}
        body["options"]["mechanism"] = {"type": "linear", "update_rule": rule}
        answered(put(client, f"rule-{rule}", body), 201)
        expect(run(client, f"rule-{rule}", inputs)["outputs"] == whole(client, body, inputs)["outputs"], f"{rule} computes something else")
        if more:
            refused(send(client, "POST", f"/v1/layers/rule-{rule}/attention", {"inputs": {"query": QUERY}}), 400, next(iter(more)), "is missing")
    refused(put(client, "rule-in-a-window", {**body, "masks": {"window": [1, 0]}}), 400, "window", "update_rule")


@check
def latents_are_kept_like_other_weights(client, durable):
    body = layer()
    body["weights"].update({"query_latent": {"weight": matrix(4, 4, 5)}, "query_latent_norm": {"weight": [1, 0.5, 2, 1]},
                            "key_latent": {"weight": matrix(4, 3, 6)}, "key_shared": {"weight": matrix(4, 1, 7)},
                            "key": {"weight": matrix(3, 2, 8)}, "value": {"weight": matrix(3, 4, 9)}})
    body["options"]["latent_norm"] = "rms"
    inputs = {"query": QUERY}
    answered(put(client, "latents", body), 201)
    wanted = whole(client, body, inputs)["outputs"]
    expect(run(client, "latents", inputs)["outputs"] == wanted, "latents compute something else")
    answered(put(client, "latents-file", send(client, "GET", "/v1/layers/latents", Accept=TENSORS).body), 201)
    expect(run(client, "latents-file", inputs)["outputs"] == wanted, "latents of a file compute something else")


def rounded(body, file):
    """The layer with the numbers that its file has."""
    tensors, _ = tensor_file.read(file)
    for name, part in body["weights"].items():
        for kind, old in part.items():
            numbers = iter(tensors[f"weights.{name}.{kind}"][2])
            part[kind] = [[next(numbers) for _ in row] for row in old] if kind == "weight" else list(numbers)
    return body


@check
def half_precision_stays_half_precision(client, durable):
    sent = as_file(layer(), "F16")
    facts = answered(put(client, "half", sent), 201)
    expect(facts["dtype"] == "float16" and facts["bytes"] == len(sent), facts["dtype"])
    expect(run(client, "half", {"query": QUERY}) == whole(client, rounded(layer(), sent), {"query": QUERY}), "numbers")


@check
def gradients_of_half_precision_are_those_of_its_numbers_in_float32(client, durable):
    for width in (4, 16):  # the kernels read the matrices of the wider one in 16 bits
        sent = as_file(layer(width=width), "F16")
        answered(put(client, f"half{width}", sent), 201)
        inputs = {"query": matrix(3, width, "query"), "grad_output": matrix(3, width, "gradient")}
        kept = answered(send(client, "POST", f"/v1/layers/half{width}/gradients", {"inputs": inputs}))
        body = {**rounded(layer(width=width), sent), "inputs": inputs}
        whole_layer = answered(send(client, "POST", "/v1/multi-head-attention/gradients", body))
        expect(kept["gradients"] == whole_layer["gradients"], f"other gradients of width {width}")


@check
def a_file_may_name_weights_in_short(client, durable):
    tensors, texts = tensor_file.read(as_file(layer()))
    tensors = {name: tensor for name, tensor in tensors.items() if not name.endswith(".bias")}
    short = {name.removesuffix(".weight"): tensor for name, tensor in tensors.items()}
    answered(put(client, "short", tensor_file.write(short, texts)), 201)
    answered(put(client, "long", tensor_file.write(tensors, texts)), 201)
    expect(run(client, "short", {"query": QUERY}) == run(client, "long", {"query": QUERY}), "numbers")


@check
def a_request_overrides_options_and_masks(client, durable):
    put(client, "over", {**layer(), "options": {"num_heads": 2, "scale": 0.25, "return": ["output"]}})
    inputs = {"query": QUERY}
    base = {**layer(), "options": {"num_heads": 2, "scale": 0.25, "return": ["output"]}}
    for sections in ({"options": {"scale": 2, "return": ["attention"]}}, {"masks": {"causal": False}},
                     {"options": {"compute": "float64"}}, {"masks": {"key_lengths": [2]}},
                     {"options": {"num_heads": 4}, "masks": {"causal": {"offset": 1}}}):
        expect(run(client, "over", inputs, **sections) == whole(client, base, inputs, **sections), f"{sections}")


@check
def weights_lie_as_the_layer_says_whatever_profile_a_request_has(client, durable):
    square = layer()
    square["options"]["profile"] = "torch_mha"  # out_in; square, so that shapes would not tell
    for name, body in (("json", square), ("file", as_file(square))):
        put(client, name, body)
        wanted = run(client, name, {"query": QUERY})["outputs"]["output"]
        for profile in ("onnx", "torch_mha", "flash"):
            found = run(client, name, {"query": QUERY}, options={"profile": profile})
            expect(found["outputs"]["output"] == wanted, f"{name} with {profile}")


@check
def conditions_are_kept(client, durable):
    client.send("DELETE", "/v1/layers/c")
    refused(put(client, "c", layer(), If_Match="*"), 412, "no such layer")
    answered(put(client, "c", layer(), If_None_Match="*"), 201)
    refused(put(client, "c", layer(), If_None_Match="*"), 412)
    tag = send(client, "GET", "/v1/layers/c").headers["ETag"]
    for wrong in ('"00"', "W/" + tag, tag.strip('"')):
        refused(put(client, "c", layer(2), If_Match=wrong), 412)
    answered(put(client, "c", layer(2), If_Match=f'"00", {tag}'))
    refused(put(client, "c", layer(3), If_Match=tag), 412)
    refused(send(client, "DELETE", "/v1/layers/c", If_Match=tag), 412)
    tag = send(client, "GET", "/v1/layers/c").headers["ETag"]
    for fresh in (tag, "W/" + tag, "*"):
        reply = send(client, "GET", "/v1/layers/c", If_None_Match=fresh)
        expect(reply.status == 304 and not reply.body and reply.headers["ETag"] == tag, f"{fresh}: {reply.status}")
    expect(send(client, "GET", "/v1/layers/c", If_None_Match='"00"').status == 200, "another tag")
    refused(send(client, "POST", "/v1/layers/c/attention", {"inputs": {"query": QUERY}}, If_Match='"00"'), 412)
    expect(send(client, "DELETE", "/v1/layers/c", If_Match=tag).status == 204, "delete")
    refused(send(client, "DELETE", "/v1/layers/c"), 404)


@check
def every_representation_has_a_tag_of_its_own(client, durable):
    forms = ({}, {"Accept": TENSORS}, {"Accept_Encoding": "gzip"}, {"Accept_Encoding": "zstd"})
    steps = ["output", "attention", "q", "k", "v", "scores", "scaled", "masked", "lse", "entropy", "context", "concat",
             "projected", "present_key", "present_value", "mask"]
    body = {**layer(), "options": {"num_heads": 2, "return": steps}}  # facts that are long enough to be compressed
    digest = answered(put(client, "tags", body), 201)["digest"]
    replies = [send(client, "GET", "/v1/layers/tags", **form) for form in forms]
    tags = [reply.headers["ETag"] for reply in replies]
    expect(len({reply.body for reply in replies}) == len(forms) == len(set(tags)), tags)
    expect(tags[1] == f'"{digest}"' and all(tag.startswith(f'"{digest}') for tag in tags), tags)
    for form, reply, own in zip(forms, replies, tags):
        expect(reply.headers["Vary"].startswith("Accept, Accept-Encoding"), reply.headers["Vary"])
        others = ", ".join(tag for tag in tags if tag != own)
        expect(send(client, "GET", "/v1/layers/tags", If_None_Match=others, **form).status == 200, f"{form} of others")
        fresh = send(client, "GET", "/v1/layers/tags", If_None_Match=f"{others}, {own}", If_Match=own, **form)
        expect(fresh.status == 304 and fresh.headers["ETag"] == own and not fresh.body, f"{form}: {fresh.status}")
        head = send(client, "HEAD", "/v1/layers/tags", **form)
        expect(head.headers["ETag"] == own, f"HEAD {form}")
        refused(put(client, "tags", body, If_None_Match=own), 412)
        for close in (own[:-1] + "0\"" if "-" not in own else own[:-1], own.replace(digest, digest[:-1]), own[1:]):
            refused(put(client, "tags", body, If_Match=close), 412)
    for tag in tags:
        answered(put(client, "tags", body, If_Match=tag))
    again = [send(client, "GET", "/v1/layers/tags", **form) for form in forms]
    for before, after in zip(replies, again):
        same = before.body == after.body
        expect((before.headers["ETag"] == after.headers["ETag"]) is same, "a tag for other bytes")
    expect(again[1].headers["ETag"] == tags[1], "the same file has another tag")


@check
def a_kept_block_computes_what_its_weights_would(client, durable):
    """In JSON and as a file, with every tensor of the network under its path."""
    body = layer()
    up = {"weight": [[0.5, -1, 0.25, 1, 0.5]] * 4, "bias": [0.5, 0, -0.5, 1, 0]}
    down = {"weight": [[0.5, 0.25, -0.5, 1]] * 5, "bias": [0, 0.5, 0, -0.5]}
    norm = {"weight": [1, 0.5, 2, 1], "bias": [0, 0.25, 0, 0]}
    body["weights"] = {**body["weights"], "feed_forward": {"up": up, "gate": up, "down": down, "norm": norm}}
    body["options"] = {**body["options"], "residual": True, "feed_forward": {"activation": "gelu"}}
    facts = answered(put(client, "block", body), 201)
    expect(facts["d_ff"] == 5, facts)
    expect("feed_forward" not in facts["request"].get("weights", {}), facts["request"])
    expected = whole(client, body, {"query": QUERY})["outputs"]
    expect(run(client, "block", {"query": QUERY})["outputs"] == expected, "other numbers than its weights")
    file = send(client, "GET", "/v1/layers/block", Accept=TENSORS).body
    tensors, _ = tensor_file.read(file)
    names = {f"weights.feed_forward.{name}.{part}" for name in ("up", "gate", "down", "norm")
             for part in ("weight", "bias")}
    expect(names < set(tensors), sorted(tensors))
    answered(put(client, "copy", file), 201)
    expect(run(client, "copy", {"query": QUERY})["outputs"] == expected, "other numbers than its file")
    other = {"feed_forward": {"activation": "silu"}}
    changed = run(client, "block", {"query": QUERY}, options=other)["outputs"]
    expect(changed == whole(client, body, {"query": QUERY}, options=other)["outputs"] != expected, "an option over it")


@check
def a_kept_block_whose_network_is_not_added_has_its_width(client, durable):
    body = layer()
    up = {"weight": [[0.5, -1, 0.25], [1, 0.5, -0.5], [0.25, 1, 0], [-1, 0, 0.5]]}
    down = {"weight": [[0.5, 0.25, -0.5, 1, 2, -1]] * 3, "bias": [0, 0.5, 0, -0.5, 1, 0.25]}
    body["weights"] = {**body["weights"], "feed_forward": {"up": up, "down": down}}
    body["options"] = {**body["options"], "feed_forward": {"activation": "gelu", "residual": False}}
    facts = answered(put(client, "wide", body), 201)
    expect((facts["d_model"], facts["d_out"]) == (4, 6), facts)
    output = run(client, "wide", {"query": QUERY})["outputs"]["output"]
    expect(output == whole(client, body, {"query": QUERY})["outputs"]["output"], "other numbers than its weights")
    answered(put(client, "wide-copy", send(client, "GET", "/v1/layers/wide", Accept=TENSORS).body), 201)
    expect(run(client, "wide-copy", {"query": QUERY})["outputs"]["output"] == output, "other numbers than its file")
    grad = {"query": QUERY, "grad_output": [[1.0] * 6] * len(QUERY)}
    kept = answered(send(client, "POST", "/v1/layers/wide/gradients", {"inputs": grad}))["gradients"]
    sent = answered(send(client, "POST", "/v1/multi-head-attention/gradients", {**body, "inputs": grad}))["gradients"]
    expect(kept["inputs"] == sent["inputs"], "other gradients than its weights")
    model = answered(send(client, "GET", "/v2/models/wide"))
    expect(model["outputs"][0]["shape"] == [-1, -1, 6], model["outputs"])
    flat = [number for row in QUERY for number in row]
    asked = {"inputs": [{"name": "QUERY", "shape": [1, len(QUERY), 4], "datatype": "FP32", "data": flat}]}
    found = answered(send(client, "POST", "/v2/models/wide/infer", asked))["outputs"][0]
    expect(found["shape"] == [1, len(QUERY), 6], found)
    expect(found["data"] == [number for row in output for number in row], "other numbers under /v2")
    body["options"]["feed_forward"]["residual"] = True
    refused(put(client, "never", body), 400, "down gives 6 features, the attention gives 4")


@check
def what_could_never_run_is_refused_by_name(client, durable):
    def without(name):
        return {**layer(), "weights": {k: v for k, v in layer()["weights"].items() if k != name}}

    def refuses(body, *words, status=400):
        reply = put(client, "never", body)
        refused(reply, status, *words)
        return reply.json().get("pointer")

    expect(refuses(without("key"), "weights.key.weight") == "/weights/key/weight", "pointer")
    refuses({**layer(), "options": {"num_heads": 3}}, "3")
    bad = layer()
    bad["weights"]["key"]["weight"] = [[1, 2]] * 4
    expect(refuses(bad).startswith("/weights"), "shape")
    refuses({**layer(), "inputs": {"query": QUERY}}, "inputs")
    refuses({**layer(), "masks": {"attend": [[1]]}}, "attend", "causal")
    refuses({**layer(), "options": {"num_head": 2}}, "num_heads")
    refuses({"options": {}}, "weights")
    refuses({**layer(), "surplus": 1}, "surplus")
    refuses(b"no file", "safetensors")
    refuses(as_file({**layer(), "masks": {"padding": [[True]]}}), "padding")
    refuses(tensor_file.write({"weights.quer.weight": ("F32", [1], [1])}), "quer")
    refuses(tensor_file.write({"weights.query.weight": ("F32", [4, 4], [1] * 16)}), "key")
    refused(send(client, "GET", "/v1/layers/never"), 404, "never")


@check
def names_are_taken_as_they_are_written(client, durable):
    for name in ("a", "A.b_c-9", "x" * 128, "0", "-", "_.."):
        answered(put(client, name, layer()), 201)
        expect(send(client, "DELETE", f"/v1/layers/{name}").status == 204, name)
    for name in (".", "..", ".hidden", "x" * 129, "a%2fb", "a%2e", "%2e%2e", "a b".replace(" ", "%20"), "a%00", "a+b",
                 "a~b", "..%2f..%2fetc", "a:b"):
        refused(put(client, name, layer()), 400)
        refused(send(client, "GET", f"/v1/layers/{name}"), 400)
        refused(send(client, "POST", f"/v1/layers/{name}/attention", {"inputs": {"query": QUERY}}), 400)
    for path in ("/v1/layers/a/b", "/v1/layers/../../etc/passwd", "/v1/layers//a"):
        expect(send(client, "GET", path).status == 404, path)
    for name in ("attention", "stats"):
        refused(put(client, name, layer()), 409, name)


@check
def requests_say_what_is_wrong(client, durable):
    put(client, "r", layer())
    refused(send(client, "POST", "/v1/layers/none/attention", {"inputs": {"query": QUERY}}), 404, "none")
    refused(send(client, "POST", "/v1/layers/r/attention", {}), 400, "inputs")
    refused(send(client, "POST", "/v1/layers/r/attention", {"inputs": {"query": QUERY}, "weights": {}}), 400, "weights")
    refused(send(client, "POST", "/v1/layers/r/attention", {"inputs": {"query": [[1, 2]]}}), 400)
    refused(send(client, "POST", "/v1/layers/r/attention", b"{", Content_Type=JSON), 400, "JSON")
    refused(send(client, "GET", "/v1/layers/r", b"{}"), 400, "body")
    refused(send(client, "GET", "/v1/layers/r?x=1"), 400, "x")
    for query in ("limit=0", "limit=1001", "limit=x", "page=2"):
        refused(send(client, "GET", f"/v1/layers?{query}"), 400)
    expect(send(client, "POST", "/v1/layers/r", {}).status == 405, "POST")
    expect(send(client, "PUT", "/v1/layers", {}).status == 405, "PUT of all")
    refused(send(client, "PUT", "/v1/layers/r", b"x", Content_Type="text/html"), 415)


def names(client, limit):
    found, after = [], ""
    while True:
        page = answered(send(client, "GET", f"/v1/layers?limit={limit}&after={after}"))
        found += [row["name"] for row in page["layers"]]
        if page["next"] is None:
            return found
        after = page["next"]


@check
def the_list_comes_in_pages(client, durable):
    for row in names(client, 1000):
        send(client, "DELETE", f"/v1/layers/{row}")
    expect(names(client, 1000) == DEMO, "only a model's own layers are left")
    wanted = sorted(f"l{i}" for i in range(23))
    for name in reversed(wanted):
        put(client, name, layer())
    for limit in (1, 7, 27, 28, 1000):
        expect(names(client, limit) == DEMO + wanted, f"pages of {limit}")
    page = answered(send(client, "GET", f"/v1/layers?limit=2&after={DEMO[-1]}"))
    expect(page["count"] == len(DEMO) + 23 and page["bytes"] == sum(page["layers"][0]["bytes"] for _ in range(23)), "totals")
    row = page["layers"][0]
    for member in ("digest", "bytes", "modified", "num_heads", "d_model", "dtype"):
        expect(member in row, f"a row has no {member}")
    expect(row["state"] == "ready", row["state"])


@check
def clients_that_change_layers_at_once_see_whole_ones(client, durable, connect=None):
    bodies = {seed: as_file(layer(seed)) for seed in range(4)}
    digests = {hashlib.sha256(body).hexdigest() for body in bodies.values()}
    wrong = []

    def work(number):
        own = connect()
        for i in range(30):
            seed, name = (number + i) % 4, f"busy{i % 3}"
            reply = put(own, name, bodies[seed]) if i % 5 else send(own, "DELETE", f"/v1/layers/{name}")
            if reply.status not in (200, 201, 204, 404):
                wrong.append(f"{reply.status} {reply.body[:200]}")
            reply = send(own, "GET", f"/v1/layers/{name}", Accept=TENSORS)
            if reply.status == 200 and hashlib.sha256(reply.body).hexdigest() not in digests:
                wrong.append("a torn file was sent")
            reply = send(own, "POST", f"/v1/layers/{name}/attention", {"inputs": {"query": QUERY}})
            if reply.status not in (200, 404):
                wrong.append(f"{reply.status} {reply.body[:200]}")
            if send(own, "GET", "/v1/layers?limit=5").status != 200:
                wrong.append("the list")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not wrong, "; ".join(wrong[:3]))


# ---- as models ----

def infer(client, name, *inputs, version=None, **members):
    path = f"/v2/models/{name}" + (f"/versions/{version}" if version else "") + "/infer"
    return send(client, "POST", path, {"inputs": list(inputs), **members})


@check
def a_kept_layer_is_a_model(client, durable):
    facts = answered(put(client, "model", layer()), 201)
    model = answered(send(client, "GET", "/v2/models/model"))
    expect(model["versions"] == [facts["digest"]], model["versions"])
    shapes = {port["name"]: port["shape"] for port in model["inputs"] + model["outputs"]}
    expect(shapes["QUERY"] == [-1, -1, 4] and shapes["ATTENTION"] == [-1, 2, -1, -1], shapes)
    expect("model" in answered(send(client, "GET", "/v2/models"))["models"], "/v2/models")
    expect(answered(send(client, "GET", "/v2/models/model/ready")) == {"name": "model", "ready": True}, "ready")
    config = answered(send(client, "GET", "/v2/models/model/config"))
    expect(config["output"][0]["dims"] == [-1, -1, 4], config["output"][0])
    answer = answered(infer(client, "model", tensor("QUERY", QUERY), id="7", parameters={"scale": 0.5}))
    wanted = whole(client, layer(), {"query": QUERY}, options={"scale": 0.5})["outputs"]
    got = {output["name"]: output for output in answer["outputs"]}
    expect(answer["id"] == "7" and answer["model_version"] == facts["digest"], "id and version")
    expect(got["OUTPUT"]["data"] == flat(wanted["output"]), "OUTPUT")
    expect(got["ATTENTION"]["shape"] == [1, 2, 3, 3], got["ATTENTION"]["shape"])
    refused(infer(client, "model", tensor("QUERY", [[1, 2]])), 400, "QUERY")
    refused(infer(client, "nobody", tensor("QUERY", QUERY)), 404, "nobody")


@check
def replaced_versions_are_there_by_their_digest(client, durable):
    digests = [answered(put(client, "v", layer(seed)), 201 if seed == 0 else 200)["digest"] for seed in range(5)]
    wanted = [answered(infer(client, "v", tensor("QUERY", QUERY), version=digest)) for digest in digests[2:]]
    for seed, answer in zip(range(2, 5), wanted):
        direct = whole(client, layer(seed), {"query": QUERY})["outputs"]["output"]
        expect(answer["outputs"][0]["data"] == flat(direct), f"version {seed}")
    refused(infer(client, "v", tensor("QUERY", QUERY), version=digests[0]), 404, digests[0])
    refused(infer(client, "v", tensor("QUERY", QUERY), version="2"), 404)
    versions = answered(send(client, "GET", "/v2/models/v"))["versions"]
    expect(versions == digests[:1:-1], versions)


@check
def models_are_unloaded_and_loaded(client, durable):
    put(client, "u", layer())
    answered(send(client, "POST", "/v2/repository/models/u/unload", {"parameters": {"unload_dependents": False}}))
    refused(infer(client, "u", tensor("QUERY", QUERY)), 409, "unloaded")
    refused(send(client, "POST", "/v1/layers/u/attention", {"inputs": {"query": QUERY}}), 409, "unloaded")
    refused(send(client, "GET", "/v2/models/u/ready"), 409)
    states = {row["name"]: row["state"] for row in answered(send(client, "POST", "/v2/repository/index", {}))}
    expect(states["u"] == "UNAVAILABLE" and states["attention"] == "READY", states)
    answered(send(client, "POST", "/v2/repository/models/u/load", b""))
    answered(infer(client, "u", tensor("QUERY", QUERY)))
    refused(send(client, "POST", "/v2/repository/models/none/load", {}), 404)
    refused(send(client, "POST", "/v2/repository/models/u/load", {"parameters": {"config": "{}"}}), 400, "config")
    refused(send(client, "POST", "/v2/repository/models/attention/unload", {}), 409)


@check
def statistics_count(client, durable):
    put(client, "counted", layer())
    for _ in range(3):
        answered(infer(client, "counted", tensor("QUERY", [QUERY, QUERY])))
    infer(client, "counted", tensor("QUERY", [[1]]))
    run(client, "counted", {"query": QUERY})
    (stats,) = answered(send(client, "GET", "/v2/models/counted/stats"))["model_stats"]
    expect(stats["inference_count"] == 7 and stats["execution_count"] == 4, stats)
    expect(stats["inference_stats"]["fail"]["count"] == 1, stats)
    expect(stats["inference_stats"]["compute_infer"]["ns"] > 0 and stats["last_inference"] > 1e12, stats)
    every = answered(send(client, "GET", "/v2/models/stats"))["model_stats"]
    expect({"attention", "counted"} <= {row["name"] for row in every}, "all")
