#!/bin/sh
# progress.sh N TOTAL WHAT…: says that step N of TOTAL begins.
#
# On a terminal one line is written again and again; N = 0 begins it. Elsewhere a line comes for every quarter. Each line is
# one write, because steps run side by side.
set -eu
n=$1 total=$2
shift 2
if [ ! -t 1 ]; then
    [ "$n" != 0 ] && [ $((n * 4 / total)) = $(((n - 1) * 4 / total)) ] || echo "[$n/$total] $*"
elif [ "$n" = 0 ]; then
    printf '%.79s\n' "[0/$total] $*"
else
    printf '\033[A\r\033[K%.79s\n' "[$n/$total] $*"
fi
