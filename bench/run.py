#!/usr/bin/env python3
"""
run.py: measures this project, the machine, and the peers that are installed.

    python3 bench/run.py --program build/release/bench/core_bench [--aims] [--only REGEX] [--rounds N] [--page FILE]

Every contender is a process of its own that speaks the lines of core_bench.c. In each round all of them run the same
case in turn, so that what disturbs the machine disturbs them alike; ratios are medians of those within a round.
bench/README.md says what the columns mean.
"""

import argparse
import datetime
import math
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.dont_write_bytecode = True

from cases import QUICK, all_cases  # noqa: E402
from contenders import (Failure, Machine, describe_machine, find_contenders, own_contender, own_kernels,  # noqa: E402
                        set_fair_environment)  # fmt: skip
from options import given_options  # noqa: E402
from page import Row, page, plural, record, results_name, table_head, table_lines  # noqa: E402
from suite import conclude  # noqa: E402

# Of the largest sample: sums of thousands of terms differ in order. ONNX Runtime's softmax of doubles is right to the
# digits of a float, so that peers are only held to those.
TOLERANCE = {"float32": 1e-4, "float64": 1e-11}
PEER_TOLERANCE = 1e-4
PAUSE_S = 0.03  # before a contender's turn: threads of the one before may still spin, waiting for work
TURN_MS = 40  # a turn repeats a short case for about so long
MEASURED_RUNS_MAX = 400
# A contender that takes so long, and so many times as long as attnd, is in the first rounds alone.
SLOW_MS, SLOW_TIMES, SLOW_ROUNDS = 500, 4, 3


def compare(case, name, found, reference):
    """What disagrees with the first contender, or None."""
    is_close = name.startswith(("attnd", "beside"))
    for result, numbers in found.items():
        wanted = reference.get(result, [])
        allowed = (TOLERANCE[case.dtype] if is_close else PEER_TOLERANCE) * max(map(abs, wanted), default=0)
        worst = max((abs(a - b) for a, b in zip(numbers, wanted)), default=math.inf)
        if len(numbers) != len(wanted) or not worst <= allowed:
            return "%s: %s of %s differs by %.3g, allowed %.3g" % (case.name(), result, name, worst, allowed)
    return None


def unless_it_fails(failed, contender, ask):
    """What ask() gives. A peer that dies or gives no answer leaves the case: failed[its name] says why."""
    try:
        return ask()
    except Failure as failure:
        if contender.kernel is not None:
            raise
        failed[contender.name] = str(failure)
        contender.end()
        return None


def prepare(case, contenders, program, failed):
    """[(contender, its case)] of those that can do it, attnd with the case beside last; nothing without attnd."""
    able = [(c, case) for c in contenders if unless_it_fails(failed, c, lambda c=c: c.prepare(case))]
    beside = case.beside()
    if not able or able[0][0] is not contenders[0]:
        for contender, _ in able:
            contender.done()
        return []
    if beside:
        other = own_contender(program, contenders[0].kernel, "beside")
        able += [(other, beside[1])] if other.prepare(beside[1]) else []
    return able


def compare_all(able, problems, failed):
    """Holds every contender's results against the first one's."""
    case, reference = able[0][1], able[0][0].results()
    for contender, own_case in able[1:]:
        if own_case is case or case.beside()[2]:
            results = unless_it_fails(failed, contender, contender.results)
            problem = results and compare(case, contender.name, results, reference)
            problems += [problem] if problem else []


def turn(contender, runs):
    """The median of a contender's turn; its first run warms the caches that the one before has taken."""
    time.sleep(PAUSE_S)
    times = contender.run(runs + 1 if runs > 1 else 1)
    return statistics.median(times[1:] if runs > 1 else times)


def measure(case, contenders, machine, options, problems):
    """A row, or None where attnd cannot do the case."""
    row, first = Row(case, options.own_kernels), {}
    able = prepare(case, contenders, options.program, row.failed)
    if not able:
        return None
    for contender, _ in able:
        found = unless_it_fails(row.failed, contender, contender.first_run)
        if found:
            first[contender.name], row.memory[contender.name] = found
    able = [(c, own_case) for c, own_case in able if c.name in first]
    compare_all(able, problems, row.failed)
    runs = {name: min(MEASURED_RUNS_MAX, max(1, round(TURN_MS / ms))) for name, ms in first.items()}
    everyone, slow_ms = [contender for contender, _ in able], max(SLOW_MS, SLOW_TIMES * first[able[0][0].name])
    own = [c for c in everyone if c.name in options.owns]
    before = machine.limits_ms(case, own)
    for i in range(options.rounds):
        in_turn = [c for c in everyone if c.name not in row.failed and (i < SLOW_ROUNDS or first[c.name] < slow_ms)]
        seen = {c.name: unless_it_fails(row.failed, c, lambda c=c: turn(c, runs[c.name]))
                for c in (in_turn if i % 2 == 0 else reversed(in_turn))}  # fmt: skip
        row.rounds.append({c.name: seen[c.name] for c in in_turn if c.name not in row.failed})
        after = machine.limits_ms(case, own)
        row.limits.append({c.name: min(before[c.name], after[c.name]) for c in own})
        before = after
    for contender in everyone:
        if contender.name not in row.failed:
            contender.done()
    return row


def chosen_cases(options):
    """For each thread count."""
    for threads in options.threads:
        for case in all_cases():
            case = case.with_changes(threads=threads)
            if ((not options.quick or case.name() in QUICK) and (not options.aims or any(map(case.aims, options.kernels)))
                    and re.search(options.only, case.name())):  # fmt: skip
                yield case


