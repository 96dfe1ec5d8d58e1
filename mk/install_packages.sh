#!/bin/sh
# install_packages.sh NAME…: installs the Debian packages that are missing (missing_packages.sh), and does nothing when
# none is. What it cannot do it says in one line. With INSTALL=no in the environment it installs nothing.
set -eu

missing=$("$(dirname "$0")/missing_packages.sh" "$@")
[ -n "$missing" ] || exit 0

die() {
    echo "$1" >&2
    exit 1
}

[ "${INSTALL:-}" != no ] || die "missing packages (by Debian's names): $missing; INSTALL=no leaves them to you"

as_root=
command -v apt-get >/dev/null ||
    die "missing packages (by Debian's names): $missing; there is no apt-get here, so install them by this system's own means"
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "missing packages: $missing; there is no sudo, so as root: apt-get install $missing"
    said=$(sudo true 2>&1) || die "missing packages: $missing; sudo refuses ($(echo "$said" | head -n 1)), so as root: apt-get install $missing"
    as_root=sudo
fi
echo "installing${as_root:+ by sudo}: $missing"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# apt_get WORD…: $as_root and $missing are words on purpose.
# shellcheck disable=SC2086
apt_get() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >>"$log" 2>&1; }
# shellcheck disable=SC2086
install_missing() { apt_get install -y --no-install-recommends $missing; }

# The lists of a bare machine are empty, and old ones name versions that are gone: then fetch them once and try again.
install_missing || { : >"$log" && apt_get update && install_missing; } ||
    die "packages could not be fetched or installed (is there a network?): $missing; apt-get: $(grep -m 1 '^E:' "$log" || tail -n 1 "$log")"
