"""live.py: checks that a running server agrees with the document. Each check yields a sentence per difference."""

import base64
import contextlib
import gzip
import hashlib
import http.client
import json
import math
import pathlib
import re
import sys
import tempfile
import threading
import time

API = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(API.parent / "support"))

import bodies  # noqa: E402
from attnd import Reply, Server  # noqa: E402
from document import JSON  # noqa: E402
from schema import complaints  # noqa: E402
from suite import one_in  # noqa: E402
from tensors import Tensor, worst_excess  # noqa: E402

# Kernels differ in the last bits of a float32, which has 24; where numbers cancel, the bits of the larger ones count.
RELATIVE, ABSOLUTE = 1e-6, 1e-7
# What differs from machine to machine and from request to request.
VARYING = {"/effective/kernel", "/request_id", "/libraries/http", "/libraries/json", "/libraries/blas", "/kernel",
           "/threads/io", "/threads/compute", "/compiler", "/modified", "/layers/N/modified", "/idle_s", "/caches/N/idle_s"}
# Of every HTTP message, and described by HTTP.
# Those of every answer, and of every answer to a key with quotas, which the description of the document names.
COMMON_FIELDS = {"date", "content-type", "content-length", "connection", "ratelimit", "ratelimit-policy"}
OTHER_METHODS = ("PUT", "PATCH", "DELETE", "TRACE", "POST", "GET")
PATIENCE_SECONDS = 30
UNKNOWN = "no_such_member"
SPOILT_VALUES = (None, True, -1, 0.5, 1e300, "word", [], ["word"], [[[[[1]]]]], {}, {UNKNOWN: 1})


def is_varying(pointer):
    return re.sub(r"/\d+/", "/N/", pointer) in VARYING


class Servers:
    """A server in each of the states that examples ask for."""

    def __init__(self, program, document, stack):
        self.program, self.document, self.stack, self.clients = program, document, stack, {}

    def client(self, state):
        """With the layer and the cache of the examples kept, whatever was done to them before."""
        if state not in self.clients:
            self.clients[state] = getattr(self, f"_{state}")()
        if state == "idle":
            self._keep_layer(self.clients[state])
            self._keep_cache(self.clients[state])
        return self.clients[state]

    def _keep_layer(self, client):
        operation = self.document.operation("/v1/layers/{name}", "PUT")
        (example,) = operation.request_examples.values()
        client.send("PUT", operation.target, json.dumps(example["value"]).encode(), {"Content-Type": JSON})
        client.send("GET", "/v1/layers")  # so that all digests are known, whatever was asked before an example

    def _keep_cache(self, client):
        client.send("DELETE", self.document.operation("/v1/caches/{name}", "DELETE").target)
        client.post("/v1/attention", {"inputs": {"query": [[0.5, 0.25]]}, "options": {"cache": "sequence"}})

    def _idle(self):
        models = pathlib.Path(__file__).resolve().parents[2] / "others" / "models"
        environment = {"ATTND_MODEL": f"broken={models},tiny={models}/bert"}  # the first has no config.json
        return self.stack.enter_context(Server(self.program, environment=environment)).client()

    def _full(self):
        """One that may keep as many layers as it does."""
        return self.stack.enter_context(Server(self.program, environment={"ATTND_LAYERS_MAX": "0", "ATTND_LAYERS_BYTES": "1G"})).client()

    def _readonly(self):
        directory = self.stack.enter_context(tempfile.TemporaryDirectory())
        environment = {"ATTND_LAYERS": directory, "ATTND_LAYERS_READONLY": "on"}
        return self.stack.enter_context(Server(self.program, environment=environment)).client()

    def _keyed(self):
        """One that wants the API keys of the examples."""
        lines = [f"{name}:{hashlib.sha256(f'example-of-{name}'.encode()).hexdigest()}:{name}:requests=1\n"
                 for name in ("compute", "metrics")]
        keys = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory())) / "keys"
        keys.write_text("".join(lines))
        return self.stack.enter_context(Server(self.program, environment={"ATTND_KEYS": str(keys)})).client()

    def _busy(self):
        """One compute thread, no queue, and a request that comes again and again."""
        return self._occupied({"ATTND_QUEUE": "0"}, [8192])

    def _late(self):
        """One compute thread, the shortest deadline, and requests in the queue that take longer."""
        return self._occupied({"ATTND_DEADLINE": "1"}, [1 << 16] * 3)

    def _occupied(self, environment, lengths):
        """A server with one compute thread, and for each length a client that asks again and again."""
        environment = {"ATTND_COMPUTE_THREADS": "1", **environment}
        server = self.stack.enter_context(Server(self.program, environment=environment))
        is_over = threading.Event()
        for length in lengths:
            thread = threading.Thread(target=keep_busy, args=(server.client(), length, is_over))
            thread.start()
            self.stack.callback(thread.join)
        self.stack.callback(is_over.set)
        return server.client()

    def _draining(self):
        """One that was told to stop; a second SIGTERM, at the end, cuts its delay short."""
        # The BLAS would start a thread before main, and a signal that comes early could end the process there.
        environment = {"ATTND_DRAIN_DELAY": "30", "OPENBLAS_NUM_THREADS": "1"}
        server = self.stack.enter_context(Server(self.program, environment=environment))
        server.process.terminate()
        return server.client()


