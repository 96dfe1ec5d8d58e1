"""durability.py: kept layers survive kills, full and read-only disks, power cuts, and files changed by other programs."""

import contextlib
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from attnd import Server, StartError
from layer import TENSORS, Wrong, answered, as_file, expect, layer, put, refused, send
import power_cut
from suite import Skipped, registry

INPUTS = {"inputs": {"query": [[0.5, -0.25, 1.0, 0.125]]}}
CHECKS = []
check = registry(CHECKS)


class Stage:
    """A directory of layers and servers on it."""

    def __init__(self, program, folder, kills):
        self.program, self.folder, self.kills = program, folder, kills

    def server(self, **settings):
        environment = {"ATTND_LAYERS": str(self.folder)}
        environment.update({f"ATTND_{name.upper()}": str(value) for name, value in settings.items()})
        return Server(self.program, environment=environment)

    def file(self, name):
        return self.folder / f"{name}.safetensors"

    def temporaries(self):
        return [entry for entry in os.listdir(self.folder) if entry.startswith(".")]


def digest(body):
    return hashlib.sha256(body).hexdigest()


def wide(width):
    return {"inputs": {"query": [[0.5] * width]}}


def output(client, name):
    return answered(send(client, "POST", f"/v1/layers/{name}/attention", INPUTS))["outputs"]["output"]


# ---- restarts ----

@check
def layers_are_there_after_a_restart(stage):
    with stage.server() as server:
        facts = answered(put(server.client(), "kept", layer()), 201)
        before = output(server.client(), "kept")
    expect(digest(stage.file("kept").read_bytes()) == facts["digest"], "the file is not what the digest says")
    for verify in ("lazily", "at-start"):
        with stage.server(layers_verify=verify) as server:
            got = answered(send(server.client(), "GET", "/v1/layers/kept"))
            expect(got == facts, f"{verify}: {got}")
            expect(output(server.client(), "kept") == before, "numbers")


# A layer with most kinds of members, as attnd 0.1.0 wrote it, and what 0.1.0 answered with it.
OF_0_1_0 = pathlib.Path(__file__).with_name("written_by_0.1.0.safetensors")
QUERY_OF_0_1_0 = [[0.5, -0.25, 1, 0.125], [1, 0.5, -1, 0.25], [0.25, 0.75, -0.5, 1]]
OUTPUT_OF_0_1_0 = [[-0.25719592, 0.7928742, -0.011027733, -0.558816],
                   [0.009409023, 0.23753129, -0.32636964, -0.6044905],
                   [0.2886941, 0.16160227, -0.23066007, -0.7118455]]


@check
def a_file_of_0_1_0_is_read(stage):
    """Sums are taken in another order since, so the last digits may differ."""
    shutil.copy(OF_0_1_0, stage.file("kept"))
    body = {"inputs": {"query": QUERY_OF_0_1_0}}
    with stage.server() as server:
        got = answered(send(server.client(), "POST", "/v1/layers/kept/attention", body))["outputs"]["output"]
    off = max(abs(x - y) for row, wanted in zip(got, OUTPUT_OF_0_1_0) for x, y in zip(row, wanted))
    expect(off < 1e-6, f"off by {off}")


@check
def broken_files_are_passed_over(stage):
    with stage.server() as server:
        put(server.client(), "good", layer())
    whole = stage.file("good").read_bytes()
    broken = {"cut": whole[:-1], "empty": b"", "text": b"hello", "header": whole[:8], "long": b"\xff" * 9,
              "foreign": as_file({"weights": {"query": layer()["weights"]["query"]}})}
    for name, content in broken.items():
        stage.file(name).write_bytes(content)
    os.mkdir(stage.file("folder"))
    os.mkfifo(stage.file("pipe"))
    (stage.folder / "notes.txt").write_text("not a layer")
    for verify in ("lazily", "at-start"):
        with stage.server(layers_verify=verify) as server:
            client = server.client()
            rows = {row["name"]: row for row in answered(send(client, "GET", "/v1/layers"))["layers"]}
            expect(rows["good"]["state"] == "ready", rows["good"])
            for name in broken:
                expect(rows[name]["state"] == "broken" and rows[name]["reason"], f"{verify} {name}: {rows.get(name)}")
                refused(send(client, "POST", f"/v1/layers/{name}/attention", INPUTS), 409, name)
            output(client, "good")
            refused(send(client, "GET", "/v1/layers/folder"), 404)
            refused(send(client, "GET", "/v1/layers/pipe"), 404)
    with stage.server() as server:
        answered(put(server.client(), "cut", layer()))
        output(server.client(), "cut")


