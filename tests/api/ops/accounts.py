"""accounts.py: the cost of a request in the log, in the metrics, and in the quota of a key."""

import base64
import concurrent.futures
import json
import re
import socket
import struct
import subprocess
import tempfile
import urllib.parse

from attnd import PATIENCE_SECONDS, Server, wait_until
from suite import registry

TESTS = []
test = registry(TESTS)


def connect(server):
    """A client that reads little at a time."""
    parts = urllib.parse.urlsplit(server.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
    connection.settimeout(PATIENCE_SECONDS)
    connection.connect((parts.hostname, parts.port))
    return connection


def logged(server, path):
    """The log lines of the requests to that path, a dictionary each."""
    lines = [line for line in server.lines if f" path={path} " in line]
    return [dict(re.findall(r"(\w+)=(\S+)", line)) for line in lines]


def counted(server, name):
    for line in server.client().get("/metrics").body.decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[-1])
    raise AssertionError(name)


@test
def heads_have_no_bytes(program):
    with Server(program) as server:
        before = counted(server, "attnd_sent_bytes_total")
        reply = server.client().send("HEAD", "/openapi.json")
        assert reply.status == 200 and int(reply.headers["Content-Length"]) > 100000, reply.headers
        wait_until(lambda: logged(server, "/openapi.json"), "the request is not in the log")
        assert [line["bytes_out"] for line in logged(server, "/openapi.json")] == ["0"], logged(server, "/openapi.json")
        assert counted(server, "attnd_sent_bytes_total") - before < 100000


@test
def a_broken_answer_counts_what_was_sent(program):
    tokens, least = 3000, 100000
    whole = 4 * tokens * tokens
    body = json.dumps({"inputs": {"query": [[1]] * tokens}, "options": {"return": ["attention"]}}).encode()
    with Server(program) as server:
        for number, media in enumerate(("application/json", "application/vnd.attnd.safetensors"), 1):
            connection, got = connect(server), 0
            connection.sendall(b"POST /v1/attention HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                               b"Accept: %s\r\nContent-Length: %d\r\n\r\n%s" % (media.encode(), len(body), body))
            while got < least:
                got += len(connection.recv(1 << 14))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            wait_until(lambda: len(logged(server, "/v1/attention")) == number, "the request is not in the log")
            line = logged(server, "/v1/attention")[-1]
            assert line["end"] == "aborted" and least / 2 < int(line["bytes_out"]) < whole, (media, line)
        sent = sum(int(line["bytes_out"]) for line in logged(server, "/v1/attention"))
        assert counted(server, "attnd_sent_bytes_total") < sent + least


def key(program, file, name, *words):
    """The line of a key in the file, and the key of its owner."""
    made = subprocess.run([program, "key", name, *words], capture_output=True, text=True, check=True)
    file.write(made.stdout)
    file.flush()
    return made.stderr.split()[-1]


def head(token, *fields):
    lines = ("POST /v1/attention HTTP/1.1", "Host: a", "Content-Type: application/json", f"X-API-Key: {token}", *fields)
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def answer(connection):
    """Status, header and body; the body has a Content-Length."""
    text = b""
    while b"\r\n\r\n" not in text:
        more = connection.recv(1 << 16)
        assert more, text
        text += more
    fields, _, body = text.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)content-length: (\d+)", fields).group(1))
    while len(body) < length:
        body += connection.recv(1 << 16)
    return int(fields.split()[1]), fields.decode(), body


def long_body(tokens=40000):
    """Seconds of computing from little text."""
    data = base64.b64encode(struct.pack(f"<{tokens}f", *[i * 0.618 % 1 for i in range(tokens)])).decode()
    return json.dumps({"inputs": {"query": {"shape": [tokens, 1], "dtype": "float32", "base64": data}},
                       "options": {"return": ["output"], "format": "base64"}}).encode()


@test
def gradients_are_charged(program):
    body = {"inputs": {"query": [[1, 2, 3, 4]] * 16, "grad_output": [[1, 1, 1, 1]] * 16}}
    with tempfile.NamedTemporaryFile("w") as file:
        token = key(program, file, "few", "compute", "flops=100")
        with Server(program, environment={"ATTND_KEYS": file.name}) as server:

            def compute():
                return server.client().send("POST", "/v1/attention/gradients", json.dumps(body).encode(),
                                            {"Content-Type": "application/json", "X-API-Key": token})

            assert compute().status == 200
            wait_until(lambda: compute().status == 429, "the gradients are not owed")
            assert b"quota of flops" in compute().body


