# checks.sh: the harness of the suites that are shell scripts. A suite sets `suite` to its name and sources this file.
#
#   check CLAIM COMMAND…    runs a command, and counts whether it succeeds
#   skip WHY                counts a check that cannot run here
#   skip_suite WHY          ends a suite that cannot run here
#   conclude                prints the verdict; its status is the suite's, as in suite.py
#
# $work is a folder of the suite. With `verbose=1`, each check is reported, with its time. A suite may define anew:
# `excerpt FILE`, which prints the output of a failed command, and `clean_up`, which runs at the end.
# shellcheck shell=sh disable=SC2154,SC3043

work=$(mktemp -d)
trap 'clean_up; rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0 verbose=${verbose:-}

clean_up() { :; }
excerpt() { tail -n 10 "$1"; }

check() {
    local claim=$1 began
    began=$(date +%s)
    shift
    if "$@" >"$work/log" 2>&1; then
        [ -z "$verbose" ] || echo "   ok   $claim ($(($(date +%s) - began)) s)"
        passed=$((passed + 1))
    else
        echo "$suite: not so: $claim"
        excerpt "$work/log"
        failed=$((failed + 1))
    fi
}

skip() {
    echo "skipped: $1"
    skipped=$((skipped + 1))
}

skip_suite() {
    echo "skipped: $suite: $1"
    echo "$suite: 0 passed, 0 failed, 1 skipped"
    exit 77
}

conclude() {
    echo "$suite: $passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] || return 1
    [ "$passed" != 0 ] || return 77
}

# is A B, at_most A B: whether two words are the same, and whether a number is within a limit; otherwise they say so.
is() { [ "$1" = "$2" ] || { echo "is '$1', not '$2'"; return 1; }; }
at_most() { [ "$1" -le "$2" ] || { echo "$1 is more than $2"; return 1; }; }

# need_node FOLDER: node, npm and the packages of FOLDER/package.json, or the suite is skipped. Runs in the repository's root.
need_node() {
    local wanted
    mk/install_packages.sh nodejs npm || skip_suite "no node or npm, and no way to install them"
    wanted=$(cksum < "$1/package.json")
    [ "$(cat "$1/node_modules/.made-for" 2>/dev/null)" != "$wanted" ] || return 0
    (cd "$1" && npm install --silent --ignore-scripts --no-package-lock --no-audit --no-fund) ||
        skip_suite "npm could not get the packages of $1/package.json"
    echo "$wanted" > "$1/node_modules/.made-for"
}
