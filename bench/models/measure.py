#!/usr/bin/env python3
"""
measure.py: whole models with the maps of all layers kept: attnd, ONNX Runtime and PyTorch; new tokens; sweeps; the first
answer; memory.

    python3 bench/models/measure.py --attnd build/release/attnd --folder build/bench-models [--only REGEX] [--json FILE]

In each round all contenders run the same case in turn; ratios are medians of those within a round. bench/README.md says
what is compared.
"""

import argparse
import array
import json
import os
import pathlib
import re
import shutil
import statistics
import struct
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tests" / "support")]
sys.dont_write_bytecode = True

import random_model  # noqa: E402
from attnd import Client, Server  # noqa: E402
from contenders import PEERS, Failure, Machine, Process, hiding_avx512, set_fair_environment, torch_python  # noqa: E402
from options import given_options  # noqa: E402
from page import significant  # noqa: E402
from run import PAUSE_S, PEER_TOLERANCE  # noqa: E402

SAMPLES = 32  # of a result, as bench_case.h takes them
LENGTHS = (128, 512)
NEW_TOKENS = 64
SWEPT_TOKENS = 16
SAMPLE_S = 0.002  # between two looks at the memory of a server
EVERYTHING = "1G"  # as --layers-prepared: more than one model needs


# ---- attnd ----


def body_of(tokens):
    ids = [i * 7919 % 30000 for i in range(tokens)]
    return json.dumps({"inputs": {"ids": [ids]}, "options": {"return": ["attention", "output"]}}).encode()


def ask(client, tokens):
    """Sends the request, and returns the answer: a safetensors file."""
    fields = {"Content-Type": "application/json", "Accept": "application/vnd.attnd.safetensors"}
    reply = client.send("POST", "/v1/models/model/attention", body_of(tokens), fields)
    if reply.status != 200:
        raise Failure("attnd answers %d: %s" % (reply.status, reply.body[:400]))
    return reply


def compute_ms(reply):
    """The part of the request that is computing, by the server's own clock: no reading, no writing, no sending."""
    return float(re.search(r"compute;dur=([0-9.]+)", reply.headers["Server-Timing"])[1])


def start_server(attnd, folder, prepared):
    return Server(attnd, environment={"ATTND_MODEL": "model=%s" % folder, "ATTND_LAYERS_PREPARED": prepared,
                                      "ATTND_LOG_LEVEL": "info"})  # fmt: skip


class Attnd:
    """The server as a contender."""

    name = "attnd"

    def __init__(self, attnd, folder, tokens):
        self.server, self.tokens, self.reply = start_server(attnd, folder, EVERYTHING), tokens, None
        self.server.__enter__()
        self.client = self.server.client()

    def run(self):
        self.reply = ask(self.client, self.tokens)
        return compute_ms(self.reply)

    def results(self):
        """{"output": [mean, samples…], "maps": …}"""
        body, found = self.reply.body, {}
        (length,) = struct.unpack_from("<Q", body)
        for name, tensor in json.loads(body[8:8 + length]).items():
            if name in ("output", "attention"):
                start, stop = (8 + length + at for at in tensor["data_offsets"])
                numbers = array.array("f", body[start:stop])
                samples = [numbers[k * 2654435761 % len(numbers)] for k in range(SAMPLES)]
                found["maps" if name == "attention" else name] = [sum(map(abs, numbers)) / len(numbers), *samples]
        return found

    def end(self):
        self.server.__exit__()


# ---- peers ----


class Peer:
    """A process that speaks the lines of core_bench.c."""

    def __init__(self, name, command, folder, tokens, threads):
        self.name, self.process = name, Process(name, command, threads)
        word, why = self.process.ask("prepare model %s %d %d" % (folder, tokens, threads))
        if word != "ready":
            raise Failure("%s: %s" % (name, why))

    def run(self):
        return float(self.process.ask("run 1")[1])

    def results(self):
        output, _, maps = self.process.ask("results")[1].partition(" maps ")
        return {name: list(map(float, text.removeprefix(name).split())) for name, text in
                (("output", output), ("maps", maps))}  # fmt: skip

    def end(self):
        self.process.ask("done")
        self.process.end()


def peer_commands(without):
    """{name: command} of the peers that are installed."""
    found, python = {}, torch_python()
    if shutil.which("node") and (PEERS / "node_modules" / "onnxruntime-node").exists():
        for way in ("attention", "chain"):
            found["ort-" + way] = ["node", str(PEERS / "ort.mjs"), way]
    if python:
        program = [python, str(PEERS / "torch_peer.py")]
        # PyTorch's OpenMP threads and those of OpenBLAS would otherwise spin for the same processors.
        found["torch"] = ["env", "OMP_WAIT_POLICY=PASSIVE", *program]
        blas = sorted(pathlib.Path("/usr/lib").glob("*/openblas-openmp/libopenblas.so.0"))
        if blas:
            found["torch-openmp"] = ["env", "LD_PRELOAD=%s" % blas[0], *program]
    return {name: command for name, command in found.items() if name not in without}


# ---- the time of a case ----