def keep_busy(client, length, is_over):
    query = {"shape": [length, 1], "dtype": "bool", "base64": base64.b64encode(bytes(length)).decode()}
    request = {"inputs": {"query": query}, "options": {"return": ["lse"]}}
    while not is_over.is_set():
        client.post("/v1/attention", request)


def send(servers, exchange):
    """The reply; a server that is not yet in the state asked for is asked again."""
    client = servers.client(exchange.server)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        reply = send_as_written(client, exchange)
        if reply.status == exchange.status or exchange.server == "idle" or time.monotonic() > deadline:
            return reply


def send_as_written(client, exchange):
    """A body that is only announced is not sent, and a missing length is not added."""
    if exchange.body is not None:
        return client.send(exchange.method, exchange.path, exchange.body, exchange.headers)
    connection = http.client.HTTPConnection(client.connection.host, client.connection.port, timeout=PATIENCE_SECONDS)
    with contextlib.closing(connection):
        connection.putrequest(exchange.method, exchange.path, skip_host="Host" in exchange.headers,
                              skip_accept_encoding=True)
        for name, value in exchange.headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        reply = connection.getresponse()
        return Reply(reply.status, reply.headers, reply.read())


def check_exchanges(document, servers):
    for exchange in document.exchanges():
        reply = send(servers, exchange)
        yield from (f"{exchange}: {wrong}" for wrong in judge(document, exchange, reply))


def judge(document, exchange, reply):
    if reply.status != exchange.status:
        yield f"status {reply.status}: {reply.body[:300].decode(errors='replace')}"
        return
    if reply.headers["Content-Type"] != exchange.media:
        yield f"Content-Type {reply.headers['Content-Type']}"
    yield from difference(bodies.read_body(exchange.media, reply.body),
                          bodies.recorded(exchange.media, exchange.example), "")
    if exchange.media.endswith("json"):
        yield from complaints(reply.json(), exchange.schema, document.resolve)
    yield from judge_fields(document, exchange.response, reply)


def judge_fields(document, response, reply):
    documented = {name.lower(): document.resolve(node) for name, node in response.get("headers", {}).items()}
    received = {name.lower(): value for name, value in reply.headers.items()}
    for name in received.keys() - documented.keys() - COMMON_FIELDS:
        yield f"the field {name} is not documented"
    for name, node in documented.items():
        if name in received:
            is_number = document.resolve(node["schema"]).get("type") == "integer"
            value = int(received[name]) if is_number else received[name]
            yield from (f"{name} {wrong}" for wrong in complaints(value, node["schema"], document.resolve))
        elif node.get("required"):
            yield f"the field {name} is missing"


def difference(got, wanted, pointer):
    """Sentences about where two answers differ: members, and numbers beyond the tolerance."""
    if is_varying(pointer):
        return
    if isinstance(wanted, dict) and isinstance(got, dict):
        if set(got) != set(wanted):
            yield f"{pointer or '/'} has {sorted(got)}, documented is {sorted(wanted)}"
        elif "base64" in wanted:
            wrong = worst_excess(Tensor.from_json(got), Tensor.from_json(wanted), RELATIVE, ABSOLUTE)
            yield from [f"{pointer}: {wrong}"] if wrong else []
        else:
            for name in wanted:
                yield from difference(got[name], wanted[name], f"{pointer}/{name}")
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for index, (mine, theirs) in enumerate(zip(got, wanted)):
            yield from difference(mine, theirs, f"{pointer}/{index}")
    elif not is_close(got, wanted):
        yield f"{pointer} is {str(got)[:200]!r}, documented is {str(wanted)[:200]!r}"


