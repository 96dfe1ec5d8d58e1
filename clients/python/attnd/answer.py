"""answer.py: what a server answers: arrays by name, facts beside them, and maps with labels for other libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
from numpy.typing import NDArray

from attnd.schema import Diagnostics, Effective, Generated, Outputs, Tokens, TopKOut

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import xarray


MAP = ("batch", "head", "query", "key")
#: The axes of the steps that can have labels. Answers of models have an axis of layers before them.
AXES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("scores", "scaled", "masked", "attention", "dropped", "contribution", "mask"), MAP),
    **dict.fromkeys(("lse", "entropy"), MAP[:3]),
    **dict.fromkeys(("attention_mean", "rollout"), ("batch", "query", "key")),
    "difference": ("batch", "pair", "query", "key"),
    "hidden": ("batch", "query", "feature"),
}
SELECTIONS = {"head": "heads", "query": "queries", "key": "keys"}


@dataclass(frozen=True)
class Labelled:
    """A step with what its axes stand for: numbers for each axis; words of queries and keys as (batch, axis), "" behind an item's end."""

    step: str
    values: NDArray[Any]
    numbers: dict[str, list[int]]
    words: dict[str, NDArray[Any]]


class Answer(Outputs):
    """Outputs by name (answer["attention"]), gradients, and what the server says beside: tokens, effective, diagnostics, …"""

    def __init__(self, outputs: dict[str, Any], facts: dict[str, Any], url: str = "", options: Any = None):
        self.outputs, self.url = outputs, url
        self.facts = {name: fact for name, fact in facts.items() if name != "shapes"}
        self.effective: Effective = facts.get("effective", {})
        self.diagnostics: Diagnostics = facts.get("diagnostics", {})
        #: {"query", "key"} of a layer, {"ids", "text", "shown", "offsets"} of a model, {"encoder", "decoder"} of two stacks.
        self.tokens: Optional[Tokens] = facts.get("tokens")
        #: Of options.new_tokens: {"ids", "text", "ended_by"}, each a list of one element for each item.
        self.generated: Optional[Generated] = facts.get("generated")
        #: At the place of what they belong to: gradients["inputs"]["query"].
        self.gradients: dict[str, Any] = outputs.pop("gradients", {})
        self._selected: Mapping[str, Any] = {**(options or {}), **self.effective}

    def __repr__(self) -> str:
        shapes = (f"{name} {getattr(value, 'shape', '…')}" for name, value in (self.outputs or self.gradients).items())
        return f"Answer({', '.join(shapes)})"

    def largest(self, step: str = "attention") -> TopKOut:
        """What options.top_k makes of a map: the largest weights of each row, and their keys."""
        found: TopKOut = self._output(step)
        if not isinstance(found, Mapping) or "indices" not in found:
            raise ValueError(f"{step} has no largest weights: ask with options.top_k")
        return found

    def layers(self, step: str = "attention") -> list[int]:
        """The numbers that the layers of a step have in the model; [0] of a single layer."""
        found = self.facts.get("layers") or [0]
        return list(found["encoder" if step.startswith("encoder_") else "decoder"] if isinstance(found, dict) else found)

    def rows(self, step: str = "attention") -> dict[str, list[list[Any]]]:
        """The words of "query" and "key", a row for each item of the batch, or one row for all; no rows without words."""
        owners = {"query": "decoder" if step.startswith(("decoder_", "cross_")) else "encoder",
                  "key": "decoder" if step.startswith("decoder_") else "encoder"}
        found: dict[str, list[list[Any]]] = {}
        tokens: dict[str, Any] = {**(self.tokens or {})}
        for side, owner in owners.items():
            part = tokens.get(owner, tokens)
            rows = part.get("shown") or part.get(side) or part.get("query") or []
            found[side] = rows if not rows or isinstance(rows[0], list) else [rows]
        return found

    def _output(self, step: str) -> Any:
        if step not in self.outputs:
            raise ValueError(f"the answer has no {step}: give step=, one of {', '.join(self.outputs) or 'none'}")
        return self.outputs[step]

    def _labelled(self, step: str) -> Labelled:
        values, dims = self._output(step), _dims_of(step)
        if step == "sweep":
            return self._swept(values["values"])
        if not isinstance(values, np.ndarray) or not dims:
            raise ValueError(f"{step} has no labels: choose one of {', '.join(AXES)}, sweep, without options.top_k")
        dims = ("layer", *dims) if values.ndim > len(dims) else dims
        numbers, words = {dim: list(range(size)) for dim, size in zip(dims, values.shape)}, {}
        if "layer" in dims:  # before the hidden states of layers come the embeddings, as number 0
            numbers["layer"] = [0, *(at + 1 for at in self.layers(step))] if "feature" in dims else self.layers(step)
        rows = self.rows(step)
        for dim, option in SELECTIONS.items():
            its_rows, size = rows.get(dim, []), len(numbers.get(dim, []))
            count = max(map(len, its_rows), default=0)
            places = [one for one in (_places(self._selected.get(option), count), list(range(count))) if size and len(one) == size]
            if places:  # none: such as with options.pool
                numbers[dim] = places[0]
            if places and its_rows:
                every = its_rows * (len(numbers["batch"]) if len(its_rows) == 1 else 1)
                words[dim] = np.array([[row[at] if at < len(row) else "" for at in places[0]] for row in every], object)
        return Labelled(step, values, numbers, words)

    def _swept(self, values: NDArray[Any]) -> Labelled:
        """Of the swept items, with NaN behind an item's end."""
        sweep: Any = self.effective["sweep"]
        items, across, found = sweep["items"], sweep["over"][1], values[sweep["items"]]
        numbers = {"batch": items, "layer": sweep["layers"]}
        if across == "head":
            return Labelled("sweep", found, {**numbers, across: sweep["heads"]}, {})
        owner = "encoder" if sweep.get("part") == "encoder" else "decoder"
        lengths, rows, size = self.facts["lengths"], self.rows(f"{owner}_")["query"], found.shape[2]
        ends = [(lengths[owner] if isinstance(lengths, dict) else lengths)[item] for item in items]
        asked = None if sweep["queries"] == "all" else sweep["queries"]
        places = [_places(asked, end) for end in ends]
        for its_values, its_places in zip(found, places):
            its_values[:, len(its_places):] = np.nan
        words = {across: _words_at(places, [rows[item] for item in items], size)} if rows else {}
        return Labelled("sweep", found, {**numbers, across: _numbers_of_all(asked, ends, size)}, words)

    def to_xarray(self, step: str = "attention") -> xarray.DataArray:
        """With dimensions such as layer, batch, head, query and key, and words as the coordinates query_word and key_word."""
        with _extra("xarray"):
            import xarray
        it = self._labelled(step)
        words = {f"{side}_word": (("batch", side), its_words) for side, its_words in it.words.items()}
        return xarray.DataArray(it.values, dims=list(it.numbers), coords={**it.numbers, **words}, name=step)

    def to_pandas(self, step: str = "attention") -> pandas.DataFrame:
        """A row for each number, which is the last column: layer, batch, head, query, key, query_word, key_word, attention."""
        with _extra("pandas"):
            import pandas
        it = self._labelled(step)
        frame = pandas.MultiIndex.from_product(it.numbers.values(), names=list(it.numbers)).to_frame(index=False)
        for side, words in it.words.items():
            shape = [len(its) if dim in ("batch", side) else 1 for dim, its in it.numbers.items()]
            frame[f"{side}_word"] = np.broadcast_to(words.reshape(shape), it.values.shape).ravel()
        frame[step] = it.values.ravel()
        return frame

    def plot(self, layer: int | None = None, head: int | None = None, *, step: str = "attention", batch: int = 0,
             ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """
        Draws one head by matplotlib, on ax where it is given; with step="sweep", the sweep of one item. layer and head are
        the numbers that they have in the model, by default the first of the answer.
        """
        with _extra("matplotlib"):
            from matplotlib import pyplot
        it = self._labelled(step)
        *rest, down, across = it.numbers
        if step == "sweep" and (layer, head) != (None, None):
            raise ValueError(f"a sweep is drawn with every {down} and {across}: leave out layer and head")
        asked, place = {"layer": layer, "batch": batch, "head": head}, {}
        if step != "sweep" and ((down, across) != MAP[2:] or not asked.keys() >= {*rest}):
            raise ValueError(f"{step} is no map of queries and keys")
        for dim in rest:
            numbers, number = it.numbers[dim], asked[dim]
            if number is not None and number not in numbers:
                raise ValueError(f"{step} has no {dim} {number}: choose one of {numbers}")
            place[dim] = 0 if number is None else numbers.index(number)
        words = {side: [word for word in its[place["batch"]] if word != ""] for side, its in it.words.items()}
        shown = it.values[tuple(place.values())]
        shown = shown[:len(words.get(down, shown)), :len(words.get(across, shown[0]))]
        colours: dict[str, Any] = {"cmap": "viridis"}
        if step == "sweep":  # with the unchanged run in the middle
            middle = self["sweep"]["unchanged"][batch]
            reach = np.nanmax(abs(shown - middle)) or 1
            colours = {"cmap": "RdBu_r", "vmin": middle - reach, "vmax": middle + reach}
        ax = pyplot.subplots()[1] if ax is None else ax
        ax.imshow(shown, **colours)
        ax.set_xticks(range(shown.shape[1]), words.get(across, it.numbers[across]), rotation=90 if across in words else 0)
        ax.set_yticks(range(shown.shape[0]), words.get(down, it.numbers[down]))
        places = (f"{dim} {it.numbers[dim][at]}" for dim, at in place.items() if dim != "batch")
        ax.set(title=", ".join([step, *places]), xlabel=across, ylabel=down)
        return ax


@contextmanager
def _extra(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ImportError(f"this needs {name}: pip install 'attnd[{name}]'") from error


def _dims_of(step: str) -> tuple[str, ...]:
    part, _, own = step.partition("_")
    return AXES.get(own if part in ("encoder", "decoder", "cross") else step, ())


def _numbers_of_all(asked: Any, ends: list[int], size: int) -> list[int]:
    """The numbers of an axis that items share. Where these have several lengths, a place from the end keeps its negative number."""
    found = [_places(asked, end) for end in ([0, max(ends)] if len({*ends}) > 1 else ends[:1])]
    return next((places for places in found if len(places) == size), [*range(size)])


def _words_at(places: list[list[int]], rows: list[list[Any]], size: int) -> NDArray[Any]:
    """A row of words for each item, with "" behind its end."""
    return np.array([[*(row[at] if at < len(row) else "" for at in its), *[""] * (size - len(its))] for its, row in zip(places, rows)], object)


def _places(selection: Any, count: int) -> list[int]:
    """The numbers that a selection of the interface names; all where there is none. Negative ones need a count."""
    if selection is None:
        return list(range(count))
    items = [selection] if isinstance(selection, (str, Mapping)) else np.asarray(selection, object).tolist()
    found: list[int] = []
    for item in items:
        ends = item.split("-") if isinstance(item, str) else (item["from"], item["to"]) if isinstance(item, Mapping) else item
        first, last = (int(end) + (count if int(end) < 0 else 0) for end in (ends if isinstance(ends, Sequence) else (ends, ends)))
        found += range(first, last + 1)
    return found
