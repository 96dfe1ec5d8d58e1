#!/usr/bin/env python3
"""
balancer.py --attnd PROGRAM: three servers behind Debian's HAProxy with docker/compose/haproxy.cfg, asked over HTTP/2.

Only the addresses of the file are changed, and its line for TLS is used. Many requests on one connection, small and large,
get the bytes that a server itself answers.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Client, Server, wait_until  # noqa: E402
from suite import conclude, registry, run_tests, skip  # noqa: E402

CONFIGURATION = ROOT / "docker" / "compose" / "haproxy.cfg"
REQUESTS = 24  # side by side on one connection
TESTS = []
test = registry(TESTS)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configuration(servers, ports, certificate):
    """The shipped file with these addresses: each substitution must find its line."""
    def change(pattern, by):
        nonlocal text
        text, count = re.subn(pattern, by, text, flags=re.M)
        assert count == 1, f"{count} lines of {CONFIGURATION.name} are like {pattern}"

    text = CONFIGURATION.read_text()
    change(r"^( *bind) :8080$", rf"\1 127.0.0.1:{ports['http']}")
    change(r"^( *)# bind :8443 ssl crt \S+ ", rf"\1bind 127.0.0.1:{ports['https']} ssl crt {certificate} ")
    change(r"^( *bind) :8404$", rf"\1 127.0.0.1:{ports['metrics']}")
    for at, server in enumerate(servers, 1):
        change(rf" attnd-{at}:8080$", " " + server.url.removeprefix("http://"))
    return text


class Balancer:
    def __init__(self, folder, servers):
        ports = {name: free_port() for name in ("http", "https", "metrics")}
        self.folder, self.servers = folder, servers
        self.url, self.secure_url = f"http://127.0.0.1:{ports['http']}", f"https://127.0.0.1:{ports['https']}"
        self.metrics_url = f"http://127.0.0.1:{ports['metrics']}"
        certificate = folder / "attnd.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2",
                        "-keyout", folder / "key", "-out", folder / "cert"], check=True, capture_output=True)
        certificate.write_text((folder / "cert").read_text() + (folder / "key").read_text())
        self.file = folder / "haproxy.cfg"
        self.file.write_text(configuration(servers, ports, certificate))
        self.process = subprocess.Popen(["haproxy", "-db", "-f", self.file], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def is_ready(self):
        with contextlib.suppress(OSError):
            stats = Client(self.metrics_url).get("/metrics").body.decode()
            return len(re.findall(r'^haproxy_server_check_status\{.*state="L7OK"\} 1$', stats, re.M)) == len(self.servers)
        return False


def bodies():
    """(name, type, body): small, larger than HAProxy's buffer, and binary."""
    def tokens(count):
        return [[(7 * i + j) % 13 / 13 for j in range(16)] for i in range(count)]

    def text(count):
        return json.dumps({"inputs": {"query": tokens(count)}, "options": {"return": ["output"]}}).encode()

    numbers = [value for row in tokens(64) for value in row]
    header = json.dumps({"inputs.query": {"dtype": "F32", "shape": [64, 16], "data_offsets": [0, 4 * len(numbers)]}}).encode()
    binary = struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(numbers)}f", *numbers)
    return [("small", "application/json", text(4)), ("large", "application/json", text(1500)),
            ("binary", "application/vnd.attnd.safetensors", binary)]


def ask(balancer, url, content_type, body):
    """REQUESTS requests at once on one connection: their statuses and their answers."""
    (balancer.folder / "body").write_bytes(body)
    done = subprocess.run(["node", ROOT / "tests" / "images" / "http2.mjs", url, content_type, balancer.folder / "body",
                           str(REQUESTS), balancer.folder], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), [(balancer.folder / f"answer-{i}").read_bytes() for i in range(REQUESTS)]


def all_are_the_servers_own(balancer, url):
    for name, content_type, body in bodies():
        direct = balancer.servers[0].client().send("POST", "/v1/attention", body, {"Content-Type": content_type})
        assert direct.status == 200, (name, direct.body[:200])
        statuses, answers = ask(balancer, url, content_type, body)
        assert statuses == ["200"] * REQUESTS, (name, statuses)
        assert set(answers) == {direct.body}, f"{name}: other bytes than the server's"


@test
def the_shipped_file_is_valid(balancer):
    checked = subprocess.run(["haproxy", "-c", "-f", balancer.file], capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and "warning" not in checked.stdout.lower(), checked.stdout + checked.stderr


@test
def requests_side_by_side_on_a_plain_connection_get_the_servers_bytes(balancer):
    all_are_the_servers_own(balancer, balancer.url)


@test
def requests_side_by_side_on_a_connection_with_tls_get_the_servers_bytes(balancer):
    all_are_the_servers_own(balancer, balancer.secure_url)


@test
def curl_speaks_http_2_with_it_in_both_ways(balancer):
    for url, flags in ((balancer.url, ["--http2-prior-knowledge"]), (balancer.secure_url, ["--http2", "--insecure"])):
        done = subprocess.run(["curl", "-s", "-o", os.devnull, "-w", "%{http_code} %{http_version}", *flags, f"{url}/readyz"],
                              capture_output=True, text=True, check=False)
        assert done.stdout == "200 2", (flags, done.stdout, done.stderr)


@test
def a_replica_that_leaves_while_requests_run_loses_none(balancer):
    _, content_type, body = bodies()[0]
    balancer.servers[2].process.terminate()
    for _ in range(5):
        statuses, _ = ask(balancer, balancer.url, content_type, body)
        assert statuses == ["200"] * REQUESTS, statuses


def missing():
    """Why the suite cannot run here, or None."""
    programs = subprocess.run(["mk/install_packages.sh", "haproxy", "nodejs", "curl", "openssl"], cwd=ROOT, capture_output=True, text=True,
                              check=False)
    for program in ("haproxy", "node"):
        if not shutil.which(program):
            return f"no {program}: {programs.stderr.strip()}"
    if "HTTP2" not in subprocess.run(["curl", "-V"], capture_output=True, text=True, check=False).stdout:
        return "this curl does not speak HTTP/2"
    return None


def main():
    parser = argparse.ArgumentParser(description="HTTP/2 through HAProxy")
    parser.add_argument("--attnd", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    why = missing()
    if why:
        return skip("balancer", why)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # As in compose.yaml: the balancer's checks say attnd.
        settings = {"ATTND_HOST_NAMES": "attnd", "ATTND_DRAIN_DELAY": "4"}
        servers = [stack.enter_context(Server(options.attnd, environment=settings)) for _ in range(3)]
        balancer = Balancer(folder, servers)
        try:
            wait_until(balancer.is_ready, "HAProxy is not ready")
            return conclude("balancer", *run_tests(TESTS, lambda test: test(balancer), options.only))
        finally:
            balancer.process.terminate()
            balancer.process.wait()


if __name__ == "__main__":
    sys.exit(main())
