#!/usr/bin/env bash
# arm64.sh: cross-builds for AArch64 and runs the tests of the core's numbers and tests/api/cases under an emulator.
#
# Compiler and emulator are installed when they are missing. The libraries for arm64 are unpacked into build/arm64-root,
# by apt with a state of its own: the machine's apt and dpkg learn nothing of that architecture. What cannot be had ends
# the script with 77 and says why.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=arm64
. tests/support/checks.sh
verbose=1
root=$PWD/build/arm64-root
triplet=aarch64-linux-gnu
libraries='libc6-dev libmicrohttpd-dev libjansson-dev libopenblas-pthread-dev zlib1g-dev libzstd-dev libpng-dev
           libfreetype-dev nettle-dev libutf8proc-dev libpcre2-dev check libsubunit-dev'
tests=(kernel/test_exp mask/test_mask layer/test_layer attention/test_properties kernel/test_determinism)

apt_for_arm64() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User="$(id -un)" \
        -o Dir::State="$root.apt" -o Dir::State::status="$root.apt/status" -o Dir::Cache="$root.apt" \
        -o Dir::Log="$root.apt" -o APT::Install-Recommends=false -o Acquire::Languages=none "$@"
}

# Nothing is installed as far as this apt knows, so the libraries come with all that they depend on.
unpack_libraries() {
    rm -rf "$root" "$root.apt"
    mkdir -p "$root/usr/lib" "$root.apt/lists/partial" "$root.apt/archives/partial"
    : > "$root.apt/status"
    # A list of words on purpose.
    # shellcheck disable=SC2086
    apt_for_arm64 update && apt_for_arm64 -y --download-only install $libraries || return 1
    ln -s usr/lib "$root/lib"
    for package in "$root.apt"/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -C "$root" -x --keep-directory-symlink --no-same-owner || return 1
    done
    # Links that begin at / would leave the folder.
    find "$root" -type l -lname '/*' -printf '%l\0%p\0' | while IFS= read -r -d '' target && IFS= read -r -d '' link; do
        ln -sfnr "$root$target" "$link"
    done
    rm -rf "$root.apt"
    touch "$root/complete"
}

command -v apt-get >/dev/null || skip_suite "no apt-get"
[ "$(dpkg --print-architecture)" = amd64 ] || skip_suite "cross-building is tried on amd64 only"
mk/install_packages.sh gcc-$triplet qemu-user python3 esbuild >/dev/null || skip_suite "no cross compiler or no emulator"
[ -f "$root/complete" ] || unpack_libraries >/dev/null || skip_suite "the libraries for arm64 cannot be had"

# Which BLAS the name openblas stands for is for an installation to choose.
blas=/usr/lib/$triplet/openblas-pthread
pkg_config="env PKG_CONFIG_SYSROOT_DIR=$root \
PKG_CONFIG_LIBDIR=$root/usr/lib/$triplet/pkgconfig:$root$blas/pkgconfig:$root/usr/share/pkgconfig pkg-config"
emulator="$(command -v qemu-aarch64 || command -v qemu-aarch64-static) -L $root -E LD_LIBRARY_PATH=$blas"
# The build runs one of its programs, which writes the OpenAPI document.
make -s -j"$(nproc)" RUN="$emulator" CC="$triplet-gcc --sysroot=$root" AR=$triplet-ar PKG_CONFIG="$pkg_config" BUILD=build/arm64 \
    WERROR=1 build/arm64/attnd "${tests[@]/#/build/arm64/tests/unit/core/}" || exit 1
# All at once: emulated, the longest of them takes a minute.
run_test() {
    # A list of words on purpose.
    # shellcheck disable=SC2086
    CK_FORK=no CK_TIMEOUT_MULTIPLIER=20 OPENBLAS_NUM_THREADS=1 $emulator "build/arm64/tests/unit/core/$1"
}
running=()
for name in "${tests[@]}"; do
    { said=$(run_test "$name" 2>&1); status=$?; printf '%s\n' "$said"; exit $status; } &
    running+=($!)
done
check "the cases" env OPENBLAS_NUM_THREADS=1 python3 tests/api/cases/run.py --attnd "$emulator build/arm64/attnd"
for i in "${!tests[@]}"; do check "${tests[i]}" wait "${running[i]}"; done
conclude
