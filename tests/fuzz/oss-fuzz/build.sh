#!/bin/bash
# build.sh: builds the fuzz targets as OSS-Fuzz asks for it: by its CC, CXX, CFLAGS, CXXFLAGS and LIB_FUZZING_ENGINE, into OUT.
#
# OSS-Fuzz runs them where no package is installed. So the libraries stand beside them, but for the C library's own. The old kind
# of tag makes the loader look there for the libraries of libraries, too.
set -eu
cd "$(dirname "$0")/../../.."
# shellcheck disable=SC2016 # make and the linker read $ORIGIN
make -j"$(nproc)" MODE=fuzz BUILD="$WORK/attnd" CC="$CC" MODE_FLAGS="$CFLAGS" CFLAGS= FUZZING_ENGINE="$LIB_FUZZING_ENGINE" \
    LINK="$CXX $CXXFLAGS -pthread -Wl,--disable-new-dtags,-rpath,'"'$$ORIGIN/lib'"'" fuzz-programs

mkdir -p "$OUT/lib"
for corpus in tests/fuzz/corpus/*; do
    target=${corpus##*/} more=
    case $target in envelope | request) more=tests/api/cases ;; esac
    cp "$WORK/attnd/tests/fuzz/fuzz_$target" "$OUT/"
    rm -f "$OUT/fuzz_${target}_seed_corpus.zip"
    # shellcheck disable=SC2086 # one folder or none
    find "$corpus" $more -type f -print | zip -q "$OUT/fuzz_${target}_seed_corpus.zip" -@
    printf '[libfuzzer]\nmax_len = 4096\n' >"$OUT/fuzz_$target.options"
    ldd "$OUT/fuzz_$target" | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|pthread|dl|rt)\.so/ { print $3 }'
done | sort -u | while read -r library; do cp -L "$library" "$OUT/lib/"; done
