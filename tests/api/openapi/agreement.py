"""agreement.py: checks that the document agrees with the C sources. Each check yields a sentence per difference."""

import re

import sources
from document import BINARY

REQUESTS = {"AttentionRequest": {"MEMBER_ALWAYS", "MEMBER_OF_ATTENTION"},
            "LayerRequest": {"MEMBER_ALWAYS", "MEMBER_OF_LAYERS"},
            "AttentionGradientRequest": {"MEMBER_ALWAYS", "MEMBER_OF_GRADIENTS"},
            "LayerGradientRequest": {"MEMBER_ALWAYS", "MEMBER_OF_LAYERS", "MEMBER_OF_GRADIENTS"}}
CORE_ALONE = {"feed_forward", "branch_norm", "branch_norm_eps", "residual_scale"}  # members that no request has yet
TENSOR_DECODERS = re.compile(r"^decode_(tensor|flags|counts|ids)(_or_one)?$")


def check_routes(document):
    documented = {(operation.path, operation.method) for operation in document.operations()}
    served = set()
    for route in sources.routes():
        served |= {(route.path, route.method), (route.path, "OPTIONS")}
        served |= {(route.path, "HEAD")} if route.method == "GET" else set()
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
    of_lists = set(re.findall(r'strcmp\(parameter->name, "(\w+)"\)', sources.read("server/service/layers/layers.c")))
    for route in sources.routes():
        names = {parameter["name"] for parameter in document.parameters(route.path, route.method)
                 if parameter["in"] == "query"}
        of_pictures = sources.picture_parameters("of_model" if route.path.startswith("/v1/models/") else "of_layer")
        known = of_lists if route.method == "GET" else of_pictures
        if names != (known if route.takes_parameters else set()):
            yield f"{route.method} {route.path}: {sorted(names)} are its parameters in the document"


def check_blocks(document):
    """The matrix, and the patterns by their names; each has a table of members of its own."""
    known = sources.decoders()["decode_pattern"].words | {"matrix"}
    documented = set()
    for form in object_schemas(document, document.schemas["Masks"]["properties"]["blocks"]):
        name = form["properties"].get("pattern", {"const": "matrix"})["const"]
        documented.add(name)
        members = sources.members_of("server/codec/request/sparse_masks.c", f"{name}_members")
        if members != set(form["properties"]):
            yield f"blocks, {name}: {sorted(members ^ set(form['properties']))} stand on one side only"
    if known != documented:
        yield f"patterns of blocks: {sorted(known ^ documented)} stand on one side only"


def check_inference(document):
    """The Open Inference Protocol takes options and some masks as parameters, and tensors of the same types."""
    text = sources.read("server/codec/oip/infer_inputs.c")
    masks = sources.masks()
    parameters = {name for name, places in masks.items() if "MASK_AS_PARAMETER" in places}
    tensors = {name.upper() for name, places in masks.items() if "MASK_AS_TENSOR" in places}
    options = {name for name, _, scope in sources.decoders()["decode_options"].members if scope == "MEMBER_ALWAYS"}
    tables = dict(sources.TABLE.findall(sources.read("server/codec/model/model_request.c")))
    of_models = {member for member, _, _ in sources.entries(tables["option_members"])}
    lists = {
        "parameters": ((options | of_models) - {"return"} | parameters
                       | {"binary_data_output", "priority", "timeout", "content_type", "headers"},
                       document.schemas["InferParameters"]["properties"]),
        "types of tensors": (re.findall(r'\{"([A-Z0-9]+)", \d, ATTN_', text),
                             document.schemas["InferDatatype"]["enum"]),
        "inputs": ({name.upper() for name in re.findall(r'"inputs\.(\w+)"', text)} | tensors,
                   document.schemas["InferInput"]["properties"]["name"]["enum"]),
        "outputs": ([name.upper() for name in sources.steps()], document.schemas["InferStep"]["enum"]),
    }
    for what, (known, documented) in lists.items():
        if set(known) != set(documented):
            yield f"{what} of inference: {sorted(set(known) ^ set(documented))} stand on one side only"


def check_kept_masks(document):
    """The masks that a kept layer may have, by their table."""
    known = {name for name, places in sources.masks().items() if "MASK_IN_LAYERS" in places}
    documented = set(document.schemas["KeptMasks"]["properties"])
    if known != documented:
        yield f"masks of kept layers: {sorted(known ^ documented)} stand on one side only"


def check_members(document):
    decoders = sources.decoders()
    for name, scopes in REQUESTS.items():
        yield from compare(document, decoders, "decode_root", document.schemas[name], name, scopes)


def check_model_members(document):
    """A request for tokens has the members of every scope alone."""
    file = "server/codec/model/model_request.c"
    tables = dict(sources.TABLE.findall(sources.read(file)))
    for name, scopes in {"ModelAttentionRequest": {"MEMBER_ALWAYS", "MEMBER_OF_MAPS"},
                         "ModelTokensRequest": {"MEMBER_ALWAYS"}}.items():
        for section in ("inputs", "options"):
            known = {member for member, _, scope in sources.entries(tables[f"{section.removesuffix('s')}_members"])
                     if scope in scopes}
            schema = document.resolve(document.schemas[name]["properties"][section])
            if known != set(schema["properties"]):
                yield f"{name}/{section}: {sorted(known ^ set(schema['properties']))} stand on one side only"


