"""
page.py: what was measured as one page of Markdown and as a record of all rounds; both are written by the run alone.
"""

import datetime
import json
import math
import re
import statistics

HEAD = ("case", "attnd ms", "GFLOP/s", "limit", "% of limit", "MiB", "fastest peer", "ms", "×", "beside", "time",
        "aim", "met")  # fmt: skip


def significant(x):
    return "–" if x is None or math.isnan(x) else "%.3g" % x if x < 100 else "%.0f" % x


class Row:
    """One case with what each contender took in each round; ratios are medians of those within a round."""

    def __init__(self, case, kernels):
        self.case, self.kernels, self.owns = case, kernels, list(kernels)  # {name of attnd: its kernel}
        self.rounds, self.limits, self.memory = [], [], {}  # a round: {name: ms}; limits: {own name: (ms, kind)}
        self.failed = {}  # {name of a peer: why}

    def names(self):
        return [name for name in self.rounds[0] if name not in self.failed]

    def ms(self, name):
        return statistics.median(r[name] for r in self.rounds if name in r)

    def ratio(self, name, other):
        """How many times as long the first took as the second."""
        return statistics.median(r[name] / r[other] for r in self.rounds if name in r and other in r)

    def share(self, own):
        return statistics.median(limit[own][0] / r[own] for limit, r in zip(self.limits, self.rounds))

    def limit_kind(self, own):
        return statistics.mode(limit[own][1] for limit in self.limits)

    def fastest(self, *prefixes):
        return min((name for name in self.names() if name.startswith(prefixes)), key=self.ms, default=None)

    def aims(self, own):
        """[(the aim, what was found, whether it is met)]; the case beside belongs to the first kernel."""
        ort, found = self.fastest("ort-"), []
        for what, bound in self.case.aims(self.kernels[own]).items():
            if what == "share":
                share = self.share(own)
                found.append(("%.0f %% of limit" % (100 * bound), "%.0f %%" % (100 * share), share >= bound))
            elif what == "peer" and ort:
                times = self.ratio(ort, own)
                found.append(("%.3g × ONNX Runtime" % bound, "%.2f" % times, times >= bound))
            elif what == "beside" and own == self.owns[0]:
                times = self.ratio(own, "beside")
                found.append(("%.2f of beside" % bound, "%.2f" % times, times <= bound))
        return found

    def cells(self, own):
        peer, beside, aims = self.fastest("ort-", "torch"), self.case.beside(), self.aims(own)
        words = [self.case.name(), significant(self.ms(own)), significant(self.case.flops() / self.ms(own) * 1e-6),
                 self.limit_kind(own), "%.0f" % (100 * self.share(own)), significant(self.memory[own])]  # fmt: skip
        words += [peer, significant(self.ms(peer)), "%.2f" % self.ratio(peer, own)] if peer else ["–"] * 3
        has_beside = "beside" in self.names() and own == self.owns[0]
        words += [beside[0], significant(self.ratio(own, "beside"))] if has_beside else ["–"] * 2
        words += [", ".join(aim for aim, _, _ in aims) or "–"]
        return words + [", ".join("%s (%s)" % ("yes" if is_met else "**no**", seen) for _, seen, is_met in aims) or "–"]

    def record(self):
        rounds = {name: [round(r[name], 6) for r in self.rounds if name in r] for name in self.names()}
        limits = {own: [round(limit[own][0], 6) for limit in self.limits] for own in self.owns if own in self.names()}
        return {"case": self.case.name(), "line": self.case.line, "flops": self.case.flops(), "bytes": self.case.bytes(),
                "limit": {own: self.limit_kind(own) for own in limits}, "limit_ms": limits, "ms": rounds,
                "peak_mib": {name: round(mib, 3) for name, mib in self.memory.items() if not math.isnan(mib)}}  # fmt: skip


def table_head():
    return "| " + " | ".join(HEAD) + " |\n| --- |" + " ---: |" * (len(HEAD) - 1)


def table_lines(row, own):
    """A line, and one for each peer that failed."""
    lines = ["| " + " | ".join(row.cells(own)) + " |"]
    if own == row.owns[0]:
        lines += ["| %s: %s |" % (row.case.name(), why) for why in row.failed.values()]
    return lines


def plural(threads):
    return "%d thread%s" % (threads, "s"[: threads > 1])


def machine_lines(machine):
    lines = []
    for (dtype, threads, vectors), seen in sorted(machine.peaks.items()):
        lines.append("- peak %s %s, %s: %.0f GFLOP/s, at most %.0f"
                     % (dtype, vectors, plural(threads), statistics.median(seen), max(seen)))  # fmt: skip
    for (size, threads), seen in sorted(machine.reads.items()):
        lines.append("- read %g MiB, %s: %.0f GB/s, at most %.0f"
                     % (size / 2**20, plural(threads), statistics.median(seen), max(seen)))  # fmt: skip
    return lines


def page(about, rows, machine, refused):
    """The whole as Markdown."""
    lines = ["# Measured on %s" % about["date"], "", "`%s`" % about["command"], ""]
    lines += ["- %s: %s" % (name, text) for name, text in about.items() if name not in ("date", "command") and text]
    lines += machine_lines(machine)
    aims = [is_met for row in rows for own in row.owns for _, _, is_met in row.aims(own)]
    lines += ["", "%d cases; %d of %d aims are met. [../README.md](../README.md) says what the columns mean."
              % (len(rows), aims.count(True), len(aims))]  # fmt: skip
    for threads in sorted({row.case.threads for row in rows}):
        for own in rows[0].owns:
            chosen = [row for row in rows if row.case.threads == threads and own in row.names()]
            lines += ["", "## %s, %s" % (own, plural(threads)), "", table_head()]
            lines += [line for row in chosen for line in table_lines(row, own)]
    lines += ["", "This version of attnd refuses: %s." % ", ".join(sorted(set(refused)))] if refused else []
    return "\n".join(lines) + "\n"


def record(about, rows, machine):
    """All rounds as JSON, a line for each case."""
    peaks = {"%s %d %s" % key: seen for key, seen in machine.peaks.items()}
    reads = {"%d %d" % key: seen for key, seen in machine.reads.items()}
    parts = [json.dumps(part, ensure_ascii=False)[1:-1] for part in
             ({"about": about}, {"peak_gflops": peaks}, {"read_gbs": reads})]  # fmt: skip
    cases = ",\n".join(json.dumps(row.record(), ensure_ascii=False) for row in rows)
    return "{" + ",\n".join(parts) + ',\n"cases": [\n' + cases + "\n]}\n"


def results_name(about, kernel):
    """2026-11-23-amd-epyc-26-2: the day and the processor, and the kernel if one was chosen."""
    words = "%s %s %s %s" % (about["cpu"], about["family"], about["model"], kernel)
    return datetime.date.today().isoformat() + "-" + re.sub("[^a-z0-9]+", "-", words.lower()).strip("-")