def compare(case, contender, reference):
    """A peer that computes something else is no peer."""
    for result, numbers in contender.results().items():
        wanted = reference[result]
        allowed = PEER_TOLERANCE * max(map(abs, wanted))
        if len(numbers) != len(wanted) or not max(abs(a - b) for a, b in zip(numbers, wanted)) <= allowed:
            raise Failure("%s: %s of %s differs" % (case, result, contender.name))


def turn(contender):
    """The second of two runs: the first one warms the caches that the contender before has taken."""
    time.sleep(PAUSE_S)
    contender.run()
    return contender.run()


def measure(case, contenders, rounds):
    for contender in contenders:
        contender.run()
    reference = contenders[0].results()
    for contender in contenders[1:]:
        compare(case, contender, reference)
    seen = [{c.name: turn(c) for c in contenders} for _ in range(rounds)]
    return {c.name: {"ms": statistics.median(r[c.name] for r in seen),
                     "ratio": statistics.median(r[c.name] / r["attnd"] for r in seen),
                     "rounds": [r[c.name] for r in seen]} for c in contenders}  # fmt: skip


def measure_case(kind, tokens, options, commands):
    folder = options.folder / kind
    contenders = [Attnd(options.attnd, folder, tokens)]
    try:
        contenders += [Peer(name, command, folder, tokens, options.threads) for name, command in commands.items()]
        return measure("%s %d" % (kind, tokens), contenders, options.rounds)
    finally:
        for contender in contenders:
            contender.end()


# ---- the first answer, and memory ----


def anonymous_mib(server):
    """Memory that is in no file: not that of the mapped model."""
    status = pathlib.Path("/proc/%d/status" % server.process.pid).read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) / 1024


class Watch:
    """The most memory of a server while it is watched."""

    def __init__(self, server):
        self.server, self.most, self.ends = server, 0, threading.Event()
        self.thread = threading.Thread(target=self._look)

    def _look(self):
        while not self.ends.wait(SAMPLE_S):
            self.most = max(self.most, anonymous_mib(self.server))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


def first_answer(options, kind, prepared):
    """From the start of the process: seconds to the answer to 128 tokens, and MiB after it, and most during a second."""
    folder = options.folder / kind
    (folder / "model.safetensors").read_bytes()  # into the page cache
    since = time.monotonic()
    with start_server(options.attnd, folder, prepared) as server:
        client = Client(server.url)
        ask(client, LENGTHS[0])
        seconds = time.monotonic() - since
        resting = anonymous_mib(server)
        with Watch(server) as watch:
            ms = compute_ms(ask(client, LENGTHS[0]))
        return {"seconds": seconds, "resting_mib": resting, "most_mib": watch.most, "ms": ms}


def measure_starts(options, kind, prepared):
    starts = [first_answer(options, kind, prepared) for _ in range(options.starts)]
    return {key: statistics.median(start[key] for start in starts) for key in starts[0]} | {
        "slowest": max(start["seconds"] for start in starts)}


# ---- new tokens ----


def ask_with(client, tokens, options):
    """Milliseconds, and the answer."""
    body = json.dumps({"inputs": {"ids": [[i * 7919 % 30000 for i in range(tokens)]]}, "options": options})
    reply = client.send("POST", "/v1/models/model/attention", body.encode(), {"Content-Type": "application/json"})
    if reply.status != 200:
        raise Failure("attnd answers %d: %s" % (reply.status, reply.body[:400]))
    return compute_ms(reply), json.loads(reply.body)


def generate(client, tokens):
    ms, answer = ask_with(client, LENGTHS[0], {"new_tokens": tokens, "return": ["generated"]})
    if len(answer["generated"]["ids"][0]) != tokens:
        raise Failure("attnd makes %d new tokens" % len(answer["generated"]["ids"][0]))
    return ms


