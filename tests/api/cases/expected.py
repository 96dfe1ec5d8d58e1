#!/usr/bin/env python3
"""
expected.py: the whole answer to a case, by the reference (tests/support/reference) in double.

`run.py` computes every case with it, and compares the result with expected.json. `expected.py FOLDER…` writes the
outputs, shapes and gradients of expected.json for cases whose status is 200 (all of them without a FOLDER); a person
chooses all other members.
"""

import copy
import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SUPPORT = HERE.parents[1] / "support"
sys.path[:0] = [str(SUPPORT / "reference"), str(SUPPORT)]

import told  # noqa: E402
from attention import PROFILES, SELECTED, answer, plain_values, select  # noqa: E402
from bounded import dot  # noqa: E402
from tensors import Tensor  # noqa: E402


def read(case):
    return plain_values(json.loads((case / "request.json").read_text()))


STEP = 1e-3


def gradients(endpoint, request):
    """Nested like the request: the gradient of the sum of grad_output * output by each number, by differences alone."""
    plain = copy.deepcopy(request)
    grad = Tensor.from_json(plain["inputs"].pop("grad_output"))
    options = plain.setdefault("options", {})
    wanted, options["return"] = options.get("return"), ["output"]

    def loss():
        return dot(answer(endpoint, plain)[0]["output"].data, grad.data)

    names = [name for name in wanted or [] if is_path(name)] or given_paths(plain)
    found = {}
    for name in names:
        path = name.split(".") if "." in name else ["inputs", name]
        place = plain
        for part in path[:-1]:
            place = place[part]
        before = place.get(path[-1])
        if path == ["options", "scale"]:
            value = derivative(loss, place, path[-1], before)
        else:
            value = tensor_gradient(loss, place, path[-1], Tensor.from_json(before)).nested()
        place[path[-1]] = before
        put(found, path, value)
    return found


def is_path(name):
    return name in ("query", "key", "value", "past_key", "past_value", "decay", "beta", "past_state") or "." in name


def given_paths(request):
    paths = ["inputs." + name for name in request["inputs"]]
    weights = dict(request.get("weights", {}))
    weights.update({f"feed_forward.{name}": linear for name, linear in weights.pop("feed_forward", {}).items()})
    for name, linear in weights.items():
        paths += [f"weights.{name}.{part}" for part in ("weight", "bias") if isinstance(linear, dict) and part in linear]
    paths += ["masks.bias"] if "bias" in request.get("masks", {}) else []
    return paths + (["options.scale"] if "scale" in request["options"] else [])


def tensor_gradient(loss, place, name, tensor):
    data = []
    for at, item in enumerate(tensor.data):
        def moved(value, at=at):
            return Tensor(tensor.shape, tensor.data[:at] + [value] + tensor.data[at + 1:]).nested()
        data.append(0.0 if math.isinf(item) else derivative(loss, place, name, item, moved))
    return Tensor(tensor.shape, data)


def derivative(loss, place, name, value, form=float):
    """Five points: what is left out is of the order STEP^4 = 1e-12."""
    points = []
    for steps in (-2, -1, 1, 2):
        place[name] = form(value + steps * STEP)
        points.append(loss())
    return (points[0] - 8 * points[1] + 8 * points[2] - points[3]) / (12 * STEP)


def put(found, path, value):
    for part in path[:-1]:
        found = found.setdefault(part, {})
    found[path[-1]] = value


def shapes_of(tree):
    if isinstance(tree, dict):
        return {name: shapes_of(item) for name, item in tree.items()}
    return list(Tensor.from_json(tree).shape) if isinstance(tree, list) else []


def expected_of(endpoint, request):
    """The whole answer."""
    options = request.get("options", {})
    if endpoint.endswith("-gradients"):
        return expected_gradients(endpoint.removesuffix("-gradients"), request)
    outputs, steps = answer(endpoint, request)
    if "view" in options:
        return told.view(request, steps)
    written_outputs = {}
    for name, tensor in outputs.items():
        reduced = None
        if name in SELECTED:
            steps["shown_shape"] = tensor.shape
            reduced = told.reduced(name, tensor, select("mask", steps["mask"], options), options)
        written_outputs[name] = written(name, tensor, options) if reduced is None else reduced
    profile = told.profile_of(PROFILES.get(options.get("profile")), options)
    return {"outputs": written_outputs, "shapes": {name: shape_of(form) for name, form in written_outputs.items()},
            "effective": told.effective(request, steps, profile), "diagnostics": told.diagnostics(request, steps, outputs),
            **({"tokens": request["tokens"]} if "tokens" in request else {})}


def shape_of(form):
    form = form["weights"] if isinstance(form, dict) and "weights" in form else form
    return list(Tensor.from_json(form).shape)


def expected_gradients(endpoint, request):
    found, options = round_all(gradients(endpoint, request)), request.get("options", {})
    steps = [name for name in options.get("return", []) if not is_path(name)]
    plain = {**request, "inputs": {name: item for name, item in request["inputs"].items() if name != "grad_output"},
             "options": {**options, "return": steps}}
    expected = expected_of(endpoint, plain)
    return {**expected, "shapes": {**expected["shapes"], "gradients": shapes_of(found)}, "gradients": found}


def round_all(tree):
    if isinstance(tree, dict):
        return {name: round_all(item) for name, item in tree.items()}
    return [round_all(item) for item in tree] if isinstance(tree, list) else float(f"{tree:.9g}") + 0.0


def rounded(tensor, digits):
    return tensor.map(lambda item: float(f"{item:.{digits}g}") if isinstance(item, float) else item)


def written(name, tensor, options):
    """In the form that the request asks for; null for masked scores where JSON numbers stand."""
    is_double = options.get("compute") == "float64"
    tensor = rounded(tensor, options.get("digits", 17 if is_double else 9))
    if options.get("format") == "base64":
        dtype = "bool" if name == "mask" else "float64" if is_double else "float32"
        return Tensor(tensor.shape, tensor.data, dtype).packed()
    if name in ("scores", "scaled", "masked"):
        tensor = tensor.map(lambda item: None if item == -math.inf else item)
    return tensor.flat() if options.get("format") == "flat" else tensor.nested()


def write(case):
    path = case / "expected.json"
    computed = expected_of(case.parent.name, read(case))
    if path.exists() and isinstance(computed, dict) and "outputs" in computed:
        stored = json.loads(path.read_text())
        computed = {**stored, **{name: computed[name] for name in ("outputs", "shapes", "gradients") if name in computed}}
    path.write_text(compact(computed) + "\n")


def compact(value, depth=0):
    """JSON with objects spread over lines and arrays of numbers on one."""
    if not isinstance(value, dict):
        return json.dumps(value)
    inner = ",\n".join("  " * (depth + 1) + json.dumps(name) + ": " + compact(item, depth + 1)
                       for name, item in value.items())
    return "{\n" + inner + "\n" + "  " * depth + "}" if value else "{}"


def main():
    folders = [pathlib.Path(name).resolve() for name in sys.argv[1:]] or sorted(HERE.glob("*/*"))
    for case in folders:
        status = case / "status"
        if status.exists() and status.read_text().strip() == "200":
            write(case)


if __name__ == "__main__":
    main()
