#!/usr/bin/env python3
"""
renew_types.py --attnd PROGRAM: makes the types of requests in both clients from the /openapi.json of that program:
clients/js/schema.d.ts, which is not kept, and clients/python/attnd/schema.py, which python.py compares.
"""

import json
import sys
import urllib.request

#: What the calls of clients/python take.
TYPES = ("AttentionOptions", "LayerOptions", "ModelOptions", "Masks")

HEADER = '''"""schema.py: the members of requests. Made from the server's /openapi.json: `make client-types`."""

from typing import Any, Literal, Mapping, Protocol, Sequence, TypedDict, Union


class HasArray(Protocol):
    """An array of NumPy, torch, jax, pandas, xarray, …"""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


Array = Union[HasArray, Sequence[Any]]
'''

#: Forms of JSON. The clients ask for arrays.
FORMS = ("format", "view")

PLAIN = {"boolean": "bool", "integer": "int", "number": "float", "string": "str", "array": "Array", "object": "Mapping[str, Any]"}


def hints_of(schema, schemas):
    """The types that a schema allows, in its order."""
    if "$ref" in schema:
        return hints_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "const" in schema:
        return hints_of({"enum": [schema["const"]]}, schemas)
    if "enum" in schema:
        words = [repr(word) for word in schema["enum"] if isinstance(word, str)]
        others = {type(word).__name__: None for word in schema["enum"] if word is not None and not isinstance(word, str)}
        return ([f"Literal[{', '.join(words)}]"] if words else []) + list(others)
    branches = [branch for name in ("oneOf", "anyOf") for branch in schema.get(name, [])]
    found = [hint for branch in branches for hint in hints_of(branch, schemas)]
    kinds = schema.get("type", [])
    own = [PLAIN[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null"]
    return list(dict.fromkeys(found if branches else own))


def python_types(schemas):
    lines = [HEADER]
    for name in TYPES:
        lines += ["", f"{name} = TypedDict(", f'    "{name}",', "    {"]
        for member, its_schema in schemas[name]["properties"].items():
            if member in FORMS:
                continue
            hints = hints_of(its_schema, schemas) or ["Any"]
            lines.append(f'        "{member}": {hints[0] if len(hints) == 1 else "Union[" + ", ".join(hints) + "]"},')
        lines += ["    },", "    total=False,", ")"]
    return "\n".join(lines) + "\n"


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
