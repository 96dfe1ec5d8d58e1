#!/bin/sh
# run.sh ATTND: the page in Firefox, which is installed where it is missing.
#
# Ends with 77, and why on its last line, when Firefox or npm's packages cannot be had.
set -u
cd "$(dirname "$0")/../../.." || exit 1
suite=test-firefox
. tests/support/checks.sh

mk/install_packages.sh firefox-esr || skip_suite "no firefox-esr, and no way to install it"
need_node tests/page
node tests/page/firefox/run.mjs --attnd "$1" --firefox "$(command -v firefox-esr)"