def measure_generation(options, kind, file_bytes):
    """Of a token behind the first: milliseconds, and the bytes that it reads, beside a read of memory in the same round."""
    config, rounds = random_model.CONFIGS[kind], []
    unread = 2 * config["n_positions"] * config["n_embd"]  # rows of positions, of which a token has one
    machine = Machine(options.program)
    with start_server(options.attnd, options.folder / kind, EVERYTHING) as server:
        client = Client(server.url)
        generate(client, 2)
        for _ in range(options.rounds):
            before = machine.read(file_bytes, options.threads)
            ms = (generate(client, NEW_TOKENS + 1) - generate(client, 1)) / NEW_TOKENS
            memory = (before + machine.read(file_bytes, options.threads)) / 2
            rounds.append({"ms": ms, "gbs": (file_bytes - unread) / ms / 1e6, "memory_gbs": memory})
    found = {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
    return {**found, "share": statistics.median(r["gbs"] / r["memory_gbs"] for r in rounds), "rounds": rounds}


# ---- sweeps ----


def measure_sweep(options, kind):
    """A sweep over all layers and tokens, beside as many requests with the intervention at one place."""
    rounds, change = [], {"at": "feed_forward", "do": "zero"}
    places = random_model.CONFIGS[kind]["n_layer"] * SWEPT_TOKENS
    swept = {"return": ["sweep"], "metric": {"words": [1]}, "sweep": {**change, "over": ["layer", "query"]}}
    one = {"return": ["word_scores"], "words": [1], "queries": [-1], "interventions": [{**change, "layers": [0], "queries": [0]}]}
    with start_server(options.attnd, options.folder / kind, EVERYTHING) as server:
        client = Client(server.url)
        ask_with(client, SWEPT_TOKENS, one)
        for _ in range(options.rounds):
            ms, alone = ask_with(client, SWEPT_TOKENS, swept)[0], ask_with(client, SWEPT_TOKENS, one)[0]
            rounds.append({"ms": ms, "alone_ms": alone, "share": ms / places / alone})
    return {"places": places, **{key: statistics.median(r[key] for r in rounds) for key in rounds[0]}, "rounds": rounds}


# ---- the tables ----


def print_generation(found):
    print("\n| model | tokens/s | ms | GB/s | memory GB/s | share |\n| --- |" + " ---: |" * 5)
    for kind, row in found.items():
        print("| %s | %s | %s | %s | %s | %.2f |" % (kind, significant(1000 / row["ms"]), significant(row["ms"]),
                                                    significant(row["gbs"]), significant(row["memory_gbs"]), row["share"]))


def print_sweeps(found):
    print("\n| sweep | places | ms | one request ms | share |\n| --- |" + " ---: |" * 4)
    for kind, row in found.items():
        print("| %s | %d | %s | %s | %.2f |" % (kind, row["places"], significant(row["ms"]), significant(row["alone_ms"]), row["share"]))


def print_times(rows, names):
    words = ["case", "attnd ms"] + [word for name in names for word in (name + " ms", "×")]
    print("\n| " + " | ".join(words) + " |\n| --- |" + " ---: |" * (len(words) - 1))
    for case, found in rows.items():
        cells = [significant(found["attnd"]["ms"])]
        for name in names:
            cells += [significant(found[name]["ms"]), "%.2f" % found[name]["ratio"]]
        print("| " + " | ".join([case] + cells) + " |")


def print_starts(starts):
    print("\n| model | prepared | first answer s | slowest | file MiB | MiB at rest | × | MiB in a request | × | then ms |"
          "\n| --- | --- |" + " ---: |" * 8)
    for (kind, prepared), found in starts.items():
        mib = found["file_mib"]
        print("| %s | %s | %.2f | %.2f | %.0f | %.0f | %.2f | %.0f | %.2f | %s |" % (
            kind, "nothing" if prepared == "0" else "everything", found["seconds"], found["slowest"], mib,
            found["resting_mib"], found["resting_mib"] / mib, found["most_mib"], found["most_mib"] / mib,
            significant(found["ms"])))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--attnd", required=True)
    parser.add_argument("--program", help="core_bench, which measures the memory beside new tokens")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="where the models are, or are made")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name matches, such as 'bert 128' or 'gpt2 start'")
    parser.add_argument("--without", default="", metavar="NAMES", help="peers to leave out, with commas")
    parser.add_argument("--avx2", action="store_true", help="kernel avx2, beside peers that see no AVX-512; needs --program")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--starts", type=int, default=5, help="of a server, for the first answer; 0: none")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="three rounds and one start")
    parser.add_argument("--json", type=pathlib.Path, help="where to write everything that was measured")
    options = parser.parse_args(given_options())
    if options.quick:
        options.rounds, options.starts = 3, 1
    os.environ["ATTND_COMPUTE_THREADS"] = str(options.threads)
    if options.avx2:
        os.environ["ATTND_KERNEL"] = "avx2"
    return options


def main():
    options = read_options()
    set_fair_environment()
    hidden = hiding_avx512(options.program) if options.avx2 else []
    commands = {name: [*hidden, *command] for name, command in peer_commands(options.without.split(",")).items()}
    rows, starts, generated, sweeps = {}, {}, {}, {}
    for kind in random_model.CONFIGS:
        file_bytes = random_model.make(kind, options.folder / kind)
        file_mib, is_half = file_bytes / 2**20, kind.endswith("-half")
        if is_half and options.program and re.search(options.only, "%s tokens" % kind):
            generated[kind] = measure_generation(options, kind, file_bytes)
        if is_half and re.search(options.only, "%s sweep" % kind):
            sweeps[kind] = measure_sweep(options, kind)
        for tokens in () if is_half else LENGTHS:
            if re.search(options.only, "%s %d" % (kind, tokens)):
                rows["%s %d" % (kind, tokens)] = measure_case(kind, tokens, options, commands)
        for prepared in (EVERYTHING, "0") if options.starts > 0 and not is_half and re.search(options.only, "%s start" % kind) else ():
            starts[kind, prepared] = measure_starts(options, kind, prepared) | {"file_mib": file_mib}
    print_times(rows, list(commands))
    if generated:
        print_generation(generated)
    if sweeps:
        print_sweeps(sweeps)
    if starts:
        print_starts(starts)
    if options.json:
        record = {"cases": rows, "tokens": generated, "sweeps": sweeps, "starts": {" ".join(key): found for key, found in starts.items()}}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit("bench: %s" % failure)
