#!/usr/bin/env python3
"""
run.py: the features that operators rely on: metrics, traces, logs, keys, certificates, signals, deadlines, memory.

Every test starts its own servers, with settings that make the test fast. Times are bounds on behaviour, with a margin
for a busy machine. They are not measurements.
"""

import argparse
import base64
import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Client, PATIENCE_SECONDS, Server, wait_until  # noqa: E402
import accounts as of_accounts  # noqa: E402
import amplifiers as of_amplifiers  # noqa: E402
import browsers as of_browsers  # noqa: E402
import certificates as of_certificates  # noqa: E402
import crashes as of_crashes  # noqa: E402
import hostile as of_hostile_folders  # noqa: E402
import model_memory as of_model_memory  # noqa: E402
import models as of_models  # noqa: E402
import printed as of_what_is_printed  # noqa: E402
import program as of_program  # noqa: E402
import whole_models as of_whole_models  # noqa: E402
from suite import conclude, registry, run_tests  # noqa: E402

SMALL = {"inputs": {"query": [[1, 2]]}}
ROUNDS = int(os.environ.get("ROUNDS", "3"))  # of what ends a server under load
TESTS = []
test = registry(TESTS)


def settings(**values):
    return {"ATTND_" + name.upper(): str(value) for name, value in values.items()}


def long_request(tokens=60000):
    """Seconds of computing from little text."""
    data = base64.b64encode(struct.pack(f"<{tokens}f", *[i * 0.618 % 1 for i in range(tokens)])).decode()
    return {"inputs": {"query": {"shape": [tokens, 1], "dtype": "float32", "base64": data}},
            "options": {"return": ["output"], "format": "base64"}}


def post(client, request=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.send("POST", "/v1/attention", json.dumps(request or SMALL).encode(),
                       {"Content-Type": "application/json", **headers})


def metrics(server, **headers):
    reply = server.client().send("GET", "/metrics", None, {name.replace("_", "-"): v for name, v in headers.items()})
    assert reply.status == 200, reply.status
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4"), reply.headers["Content-Type"]
    series = {}
    for line in reply.body.decode().splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert re.fullmatch(r"[a-z_]+(\{([a-z]+=\"(\\.|[^\"\\])*\",?)*\})?", name), line
            assert name not in series, line
            series[name] = float(value)
    return series


def raw(server):
    parts = urllib.parse.urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), PATIENCE_SECONDS)


# ---- metrics, traces, logs ----

@test
def metrics_count_by_route_and_no_client_makes_new_series(program):
    with Server(program) as server:
        client = server.client()
        before = set(metrics(server))
        for i in range(3):
            assert post(client).status == 200
            assert client.get(f"/nothing/{i}").status == 404
            assert client.send("BREW", f"/coffee{i}").status == 404
        assert post(client, {"inputs": {}}).status == 400
        wait_until(lambda: 'attnd_requests_total{method="POST",route="/v1/attention",status="400"}' in metrics(server),
                   "no count of the refusal")
        after = metrics(server)
        assert after['attnd_requests_total{method="POST",route="/v1/attention",status="200"}'] == 3
        assert after['attnd_requests_total{method="other",route="other",status="404"}'] == 6
        assert after['attnd_rejected_total{reason="not-found"}'] == 6
        assert after['attnd_rejected_total{reason="field"}'] == 1
        assert after['attnd_request_seconds_count{stage="compute"}'] == 4
        assert after['attnd_request_seconds_bucket{stage="compute",le="+Inf"}'] == 4
        assert after["attnd_running_jobs"] == 0 and after["attnd_ready"] == 1
        assert 0 < after["attnd_memory_limit_bytes"]
        new = {name for name in set(after) - before if not name.startswith(("attnd_requests_total", "attnd_route_seconds"))}
        assert not new, new
        routes = {found.group(1) for name in after if (found := re.match(r'attnd_route_seconds.*route="([^"]*)"', name))}
        assert routes <= {"/v1/attention", "/metrics", "/livez", "/readyz", "other"}, routes


