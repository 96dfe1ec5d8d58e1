#!/usr/bin/env python3
"""client.py: who attends to whom, as a table. Python's standard library only; ATTND_URL names another server."""

import json
import os
import urllib.error
import urllib.request

URL = os.environ.get("ATTND_URL", "http://127.0.0.1:8080")


class AttentionError(Exception):
    """The server's refusal: where in the request, and why."""


def attention(**request):
    """POST /v1/attention: inputs, masks, options and tokens in, the whole answer out."""
    call = urllib.request.Request(URL + "/v1/attention", json.dumps(request).encode(),
                                  {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(call) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as refusal:
        problem = json.load(refusal)
        raise AttentionError(f"{problem.get('pointer', '')}: {problem['error']}") from None


def main():
    tokens = ["Ben", "okula", "gidiyorum"]
    answer = attention(
        inputs={"query": [[0.3, 0.8], [1.2, 0.4], [1.2, 1.3]], "key": [[0.8, 0.3], [0.4, 1.2], [1.3, 1.2]],
                "value": [[0.2, 0.7], [0.9, 0.1], [0.4, 0.5]]},
        masks={"causal": True}, tokens={"query": tokens})
    print(" " * 10 + "".join(f"{token:>10}" for token in tokens))
    for token, row in zip(tokens, answer["outputs"]["attention"][0][0]):
        print(f"{token:>10}" + "".join(f"{weight:10.4f}" for weight in row))
    try:
        attention(inputs={"query": [[1, 2], [3]]})
    except AttentionError as refusal:
        print("refused", refusal)


if __name__ == "__main__":
    main()
