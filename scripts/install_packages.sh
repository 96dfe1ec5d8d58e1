#!/bin/sh
# install_packages.sh NAME…: installs the Debian packages that are missing, and does nothing when none is.
#
# A library or program that is there by another way (built by hand, another package) counts as installed.
set -eu

is_there() {
    case $1 in
    gcc) command -v cc >/dev/null ;;
    pkgconf) command -v pkg-config >/dev/null ;;
    libmicrohttpd-dev) has_library libmicrohttpd ;;
    libjansson-dev) has_library jansson ;;
    libopenblas-dev) has_library openblas ;;
    zlib1g-dev) has_library zlib ;;
    libzstd-dev) has_library libzstd ;;
    libpng-dev) has_library libpng ;;
    libfreetype-dev) has_library freetype2 ;;
    nettle-dev) has_library nettle ;;
    libcurl4-gnutls-dev) has_library libcurl ;;
    check) has_library check ;;
    python3 | curl | openssl | buildah | gcovr | clang | clang-tidy | clang-format | chromium | npm) command -v "$1" >/dev/null ;;
    nodejs) command -v node >/dev/null ;;
    *) false ;;
    esac || [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

has_library() {
    pkg-config --exists "$1" 2>/dev/null
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

missing=
for name in "$@"; do
    is_there "$name" || missing="$missing $name"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; }; then
    echo "missing, and not to be installed without apt-get and root or sudo:$missing" >&2
    exit 1
fi
echo "installing:$missing"
# The lists of a bare machine are empty, and old ones name versions that are gone: then fetch them once and try again.
# $missing is a list of words on purpose.
# shellcheck disable=SC2086
as_root apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 || {
    as_root apt-get update -qq
    as_root apt-get install -qq -y --no-install-recommends $missing >/dev/null
}
