#!/bin/sh
# unused_kernels.sh LIBOPENBLAS.a: a C file that stands for the complex kernels of OpenBLAS in a static link.
#
# For every processor the library has a table of all its kernels, so that a static program takes all of them in, half of
# which multiply complex numbers. We multiply real ones alone. This file defines the names of the complex ones, so that
# the linker leaves theirs out; should one be called after all, the program ends at once and says so by its backtrace.
# The real kernels of all processors stay.
set -eu
archive=$1
NM=${NM:-nm}
cat <<'C'
/* Made by unused_kernels.sh. */
#include <stdlib.h>

void attn_complex_kernel_is_absent(void);

void attn_complex_kernel_is_absent(void)
{
    abort();
}

C
# The tables are the setparam objects; what they lack is what they list.
"$NM" -A "$archive" 2>/dev/null | awk '
    { split($1, part, ":") }
    part[2] ~ /^setparam/ && $2 == "U" && $3 ~ /^[cz]/ && $3 ~ /_[A-Z0-9]+$/ && !seen[$3]++ { print $3 }' | sort |
    while read -r name; do
        printf '__asm__(".globl %s\\n.set %s, attn_complex_kernel_is_absent");\n' "$name" "$name"
    done
