#!/bin/sh
# lint.sh: lints server/openapi.json with Redocly's tool from npm.
#
# Ends with 77, and why on its last line, when node, npm or the package cannot be had.
set -u
here=$(dirname "$0")
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true

skip() {
    echo "skipped: $1"
    exit 77
}

"$here/../../../mk/install_packages.sh" nodejs npm || skip "no node or npm, and no way to install them"
wanted=$(cksum < "$here/package.json")
if [ "$(cat "$here/node_modules/.made-for" 2>/dev/null)" != "$wanted" ]; then
    (cd "$here" && npm install --silent --ignore-scripts --no-package-lock --no-audit --no-fund) ||
        skip "npm could not get the packages of tests/api/openapi/package.json"
    echo "$wanted" > "$here/node_modules/.made-for"
fi
cd "$here" && exec node_modules/.bin/redocly lint --config redocly.yaml ../../../server/openapi.json
