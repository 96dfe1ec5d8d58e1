"""autograd.py: gradients of recorded models against torch's autograd, in float64 (record_gradients.py)."""

import json

import tensor_file

CLOSE, CLOSE_IN_FLOAT = 1e-9, 2e-3  # of the largest number of a tensor
ROUNDED = {"dinov2-both": 1e-6}  # factors of its layers are multiplied into weights of float32 when it is read


def ask(client, model, request, compute):
    names = ["attention", "embedding", "attention_gradient", *(["integrated"] if "steps" in request else [])]
    options = {"compute": compute, "return": names, **{name: request[name] for name in ("metric", "steps") if name in request}}
    reply = client.send("POST", f"/v1/models/{model}/gradients", json.dumps({"inputs": request["inputs"], "options": options}),
                        {"Content-Type": "application/json", "Accept": "application/vnd.attnd.safetensors"})
    assert reply.status == 200, reply.body[:400]
    return tensor_file.read(reply.body)[0]


def compare(name, got, expected, close):
    """The largest difference, relative to the largest number."""
    assert got[1] == expected[1], f"{name} has the shape {got[1]}, expected {expected[1]}"
    size = max(map(abs, expected[2])) or 1
    largest = max(abs(a - b) for a, b in zip(got[2], expected[2], strict=True)) / size
    assert largest <= close, f"{name} differs by {largest:.1e} of {size:.1e}"
    return largest


def weighted(maps, gradients):
    """The mean over the heads of what is positive of maps times gradients."""
    layers, batch, heads, rows, columns = maps[1]
    size, found = rows * columns, []
    for plane in range(layers * batch):
        for at in range(size):
            products = [maps[2][(plane * heads + head) * size + at] * gradients[2][(plane * heads + head) * size + at] for head in range(heads)]
            found.append(sum(max(product, 0) for product in products) / heads)
    return None, [layers, batch, rows, columns], found


def hold(client, model, recorded, request):
    close = ROUNDED.get(model, CLOSE)
    found = {compute: ask(client, model, request, compute) for compute in ("float64", "float32")}
    maps = client.send("POST", f"/v1/models/{model}/attention",
                       json.dumps({"inputs": request["inputs"], "options": {"compute": "float64", "return": ["attention"]}}),
                       {"Content-Type": "application/json", "Accept": "application/vnd.attnd.safetensors"})
    attention, largest = tensor_file.read(maps.body)[0], 0
    for name in set(found["float64"]) - set(recorded):
        part, _, _ = name.partition("attention_gradient")
        compare(name, found["float64"][name], weighted(attention[f"{part}attention"], recorded[f"{part}attention"]), close)
    for name, expected in recorded.items():
        if name == "integrated_error":  # a difference of large numbers
            assert abs(found["float64"][name][2][0] - expected[2][0]) < CLOSE, (found["float64"][name], expected)
            continue
        largest = max(largest, compare(name, found["float64"][name], expected, close))
        compare(f"{name} in float32", found["float32"][name], expected, CLOSE_IN_FLOAT)
    return largest


def tests_of(folder):
    """A test for each recorded kind of an unpacked archive."""
    def make(path):
        def test(client):
            recorded, metadata = tensor_file.read(path.read_bytes())
            hold(client, path.parent.name, recorded, json.loads(metadata["request"]))
        test.__name__ = f"{path.parent.name}: gradients"
        return test
    return [make(path) for path in sorted(folder.glob("*/gradients.safetensors"))]
