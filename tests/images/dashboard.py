#!/usr/bin/env python3
"""
dashboard.py --attnd PROGRAM: a Prometheus watches an idle server, and evaluates what docker/ and docs/ offer for it.

Every expression of Grafana's dashboard has a value even before the first request. The alerts parse, name series that
exist, and are the same for Prometheus, for its operator and in docs/operations.md. Prometheus is Debian's; where it is not installed, its package is unpacked for the test.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server, wait_until  # noqa: E402
from suite import conclude, registry, run_tests, skip  # noqa: E402

DASHBOARD = ROOT / "docker" / "compose" / "grafana" / "attnd.json"
OPERATIONS = ROOT / "docs" / "operations.md"
ALERTS = ROOT / "docker" / "compose" / "alerts.yaml"
OPERATOR = ROOT / "docker" / "kubernetes" / "overlays" / "public" / "alerts.yaml"
TESTS = []
test = registry(TESTS)


class Prometheus:
    """Scrapes one server each second, as the job "attnd"; keeps its data in a folder of the test."""

    def __init__(self, program, folder, url):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        target = urllib.parse.urlsplit(url).netloc
        settings = folder / "prometheus.yaml"
        settings.write_text("global: {scrape_interval: 1s}\nscrape_configs:\n"
                            f"  - {{job_name: attnd, static_configs: [{{targets: ['{target}']}}]}}\n")
        self.process = subprocess.Popen(
            [program, f"--config.file={settings}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address={self.address}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def values(self, expression):
        """The values of the series that an expression has now; an error of its syntax is an exception."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://{self.address}/api/v1/query?{query}") as reply:
            return [series["value"][1] for series in json.load(reply)["data"]["result"]]

    def has(self, expression):
        with contextlib.suppress(OSError):
            return bool(self.values(expression))
        return False


def find_prometheus(folder):
    """The programs prometheus and promtool, or None. The lists of a bare machine are empty: then they are fetched once."""
    if shutil.which("prometheus"):
        return shutil.which("prometheus"), shutil.which("promtool")
    if os.environ.get("INSTALL") == "no" or not shutil.which("apt-get"):
        return None
    download = "apt-get -qq download prometheus"
    unpack = f"({download} || {{ apt-get -qq update && {download}; }}) && dpkg-deb -x prometheus_*.deb unpacked"
    if subprocess.run(["sh", "-c", unpack], cwd=folder, capture_output=True, check=False).returncode != 0:
        return None
    return tuple(str(folder / "unpacked" / "usr" / "bin" / name) for name in ("prometheus", "promtool"))


def targets():
    """(panel, its field defaults, expression with Grafana's variables filled in)."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "10s")
            yield panel["title"], panel["fieldConfig"]["defaults"], expression


def alerts():
    return re.findall(r"^ +expr: (.*)$", ALERTS.read_text(), re.M)


@test
def every_expression_of_the_dashboard_has_a_value_on_an_idle_server(prometheus, _):
    for title, _, expression in targets():
        assert prometheus.values(expression), f"{title}: nothing for {expression}"


@test
def a_panel_whose_value_is_undefined_without_requests_says_so(prometheus, _):
    for title, defaults, expression in targets():
        if "NaN" in prometheus.values(expression):
            assert defaults.get("noValue"), f"{title} is NaN and has no text for it: {expression}"


@test
def the_alerts_name_series_that_exist(prometheus, _):
    for expression in alerts():
        prometheus.values(expression)
        for name in re.findall(r"\b(?:attnd|process)_[a-z_]+", expression):
            assert prometheus.values(name), f"no {name}: {expression}"


@test
def the_alerts_are_those_of_the_operator_and_of_the_documentation(_, promtool):
    checked = subprocess.run([promtool, "check", "rules", ALERTS], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    groups = ALERTS.read_text().partition("groups:")[2]
    assert OPERATOR.read_text().partition("  groups:")[2].replace("\n  ", "\n") == groups, "the operator has others"
    table = OPERATIONS.read_text().partition("| alert when |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([^`]+)` .*\|$", table, re.M) == alerts(), "the table of docs/operations.md has others"


@test
def prometheus_accepts_the_settings_of_compose(_, promtool):
    checked = subprocess.run([promtool, "check", "config", ROOT / "docker" / "compose" / "prometheus.yaml"],
                             capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def main():
    parser = argparse.ArgumentParser(description="what is offered for Prometheus and Grafana")
    parser.add_argument("--attnd", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        programs = find_prometheus(pathlib.Path(name))
        if programs is None:
            return skip("dashboard", "no prometheus, and no way to get it")
        with Server(options.attnd) as server:
            prometheus = Prometheus(programs[0], pathlib.Path(name), server.url)
            try:
                wait_until(lambda: prometheus.has("rate(attnd_requests_total[10s])"), "Prometheus has no rates")
                return conclude("dashboard", *run_tests(TESTS, lambda test: test(prometheus, programs[1]), options.only))
            finally:
                prometheus.process.terminate()
                prometheus.process.wait()


if __name__ == "__main__":
    sys.exit(main())
