#!/usr/bin/env python3
"""
run.py: answers of a server against results that ONNX and PyTorch have computed.

The vectors are files of ../shared/vectors, or of $ATTN_SHARED/vectors; without them everything is skipped. Prints a
line a file: passed; partly (what can be asked for passed, the rest needs the field that is named); failed; not yet
(nothing of it can be asked for). Ends with 1 when something failed.
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
VERDICTS = ("passed", "partly", "failed", "not yet")


def main():
    options = arguments()
    folder = pathlib.Path(os.environ.get("ATTN_SHARED", ROOT.parent / "shared")) / "vectors"
    sets = {name: sorted((folder / name).glob("*.json")) for name in SETS}
    if not any(sets.values()):
        print("vectors: skipped, no test data in ../shared/vectors (ATTN_SHARED names another place)")
        return 0
    failed = 0
    with Server(options.attnd, options.url) as server:
        client = server.client()
        for name, files in sets.items():
            failed += run_set(client, name, [path for path in files if options.only in path.stem], options.quiet)
    return 1 if failed else 0


def arguments():
    parser = argparse.ArgumentParser(description="compare a server with test vectors")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="the server to start")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--only", default="", help="a part of the names of the vectors to run")
    parser.add_argument("--quiet", action="store_true", help="only what failed, and the sums")
    return parser.parse_args()


def run_set(client, name, files, is_quiet):
    counts = dict.fromkeys(VERDICTS, 0)
    for path in files:
        verdict, remark = run_file(client, SETS[name], path)
        counts[verdict] += 1
        if verdict == "failed" or not is_quiet:
            print(f"{name}  {verdict:8}  {path.stem.removeprefix('test_')}{'  ' if remark else ''}{remark}")
    print(f"vectors: {name}: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS))
    return counts["failed"]


def run_file(client, translation, path):
    """A verdict and a remark: what went wrong, or what is missing."""
    vector = json.loads(path.read_text())
    try:
        case = translation.translate(vector)
    except NotExpressible as missing:
        return "not yet", f"needs {missing}"
    for endpoint, request, expected in case.requests:
        wrong = run_request(client, endpoint, request, expected, case)
        if wrong:
            return "failed", wrong
    unchecked = case.unchecked()
    if unchecked:
        return "partly", f"{', '.join(unchecked)}: needs {', '.join(case.needs)}"
    if case.needs:
        return "partly", f"needs {', '.join(case.needs)}"
    return "passed", ""


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
