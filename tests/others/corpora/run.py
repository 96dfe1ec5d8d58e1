#!/usr/bin/env python3
"""
run.py: sends hard inputs from other projects to a server: JSON texts, decimals half-way between floats, raw HTTP.

They are files of the folder corpora in $ATTN_SHARED; without them all tests are skipped.
"""

import argparse
import base64
import concurrent.futures
import json
import os
import pathlib
import socket
import struct
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server  # noqa: E402
from suite import conclude, skip  # noqa: E402

CLIENTS = 16           # raw HTTP cases at once: each waits for a silence
SILENCE_SECONDS = 0.4  # without an answer for so long there is none
ANSWER_SECONDS = 60    # for the answer that must come
# What may be refused, but need not be: a connection of ours has room for it.
WITHIN_OUR_LIMITS = {"header 64 KiB"}
VALID = b'{"inputs": {"query": [[1, 2]]}}'


def main():
    parser = argparse.ArgumentParser(description="send hard inputs to a server")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--url", help="a server that runs already")
    options = parser.parse_args()
    folder = pathlib.Path(os.environ.get("ATTN_SHARED", ROOT.parent / "shared")) / "corpora"
    if not folder.is_dir():
        return skip("corpora", "no folder corpora with the JSON corpora (ATTN_SHARED names the folder that has it)")
    passed = failed = 0
    with Server(options.attnd, options.url) as server:
        for name, test in (("json", json_texts), ("decimals", decimals), ("http", raw_http)):
            count, wrong = test(server, folder)
            for line in wrong[:40]:
                print(f"{name}: {line}")
            print(f"{name}: {count} sent, {len(wrong)} answered wrongly")
            passed, failed = passed + count - len(wrong), failed + len(wrong)
    return conclude("corpora", passed, failed)


def json_texts(server, folder):
    """Alone as a body, and as a member of one: n_ is refused, y_ is JSON, i_ is what json_verdicts.md says."""
    client, wrong, count = server.client(), [], 0
    said = written_verdicts()
    for path in sorted((folder / "json" / "parsing").glob("*.json")):
        text, kind = path.read_bytes(), path.name[0]
        bodies = (text, b'{"inputs": {"query": [' + text + b"]}}", b'{"inputs": {"query": ' + text + b"}}",
                  VALID[:-1] + b', "options": ' + text + b"}", VALID[:-1] + b', "unknown": ' + text + b"}")
        replies = [client.post("/v1/attention", body) for body in bodies]
        got = json_verdict(replies)
        count += 1
        if any(reply.status not in ((400,) if kind == "n" else (200, 400)) for reply in replies):
            wrong.append(f"{path.name}: answered {[reply.status for reply in replies]}")
        elif kind == "y" and got == "refused: syntax":
            wrong.append(f"{path.name}: is not taken as JSON: {[reply.body for reply in replies]}")
        elif kind == "i" and got != said.get(path.stem):
            wrong.append(f"{path.name}: {got}; json_verdicts.md says {said.get(path.stem)}")
        if client.post("/v1/attention", VALID).status != 200:
            wrong.append(f"{path.name}: the next request fails")
    return count, wrong


def json_verdict(replies):
    """In the words of json_verdicts.md: whether it is JSON, and else what became of it as a row of inputs.query."""
    faults = [reply.json()["type"].rsplit("/", 1)[1] if reply.status == 400 else "" for reply in replies]
    if "syntax" in faults:
        return "refused: syntax"
    return f"JSON, {'refused as numbers: ' + faults[1] if faults[1] else 'taken as numbers'}"


def written_verdicts():
    """Rows of the table: | `name` | verdict |."""
    lines = pathlib.Path(__file__).with_name("json_verdicts.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `i_")]
    return {name.strip("`"): verdict for name, verdict in rows}


def decimals(server, folder):
    """Lines of float16, float32 and float64 bits and a decimal: the float32 comes back with the same bits."""
    lines = [line.split() for line in (folder / "float32_halfway.txt").read_text().splitlines()]
    numbers = ",".join(f"[{line[3]}]" for line in lines)
    body = f'{{"inputs": {{"query": [{numbers}]}}, "options": {{"return": ["q"], "format": "base64"}}}}'
    reply = server.client().post("/v1/attention", body.encode())
    if reply.status != 200:
        return len(lines), [f"status {reply.status}: {reply.body[:300]!r}"] * len(lines)
    data = base64.b64decode(reply.json()["outputs"]["q"]["base64"])
    got = struct.unpack(f"<{len(lines)}I", data)
    return len(lines), [f"{line[3]} became {bits:08X}, not {line[1]}"
                        for line, bits in zip(lines, got) if bits != int(line[1], 16)]


def raw_http(server, folder):
    """Segments sent as they are. What must not be accepted is not, and one request has one answer."""
    cases = json.loads((folder / "http" / "cases.json").read_text())
    address = urllib.parse.urlsplit(server.url)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        verdicts = clients.map(lambda case: verdict(case, address.hostname, address.port), cases)
        wrong = [f"{case['suite']} {case['name']}: {said}" for case, said in zip(cases, verdicts) if said]
    return len(cases), wrong


def verdict(case, host, port):
    """None, or what the server did that it must not do."""
    segments = [bytes.fromhex(segment).replace(b" / HTTP", b" /livez HTTP", 1) for segment in case["segs"]]
    must_answer = case["expect"] == "accept" and case["suite"] != "llhttp"
    text, is_closed = exchange(host, port, segments, ANSWER_SECONDS if must_answer else SILENCE_SECONDS)
    statuses = [int(line[9:12]) for line in text.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    accepted = [status for status in statuses if 200 <= status < 300]
    if any(status >= 500 for status in statuses if status not in (501, 505)):
        return f"answered {statuses}"
    if case["one"] and len(accepted) > 1:
        return f"one request, answers {statuses}"
    if case["expect"] == "reject" and accepted and case["name"] not in WITHIN_OUR_LIMITS:
        return f"accepted with {statuses}"
    # llhttp also takes RTSP, other codings and bare fragments, which HTTP/1.1 does not have.
    if must_answer and (not statuses or statuses[0] == 400):
        return f"refused with {statuses}"
    if case["expect"] == "wait" and accepted:
        return f"accepted with {statuses} before the end"
    if case["expect"] == "close" and accepted and not is_closed:
        return "left open"
    return None


def exchange(host, port, segments, first_seconds):
    """All that comes back until the server closes or is silent, and whether it closed."""
    text = b""
    with socket.create_connection((host, port), 5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for segment in segments:
                connection.sendall(segment)
        except OSError:
            pass  # it was answered before its end, and what was answered can still be read
        try:
            connection.settimeout(first_seconds)
            while True:
                got = connection.recv(1 << 18)
                if not got:
                    return text, True
                text += got
                connection.settimeout(SILENCE_SECONDS)
        except socket.timeout:
            return text, False
        except OSError:
            return text, True


if __name__ == "__main__":
    sys.exit(main())