def measure_all(options, contenders, machine, problems):
    """A table for each thread count, printed as it is measured; the rows, and the cases that attnd refuses."""
    rows, refused, threads = [], [], 0
    for case in chosen_cases(options):
        if case.threads != threads:
            threads = case.threads
            print("\n%s\n\n%s" % (plural(threads), table_head()), flush=True)
        row = measure(case, contenders, machine, options, problems)
        if row is None:
            refused.append(case.name())
            continue
        rows.append(row)
        for own in options.owns:
            if own in row.names():
                label = "%s: " % own if len(options.owns) > 1 else ""
                print("\n".join(table_lines(row, own)).replace("| ", "| " + label, 1), flush=True)
    return rows, refused


def check_all(options, contenders):
    """Every case once at a tiny size: does each contender compute the same? The status of the suite."""
    counts, cases = {True: 0, False: 0}, {case.tiny().line: case.tiny() for case in chosen_cases(options)}
    refused = 0
    for case in cases.values():
        problems, failed = [], {}
        able = prepare(case, contenders, options.program, failed)
        for contender, _ in able:
            unless_it_fails(failed, contender, lambda contender=contender: contender.run(1))
        able = [(c, own_case) for c, own_case in able if c.name not in failed]
        if able:
            compare_all(able, problems, failed)
        for contender, _ in able:
            if contender.name not in failed:
                contender.done()
        problems += failed.values()
        print("%-50s %s" % (case.name(), ", ".join(c.name for c, _ in able) or "refused by attnd"))
        for problem in problems:
            print("DISAGREE " + problem)
        refused += not able
        counts[not problems] += bool(able)
    return conclude("bench-check", counts[True], counts[False], refused)


def version():
    """The commit that was measured, where there is one."""
    git = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False,
                         cwd=pathlib.Path(__file__).parent)  # fmt: skip
    return git.stdout.strip()


def describe(options, contenders):
    about = {"date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M"), "command": options.command, "attnd": version()}
    about.update(describe_machine())
    failed = {}
    about.update({c.name: unless_it_fails(failed, c, c.about) for c in contenders if c.name != "attnd"})
    about.update(failed)
    about["rounds"] = str(options.rounds)
    if options.avx2:
        about["peers"] = "see no AVX-512 (bench/peers/hide_avx512.c)"
    return about


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_results(options, about, rows, machine, refused):
    if options.results:
        options.page = options.results / (results_name(about, re.sub("^best(,avx2)?$", "", options.kernel)) + ".md")
        options.json = options.page.with_suffix(".json")
    if options.page:
        write(options.page, page(about, rows, machine, refused))
    if options.json:
        write(options.json, record(about, rows, machine))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--program", required=True, help="core_bench")
    parser.add_argument("--check", action="store_true", help="measure nothing: compare results at tiny sizes")
    parser.add_argument("--quick", action="store_true", help="a few cases, in seconds")
    parser.add_argument("--aims", action="store_true", help="the cases that have an aim")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name matches")
    parser.add_argument("--threads", default="1,2", help="thread counts, with commas between them")
    parser.add_argument("--kernel", default="", metavar="NAMES", help="kernels of attnd, with commas; best; all: every one (best, with --aims best,avx2)")
    parser.add_argument("--without", default="", metavar="NAMES", help="contenders to leave out, with commas; or: peers")
    parser.add_argument("--avx2", action="store_true",
                        help="kernel avx2, beside peers that see no AVX-512 (an Intel processor; peers/hide_avx512.c)")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=9, help="how many (9); 3 with --quick")
    parser.add_argument("--page", type=pathlib.Path, help="where to write the page")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all rounds")
    parser.add_argument("--results", type=pathlib.Path, metavar="FOLDER", help="both, by day and processor")
    options = parser.parse_args(given_options())
    options.command = shlex.join([sys.argv[0], *given_options()])
    options.threads = [int(word) for word in options.threads.split(",")]
    options.without = re.sub(r"\bpeers\b", "ort-attention,ort-multihead,torch", options.without).split(",")
    options.rounds = min(options.rounds, 3) if options.quick else options.rounds
    options.kernel = "avx2" if options.avx2 else options.kernel or ("best,avx2" if options.aims else "best")
    options.kernels = own_kernels(options.program, options.kernel)
    return options


def measure_and_write(options, contenders):
    machine, problems, start = Machine(options.program), [], time.monotonic()
    about = describe(options, contenders)
    print("\n".join("%-18s %s" % item for item in about.items()))
    rows, refused = measure_all(options, contenders, machine, problems)
    write_results(options, about, rows, machine, refused)
    machine.process.end()
    print("\n%d cases in %.0f s" % (len(rows), time.monotonic() - start))
    for problem in problems:
        print("DISAGREE " + problem, file=sys.stderr)
    return 1 if problems or not rows else 0


def main():
    set_fair_environment()
    options = read_options()
    contenders = find_contenders(options.program, options.kernels, options.avx2)
    contenders = [c for c in contenders if c.name not in options.without]
    options.own_kernels = {c.name: c.kernel for c in contenders if c.kernel is not None}
    options.owns = list(options.own_kernels)
    try:
        return check_all(options, contenders) if options.check else measure_and_write(options, contenders)
    finally:
        for contender in contenders:
            contender.end()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("bench: %s" % failure)