@check
def a_read_only_server_reads(stage):
    with stage.server() as server:
        put(server.client(), "kept", layer())
    (stage.folder / ".attnd-1-1").write_bytes(b"somebody's")
    with stage.server(layers_readonly="on") as server:
        client = server.client()
        refused(put(client, "new", layer()), 403, "readonly")
        refused(send(client, "DELETE", "/v1/layers/kept"), 403, "readonly")
        output(client, "kept")
    expect(stage.temporaries() == [".attnd-1-1"], "a reader swept")


@check
def temporaries_of_the_dead_are_swept(stage):
    (stage.folder / ".attnd-1-1").write_bytes(b"half a fi")
    (stage.folder / ".other").write_bytes(b"not ours")
    with stage.server():
        expect(stage.temporaries() == [".other"], stage.temporaries())


@check
def a_directory_that_is_none_ends_the_start(stage):
    for path in (stage.folder / "none", stage.file("file")):
        stage.file("file").write_bytes(b"")
        try:
            with Server(stage.program, environment={"ATTND_LAYERS": str(path)}):
                raise Wrong(f"started with {path.name}")
        except StartError as error:
            expect("layers" in str(error), str(error)[:200])


# ---- files changed by others ----

@check
def files_of_others_are_noticed(stage):
    with stage.server() as server:
        client = server.client()
        put(client, "a", layer(1))
        first, content = output(client, "a"), stage.file("a").read_bytes()
        (stage.folder / "x").write_bytes(as_file(layer(2)))
        os.rename(stage.folder / "x", stage.file("a"))
        second = output(client, "a")
        expect(second != first, "a replaced file is not used")
        (stage.folder / "x").write_bytes(b"broken")
        os.rename(stage.folder / "x", stage.file("a"))
        expect(output(client, "a") == second, "a broken file took the place of a good one")
        rows = {row["name"]: row for row in answered(send(client, "GET", "/v1/layers"))["layers"]}
        expect("reason" in rows["a"], "the list does not tell")
        refused(send(client, "POST", "/v2/repository/models/a/load", {}), 409, "safetensors")
        stage.file("b").write_bytes(content)
        expect(output(client, "b") == first, "an added file is not used")
        stage.file("c").write_bytes(content)
        expect("c" in answered(send(client, "GET", "/v2/models"))["models"], "an added file is not listed")
        os.unlink(stage.file("c"))
        expect("c" not in answered(send(client, "GET", "/v2/models"))["models"], "a removed file is listed")
        os.unlink(stage.file("b"))
        refused(send(client, "POST", "/v1/layers/b/attention", INPUTS), 404)
        answered(put(client, "b", layer()), 201)


def until(holds, sentence):
    deadline = time.monotonic() + 10
    while not holds():
        expect(time.monotonic() < deadline, sentence)
        time.sleep(0.01)


@check
def files_of_others_are_noticed_without_a_request(stage):
    def says(words):
        return lambda: any(words in line and "=a" in line for line in server.lines)

    def rename(content):
        (stage.folder / "x").write_bytes(content)
        os.rename(stage.folder / "x", stage.file("a"))

    with stage.server() as server:
        client = server.client()
        rename(as_file(layer(1)))
        until(says("was added"), "an added file is not noticed")
        versions = [answered(send(client, "GET", "/v1/layers/a"))["digest"]]
        rename(as_file(layer(2)))
        until(says("was replaced"), "a replaced file is not noticed")
        metadata = answered(send(client, "GET", "/v2/models/a"))
        expect(metadata["versions"][1:] == versions and len(metadata["versions"]) == 2, metadata["versions"])
        rename(b"broken")
        until(says("is no layer"), "a broken file is not noticed")
        output(client, "a")
        os.unlink(stage.file("a"))
        until(says("was removed"), "a removed file is not noticed")
        refused(send(client, "GET", "/v1/layers/a"), 404)


