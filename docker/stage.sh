#!/bin/sh
# stage.sh STEP: what the build stages of the Dockerfile run, one step a layer.
#
#   packages    compiler and libraries, for TARGETARCH (amd64, arm64), which may be another than this machine's
#   microhttpd  a libmicrohttpd.a without TLS, from Debian's own source package
#   minimal     /image with one static program
#   full        /image with the program and the shared libraries that it needs
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
own=$(dpkg --print-architecture)
arch=${TARGETARCH:-$own}
case $arch in
amd64) triplet=x86_64-linux-gnu ;;
arm64) triplet=aarch64-linux-gnu ;;
*) echo "no recipe for $arch: amd64, arm64" >&2; exit 1 ;;
esac
if [ "$arch" = "$own" ]; then cross='' suffix=''; else cross=$triplet- suffix=:$arch; fi
prefix=/opt/microhttpd
libraries='libmicrohttpd-dev libjansson-dev libopenblas-pthread-dev libpng-dev libzstd-dev zlib1g-dev libfreetype-dev
           libbz2-dev libbrotli-dev nettle-dev libutf8proc-dev libpcre2-dev libc6-dev'

packages() {
    [ -z "$cross" ] || dpkg --add-architecture "$arch"
    # The source packages, of which one is wanted, are not listed by default.
    if [ -f /etc/apt/sources.list.d/debian.sources ]; then
        sed -i 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources
    else
        sed 's/^deb /deb-src /' /etc/apt/sources.list > /etc/apt/sources.list.d/sources.list
    fi
    apt-get update -qq
    compiler=gcc
    [ -z "$cross" ] || compiler="gcc gcc-$(echo "$triplet" | tr _ -)"
    # Lists of words on purpose.
    # shellcheck disable=SC2046,SC2086
    apt-get install -qq -y --no-install-recommends $compiler make pkgconf esbuild dpkg-dev fonts-dejavu-core fonts-wqy-microhei \
        $(for name in $libraries; do echo "$name$suffix"; done) >/dev/null
}

# Debian's archive of libmicrohttpd wants GnuTLS, which cannot be linked statically (there is no libp11-kit.a). Upstream's
# own switch leaves TLS out; the source is Debian's, so it is signed and has Debian's security fixes.
microhttpd() {
    mkdir -p /opt/source
    cd /opt/source
    apt-get source -qq -o APT::Sandbox::User=root libmicrohttpd >/dev/null
    cd libmicrohttpd-*/
    ./configure --host="$triplet" CC="${cross}gcc" CFLAGS='-O2 -fPIC -ffile-prefix-map=/opt=.' --prefix="$prefix" \
        --disable-https --disable-shared --enable-static --disable-doc --disable-examples --disable-tools \
        --disable-curl --disable-dependency-tracking >/dev/null
    make -s -j"$(nproc)" -C src/microhttpd install >/dev/null
    make -s -C src/include install >/dev/null
    make -s install-pkgconfigDATA >/dev/null
}

# build FOLDER FLAG…: the program, stripped, into /image.
build() {
    cd /src
    make -j"$(nproc)" CC="${cross}gcc" NM="${cross}nm" BUILD="$1" "$1/attnd" "$2" \
        PKG_CONFIG="env PKG_CONFIG_PATH=$3 PKG_CONFIG_LIBDIR=/usr/lib/$triplet/pkgconfig:/usr/share/pkgconfig pkg-config"
    mkdir -p /image/usr/bin
    "${cross}strip" -o /image/usr/bin/attnd "$1/attnd"
}

# What both variants have besides the program: fonts for labels, a user with a name, licences, the list of parts.
furnish() {
    mkdir -p /image/etc /image/tmp /image/usr/share/fonts/truetype/dejavu /image/usr/share/fonts/truetype/wqy
    cp /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf /image/usr/share/fonts/truetype/dejavu/
    cp /usr/share/fonts/truetype/wqy/wqy-microhei.ttc /image/usr/share/fonts/truetype/wqy/
    echo 'attnd:x:10001:10001:attnd:/:/sbin/nologin' > /image/etc/passwd
    echo 'attnd:x:10001:' > /image/etc/group
    mkdir -p /image/usr/share/doc/attnd /image/mnt/models
    cp /src/LICENSE /image/usr/share/doc/attnd/
    for name in "$@" fonts-dejavu-core fonts-wqy-microhei; do
        [ ! -f "/usr/share/doc/${name%%:*}/copyright" ] ||
            install -D -m 644 "/usr/share/doc/${name%%:*}/copyright" "/image/usr/share/doc/${name%%:*}/copyright"
    done
    /src/docker/sbom.sh attnd "$(cat /src/VERSION)" "$@" fonts-dejavu-core fonts-wqy-microhei \
        > /image/usr/share/doc/attnd/sbom.spdx.json
    chmod -R u=rwX,go=rX /image
    chmod 1777 /image/tmp
}

minimal() {
    build /tmp/static STATIC=1 "$prefix/lib/pkgconfig"
    # shellcheck disable=SC2046
    furnish $(for name in $libraries libgcc-s1; do echo "$name$suffix"; done)
}

needed() {
    "${cross}readelf" -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p'
}

# Where the loader would find the library; ldd would have to run a foreign loader.
find_library() {
    for folder in "/usr/lib/$triplet/openblas-pthread" "/usr/lib/$triplet" "/lib/$triplet" /lib64 /lib; do
        [ ! -e "$folder/$1" ] || { echo "$folder/$1"; return; }
    done
    echo "no $1 for $arch" >&2
    return 1
}

# copy_libraries FILE: what it needs, and what that needs, into the one folder that every loader looks into.
copy_libraries() {
    for name in $(needed "$1"); do
        [ ! -e "/image/usr/lib/$triplet/$name" ] || continue
        found=$(find_library "$name")
        cp -L "$found" "/image/usr/lib/$triplet/$name"
        owner=$(dpkg -S "$(readlink -e "$found")" "$found" 2>/dev/null | head -n 1)
        echo "${owner%%: *}" >> /tmp/owners
        copy_libraries "/image/usr/lib/$triplet/$name"
    done
}

full() {
    # OpenBLAS alone would be two thirds of the image as a shared library, half of that for complex numbers.
    build /tmp/shared STATIC=blas ''
    mkdir -p "/image/usr/lib/$triplet"
    ln -s usr/lib /image/lib
    : > /tmp/owners
    copy_libraries /image/usr/bin/attnd
    loader=$("${cross}readelf" -l /image/usr/bin/attnd | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
    [ "${loader%/*}" = /lib ] || ln -s usr/lib "/image${loader%/*}"
    cp -L "$(find_library "${loader##*/}")" "/image/usr/lib/${loader##*/}"
    # shellcheck disable=SC2046
    furnish libopenblas-pthread-dev"$suffix" $(sort -u /tmp/owners)
}

"$1"
