#!/usr/bin/env python3
"""
run.py: compares answers of a server with results that ONNX and PyTorch have computed.

The vectors are files of the folder vectors in $ATTN_SHARED; without them all tests are skipped. Prints a
line a file: passed; composed (what attnd computes passed, the test computed the rest, which is named, around it); partly
(some outputs passed, the others have no field); failed; not ours (nothing of it can be asked for, and why). Ends with 1
when something failed. --report FILE writes the table as Markdown.
"""

import argparse
import json
import os
import pathlib
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import onnx_cases  # noqa: E402
import torch_cases  # noqa: E402
from attnd import Server  # noqa: E402
from check import NotExpressible  # noqa: E402
from suite import conclude, skip  # noqa: E402
from tensors import Tensor, worst_excess  # noqa: E402

SETS = {"onnx": onnx_cases, "torch": torch_cases}
VERDICTS = ("passed", "composed", "partly", "failed", "not ours")
TITLES = {"onnx": "ONNX: node tests of the operators", "torch": "PyTorch and transformers: recorded calls"}


def main():
    options = arguments()
    folder = pathlib.Path(os.environ.get("ATTN_SHARED", ROOT.parent / "shared")) / "vectors"
    sets = {name: sorted((folder / name).glob("*.json")) for name in SETS}
    if not any(sets.values()):
        return skip("vectors", "no folder vectors with recorded answers (ATTN_SHARED names the folder that has it)")
    results = {}
    with Server(options.attnd, options.url) as server:
        client = server.client()
        for name, files in sets.items():
            results[name] = run_set(client, name, [path for path in files if options.only in path.stem], options.quiet)
    if options.report:
        pathlib.Path(options.report).write_text(report(results))
    judged = [result for rows in results.values() for _, _, result, _ in rows]
    return conclude("vectors", len(judged) - judged.count("failed"), judged.count("failed"))


def report(results):
    lines = ["# Conformance", "",
             "What `make conformance` wrote: the answers of a server to the node tests of ONNX and to calls of PyTorch and "
             "transformers,",
             "compared number by number within the tolerance that comes with each. The test data are not part of this "
             "repository;",
             "`ATTN_SHARED` names the folder whose `vectors/` has them, and without it the run is skipped.", "",
             "- **passed**: every output of the case, by requests alone",
             "- **composed**: what attnd computes passed; the test computed around it what is named",
             "- **partly**: some outputs passed, those that are named have no field",
             "- **not ours**: nothing of the case can be asked for, for the reason that is named", ""]
    for name, rows in results.items():
        lines += [f"## {TITLES[name]}", "", f"| of | cases | {' | '.join(VERDICTS)} |", "| --- |" + " --- |" * 6]
        groups = group_by(rows, lambda row: row[0])
        for group, members in [*sorted(groups.items()), ("all", rows)]:
            counts = " | ".join(str(sum(row[2] == verdict for row in members)) for verdict in VERDICTS)
            lines.append(f"| {group} | {len(members)} | {counts} |")
        lines.append("")
        for (verdict, remark), members in group_by(rows, lambda row: row[2:]).items():
            if verdict != "passed":
                names = ", ".join(f"`{stem}`" for _, stem, _, _ in members)
                lines += textwrap.wrap(f"- {verdict}: {remark}: {names}", 120, subsequent_indent="  ",
                                       break_long_words=False, break_on_hyphens=False)
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def group_by(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def arguments():
    parser = argparse.ArgumentParser(description="compare a server with test vectors")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="the server to start")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--only", default="", help="a part of the names of the vectors to run")
    parser.add_argument("--report", help="the file to write the table to")
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
