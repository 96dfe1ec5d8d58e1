#!/usr/bin/env python3
"""
run.py: posts every tests/api/cases/<endpoint>/<case>/request.json to /v1/<endpoint> (<endpoint>-gradients: to
/v1/<endpoint>/gradients) and compares the answers.

status has the HTTP status. The answer must have every member of expected.json, with numbers within a tolerance; outputs
and shapes must have no further members. To turn a bug report into a case, add a folder. The rows of docs/semantics.md
have cases, too: every case that it names exists, and every row names one.
"""

import argparse
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SEMANTICS = HERE.parents[2] / "docs" / "semantics.md"
sys.path.insert(0, str(HERE.parents[1] / "support"))

import expected  # noqa: E402
from attnd import Server  # noqa: E402
from suite import conclude  # noqa: E402
from tensors import Tensor, worst_excess  # noqa: E402

# float32 keeps 24 bits; a few dozen operations on numbers near 1 lose four of them at most. float64 alike.
# bfloat16 rounds weights to 8 bits. Its cases have inputs of 8 bits, and values up to 1.
TOLERANCES = {"float32": (1e-5, 2e-6), "float64": (1e-13, 1e-14), "bfloat16": (0, 2**-8)}
COMPLETE = ("/outputs", "/shapes", "/gradients")


def main():
    parser = argparse.ArgumentParser(description="post the cases to a server")
    parser.add_argument("--attnd", default=str(HERE.parents[2] / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--only", default="", help="a part of the names of the cases to run")
    options = parser.parse_args()
    cases = sorted(path.parent for path in HERE.glob("*/*/request.json") if options.only in path.parent.name)
    failed, unproven = 0, list(semantics_without_cases(SEMANTICS.read_text()))
    with Server(options.attnd, options.url) as server:
        client = server.client()
        for case in cases:
            wrong = stored_otherwise(case) or run_case(client, case)
            if wrong:
                failed += 1
                print(f"{case.relative_to(HERE)}: {wrong}")
        unproven += profiles_otherwise(SEMANTICS.read_text(), client)
    for wrong in unproven:
        print(f"docs/semantics.md: {wrong}")
    return conclude("cases", len(cases) - failed, failed + len(unproven))


def stored_otherwise(case):
    """None, or the place where expected.json differs from the reference."""
    if (case / "status").read_text().strip() != "200":
        return None
    text = (case / "request.json").read_text()
    stored = json.loads((case / "expected.json").read_text())
    wrong = difference(expected.expected_of(case.parent.name, expected.read(case)), stored, "", tolerance(text))
    return wrong and f"by the reference {wrong}"


def profiles_otherwise(text, client):
    """Rows of the table of profiles that are not what the server sets."""
    row = re.compile(r"^\| `(\w+)` \| (\w+) \| (\w+) \| ([\d.e-]+) \| ([\d.e-]+)(?: \(float64: ([\d.e-]+)\))? \|", re.MULTILINE)
    rows = row.findall(text[text.index("## 9. Profiles"):])
    refusal = client.post("/v1/attention", b'{"inputs": {"query": [[1]]}, "options": {"profile": "?"}}').json()["error"]
    if sorted(name for name, *_ in rows) != sorted(re.findall(r'"(\w+)"', refusal)):
        yield f"profiles {[name for name, *_ in rows]}, but the server says {refusal}"
    for name, align, layout, layer, rms, rms_of_double in rows:
        for compute, eps in (("float32", rms), ("float64", rms_of_double or rms)):
            options = {"profile": name, "compute": compute, "return": ["output"]}
            body = json.dumps({"inputs": {"query": [[1]]}, "options": options}).encode()
            told = client.post("/v1/attention", body).json()["effective"]["profile_defaults"]
            said = {"causal_align": align, "layout": layout, "norm_eps": {"layer": float(layer), "rms": float(eps)}}
            if told != said:
                yield f"profile {name} in {compute} is {said}, but the server says {told}"


def run_case(client, case):
    """None, or a sentence about what differs."""
    body = (case / "request.json").read_bytes()
    reply = client.post("/v1/" + case.parent.name.replace("-gradients", "/gradients"), body)
    wanted = int((case / "status").read_text())
    if reply.status != wanted:
        return f"status {reply.status}, expected {wanted}: {reply.body[:300].decode(errors='replace')}"
    kind = reply.headers.get("Content-Type", "")
    if kind != "application/json":
        return f"Content-Type {kind}"
    try:
        answer = reply.json()
    except ValueError as error:
        return f"not JSON: {error}"
    return difference(answer, json.loads((case / "expected.json").read_text()), "", tolerance(body))


def semantics_without_cases(text):
    """Lines of tables that name no case, or one that is not there. tests/api/words holds the table of words."""
    named = re.compile(r"`((?:attention|multi-head-attention)(?:-gradients)?/\w+)`")
    lines = text[:text.index("\n## 12. Words of other systems")].splitlines()
    for number, line in enumerate(lines, 1):
        names = named.findall(line)
        yield from (f"line {number}: there is no case {name}" for name in names
                    if not (HERE / name / "request.json").exists())
        is_head = number < len(lines) and lines[number].startswith("| ---")
        if line.startswith("| ") and not line.startswith("| ---") and not is_head and not names:
            yield f"line {number}: no case holds it"


def tolerance(body):
    try:
        options = json.loads(body).get("options", {})
    except (ValueError, AttributeError):
        options = {}
    return TOLERANCES[options.get("compute", "float32")]


def difference(got, wanted, pointer, within):
    """None, or the place where got differs from wanted."""
    is_tensor = isinstance(wanted, list) or isinstance(wanted, dict) and "indices" not in wanted
    if pointer.startswith("/outputs/") and is_tensor:
        return tensor_difference(got, wanted, pointer, within)
    if pointer.startswith("/gradients/") and isinstance(wanted, list):
        return tensor_difference(got, wanted, pointer, within)
    if isinstance(wanted, dict) and isinstance(got, dict):
        if pointer.startswith(COMPLETE) and set(got) != set(wanted):
            return f"{pointer} has {sorted(got)}, expected {sorted(wanted)}"
        for name, item in wanted.items():
            if name not in got:
                return f"{pointer}/{name} is missing"
            wrong = difference(got[name], item, f"{pointer}/{name}", within)
            if wrong:
                return wrong
        return None
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        pairs = (difference(mine, theirs, f"{pointer}/{at}", within) for at, (mine, theirs) in enumerate(zip(got, wanted)))
        return next(filter(None, pairs), None)
    is_number = isinstance(wanted, float) and isinstance(got, (int, float)) and not isinstance(got, bool)
    same = abs(got - wanted) <= within[1] + within[0] * abs(wanted) if is_number else got == wanted
    return None if same else f"{pointer} is {got!r}, expected {wanted!r}"


def tensor_difference(got, wanted, pointer, within):
    """Both in the same form, and the same numbers."""
    if type(got) is not type(wanted) or isinstance(wanted, dict) and set(got) != set(wanted):
        return f"{pointer} has another form: {json.dumps(got)[:200]}"
    wrong = worst_excess(Tensor.from_json(got), Tensor.from_json(wanted), *within)
    return f"{pointer}: {wrong}" if wrong else None


if __name__ == "__main__":
    sys.exit(main())
