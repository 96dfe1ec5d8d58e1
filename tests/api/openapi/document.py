"""document.py: the OpenAPI document in memory: references, operations, and the exchanges that its examples show."""

import base64
import json
import re

METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
JSON, PROBLEM, BINARY = "application/json", "application/problem+json", "application/octet-stream"


class Document:
    """A file, or the files of a folder, each with some members of the document at their places."""

    def __init__(self, path):
        files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        self.texts = {file: file.read_text() for file in files}
        self.parts = {file: json.loads(text, object_pairs_hook=once) for file, text in self.texts.items()}
        self.root = {}
        for part in self.parts.values():
            add_part(self.root, part)
        self.schemas = self.root["components"]["schemas"]

    def resolve(self, node):
        while isinstance(node, dict) and "$ref" in node:
            node = self.find(node["$ref"])
        return node

    def find(self, reference):
        if not reference.startswith("#/"):
            raise KeyError(f"{reference} is not in the document")
        node = self.root
        for name in reference[2:].split("/"):
            node = node[name.replace("~1", "/").replace("~0", "~")]
        return node

    def nodes(self):
        """(pointer, node) for every object of the document, except what stands in examples."""
        stack = [("#", self.root)]
        while stack:
            pointer, node = stack.pop()
            if isinstance(node, dict):
                yield pointer, node
            children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
            stack += [(f"{pointer}/{name}", child) for name, child in children if name not in ("examples", "default")]

    def operations(self):
        for path, item in self.root["paths"].items():
            for method in METHODS:
                if method in item:
                    yield Operation(self, path, method, item[method])

    def operation(self, path, method):
        return Operation(self, path, method, self.root["paths"][path][method.lower()])

    def methods(self, path):
        return {method.upper() for method in METHODS if method in self.root["paths"][path]}

    def target(self, path):
        """The path with the examples of its parameters in the places of their names."""
        values = {parameter["name"]: parameter["example"] for parameter in
                  map(self.resolve, self.root["paths"][path].get("parameters", ()))}
        return re.sub(r"\{(\w+)\}", lambda name: values[name.group(1)], path)

    def parameters(self, path, method):
        """Those of the path, and those of the method; none of a method that is not there."""
        item = self.root["paths"].get(path, {})
        mine = item.get(method.lower(), {}).get("parameters", [])
        return [self.resolve(parameter) for parameter in [*item.get("parameters", []), *mine]]

    @staticmethod
    def is_open_inference(path):
        return path == "/v2" or path.startswith("/v2/")

    def exchanges(self):
        """Every example of a response once, with the request that leads to it."""
        seen = set()
        for operation in self.operations():
            for exchange in operation.exchanges():
                if id(exchange.example) not in seen:
                    seen.add(id(exchange.example))
                    yield exchange


class Operation:
    def __init__(self, document, path, method, node):
        self.document, self.path, self.method, self.node = document, path, method.upper(), node
        self.target = document.target(path)
        self.request_content = document.resolve(node.get("requestBody", {})).get("content", {})
        self.request_schema = self.request_content.get(JSON, {}).get("schema")
        self.request_examples = self.request_content.get(JSON, {}).get("examples", {})

    def __str__(self):
        return f"{self.method} {self.path}"

    def request_media(self):
        return set(self.request_content)

    def answer_media(self):
        return {media for status in self.node["responses"] if status.startswith("2")
                for media in self.response(status).get("content", {})}

    def has_no_content(self):
        return {status for status in self.node["responses"] if status.startswith("2")} == {"204"}

    def response(self, status):
        return self.document.resolve(self.node["responses"][str(status)])

    def exchanges(self):
        for status in self.node["responses"]:
            response = self.response(status)
            for media, content in response.get("content", {}).items():
                for name, example in content.get("examples", {}).items():
                    yield Exchange(self, int(status), response, media, content.get("schema"), name, example)


class Exchange:
    """An example of a response and the request for it: x-request, the request example of that name, or a bare GET."""

    def __init__(self, operation, status, response, media, schema, name, example):
        self.operation, self.status, self.response, self.media = operation, status, response, media
        self.schema, self.name, self.example = schema, name, example
        request = example.get("x-request", {})
        self.method = request.get("method", operation.method)
        self.path = request.get("path", operation.target)
        self.headers = dict(request.get("headers", {}))
        self.body = body_of(request)
        self.server = request.get("server", "idle")
        self.is_named = name in operation.request_examples
        if not request and self.is_named:
            self.body = json.dumps(operation.request_examples[name]["value"]).encode()
            self.headers["Content-Type"] = JSON
        self.is_reachable = bool(request) or self.is_named or operation.request_schema is None

    def __str__(self):
        return f"{self.operation} {self.status} {self.name}"


def add_part(whole, part, depth=2):
    """As mk/openapi/openapi.c puts the files together. The paths and components themselves are shared with the parts."""
    for name, value in part.items():
        if depth > 0 and isinstance(value, dict):
            add_part(whole.setdefault(name, {}), value, depth - 1)
        else:
            assert name not in whole, f"two files have {name}"
            whole[name] = value


def body_of(example):
    """The bytes of a body that is written as text, or as base64 where it is none."""
    if "base64" in example:
        return base64.b64decode(example["base64"])
    return example["body"].encode() if "body" in example else None


def once(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError(f"a member stands twice among {[name for name, _ in pairs]}")
    return members
