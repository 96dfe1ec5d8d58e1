#!/bin/sh
# image.sh [minimal|full]…: builds the image with docker, podman or buildah, whichever is there. `make image` runs it.
#
#   IMAGE=attnd               name; the tags are VERSION and VERSION-full
#   PLATFORMS=linux/amd64,linux/arm64   one manifest list for several; default: this machine's
#   BASE=debian:trixie-slim   what the build stages start from
#   TOOL=docker|podman|buildah   FLAGS='…'   more flags for its build command
#
# The same commit and the same packages give the same bytes: every date is that of the commit.
set -eu
cd "$(dirname "$0")/.."
version=$(cat VERSION)
image=${IMAGE:-attnd}
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date -u -r VERSION +%s)}
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)

find_tool() {
    for tool in docker podman buildah; do
        command -v "$tool" >/dev/null || continue
        [ "$tool" != docker ] || docker info >/dev/null 2>&1 || continue
        echo "$tool"
        return
    done
    echo "none of docker (with its daemon), podman and buildah is there" >&2
    return 1
}

tool=${TOOL:-$(find_tool)}
[ $# -gt 0 ] || set -- minimal
for variant in "$@"; do
    tag=$image:$version
    [ "$variant" = minimal ] || tag=$tag-$variant
    set -- -f docker/Dockerfile --target "$variant" --build-arg "VERSION=$version" --build-arg "REVISION=$revision" \
        --build-arg "SOURCE_DATE_EPOCH=$epoch"
    [ -z "${BASE:-}" ] || set -- "$@" --build-arg "BASE=$BASE"
    [ -z "${PLATFORMS:-}" ] || set -- "$@" --platform "$PLATFORMS"
    case $tool,${PLATFORMS:-} in
    docker,*) set -- docker buildx build --load "$@" -t "$tag" ;;
    *,*,*) "$tool" manifest rm "$tag" >/dev/null 2>&1 || true
        set -- "$tool" build --format docker --timestamp "$epoch" "$@" --manifest "$tag" ;;
    *) set -- "$tool" build --format docker --timestamp "$epoch" "$@" -t "$tag" ;;
    esac
    # FLAGS is a list of words on purpose.
    # shellcheck disable=SC2086
    "$@" ${FLAGS:-} .
    echo "built $tag"
done
