#!/bin/sh
# run.sh: builds what OSS-Fuzz would build, and runs each target on its seeds, in a folder and an environment of its own.
set -u
cd "$(dirname "$0")/../../.." || exit 1
suite=oss-fuzz
verbose=1
. tests/support/checks.sh
mk/install_packages.sh clang zip unzip "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev" || skip_suite "no clang, or no zip"

export OUT="$work/out" WORK=build/oss-fuzz CC=clang CXX=clang++ LIB_FUZZING_ENGINE=-fsanitize=fuzzer
export CFLAGS='-O1 -gline-tables-only -fno-omit-frame-pointer -fsanitize=address,undefined -fsanitize=fuzzer-no-link'
export CXXFLAGS=$CFLAGS

# NAME: its libraries are the C library's, or stand beside it.
stands_alone() {
    local foreign
    foreign=$(ldd "$1" | awk -v own="$OUT/lib/" \
        '$3 ~ /^\// && index($3, own) != 1 && $1 !~ /^lib(c|m|pthread|dl|rt)\.so/ { print $3 }')
    [ -z "$foreign" ] || { echo "$foreign"; return 1; }
}

# With the files of the project out of reach, as there.
runs_its_seeds() {
    local seeds="$work/seeds/$1"
    mkdir -p "$seeds" && unzip -q -j -o "$OUT/$1_seed_corpus.zip" -d "$seeds" &&
        (cd "$work" && env -i "$OUT/$1" -runs=2000 -max_len=4096 -timeout=10 -rss_limit_mb=2048 "$seeds")
}

check "the build succeeds" tests/fuzz/oss-fuzz/build.sh
for source in tests/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c)
    check "$target needs no package" stands_alone "$OUT/$target"
    check "$target runs its seeds" runs_its_seeds "$target"
done
conclude