@test
def of_requests_that_begin_at_once_one_overdraws_a_quota(program):
    body = long_body()
    with tempfile.NamedTemporaryFile("w") as file:
        token = key(program, file, "few", "compute", "flops=1e6")
        watch = key(program, file, "watch", "metrics")

        def running():
            text = server.client().send("GET", "/metrics", None, {"X-API-Key": watch}).body.decode()
            return float(re.search(r"^attnd_running_jobs (\S+)", text, re.M).group(1))

        with Server(program, environment={"ATTND_KEYS": file.name, "ATTND_COMPUTE_THREADS": "2"}) as server:
            first, second = connect(server), connect(server)
            for connection in (first, second):  # both are let in: nothing is owed yet
                connection.sendall(head(token, f"Content-Length: {len(body)}") + body[:1000])
            first.sendall(body[1000:])
            wait_until(lambda: running() >= 1, "the first request does not run")
            second.sendall(body[1000:])
            status, fields, text = answer(second)
            assert status == 429 and b"quota of flops" in text and b"few" in text, (status, text[:200])
            assert int(re.search(r"Retry-After: (\d+)", fields).group(1)) > 100, fields
            first.close()


@test
def a_body_is_owed_from_its_header_on(program):
    with tempfile.NamedTemporaryFile("w") as file:
        token = key(program, file, "few", "compute", "bytes=100")
        for length in ("Content-Length: 2000", "Transfer-Encoding: chunked"):
            with Server(program, environment={"ATTND_KEYS": file.name}) as server:
                first, second = connect(server), connect(server)
                first.sendall(head(token, length, "Expect: 100-continue"))
                assert first.recv(100).startswith(b"HTTP/1.1 100"), "the first request is not let in"
                second.sendall(head(token, length, "Expect: 100-continue"))
                status, _, text = answer(second)
                first.close()
                second.close()
                assert status == 429 and b"quota of bytes" in text, (length, status, text[:200])


