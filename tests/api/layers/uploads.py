"""uploads.py: large layers, which are written to the disk while they are received."""

import hashlib
import http.client
import json
import os
import socket
import threading
import urllib.parse

from durability import small_disk, until
from layer import TENSORS, answered, as_file, expect, layer, refused
import tensor_file
from suite import registry

WIDTH = 1280  # four weights of 6.5 MB: some pieces, and a rest
PATH = "/v1/layers/large"
CHECKS = []
check = registry(CHECKS)


def large(seed, width=WIDTH):
    """Rows that repeat: quick to make, and different for every seed."""
    row = [((i * 31 + seed) % 97 - 48) / 64 for i in range(width)]
    parts = ("query", "key", "value", "output")
    tensors = {f"weights.{part}.weight": ("F32", [width, width], row * width) for part in parts}
    return tensor_file.write(tensors, {"request": json.dumps({"options": {"num_heads": 10}})})


def sizes(stage):
    """Of the temporaries."""
    found = []
    for name in stage.temporaries():
        try:
            found.append(os.stat(stage.folder / name).st_size)
        except FileNotFoundError:
            pass
    return found


def put(client, body, path=PATH, **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.send("PUT", path, body, {"Content-Type": TENSORS, **fields})


class SlowUpload:
    """A client that sends part of a body, and later the rest, or nothing more."""

    def __init__(self, server, body, path=PATH):
        parts = urllib.parse.urlsplit(server.url)
        self.body, self.sent = body, 0
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        self.connection.putrequest("PUT", path)
        self.connection.putheader("Content-Type", TENSORS)
        self.connection.putheader("Content-Length", str(len(body)))
        self.connection.endheaders()

    def send(self, until_byte):
        self.connection.send(self.body[self.sent:until_byte])
        self.sent = until_byte

    def finish(self):
        self.send(len(self.body))
        reply = self.connection.getresponse()
        return reply.status, json.loads(reply.read())


@check
def a_large_layer_is_written_while_it_comes(stage):
    body = large(1)
    with stage.server() as server:
        upload = SlowUpload(server, body)
        upload.send(len(body) // 2)
        until(lambda: max(sizes(stage), default=0) >= 8 << 20, "nothing is written before the body has ended")
        upload.send(len(body) - 1)
        status, facts = upload.finish()
        expect(status == 201 and facts["digest"] == hashlib.sha256(body).hexdigest(), f"{status} {facts}")
        expect(stage.file("large").read_bytes() == body, "the file is another")
        expect(stage.temporaries() == [], stage.temporaries())
        reply = server.client().send("GET", PATH, None, {"Accept": TENSORS})
        expect(reply.body == body, "the layer is another")


@check
def clients_that_leave_leave_nothing(stage):
    body = large(2)
    with stage.server(drain_timeout=1) as server:
        for share in (0.1, 0.4, 0.7, 0.95):
            for _ in range(3):
                upload = SlowUpload(server, body)
                upload.send(int(share * len(body)))
                upload.connection.close()
        until(lambda: sizes(stage) == [], "temporaries of clients that left")
        refused(server.client().send("GET", PATH), 404)
        upload = SlowUpload(server, body)
        upload.send(len(body) // 2)
        until(lambda: sizes(stage) != [], "nothing is written")
    expect(stage.temporaries() == [], "left over at the end of the server")


@check
def uploads_at_once_do_not_mix(stage):
    bodies = {f"/v1/layers/l{seed}": large(seed) for seed in range(4)}
    wrong = []

    def work(path):
        own = server.client()
        for _ in range(2):
            reply = put(own, bodies[path], path)
            if reply.status not in (200, 201) or reply.json()["digest"] != hashlib.sha256(bodies[path]).hexdigest():
                wrong.append(f"{path}: {reply.status} {reply.body[:200]}")

    for threads in (1, 4):
        with stage.server(compute_threads=threads) as server:
            workers = [threading.Thread(target=work, args=(path,)) for path in bodies]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            expect(not wrong, wrong)
            for path, body in bodies.items():
                expect(stage.file(path.rsplit("/", 1)[1]).read_bytes() == body, f"{path} is another")
            expect(stage.temporaries() == [], stage.temporaries())


@check
def refused_uploads_leave_nothing(stage):
    body = large(3)
    with stage.server(layers_bytes=2 * len(body) - 1) as server:
        client = server.client()
        refused(put(client, body[:-100]), 400)
        refused(put(client, b"\1" + bytes(len(body) - 1)), 400)
        refused(put(client, body, If_Match="*"), 412)
        answered(put(client, body), 201)
        refused(put(client, body, If_None_Match="*"), 412)
        refused(put(client, body, "/v1/layers/second"), 507, "layers-bytes")
        refused(put(client, body, "/v1/layers/.hidden"), 400)
        refused(put(client, body, "/v1/layers/stats"), 409)
        answered(put(client, large(4)), 200)
        expect(stage.temporaries() == [], stage.temporaries())
        expect(stage.file("large").read_bytes() == large(4), "the layer is another")
    with stage.server(layers_readonly="on") as server:
        refused(put(server.client(), body), 403)
    expect(stage.temporaries() == [] and len(os.listdir(stage.folder)) == 1, os.listdir(stage.folder))


@check
def a_disk_that_fills_up_midway_is_told(stage):
    with small_disk(stage.folder, "14m"), stage.server() as server:
        client = server.client()
        for _ in range(3):
            refused(put(client, large(5)), 507, "room")
            expect(os.listdir(stage.folder) == [], os.listdir(stage.folder))
        answered(put(client, as_file(layer())), 201)


@check
def a_condition_that_fails_is_told_before_the_body(stage):
    body = as_file(layer(1))

    def answer_to_header(server, **conditions):
        """The answer after only the header of a request with a body of gigabytes."""
        parts = urllib.parse.urlsplit(server.url)
        lines = [f"PUT {PATH} HTTP/1.1", "Host: a", f"Content-Type: {TENSORS}", f"Content-Length: {1 << 30}",
                 "Expect: 100-continue", *(f"{name.replace('_', '-')}: {value}" for name, value in conditions.items())]
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
            connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
            return int(connection.recv(4096).split()[1])

    with stage.server(max_body="4G", max_memory="8G", memory="8G") as server:
        client = server.client()
        for gone in ({"If_Match": "*"}, {"If_Match": '"x"'}):
            expect(answer_to_header(server, **gone) == 412, f"{gone} of a layer that is not there")
        etag = put(client, body).headers["ETag"]
        expect(answer_to_header(server, If_Match='"x"') == 412, "If-Match of another version")
        expect(answer_to_header(server, If_None_Match="*") == 412, "If-None-Match: *")
        expect(answer_to_header(server, If_None_Match=etag) == 412, "If-None-Match of this version")
        expect(answer_to_header(server, If_Match=etag) == 100, "If-Match of this version")
        expect(answer_to_header(server, If_None_Match='"x"') == 100, "If-None-Match of another version")
