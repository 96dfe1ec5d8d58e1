#!/bin/sh
# lint.sh: lints server/openapi.json with Redocly's tool from npm.
#
# Ends with 77, and why on its last line, when node, npm or the package cannot be had.
set -u
cd "$(dirname "$0")/../../.." || exit 1
suite=openapi-lint
. tests/support/checks.sh
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true

need_node tests/api/openapi
lint() { cd tests/api/openapi && node_modules/.bin/redocly lint --config redocly.yaml ../../../server/openapi.json; }
check "the linter finds nothing" lint
conclude
