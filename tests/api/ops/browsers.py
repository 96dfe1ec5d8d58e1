"""browsers.py: the requests that a page in a browser may send and read: Origin, Sec-Fetch-Site and Host, path by path."""

import http.client
import json
import subprocess
import tempfile
import urllib.parse

from attnd import Server, wait_until
from suite import registry

TESTS = []
EVIL = "https://evil.example"
FRIEND = "https://friend.example"
BODY = {"inputs": {"query": [[1, 2]]}}
CACHED = {"inputs": {"query": [[1, 2]]}, "options": {"cache": "c"}}
LAYER = {"weights": {"query": {"weight": [[1]]}, "key": {"weight": [[1]]}, "value": {"weight": [[1]]}}}
TEXT = {"inputs": {"text": "the animal"}}
SCORED = {**TEXT, "options": {"metric": {"words": [5]}}}
INFER = {"inputs": [{"name": "QUERY", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}
OPEN = [("GET", "/", None), ("GET", "/docs", None), ("GET", "/openapi.json", None), ("GET", "/livez", None),
        ("GET", "/readyz", None), ("GET", "/version", None), ("GET", "/v2/health/live", None),
        ("GET", "/v2/health/ready", None), ("POST", "/v1/attention", BODY),
        ("GET", "/v1/models/demo", None), ("POST", "/v1/models/demo/tokens", TEXT), ("POST", "/v1/models/demo/gradients", SCORED),
        ("GET", "/v1/models/small", None), ("POST", "/v1/models/small/tokens", TEXT),
        ("GET", "/v2/models/attention", None), ("POST", "/v2/models/attention/infer", INFER),
        ("POST", "/v2/models/attention/versions/1/infer", INFER)]
GUARDED = [("GET", "/v1/layers", None), ("PUT", "/v1/layers/a", LAYER), ("GET", "/v1/layers/a", None),
           ("HEAD", "/v1/layers/a", None), ("POST", "/v1/layers/a/attention", {"inputs": {"query": [[1]]}}),
           ("DELETE", "/v1/layers/a", None), ("GET", "/v1/caches", None), ("GET", "/v1/caches/c", None),
           ("DELETE", "/v1/caches/c", None), ("GET", "/v1/models", None), ("GET", "/v1/models/a", None),
           ("POST", "/v1/models/a/tokens", TEXT), ("POST", "/v1/models/a/gradients", SCORED), ("GET", "/metrics", None), ("GET", "/v2", None), ("GET", "/v2/models", None),
           ("GET", "/v2/models/stats", None), ("GET", "/v2/models/a", None), ("POST", "/v2/repository/index", {}),
           ("POST", "/v2/repository/models/a/unload", {}), ("POST", "/v2/repository/models/a/load", {}),
           ("POST", "/v1/attention", CACHED), ("GET", "/nothing", None)]
FOREIGN = [{"Origin": EVIL}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "cross-site"},
           {"Sec-Fetch-Site": "same-site"}, {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
           {"Origin": "null", "Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "cross-site", "Origin": "HOST"}]
OWN = [{}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": "HOST"},
       {"Origin": "HOST", "Sec-Fetch-Site": "same-origin"}, {"Origin": "HOST over TLS"}]


test = registry(TESTS)


def settings(**values):
    return {"ATTND_" + name.upper(): value for name, value in {"no_models": "off", **values}.items()}


def ask(server, method, path, body, headers):
    address = urllib.parse.urlsplit(server.url).netloc
    origins = {"HOST": f"http://{address}", "HOST over TLS": f"https://{address}"}
    headers = {name: origins.get(value, value) for name, value in headers.items()}
    return server.client().send(method, path, None if body is None else json.dumps(body).encode(),
                                {**({"Content-Type": "application/json"} if body is not None else {}), **headers})


def preflight(server, path, origin, method="PUT"):
    return server.client().send("OPTIONS", path, None, {
        "Origin": origin, "Access-Control-Request-Method": method, "Sec-Fetch-Site": "cross-site"})


def permission(reply):
    return (reply.headers["Access-Control-Allow-Origin"], reply.headers["Timing-Allow-Origin"],
            reply.headers["Cross-Origin-Resource-Policy"])


@test
def every_page_may_ask_what_is_open_and_keeps_nothing(program):
    with Server(program, environment=settings()) as server:
        for method, path, body in OPEN:
            for headers in FOREIGN + OWN:
                reply = ask(server, method, path, body, headers)
                assert reply.status == 200 and permission(reply) == ("*", "*", None), (method, path, headers, reply.status)
                assert reply.headers["Access-Control-Allow-Credentials"] is None
                assert reply.headers["X-Content-Type-Options"] == "nosniff", path
                assert "Origin" not in (reply.headers["Vary"] or ""), path


@test
def what_is_guarded_is_for_our_own_pages_and_for_programs(program):
    with Server(program) as server:
        for method, path, body in GUARDED:
            for headers in FOREIGN:
                reply = ask(server, method, path, body, headers)
                assert reply.status == 403, (method, path, headers, reply.status)
                assert permission(reply) == (None, None, "same-origin"), (path, headers, permission(reply))
                if method != "HEAD":
                    assert reply.json()["type"] == "/problems/foreign-origin", reply.body
        assert ask(server, "GET", "/v1/caches", None, {}).json() == {"caches": []}
        assert ask(server, "GET", "/v1/layers?after=demo.z", None, {}).json()["layers"] == []
        for headers in OWN:
            for method, path, body in GUARDED:
                reply = ask(server, method, path, body, headers)
                assert reply.status != 403, (method, path, headers)
                assert permission(reply) == (None, None, "same-origin"), (path, headers, permission(reply))
                assert reply.headers["X-Content-Type-Options"] == "nosniff", path


@test
def a_foreign_page_can_neither_begin_nor_continue_a_cache(program):
    length = lambda: ask(server, "GET", "/v1/caches/c", None, {}).json().get("length")  # noqa: E731
    with Server(program) as server:
        for round in (1, 2):
            for headers in FOREIGN:
                reply = ask(server, "POST", "/v1/attention", CACHED, headers)
                assert reply.status == 403 and permission(reply) == (None, None, "same-origin"), (headers, reply.status)
            assert length() == (None if round == 1 else 1)
            if round == 1:
                assert ask(server, "POST", "/v1/attention", CACHED, {"Sec-Fetch-Site": "same-origin"}).status == 200
        # A body that only a compute thread may read is decided no other way.
        large = {"inputs": {"query": [[1, 2]] * 2000}, "options": {"cache": "c", "return": ["output"]}}
        assert ask(server, "POST", "/v1/attention", large, {"Origin": EVIL}).status == 403 and length() == 1


@test
def a_named_origin_reaches_what_is_guarded(program):
    with Server(program, environment=settings(cors_origin=f"*, {FRIEND}")) as server:
        for method, path, body in GUARDED:
            reply = ask(server, method, path, body, {"Origin": FRIEND, "Sec-Fetch-Site": "cross-site"})
            assert reply.status != 403 and permission(reply) == (FRIEND, FRIEND, "same-origin"), (path, reply.status)
            assert "Origin" in reply.headers["Vary"], path
            assert ask(server, method, path, body, {"Origin": EVIL}).status == 403, path
        for method, path, body in OPEN:
            for origin in (FRIEND, EVIL):
                reply = ask(server, method, path, body, {"Origin": origin})
                assert reply.status == 200 and permission(reply)[0] == "*" and "Origin" in reply.headers["Vary"], path
    with Server(program, environment=settings(cors_origin=FRIEND)) as server:
        for method, path, body in OPEN:
            assert permission(ask(server, method, path, body, {"Origin": FRIEND}))[0] == FRIEND
            assert permission(ask(server, method, path, body, {"Origin": EVIL}))[0] is None
    with Server(program, environment=settings(cors_origin="none")) as server:
        assert permission(ask(server, "POST", "/v1/attention", BODY, {"Origin": FRIEND})) == (None, None, None)


@test
def a_preflight_is_decided_like_what_it_asks_for(program):
    with Server(program, environment=settings(cors_origin=f"*,{FRIEND}")) as server:
        for path in ("/v1/layers/a", "/v1/caches/c", "/v2/repository/models/a/unload"):
            reply = preflight(server, path, EVIL)
            assert reply.status == 403 and reply.headers["Access-Control-Allow-Origin"] is None, path
            assert reply.headers["Access-Control-Allow-Methods"] is None
            reply = preflight(server, path, FRIEND)
            assert reply.status == 204 and reply.headers["Access-Control-Allow-Origin"] == FRIEND, path
        reply = preflight(server, "/v2/models/attention/infer", EVIL, "POST")
        assert reply.status == 204 and reply.headers["Access-Control-Allow-Origin"] == "*"
        asked = {name.strip().lower() for name in reply.headers["Access-Control-Allow-Headers"].split(",")}
        assert {"inference-header-content-length", "baggage", "tracestate", "traceparent", "content-type"} <= asked, asked
        shown = ask(server, "GET", "/livez", None, {"Origin": EVIL}).headers["Access-Control-Expose-Headers"]
        assert "Inference-Header-Content-Length" in shown, shown


@test
def with_keys_the_key_decides(program):
    made = subprocess.run([program, "key", "page", "compute,layers"], capture_output=True, text=True, check=True)
    key = made.stderr.split()[-1]
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(made.stdout)
        file.flush()
        with Server(program, environment=settings(keys=file.name, host_names="none")) as server:
            for headers in FOREIGN:
                assert ask(server, "GET", "/v1/layers", None, headers).status == 401
                assert ask(server, "GET", "/v1/caches", None, {**headers, "X-API-Key": key}).status == 200
                reply = ask(server, "POST", "/v1/attention", CACHED, {**headers, "X-API-Key": key})
                assert reply.status == 200 and permission(reply) == (None, None, "same-origin"), reply.status
                assert ask(server, "DELETE", "/v1/caches/c", None, {**headers, "X-API-Key": key}).status == 204
            assert preflight(server, "/v1/layers/a", EVIL).headers["Access-Control-Allow-Origin"] is None
            assert ask(server, "GET", "/livez", None, {"Host": "evil.example"}).status == 200


@test
def a_refusal_is_logged_with_the_setting_that_allows_it(program):
    with Server(program) as server:
        said = lambda text: any(text in line for line in server.lines)  # noqa: E731
        ask(server, "GET", "/v1/layers", None, {"Origin": EVIL})
        wait_until(lambda: said(f'allowed_by="--cors-origin {EVIL}"'), "no line about the origin")
        ask(server, "GET", "/v1/layers", None, {"Host": "evil.example:80"})
        wait_until(lambda: said('allowed_by="--host-names evil.example"'), "no line about the host")
        ask(server, "GET", "/v1/layers", None, {"Origin": "null"})
        wait_until(lambda: said("null cannot be named"), "no line about null")
        hostile = 'https://a" x=1 \\' + "x" * 4000
        ask(server, "GET", "/v1/layers", None, {"Origin": hostile})
        wait_until(lambda: said("https://a\\\" x=1"), "no line about the long one")


# ---- Host ----

def host(server, value, path="/livez", version="1.1"):
    """The status for that Host, or without one for None."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc, timeout=30)
    connection._http_vsn_str = f"HTTP/{version}"
    connection._http_vsn = int(version.replace(".", ""))
    connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
    if value is not None:
        connection.putheader("Host", value)
    connection.endheaders()
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    assert reply.status != 421 or json.loads(text)["type"] == "/problems/foreign-host", text
    return reply.status


@test
def only_a_host_of_ours_is_answered(program):
    ours = ("127.0.0.1", "127.0.0.1:1", "10.0.0.7:8080", "[::1]", "[::1]:80", "localhost", "LOCALHOST.", "a.localhost:9")
    foreign = ("evil.example", "rebind.evil.example:8080", "localhost.evil.example", "attnd", "")
    with Server(program, environment=settings(host_names="none")) as server:
        for path in ("/", "/livez", "/v1/layers", "/nothing"):
            expected = 404 if path == "/nothing" else 200
            assert [host(server, value, path) for value in ours] == [expected] * len(ours), path
            assert [host(server, value, path) for value in foreign] == [421] * len(foreign), path
        assert host(server, None, version="1.0") == 200 and host(server, "evil.example", version="1.0") == 421
        assert host(server, None) == 400
    with Server(program, environment=settings(host_names="Attnd.example, b.example")) as server:
        assert [host(server, value) for value in ("attnd.EXAMPLE.:1", "b.example", "localhost", "127.0.0.1")] == [200] * 4
        assert host(server, "c.example") == 421
    # Beyond the loopback any name may lead here, unless some are given.
    reachable = {"listen": "0.0.0.0:0", "open": "on"}
    with Open(program, environment=settings(host_names="none", **reachable)) as server:
        assert host(server, "evil.example") == 200
    with Open(program, environment=settings(host_names="localhost", **reachable)) as server:
        assert host(server, "evil.example") == 421 and host(server, "localhost:8080") == 200


class Open(Server):
    """Listens on every address; the log says 0.0.0.0."""

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            if "listening on http://0.0.0.0:" in line:
                self.url = "http://127.0.0.1:" + line.split("http://0.0.0.0:")[1].split(",")[0].split()[0]
                self.port_seen.set()


@test
def a_list_that_cannot_be_meant_is_refused_at_the_start(program):
    for value in ("null", "*,null", "a.example", "https://a.example/", "https://a.example/x", "", "none,*", ","):
        done = subprocess.run([program, "--cors-origin", value], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "--cors-origin" in done.stderr and "null cannot be named" in done.stderr, value
    for value in ("*", "https://a.example", "a.example:8080", "[::1]", "", "a.example,none"):
        done = subprocess.run([program, "--host-names", value], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "--host-names" in done.stderr, value


# ---- the type of a body ----

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PLAIN = {"Content-Type": "text/plain;charset=UTF-8"}


@test
def what_programs_call_a_form_or_plain_text_is_json_unless_a_page_sends_it(program):
    layer, small = json.dumps(LAYER).encode(), json.dumps(BODY).encode()
    with Server(program) as server:
        send = server.client().send
        for method, path, body in (("POST", "/v1/attention", small), ("PUT", "/v1/layers/a", layer),
                                   ("POST", "/v2/models/attention/infer", json.dumps(INFER).encode()),
                                   ("POST", "/v2/repository/models/a/load", b"{}"), ("POST", "/v2/repository/index", b"")):
            for kind in (FORM, PLAIN):
                assert send(method, path, body, kind).status in (200, 201), path
                for page in ({"Origin": server.url}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
                    own = send(method, path, body, {**kind, **page})
                    assert own.status == (200 if body == b"" else 415) or own.status == 403, (path, page, own.status)
        for kind in ("text/plain; charset=latin1", "text/html", "multipart/form-data; boundary=x"):
            refused = send("POST", "/v1/attention", small, {"Content-Type": kind})
            assert refused.status == 415 and "JSON must be UTF-8" in refused.json()["error"], kind
        # What Triton's client for C++ sends.
        for path in ("/v2/repository/index", "/v2/repository/models/a/unload", "/v2/repository/models/a/load"):
            assert send("POST", path, b"", FORM).status == 200, path
            assert send("POST", path, b"", {"Content-Type": "text/plain"}).status == 200, path
        assert send("POST", "/v2/models/attention/infer", b"", {"Content-Type": "text/plain"}).status == 400
        assert send("POST", "/v1/attention", b"", {"Content-Type": "text/html"}).status == 415


# ---- what else an answer and the log must not give away ----

@test
def a_key_in_the_query_does_not_reach_the_log(program):
    with Server(program, environment=settings(log_level="debug")) as server:
        for path in ("/v1/layers?api_key=sesame", "/?sesame", "/nothing?a=b?sesame", "/v1/attention?api_key=sesame"):
            server.client().get(path)
        assert ask(server, "POST", "/v1/attention?api_key=sesame", BODY, {}).status == 400
        assert ask(server, "GET", "/livez", None, {"X-Request-Id": "the-end"}).status == 200
        wait_until(lambda: any("id=the-end" in line for line in server.lines), "no line")
        said = "".join(server.lines)
        assert "sesame" not in said and "path=/v1/layers " in said and "path=/nothing " in said, said


@test
def a_picture_may_run_nothing(program):
    with Server(program) as server:
        reply = ask(server, "POST", "/v1/attention", BODY, {"Accept": "image/svg+xml"})
        assert reply.headers["Content-Type"] == "image/svg+xml"
        assert reply.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert ask(server, "POST", "/v1/attention", BODY, {}).headers["Content-Security-Policy"] is None
