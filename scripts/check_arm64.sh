#!/usr/bin/env bash
# check_arm64.sh: cross-builds for AArch64 and runs the tests of the core's numbers and tests/cases under an emulator.
# `tests/fresh.sh trixie arm64` does it on a machine of its own.
#
# It adds the arm64 architecture to apt, whose packages may replace those of the machine: so it wants a machine or
# container of its own, as root, and ATTN_ARM64=1 to say that this is one. Else it exits with 77 and says why.
set -u
cd "$(dirname "$0")/.." || exit 1
skip() { echo "skipped: $1"; exit 77; }
[ "${ATTN_ARM64:-}" = 1 ] || skip "set ATTN_ARM64=1 on a machine of its own"
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || skip "needs root and apt-get"
[ "$(dpkg --print-architecture)" = amd64 ] || skip "cross-building is tried on amd64 only"

emulator=qemu-user-static
. /etc/os-release
[ "${VERSION_ID:-}" = 12 ] || emulator=qemu-user
export DEBIAN_FRONTEND=noninteractive
dpkg --add-architecture arm64 && apt-get -qq update || skip "no package lists for arm64"
apt-get -qq install -y --no-install-recommends crossbuild-essential-arm64 "$emulator" pkg-config libc6-dev:arm64 \
    libmicrohttpd-dev:arm64 libjansson-dev:arm64 libopenblas-pthread-dev:arm64 zlib1g-dev:arm64 libzstd-dev:arm64 \
    libpng-dev:arm64 libfreetype-dev:arm64 nettle-dev:arm64 check:arm64 libsubunit-dev:arm64 python3 \
    >/dev/null || skip "the packages for arm64 cannot be installed"

tests=(exp mask multihead properties determinism)
pkg_config="env PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig pkg-config"
make -s -j"$(nproc)" CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar PKG_CONFIG="$pkg_config" BUILD=build/arm64 WERROR=1 \
    build/arm64/attnd "${tests[@]/#/build/arm64/tests/core/test_}" || exit 1
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64)
for name in "${tests[@]}"; do
    CK_FORK=no CK_TIMEOUT_MULTIPLIER=20 OPENBLAS_NUM_THREADS=1 "$qemu" "build/arm64/tests/core/test_$name" || exit 1
done
OPENBLAS_NUM_THREADS=1 python3 tests/cases/run.py --attnd "$qemu build/arm64/attnd"
