#!/usr/bin/env python3
"""check_sbom.py FILE PACKAGE…: checks that FILE is an SPDX 2.3 document that lists the packages, each by version."""

import json
import sys


def main():
    path, wanted = sys.argv[1], sys.argv[2:]
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0", document["spdxVersion"]
    parts = {part["SPDXID"]: part for part in document["packages"]}
    assert len(parts) == len(document["packages"]), "an identifier stands twice"
    for part in parts.values():
        assert part["name"] and part["versionInfo"] and part["downloadLocation"], part
        assert part["licenseDeclared"] != "NOASSERTION", f"docker/sbom.sh knows no licence of {part['name']}"
    for relation in document["relationships"]:
        for end in (relation["spdxElementId"], relation["relatedSpdxElement"]):
            assert end in parts or end == document["SPDXID"], f"{end} is not in the document"
    names = {part["name"] for part in parts.values()}
    assert names >= {"attnd", *wanted}, f"lacks {set(wanted) - names}"


if __name__ == "__main__":
    main()
