"""program.py: the program itself: its arguments, its environment, and the addresses where it listens."""

import http.client
import json
import os
import pty
import re
import resource
import signal
import socket
import subprocess
import tempfile
import threading

from attnd import Server, wait_until
from suite import registry

TESTS = []
test = registry(TESTS)


def run(program, *arguments, **environment):
    """(status, standard output, standard error) of a run that ends by itself."""
    done = subprocess.run([program, *arguments], env={**os.environ, **environment}, capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


USAGE = 2  # the exit status of a command line that is wrong


def refused(program, *arguments, says, status=1, **environment):
    ended, _, error = run(program, *arguments, **environment)
    assert ended == status and says in error, (arguments, environment, ended, error)


@test
def it_says_what_it_is(program):
    status, output, _ = run(program, "--version")
    assert status == 0 and output.startswith("attnd "), output
    status, output, _ = run(program, "-h")
    assert status == 0 and "--listen" in output, output


@test
def what_it_cannot_do_it_says_at_once(program):
    refused(program, "--kernel", "abacus", says='kernel: this processor cannot run "abacus"; expected auto or ')
    refused(program, "--fonts", "/nowhere.ttf", says="font /nowhere.ttf: No such file or directory")
    refused(program, "--log-file", "/nowhere/log", says="log-file: /nowhere/log: No such file or directory")
    refused(program, "--layers", "/nowhere", says="layers: /nowhere: No such file or directory")
    refused(program, "--listen", "name.invalid:0", says='cannot listen on "name.invalid"')
    refused(program, "key", says="usage: attnd key NAME [RIGHTS [QUOTA]]", status=USAGE)
    refused(program, "key", "a", "b", "c", "d", says="usage: attnd key NAME", status=USAGE)
    refused(program, "--bogus", says="--bogus is not a setting; --help lists them all", status=USAGE)
    refused(program, "health", "--lisen", ":1", says="--lisen is not a setting; did you mean --listen?", status=USAGE)
    refused(program, "--trusted-proxies", "10.0.0.0/33", says="--trusted-proxies cannot be", status=USAGE)
    refused(program, "key", "two words", says="attnd: ")
    refused(program, "key", "owner", "everything", says="attnd: ")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused(program, "--listen", address, says="in use; --listen or ATTND_LISTEN takes another address:port")


@test
def a_check_names_each_part_that_fails_and_serves_nobody(program):
    def outcomes(*arguments, **environment):
        status, output, error = run(program, "check", *arguments, **{"ATTND_LISTEN": "127.0.0.1:0", **environment})
        assert error == "", error
        return status, [tuple(line.split(None, 1)) for line in output.splitlines()]

    status, said = outcomes(ATTND_COULOURS="many")
    assert status == 0 and [rest for part, rest in said if part != "settings"] == ["ok"] * 11, said
    assert ("settings", "ATTND_COULOURS is not a setting and is ignored; --help lists them all") in said, said
    status, said = outcomes(**{"ATTND_\x1b[2J": "many"})
    assert ("settings", "ATTND_?[2J is not a setting and is ignored; --help lists them all") in said, said
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as taken:
        with open(f"{folder}/broken.safetensors", "wb") as file:
            file.write(b"nothing")
        status, said = outcomes("--model", "x=/nowhere", "--keys", "/nowhere", "--layers", folder, "--layers-verify",
                                "at-start", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
        failures = {part: rest for part, rest in said if rest != "ok"}
        assert status == 1 and set(failures) == {"keys", "address", "layers", "models"}, said
        assert "/nowhere" in failures["keys"] and "in use" in failures["address"], failures
        assert failures["layers"].startswith('"broken": ') and failures["models"].startswith('"x": '), failures
    status, said = outcomes("--keys", "/nowhere", "--listen", "0.0.0.0:0")
    assert status == 1 and {part for part, rest in said if rest != "ok"} == {"keys"}, said
    status, said = outcomes(ATTND_OPEN="on", ATTND_LISTEN="0.0.0.0:0")
    assert status == 0 and dict(said)["open"].startswith("without keys: anybody "), said
    status, said = outcomes("--tls-cert", "/nowhere", "--tls-key", "/nowhere")
    assert status == 1 and "TLS: /nowhere" in dict(said)["certificate"] and dict(said)["address"] == "ok", said
    refused(program, "check", "--queue", "many", says="--queue cannot be", status=USAGE)


@test
def why_it_does_not_start_is_said_on_the_terminal_and_in_the_log_file(program):
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as taken:
        log, address = f"{folder}/log", f"127.0.0.1:{taken.getsockname()[1]}"
        for wrong, says in ((["--listen", address], "in use"), (["--layers", "/nowhere"], "layers: /nowhere"),
                            (["--keys", "/nowhere"], "/nowhere"), (["--listen", "0.0.0.0:0"], "--keys")):
            refused(program, "--log-file", log, "--log-format", "json", *wrong, says=says)
            with open(log, encoding="utf-8") as file:
                said = json.loads(file.readlines()[-1])
            assert said["level"] == "error" and says in said["message"], said


@test
def it_asks_a_server_how_it_is(program):
    with Server(program) as server:
        address = server.url.rsplit("/", 1)[1]
        assert run(program, "health", ATTND_LISTEN=address)[0] == 0
    refused(program, "health", says="attnd: ", ATTND_LISTEN=address)


@test
def settings_that_are_none_are_named(program):
    of_others = {  # services of the names attnd and attnd-layers in Kubernetes, and the address for clients
        "ATTND_PORT": "tcp://10.0.0.1:80", "ATTND_SERVICE_HOST": "10.0.0.1", "ATTND_SERVICE_PORT": "80",
        "ATTND_SERVICE_PORT_HTTP": "80", "ATTND_PORT_80_TCP": "tcp://10.0.0.1:80", "ATTND_PORT_80_TCP_ADDR": "10.0.0.1",
        "ATTND_PORT_80_TCP_PROTO": "tcp", "ATTND_LAYERS_SERVICE_HOST": "10.0.0.2", "ATTND_LAYERS_PORT": "tcp://10.0.0.2:80",
        "ATTND_PORT_53_SCTP_PORT": "53", "ATTND_URL": "http://localhost:1"}
    with Server(program, environment={"ATTND_COULOURS": "many", "ATTND_MAXBODY": "2M", "ATTND_PORT": "80", "ATTND_MODLES": "/a_TCP_b"}) as server:
        said = "".join(server.lines)
        assert "ATTND_COULOURS is not a setting and is ignored; --help lists them all" in said, said
        assert "ATTND_MAXBODY is not a setting and is ignored; did you mean ATTND_MAX_BODY?" in said, said
        assert "ATTND_PORT is not a setting and is ignored; did you mean ATTND_LISTEN?" in said, said
        assert "ATTND_MODLES is not a setting and is ignored; did you mean ATTND_MODELS?" in said, said
    status, output, _ = run(program, "check", **{"ATTND_LISTEN": "127.0.0.1:0", **of_others})
    assert status == 0 and "ATTND_" not in output, output


def said_in(log):
    """Without moving the place in the file, which is that of the process that writes it, too."""
    return os.pread(log.fileno(), 1 << 20, 0).decode()


@test
def it_serves_the_other_loopback(program):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen([program, "--listen", "[::1]:0", "--drain-delay", "0"], stdout=log, stderr=log)
        try:
            wait_until(lambda: "listening on http://[::1]:" in said_in(log), "it does not listen")
        finally:
            process.terminate()
            assert process.wait(60) == 0


@test
def on_a_terminal_it_says_where_the_page_is(program):
    terminal, inner = pty.openpty()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen([program, "--listen", "127.0.0.1:0", "--drain-delay", "0"], stdout=inner, stderr=log)
        os.close(inner)
        try:
            said = ""
            while "server." not in said:  # a terminal gives line by line; when the server ends, reading fails
                said += os.read(terminal, 4096).decode()
        finally:
            process.terminate()
            assert process.wait(60) == 0
            os.close(terminal)
        address = re.search(r"Open (http://127\.0\.0\.1:[0-9]+)/ in a browser\. Ctrl\+C ends the server\.", said)
        assert address and f"listening on {address[1]}\n" in said_in(log), said


def answers(connection):
    """Whether a request on it is answered. A connection beyond the limit is closed."""
    try:
        connection.settimeout(10)
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return connection.recv(4096).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


@test
def connections_are_bounded_for_each_address(program):
    most = 4  # of which the one that asked whether the server is ready may still be one
    with Server(program, environment={"ATTND_CONNECTIONS_PER_ADDRESS": str(most)}) as server:
        host, port = server.url.rsplit("/", 1)[1].split(":")
        held = [socket.create_connection((host, int(port))) for _ in range(3 * most)]
        answered = sum(map(answers, held))
        for connection in held:
            connection.close()
        assert 1 <= answered <= most, answered


def descriptors(most):
    """What limits the descriptors of a process before it starts."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, most), most))


class NarrowServer(Server):
    """A server with few descriptors. The number of threads decides how many it needs for itself."""

    def __init__(self, program, most, **settings):
        super().__init__(program, environment={"ATTND_COMPUTE_THREADS": "2", **settings})
        self.most = most

    def _command(self):
        return ["sh", "-c", f'ulimit -n {self.most}; exec "$0"', self.program]


def silent_connections(server, count):
    """Each sends half a line, and nothing more."""
    host, port = server.url.rsplit("/", 1)[1].split(":")
    held = [socket.create_connection((host, int(port))) for _ in range(count)]
    for connection in held:
        connection.sendall(b"GET /livez HT")
    return held


def metric(server, name):
    return int(re.search(rf"^{name} (\d+)$", server.client().get("/metrics").body.decode(), re.MULTILINE)[1])


@test
def few_descriptors_are_few_connections_and_lock_nobody_out(program):
    with NarrowServer(program, 64) as server:
        said = [line for line in server.lines if "open files are allowed" in line]
        assert len(said) == 1 and "64 open files are allowed (ulimit -n): room for" in said[0], server.lines
        held = silent_connections(server, 200)
        assert [server.client().get("/livez").status for _ in range(5)] == [200] * 5
        assert not any("have to wait" in line for line in server.lines), server.lines
        for connection in held:
            connection.close()


@test
def descriptors_that_others_take_do_not_lock_out_connections(program):
    with Server(program) as server:
        held = silent_connections(server, 20)
        wait_until(lambda: metric(server, "attnd_connections") >= 20, "they are not let in")
        taken = max(map(int, os.listdir(f"/proc/{server.process.pid}/fd")))
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (taken, taken))
        held += silent_connections(server, 20)
        assert [server.client().get("/livez").status for _ in range(5)] == [200] * 5
        assert metric(server, "attnd_connections_evicted_total") > 0, "nobody had to go"
        for connection in held:
            connection.close()


@test
def too_few_descriptors_are_refused_at_the_start(program):
    done = subprocess.run(["sh", "-c", 'ulimit -n 40; exec "$0" --listen 127.0.0.1:0 --compute-threads 2', program],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "attnd: 40 open files are too few: the server needs at least" in done.stderr, done


@test
def more_descriptors_are_taken_where_they_are_allowed(program):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for most, warns in ((4096, False), (512, True)):
        if hard != resource.RLIM_INFINITY and hard < most:
            continue
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen([program, "--listen", "127.0.0.1:0", "--drain-delay", "0"], stdout=log, stderr=log,
                                       preexec_fn=descriptors(most))
            try:
                wait_until(lambda: "kernel=" in said_in(log), "it does not say that it has started")
            finally:
                process.terminate()
                assert process.wait(60) == 0
            assert ("open files are allowed" in said_in(log)) == warns, said_in(log)


@test
def queries_are_read_or_refused(program):
    body = json.dumps({"inputs": {"query": [[1, 2]]}}).encode()

    def post(query):
        return client.send("POST", "/v1/attention" + query, body, {"Content-Type": "application/json", "Accept": "image/svg+xml"})

    with Server(program) as server:
        client = server.client()
        assert post("?head=%30&").status == 200
        for query, says in (("?head=%zz", "not percent-encoded text"), ("?%0a=1", "not percent-encoded text"),
                            ("?head=%3", "not percent-encoded text"), ("?head=%00", "not percent-encoded text"),
                            ("?" + "head=0&" * 100, "more than"), ("?colour=1", "colour")):
            reply = post(query)
            assert reply.status == 400 and says in reply.json()["error"], (query, reply.status, reply.body)


def start_with_socket(program, listening):
    """As a service manager does: the socket is descriptor 3, and LISTEN_PID is the process itself."""
    def pass_on():
        os.dup2(listening.fileno(), 3)
        os.set_inheritable(3, True)

    return subprocess.Popen(["sh", "-c", 'LISTEN_PID=$$ exec "$0" --drain-delay 0 --log-level off', program],
                            env={**os.environ, "LISTEN_FDS": "1"}, preexec_fn=pass_on, pass_fds=(3,))


@test
def a_restart_refuses_nobody_when_the_socket_is_passed_on(program):
    answered, failed, ends = [], [], threading.Event()

    def ask(address):
        while not ends.is_set():
            try:
                client = http.client.HTTPConnection(*address, timeout=60)
                client.request("GET", "/livez", headers={"Connection": "close"})
                answered.append(client.getresponse().status)
            except (OSError, http.client.HTTPException) as error:
                failed.append(error)

    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        server = start_with_socket(program, listening)
        clients = [threading.Thread(target=ask, args=(listening.getsockname(),)) for _ in range(3)]
        for client in clients:
            client.start()
        try:
            for _ in range(3):
                before = len(answered)
                wait_until(lambda: len(answered) > before + 20, "nobody is answered")
                server.send_signal(signal.SIGTERM)
                assert server.wait(60) == 0
                server = start_with_socket(program, listening)
            before = len(answered)
            wait_until(lambda: len(answered) > before + 20, "nobody is answered after the last restart")
        finally:
            ends.set()
            for client in clients:
                client.join()
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    assert not failed and set(answered) == {200}, (failed[:3], set(answered))


@test
def a_socket_that_is_passed_on_must_listen(program):
    with socket.socket() as deaf:
        server = start_with_socket(program, deaf)
        assert server.wait(60) == 1
    with socket.create_server(("0.0.0.0", 0)) as open_to_all:
        server = start_with_socket(program, open_to_all)
        assert server.wait(60) == 1
