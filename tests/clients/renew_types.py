#!/usr/bin/env python3
"""
renew_types.py --attnd PROGRAM: makes the types of requests in both clients from the /openapi.json of that program:
clients/js/schema.d.ts, which is not kept, and clients/python/attnd/schema.py, which python.py compares.
"""

import json
import sys
import urllib.request

#: What the calls of clients/python take. A type stands behind those that it uses.
TYPES = ("AttentionOptions", "LayerOptions", "ModelIntervention", "ModelSweep", "ModelMetric", "ModelOptions", "ModelGradientOptions", "Masks")

#: What they give, and where the document has the members of it. All of them may be absent.
RESULTS = {
    "KeptLayer": ("KeptLayer", "KeptLayers/properties/layers/items"),
    "Model": ("Model",),
    "ModelTokens": ("ModelTokens",),
    "Effective": ("Effective", "ModelAnswer/properties/effective"),
    "Diagnostics": ("Diagnostics", "ModelAnswer/properties/diagnostics"),
    "ModelItemTokens": ("ModelItemTokens",),
    "Tokens": ("Tokens", "ModelItemTokens", "ModelAnswer/properties/tokens/anyOf/1"),
    "Generated": ("ModelAnswer/properties/generated",),
    **{name: (name,) for name in ("TopKOut", "ModelWords", "ModelWordScores", "ModelAttribution", "ModelSweepValues", "ModelAnswerSpan", "ModelClasses",
                                  "ModelHeadScores", "ModelSpokenWord", "ModelWordTimes", "ModelExperts")},
}

#: Tensors of answers, and the members of results that are integers.
NUMBERS = {"NumbersOut": "NDArray[Any]"}
INTEGERS = ("ids", "indices", "ranks")

HEADER = '''"""schema.py: the members of requests and of results. Made from the server's /openapi.json: `make client-types`."""

from typing import Any, Dict, List, Literal, Mapping, Protocol, Sequence, TypedDict, Union, overload

import numpy as np
from numpy.typing import NDArray


class HasArray(Protocol):
    """An array of NumPy, torch, jax, pandas, xarray, …"""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


Array = Union[HasArray, Sequence[Any]]
'''

OUTPUTS = '''

class Outputs:
    """What an answer has by name: arrays, and dicts of arrays and words."""

    outputs: Dict[str, Any]

%s
    def __getitem__(self, name: str) -> Any:
        return self.outputs[name]
'''

OVERLOAD = '''    @overload
    def __getitem__(self, name: %s) -> %s: ...%s
'''

#: Forms of JSON. The clients ask for arrays.
FORMS = ("format", "view")

PLAIN = {"boolean": "bool", "integer": "int", "number": "float", "string": "str", "array": "Array", "object": "Mapping[str, Any]",
         "null": "None"}


def hints_of(schema, schemas, lists="Array"):
    """The types that a schema allows, in its order. lists is what a list of a request is; None: as its items say."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        own = NUMBERS.get(name) or (name if name in (TYPES if lists else RESULTS) else None)
        return [own] if own else hints_of(schemas[name], schemas, lists)
    if "const" in schema:
        return hints_of({"enum": [schema["const"]]}, schemas, lists)
    if "enum" in schema:
        words = [repr(word) for word in schema["enum"] if isinstance(word, str)]
        others = {type(word).__name__: None for word in schema["enum"] if word is not None and not isinstance(word, str)}
        return ([f"Literal[{', '.join(words)}]"] if words else []) + list(others)
    branches = [branch for name in ("oneOf", "anyOf") for branch in schema.get(name, [])]
    found = [hint for branch in branches for hint in hints_of(branch, schemas, lists)]
    kinds = schema.get("type", [])
    own = [PLAIN[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null" or lists is None]
    items = schema.get("items", {})
    if kinds == "array" and (lists is None or "enum" in items or items.get("$ref", "").rpartition("/")[2] in TYPES):
        own = [f"{'Sequence' if lists else 'List'}[{union_of(hints_of(items, schemas, lists))}]"]
    return list(dict.fromkeys(found if branches else own))


def union_of(hints):
    return hints[0] if len(hints) == 1 else f"Union[{', '.join(hints)}]" if hints else "Any"


def typed_dict(name, members):
    return ["", f"{name} = TypedDict(", f'    "{name}",', "    {", *(f'        "{member}": {hint},' for member, hint in members.items()),
            "    },", "    total=False,", ")"]


def properties_at(pointer, schemas):
    found = schemas
    for name in pointer.split("/"):
        found = found[int(name) if isinstance(found, list) else name]
    return found["properties"]


def result_of(member, schema, schemas):
    hint = union_of(hints_of(schema, schemas, None))
    return hint.replace("[Any]", "[np.int64]") if hint in NUMBERS.values() and member in INTEGERS else hint


def outputs_of(schemas):
    """The class with a type for each output that is no array."""
    names = {}
    for name, schema in schemas["ModelOutputs"]["properties"].items():
        hint = union_of(hints_of(schema, schemas, None))
        if hint in RESULTS:
            names.setdefault(hint, []).append(repr(name))
    hints = [(f"Literal[{', '.join(its)}]", hint, "  # type: ignore") for hint, its in names.items()]
    return OUTPUTS % "\n".join(OVERLOAD % hint for hint in [*hints, ("str", "NDArray[Any]", "")])


def python_types(schemas):
    lines = [HEADER]
    for name in TYPES:
        members = {member: its for member, its in schemas[name]["properties"].items() if member not in FORMS}
        lines += typed_dict(name, {member: union_of(hints_of(its, schemas)) for member, its in members.items()})
    for name, places in RESULTS.items():
        members = {member: its for place in places for member, its in properties_at(place, schemas).items()}
        lines += typed_dict(name, {member: result_of(member, its, schemas) for member, its in members.items()})
    return "\n".join([*lines, outputs_of(schemas)])


def python_types_of(url):
    with urllib.request.urlopen(url + "/openapi.json") as reply:
        return python_types(json.load(reply)["components"]["schemas"])


def main():
    from run import ROOT, Server, has_packages, run  # noqa: PLC0415: python.py imports this file and needs none of it

    with Server(sys.argv[sys.argv.index("--attnd") + 1]) as server:
        (ROOT / "clients/python/attnd/schema.py").write_text(python_types_of(server.url))
        return 0 if has_packages("client-types", "clients/js") and run("node", "clients/js/types.mjs", server.url) == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
