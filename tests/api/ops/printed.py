"""printed.py: runs the commands that the manual page, the unit and docs/operations.md show."""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import tempfile

from attnd import Server, wait_until
from certificates import make_certificate
from suite import registry

ROOT = pathlib.Path(__file__).resolve().parents[3]
TESTS = []
test = registry(TESTS)


def free_port():
    """One that the system gives to no client: tests beside this one connect while its servers come and go."""
    for port in random.Random().sample(range(20000, 32000), 100):
        with contextlib.suppress(OSError), socket.create_server(("0.0.0.0", port)):
            return port
    raise AssertionError("no port is free")


class Shell:
    """Lines as somebody types them into a shell, in a folder, with a port of our own in place of 8080."""

    def __init__(self, program, folder, **settings):
        self.program, self.folder, self.port, self.servers = program, folder, free_port(), contextlib.ExitStack()
        self.environment = {**os.environ, "ATTND_LISTEN": "127.0.0.1:8080", "ATTND_DRAIN_DELAY": "0", **settings}
        self.environment = {name: self.own(value) for name, value in self.environment.items()}
        self.printed = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.servers.close()

    def own(self, text):
        ours = {":8080": f":{self.port}", "/etc/attnd": f"{self.folder}/etc", "/srv/models": f"{self.folder}/models"}
        for theirs, own in ours.items():
            text = text.replace(theirs, own)
        return text

    def type(self, line):
        words = line.removesuffix("&").split()
        if words[0] == "attnd" and (len(words) == 1 or words[1].startswith("--")):
            self.serve(self.own(" ".join(words[1:])))
            return
        line = re.sub(r"^attnd\b", lambda _: f"'{self.program}'", self.own(line))
        done = subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        if words[:2] == ["attnd", "key"]:
            self.environment["KEY"] = done.stderr.split()[-1]
        self.printed.append(done.stdout)

    def serve(self, flags):
        """Starts a server; the next line is typed when the server is ready."""
        def run(words, **more):
            return subprocess.Popen(["bash", "-c", f"exec '{self.program}' {words} {flags}"], cwd=self.folder,
                                    env=self.environment, stderr=subprocess.PIPE, text=True, **more)

        server = self.servers.enter_context(run(""))
        self.servers.callback(server.terminate)

        def lives():
            assert server.poll() is None, f"attnd {flags}\n{server.stderr.read()}"
            with run("health live --insecure") as health:
                return health.wait() == 0

        wait_until(lives, f"attnd {flags}: no server lives")

    def answers(self):
        return [json.loads(text)["outputs"]["output"] for text in self.printed if text.startswith("{")]


def blocks_of_manual(text):
    """The examples, each a list of lines."""
    for block in re.findall(r"^\.EX\n(.*?)^\.EE$", text, re.MULTILINE | re.DOTALL):
        block = block.replace("\\-", "-").replace("\\e", "\\")
        yield block.replace("\\\n", " ").splitlines()


@test
def the_examples_of_the_manual_page_work(program):
    blocks = list(blocks_of_manual((ROOT / "packaging" / "attnd.1.in").read_text()))
    assert len(blocks) >= 3, blocks
    for block in blocks:
        with tempfile.TemporaryDirectory() as folder:
            make_certificate(folder)
            for name in ("cert", "key"):
                shutil.move(f"{folder}/{name}", f"{folder}/{name}.pem")
            with Shell(program, folder) as shell:
                for line in block:
                    shell.type(line)
                expected = sum("curl" in line for line in block)
                assert len(shell.answers()) == expected, (block, shell.printed)


@test
def the_comment_of_the_unit_works(program):
    lines = re.findall(r"^#     (.*)$", (ROOT / "packaging" / "attnd.service.in").read_text(), re.MULTILINE)
    settings = dict(line.split("=", 1) for line in lines if line.startswith("ATTND_"))
    assert set(settings) == {"ATTND_LISTEN", "ATTND_KEYS", "ATTND_MODELS"}, settings
    with tempfile.TemporaryDirectory() as folder, Shell(program, folder, **settings) as shell:
        shutil.copytree(ROOT / "tests" / "others" / "models" / "bert", f"{folder}/models/bert")
        for line in lines:
            if not line.startswith("ATTND_"):
                shell.type(line)
        assert pathlib.Path(f"{folder}/etc/keys").stat().st_mode & 0o004, "the user of the service cannot read the keys"
        shell.type("attnd")
        shell.type("""curl -s -H "Authorization: Bearer $KEY" http://127.0.0.1:8080/v1/attention """
                   """-H 'Content-Type: application/json' -d '{"inputs": {"query": [[1]], "value": [[7]]}}'""")
        assert shell.answers() == [[[7]]], shell.printed
        shell.type('curl -s -H "Authorization: Bearer $KEY" http://127.0.0.1:8080/v1/models/bert')
        assert json.loads(shell.printed[-1])["state"] == "ready", shell.printed


