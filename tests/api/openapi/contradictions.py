"""contradictions.py: the text and the code may not disagree: whatever one of them lacks or contradicts stops the build."""

import copy
import json
import subprocess
import tempfile


def options(schemas):
    return schemas["AttentionOptions"]["properties"]


# What is changed in the text, and words of the sentence about it.
CHANGES = {
    "a member that no decoder reads": (
        lambda schemas: options(schemas).update(sharpness={"description": "None."}), "/options/sharpness is described"),
    "another limit": (lambda schemas: options(schemas)["num_heads"].update(maximum=8), '/options/num_heads: "maximum"'),
    "other words": (
        lambda schemas: options(schemas)["compute"].update(type="string", enum=["float8"]), '/options/compute: "enum"'),
    "a form that no decoder takes": (
        lambda schemas: options(schemas)["digits"].update(oneOf=[{"type": "boolean"}]), '/options/digits may be "boolean"'),
    "an object that is not described": (
        lambda schemas: schemas["Masks"]["properties"]["causal"].pop("$ref"), 'an object with "align"'),
    "a list that there is not": (lambda schemas: schemas["Step"].update({"x-words": ["stairs"]}), 'no list "stairs"'),
}


def check_contradictions(document):
    for what, (change, words) in CHANGES.items():
        root = copy.deepcopy(document.source.root)
        change(root["components"]["schemas"])
        with tempfile.NamedTemporaryFile("w", suffix=".json") as text:
            json.dump(root, text)
            text.flush()
            made = subprocess.run([document.maker, text.name], capture_output=True, text=True, check=False)
        if made.returncode == 0 or made.stdout or words not in made.stderr:
            yield f"{what} is not refused: status {made.returncode}, {made.stderr!r}"


CHECKS = (check_contradictions,)
