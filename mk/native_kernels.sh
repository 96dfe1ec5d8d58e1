#!/bin/sh
# native_kernels.sh ARCH KERNEL…: those of the kernels of ARCH that this machine's processor runs best, beside the portable one.
#
# All of them where this machine does not tell: another processor than ARCH runs it, or there is no /proc/cpuinfo.
set -eu
arch=$1
shift
flags=
[ "$(uname -m)" != "$arch" ] || flags=" $(sed -n '/^flags[[:space:]]*:/{s///p;q;}' /proc/cpuinfo 2>/dev/null || :) "

has() {
    for flag in "$@"; do
        case $flags in *" $flag "*) ;; *) return 1 ;; esac
    done
}

# The conditions of core/src/kernel/units/kernels.c.
case $arch,$flags in
x86_64,*fpu*)
    if has avx512f avx512bw avx512dq avx512vl; then
        echo avx512
        ! has avx512_bf16 || echo avx512_bf16
    elif has avx2 fma f16c; then
        echo avx2
    fi
    ;;
*) echo "$@" ;;
esac
