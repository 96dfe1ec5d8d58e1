# checks.sh: for suites that are shell scripts: to be sourced, with `suite` as their name. $work is a folder of their own.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

check() { # check CLAIM COMMAND…
    local claim=$1
    shift
    "$@" >"$work/log" 2>&1 && { passed=$((passed + 1)); return; }
    printf '%s: not so: %s\n' "$suite" "$claim"
    tail -n 10 "$work/log"
    failed=$((failed + 1))
}

# skip WHY: counts a check that cannot be made here.
skip() {
    echo "skipped: $1"
    skipped=$((skipped + 1))
}

# conclude: prints the verdict; its status is the suite's, as in suite.py.
conclude() {
    echo "$suite: $passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] || return 1
    [ "$passed" != 0 ] || return 77
}
