#!/bin/sh
# run.sh SECONDS PROGRAM…: fuzzes each target for so many seconds, as many at once as there are processors.
#
# Starts from tests/fuzz/corpus and from what earlier runs found, which build/fuzz/found keeps. A finding stands in
# build/fuzz/found as crash-…, leak-…, timeout-… of its target: make it small (-minimize_crash=1), put it into the corpus.
set -u
cd "$(dirname "$0")/../.." || exit 1
seconds=$1
shift

fuzz_one() {
    program=$1 seconds=$2
    name=$(basename "$program")
    target=${name#fuzz_} found=build/fuzz/found/${name#fuzz_} more=
    case $target in
    envelope | request) more=tests/api/cases ;;
    esac
    mkdir -p "$found"
    # shellcheck disable=SC2086
    "$program" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="build/fuzz/found/$target-" "$found" "tests/fuzz/corpus/$target" $more \
        >"build/fuzz/found/$target.log" 2>&1
    status=$?
    if [ $status -eq 0 ]; then
        echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/found/$target.log") inputs," \
            "$(find "$found" -type f | wc -l) kept"
    else
        tail -60 "build/fuzz/found/$target.log"
        echo "$target: status $status"
    fi
    return $status
}

if [ "${FUZZ_ONE:-}" ]; then
    fuzz_one "$1" "$seconds"
    exit
fi
mkdir -p build/fuzz/found
printf '%s\n' "$@" | FUZZ_ONE=1 xargs -P "$(nproc)" -n 1 "$0" "$seconds"
