#!/usr/bin/env python3
"""
by_hand.py: attention by two loops, and each of its steps beside the server's. Standard library only.

The three words and their matrices are those of docs/tutorial.md. ATTND_URL names another server.
"""

import json
import math
import os
import sys
import urllib.request

URL = os.environ.get("ATTND_URL", "http://127.0.0.1:8080")
X = [[0.2, 0.7, 0.1], [0.9, 0.1, 0.3], [0.4, 0.5, 0.8]]
WEIGHTS = {"query": [[1, 0], [0, 1], [1, 1]], "key": [[0, 1], [1, 0], [1, 1]], "value": [[1, 0], [0, 1], [0, 0]]}
TOLERANCE = 1e-6  # the server's float32 has seven digits, Python's floats have sixteen


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def softmax(row):
    powers = [math.exp(score - max(row)) for score in row]
    return [power / sum(powers) for power in powers]


def by_hand():
    """Every step by its name, each a matrix."""
    q, k, v = (product(X, WEIGHTS[name]) for name in ("query", "key", "value"))
    scores = [[0.0 for _ in k] for _ in q]
    for i, query in enumerate(q):
        for j, key in enumerate(k):
            scores[i][j] = sum(x * y for x, y in zip(query, key))
    assert scores == product(q, list(zip(*k)))  # the matrix form, q times k transposed
    scaled = [[score / math.sqrt(len(k[0])) for score in row] for row in scores]
    masked = [[score if j <= i else -math.inf for j, score in enumerate(row)] for i, row in enumerate(scaled)]
    attention = [softmax(row) for row in masked]
    return {"q": q, "k": k, "v": v, "scores": scores, "scaled": scaled, "masked": masked, "attention": attention,
            "context": product(attention, v)}


def by_server(steps):
    request = {"inputs": {"query": X}, "weights": {name: {"weight": matrix} for name, matrix in WEIGHTS.items()},
               "masks": {"causal": True}, "options": {"num_heads": 1, "return": steps}}
    call = urllib.request.Request(URL + "/v1/multi-head-attention", json.dumps(request).encode(),
                                  {"Content-Type": "application/json"})
    with urllib.request.urlopen(call) as reply:
        outputs = json.load(reply)["outputs"]
    return {name: outputs[name][0][0] for name in steps}  # the first sentence, the first head


def difference(mine, theirs):
    """JSON has no infinity: a hidden score is null."""
    theirs = -math.inf if theirs is None else theirs
    return 0 if mine == theirs else abs(mine - theirs)


def main():
    mine = by_hand()
    theirs = by_server(list(mine))
    largest = {name: max(difference(a, b) for row, other in zip(mine[name], theirs[name]) for a, b in zip(row, other))
               for name in mine}
    for name, value in largest.items():
        print(f"{name:10}", "the same" if value <= TOLERANCE else f"off by {value:g}")
    return max(largest.values()) > TOLERANCE


if __name__ == "__main__":
    sys.exit(main())
