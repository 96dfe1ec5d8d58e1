"""crashes.py: a server that ends by a fault says which one, and in which request."""

import base64
import ctypes
import json
import pathlib
import resource
import signal
import struct
import threading

from attnd import Server, wait_until
from suite import registry

FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)
TESTS = []
test = registry(TESTS)


def crash(program, send, **environment):
    """The lines of a server to which that function sends a fault, and the status with which it ended."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with Server(program, environment=environment) as server:
        send(server)
        status = server.process.wait(60)
        server.process = None  # nothing is left to stop
    wait_until(lambda: any("crash" in line for line in server.lines[-3:]), "no line tells the crash")
    return server.lines, status


@test
def a_fault_has_its_line_and_its_status(program):
    for fault in FAULTS:
        lines, status = crash(program, lambda server: server.process.send_signal(fault))
        assert status == -fault and lines[-1].endswith(f" error crash signal={fault.name}\n"), (status, lines[-3:])
        lines, status = crash(program, lambda server: server.process.send_signal(fault), ATTND_LOG_FORMAT="json")
        said = json.loads(lines[-1])
        assert status == -fault and (said["level"], said["message"], said["signal"]) == ("error", "crash", fault.name), said


def ticks_of_threads(pid):
    """{thread: the time that it has computed, in hundredths of a second}"""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return {int(task.name): sum(map(int, (task / "stat").read_text().rsplit(")", 1)[1].split()[11:13])) for task in tasks}


def ask_for_long(server):
    """A request that takes seconds, whose answer does not come."""
    tokens = 60000
    data = base64.b64encode(struct.pack(f"<{tokens}f", *[i * 0.618 % 1 for i in range(tokens)])).decode()
    request = {"inputs": {"query": {"shape": [tokens, 1], "dtype": "float32", "base64": data}}, "options": {"return": ["output"]}}
    try:
        server.client().send("POST", "/v1/attention", json.dumps(request).encode(),
                             {"Content-Type": "application/json", "X-Request-Id": "the-long-one"})
    except OSError:
        pass


@test
def a_fault_in_a_request_names_the_request(program):
    def send(server):
        pid = server.process.pid
        before = ticks_of_threads(pid)
        threading.Thread(target=ask_for_long, args=(server,), daemon=True).start()

        def computing():
            gained = {thread: ticks - before.get(thread, 0) for thread, ticks in ticks_of_threads(pid).items()}
            return max((ticks, thread) for thread, ticks in gained.items())

        wait_until(lambda: computing()[0] > 30, "the request does not run")
        assert ctypes.CDLL(None).tgkill(pid, computing()[1], signal.SIGSEGV) == 0

    lines, status = crash(program, send, ATTND_COMPUTE_THREADS="1")
    assert status == -signal.SIGSEGV, status
    assert lines[-1].endswith(" error crash signal=SIGSEGV id=the-long-one path=/v1/attention\n"), lines[-3:]
