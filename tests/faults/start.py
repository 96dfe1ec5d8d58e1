#!/usr/bin/env python3
"""
start.py: every call that a server makes while it starts, and while it reads its files again, failed in turn.

A server whose n-th call of a class (shim.c) fails either serves, or ends with status 1 and says why; it never crashes,
hangs, or serves half. One that is told to reload (SIGHUP) while a call fails goes on serving.

--seconds N takes samples for so long: of each class some of its calls.
"""

import argparse
import http.client
import os
import pathlib
import random
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "api" / "layers"))

import torture  # noqa: E402
from layer import as_file, layer  # noqa: E402

# write is left out, since the log says where the server listens; mmap, since OpenBLAS, which is warmed up at the start,
# waits for ever when it fails; and memory where there is a certificate: GnuTLS, and GMP below it, end the process.
CLASSES = ["alloc", "open", "read", "stat", "epoll", "thread", "accept"]
WAIT_SECONDS, SAMPLE_STRIDE = 20, 8
ADDRESS = re.compile(r"listening on https?://127\.0\.0\.1:([0-9]+)")


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", "/CN=localhost", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
                   check=True, capture_output=True)


class Stage:
    """The settings of servers of all kinds."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.log = folder / "log"
        self.control = torture.Control(folder / "control")
        (folder / "layers").mkdir()
        (folder / "layers" / "kept.safetensors").write_bytes(as_file(layer(1)))
        (folder / "keys").write_bytes(subprocess.run([options.attnd, "key", "tester", "compute,layers,metrics"],
                                                     check=True, capture_output=True).stdout)
        make_certificate(folder)
        self.environment = {**os.environ, "LD_PRELOAD": options.shim, "FAULT_CONTROL": str(folder / "control"),
                            "ATTND_LISTEN": "127.0.0.1:0", "ATTND_DRAIN_DELAY": "0", "ATTND_IO_THREADS": "1",
                            "ATTND_COMPUTE_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.kinds = {
            "plain": {"ATTND_LAYERS": str(folder / "layers"), "ATTND_LAYERS_VERIFY": "at-start",
                      "ATTND_KEYS": str(folder / "keys"), "ATTND_LOG_FILE": str(self.log)},
            "https": {"ATTND_KEYS": str(folder / "keys"), "ATTND_TLS_CERT": str(folder / "cert.pem"),
                      "ATTND_TLS_KEY": str(folder / "key.pem")},
        }

    def start(self, kind):
        self.log.write_bytes(b"")
        with open(self.log, "ab") as log:  # the server appends to it, too
            return Started(self, subprocess.Popen([self.options.attnd], stdout=log, stderr=log,
                                                  env={**self.environment, **self.kinds[kind]}))


class Started:
    def __init__(self, stage, process):
        self.stage, self.process = stage, process

    def said(self):
        return self.stage.log.read_text(errors="replace")

    def is_ready(self):
        found = ADDRESS.search(self.said())
        if not found:
            return False
        if "https" in found.group(0):
            connection = http.client.HTTPSConnection("127.0.0.1", int(found.group(1)), timeout=2,
                                                     context=ssl._create_unverified_context())
        else:
            connection = http.client.HTTPConnection("127.0.0.1", int(found.group(1)), timeout=2)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def wait(self):
        """"ready", "ended" or "hangs"."""
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return "ended"
            if self.is_ready():
                return "ready"
            time.sleep(0.01)
        return "hangs"

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "hangs at its end"


class Trial:
    def __init__(self, stage, seconds):
        self.stage, self.random = stage, random.Random(1)
        self.end = time.monotonic() + seconds if seconds else None
        self.faults, self.ready, self.wrong = 0, 0, []

    def complain(self, what):
        self.wrong.append(what)
        print(f"WRONG {what}", flush=True)

    def is_over(self):
        return self.end is not None and time.monotonic() > self.end

    def stride(self):
        return self.random.randint(1, 2 * SAMPLE_STRIDE - 1) if self.end else 1

    def start_once(self, kind, name, call):
        """Whether a fault was given."""
        where = f"start, {kind}, {name} {call}"
        self.stage.control.arm(name, call, False, "at_main")
        server = self.stage.start(kind)
        state = server.wait()
        given = self.stage.control.disarm()
        self.faults += given
        self.ready += state == "ready"
        if state == "hangs":
            server.process.kill()
            server.process.wait()
            self.complain(f"{where}: neither ready nor ended:\n{server.said()}")
        elif state == "ready":
            status = server.stop()
            if status != 0:
                self.complain(f"{where}: ended with {status}:\n{server.said()}")
        elif server.process.returncode != 1 or not re.search(r"^attnd: .+", server.said(), re.M):
            self.complain(f"{where}: status {server.process.returncode}:\n{server.said()}")
        return given > 0

    def starts(self):
        work = [(kind, name) for kind in self.stage.kinds for name in CLASSES if (kind, name) != ("https", "alloc")]
        while True:
            self.random.shuffle(work)
            for kind, name in work:
                call = self.stride()
                while not self.is_over() and self.start_once(kind, name, call):
                    call += self.stride()
            if self.end is None or self.is_over():
                break

    def reload_once(self, server, name, call):
        before = server.said().count("reloaded")
        self.stage.control.arm(name, call, False)
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + WAIT_SECONDS
        while server.process.poll() is None and server.said().count("reloaded") == before and time.monotonic() < end:
            time.sleep(0.005)
            if name == "write" and self.stage.control.get("given"):
                break  # the line that would tell
        given = self.stage.control.disarm()
        self.faults += given
        if server.wait() != "ready":
            self.complain(f"reload, {name} {call}: serves no longer:\n{server.said()}")
            return False
        return given > 0

    def reloads(self, kind, names):
        server = self.stage.start(kind)
        if server.wait() != "ready":
            self.complain(f"the server does not start:\n{server.said()}")
            return
        for name in names:
            call = 1
            while server.process.poll() is None and self.reload_once(server, name, call):
                call += self.stride()
        if server.stop() != 0:
            self.complain(f"the server that was reloaded ended with {server.process.returncode}:\n{server.said()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attnd", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--seconds", type=int, default=0)
    options = parser.parse_args()
    options.shim = os.path.abspath(options.shim)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Stage(options, pathlib.Path(folder)), options.seconds)
        trial.reloads("plain", ("alloc", "open", "read", "write", "stat"))
        trial.reloads("https", ("open", "read", "write", "stat"))
        trial.starts()
    print(f"start: {trial.faults} fault points in {time.monotonic() - begun:.0f} s, {trial.ready} servers served "
          f"nevertheless; {len(trial.wrong)} wrong")
    sys.exit(1 if trial.wrong or trial.faults == 0 else 0)


if __name__ == "__main__":
    main()