@test
def the_commands_of_operating_work(program):
    section = (ROOT / "docs" / "operations.md").read_text().split("### Keys")[1].split("\n#")[0]
    lines = re.findall(r"^    (.*)$", section, re.MULTILINE)
    assert lines[-1].startswith("attnd --keys"), lines
    with tempfile.TemporaryDirectory() as folder, Shell(program, folder) as shell:
        for line in lines:
            shell.type(line)


@test
def the_sizing_says_how_many_bytes_a_number_takes(program):
    page = (ROOT / "docs" / "operations.md").read_text()
    least, most = re.search(r"([0-9]+) to ([0-9]+) bytes a number in JSON", page).groups()
    rounded = re.search(r"\(([0-9]+) to ([0-9]+) with `\"digits\": 4`\)", page).groups()
    source = random.Random(1)
    query = [[source.gauss(0, 1) for _ in range(64)] for _ in range(256)]
    measured = {}
    with Server(program) as server:
        for wanted, count in (("output", 256 * 64), ("attention", 256 * 256), ("scores", 256 * 256)):
            for digits, options in (("all", {}), ("4", {"digits": 4}), ("base64", {"format": "base64"})):
                reply = server.client().post("/v1/attention", {"inputs": {"query": query},
                                                               "options": {"return": [wanted], **options}})
                assert reply.status == 200, reply.body
                measured.setdefault(digits, []).append(len(reply.body) / count)
    assert int(least) <= min(measured["all"]) and max(measured["all"]) <= int(most), measured
    assert int(rounded[0]) <= min(measured["4"]) and max(measured["4"]) <= int(rounded[1]), measured
    assert all(round(value, 1) in (5.3, 5.4) for value in measured["base64"]), measured


@test
def the_dashboard_has_a_share_of_errors_before_the_first_error(_):
    """A series of a status is there from the first answer with it on; a sum of none is empty, and so is its share."""
    dashboard = (ROOT / "docker" / "compose" / "grafana" / "attnd.json").read_text()
    of_errors = [text for text in re.findall(r'"expr": "(.*)"', dashboard) if "status=~" in text]
    assert of_errors and all(") or vector(0)) / " in text for text in of_errors), of_errors


@test
def the_keys_of_the_cluster_work(program):
    """The commands that make the Secret; then a server with the settings of the overlay, and the Secret where it mounts it."""
    overlay = ROOT / "docker" / "kubernetes" / "overlays" / "keys"
    lines = re.findall(r"^#     (.*)$", (overlay / "kustomization.yaml").read_text(), re.MULTILINE)
    patch = (overlay / "keys.yaml").read_text()
    settings = dict(re.findall(r"name: (ATTND_[A-Z_]+)\s+value: \"?([^\s\"]+)", patch))
    assert "mountPath: /etc/attnd\n" in patch and "secretName: attnd-keys\n" in patch, patch
    assert any(line == "kubectl create secret generic attnd-keys --from-file=keys" for line in lines), lines
    with tempfile.TemporaryDirectory() as folder, Shell(program, folder, ATTND_LISTEN=":8080", **settings) as shell:
        for line in lines:
            if " key " in line:
                shell.type(re.sub(r"^docker run --rm attnd:\S+|  +#.*", lambda found: "attnd" if found.start() == 0 else "", line))
        os.mkdir(f"{folder}/etc")
        os.rename(f"{folder}/keys", f"{folder}/etc/keys")
        shell.type("attnd")
        shell.type('curl -sf -o /dev/null -H "Authorization: Bearer $KEY" http://127.0.0.1:8080/metrics')


@test
def the_settings_of_containers_are_settings(program):
    """Their values too: `attnd health` reads all settings, and only then misses a server."""
    pairs = set()
    for path in [ROOT / "docker" / "Dockerfile", *(ROOT / "docker").rglob("*.yaml")]:
        pairs.update(re.findall(r"(?<![{\w])(ATTND_[A-Z_]+)(?:[=:] ?|\s+value: )\"?([^\s\"$]+)", path.read_text()))
    assert len(pairs) > 5, pairs
    known = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    for name, value in pairs:
        assert re.search(rf"\b{name}\b", known), f"{name} is not a setting"
        listen = value if name == "ATTND_LISTEN" else f"127.0.0.1:{free_port()}"
        done = subprocess.run([program, "health", "--listen", listen.replace("8080", str(free_port()))],
                              env={**os.environ, "ATTND_MAX_BODY": "1M", name: value}, capture_output=True, text=True,
                              timeout=60)
        assert "no server answers at" in done.stderr, f"{name}={value}: {done.stderr}"