@check
def a_file_written_to_in_its_place_takes_its_versions_along(stage):
    with stage.server() as server:
        client = server.client()
        put(client, "good", layer(9))
        for seed in range(2):
            put(client, "a", as_file(layer(seed, width=64)))
        versions = answered(send(client, "GET", "/v2/models/a"))["versions"]
        whole, first = stage.file("a").read_bytes(), output(client, "good")
        os.truncate(stage.file("a"), 4096)
        for _ in range(2):
            refused(send(client, "POST", "/v1/layers/a/attention", wide(64)), 409, "safetensors")
            refused(send(client, "GET", "/v1/layers/a", Accept=TENSORS), 409)
        expect(output(client, "good") == first, "another layer")
        with open(stage.file("a"), "r+b") as file:
            file.write(whole)
        expect(send(client, "GET", "/v1/layers/a", Accept=TENSORS).body == whole, "a file that is whole again")
        got = answered(send(client, "GET", "/v2/models/a"))["versions"]
        expect(len(versions) == 2 and got == versions, f"{got} of {versions}")
        with open(stage.file("a"), "r+b") as file:
            file.write(as_file(layer(7, width=64)))
        got = answered(send(client, "GET", "/v1/layers/a"))
        expect(got["digest"] == digest(as_file(layer(7, width=64))), "the digest is that of the bytes before")
        expect(digest(whole) not in answered(send(client, "GET", "/v2/models/a"))["versions"], "a version of no file")
        os.truncate(stage.file("a"), 0)
        refused(send(client, "POST", "/v1/layers/a/attention", wide(64)), 409)
        answered(put(client, "a", layer(3)), 200)
        output(client, "a")


def rewrite(path, content):
    """In its place, as long as before and with the time of before; again until the system's clock has ticked."""
    before = os.stat(path)
    while os.stat(path).st_ctime_ns == before.st_ctime_ns:
        with open(path, "r+b") as file:
            file.write(content)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = os.stat(path)
    expect((after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns), "")


@check
def a_header_that_is_rewritten_in_its_place_is_not_believed(stage):
    with stage.server() as server:
        client = server.client()
        answered(put(client, "a", as_file(layer(1, width=64), "F16")), 201)
        whole = stage.file("a").read_bytes()
        first = answered(send(client, "POST", "/v1/layers/a/attention", wide(64)))["outputs"]
        others = (whole.replace(b'"F16"', b'"F64"'),  # four times as much as there is
                  whole.replace(b"[64,64]", b"[99,99]").replace(b"[64, 64]", b"[99, 99]"),
                  b"\xff" * 8 + whole[8:],
                  whole[:8] + b"x" * 64 + whole[72:])
        for content in others:
            expect(content != whole and len(content) == len(whole), "this is no other header")
            rewrite(stage.file("a"), content)
            for _ in range(2):
                refused(send(client, "POST", "/v1/layers/a/attention", wide(64)), 409, "cannot be used")
                refused(send(client, "GET", "/v1/layers/a"), 409)
            rewrite(stage.file("a"), whole)
            expect(answered(send(client, "POST", "/v1/layers/a/attention", wide(64)))["outputs"] == first, "numbers")


@check
def links_lead_to_files_and_are_replaced_themselves(stage):
    with tempfile.TemporaryDirectory() as elsewhere, stage.server() as server:
        client, target = server.client(), os.path.join(elsewhere, "target")
        with open(target, "wb") as file:
            file.write(as_file(layer(1)))
        os.symlink(target, stage.file("link"))
        os.symlink("/etc/passwd", stage.file("secret"))
        os.symlink("/dev/zero", stage.file("zero"))
        output(client, "link")
        refused(send(client, "GET", "/v1/layers/secret"), 409)
        refused(send(client, "GET", "/v1/layers/zero"), 404)
        answered(put(client, "link", layer(2)))
        expect(not stage.file("link").is_symlink(), "the link is still there")
        with open(target, "rb") as file:
            expect(file.read() == as_file(layer(1)), "a put wrote through a link")
        expect(send(client, "DELETE", "/v1/layers/secret").status == 204, "delete")
        expect(os.path.exists("/etc/passwd"), "deleted through a link")


