#!/bin/sh
# build.sh FIRST TARGETS MAKE…: makes the targets, and says how far it is. A recipe tells its step by $(call step,WHAT) of
# the Makefile; `make -n` counts the steps before. FIRST is made on its own, because make would begin with those sources
# that it comes to when FIRST is ready.
# TARGETS are words on purpose.
# shellcheck disable=SC2086
set -eu
first=$1 targets=$2
shift 2
plan=$("$@" -n STEPS=1 $targets) || exec "$@" $targets
[ "$plan" != : ] || exit 0
steps=$(echo "$plan" | grep -c '^mk/progress\.sh') || exec "$@" $targets
"$@" -s "$first"
mk/progress.sh 0 "$steps" building
exec "$@" STEPS="$steps" $targets
