#!/usr/bin/env python3
"""
members.py: does random_request.py send every member, every form and every value of an enum that the OpenAPI document has
for a request? It stops when all was sent, and names what N requests never send. --requests N, --seed N, --document FILE.
"""

import argparse
import pathlib
import random
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), *(str(ROOT / "tests" / folder) for folder in ("api/openapi", "support", "support/reference"))]

from document import Document  # noqa: E402
from random_request import Builder  # noqa: E402
from schema import TYPES  # noqa: E402
from suite import conclude  # noqa: E402

SCHEMAS = {"/v1/attention": "AttentionRequest", "/v1/multi-head-attention": "LayerRequest"}
NUMBERS = {"Number", "NestedNumbers", "NestedFlags", "NestedIntegers", "Shape"}  # nothing to choose within them

# The two requests share their options, but these belong to layers.
OF_LAYERS = {"/v1/attention.options.relative_position.embedding", "/v1/attention.options.dropout|Dropout.where[]=residual", "/v1/attention.options.return|array[]=gated",
             "/v1/attention.options.return|array[]=attention_output", "/v1/attention.options.return|array[]=feed_forward",
             "/v1/attention.options.return|array[]=contribution", "/v1/attention.options.return|array[]=projected", "/v1/attention.options.return|array[]=residual",
             "/v1/attention.options.return|array[]=query_latent", "/v1/attention.options.return|array[]=key_latent"}
# And these to attention alone.
OF_ATTENTION = {"/v1/multi-head-attention.options.differential", "/v1/multi-head-attention.options.return|array[]=difference"}

# Short forms, and words for numbers, of which tests/api/words/shorthand.py sends each beside the long form.
SHORT = re.compile(r"\.(rope|norm|qk_norm|latent_norm)\|(boolean|string)|\.return\|Step|\.dropout\|number|_lengths\|integer|\.tokens\|Labels"
                   r"|\.weights\..*\|Tensor$|^Flat\w*Tensor\.dtype|^\w*Tensor\b.*\|string")

# The reference of random requests computes in float32 and float64. tests/api/cases and test_bf16 have bfloat16.
ELSEWHERE = {f"{path}.options.compute=bfloat16" for path in SCHEMAS}


class Places:
    """The members, forms and values that a schema has, and those that requests had."""

    def __init__(self, document):
        self.document, self.known, self.sent = document, set(), set()

    def learn(self, schema, place):
        """All that schema has. A tensor counts once, wherever it stands."""
        schema, place, is_new = self.named(schema, place)
        if not is_new:
            return
        for name, member in schema.get("properties", {}).items():
            self.known.add(f"{place}.{name}")
            self.learn(member, f"{place}.{name}")
        self.known |= {f"{place}={value}" for value in schema.get("enum", ())}
        for at, branch in enumerate(self.branches(schema)):
            self.known.add(f"{place}|{self.title(branch, at)}")
            self.learn(branch, f"{place}|{self.title(branch, at)}")
        if "items" in schema:
            self.learn(schema["items"], f"{place}[]")

    def see(self, schema, value, place):
        """What value has of it."""
        schema, place, _ = self.named(schema, place)
        if schema is None or value is None:
            return
        for name, member in schema.get("properties", {}).items():
            if isinstance(value, dict) and name in value:
                self.sent.add(f"{place}.{name}")
                self.see(member, value[name], f"{place}.{name}")
        if "enum" in schema:
            self.sent.add(f"{place}={value}")
        for at, branch in enumerate(self.branches(schema)):
            if self.fits(self.document.resolve(branch), value):
                self.sent.add(f"{place}|{self.title(branch, at)}")
                self.see(branch, value, f"{place}|{self.title(branch, at)}")
        if "items" in schema and isinstance(value, list):
            for item in value:
                self.see(schema["items"], item, f"{place}[]")

    def named(self, schema, place):
        """(schema without references, the place or the name of a tensor, whether it is met for the first time)"""
        name = schema.get("$ref", "").rsplit("/", 1)[-1]
        if name in NUMBERS:
            return {}, place, False
        is_tensor = name.endswith("Tensor")
        is_new = not (is_tensor and f"{name}" in self.known)
        if is_tensor:
            self.known.add(name), self.sent.add(name)
        return self.document.resolve(schema), name if is_tensor else place, is_new

    @staticmethod
    def branches(schema):
        return [branch for branch in schema.get("oneOf", schema.get("anyOf", ())) if branch.get("type") != "null"]

    @staticmethod
    def title(branch, at):
        return branch.get("$ref", f"/{branch.get('type', at)}").rsplit("/", 1)[-1]

    def fits(self, schema, value):
        """Whether it looks like value's branch: the type, and no member that the branch does not know."""
        if "type" in schema and not TYPES[schema["type"]](value):
            return False
        if "enum" in schema or "const" in schema:
            return value in schema.get("enum", [schema.get("const")])
        if isinstance(value, dict) and "properties" in schema:
            wrong = (member for name, member in schema["properties"].items() if name in value and "const" in member
                     and member["const"] != value[name])
            return set(value) <= set(schema["properties"]) and next(wrong, None) is None
        if isinstance(value, list) and value and "items" in schema:
            return self.fits(self.document.resolve(schema["items"]), value[0])
        branches = self.branches(schema)
        return not branches or any(self.fits(self.document.resolve(branch), value) for branch in branches)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--document", type=pathlib.Path, default=ROOT / "build" / "release" / "server" / "openapi.json")
    options = parser.parse_args()
    document = Document(options.document)
    places, chance = Places(document), random.Random(options.seed)
    for path, name in SCHEMAS.items():
        places.learn(document.schemas[name], path)
    places.known = {place for place in places.known - OF_LAYERS - OF_ATTENTION - ELSEWHERE if not SHORT.search(place)}
    for _ in range(options.requests):
        if places.known <= places.sent:
            break
        request = Builder(chance, 9)
        for body in request.bodies():
            places.see(document.schemas[SCHEMAS[request.path]], body, request.path)
    never = sorted(places.known - places.sent)
    for place in never:
        print(f"never sent: {place}")
    return conclude("members", len(places.known) - len(never), len(never))


if __name__ == "__main__":
    sys.exit(main())