@test
def protocol_requests_have_the_usual_aliases(program):
    with Server(program) as server:
        request = {"inputs": [{"name": "QUERY", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}
        assert server.client().post("/v2/models/attention/infer", request).status == 200
        name = 'nv_inference_request_success{model="attention",version="1"}'
        wait_until(lambda: metrics(server)[name] == 1, "not counted")


@test
def a_trace_goes_on_with_a_span_of_our_own(program):
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with Server(program, environment=settings(log_format="json")) as server:
        reply = post(server.client(), traceparent=f"00-{trace}-{parent}-01", X_Request_Id="mine")
        version, got, span, flags = reply.headers["traceparent"].split("-")
        assert (version, got, flags) == ("00", trace, "01") and span != parent, reply.headers["traceparent"]
        for wrong in (f"00-{'0' * 32}-{parent}-01", f"ff-{trace}-{parent}-01", f"00-{trace}-{parent}-01-x",
                      f"00-{trace.upper()}-{parent}-01", "x"):
            assert post(server.client(), traceparent=wrong).headers["traceparent"] is None, wrong
        wait_until(lambda: any('"id":"mine"' in line for line in server.lines), "no line")
        line = json.loads(next(line for line in server.lines if '"id":"mine"' in line))
        assert (line["trace_id"], line["span_id"], line["parent_id"], line["trace_flags"]) == (trace, span, parent, "01"), line


@test
def the_collectors_recipe_names_members_that_the_log_has(program):
    recipe = (ROOT / "docker" / "collector" / "traces.yaml").read_text()
    with Server(program, environment=settings(log_format="json")) as server:
        post(server.client(), traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", X_Request_Id="mine")
        wait_until(lambda: any('"id":"mine"' in line for line in server.lines), "no line")
        line = json.loads(next(line for line in server.lines if '"id":"mine"' in line))
    named = set(re.findall(r"attributes\.([a-z_]+)", recipe))
    assert {"trace_id", "time", "total_ms"} <= named <= set(line), named - set(line)
    time.strptime(line["time"], "%Y-%m-%dT%H:%M:%S." + line["time"][20:23] + "Z")  # the recipe's layout


@test
def nothing_that_is_sent_makes_lines_or_fields_of_the_log(program):
    hostile = [b"GET /%0a%22level%22 HTTP/1.1\r\nHost: localhost\r\n\r\n",
               b"GET /a\"b\\c HTTP/1.1\r\nHost: localhost\r\n\r\n",
               b"GET /x HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a\" status=200\r\n\r\n",
               b"GET /x HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: \x1b[31m\r\n\r\n",
               b"G\"ET /x HTTP/1.1\r\nHost: localhost\r\n\r\n",
               b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
               b"GET /" + b"\"" * 20000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    for form in ("json", "text"):
        with Server(program, environment=settings(log_format=form)) as server:
            for text in hostile:
                with raw(server) as connection:
                    connection.sendall(text)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        pass
            client = server.client()
            assert client.send("GET", "/end", None, {"X-Request-Id": "the-end"}).status == 404
            wait_until(lambda: any("the-end" in line for line in server.lines), "no line")
            for line in server.lines:
                if form == "json":
                    fields = json.loads(line)
                    assert fields["level"] in ("info", "warn", "debug"), line
                else:
                    assert re.match(r"\d{4}-\d\d-\d\dT[0-9:.]+Z (info|warn) ", line), line
                assert all(" " <= character <= "~" for character in line.rstrip("\n")), repr(line)


@test
def a_log_that_was_moved_away_is_opened_anew(program):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "log"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(f"{folder}/notify")
            process = subprocess.Popen([program], env={**os.environ, **settings(listen="127.0.0.1:0", log_file=path,
                                                                                drain_delay=0),
                                                       "NOTIFY_SOCKET": f"{folder}/notify"})
            manager.settimeout(PATIENCE_SECONDS)
            assert manager.recv(100).startswith(b"READY=1")
            path.rename(f"{folder}/old")
            process.send_signal(signal.SIGHUP)
            assert manager.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert manager.recv(100).startswith(b"READY=1")
            process.terminate()
            assert manager.recv(100).startswith(b"STOPPING=1")
            assert process.wait(PATIENCE_SECONDS) == 0
        assert "listening on" in pathlib.Path(f"{folder}/old").read_text()
        assert "stopped" in path.read_text() and "listening on" not in path.read_text()


def numbered_requests(url, count):
    """One after the other on one connection, each with its number as its name."""
    client = Client(url)
    for number in range(count):
        assert post(client, X_Request_Id=f"n{number}").status == 200


def numbers_of(lines):
    return [int(number) for number in re.findall(r" id=n([0-9]+) ", lines)]


@test
def no_line_is_missing_however_it_ends(program):
    count = 300
    for end in (signal.SIGTERM, signal.SIGINT, signal.SIGABRT):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "log"
            environment = {**os.environ, **settings(listen="127.0.0.1:0", log_file=path, drain_delay=0)}
            process = subprocess.Popen(["sh", "-c", 'ulimit -c 0; exec "$0"', program], env=environment)
            wait_until(lambda: path.exists() and "kernel=" in path.read_text(), "it does not start")
            numbered_requests(re.search(r"http://\S+", path.read_text())[0], count)
            process.send_signal(end)
            status = process.wait(PATIENCE_SECONDS)
            numbers = numbers_of(path.read_text())
            assert status == (-end if end == signal.SIGABRT else 0), (end, status)
            # The line of the last one comes when its answer is on its way, which is when an abort may come, too.
            least = count - 1 if end == signal.SIGABRT else count
            assert numbers == list(range(len(numbers))) and len(numbers) >= least, (end, numbers)


@test
def a_log_that_nobody_reads_holds_up_no_request(program):
    count = 1500  # several times what a pipe holds
    read_end, write_end = os.pipe()
    process = subprocess.Popen([program], stderr=write_end,
                               env={**os.environ, **settings(listen="127.0.0.1:0", drain_delay=0)})
    os.close(write_end)
    with open(read_end, encoding="utf-8") as log:
        began = ""
        while "kernel=" not in began:
            began += log.readline()
        numbered_requests(re.search(r"http://\S+", began)[0], count)
        process.terminate()
        said = log.read()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert numbers_of(said) == list(range(count)) and said.endswith("stopped\n"), said[-400:]


@test
def the_service_manager_hears_that_we_live(program):
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{folder}/notify")
        manager.settimeout(PATIENCE_SECONDS)
        environment = {"NOTIFY_SOCKET": f"{folder}/notify", "WATCHDOG_USEC": "200000"}
        with Server(program, environment=environment):
            said = {manager.recv(100).split(b"\n")[0] for _ in range(4)}
        assert said == {b"READY=1", b"WATCHDOG=1"}, said


# ---- who may ----

def make_key(program, *words):
    made = subprocess.run([program, "key", *words], capture_output=True, text=True, check=True)
    return made.stdout, made.stderr.split()[-1]


@test
def keys_are_asked_for_and_each_has_its_rights(program):
    compute_line, compute = make_key(program, "worker")
    watch_line, watch = make_key(program, "watcher", "metrics")
    assert compute not in compute_line
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"# ours\n\n{compute_line}{watch_line}")
        file.flush()
        with Server(program, environment=settings(keys=file.name)) as server:
            client = server.client()
            for path in ("/livez", "/readyz", "/v2/health/live", "/", "/openapi.json"):
                assert client.get(path).status == 200, path
            reply = post(client)
            assert reply.status == 401 and reply.headers["WWW-Authenticate"] == 'Bearer realm="attnd"'
            for wrong in ("", "x", compute[:-1], compute + "x", compute.upper()):
                reply = post(client, Authorization=f"Bearer {wrong}")
                assert reply.status == 401 and "invalid_token" in reply.headers["WWW-Authenticate"], wrong
            assert post(client, Authorization=f"Basic {compute}").status == 401
            assert post(client, Authorization=f"bearer {compute}").status == 200
            assert post(client, X_API_Key=compute).status == 200
            assert post(client, X_API_Key=watch).status == 403
            assert client.get("/metrics").status == 401
            assert client.send("GET", "/metrics", None, {"X-API-Key": compute}).status == 403
            assert metrics(server, X_API_Key=watch)['attnd_rejected_total{reason="forbidden"}'] == 2
            assert client.send("OPTIONS", "/v1/attention").status == 204
            for sent in (compute, watch):  # an id is logged, so a key must not be one
                assert post(client, X_API_Key=compute, X_Request_Id=sent).headers["X-Request-Id"] != sent
                assert post(client, X_Request_Id=sent).headers["X-Request-Id"] != sent
            assert post(client, X_Request_Id="mine").headers["X-Request-Id"] == "mine"
            wait_until(lambda: "id=mine" in "".join(server.lines), "the log lacks the last request")
            wait_until(lambda: "key=worker" in "".join(server.lines), "the log names no key")
            assert compute not in "".join(server.lines) and watch not in "".join(server.lines)


@test
def a_quota_is_kept_and_says_when_it_allows_more(program):
    line, key = make_key(program, "few", "compute", "requests=2")
    byte_line, by_bytes = make_key(program, "little", "compute", "bytes=10")
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(line + byte_line)
        file.flush()
        with Server(program, environment=settings(keys=file.name)) as server:
            client = server.client()
            replies = [post(client, X_API_Key=key) for _ in range(8)]
            assert [reply.status for reply in replies[:2]] == [200, 200]
            refused = [reply for reply in replies if reply.status == 429]
            assert refused and all(int(reply.headers["Retry-After"]) >= 1 for reply in refused)
            assert "few" in refused[0].json()["error"]
            assert post(client, X_API_Key=by_bytes).status == 200
            wait_until(lambda: post(client, X_API_Key=by_bytes).status == 429, "what a request has cost is not owed")
            assert int(post(client, X_API_Key=by_bytes).headers["Retry-After"]) > 5


@test
def keys_are_read_again_and_a_wrong_file_changes_nothing(program):
    first_line, first = make_key(program, "first")
    second_line, second = make_key(program, "second")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "keys"
        path.write_text(first_line)
        with Server(program, environment=settings(keys=path)) as server:
            client = server.client()

            def reload(text):
                seen = sum("reloaded" in line for line in server.lines)
                path.write_text(text)
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: sum("reloaded" in line for line in server.lines) > seen, "no reload")

            assert post(client, X_API_Key=second).status == 401
            reload(first_line + second_line)
            assert post(client, X_API_Key=second).status == 200
            reload(first_line + "wrong\n")
            assert any("line 2" in line for line in server.lines)
            assert post(client, X_API_Key=second).status == 200
            reload(second_line)
            assert post(client, X_API_Key=first).status == 401


@test
def no_listening_beyond_the_loopback_by_oversight(program):
    for host in ("0.0.0.0:0", ":0", "[::]:0"):
        ended = subprocess.run([program, "--listen", host], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert ended.returncode == 1 and "--keys" in ended.stderr and "--open" in ended.stderr, ended.stderr
    with subprocess.Popen([program, "--listen", "0.0.0.0:0", "--open"], stderr=subprocess.PIPE, text=True) as process:
        first = process.stderr.readline()
        assert " warn listening on http://0.0.0.0:" in first and ", without keys: anybody who reaches it" in first, first
        process.terminate()
        process.stderr.read()
    assert process.returncode == 0


class SecureServer(Server):
    def _is_ready(self):
        return any("listening on https" in line for line in self.lines)


def make_certificate(folder, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", f"{folder}/key", "-out", f"{folder}/cert", "-subj", f"/CN={name}", "-days", "2"],
                   capture_output=True, check=True)


@test
def https_is_served_and_certificates_are_read_again(program):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def fetch(server):
        with context.wrap_socket(raw(server)) as connection:
            certificate = connection.getpeercert(True)
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            text = b""
            while got := connection.recv(4096):
                text += got
            assert text.startswith(b"HTTP/1.1 200"), text
            return ssl.DER_cert_to_PEM_cert(certificate)

    with tempfile.TemporaryDirectory() as folder:
        make_certificate(folder, "one")
        paths = settings(tls_cert=f"{folder}/cert", tls_key=f"{folder}/key")
        with SecureServer(program, environment=paths) as server:
            first = fetch(server)
            make_certificate(folder, "two")
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: fetch(server) != first, "the old certificate goes on")
            second = fetch(server)
            pathlib.Path(f"{folder}/cert").write_text(first)
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: any("belong together" in line for line in server.lines), "a wrong pair is taken")
            assert fetch(server) == second
            wait_until(lambda: any("reloaded in part" in line for line in server.lines), "all of it seems reloaded")
            assert not server.lines[-1].endswith("info reloaded\n"), server.lines[-1]


# ---- deadlines and room ----

@test
def slow_clients_are_cut_at_their_deadline(program):
    # A deadline of one or two seconds, and the clients that it cuts. The other setting is far away.
    by_setting = {
        "idle_timeout": {
            "silence": (b"", b""),
            "empty lines": (b"", b"\r\n"),
            "first line": (b"GET", b"T"),
            "header": (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", b"a"),
            "many fields": (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n"),
            "kept alive": (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n")},
        "request_timeout": {
            "body": (b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", b"a"),
            "chunks": (b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n")}}

    def is_cut(server, first, drip):
        end = time.monotonic() + PATIENCE_SECONDS
        with raw(server) as connection:
            connection.settimeout(0.05)
            try:
                connection.sendall(first)
                while time.monotonic() < end:
                    try:
                        if not connection.recv(4096):
                            return True
                    except socket.timeout:
                        connection.sendall(drip)
            except OSError:
                return True
        return False

    for setting, cases in by_setting.items():
        far = {name: 1200 for name in by_setting}
        with Server(program, environment=settings(**{**far, setting: 1})) as server, \
                concurrent.futures.ThreadPoolExecutor(len(cases)) as clients:
            cuts = clients.map(lambda case: is_cut(server, *case), cases.values())
            late = [name for name, cut in zip(cases, cuts) if not cut]
            assert not late, f"{setting}: {late} go on"


@test
def a_client_that_does_not_read_is_cut_at_the_deadline_of_the_whole(program):
    with Server(program, environment=settings(request_timeout=2)) as server:
        with raw(server) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            body = json.dumps({"inputs": {"query": [[i % 7, 1] for i in range(2000)]}}).encode()
            connection.sendall(b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            wait_until(lambda: any("path=/v1/attention status=200" in line for line in server.lines), "never cut")
        wait_until(lambda: metrics(server)["attnd_memory_bytes"] < 1 << 20, "its memory is kept")


def unread(server, request):
    """A connection that sends a request and reads nothing of the answer."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    parts = urllib.parse.urlsplit(server.url)
    connection.connect((parts.hostname, parts.port))
    connection.sendall(request)
    return connection


def is_answered(send):
    """A connection may be closed before its request is read, where all places are taken."""
    try:
        return send().status == 200
    except OSError:
        return False


def is_let_in(server, path):
    return is_answered(lambda: server.client().get(path))


def as_post(body, fields=b""):
    return (b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + fields +
            b"Content-Length: %d\r\n\r\n" % len(body) + body)


def asked_again(server, request):
    """The status of one more of these requests, whose answer is not read either."""
    with unread(server, request) as connection:
        connection.settimeout(PATIENCE_SECONDS)
        try:
            return int(connection.recv(64).split()[1])
        except (OSError, IndexError):
            return None


# Files of the server, many at once; maps of some megabytes; maps that take all the memory: answers that nobody reads.
def unread_requests():
    page = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20
    maps = {"query": [[0]] * 1200}
    large = json.dumps({"inputs": {"query": [[0]] * 4000}, "options": {"return": ["attention"], "format": "base64"}})
    return {"files": (60, page), "maps": (40, as_post(json.dumps({"inputs": maps, "options": {"return": ["attention"]}}).encode())),
            "memory": (4, as_post(gzip.compress(large.encode()), b"Content-Encoding: gzip\r\n"))}


@test
def answers_that_nobody_reads_make_way_for_others(program):
    for name, (count, request) in unread_requests().items():
        with Server(program, environment=settings(connections=40, memory="256M", layers_bytes=0, cache_bytes=0)) as server:
            crowd = [unread(server, request) for _ in range(count)]
            for path in ("/livez", "/readyz"):
                wait_until(lambda: is_let_in(server, path), f"{name}: {path} is not answered")
            wait_until(lambda: is_answered(lambda: post(server.client())), f"{name}: a small request is refused")
            wait_until(lambda: asked_again(server, request) == 200, f"{name}: the same request is refused")
            for connection in crowd:
                connection.close()


@test
def no_small_request_fails_while_unread_answers_fill_all_places(program):
    places, clients = 64, 3

    def flood_and_ask(server, request):
        """Each unread answer has begun before the next request, so that computing does not fill the queue instead."""
        crowd = []
        for _ in range(places):
            crowd.append(unread(server, request))
            crowd[-1].settimeout(PATIENCE_SECONDS)
            assert crowd[-1].recv(1) == b"H", "an answer is cut before it begins"
            assert server.client().get("/readyz").status == 200
            assert post(server.client()).status == 200
        return crowd

    for request in (unread_requests()[name][1] for name in ("files", "maps")):
        with Server(program, environment=settings(connections=places)) as server, \
                concurrent.futures.ThreadPoolExecutor(clients) as pool:
            crowds = list(pool.map(lambda _: flood_and_ask(server, request), range(clients)))
            assert metrics(server)["attnd_connections_evicted_total"] >= (clients - 1) * places, "they had room"
            for connection in (connection for crowd in crowds for connection in crowd):
                connection.close()


@test
def pipelined_requests_for_files_share_their_bytes(program):
    request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20
    with Server(program) as server:
        resident = lambda: metrics(server)["process_resident_memory_bytes"]
        before = resident()
        crowd = [unread(server, request) for _ in range(100)]
        wait_until(lambda: metrics(server)["attnd_connections"] >= 100, "they are not let in")
        assert resident() - before < 100 * (200 << 10), "each has a copy of the file"
        for connection in crowd:
            connection.close()


@test
def silent_connections_do_not_lock_others_out(program):
    most = 20
    with Server(program, environment=settings(connections=most)) as server:
        silent = [raw(server) for _ in range(3 * most)]
        for connection in silent[::2]:
            connection.sendall(b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nX: ")
        for _ in range(3):
            assert post(server.client()).status == 200
        series = metrics(server)
        assert series["attnd_connections_evicted_total"] >= 2 * most
        wait_until(lambda: metrics(server)["attnd_connections"] <= most, "too many are open")
        for connection in silent:
            connection.close()


@test
def a_deadline_of_the_request_stops_the_work(program):
    with Server(program, environment=settings(compute_threads=1)) as server:
        client = server.client()
        reply = post(client, long_request(), Request_Timeout="0.2")
        assert reply.status == 504 and "0.2 s" in reply.json()["error"], reply.body
        wait_until(lambda: metrics(server)["attnd_running_jobs"] == 0, "the work goes on")
        assert metrics(server)['attnd_cancelled_total{reason="deadline"}'] == 1
        assert post(client, Request_Timeout="30").status == 200
        for wrong in ("0", "-1", "soon", "1s", "1e999"):
            assert post(client, Request_Timeout=wrong).status == 400, wrong
        assert post(client, X_Priority="urgent").status == 400
        for right in ("high", "normal", "Low"):
            assert post(client, X_Priority=right).status == 200, right


@test
def the_protocol_sets_priority_and_deadline_by_parameters(program):
    tokens = 60000
    query = {"name": "QUERY", "shape": [tokens, 1], "datatype": "FP32", "data": [i % 5 for i in range(tokens)]}
    small = {"name": "QUERY", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}

    def infer(client, tensor, **parameters):
        return client.post("/v2/models/attention/infer",
                           {"parameters": parameters, "inputs": [tensor], "outputs": [{"name": "OUTPUT"}]})

    with Server(program) as server:
        client = server.client()
        assert infer(client, query, timeout=200000).status == 504
        assert infer(client, small, timeout=5000000, priority=1).status == 200
        for wrong in ({"priority": 4}, {"priority": -1}, {"priority": "high"}, {"timeout": -1}, {"timeout": 1.5}):
            reply = infer(client, small, **wrong)
            assert reply.status == 400 and f"/parameters/{next(iter(wrong))}" in reply.json()["pointer"], reply.body


@test
def work_stops_when_the_client_leaves(program):
    with Server(program) as server:
        body = json.dumps(long_request()).encode()
        with raw(server) as connection:
            connection.sendall(b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            wait_until(lambda: metrics(server)["attnd_running_jobs"] == 1, "not begun")
        wait_until(lambda: metrics(server)["attnd_running_jobs"] == 0, "the work goes on")
        assert metrics(server)['attnd_cancelled_total{reason="client_gone"}'] == 1


@test
def readiness_tells_why_not(program):
    one = settings(compute_threads=1, queue=0, drain_delay=2)
    with Server(program, environment=one) as server:
        client = server.client()
        assert client.get("/readyz").json() == {"ready": True}
        body = json.dumps(long_request()).encode()
        with raw(server) as connection:
            connection.sendall(b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            wait_until(lambda: client.get("/readyz").status == 503, "a full queue is ready")
            assert client.get("/readyz").json() == {"ready": False, "reasons": ["queue full"]}
            assert client.get("/v2/health/ready").status == 503
            assert post(client).status == 200, "a small request waits for no thread"
            reply = post(client, long_request())
            assert reply.status == 503 and int(reply.headers["Retry-After"]) >= 1
        wait_until(lambda: client.get("/readyz").status == 200, "never ready again")
        server.process.terminate()
        wait_until(lambda: client.get("/readyz").status == 503, "draining is ready")
        assert client.get("/readyz").json()["reasons"] == ["draining"]


def ask_until_refused(address, requests, ends):
    """Puts into requests, for every connection that was made, whether each of two requests on it was answered."""
    body = json.dumps(SMALL).encode()
    head = b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    while True:
        try:
            connection = socket.create_connection(address, timeout=PATIENCE_SECONDS)
        except ConnectionRefusedError:
            break
        with connection:
            connection.sendall(head % len(body) + body)
            reply = connection.recv(1 << 16)
            requests.append(reply[:12] == b"HTTP/1.1 200")
    ends.append(True)


def end_under_load(program, clients=4):
    """The number of requests that were answered before the end of the server, and during it."""
    with Server(program, environment=settings(drain_delay=0)) as server:
        parts = urllib.parse.urlsplit(server.url)
        requests, ends = [], []
        threads = [threading.Thread(target=ask_until_refused, args=((parts.hostname, parts.port), requests, ends))
                   for _ in range(clients)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(requests) > 20, "no request is answered")
        server.process.terminate()
        for thread in threads:
            thread.join()
        assert server.process.wait(PATIENCE_SECONDS) == 0, f"ended with {server.process.returncode}"
        assert len(ends) == clients, "a client was reset after it was let in"
        assert all(requests), f"{requests.count(False)} of {len(requests)} that were let in had no answer"
        return len(requests)


@test
def who_is_let_in_is_answered_while_the_server_ends(program):
    for _ in range(ROUNDS):
        end_under_load(program)


@test
def what_the_documentation_names_is_there(program):
    known = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    settings_known = set(re.findall(r"--[a-z][a-z-]*", known))
    with Server(program) as server:
        post(server.client())
        series = {re.match(r"[a-z_]+", name).group(0) for name in metrics(server)}
    series |= {re.sub("_(bucket|sum|count)$", "", name) for name in series} | {"attnd_quota_limit", "attnd_quota_left"}  # of keys
    pages = [ROOT / "docs" / "operations.md", ROOT / "SECURITY.md", ROOT / "docker" / "compose" / "grafana" / "attnd.json"]
    for page in pages:
        text = page.read_text()
        unknown = set(re.findall(r"`(--[a-z][a-z-]*)", text)) - settings_known
        assert not unknown, f"{page.name} names {sorted(unknown)}, which are no settings"
        unknown = set(re.findall(r"\b(attnd_[a-z_]+|process_[a-z_]+)\b", text)) - series
        assert not unknown, f"{page.name} names {sorted(unknown)}, which are no metrics"


@test
def memory_goes_back_after_a_peak(program):
    def resident(server):
        return metrics(server)["process_resident_memory_bytes"]

    with Server(program) as server:
        assert post(server.client()).status == 200
        before = resident(server)
        tokens = 1500
        large = {"inputs": {"query": [[[i % 11, 1] for i in range(tokens)]] * 4}, "options": {"format": "base64"}}
        # In blocks that go back by themselves, and in blocks that the C library keeps until nothing is asked any more.
        middling = {"inputs": {"query": [[i % 11 + 0.5 for i in range(64)]] * 1500}, "options": {"return": ["output"]},
                    "masks": {"causal": True}}
        with concurrent.futures.ThreadPoolExecutor(4) as clients:
            replies = clients.map(lambda request: post(server.client(), request), [large] * 3 + [middling] * 12)
            assert all(reply.status == 200 for reply in replies)
        wait_until(lambda: metrics(server)["attnd_memory_bytes"] < 1 << 20, "memory of requests is kept")
        wait_until(lambda: resident(server) < before + (12 << 20), "the system does not get memory back")


@test
def what_never_fits_is_not_asked_for_again(program):
    """A list that takes memory in small pieces: alone on the server it is too large for it, now and later."""
    for memory in ("72M", "80M", "88M", "96M"):
        with Server(program, environment=settings(memory=memory)) as server:
            others = [server.client() for _ in range(3)]
            assert all(post(other).status == 200 for other in others)
            for pairs in (140_000, 170_000):
                body = b'{"inputs": {"query": [[1]]}, "options": {"queries": [' + b"[0,0]," * pairs + b"0]}}"
                reply = server.client().send("POST", "/v1/attention", body, {"Content-Type": "application/json"})
                assert reply.status == 413, f"{memory}: {reply.status}: {reply.body[:300]}"


def main():
    parser = argparse.ArgumentParser(description="hold a server against what operating it relies on")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--only", default="", help="tests whose name holds this")
    options = parser.parse_args()
    modules = (of_accounts, of_amplifiers, of_browsers, of_program, of_certificates, of_crashes, of_models, of_what_is_printed,
               of_whole_models, of_hostile_folders, of_model_memory)
    tests = TESTS + [function for module in modules for function in module.TESTS]
    options.attnd = os.path.abspath(options.attnd)  # some tests work in folders of their own
    return conclude("ops", *run_tests(tests, lambda test: test(options.attnd), options.only))


if __name__ == "__main__":
    sys.exit(main())