def compare(document, decoders, function, schema, pointer, scopes):
    if TENSOR_DECODERS.match(function):
        yield from compare_forms(document, decoders, schema, pointer)
        return
    decoder = decoders.get(function)
    if decoder is None:
        return
    if decoder.words is not None:
        yield from compare_words(document, decoder.words, schema, pointer)
    if len(decoder.variants) > 1:
        yield from compare_variants(document, decoder.variants, schema, pointer)
        return
    if decoder.members is None:
        return
    objects = [found for found in object_schemas(document, schema) if not is_form_of_tensor(found)]
    if len(objects) != 1:
        yield f"{pointer} is an object to {function}, the document has {len(objects)}"
        return
    known = {name: decode for name, decode, scope in decoder.members if scope in scopes}
    if "MEMBER_OF_GRADIENTS" in scopes:
        _, _, place = pointer.partition("/")
        refused = sources.refused_for_gradients()
        known = {name: decode for name, decode in known.items() if f"/{place}/{name}" not in refused}
    properties = objects[0]["properties"]
    if objects[0].get("additionalProperties") is not False:
        yield f"{pointer} must have additionalProperties: false, as {function} refuses unknown members"
    yield from (f"{pointer}/{name} is decoded and not documented" for name in known.keys() - properties.keys())
    yield from (f"{pointer}/{name} is documented and not decoded" for name in properties.keys() - known.keys())
    for name in known.keys() & properties.keys():
        yield from compare(document, decoders, known[name], properties[name], f"{pointer}/{name}", scopes)


def compare_variants(document, known, schema, pointer):
    """Objects that differ by their type, which is the name of their table in the sources, too."""
    documented = {form["properties"]["type"]["const"]: set(form["properties"])
                  for form in object_schemas(document, schema)}
    for name in known.keys() | documented.keys():
        if known.get(name) != documented.get(name):
            yield f"{pointer}, {name}: decoded are {known.get(name)}, documented {documented.get(name)}"


def is_form_of_tensor(schema):
    return {"shape"} < set(schema["properties"])


def compare_forms(document, decoders, schema, pointer):
    """The objects that a tensor may be."""
    known = {frozenset(name for name, _, _ in decoders[function].members)
             for function in ("decode_flat", "decode_binary")}
    documented = {frozenset(form["properties"]) for form in object_schemas(document, schema)}
    if known != documented:
        differing = [sorted(form) for form in known ^ documented]
        yield f"{pointer}: {differing} are forms of a tensor on one side only"


def compare_words(document, words, schema, pointer):
    documented = {word for leaf in leaves(document, schema) for word in leaf.get("enum", [leaf.get("const")])
                  if isinstance(word, str)}
    if words != documented:
        yield f"{pointer} takes {sorted(words)}, the document says {sorted(documented)}"


def leaves(document, schema):
    """The schema's alternatives, and those of its items."""
    schema = document.resolve(schema)
    for alternative in schema.get("oneOf", []) + schema.get("anyOf", []):
        yield from leaves(document, alternative)
    if "items" in schema:
        yield from leaves(document, schema["items"])
    yield schema


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
    yield from (f"{name} of core_names.c is not a member of the core" for name in table
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


def check_words(document):
    schemas = document.schemas
    lists = {
        "steps that can be returned": (sources.steps(), schemas["Step"]["enum"]),
        "results of models": (set(sources.steps()) | sources.model_results(), schemas["ModelResult"]["enum"]),
        "paths of gradients": ({name for path in sources.gradients() for name in (path, path.removeprefix("inputs."))},
                               schemas["GradientPath"]["enum"]),
        "outputs": (sources.steps(), schemas["Outputs"]["properties"]),
        "shapes": (sources.steps(), schemas["Shapes"]["properties"]),
        "types of elements": (sources.dtypes(), schemas["Dtype"]["enum"]),
        "types of problems": ([f"/problems/{name}" for name in sources.problems()],
                              schemas["Problem"]["properties"]["type"]["enum"]),
    }
    for what, (known, documented) in lists.items():
        if set(known) != set(documented):
            yield f"{what}: {sorted(set(known) ^ set(documented))} stand on one side only"


def check_version(document):
    version = (sources.ROOT / "VERSION").read_text().strip()
    if document.root["info"]["version"] != version:
        yield f"info.version is {document.root['info']['version']}, VERSION says {version}"


def check_settings(document):
    """The table of limits in the introduction."""
    known = sources.settings()
    rows = re.findall(r"^\| `--([a-z-]+)` \| ([^ |]+) \|", document.root["info"]["description"], re.MULTILINE)
    if not rows:
        yield "info.description has no table of limits"
    for flag, default in rows:
        if known.get(flag) != default:
            yield f"--{flag} is {known.get(flag)} by default, the document says {default}"


CHECKS = (check_routes, check_media, check_parameters, check_members, check_model_members, check_kept_masks, check_blocks, check_inference, check_core_names, check_words,
          check_version, check_settings)