@test
def a_chunked_body_is_owed_as_it_came(program):
    with tempfile.NamedTemporaryFile("w") as file:
        token = key(program, file, "few", "compute", "bytes=1000000")
        body = b'{"inputs":{"query":[[1,2]]}}'
        with Server(program, environment={"ATTND_KEYS": file.name}) as server:
            for _ in range(5):
                connection = connect(server)
                connection.sendall(head(token, "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
                status, _, text = answer(connection)
                assert status == 200, (status, text)
                connection.close()


def large_layer(width=1024):
    """A layer as safetensors: three weights of width x width float32 zeros."""
    size = 4 * width * width
    names = [f"weights.{name}.weight" for name in ("query", "key", "value")]
    tensors = {name: {"dtype": "F32", "shape": [width, width], "data_offsets": [i * size, (i + 1) * size]}
               for i, name in enumerate(names)}
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text + bytes(3 * size)


@test
def of_reads_that_begin_at_once_one_overdraws_a_quota(program):
    rate, layer, path, media = 100 << 10, large_layer(), "/v1/layers/large", "application/vnd.attnd.safetensors"
    with tempfile.NamedTemporaryFile("w") as file:
        owner, reader = key(program, file, "owner", "all"), key(program, file, "few", "compute", f"bytes={rate}")
        read = "\r\n".join((f"GET {path} HTTP/1.1", "Host: a", f"Accept: {media}", f"X-API-Key: {reader}")).encode()
        with Server(program, environment={"ATTND_KEYS": file.name}) as server:
            asked = {"X-API-Key": reader, "Accept": media}
            put = server.client().send("PUT", path, layer, {"X-API-Key": owner, "Content-Type": media})
            assert put.status == 201, put.body[:200]
            for _ in range(2):  # neither sends the layer, so neither owes it
                assert server.client().send("HEAD", path, None, asked).status == 200
                tag = {"If-None-Match": put.headers["ETag"]}
                assert server.client().send("GET", path, None, asked | tag).status == 304
            readers = [connect(server) for _ in range(8)]
            for connection in readers:
                connection.sendall(read + b"\r\n\r\n")
            beginnings = [connection.recv(500) for connection in readers]
            statuses = sorted(int(text.split()[1]) for text in beginnings)
            assert statuses == [200] + [429] * 7, statuses
            for connection in readers:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()

            def broken():
                return [int(line["bytes_out"]) for line in logged(server, path) if line.get("end") == "aborted"
                        and line["status"] == "200"]

            wait_until(broken, "the answer that was broken off is not in the log")
            sent = broken()[0]
            assert sent < len(layer), sent
            late = server.client().send("HEAD", path, None, asked)  # what was not sent came back
            wait_s = int(late.headers["Retry-After"]) if late.status == 429 else 0
            assert wait_s <= sent // rate + 1, (late.status, wait_s, sent)


@test
def models_are_counted_by_their_names(program):
    def count(name, model):
        return counted(server, f'{name}{{model="{model}",version="1"}}')

    def infer(model, version=""):
        inputs = [{"name": "QUERY", "shape": [2, 1], "datatype": "FP32", "data": [1, 2]}]
        return server.client().post(f"/v2/models/{model}{version}/infer", {"inputs": inputs}).status

    unit = {"weight": [[1]]}
    layer = {"weights": {"query": unit, "key": unit, "value": unit}}
    with Server(program) as server:
        for name in ("one", "idle"):
            assert server.client().send("PUT", f"/v1/layers/{name}", json.dumps(layer).encode(),
                                        {"Content-Type": "application/json"}).status == 201
        assert infer("one") == 200 and infer("one") == 200 and infer("attention") == 200
        assert infer("nothing") == 404 and infer("attention", "/versions/9") == 404
        assert server.client().post("/v2/models/one/infer", {"inputs": []}).status == 400
        assert count("nv_inference_request_success", "one") == 2
        assert count("nv_inference_request_failure", "one") == 1
        assert count("nv_inference_request_success", "attention") == 1
        assert count("nv_inference_request_failure", "attention") == 0
        text = server.client().get("/metrics").body.decode()
        assert 'model="idle"' not in text and 'model="nothing"' not in text, text


@test
def the_log_says_who_and_why(program):
    with Server(program, environment={"ATTND_TRUSTED_PROXIES": "127.0.0.0/8,10.0.0.0/8,2001:db8::/32"}) as server:
        cases = [
            ("/v1/attention?a", {}, "127.0.0.1"),
            ("/v1/attention?b", {"X-Forwarded-For": "203.0.113.7"}, "203.0.113.7"),
            # The client says what it likes; the proxy adds the truth behind it.
            ("/v1/attention?c", {"X-Forwarded-For": "198.51.100.1, 203.0.113.7:4711, 10.1.2.3"}, "203.0.113.7"),
            ("/v1/attention?d", {"X-Forwarded-For": "[2001:db9::1]:80,2001:db8::5"}, "2001:db9::1"),
            ("/v1/attention?e", {"X-Forwarded-For": "198.51.100.1, unknown"}, "127.0.0.1"),
            ("/v1/attention?f", {"X-Forwarded-For": "10.0.0.9"}, "10.0.0.9"),
            ("/v1/attention?g", {"X-Forwarded-For": "198.51.100.1, " * 500 + "203.0.113.7, 10.1.2.3"}, "203.0.113.7"),
            ("/v1/attention?h", {"X-Forwarded-For": "10.1.2.3" * 200}, "127.0.0.1"),
        ]
        for target, fields, _ in cases:
            server.client().send("POST", target, b'{"inputs":{"key":[[1]]}}', {"Content-Type": "application/json", **fields})
        wait_until(lambda: len(logged(server, "/v1/attention")) == len(cases), "the requests are not in the log")
        # A line is written behind its answer, so the lines of two connections may change places.
        assert sorted(line["client"] for line in logged(server, "/v1/attention")) == sorted(client for _, _, client in cases)
        server.client().post("/v1/attention", {"inputs": {"query": [[1]], "key": [[1, 2]]}})
        server.client().get("/nowhere")
        wait_until(lambda: logged(server, "/nowhere") and len(logged(server, "/v1/attention")) > len(cases), "two requests are not in the log")
        (line,) = logged(server, "/nowhere")
        assert line["problem"] == "/problems/not-found" and "pointer" not in line, line
        line = logged(server, "/v1/attention")[-1]
        assert line["problem"] == "/problems/shape" and line["pointer"] == "/inputs/key", line
    with Server(program) as server:
        server.client().send("GET", "/version", headers={"X-Forwarded-For": "203.0.113.7"})
        wait_until(lambda: logged(server, "/version"), "the request is not in the log")
        (line,) = logged(server, "/version")
        assert line["client"] == "127.0.0.1" and "problem" not in line, line


@test
def what_the_library_refuses_has_its_line(program):
    post = b"POST /v1/attention HTTP/1.1\r\nHost: a\r\n"
    cases = [  # where the library has read the target, the line has its path
        (b"GET /version HTTP/1.1\r\nHost: a\r\nHo st: x\r\n\r\n", 400, "bad-request", "/version"),
        (b"GET /version HTTP/1.1\r\n\r\n", 400, "bad-request", "/version"),
        (post + b"Content-Length: -1\r\n\r\n", 400, "bad-request", "/v1/attention"),
        (post + b"Content-Length: 99999999999999999999\r\n\r\n", 413, "body-too-large", "/v1/attention"),
        (post + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nno\r\n", 400, "bad-request", "/v1/attention"),
        (post + b"X: " + b"a" * 70000 + b"\r\n\r\n", 431, "header-too-large", "/v1/attention"),
        (b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414, "header-too-large", None),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, "bad-request", None),
    ]
    with Server(program) as server:
        def refused():
            return [dict(re.findall(r"(\w+)=(\S+)", line)) for line in server.lines if " status=4" in line or " status=505" in line]

        for number, (text, status, problem, path) in enumerate(cases, 1):
            with connect(server) as connection:
                connection.sendall(text)
                assert int(connection.recv(500).split()[1]) == status, text[:100]
            wait_until(lambda: len(refused()) >= number, f"not in the log: {text[:100]}")
            line = refused()[-1]
            assert line["status"] == str(status) and line["problem"] == f"/problems/{problem}", line
            assert line.get("client") == ("127.0.0.1" if path else None) and line.get("path") == path, line
            assert line["end"] == "refused" or b"Ho st" in text, line  # an older library leaves that one to the server
        counted_all = [counted(server, f'attnd_rejected_total{{reason="{name}"}}')
                       for name in ("bad-request", "body-too-large", "header-too-large")]
        assert counted_all == [5, 1, 2] and len(refused()) == len(cases), (counted_all, refused())
        assert counted(server, 'attnd_requests_total{method="other",route="other",status="505"}') == 1


@test
def each_refusal_of_the_library_is_counted_once_and_blames_nobody_else(program):
    """Many at once, beside good requests from another address on connections that end."""
    def send(source, text, status, times):
        for _ in range(times):
            with socket.create_connection((parts.hostname, parts.port), PATIENCE_SECONDS, (source, 0)) as connection:
                connection.sendall(text)
                assert int(connection.recv(500).split()[1]) == status

    good, bad = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"GET / HTTP/9.9\r\nHost: a\r\n\r\n"
    with Server(program) as server:
        parts = urllib.parse.urlsplit(server.url)
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            for done in [pool.submit(send, "127.0.0.2", good, 200, 10) if n % 2 else pool.submit(send, "127.0.0.3", bad, 505, 10) for n in range(20)]:
                done.result()
        wait_until(lambda: counted(server, 'attnd_requests_total{method="other",route="other",status="505"}') == 100, "each refusal is counted")
        logged = lambda: [line for line in server.lines if " status=505" in line]  # noqa: E731
        wait_until(lambda: len(logged()) >= 100, "each refusal is logged")
        assert len(logged()) == 100 and not any("127.0.0.2" in line for line in logged()), logged()[:3]


@test
def a_mixed_load_answers_the_operators_four_questions(program):
    path = "/v1/attention"
    with tempfile.NamedTemporaryFile("w") as file:
        alice, bob = key(program, file, "alice", "compute"), key(program, file, "bob", "compute", "requests=0.001")
        eyes = key(program, file, "eyes", "metrics")
        load = {"COMPUTE_THREADS": "1", "QUEUE": "1", "CONNECTIONS": "50", "LAYERS_MAX": "7", "TRUSTED_PROXIES": "127.0.0.1"}
        with Server(program, environment={"ATTND_KEYS": file.name} | {f"ATTND_{name}": v for name, v in load.items()}) as server:
            def post(token, body=b'{"inputs":{"query":[[1,2]]}}', **fields):
                return server.client().send("POST", path, body, {"Content-Type": "application/json", "X-API-Key": token, **fields}).status

            def metrics():
                text = server.client().send("GET", "/metrics", None, {"X-API-Key": eyes}).body.decode()
                return {name: float(value) for name, value in re.findall(r"^([^#\s]+) (\S+)$", text, re.M)}

            idle = metrics()
            assert post(alice) == 200 and post(alice, b'{"inputs":{}}') == 400 and post("wrong") == 401
            assert post(bob, **{"X-Forwarded-For": "203.0.113.7"}) == 200 and post(bob) == 429
            body = long_body()
            long = [connect(server), connect(server)]
            for number, connection in enumerate(long, 1):  # one computes, one waits
                connection.sendall(head(alice, f"Content-Length: {len(body)}") + body)
                wait_until(lambda: sum(metrics()[f"attnd_{name}_jobs"] for name in ("running", "queue")) == number, "no place is taken")
            assert post(alice, body) == 503
            now = metrics()
            for connection in long:
                connection.close()
            wait_until(lambda: len(logged(server, path)) == 8, "eight requests are not in the log")

            # Who, and why: by key and address, with the problem of a refusal.
            said = [(line.get("key"), line["client"], line["status"], line.get("problem")) for line in logged(server, path)]
            local = "127.0.0.1"
            assert sorted(said[:6], key=str) == sorted([
                ("alice", local, "200", None), ("alice", local, "400", "/problems/field"), (None, local, "401", "/problems/unauthorized"),
                ("bob", "203.0.113.7", "200", None), ("bob", local, "429", "/problems/quota"), ("alice", local, "503", "/problems/busy")], key=str), said
            assert [line[2:] for line in said[6:]] == [("503", "/problems/cancelled")] * 2, said  # their clients have left
            assert metrics()['attnd_cancelled_total{reason="client_gone"}'] == 2
            for reason in ("field", "unauthorized", "quota", "busy"):
                assert now[f'attnd_rejected_total{{reason="{reason}"}}'] == 1, reason

            # How long: by stage and by route.
            line = next(line for line in logged(server, path) if line["status"] == "200")
            assert 0 < float(line["compute_ms"]) < float(line["total_ms"]), line
            route = f'{{method="POST",route="{path}"}}'
            assert now[f"attnd_route_seconds_count{route}"] == 6 and now[f"attnd_route_seconds_sum{route}"] > 0
            assert now['attnd_request_seconds_sum{stage="compute"}'] > 0

            # How full: what is in use, beside its limit.
            assert [now["attnd_running_jobs"], now["attnd_running_limit"], now["attnd_queue_jobs"], now["attnd_queue_limit"]] == [1] * 4
            assert 3 <= now["attnd_connections"] <= now["attnd_connections_limit"] == 50
            assert idle["attnd_memory_bytes"] < now["attnd_memory_bytes"] < now["attnd_memory_limit_bytes"]
            assert now['attnd_quota_left{key="bob",quota="requests"}'] < now['attnd_quota_limit{key="bob",quota="requests"}'] / 2
            assert now["attnd_layers_limit"] - now["attnd_layers"] == 7 and now["attnd_layers_bytes"] < now["attnd_layers_limit_bytes"]
            assert now["attnd_layers_prepared_bytes"] < now["attnd_layers_prepared_limit_bytes"]


@test
def a_client_sees_its_quota_coming(program):
    with tempfile.TemporaryDirectory() as folder:
        shown = [subprocess.run([program, "key", *words], capture_output=True, text=True, check=True)
                 for words in (("app", "compute", "requests=5,bytes=1M"), ("free", "compute"), ("eyes", "metrics"))]
        with open(f"{folder}/keys", "w", encoding="utf-8") as file:
            file.write("".join(made.stdout for made in shown))
        app, free, eyes = (made.stderr.split()[-1] for made in shown)
        with Server(program, environment={"ATTND_KEYS": f"{folder}/keys"}) as server:
            def ask(key):
                return server.client().send("POST", "/v1/attention", b"{}", {"X-API-Key": key}).headers

            first, second = ask(app), ask(app)
            assert first["RateLimit-Policy"] == '"requests";q=5;w=1, "bytes";q=1048576;w=1', first
            left = [int(re.match(r'"requests";r=(\d);t=1, "bytes";r=\d+;t=[01]$', fields["RateLimit"])[1])
                    for fields in (first, second)]
            assert left[0] == 4 and left[1] <= 4, left
            assert "RateLimit" not in ask(free)
            text = server.client().send("GET", "/metrics", headers={"X-API-Key": eyes}).body.decode()
            assert 'attnd_quota_limit{key="app",quota="requests"} 5\n' in text and 'key="free"' not in text, text


@test
def the_document_is_sent_once(program):
    with Server(program) as server:
        for fields in ({}, {"Accept-Encoding": "gzip"}):
            reply = server.client().send("GET", "/openapi.json", headers=fields)
            assert reply.status == 200 and reply.headers["Cache-Control"] == "no-cache", reply.headers
            again = server.client().send("GET", "/openapi.json", headers={"If-None-Match": reply.headers["ETag"], **fields})
            assert again.status == 304 and again.body == b"", (again.status, again.headers)
