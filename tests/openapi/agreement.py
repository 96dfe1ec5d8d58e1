"""agreement.py: does the document say what the C sources say? Each check yields sentences about what differs."""

import re

import sources

REQUESTS = {"AttentionRequest": "MEMBER_ALWAYS", "LayerRequest": "MEMBER_OF_LAYERS"}
TENSOR_DECODERS = re.compile(r"^decode_(tensor|flags|counts)(_or_one)?$")
# Words that are known but refused as not implemented yet.
REFUSED_WORDS = {"decode_mechanism": {"linear", "performer"}}


def check_routes(document):
    documented = {(operation.path, operation.method) for operation in document.operations()}
    served = set()
    for path, method in sources.routes():
        served |= {(path, method), (path, "OPTIONS")} | ({(path, "HEAD")} if method == "GET" else set())
    yield from (f"{method} {path} is served and not documented" for path, method in sorted(served - documented))
    yield from (f"{method} {path} is documented and not served" for path, method in sorted(documented - served))


def check_members(document):
    decoders = sources.decoders()
    for name, scope in REQUESTS.items():
        yield from compare(document, decoders, "decode_root", document.schemas[name], name, {"MEMBER_ALWAYS", scope})


def compare(document, decoders, function, schema, pointer, scopes):
    if TENSOR_DECODERS.match(function):
        yield from compare_forms(document, decoders, schema, pointer)
        return
    decoder = decoders.get(function)
    if decoder is None:
        return
    if decoder.words is not None:
        yield from compare_words(document, decoder.words - REFUSED_WORDS.get(function, set()), schema, pointer)
    if decoder.members is None:
        return
    objects = object_schemas(document, schema)
    if len(objects) != 1:
        yield f"{pointer} is an object to {function}, the document has {len(objects)}"
        return
    known = {name: decode for name, decode, scope in decoder.members if scope in scopes}
    properties = objects[0]["properties"]
    if objects[0].get("additionalProperties") is not False:
        yield f"{pointer} must have additionalProperties: false, as {function} refuses unknown members"
    yield from (f"{pointer}/{name} is decoded and not documented" for name in known.keys() - properties.keys())
    yield from (f"{pointer}/{name} is documented and not decoded" for name in properties.keys() - known.keys())
    for name in known.keys() & properties.keys():
        yield from compare(document, decoders, known[name], properties[name], f"{pointer}/{name}", scopes)


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


def check_words(document):
    schemas = document.schemas
    lists = {
        "steps that can be returned": (sources.steps(), schemas["Step"]["enum"]),
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


CHECKS = (check_routes, check_members, check_words, check_version, check_settings)
