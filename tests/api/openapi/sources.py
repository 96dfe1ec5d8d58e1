"""sources.py: reads what people write from the C sources: routes, media types, places of masks, names in errors."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
MASKS = "server/codec/request/masks.c"
MASK = re.compile(r'X\("(\w+)", (\w+), [^\n]*?, ([A-Z_| ]+|0)\)')


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


def masks():
    """{name: its places}, from the table of masks."""
    return {name: set(places.split(" | ")) for name, _, places in MASK.findall(read(MASKS))}


def picture_parameters(kind):
    """The names of the parameters that a kind of pictures has: OF_LAYER or OF_MODEL."""
    rows = re.findall(r"^    ROW\(([A-Z_| ]+), (\w+),", read("server/codec/picture/options.c"), re.MULTILINE)
    return {name for kinds, name in rows if kind in kinds.split(" | ")}


def core_names():
    """The paths of members that the core names in errors: "options.norm_eps". One with %s ends before it."""
    names = set()
    for path in sorted((ROOT / "core/src").rglob("*.c")):
        text = read(path.relative_to(ROOT))
        for macro, value in re.findall(r'^#define ([A-Z]+) +"([a-z_.]+)"$', text, re.MULTILINE):
            text = text.replace(f'{macro} ".', f'"{value}.')
        names |= set(re.findall(r'"((?:inputs|weights|masks|options)(?:\.[a-z_%]+)*|grad_output|of|output)"', text))
    text = read("core/include/attn/plan.h")
    names |= set(re.findall(r"\b(?:CONSTANT\(|DIFFERS\(\w+, )([a-z]+\.[a-z_.]+)[,)]", text))
    names |= {f"weights.{role}" for role in re.findall(r"ATTN_AFFINE_LIST\(DIFFERS, \w+, ([a-z_.]+)\)", text)}
    return {name.partition(".%")[0] for name in names if ".role" not in name}


def core_pointers_by_table():
    """{name of the core: pointer}, for those that the rule does not translate."""
    return dict(re.findall(r'\{"([a-z_.]+)", "(/[a-z_/]+)"\}', read("server/codec/request/envelope.c")))


def core_identifiers():
    return set(re.findall(r"\w+", "".join(read(path.relative_to(ROOT)) for path in (ROOT / "core/include/attn").glob("*.h"))))


def refused_for_gradients():
    """Pointers of members that are decoded and then refused."""
    text = read("server/service/run/gradients.c")
    if "envelope_form_option(" in text:
        text += read("server/codec/request/envelope.c")
    return set(re.findall(r'\? "(/[\w/]+)"', text))
