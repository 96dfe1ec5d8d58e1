#!/bin/sh
# attention.sh: a layer on three tokens with curl. ATTND_URL names another server.
set -eu
exec curl -sS --fail-with-body "${ATTND_URL:-http://127.0.0.1:8080}/v1/multi-head-attention" \
    -H 'Content-Type: application/json' --data-binary @- <<'JSON'
{ "inputs":  {"query": [[0.2, 0.7, 0.1], [0.9, 0.1, 0.3], [0.4, 0.5, 0.8]]},
  "weights": {"query": {"weight": [[1,0],[0,1],[1,1]]}, "key": {"weight": [[0,1],[1,0],[1,1]]},
              "value": {"weight": [[1,0],[0,1],[0,0]]}},
  "masks":   {"causal": true},
  "options": {"num_heads": 1, "digits": 4},
  "tokens":  {"query": ["Ben", "okula", "gidiyorum"]} }
JSON
