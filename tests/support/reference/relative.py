"""relative.py: relative positions as terms of the score (He et al., "DeBERTa", 2021, equation 4), by their equations."""

import math

from bounded import dot
from tensors import Tensor


class RelativePosition:
    """The tables Kr and Qr, and what they add to a score. project makes a table of a layer from its embedding."""

    def __init__(self, own, weights, number, project):
        self.buckets, self.tables = own.get("buckets", 0), {}
        self.max_distance = own.get("max_distance")
        for name in ("key", "query"):
            if name in own:
                self.tables[name] = Tensor.from_json(own[name])
            elif "relative_" + name in weights:
                embedding = Tensor.from_json(own["embedding"])
                self.tables[name] = project(embedding.map(number) if number else embedding, weights["relative_" + name])
        self.half = next(iter(self.tables.values())).shape[0] // 2

    def at(self, q, k, heads, distance):
        """q and k: the vectors; heads: that of the query, and that of its key; distance: that of key from query."""
        row, sum_of_terms = self.row(distance), 0.0
        for name, x, h in (("key", q, heads[1]), ("query", k, heads[0])):
            if name in self.tables:
                table = self.tables[name]
                first = row * table.shape[1] + h * len(x)
                sum_of_terms = sum_of_terms + dot(x, table.data[first:first + len(x)])
        return sum_of_terms

    def row(self, distance):
        exact, away = self.buckets // 2, abs(distance)
        if self.buckets and away > exact:
            grown = math.log(away / exact) / math.log((self.max_distance - 1) / exact) * (exact - 1)
            away = math.ceil(grown - 1e-6) + exact
        return min(self.half + away, 2 * self.half - 1) if distance <= 0 else max(self.half - away, 0)
