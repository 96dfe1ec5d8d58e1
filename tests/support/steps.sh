# steps.sh: for scripts that run steps which must all hold: .ci/run and mk/nightly.sh. To be sourced, in the repository's root.
# shellcheck shell=bash
#
#   step NAME COMMAND…    runs a command; it ends with 0 passed, 77 skipped (its last line says why), anything else failed
#   conclude_steps        prints how each failed step ended, and the verdict; its status is the script's
#
# Each step runs even when one before it failed, so that one run tells all. $logs is a folder with the output of each step.
# With `terse=1` a step is told in one line; else its output is shown, too. $only is a pattern of names; it is empty for all.

SKIP=77
passed=0 failed=0 skipped=0 broken=() terse=${terse:-} only=${only:-}
jobs=$(env -u OMP_NUM_THREADS nproc)
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

step() {
    local name=$1 start=$SECONDS status verdict
    shift
    [[ $name =~ $only ]] || return 0
    if [ -n "$terse" ]; then
        "$@" > "$logs/$name" 2>&1
    else
        printf '\n== %s\n' "$name"
        "$@" > >(tee "$logs/$name") 2>&1
    fi
    status=$?
    case $status in
    0) passed=$((passed + 1)) verdict=passed ;;
    "$SKIP") skipped=$((skipped + 1)) verdict="skipped: $(tail -n 1 "$logs/$name")" ;;
    *) failed=$((failed + 1)) verdict="failed, status $status" broken+=("$name") ;;
    esac
    printf "%s: %d s, %s\n" "$name" $((SECONDS - start)) "$verdict"
}

conclude_steps() {
    local name
    for name in "${broken[@]}"; do
        printf '\nfailed: %s, which ended so:\n' "$name"
        tail -n 40 "$logs/$name"
    done
    printf '\n%d s\n' "$SECONDS"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
}
