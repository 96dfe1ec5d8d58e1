#!/usr/bin/env python3
"""
tutorial.py: runs docs/tutorial/requests.md, and holds the tutorial's three texts against it.

requests.md has every command once, with its name and what it prints. The answers to attention requests are those of the
reference (tests/support/reference), too. Their numbers are those of the answer, to the last digit. A text shows a command behind a comment with its name, to the letter;
`tutorial.py --write` copies all of them into the texts. What a text says in `code` is held against them as well:

    `e^0.5 / (e^0.5 + e^0.25 + e^0.125) = 0.406`   a formula: both sides are equal, to the digits on the right
    `attention[0][0][1][2] = 0.5068`               its names are outputs and effective options of the answer above it
    `0.316`, `(2, 8, 5, 5)`                        stands in requests.md, or on the right of a formula

Numbers with a fraction stand in code, and the three texts have the same formulas behind the same commands.
"""

import argparse
import collections
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import run as readme
from attnd import Server, parse_json
from suite import conclude, run_tests

sys.path.append(str(readme.ROOT / "tests" / "support" / "reference"))

from attention import answer as reference, plain_values  # noqa: E402

REQUESTS = readme.ROOT / "docs" / "tutorial" / "requests.md"
TEXTS = [readme.ROOT / "docs" / name for name in ("tutorial.md", "tutorial.tr.md", "tutorial.ru.md")]
BLOCKS = r"```sh\n(?P<command>.*?)^```\n(?:\n```(?P<kind>json|text)\n(?P<expected>.*?)^```\n)?"
STEP = re.compile(r"^## (?P<name>\S+)\n\n" + BLOCKS, re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"^<!-- (?P<name>\S+) -->\n(?P<blocks>" + BLOCKS + ")?", re.MULTILINE | re.DOTALL)
ASKED = re.compile(r"/v1/(attention|multi-head-attention) -d '([^']*)'\s*$")
CODE = re.compile(r"`([^`\n]+)`")
DECIMAL = re.compile(r"(?<![\w.])\d+(?:\.\d+(?:e-?\d+)?|e-?\d+)(?![\w.])")
OUTSIDE = re.compile(r"\d[.,]\d|\de-?\d")
LIST = re.compile(r"[(\[]-?\d[-\d., ]*[)\]]")


def main():
    parser = argparse.ArgumentParser(description="run the tutorial")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--attnd", help="server to start")
    what.add_argument("--write", action="store_true", help="copy the commands and their answers into the texts")
    options = parser.parse_args()
    steps = {step["name"]: step for step in STEP.finditer(REQUESTS.read_text())}
    if options.write:
        for path in TEXTS:
            path.write_text(PLACE.sub(lambda place: f"<!-- {place['name']} -->\n{blocks(steps[place['name']])}",
                                      path.read_text()))
        return 0
    answers = {}
    with Server(options.attnd) as server, tempfile.TemporaryDirectory() as folder:
        for part in ("examples", "tests"):
            (pathlib.Path(folder) / part).symlink_to(readme.ROOT / part)
        ran = run_tests([named(step) for step in steps.values()],
                        lambda step: step(server.url, folder, answers))
    held = run_tests([requests_md, *map(held_text, TEXTS), texts_have_the_same_formulas],
                     lambda check: check(steps, answers))
    return conclude("tutorial", *map(sum, zip(ran, held)))


def blocks(step):
    """The command of a step and what it prints, as a text shows them."""
    answer = f"\n```{step['kind']}\n{step['expected']}```\n" if step["kind"] else ""
    return f"```sh\n{step['command']}```\n{answer}"


def named(step):
    def run_step(url, folder, answers):
        command = step["command"].replace(readme.ADDRESS, url.removeprefix("http://"))
        done = subprocess.run(["sh", "-c", command], cwd=folder, env={**os.environ, "ATTND_URL": url},
                              capture_output=True, text=True)
        assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-500:]}"
        wrong = readme.compare_output(done.stdout, step["kind"], step["expected"], is_exact=True)
        if ".png" in step["command"]:
            wrong = wrong or readme.compare_pictures(folder)
        assert not wrong, wrong
        if step["kind"] == "json":
            answers[step["name"]] = parse_json(done.stdout)
            compare_with_reference(step)
    run_step.__name__ = step["name"]
    return run_step


