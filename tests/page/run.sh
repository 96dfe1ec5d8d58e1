#!/bin/sh
# run.sh ATTND [run.mjs's options]: gets what the tests of the page drive, and runs them.
#
# Ends with 77, and why on its last line, when a browser or npm's packages cannot be had: a machine without a way to them
# can still build and serve the page.
set -u
here=$(dirname "$0")
program=$1
shift

skip() {
    echo "skipped: $1"
    exit 77
}

"$here/../../mk/install_packages.sh" chromium nodejs npm || skip "no chromium, node or npm, and no way to install them"
wanted=$(cksum < "$here/package.json")
if [ "$(cat "$here/node_modules/.made-for" 2>/dev/null)" != "$wanted" ]; then
    (cd "$here" && npm install --silent --ignore-scripts --no-package-lock --no-audit --no-fund) ||
        skip "npm could not get the packages of tests/page/package.json"
    echo "$wanted" > "$here/node_modules/.made-for"
fi
exec node "$here/run.mjs" --attnd "$program" --chromium "$(command -v chromium)" "$@"