@check
def two_servers_share_a_directory(stage):
    with stage.server() as one, stage.server() as other:
        first, second = one.client(), other.client()
        for seed in range(6):
            facts = answered(put(first if seed % 2 else second, "shared", layer(seed)), 201 if seed == 0 else 200)
            for client in (first, second):
                got = answered(send(client, "GET", "/v1/layers/shared"))
                expect(got["digest"] == facts["digest"], f"put {seed} is not seen")
        send(first, "DELETE", "/v1/layers/shared")
        refused(send(second, "GET", "/v1/layers/shared"), 404)
        expect(stage.temporaries() == [], stage.temporaries())


# ---- weights that are prepared once ----

def prepared(client):
    text = client.get("/metrics").body.decode()
    return int(re.search(r"^attnd_layers_prepared_bytes (\d+)$", text, re.MULTILINE).group(1))


@check
def prepared_weights_change_no_byte_and_keep_to_their_bound(stage):
    for dtype in ("F16", "F32"):
        check_prepared_weights(stage, dtype)


def check_prepared_weights(stage, dtype):
    names, width = [f"l{i}" for i in range(3)], 64
    with stage.server(layers_prepared="auto") as server:
        client = server.client()
        put(client, "l0", as_file(layer(0, width=width), dtype))
        expect(prepared(client) == 0, "before the first request")
        answered(send(client, "POST", "/v1/layers/l0/attention", wide(width)))
        one = prepared(client)  # bytes of a layer; 0 where the kernel of this machine has nothing to pack
        expect(one > 0 or dtype == "F32", f"nothing is prepared of {dtype}")
        expect(send(client, "DELETE", "/v1/layers/l0").status == 204, "l0")
    wanted = {}
    for bound in (0, one + one // 2, 2 * one, "auto"):
        with stage.server(layers_prepared=bound) as server:
            client = server.client()
            for i, name in enumerate(names):
                put(client, name, as_file(layer(i, width=width), dtype))
            for turn in range(12):
                name = names[turn * turn % 3]
                for options in ({}, {"options": {"compute": "float64"}}):
                    reply = send(client, "POST", f"/v1/layers/{name}/attention", {**wide(width), **options})
                    output_of = answered(reply)["outputs"]
                    expect(wanted.setdefault((name, str(options)), output_of) == output_of, f"{name} within {bound}")
                tensor = {"name": "QUERY", "shape": [1, width], "datatype": "FP32", "data": [0.5] * width}
                reply = send(client, "POST", f"/v2/models/{name}/infer", {"inputs": [tensor]})
                data = {output["name"]: output["data"] for output in answered(reply)["outputs"]}["OUTPUT"]
                expect(data == wanted[name, "{}"]["output"][0], f"{name} as a model within {bound}")
                most = {0: 0, "auto": 3 * one}.get(bound, bound)
                expect((prepared(client) > 0) is (most > 0) and prepared(client) <= most, f"{prepared(client)} of {most}")
            for name in names:
                expect(send(client, "DELETE", f"/v1/layers/{name}").status == 204, name)
            expect(prepared(client) == 0, "of layers that are gone")


# ---- limits ----

@check
def limits_are_told(stage):
    size = len(as_file(layer())) * 2  # a layer takes its file, and its header as it was read
    with stage.server(layers_max=2, layers_bytes=3 * size) as server:
        client = server.client()
        for name in ("a", "b"):
            answered(put(client, name, as_file(layer())), 201)
        refused(put(client, "c", as_file(layer())), 507, "layers-max")
        answered(put(client, "b", as_file(layer(2))))
        big = as_file(layer(1, width=40))
        refused(put(client, "b", big), 507, "layers-bytes")
        expect(send(client, "DELETE", "/v1/layers/a").status == 204, "delete")
        answered(put(client, "c", as_file(layer())), 201)


@contextlib.contextmanager
def small_disk(folder, size):
    """The folder is a disk of that size; nothing that it had is seen meanwhile."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        raise Skipped("needs root to mount a small disk")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False,
                          capture_output=True)
    if done.returncode != 0:
        raise Skipped("mount refused")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@check
def a_full_disk_is_told_and_loses_nothing(stage):
    with small_disk(stage.folder, "256k"), stage.server() as server:
        client, kept = server.client(), {}
        for i in range(40):
            reply = put(client, f"l{i}", as_file(layer(i, width=32)))
            if reply.status == 201:
                kept[f"l{i}"] = reply.json()["digest"]
            else:
                refused(reply, 507, "room")
        expect(0 < len(kept) < 40, f"{len(kept)} were kept")
        refused(put(client, "l0", as_file(layer(99, width=64))), 507)
        for name, wanted in kept.items():
            expect(digest(stage.file(name).read_bytes()) == wanted, name)
        expect(stage.temporaries() == [], stage.temporaries())
        expect(len(os.listdir(stage.folder)) == len(kept), "files that were not acknowledged")
        send(client, "DELETE", "/v1/layers/l0")
        answered(put(client, "l0", as_file(layer())), 201)


# ---- kills and power cuts ----

class Upload(threading.Thread):
    """Puts versions of its own layer until the server is gone; remembers what was sent and what acknowledged."""

    def __init__(self, server, name, first):
        super().__init__(daemon=True)
        self.client, self.layer, self.number = server.client(), name, first
        self.sent, self.acknowledged = {}, None

    def run(self):
        with contextlib.suppress(Exception):
            while True:
                self.number += 1
                body = as_file(layer(f"{self.layer} {self.number}", width=random.choice((4, 16, 64))))
                self.sent[digest(body)] = self.number
                if put(self.client, self.layer, body).status in (200, 201):
                    self.acknowledged = self.number


@check
def nothing_acknowledged_is_lost_when_the_server_is_killed(stage):
    names, sent = ["k0", "k1"], {"k0": {}, "k1": {}}
    acknowledged, uploads = {"k0": 0, "k1": 0}, 0
    for _ in range(stage.kills):
        server = stage.server()
        server._start()
        workers = [Upload(server, name, max(sent[name].values(), default=0)) for name in names]
        for worker in workers:
            worker.start()
        time.sleep(random.random() * 0.15)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        for worker in workers:
            worker.join(10)
            sent[worker.layer].update(worker.sent)
            uploads += len(worker.sent)
            if worker.acknowledged:
                acknowledged[worker.layer] = worker.acknowledged
        with stage.server() as again:
            expect(stage.temporaries() == [], f"left over: {stage.temporaries()}")
            for name in names:
                reply = send(again.client(), "GET", f"/v1/layers/{name}", Accept=TENSORS)
                if reply.status == 404:
                    expect(acknowledged[name] == 0, f"{name} is lost")
                    continue
                version = sent[name].get(digest(reply.body))
                expect(version is not None, f"{name} is torn: {reply.status}, {len(reply.body)} bytes")
                expect(version >= acknowledged[name], f"{name} is {version}, {acknowledged[name]} was acknowledged")
                acknowledged[name] = version
    print(f"killed {stage.kills} times during {uploads} uploads")


@check
def every_state_that_a_power_cut_leaves_is_sound(stage):
    strace = shutil.which("strace")
    if strace is None:
        raise Skipped("needs strace")
    trace = stage.folder.parent / (stage.folder.name + ".trace")
    server = stage.server()
    server.program = None
    command = [strace, "-f", "-y", "-s", "1000000", "-xx", "-e", "trace=" + power_cut.CALLS, "-o", str(trace),
               stage.program]
    try:
        with TracedServer(command, server.environment) as traced:
            client = traced.client()
            for seed in range(4):
                answered(put(client, "a", as_file(layer(seed))), 201 if seed == 0 else 200)
                answered(put(client, f"b{seed}", layer(seed)), 201)
        if not trace.exists() or trace.stat().st_size == 0:
            raise Skipped("strace may not trace here")
        states, wrong = power_cut.states(trace.read_text(errors="replace"), str(stage.folder))
    except StartError as error:
        raise Skipped("strace may not trace here") from error
    finally:
        trace.unlink(missing_ok=True)
    expect(states > 100, f"only {states} states")
    expect(not wrong, f"{dict(wrong)} in {states} states")
    print(f"{states} states that a power cut could leave")


class TracedServer(Server):
    """A server below strace: the signal to end goes to the server itself."""

    def __init__(self, command, environment):
        super().__init__(command[-1], environment=environment)
        self.command = command

    def _command(self):
        return self.command

    def _stop(self):
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], check=False,
                                  capture_output=True, text=True).stdout
        for child in re.findall(r"\d+", children):
            os.kill(int(child), signal.SIGTERM)
        super()._stop()
