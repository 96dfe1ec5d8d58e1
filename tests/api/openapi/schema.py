"""
schema.py: the part of JSON Schema 2020-12 that the document uses. An unknown keyword is an error of the
document, so that no part of it stays unchecked.
"""

import math
import re

ANNOTATIONS = {"title", "description", "default", "examples", "contentEncoding", "format", "discriminator"}
TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: is_integer(value),
}


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and value.is_integer()


def is_same(mine, theirs):
    """Equal in JSON: 1 and 1.0 are, 1 and true are not."""
    return mine == theirs and isinstance(mine, bool) == isinstance(theirs, bool)


def complaints(value, schema, resolve, at=""):
    """Sentences about where value breaks schema; none when it is valid."""
    schema = resolve(schema)
    found = []
    for keyword, argument in schema.items():
        if keyword in CHECKS:
            found += [wrong if wrong.startswith("/") else f"{at or '/'} {wrong}"
                      for wrong in CHECKS[keyword](value, argument, schema, resolve, at)]
        elif keyword not in ANNOTATIONS:
            raise ValueError(f"unknown keyword {keyword}")
    return found


def check_type(value, types, *_):
    names = types if isinstance(types, list) else [types]
    if not any(TYPES[name](value) for name in names):
        yield f"is {str(value)[:60]!r}, not {' or '.join(names)}"


def check_enum(value, allowed, *_):
    if not any(is_same(value, item) for item in allowed):
        yield f"is {str(value)[:60]!r}, none of {allowed}"


def check_const(value, only, *_):
    if not is_same(value, only):
        yield f"is {str(value)[:60]!r}, not {only!r}"


def check_properties(value, properties, _, resolve, at):
    for name, item in value.items() if isinstance(value, dict) else ():
        if name in properties:
            yield from complaints(item, properties[name], resolve, f"{at}/{name}")


def check_additional(value, rule, schema, resolve, at):
    for name in value if isinstance(value, dict) else ():
        if name in schema.get("properties", {}):
            continue
        if rule is False:
            yield f"has the unknown member {name!r}"
        elif rule is not True:
            yield from complaints(value[name], rule, resolve, f"{at}/{name}")


def check_required(value, names, *_):
    for name in names if isinstance(value, dict) else ():
        if name not in value:
            yield f"has no {name!r}"


def check_items(value, schema, _, resolve, at):
    for index, item in enumerate(value if isinstance(value, list) else ()):
        yield from complaints(item, schema, resolve, f"{at}/{index}")


def check_one_of(value, schemas, _, resolve, at):
    tries = [complaints(value, schema, resolve, at) for schema in schemas]
    fitting = sum(not wrong for wrong in tries)
    if fitting != 1:
        yield f"fits {fitting} of {len(schemas)} alternatives, not one: {[wrong[0] for wrong in tries if wrong]}"


def check_any_of(value, schemas, _, resolve, at):
    tries = [complaints(value, schema, resolve, at) for schema in schemas]
    if all(tries):
        yield f"fits no alternative: {[wrong[0] for wrong in tries]}"


def check_bound(is_within, sentence):
    def check(value, bound, *_):
        if TYPES["number"](value) and not (math.isfinite(value) and is_within(value, bound)):
            yield f"is {value}, {sentence} {bound}"
    return check


def check_length(is_within, kind, sentence):
    def check(value, bound, *_):
        if isinstance(value, kind) and not is_within(len(value), bound):
            yield f"has length {len(value)}, {sentence} {bound}"
    return check


def check_pattern(value, pattern, *_):
    if isinstance(value, str) and not re.search(pattern, value):
        yield f"is {value[:60]!r}, which does not match {pattern}"


CHECKS = {
    "type": check_type,
    "enum": check_enum,
    "const": check_const,
    "properties": check_properties,
    "additionalProperties": check_additional,
    "required": check_required,
    "items": check_items,
    "oneOf": check_one_of,
    "anyOf": check_any_of,
    "minimum": check_bound(lambda value, bound: value >= bound, "less than"),
    "maximum": check_bound(lambda value, bound: value <= bound, "more than"),
    "exclusiveMinimum": check_bound(lambda value, bound: value > bound, "not more than"),
    "minItems": check_length(lambda length, bound: length >= bound, list, "less than"),
    "maxItems": check_length(lambda length, bound: length <= bound, list, "more than"),
    "minLength": check_length(lambda length, bound: length >= bound, str, "less than"),
    "maxLength": check_length(lambda length, bound: length <= bound, str, "more than"),
    "pattern": check_pattern,
}
