"""sources.py: reads the interface from the C sources: routes, members, words, kinds of problems, settings."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
MASKS, STEPS = "server/codec/request/masks.c", "core/include/attn/plan.h"
FUNCTION = re.compile(r"^(?:static )?attn_status (\w+)\(struct (?:decoder|reading) [^{;]*?\n\{\n(.*?)^\}\n",
                      re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"struct member (\w+)\[\] = \{(.*?)\};", re.DOTALL)
ENTRY = re.compile(r'\{"(\w+)", (\w+), [^{}]*, (MEMBER_\w+)\}|\{\.name = "(\w+)"(?:, \.scope = (MEMBER_\w+))?\}')
MASK = re.compile(r'X\("(\w+)", (\w+), [^\n]*?, ([A-Z_| ]+|0)\)')
WORDS = re.compile(r"char \*const words\[\] = \{([^{}#]*)\};")


def read(name):
    text = (ROOT / name).read_text()
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


class Route:
    """A row of the table of routes: its methods and path, and the media types that it offers and reads."""

    def __init__(self, path, method, offers, rest, sets):
        self.path, self.method = path, method
        reads = re.search(r"\.reads = ([A-Z_| ]+)", rest)
        self.offers = media_of(offers, sets)
        self.reads = media_of(reads.group(1), sets) if reads else set()
        self.takes_parameters = ".takes_parameters = true" in rest


def routes():
    """The table, without HEAD and OPTIONS, which every route has."""
    text = read("server/http/routes.c")
    table = re.search(r"struct route routes\[\] = \{(.*?)\n\};", text, re.DOTALL).group(1)
    sets = dict(re.findall(r"\b([A-Z_]+) = ((?:MEDIA_BIT\(\w+\)|[A-Z_]+)(?: \| (?:MEDIA_BIT\(\w+\)|[A-Z_]+))*)", text))
    rows = re.findall(r'\{\s*"([^"]+)",\s*"([A-Z]+)",\s*([A-Z_|() ]+),(.*?)\}(?=,\s*(?:\{|$))', table, re.DOTALL)
    if len(rows) != table.count('"/'):
        raise ValueError("the table of routes has a form that is not understood here")
    return [Route(*row, sets) for row in rows]


def media_of(expression, sets):
    """The names of the media types in "JSON | MEDIA_BIT(MEDIA_PNG)"."""
    names = dict(re.findall(r'X\((MEDIA_\w+), "([^"]+)"\)', read("server/codec/bytes/media.h")))
    found = set()
    for term in expression.split("|"):
        bit = re.fullmatch(r"MEDIA_BIT\((\w+)\)", term.strip())
        found |= {names[bit.group(1)]} if bit else media_of(sets[term.strip()], sets)
    return found


class Decoder:
    """A decode function: the members and the words that it knows."""

    def __init__(self, body, tables):
        """tables: those of the file, by name; the function has its own or names one of them."""
        table, words = TABLE.search(body), WORDS.search(body)
        named = re.search(r"\b\w+_members\b(?=, ARRAY_LENGTH)", body)
        text = table.group(2) if table else tables.get(named.group(0)) if named else None
        self.members = entries(text) if text else None
        self.variants = {name: {member for member, _, _ in entries(rows)} for name, rows in TABLE.findall(body)}
        self.words = words_of(words.group(1)) if words else None


def words_of(text):
    """The words between the braces; activations are a list of the core, and "none" is no word of it."""
    if "ATTN_ACTIVATION_LIST" in text:
        return set(re.findall(r'X\(ATTN_ACTIVATION_\w+, "(\w+)"\)', read(STEPS))) - {"none"}
    return set(re.findall(r'"(\w+)"', text))


def entries(table):
    """[(name, name of the decode function or None, scope)]"""
    found = [(match[1] or match[4], match[2], match[3] or match[5]) for match in ENTRY.finditer(table)]
    if len(found) != table.count("{"):
        raise ValueError(f"a table of members has a form that is not understood here: {table[:200]}")
    return found


def masks():
    """{name: its places}, from the table of masks."""
    return {name: set(places.split(" | ")) for name, _, places in MASK.findall(read(MASKS))}


def tables_of(path):
    """The tables of members of a file, by name; that of the masks is made of the rows of MASK_LIST."""
    text = read(path)
    rows = "".join(f'{{"{name}", {decode}, 0, MEMBER_ALWAYS}},' for name, decode, _ in MASK.findall(text))
    return {name: table.replace("MASK_LIST(MASK_MEMBER)", rows) for name, table in TABLE.findall(text)}


def decoders():
    found = {}
    for path in sorted((ROOT / "server/codec/request").glob("*.c")):
        text = read(path.relative_to(ROOT))
        tables = tables_of(path.relative_to(ROOT))
        for match in FUNCTION.finditer(text):
            found[match.group(1)] = Decoder(match.group(2), tables)
    if not found.keys() >= {"decode_root", "decode_masks", "decode_options", "decode_tensor"}:
        raise ValueError("decode functions have a form that is not understood here")
    return found


def members_of(file, table):
    """{name} of a table of members, whatever decodes them."""
    return {name for name, _, _ in entries(dict(TABLE.findall(read(file)))[table])}


def steps():
    return re.findall(r'X\(ATTN_STEP_\w+, "(\w+)", ATTN_AXES_\w+, ATTN_VALUES_\w+\)', read(STEPS))


def model_results():
    """What models give beside the steps of their layers."""
    return set(re.findall(r'X\(MODEL_\w+, "(\w+)"\)', read("server/codec/model/model_request.h")))


def picture_parameters(table):
    """The names of a table of parameters; some of its rows are macros."""
    text = read("server/codec/picture/picture_options.c").replace("\\\n", "")
    macros = dict(re.findall(r'#define (\w+)\s*\{\s*"(\w+)"', text))
    rows = re.search(rf"struct parameter {table}\[\] = \{{(.*?)\n\}};", text, re.DOTALL).group(1)
    return {quoted or macros[macro] for quoted, macro in re.findall(r'^    (?:\{"(\w+)"|([A-Z]+),)', rows, re.MULTILINE)}


def gradients():
    return re.findall(r'X\(ATTN_GRADIENT_\w+, "([\w.]+)"', read("core/include/attn/gradient.h"))


def core_names():
    """The paths of members that the core names in errors: "options.norm_eps". One with %s ends before it."""
    names = set()
    for path in sorted((ROOT / "core/src").rglob("*.c")):
        text = read(path.relative_to(ROOT))
        for macro, value in re.findall(r'^#define ([A-Z]+) +"([a-z_.]+)"$', text, re.MULTILINE):
            text = text.replace(f'{macro} ".', f'"{value}.')
        names |= set(re.findall(r'"((?:inputs|weights|masks|options)(?:\.[a-z_%]+)*|grad_output|of|output)"', text))
        names |= set(re.findall(r"\bTENSOR\(((?:inputs|masks|options)\.[a-z_.]+)\)", text))
    return {name.partition(".%")[0] for name in names if ".side." not in name}


def core_pointers_by_table():
    """{name of the core: pointer}, for those that the rule does not translate."""
    return dict(re.findall(r'\{"([a-z_.]+)", "(/[a-z_/]+)"\}', read("server/codec/request/core_names.c")))


def core_identifiers():
    return set(re.findall(r"\w+", "".join(read(path.relative_to(ROOT)) for path in (ROOT / "core/include/attn").glob("*.h"))))


def refused_for_gradients():
    """Pointers of members that are decoded and then refused."""
    text = read("server/service/gradients.c")
    if "envelope_form_option(" in text:
        text += read("server/codec/request/envelope.c")
    return set(re.findall(r'\? "(/[\w/]+)"', text))


def dtypes():
    return re.findall(r'X\(ATTN_\w+, "(\w+)", \d\)', read("core/include/attn/tensor.h"))


def problems():
    """The types of problems, as in /problems/shape."""
    return set(re.findall(r'X\(PROBLEM_\w+, \d+, "([a-z-]+)"', read("server/http/problems.h")))


def settings():
    """{flag: default}"""
    return dict(re.findall(r'\{[A-Z]+, "([a-z-]+)", "([^"]*)", AT\(', read("server/config/settings.c")))
