"""
rewrites.py: files that are rewritten in place while clients ask for what is in them.

A rewrite truncates a file and writes it in two halves, or writes over it, or cuts it and replaces it. The server must live, an answer
has the numbers of one state of the file, and the last state is served in the end.
"""

import http.client
import itertools
import json
import os
import pathlib
import random
import shutil
import socket
import tempfile
import threading
import time

from attnd import Client, Server, wait_until
from suite import registry
import tensor_file

DEMO = pathlib.Path(__file__).resolve().parents[3] / "examples" / "train_demo" / "model"
OWN = pathlib.Path(__file__).resolve().parents[2] / "others" / "models" / "bert"
FOLDERS = [f"model{i}" for i in range(8)]  # a model is read once a second, so several take turns
BREAK_SECONDS, CLIENTS = 0.002, 6
LAYER = "bert.encoder.layer.0.attention"
JSON, TENSORS = {"Content-Type": "application/json"}, {"Accept": "application/vnd.attnd.safetensors"}
EXPECTED = (200, 409, None)
CHECKS = []
check = registry(CHECKS)


# ---- states of files ----

def model_states():
    """The weights of bert as float16, which a server widens and keeps, and their halves."""
    tensors, metadata = tensor_file.read((OWN / "model.safetensors").read_bytes())
    return [tensor_file.write({name: ("F16", shape, [scale * x for x in numbers])
                               for name, (_, shape, numbers) in tensors.items()}, metadata) for scale in (1, 0.5)]


def layer_states(width=96):
    """A layer of some pages, and one of the same shape with other numbers."""
    def state(seed):
        source = random.Random(seed)
        tensors = {}
        for name in ("query", "key", "value", "output"):
            tensors[f"weights.{name}.weight"] = ("F32", [width, width], [source.uniform(-1, 1) for _ in range(width**2)])
            tensors[f"weights.{name}.bias"] = ("F32", [width], [source.uniform(-1, 1) for _ in range(width)])
        return tensor_file.write(tensors, {"request": json.dumps({"options": {"num_heads": 4}})})
    return [state(1), state(2)]


def tokenizer_states():
    """The tokenizer of bert, and one in which two words change their ids."""
    one = json.loads((OWN / "tokenizer.json").read_bytes())
    two = json.loads((OWN / "tokenizer.json").read_bytes())
    words = two["model"]["vocab"]
    first, second = [word for word in words if word.isalpha()][-2:]
    words[first], words[second] = words[second], words[first]
    return [json.dumps(state, indent=1).encode() for state in (one, two)], f"{first} {second}"


# ---- requests ----

def of_model(name):
    """Requests that read the weights of the model of that name."""
    ids = [5 + i % 40 for i in range(60)]
    rows = [[0.01 * (i + j) for j in range(32)] for i in range(12)]
    query = {"inputs": {"query": rows}}
    return [("POST", f"/v1/models/{name}/attention", {"inputs": {"ids": [ids] * 4}, "options": {"return": ["output", "logits"]}}),
            ("POST", f"/v2/models/{name}/infer", {"inputs": [{"name": "IDS", "datatype": "INT64", "shape": [1, 60], "data": ids}]}),
            ("POST", f"/v1/layers/{name}.{LAYER}/attention", query),
            ("POST", f"/v1/layers/{name}.{LAYER}/gradients", {"inputs": {"query": rows, "grad_output": rows}}),
            ("GET", f"/v1/layers/{name}.{LAYER}", None)]


def of_layer(name, width=96):
    """Requests that read the kept layer of that name."""
    rows = [[0.01 * (i + j % 7) for j in range(width)] for i in range(40)]
    query = {"inputs": {"query": rows}}
    tensor = {"name": "QUERY", "datatype": "FP32", "shape": [1, 40, width], "data": [rows]}
    return [("POST", f"/v1/layers/{name}/attention", query),
            ("POST", f"/v1/layers/{name}/gradients", {"inputs": {"query": rows, "grad_output": rows}}),
            ("POST", f"/v2/models/{name}/infer", {"inputs": [tensor]}),
            ("GET", f"/v1/layers/{name}", None)]


def send(client, request):
    """(status, body); an answer that breaks off has the status None."""
    method, path, body = request
    try:
        reply = client.send(method, path, json.dumps(body).encode() if body else None, JSON if body else TENSORS)
    except (http.client.HTTPException, ConnectionError):
        client.connection.close()
        return None, b""
    return reply.status, reply.body


class Asking(threading.Thread):
    """A client that asks all its requests in turn, and keeps each answer once."""

    def __init__(self, url, requests, first):
        super().__init__(daemon=True)
        self.client, self.requests, self.is_ending = Client(url), requests[first:] + requests[:first], False
        self.answers, self.statuses, self.unexpected = {}, {}, []

    def run(self):
        for place, request in itertools.cycle(self.requests):
            if self.is_ending:
                return
            status, body = send(self.client, request)
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == 200:
                self.answers.setdefault(place, set()).add(body)
            elif status not in EXPECTED:
                self.unexpected.append((place, status, body))


# ---- rewrites ----

