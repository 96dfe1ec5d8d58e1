#!/usr/bin/env python3
"""
check_list.py ARCHIVE ARCHITECTURE…: checks that an OCI archive has one list of images, with one image per
architecture, whose program is for that architecture.
"""

import io
import json
import sys
import tarfile

# e_machine of an ELF header, which begins at byte 18.
MACHINES = {"amd64": 62, "arm64": 183}
PROGRAM = "usr/bin/attnd"


def main(path, wanted):
    archive = tarfile.open(path)

    def blob(descriptor):
        return archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()

    top = json.load(archive.extractfile("index.json"))["manifests"]
    images = json.loads(blob(top[0]))["manifests"]
    found = sorted(item["platform"]["architecture"] for item in images)
    if len(top) != 1 or found != sorted(wanted):
        return f"{path} has {len(top)} lists, the first of {found}"
    for item in images:
        name, manifest = item["platform"]["architecture"], json.loads(blob(item))
        if json.loads(blob(manifest["config"]))["architecture"] != name:
            return f"the settings of the image for {name} say otherwise"
        layers = [tarfile.open(fileobj=io.BytesIO(blob(layer))) for layer in manifest["layers"]]
        program = next(layer.extractfile(PROGRAM).read(20) for layer in layers if PROGRAM in layer.getnames())
        if int.from_bytes(program[18:], "little") != MACHINES[name]:
            return f"{PROGRAM} of the image for {name} is for another processor"
    return None


if __name__ == "__main__":
    wrong = main(sys.argv[1], sys.argv[2:])
    print(wrong or f"one list of {', '.join(sys.argv[2:])}")
    sys.exit(1 if wrong else 0)