# The reference computes in double; float32 loses the scores beside a billion, and that is the step's subject.
OF_FLOAT32 = ["minus-billion"]


def compare_with_reference(step):
    asked = ASKED.search(step["command"])
    shown = json.loads(step["expected"], parse_float=readme.Decimal).get("outputs")
    if asked and shown and step["name"] not in OF_FLOAT32:
        outputs, _ = reference(asked[1], long_form(plain_values(json.loads(asked[2]))))
        wrong = readme.difference({name: with_null(item.nested()) for name, item in outputs.items()}, shown, "/outputs")
        assert not wrong, f"the reference: {wrong}"


def long_form(request):
    weights = request.get("weights", {})
    return {**request, "weights": {name: {"weight": item} if isinstance(item, list) else item
                                   for name, item in weights.items()}}


def with_null(item):
    if isinstance(item, list):
        return [with_null(inner) for inner in item]
    return None if item == "-Infinity" else item


def requests_md(steps, _answers):
    names = re.findall(r"^## (.*)", REQUESTS.read_text(), re.MULTILINE)
    assert names == list(steps), f"not every section has a name of its own and a command: {names}"


def held_text(path):
    def check_text(steps, answers):
        check_places(path.read_text(), steps)
        known = {float(number) for number in DECIMAL.findall(REQUESTS.read_text())}
        for name, span in spans(path):
            if " = " in span:
                known.add(check_formula(span, answers.get(name)))
        for name, span in spans(path):
            *parts, result = span.split(" = ")
            for number in DECIMAL.findall(" ".join(parts) if parts else result):
                assert float(number) in known, f"`{span}` behind {name}: where is {number} from?"
            if LIST.fullmatch(span):
                assert span[1:-1] in REQUESTS.read_text(), f"`{span}` behind {name} is not in requests.md"
        plain = re.sub(r"https?://\S+|\]\([^)]*\)", "", CODE.sub("", prose(path.read_text())))
        bare = [line for line in plain.splitlines() if OUTSIDE.search(line)]
        assert not bare, f"numbers with a fraction stand in code, not as in {bare}"
    check_text.__name__ = path.name
    return check_text


def check_places(text, steps):
    names = [place["name"] for place in PLACE.finditer(text)]
    assert names == list(steps), f"has other steps than requests.md, or another order: {names}"
    for place in PLACE.finditer(text):
        assert place["blocks"] == blocks(steps[place["name"]]), f"{place['name']} is not that of requests.md: --write"


def prose(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def spans(path):
    """(name of the step above, code) of every code span of the prose."""
    name = None
    for line in prose(path.read_text()).splitlines():
        comment = re.fullmatch(r"<!-- (\S+) -->", line)
        name = comment[1] if comment else name
        yield from ((name, span) for span in CODE.findall(line) if '"' not in span)


def check_formula(text, answer):
    """The number on the right, which all parts agree with."""
    names = {**(answer or {}).get("effective", {}), **(answer or {}).get("outputs", {})}
    *parts, result = text.split(" = ")
    for part in parts:
        number = value(part, names)
        is_whole = result.lstrip("-").isdigit()  # sums of numbers with four digits are whole to three
        is_same = abs(number - int(result)) < 1e-3 if is_whole else readme.agrees(number, result, units=0.51)
        assert is_same, f"`{text}`: {part} is {number}"
    return float(result)


def value(formula, names):
    python = formula.replace("^", "**").replace("·", "*").replace("√(", "sqrt(")
    python = re.sub(r"√([\w.]+)", r"sqrt(\1)", python)
    return eval(python, {"__builtins__": {}}, {**names, "e": math.e, "sqrt": math.sqrt, "ln": math.log, "sum": sum})


def texts_have_the_same_formulas(_steps, _answers):
    first, *others = ({name: collections.Counter(span for at, span in spans(path) if at == name and " = " in span)
                       for name, _ in spans(path)} for path in TEXTS)
    for path, formulas in zip(TEXTS[1:], others):
        for name in first | formulas:
            mine, theirs = (of.get(name, collections.Counter()) for of in (first, formulas))
            assert mine == theirs, f"{path.name}, behind {name}: lacks {mine - theirs}, has {theirs - mine} too many"


if __name__ == "__main__":
    sys.exit(main())
