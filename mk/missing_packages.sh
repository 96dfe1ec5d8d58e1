#!/bin/sh
# missing_packages.sh NAME…: prints those of the Debian packages that are missing, on one line; nothing when none is.
#
# A library or program that is there by another way (built by hand, another package, another system) counts as installed.
# So do fonts on a system without dpkg, because only labels of pictures want them.
set -u

has() { command -v "$1" >/dev/null 2>&1; }
has_library() { pkg-config --exists "$1" 2>/dev/null; }

is_there() {
    case $1 in
    gcc) has cc ;;
    libc6-dev) echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1 ;;
    pkgconf) has pkg-config ;;
    libmicrohttpd-dev) has_library libmicrohttpd ;;
    libjansson-dev) has_library jansson ;;
    libopenblas-dev) has_library openblas ;;
    zlib1g-dev) has_library zlib ;;
    libzstd-dev) has_library libzstd ;;
    libpng-dev) has_library libpng ;;
    libfreetype-dev) has_library freetype2 ;;
    nettle-dev) has_library nettle ;;
    libutf8proc-dev) has_library libutf8proc ;;
    libpcre2-dev) has_library libpcre2-8 ;;
    libcurl4-gnutls-dev) has_library libcurl ;;
    check | libsubunit-dev) has_library check ;;
    nodejs) has node ;;
    procps) has ps ;;
    python3-numpy) python3 -c "import numpy" 2>/dev/null || /usr/bin/python3 -c "import numpy" 2>/dev/null ;;
    debhelper) has dh ;;
    dpkg-dev) has dpkg-buildpackage ;;
    fonts-*) ! has dpkg-query ;;
    *) has "$1" ;;
    esac || [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
for name in "$@"; do
    is_there "$name" || missing="$missing${missing:+ }$name"
done
[ -z "$missing" ] || echo "$missing"