def is_close(got, wanted):
    if any(isinstance(item, bool) or not isinstance(item, (int, float)) for item in (got, wanted)):
        return type(got) is type(wanted) and got == wanted
    return math.isclose(got, wanted, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def check_routes(document, servers):
    """Every documented operation is there; every other method is refused with the documented ones in Allow."""
    client = servers.client("idle")
    everywhere = set()
    for path in document.root["paths"]:
        documented = with_implied(document.methods(path))
        everywhere |= documented
        for method in documented | set(OTHER_METHODS):
            body = b"{}" if method in ("POST", "PUT") else None
            reply = servers.client("idle").send(method, document.target(path), body)
            allowed = set(reply.headers.get("Allow", "").split(", "))
            if (reply.status in (404, 405)) == (method in documented):
                yield f"{method} {path} is answered {reply.status}"
            elif (method not in documented or method == "OPTIONS") and allowed != documented:
                yield f"{method} {path} says Allow: {sorted(allowed)}, documented are {sorted(documented)}"
    reply = client.send("OPTIONS", "*")
    if set(reply.headers["Allow"].split(", ")) != everywhere:
        yield f"OPTIONS * says Allow: {reply.headers['Allow']}, documented are {sorted(everywhere)}"
    if client.get("/no-such-path").status != 404:
        yield "a path that is not there is not answered 404"


def with_implied(methods):
    """The document leaves out what every path answers: OPTIONS, and HEAD where there is GET."""
    return methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())


def check_implied_methods(document, servers):
    """HEAD has the status and the fields of GET, OPTIONS 204; neither has a body, for a page of the server's own too."""
    client = servers.client("idle")
    own = f"http://{client.connection.host}:{client.connection.port}"
    for path in document.root["paths"]:
        target = document.target(path)
        for headers in ({}, {"Origin": own, "Access-Control-Request-Method": "POST"}):
            reply = client.send("OPTIONS", target, None, headers)
            if reply.status != 204 or reply.body or "Allow" not in reply.headers:
                yield f"OPTIONS {path} is answered {reply.status} with {len(reply.body)} bytes"
            if "GET" not in document.methods(path):
                continue
            reply = client.send("HEAD", target, None, headers)
            if reply.status != 200 or reply.body:
                yield f"HEAD {path} is answered {reply.status} with {len(reply.body)} bytes"
            yield from (f"HEAD {path}: {wrong}" for wrong in
                        judge_fields(document, document.operation(path, "GET").response(200), reply))


def check_header_limit(document, servers):
    """An example of it would be longer than the document."""
    client = servers.client("idle")
    for operation in document.operations():
        reply = client.send(operation.method, operation.target, None, {"X-Long": "x" * (33 << 10)})
        response = operation.response(reply.status)
        yield from (f"{operation} 431: {wrong}" for wrong in judge_fields(document, response, reply))
        if reply.status != 431:
            yield f"{operation} with a long header is answered {reply.status}"


def check_served_text(document, servers):
    reply = servers.client("idle").get("/openapi.json")
    if reply.body != "".join(document.texts.values()).encode():
        yield f"GET /openapi.json is not the text of the document that was built: the server was built from another one"


def check_gzip(document, servers):
    """Clients that accept gzip get embedded files gzipped, with the same content."""
    client = servers.client("idle")
    for path in ("/openapi.json", "/docs", "/"):
        accept = {"Accept": "text/html, application/json;q=0.5"}
        plain = client.send("GET", path, None, accept)
        packed = client.send("GET", path, None, {**accept, "Accept-Encoding": "gzip"})
        if packed.headers["Content-Encoding"] != "gzip" or gzip.decompress(packed.body) != plain.body:
            yield f"GET {path} differs when it is gzipped"
        yield from judge_fields(document, document.operation(path, "GET").response(200), packed)


