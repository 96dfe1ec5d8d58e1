#!/bin/sh
# checks/version.sh: VERSION is the one home of the version; files that tools read as they are must repeat it.
set -eu
cd "$(dirname "$0")/../.."
version=$(cat VERSION)
wrong=0
# says FILE PATTERN: every number behind the pattern is the version, and there is one.
says() {
    found=$(sed -nE "s/.*$2\"?([0-9]+\.[0-9]+\.[0-9]+[^\"} ]*).*/\1/p" "$1" | sort -u)
    [ "$found" = "$version" ] || { echo "$1 says '$found', VERSION says $version" >&2; wrong=1; }
}
says README.md ' attnd:'
says docker/README.md ' attnd:'
says docker/compose.yaml 'ATTND_IMAGE:-attnd:'
says docker/kubernetes/base/kustomization.yaml 'newTag: '
says docker/kubernetes/overlays/public/kustomization.yaml 'newTag: '
says docs/operations.md ' attnd:'
says docker/kubernetes/kserve/runtime.yaml 'image: attnd:'
soname=$(echo "$version" | sed -E 's/^(0\.[0-9]+)\..*/\1/; t; s/\..*//')
grep -qx "Package: libattn$soname" packaging/debian/control && [ -e "packaging/debian/libattn$soname.install" ] ||
    { echo "packaging/debian has no libattn$soname" >&2; wrong=1; }
numbers=$(sed -nE 's/^#define ATTN_VERSION_(MAJOR|MINOR|PATCH) //p' core/include/attn/version.h | paste -sd.)
[ "$numbers" = "$version" ] || { echo "version.h says '$numbers', VERSION says $version" >&2; wrong=1; }
says clients/js/package.json '"version": '
says clients/python/attnd/__init__.py '__version__ = '
grep -qE "^## ($version|Unreleased)" CHANGELOG.md || { echo "CHANGELOG.md has no $version" >&2; wrong=1; }
[ "$wrong" = 0 ] && echo "version: $version everywhere"
