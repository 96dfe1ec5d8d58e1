"""layout.py: JSON text with an indent of two spaces; a value that fits on one line stays on one line."""

import json

WIDTH = 120


def layout(value, depth=0, before=0):
    """before counts what stands on the line already, and the comma that may follow."""
    flat = json.dumps(value, ensure_ascii=False)
    if depth > 0 and before + len(flat) <= WIDTH or not isinstance(value, (dict, list)) or not value:
        return flat
    pad = "  " * (depth + 1)
    if isinstance(value, dict):
        items = [f"{pad}{json.dumps(name)}: {layout(item, depth + 1, len(pad) + len(name) + 5)}"
                 for name, item in value.items()]
    else:
        items = [pad + layout(item, depth + 1, len(pad) + 1) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + "\n" + ",\n".join(items) + "\n" + "  " * depth + closing
