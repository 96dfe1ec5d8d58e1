#!/bin/sh
# replay.sh PROGRAM…: gives each fuzz target the inputs that are kept for it, and JSON targets the cases besides.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=replay
. tests/support/checks.sh
for program in "$@"; do
    name=$(basename "$program")
    case $name in
    fuzz_envelope | fuzz_request) more=tests/api/cases ;;
    *) more= ;;
    esac
    # shellcheck disable=SC2086
    check "$name runs its corpus" "$program" "tests/fuzz/corpus/${name#fuzz_}" $more
done
conclude
