#!/bin/sh
# replay.sh PROGRAM…: gives each fuzz target the inputs that are kept for it, and JSON targets the cases besides.
set -u
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=
for program in "$@"; do
    name=$(basename "$program")
    case $name in
    fuzz_envelope | fuzz_request) more=tests/api/cases ;;
    *) more= ;;
    esac
    # shellcheck disable=SC2086
    "$program" "tests/fuzz/corpus/${name#fuzz_}" $more && passed=$((passed + 1)) || failed="$failed $name"
done
[ -z "$failed" ] || echo "failed:$failed"
set -- $failed
echo "replay: $passed passed, $# failed, 0 skipped"
[ $# -eq 0 ]
