"""
agreement.py: checks that the document agrees with the C sources, where people write both. Each check yields a sentence
per difference.
"""

import re

import sources
from document import BINARY

CORE_ALONE = {"feed_forward", "branch_norm", "branch_norm_eps", "residual_scale"}  # members that no request has yet


def check_routes(document):
    documented = {(operation.path, operation.method) for operation in document.operations()}
    served = {(route.path, route.method) for route in sources.routes() if route.path != "/v2/"}  # which is /v2
    yield from (f"{method} {path} is served and not documented" for path, method in sorted(served - documented))
    yield from (f"{method} {path} is documented and not served" for path, method in sorted(documented - served))


def check_media(document):
    operations = {(operation.path, operation.method): operation for operation in document.operations()}
    for route in sources.routes():
        operation = operations.get((route.path, route.method))
        if operation is None:
            continue
        documented = {"answers with": operation.answer_media(), "reads": operation.request_media()}
        offers = set() if operation.has_no_content() else route.offers
        for what, served in (("answers with", offers), ("reads", route.reads)):
            if what == "answers with" and document.is_open_inference(route.path):
                served = served | documented[what] & {BINARY}  # not by Accept: when the request asks for it
            if served != documented[what]:
                yield f"{operation} {what} {sorted(served)}, documented are {sorted(documented[what])}"


def check_parameters(document):
    """A path that takes parameters has all of them: those of pictures, or those of a list."""
    of_lists = set(re.findall(r'strcmp\(parameter->name, "(\w+)"\)', sources.read("server/service/registry/layer/endpoints.c")))
    for route in sources.routes():
        names = {parameter["name"] for parameter in document.parameters(route.path, route.method)
                 if parameter["in"] == "query"}
        of_pictures = sources.picture_parameters("OF_MODEL" if route.path.startswith("/v1/models/") else "OF_LAYER")
        known = of_lists if route.method == "GET" else of_pictures
        if names != (known if route.takes_parameters else set()):
            yield f"{route.method} {route.path}: {sorted(names)} are its parameters in the document"


def check_inference(document):
    """The types of tensors that the Open Inference Protocol takes, and their names."""
    text = sources.read("server/codec/oip/infer_inputs.c")
    tensors = {name.upper() for name, places in sources.masks().items() if "MASK_AS_TENSOR" in places}
    lists = {
        "types of tensors": (re.findall(r'\{"([A-Z0-9]+)", \d, ATTN_', text),
                             document.schemas["InferDatatype"]["enum"]),
        "inputs": ({name.upper() for name in re.findall(r'"inputs\.(\w+)"', text)} | tensors,
                   document.schemas["InferInput"]["properties"]["name"]["enum"]),
    }
    for what, (known, documented) in lists.items():
        if set(known) != set(documented):
            yield f"{what} of inference: {sorted(set(known) ^ set(documented))} stand on one side only"


def check_gradients(document):
    """The options that requests for gradients decode and then refuse."""
    refused = {pointer.rpartition("/")[2] for pointer in sources.refused_for_gradients()}
    for name in ("Attention", "Layer"):
        options, left = (set(document.schemas[f"{name}{kind}"]["properties"]) for kind in ("Options", "GradientOptions"))
        if options - left != refused & options:
            yield f"{name}GradientOptions lacks {sorted(options - left)}, refused are {sorted(refused & options)}"


def object_schemas(document, schema):
    schema = document.resolve(schema)
    if "properties" in schema:
        return [schema]
    return [found for alternative in schema.get("oneOf", []) + schema.get("anyOf", [])
            for found in object_schemas(document, alternative)]


def check_core_names(document):
    """The core names members of C structs, and each name becomes the pointer of a member that a request may have."""
    table, identifiers = sources.core_pointers_by_table(), sources.core_identifiers() | {"output"}
    names = sources.core_names()
    yield from (f"{name} of envelope.c is not a member of the core" for name in table
                if not set(name.split(".")) <= identifiers)
    root = {"properties": {**document.schemas["LayerGradientRequest"]["properties"],
                           "outputs": document.schemas["Outputs"]}}
    for name in sorted(names):
        if not set(name.split(".")) <= identifiers:
            yield f"the core names {name}, which is no member of its structs"
        row = max((row for row in table if f"{name}.".startswith(f"{row}.")), key=len, default="")
        pointer = (table[row] + name[len(row):] if row else f"/{name}").replace(".", "/")
        found = [root, document.schemas["AttentionRequest"]]
        for member in pointer.split("/")[1:]:
            found = [form["properties"][member] for schema in found for form in object_schemas(document, schema)
                     if member in form["properties"]]
        if not found and not set(name.split(".")) & CORE_ALONE:
            yield f"the core names {name}, which becomes {pointer}: no request has that member"


CHECKS = (check_routes, check_media, check_parameters, check_inference, check_gradients, check_core_names)
