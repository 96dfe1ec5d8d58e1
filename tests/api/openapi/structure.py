"""structure.py: checks that the document is consistent in itself. Each check yields a sentence per mistake."""

import re

import bodies
from document import JSON, METHODS, PROBLEM
from layout import layout
from schema import complaints

NAME = re.compile(r"^[A-Za-z0-9._-]+$")


def check_layout(document):
    for file, part in document.source.parts.items():
        if document.source.texts[file] != layout(part) + "\n":
            yield f"{file} is not laid out as layout.py does it; run.py --record writes it anew"


def check_references(document):
    used = {f"#/components/securitySchemes/{name}" for operation in document.operations()
            for choice in operation.node.get("security", []) for name in choice}
    for pointer, node in document.nodes():
        if "$ref" not in node:
            continue
        try:
            document.find(node["$ref"])
        except KeyError as error:
            yield f"{pointer}: {node['$ref']} leads nowhere: {error}"
        used.add("/".join(node["$ref"].split("/")[:4]))
    for kind, components in document.root["components"].items():
        for name in components:
            if f"#/components/{kind}/{name}" not in used:
                yield f"components/{kind}/{name} is used nowhere"
            if not NAME.match(name):
                yield f"components/{kind}/{name} is no name for a component"


def check_operations(document):
    ids = []
    tags = {tag["name"] for tag in document.root["tags"]}
    for operation in document.operations():
        node = operation.node
        ids.append(node.get("operationId"))
        for name in ("operationId", "summary", "responses", "tags"):
            if not node.get(name):
                yield f"{operation} has no {name}"
        if not set(node["tags"]) <= tags:
            yield f"{operation} has a tag that is not described"
        for status in node["responses"]:
            if not re.match(r"^[1-5][0-9][0-9]$", status) or not operation.response(status).get("description"):
                yield f"{operation} {status} is no status, or has no description"
        if not any(status.startswith("4") for status in node["responses"]):
            yield f"{operation} is never refused"
    yield from (f"operationId {name} stands twice" for name in set(ids) if ids.count(name) > 1)
    for path, item in document.root["paths"].items():
        if not path.startswith("/") or not set(item) <= {*METHODS, "parameters", "summary", "description"}:
            yield f"{path} is no path item"


def check_schemas(document):
    """Every keyword is known, and every default is valid; found by holding an example against each schema."""
    for pointer, node in document.nodes():
        is_schema = re.search(r"/(schemas|properties)/[^/]+$|/(schema|items|additionalProperties)$|/(one|any)Of/\d+$",
                              pointer)
        if not is_schema:
            continue
        try:
            complaints(node.get("default"), node, document.resolve)
        except ValueError as error:
            yield f"{pointer}: {error}"
        if "default" in node:
            yield from (f"{pointer}/default {wrong}" for wrong in complaints(node["default"], node, document.resolve))
        is_choice = re.search(r"/anyOf/\d+$", pointer) and "properties" not in node  # of members of the whole
        for name in () if is_choice else node.get("required", ()):
            if name not in node["properties"]:
                yield f"{pointer} requires {name}, which it does not describe"


def check_forms(document):
    """What generators of clients need: no reference into a component, no recursion, types beside words, elements."""
    for pointer, node in document.nodes():
        reference = node.get("$ref", "")
        if reference.count("/") > 3:
            yield f"{pointer} refers into a component: {reference}"
        if isinstance(reference, str) and reference and pointer.startswith(f"{reference}/"):
            yield f"{pointer} refers to itself"
        if re.search(r"/properties$", pointer):
            continue
        if ("enum" in node or "const" in node) and "type" not in node:
            yield f"{pointer} has words without a type"
        if node.get("type") == "array" and "items" not in node:
            yield f"{pointer} is an array of unknown elements"
        if set(node) & {name for name in node if name.startswith("x-") and name != "x-examples"}:
            yield f"{pointer} has {sorted(name for name in node if name.startswith('x-'))}, which the build fills in"


def check_descriptions(document):
    for name, schema in document.schemas.items():
        if not schema.get("description"):
            yield f"components/schemas/{name} has no description"
        for member, node in schema.get("properties", {}).items():
            if not node.get("description") and not document.resolve(node).get("description"):
                yield f"components/schemas/{name}/properties/{member} has no description"


def check_examples(document):
    answered = set()
    for exchange in document.exchanges():
        if not exchange.is_reachable:
            yield f"{exchange} says nothing about its request"
        if exchange.is_named:
            answered.add(id(exchange.operation.request_examples[exchange.name]))
        if exchange.schema is not None and bodies.CODING not in exchange.example:
            yield from (f"{exchange}: {wrong}"
                        for wrong in complaints(exchange.example["value"], exchange.schema, document.resolve))
    for operation in document.operations():
        for name, example in operation.request_examples.items():
            if id(example) not in answered:
                yield f"{operation}: request example {name} has no answer of that name"
            if operation.request_schema is None:
                yield f"{operation}: request examples without a schema"


def check_errors(document):
    """Every error shows an example, somewhere; that of 431 would be longer than the document, and is tried without."""
    for operation in document.operations():
        for status in operation.node["responses"]:
            content = operation.response(status).get("content", {})
            if status[0] in "45" and status != "431" and content and not content[JSON].get("examples"):
                yield f"{operation} {status} has no example"


def check_example_requests(document):
    """Valid all of them; a request that is refused for what the schema tells already stands beside its answer."""
    for operation in document.operations():
        for name, example in operation.request_examples.items():
            yield from (f"{operation}: request example {name}: {wrong}"
                        for wrong in complaints(example["value"], operation.request_schema, document.resolve))


def check_media(document):
    """Errors come in both of their media types, and in the same schema."""
    for operation in document.operations():
        for status in operation.node["responses"]:
            content = operation.response(status).get("content", {})
            if status[0] in "45" and content and JSON not in content:
                yield f"{operation} {status} has no {JSON}"
            if PROBLEM in content and content[JSON]["schema"] != content[PROBLEM]["schema"]:
                yield f"{operation} {status} differs by media type"


CHECKS = (check_layout, check_references, check_operations, check_schemas, check_forms, check_descriptions, check_examples,
          check_errors, check_example_requests, check_media)
