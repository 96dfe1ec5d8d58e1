"""check.py: what a test vector becomes: requests, the outputs that each must give, and what no request can ask for."""

from tensors import Tensor

ATTENTION = "/v1/attention"
LAYER = "/v1/multi-head-attention"


class NotExpressible(Exception):
    """Nothing of the vector can be asked for; the text names the field that is missing."""


class Case:
    """Requests to make, and needs: fields that would be needed to check the rest of the vector."""

    def __init__(self, vector):
        self.vector = vector
        self.rtol, self.atol = vector["rtol"], vector["atol"]
        self.attributes = vector["attributes"]
        self.inputs = {name: Tensor.from_json(value) for name, value in vector["inputs"].items()}
        self.outputs = {name: Tensor.from_json(value) for name, value in vector["outputs"].items()}
        self.requests, self.needs = [], []
        self.checked = set()

    def ask(self, path, request, **wanted):
        """
        One request; wanted: step of the answer = name of the vector's output, or (name, function from the answer's
        tensor to one that compares with it).
        """
        expected = []
        for step, what in wanted.items():
            name, adapt = what if isinstance(what, tuple) else (what, None)
            expected.append((step, name, adapt))
            self.checked.add(name)
        request.setdefault("options", {})["return"] = list(wanted)
        self.requests.append((path, request, expected))

    def unchecked(self):
        return [name for name in self.outputs if name not in self.checked]


def send(tensor):
    """
    As a request writes it: types other than float32 go as base64, so that the server converts them; an empty tensor
    only has a shape when it is flat.
    """
    if tensor.dtype in ("float16", "bfloat16", "float64"):
        return tensor.packed()
    return tensor.flat() if tensor.dtype == "float32" or 0 in tensor.shape else tensor.nested()


def normalise(case, x, axis, kind, eps, weight, bias, name):
    """
    norm(x) over the axes from axis on, as a layer whose attention is projected to nothing: output = norm(x + 0).
    """
    axis %= len(x.shape)
    width = 1
    for size in x.shape[axis:]:
        width *= size
    rows = len(x.data) // width
    norm = {key: send(tensor.reshape(width)) for key, tensor in (("weight", weight), ("bias", bias)) if tensor}
    column, row = [[0]] * width, [[0] * width]
    weights = {"query": {"weight": column}, "key": {"weight": column}, "value": {"weight": column},
               "output": {"weight": row}, "norm": norm}
    if not norm:
        del weights["norm"]
    request = {"inputs": {"query": send(x.reshape(rows, width))}, "weights": weights,
               "options": {"residual": True, "norm": {"type": kind, "position": "post", "eps": eps}}}
    case.ask(LAYER, request, output=(name, lambda answer: answer.reshape(*x.shape)))
