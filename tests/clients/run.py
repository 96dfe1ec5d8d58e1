#!/usr/bin/env python3
"""run.py --attnd PROGRAM: clients/js and clients/python against a server: js.mjs, python.py, view.mjs. Each prints its verdict."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = "tests/clients"
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/api/models")]

import classes  # noqa: E402
import suite  # noqa: E402
from attnd import Server  # noqa: E402

#: Debian's, which has Debian's NumPy, before any other.
PYTHON = "/usr/bin/python3" if pathlib.Path("/usr/bin/python3").exists() else sys.executable


def run(*command):
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def has_packages(name, folder):
    """Whether node and the packages of a folder are there or could be got; else the suite says that it is skipped."""
    return run("sh", "-c", f"suite={name}; . tests/support/checks.sh; need_node {folder}") == 0


def has_browser():
    return run("mk/install_packages.sh", "chromium") == 0 and shutil.which("chromium") is not None


def models(folder):
    """Models with heads of classes and with poolings, a decoder, and an encoder with a decoder, beside the program's own."""
    classes.stage(pathlib.Path(folder))
    for name in ("gpt2", "t5"):
        (pathlib.Path(folder) / name).symlink_to(ROOT / "tests" / "others" / "models" / name)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attnd", required=True)
    program = parser.parse_args().attnd
    run("mk/install_packages.sh", "python3-numpy", "python3-pip", "python3-setuptools", "python3-wheel")
    run("mk/install_packages.sh", "python3-xarray", "python3-pandas", "python3-matplotlib", "mypy")  # without them tests are skipped
    with tempfile.TemporaryDirectory() as folder, Server(program, environment={"ATTND_MODELS": models(folder)}) as server:
        statuses = [run(PYTHON, f"{HERE}/python.py", "--url", server.url)]
        if has_packages("client-js", "clients/js"):
            statuses.append(run("node", "clients/js/types.mjs", server.url))
            statuses.append(run("node", f"{HERE}/js.mjs", server.url))
        if not has_browser() or run(PYTHON, "-c", "import numpy") != 0:
            suite.skip("client-view", "no chromium or no NumPy, and no way to install them")
        elif has_packages("client-view", "tests/page"):
            statuses.append(run("node", f"{HERE}/view.mjs", server.url, shutil.which("chromium"), PYTHON))
    return 1 if any(status not in (0, suite.SKIPPED) for status in statuses) else 0


if __name__ == "__main__":
    sys.exit(main())
