#!/bin/sh
# run.sh ATTND [run.mjs's options]: gets what the tests of the page drive, and runs them.
#
# Ends with 77, and why on its last line, when a browser or npm's packages cannot be had: a machine without a way to them
# can still build and serve the page.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=test-page
. tests/support/checks.sh
program=$1
shift

# Chromium without its window takes 40 % of the processor's time.
mk/install_packages.sh chromium-headless-shell python3-numpy ||
    skip_suite "no chromium-headless-shell or python3-numpy, and no way to install them"
need_node tests/page
node tests/page/run.mjs --attnd "$program" --chromium "$(command -v chromium-headless-shell)" "$@"
