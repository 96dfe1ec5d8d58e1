#!/usr/bin/env bash
# hardening.sh: what the program and the library have against overwritten stacks and stray jumps, by what readelf sees.
# `make hardening` runs it and says by HARDENED which flags the compiler takes.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=hardening
. tests/support/checks.sh
build=${BUILD:-build/release}

taken() { [[ " ${HARDENED:-} " == *" $1"* ]]; }
shows() { # shows PATTERN FILE FLAG…: readelf's lines about the file have it
    local pattern=$1 file=$2
    shift 2
    readelf -W "$@" "$file" 2>/dev/null | grep -E "$pattern"
}

[ "${MODE:-release}" = release ] || skip_suite "only a release is hardened"
# Of OpenBLAS and others, only what is linked in counts: the objects are ours alone.
mapfile -t objects < <(find "$build/core" "$build/server" -name '*.o')
have_note() {
    local file bare=()
    for file in "$@"; do
        shows 'x86 feature:.*IBT.*SHSTK' "$file" -n >/dev/null || bare+=("$file")
    done
    [ ${#bare[@]} -eq 0 ] || { printf 'no note: %s\n' "${bare[@]}"; return 1; }
}
no_executable_stack() { ! shows 'GNU_STACK.*E ' "$1" -l; }

for file in "$build/attnd" "$build"/libattn.so.*; do
    check "$file has an address of its own at each start" shows 'DYN' "$file" -h
    check "$file binds all functions at the start" shows 'BIND_NOW|Flags:.*NOW' "$file" -d
    check "$file has tables that are read-only then" shows 'GNU_RELRO' "$file" -l
    check "$file has no executable stack" no_executable_stack "$file"
done
check "the program says that it is one of these" shows 'Flags:.* PIE' "$build/attnd" -d
check "stacks have a canary" shows '__stack_chk_fail' "$build/attnd" -s
if taken -D_FORTIFY_SOURCE; then
    check "copies are checked against their room" shows '__(snprintf|memcpy|vsnprintf)_chk' "$build/attnd" -s
fi
for flag in -fstack-clash-protection -D_FORTIFY_SOURCE=3; do
    if taken "$flag"; then
        check "everything is compiled with $flag" grep -qF -e "$flag" "$build/command"
    else
        skip "this compiler does not take $flag"
    fi
done
if taken -fcf-protection; then
    check "every object has the note of CET" have_note "${objects[@]}"
    check "functions begin where jumps may land" have_note "$build/attnd" "$build"/libattn.so.*
else
    skip "CET: ${ARCH:-another processor}, or a compiler without it"
fi
conclude