def check_docs(document, servers):
    """The page asks no other host for anything, its policy allows nothing else, and it need not be sent twice."""
    client = servers.client("idle")
    page = client.get("/docs")
    text = page.body.decode()
    yield from (f"GET /docs names {url}" for url in re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s'\"]*", text)
                if url != "http://www.w3.org/2000/svg")
    policy = dict(part.strip().split(" ", 1) for part in page.headers["Content-Security-Policy"].split(";"))
    if policy.get("default-src") != "'none'" or policy.get("connect-src") != "'self'":
        yield f"the policy of GET /docs is {policy}"
    for kind, element in (("script-src", "script"), ("style-src", "style")):
        inside = re.search(rf"<{element}[^>]*>(.*?)</{element}>", text, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        if policy.get(kind) != f"'sha256-{digest}'":
            yield f"the policy of GET /docs has {kind} {policy.get(kind)}, the page has {digest}"
    for tag, status in ((page.headers["ETag"], 304), ('"another"', 200)):
        reply = client.send("GET", "/docs", None, {"If-None-Match": tag})
        if reply.status != status or (status == 304) != (not reply.body):
            yield f"GET /docs with If-None-Match: {tag} is answered {reply.status} with {len(reply.body)} bytes"
        yield from judge_fields(document, document.operation("/docs", "GET").response(reply.status), reply)


def check_index(document, servers):
    """Every path is linked, or lies below one that is; what only the page fetches aside."""
    links, paths = set(servers.client("idle").get("/").json()["links"].values()), set(document.root["paths"])
    yield from (f"GET / links to {link}, which is not documented" for link in links - paths)
    for path in paths - links - {"/"}:
        if not path.startswith("/web/") and not any(path.startswith(f"{link}/") for link in links):
            yield f"GET / leads nobody to {path}"


def check_cases(document, servers):
    """Every request of tests/api/cases that is answered is valid, and so is its answer."""
    client = servers.client("idle")
    for operation, name, request in cases(document):
        reply = client.post(operation.path, request)
        if str(reply.status) not in operation.node["responses"]:
            yield f"{name}: status {reply.status} is not documented"
            continue
        schema = operation.response(reply.status)["content"]["application/json"]["schema"]
        yield from (f"{name}: the answer: {wrong}" for wrong in complaints(reply.json(), schema, document.resolve))
        if reply.status == 200:
            yield from (f"{name}: the request: {wrong}" for wrong in
                        complaints(given(json.loads(request)), operation.request_schema, document.resolve))


def cases(document):
    """(operation, name, request as it is sent)"""
    posts = {operation.path: operation for operation in document.operations() if operation.method == "POST"}
    for path in sorted((API / "cases").glob("*/*/request.json")):
        endpoint = path.parent.parent.name.replace("-gradients", "/gradients")
        yield posts["/v1/" + endpoint], path.parent.relative_to(API), path.read_bytes()


def check_models_of_the_protocol(document, servers):
    """The outputs of a whole model are valid too; the maps of all its layers have five dimensions."""
    operation = document.operation("/v2/models/{model}/infer", "POST")
    request = {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [1], "data": ["the animal"]}]}
    reply = servers.client("idle").post("/v2/models/demo/infer", request)
    schema = operation.response(reply.status)["content"]["application/json"]["schema"]
    yield from complaints(reply.json(), schema, document.resolve)


def check_refusals(document, servers):
    """The server refuses every request that the schema refuses: valid requests with one invalid member."""
    client = servers.client("idle")
    tried = set()
    for operation, request in valid_requests(document):
        for pointer, spoilt in spoil(request, ""):
            what = (operation.path, pointer, json.dumps(spoilt))
            if what in tried:
                continue
            tried.add(what)
            if len(tried) % one_in(7) != 0:
                continue
            reply = client.post(operation.target, request)
            if reply.status // 100 != 4 and complaints(given(request), operation.request_schema, document.resolve):
                yield f"{operation}: {pointer} {spoilt!r} is refused by the schema and answered {reply.status}"


def valid_requests(document):
    for operation in document.operations():
        for example in operation.request_examples.values():
            yield operation, example["value"]
    for operation, _, text in cases(document):
        with contextlib.suppress(ValueError):
            request = json.loads(text)
            if not complaints(given(request), operation.request_schema, document.resolve):
                yield operation, request


def given(value):
    """Without the members that are null: the document says of all of them at once that they count as not given."""
    if isinstance(value, dict):
        return {name: given(inner) for name, inner in value.items() if inner is not None}
    return [given(inner) for inner in value] if isinstance(value, list) else value


def spoil(node, pointer):
    """(pointer, value) for every member that is given another value, for as long as the caller looks at it."""
    for name in [*node, UNKNOWN]:
        before = {name: node[name]} if name in node else {}
        for value in SPOILT_VALUES:
            node[name] = value
            yield f"{pointer}/{name}", value
        del node[name]
        node.update(before)
        if isinstance(node.get(name), dict):
            yield from spoil(node[name], f"{pointer}/{name}")


def record(document, servers):
    """Puts the answers of the server into the examples; what varies stays as it was."""
    for exchange in document.exchanges():
        reply = send(servers, exchange)
        if reply.status != exchange.status:
            raise ValueError(f"{exchange}: status {reply.status}: {reply.body[:300]!r}")
        before = exchange.example.get("value")
        bodies.record(exchange.media, reply.body, exchange.example)
        if bodies.CODING not in exchange.example:
            exchange.example["value"] = with_varying(exchange.example["value"], before, "")


def with_varying(fresh, old, pointer):
    if is_varying(pointer) and old is not None:
        return old
    if not isinstance(fresh, dict):
        return fresh
    before = old if isinstance(old, dict) else {}
    return {name: with_varying(item, before.get(name), f"{pointer}/{name}") for name, item in fresh.items()}


@contextlib.contextmanager
def servers_of(program, document):
    with contextlib.ExitStack() as stack:
        yield Servers(program, document, stack)


CHECKS = (check_served_text, check_gzip, check_docs, check_routes, check_implied_methods, check_header_limit, check_index,
          check_exchanges, check_cases, check_models_of_the_protocol, check_refusals)