def truncate_and_write(path, data):
    with open(path, "wb", buffering=0) as file:
        for half in (data[:len(data) // 2], data[len(data) // 2:]):
            file.write(half)
            time.sleep(BREAK_SECONDS)


def write_over(path, data):
    with open(path, "r+b", buffering=0) as file:
        for half in (data[:len(data) // 2], data[len(data) // 2:]):
            file.write(half)
            time.sleep(BREAK_SECONDS)


def cut_and_replace(path, data):
    new = path.with_name("new")
    new.write_bytes(data)
    os.truncate(path, 4096)
    time.sleep(BREAK_SECONDS)
    os.replace(new, path)


WAYS = (truncate_and_write, truncate_and_write, write_over, cut_and_replace)


class Stage:
    """A folder of models and one of layers, whose files have two states."""

    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        self.layers, self.models = self.folder / "layers", self.folder / "models"
        self.layers.mkdir()
        for name in FOLDERS:
            (self.models / name).mkdir(parents=True)
            for file in ("config.json", "tokenizer.json"):
                (self.models / name / file).write_bytes((OWN / file).read_bytes())

    def server(self):
        return Server(self.program, environment={"ATTND_LAYERS": str(self.layers), "ATTND_MODELS": str(self.models)})

    def rewrite_under_load(self, files, states, requests, rewrites):
        """files: {file: the first request that reads it}; requests: all, by place."""
        exact = []
        for state in states:
            for file in files:
                file.write_bytes(state)
            with self.server() as server:
                answers = [send(server.client(), request) for request in requests]
                refused = [(request[:2], body[:300]) for request, (status, body) in zip(requests, answers) if status != 200]
                assert not refused, refused
                exact.append([body for _, body in answers])
        assert all(one != other for one, other in zip(*exact)), "both states give the same answer"
        with self.server() as server:
            self._load(server, files, states, requests, exact, rewrites)

    def _load(self, server, files, states, requests, exact, rewrites):
        present = dict.fromkeys(files, 1)
        clients = [Asking(server.url, list(enumerate(requests)), i * len(requests) // CLIENTS) for i in range(CLIENTS)]
        for client in clients:
            client.start()
        for i, file in zip(range(rewrites), itertools.cycle(files)):
            place = files[file]
            wait_until(lambda: send(server.client(), requests[place]) == (200, exact[present[file]][place]) or server.process.poll(),
                       f"rewrite {i}: the present state is not served")
            assert server.process.poll() is None, f"rewrite {i}: the server ended with {server.process.returncode}: {server.lines[-3:]}"
            present[file] = 1 - present[file]
            random.choice(WAYS)(file, states[present[file]])
        for client in clients:
            client.is_ending = True
        for client in clients:
            client.join()
        self._judge(clients, requests, exact)
        for file, place in files.items():
            wait_until(lambda: send(server.client(), requests[place])[0] == 200, f"{file} is not served again")
            for at, request in enumerate(requests):
                if requests[place][1].split("/")[3].split(".")[0] == request[1].split("/")[3].split(".")[0]:
                    wanted = (200, exact[present[file]][at])
                    wait_until(lambda: send(server.client(), request) == wanted, f"{request[:2]} is not of the last state")

    @staticmethod
    def _judge(clients, requests, exact):
        statuses = {}
        for client in clients:
            for status, count in client.statuses.items():
                statuses[status] = statuses.get(status, 0) + count
            for place, answers in client.answers.items():
                mixed = answers - {exact[0][place], exact[1][place]}
                assert not mixed, f"{requests[place][:2]}: {len(mixed)} answers are of no state of the file"
        print("    answers:", statuses)
        unexpected = [(requests[place][:2], status, body[:300]) for client in clients for place, status, body in client.unexpected]
        assert not unexpected, unexpected
        assert statuses[200] > 0, statuses


@check
def models_that_are_rewritten_in_place_are_refused_or_whole(program, rewrites):
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(program, folder)
        requests, files = [], {}
        for name in FOLDERS:
            files[stage.models / name / "model.safetensors"] = len(requests)
            requests += of_model(name)
        stage.rewrite_under_load(files, model_states(), requests, rewrites)


@check
def layers_that_are_rewritten_in_place_are_refused_or_whole(program, rewrites):
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(program, folder)
        stage.models = stage.folder
        stage.rewrite_under_load({stage.layers / "kept.safetensors": 0}, layer_states(), of_layer("kept"), rewrites)


@check
def tokenizers_that_are_rewritten_in_place_are_refused_or_whole(program, rewrites):
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(program, folder)
        states, text = tokenizer_states()
        weights = (OWN / "model.safetensors").read_bytes()
        for name in FOLDERS:
            (stage.models / name / "model.safetensors").write_bytes(weights)
        requests = [("POST", f"/v1/models/{name}/tokens", {"inputs": {"text": text}}) for name in FOLDERS]
        files = {stage.models / name / "tokenizer.json": i for i, name in enumerate(FOLDERS)}
        stage.rewrite_under_load(files, states, requests, rewrites)


def unread_answer(server):
    """A connection with the beginning of an answer of some megabytes, which its client does not read."""
    port = int(server.url.rpartition(":")[2])
    body = json.dumps({"inputs": {"text": ["the animal did not cross the street " * 8] * 60},
                       "options": {"return": ["attention", "hidden", "logits"]}}).encode()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.connect(("127.0.0.1", port))
    client.sendall(b"POST /v1/models/m/attention HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    assert client.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) == b"HTTP/1.1 200"
    return client


@check
def an_answer_that_nobody_reads_holds_no_old_version(program, _):
    with tempfile.TemporaryDirectory() as folder:
        present, new, old = (pathlib.Path(folder) / name for name in ("m", ".new", ".old"))
        shutil.copytree(DEMO, present)
        with Server(program, environment={"ATTND_MODELS": folder}) as server, unread_answer(server):
            shutil.copytree(DEMO, new)
            present.rename(old)
            new.rename(present)
            shutil.rmtree(old)
            maps = pathlib.Path(f"/proc/{server.process.pid}/maps")
            wait_until(lambda: [line.endswith("(deleted)") for line in maps.read_text().splitlines() if "/m/model.safetensors" in line
                                or "/.old/model.safetensors" in line] == [False], "the files of the old version are still mapped")
