"""accounts.py: what a request is said to have cost, in the log, in the metrics, and to the quota of a key."""

import json
import re
import socket
import struct
import urllib.parse

from attnd import PATIENCE_SECONDS, Server, wait_until

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def connect(server):
    """A client that takes little at a time."""
    parts = urllib.parse.urlsplit(server.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
    connection.settimeout(PATIENCE_SECONDS)
    connection.connect((parts.hostname, parts.port))
    return connection


def logged(server, path):
    """What the log says about the requests to that path: a dictionary each."""
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
