"""
lines.py: tries what a document shows besides curl: lines for a cluster, lines for a container.

    cluster     what ```sh blocks apply by kubectl is rendered, and has every object and container that they name
    container   ```sh blocks run the image of this version, with settings that exist
"""

import pathlib
import re
import shutil
import subprocess

from suite import Skipped

ROOT = pathlib.Path(__file__).resolve().parents[3]


def output(*words):
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr[-500:]}"
    return done.stdout


def need(program):
    if shutil.which(program) is None:
        raise Skipped(f"no {program}")


def cluster(body, _):
    need("kubectl")
    folders = re.findall(r"kubectl apply -k (\S+)", body)
    objects = "".join(output("kubectl", "kustomize", folder) for folder in folders).split("\n---\n")
    for kind, name in re.findall(r"\b(deployment|service)/(\S+)", body):
        found = [text for text in objects if re.search(rf"^kind: {kind.title()}$", text, re.M)]
        assert any(re.search(rf"^  name: {name}$", text, re.M) for text in found), f"{folders} have no {kind}/{name}"
    for container in re.findall(r"kubectl set image \S+ (\S+)=", body):
        assert f"name: {container}\n" in "".join(objects), f"{folders} have no container {container}"


def container(body, _):
    version = (ROOT / "VERSION").read_text().strip()
    assert f"attnd:{version}" in body, f"the image is attnd:{version}"
    settings = (ROOT / "server/config/settings.c").read_text()
    for name in re.findall(r"-e ATTND_([A-Z_]+)=", body):
        assert f'"{name.lower().replace("_", "-")}"' in settings, f"ATTND_{name} is no setting"
    for target in re.findall(r"^make (\S+)", body, re.M):
        output("make", "-n", target)


def kind_of(kind, body):
    """The function that tries such a block, or None."""
    if kind == "sh" and "kubectl apply" in body:
        return cluster
    if kind == "sh" and "docker run" in body:
        return container
    return None
