#!/usr/bin/env python3
"""
run.py: answers of a server against results that ONNX and PyTorch have computed.

The vectors are files of ../shared/vectors, or of $ATTN_SHARED/vectors; without them everything is skipped. Prints a
line a file: passed; composed (what attnd computes passed, the test computed the rest, which is named, around it); partly
(some outputs passed, the others have no field); failed; not ours (nothing of it can be asked for, and why). Ends with 1
when something failed. --report FILE writes the table as Markdown; --check FILE fails when it would write another.
"""

import argparse
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import onnx_cases  # noqa: E402
import torch_cases  # noqa: E402
from attnd import Server  # noqa: E402
from check import NotExpressible  # noqa: E402
from tensors import Tensor, worst_excess  # noqa: E402

SETS = {"onnx": onnx_cases, "torch": torch_cases}
VERDICTS = ("passed", "composed", "partly", "failed", "not ours")
TITLES = {"onnx": "ONNX: node tests of the operators", "torch": "PyTorch and transformers: recorded calls"}


def main():
    options = arguments()
    folder = pathlib.Path(os.environ.get("ATTN_SHARED", ROOT.parent / "shared")) / "vectors"
    sets = {name: sorted((folder / name).glob("*.json")) for name in SETS}
    if not any(sets.values()):
        print("vectors: skipped, no test data in ../shared/vectors (ATTN_SHARED names another place)")
        return 0
    failed, results = 0, {}
    with Server(options.attnd, options.url) as server:
        client = server.client()
        for name, files in sets.items():
            results[name] = run_set(client, name, [path for path in files if options.only in path.stem], options.quiet)
            failed += sum(verdict == "failed" for _, _, verdict, _ in results[name])
    return 1 if failed or not is_reported(options, results) else 0


def is_reported(options, results):
    """Writes or compares the table."""
    for path in (options.report, options.check):
        if path is None:
            continue
        text = report(results)
        if path is options.report:
            pathlib.Path(path).write_text(text)
        elif pathlib.Path(path).read_text() != text:
            print(f"vectors: {path} is not what this run gives: make conformance writes it anew")
            return False
    return True


def report(results):
    lines = ["# Conformance", "",
             "What `make conformance` writes: the answers of a server against results that others have computed, each "
             "within the", "tolerance that comes with it.", "",
             "- **passed**: every output of the case, by requests alone",
             "- **composed**: what attnd computes passed; the test computed around it what is named",
             "- **partly**: some outputs passed, those that are named have no field",
             "- **not ours**: nothing of the case can be asked for", ""]
    for name, rows in results.items():
        lines += [f"## {TITLES[name]}", "", f"| of | cases | {' | '.join(VERDICTS)} |", "| --- |" + " --- |" * 6]
        groups = {}
        for group, _, verdict, _ in rows:
            groups.setdefault(group, []).append(verdict)
        for group, verdicts in [*sorted(groups.items()), ("all", [row[2] for row in rows])]:
            counts = " | ".join(str(verdicts.count(verdict)) for verdict in VERDICTS)
            lines.append(f"| {group} | {len(verdicts)} | {counts} |")
        others = [row for row in rows if row[2] != "passed"]
        lines += ["", *(f"- `{stem}`: {verdict}: {remark}" for _, stem, verdict, remark in others), ""]
    return "\n".join(lines).rstrip() + "\n"


def arguments():
    parser = argparse.ArgumentParser(description="compare a server with test vectors")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="the server to start")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--only", default="", help="a part of the names of the vectors to run")
    parser.add_argument("--report", help="the file to write the table to")
    parser.add_argument("--check", help="the file that should hold the table")
    parser.add_argument("--quiet", action="store_true", help="only what failed, and the sums")
    return parser.parse_args()


def run_set(client, name, files, is_quiet):
    """A row a file: what kind of case it is, its name, a verdict and a remark."""
    counts, rows = dict.fromkeys(VERDICTS, 0), []
    for path in files:
        vector = json.loads(path.read_text())
        verdict, remark = run_file(client, SETS[name], vector)
        counts[verdict] += 1
        rows.append((SETS[name].kind_of(vector), path.stem.removeprefix("test_"), verdict, remark))
        if verdict == "failed" or not is_quiet:
            print(f"{name}  {verdict:8}  {path.stem.removeprefix('test_')}{'  ' if remark else ''}{remark}")
    print(f"vectors: {name}: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS))
    return rows


def run_file(client, translation, vector):
    """A verdict and a remark: what went wrong, or what is missing."""
    try:
        case = translation.translate(vector)
    except NotExpressible as missing:
        return "not ours", str(missing)
    for endpoint, request, expected in case.requests:
        wrong = run_request(client, endpoint, request, expected, case)
        if wrong:
            return "failed", wrong
    unchecked = case.unchecked()
    if unchecked:
        return "partly", f"without {', '.join(unchecked)}: {', '.join(case.needs)}"
    if case.needs:
        return "partly", f"needs {', '.join(case.needs)}"
    return ("composed", ", ".join(case.outside)) if case.outside else ("passed", "")


def run_request(client, endpoint, request, expected, case):
    reply = client.post(endpoint, request)
    if reply.status != 200:
        return f"{endpoint} answered {reply.status}: {reply.body[:300].decode(errors='replace')}"
    outputs = reply.json()["outputs"]
    if set(outputs) != {step for step, _, _ in expected}:
        return f"asked for {[step for step, _, _ in expected]}, got {list(outputs)}"
    for step, name, adapt in expected:
        got = Tensor.from_json(outputs[step])
        if adapt:
            got = adapt(got)
        wrong = worst_excess(got, case.outputs[name], case.rtol, case.atol)
        if wrong:
            return f"{name} ({step}): {wrong}"
    return None


if __name__ == "__main__":
    sys.exit(main())
