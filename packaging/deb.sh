#!/bin/sh
# deb.sh PACKAGE…: unpacks TARBALL below build/deb and makes Debian packages of VERSION there. `make deb` runs it.
#
# PACKAGE: what building takes (mk/packages.mk), to hold Build-Depends against. debian/changelog is made here, from
# VERSION and the date of the last commit, so that the version has one home. Its revision is one of packages that do not
# come from Debian itself.
set -eu
cd "$(dirname "$0")/.."
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date -u -r VERSION +%s)}
folder=build/deb/attnd-$VERSION
rm -rf build/deb
mkdir -p build/deb
tar -C build/deb -xzf "$TARBALL"
cp -r "$folder/packaging/debian" "$folder/debian"
cp "$TARBALL" "build/deb/attnd_$VERSION.orig.tar.gz"
for name in "$@"; do
    case $name in
    libc6-dev) ;;
    *-dev) grep -qE "^ $name\b" "$folder/debian/control" || { echo "debian/control: Build-Depends lacks $name" >&2; exit 1; } ;;
    esac
done
maintainer=$(sed -n 's/^Maintainer: //p' "$folder/debian/control")
{
    printf 'attnd (%s-0attnd1) unstable; urgency=medium\n\n' "$VERSION"
    printf '  * Version %s; CHANGELOG.md says what is new.\n\n' "$VERSION"
    printf ' -- %s  %s\n' "$maintainer" "$(LC_ALL=C date -u -R -d "@$epoch")"
} > "$folder/debian/changelog"
echo "compiling everything anew in $folder, which takes minutes"
(cd "$folder" && SOURCE_DATE_EPOCH=$epoch dpkg-buildpackage -b -us -uc)
! command -v lintian >/dev/null || lintian --allow-root --fail-on error,warning build/deb/*.changes
ls build/deb/*.deb
