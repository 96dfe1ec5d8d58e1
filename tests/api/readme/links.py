#!/usr/bin/env python3
"""
links.py: every link of the documents leads to a file of the repository, and to a heading that is there; the index of
docs/ leads to each of its pages.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from suite import conclude  # noqa: E402

LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^()\s]+)\)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(path):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", path.read_text()), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def broken(path):
    links = LINK.findall(CODE.sub("", path.read_text()))
    for link in links:
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists():
            yield f"{link}: there is no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{link}: there is no such heading"


def targets(path):
    return {(path.parent / link.partition("#")[0]).resolve() for link in LINK.findall(path.read_text())}


def unreached(paths):
    """Pages that the index does not have."""
    docs = ROOT / "docs"
    pages = {path for path in paths if path.parent == docs and path.name != "README.md"}
    yield from (f"docs/README.md does not lead to {path.name}" for path in sorted(pages - targets(docs / "README.md")))


def documents():
    """What git has, or, in a tarball and without git, what is there."""
    names = []
    if shutil.which("git"):
        names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    found = [ROOT / name for name in names] or [path for path in ROOT.rglob("*.md")
                                                if not {"node_modules", "build"} & set(path.relative_to(ROOT).parts)]
    return [path for path in found if path.exists()]


def main():
    passed = failed = 0
    for path in documents():
        wrong = list(broken(path))
        failed += bool(wrong)
        passed += not wrong
        for text in wrong:
            print(f"{path.relative_to(ROOT)}: {text}")
    for text in unreached(documents()):
        failed += 1
        print(text)
    return conclude("links", passed, failed)


if __name__ == "__main__":
    sys.exit(main())
