"""check.py: the checks of a test vector: its requests, their expected outputs, and outputs that no request can ask for."""

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
        self.outside = []  # what the test computes around the requests, because attnd has no word for it
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


def normalise_numbers(case, x, axis, eps, mean, deviation):
    """
    The mean and 1 / deviation of every row, out of the row normalised without weights in float64: y = (x - mean) / d.
    """
    axis %= len(x.shape)
    width = 1
    for size in x.shape[axis:]:
        width *= size
    rows = x.rows(width)

    def slope(row, normed):
        low, high = row.index(min(row)), row.index(max(row))
        return (normed[high] - normed[low]) / (row[high] - row[low]) if row[high] > row[low] else eps ** -0.5

    def means(answer):
        return Tensor(case.outputs[mean].shape, [row[0] - normed[0] / slope(row, normed)
                                                 for row, normed in zip(rows, answer.rows(width))])

    def slopes(answer):
        return Tensor(case.outputs[deviation].shape, [slope(row, normed)
                                                      for row, normed in zip(rows, answer.rows(width))])

    for name, adapt in ((mean, means), (deviation, slopes)):
        if name in case.outputs:
            normalise(case, x, axis, "layer", eps, None, None, (name, adapt), compute="float64")


def normalise(case, x, axis, kind, eps, weight, bias, name, compute="float32"):
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
               "options": {"residual": True, "norm": {"type": kind, "position": "post", "eps": eps},
                           "compute": compute}}
    case.ask(LAYER, request, output=name if isinstance(name, tuple) else (name, lambda answer: answer.reshape(*x.shape)))
