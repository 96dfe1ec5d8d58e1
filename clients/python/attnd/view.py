"""view.py: every head of an answer in a notebook, drawn by the module that the server serves."""

from __future__ import annotations

import base64
import json
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnd import __version__
from attnd.transport import address

SCRIPT = """
const here = document.getElementById(%(id)s), name = here.querySelector("p");
const bytes = Uint8Array.from(atob(%(data)s), (c) => c.charCodeAt(0));
const data = { numbers: { shape: %(shape)s, data: new Float32Array(bytes.buffer) }, tokens: %(tokens)s, layers: %(layers)s };
import(%(module)s).then(({ drawGrid, drawLinks, drawMap }) => {
  const open = %(open)s;
  const [grid, map, links] = [drawGrid, drawMap, drawLinks].map((draw, at) => draw(here.children[at + (at > 0)], data, open));
  const say = ({ layer, head }) => { name.textContent = `layer ${layer}, head ${head}`; };
  say(open);
  grid.addEventListener("select", ({ detail }) => { map.update(detail); links.update(detail); say(detail); });
  map.addEventListener("select", ({ detail }) => links.update({ row: detail.row }));
}).catch((problem) => { name.textContent = %(failed)s + problem.message; });
"""


class HeadView:
    """What a notebook shows; html is the same for a file."""

    def __init__(self, content: str):
        self.html = content

    def _repr_html_(self) -> str:
        return self.html


def head_view(answer: Any, step: str = "attention", *, batch: int = 0, layer: int | None = None, head: int = 0,
              url: str | None = None, inline: bool = False) -> HeadView:
    """
    Every head of one item of a batch, as a grid; a click opens one as a map and as links. answer is one of Client, or maps
    as an array (layers, heads, queries, keys), with fewer dimensions too; url is a server whose module draws, else that of
    the answer. The numbers are in the notebook. It needs a way to the server whenever it is shown; with inline, the module
    is fetched once, now, and is in the notebook too.
    """
    is_array = hasattr(answer, "__array__")
    maps = np.asarray(answer if is_array else answer[step], "<f4")
    if not is_array:  # (layers, batch, heads, q, k) of models, (batch, heads, q, k) of layers
        maps = maps[:, batch] if maps.ndim == 5 else maps[None, batch]
    maps = maps.reshape((1,) * (4 - maps.ndim) + maps.shape)
    layers = list(range(len(maps))) if is_array else answer.layers(step)
    server = url or (address() if is_array else answer.url)
    module = f"{server}/web/{__version__.rpartition('.')[0]}/attention.js"
    name = f"attnd-{uuid.uuid4().hex}"
    script = SCRIPT % {
        "id": _script(name),
        "data": _script(base64.b64encode(np.ascontiguousarray(maps).data).decode()),
        "shape": _script(maps.shape),
        "tokens": _script(None if is_array else _tokens(answer.rows(step), batch)),
        "layers": _script(layers),
        "open": _script({"layer": layers[0] if layer is None else layer, "head": head}),
        "module": _script(_fetched(module) if inline else module),
        "failed": _script("" if inline else f"{server} cannot be reached from this page: "),
    }
    return HeadView(f'<div id="{name}" role="group" aria-label="attention"><div></div><p></p><div></div><div></div></div>'
                    f'<script type="module">{script}</script>')


def _fetched(address: str) -> str:
    """The address of a script that has its text in it."""
    with urllib.request.urlopen(address, timeout=30) as response:
        return "data:text/javascript;base64," + base64.b64encode(response.read()).decode()


def _script(value: Any) -> str:
    """As JavaScript within HTML."""
    return json.dumps(value).replace("<", "\\u003c")


def _tokens(rows: Mapping[str, Sequence[Any]], batch: int) -> Any:
    """{"query", "key"} of one item."""
    found = {side: its[batch if len(its) > 1 else 0] for side, its in rows.items() if its}
    return found if len(found) == 2 else None
