"""attnd.py: starts a server for the duration of a test, and sends requests to it. It needs only Python's standard library."""

import http.client
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
import urllib.parse

START_SECONDS = 30
STOP_SECONDS = 30
REPLY_SECONDS = 120
PATIENCE_SECONDS = 60
ADDRESS = re.compile(r"127\.0\.0\.1:([1-9][0-9]*)")


class StartError(Exception):
    """The server ended, or said no address, before it was ready."""


def wait_until(holds, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Server:
    """attnd on a free port of 127.0.0.1; or, with url, one that runs already and is left running."""

    def __init__(self, program=None, url=None, environment=None):
        self.program, self.url = program, url
        self.environment = environment or {}
        self.process, self.lines, self.port_seen = None, [], threading.Event()

    def __enter__(self):
        if self.url is None:
            self._start()
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self._stop()

    def _start(self):
        environment = {**os.environ, "ATTND_LISTEN": "127.0.0.1:0", "ATTND_DRAIN_DELAY": "0",
                       "ATTND_HOST_NAMES": "a",  # requests of tests say "Host: localhost"
                       "ATTND_NO_MODELS": "on", **self.environment}
        self.process = subprocess.Popen(self._command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=environment)
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        deadline = time.monotonic() + START_SECONDS
        while not self.port_seen.wait(0.05):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                reader.join(START_SECONDS)  # the end of a process is seen before its last line is read
                raise StartError(f"{self.program} did not start:\n" + "".join(self.lines))
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                reader.join(START_SECONDS)  # the end of a process is seen before its last line is read
                raise StartError(f"{self.program} is not ready:\n" + "".join(self.lines))
            time.sleep(0.05)

    def _command(self):
        """The program may stand behind an emulator: "qemu-aarch64 path"."""
        return [self.program] if os.path.exists(self.program) else shlex.split(self.program)

    def _read(self):
        """Keeps what the server says, and learns from it where it listens."""
        for line in self.process.stdout:
            self.lines.append(line)
            found = ADDRESS.search(line)
            if found and self.url is None:
                self.url = f"http://127.0.0.1:{found.group(1)}"
                self.port_seen.set()

    def _is_ready(self):
        """A server whose models are all broken has started, too."""
        try:
            reply = Client(self.url).get("/readyz")
            return reply.status == 200 or reply.json()["reasons"] == ["no model or layer can be used"]
        except OSError:
            return False

    def _stop(self):
        self.process.terminate()
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        if status != 0:
            sys.stderr.write("".join(self.lines[-50:]))
            raise StartError(f"the server ended with status {status}")

    def client(self):
        return Client(self.url)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return parse_json(self.body)


class Client:
    """One connection, kept alive; opened again when the server closed it."""

    def __init__(self, url):
        self.url, parts = url, urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=REPLY_SECONDS)

    def send(self, method, path, body=None, headers=None):
        for attempt in (1, 2):
            try:
                self.connection.request(method, path, body, headers or {})
                reply = self.connection.getresponse()
                return Reply(reply.status, reply.headers, reply.read())
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.connection.close()
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def get(self, path):
        return self.send("GET", path)

    def post(self, path, request):
        text = request if isinstance(request, bytes) else json.dumps(request, allow_nan=False).encode()
        return self.send("POST", path, text, {"Content-Type": "application/json"})


def parse_json(text):
    """JSON as the RFC has it: no bare NaN, no bare Infinity, no member twice."""

    def refuse(word):
        raise ValueError(f"bare {word} in an answer")

    def once(pairs):
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ValueError("a member stands twice in an answer")
        return members

    return json.loads(text, parse_constant=refuse, object_pairs_hook=once)
