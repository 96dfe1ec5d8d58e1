#!/bin/sh
# lint.sh [DOCUMENT]: lints the OpenAPI document with Redocly's and Spectral's tools from npm. A warning is an error.
#
# Ends with 77, and why on its last line, when node, npm or the packages cannot be had.
set -u
cd "$(dirname "$0")/../../.." || exit 1
suite=openapi-lint
. tests/support/checks.sh
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
document=${1:-build/release/server/openapi.json}
rules=tests/api/openapi

[ -f "$document" ] || skip_suite "there is no $document: make writes it"
need_node $rules
check "Redocly finds nothing" $rules/node_modules/.bin/redocly lint --config $rules/redocly.yaml "$document"
check "Spectral finds nothing" $rules/node_modules/.bin/spectral lint --fail-severity warn -r $rules/spectral.yaml "$document"
conclude
