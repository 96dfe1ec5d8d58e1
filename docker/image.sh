#!/bin/sh
# image.sh [minimal|full]…: builds the image with docker, podman or buildah, whichever is there. `make image` runs it.
#
#   IMAGE=attnd               name; the tags are VERSION and VERSION-full
#   PLATFORMS=linux/amd64,linux/arm64   one manifest list for several; default: this machine's alone
#   PUSH=docker://registry/name   where that list goes; default: an archive in build/, whose format knows no HEALTHCHECK
#   BASE=debian:trixie-slim   what the build stages start from
#   SOURCE=https://…   the address of the repository, for the labels source, url and documentation
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
    echo "none of docker (with its daemon), podman and buildah is there; on Debian: apt-get install buildah" >&2
    return 1
}

tool=${TOOL:-$(find_tool)}
[ -z "${PLATFORMS:-}" ] || [ "$tool" = docker ] || tool=buildah

# build_with COMMAND…: one build of $variant; FLAGS is a list of words on purpose. The labels of the commit are flags, too:
# buildah takes a cached LABEL whatever its arguments are now.
build_with() {
    created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
    # shellcheck disable=SC2086
    "$@" -f docker/Dockerfile --target "$variant" --build-arg "VERSION=$version" --build-arg "REVISION=$revision" \
        --build-arg "SOURCE_DATE_EPOCH=$epoch" --build-arg "CREATED=$created" \
        --label "org.opencontainers.image.revision=$revision" --label "org.opencontainers.image.created=$created" \
        ${BASE:+--build-arg "BASE=$BASE"} ${SOURCE:+--build-arg "SOURCE=$SOURCE"} ${FLAGS:-} .
}

# forget_builder TAG: without the id and the name of the container it was built in, which are others in each build, an
# image has the same digest every time.
forget_builder() {
    folder=$(mktemp -d)
    "$tool" push -q "$1" "dir:$folder" >/dev/null
    old=$(grep -o '"config":{[^}]*}' "$folder/manifest.json" | grep -o '[0-9a-f]\{64\}')
    old_size=$(wc -c < "$folder/$old")
    sed -i -e 's/"container":"[^"]*",//' -e 's/"Hostname":"[^"]*"/"Hostname":""/g' "$folder/$old"
    new=$(sha256sum "$folder/$old" | cut -d ' ' -f 1)
    sed -i -e "s/$old/$new/" -e "s/\"size\":$old_size,/\"size\":$(wc -c < "$folder/$old"),/" "$folder/manifest.json"
    mv "$folder/$old" "$folder/$new"
    "$tool" tag "$("$tool" pull -q "dir:$folder")" "$1"
    rm -rf "$folder"
}

# buildah's --platform would want the base for the target, too; so the stages are told their target, and the result its
# own processor.
build_each_with_buildah() {
    # Its name is not the image's: one of this machine's own processor may have that.
    list=$tag-list
    buildah manifest rm "$list" >/dev/null 2>&1 || true
    buildah manifest create "$list" >/dev/null
    for platform in $(echo "$PLATFORMS" | tr , ' '); do
        arch=${platform#linux/}
        build_with buildah build --format docker --timestamp "$epoch" --build-arg "TARGETARCH=$arch" -t "$tag-$arch"
        container=$(buildah from --pull-never "$tag-$arch")
        buildah config --arch "$arch" --os linux "$container"
        buildah commit -q --format docker --timestamp "$epoch" --rm "$container" "$tag-$arch" >/dev/null
        forget_builder "$tag-$arch"
        buildah manifest add --arch "$arch" --os linux "$list" "$tag-$arch" >/dev/null
    done
    mkdir -p build
    # A list that stays in the local store stops `buildah images` of some versions.
    buildah manifest push -q --all "$list" "${PUSH:-oci-archive:build/${image##*/}-${tag##*:}.oci.tar}"
    buildah manifest rm "$list" >/dev/null
}

[ $# -gt 0 ] || set -- minimal
for variant in "$@"; do
    tag=$image:$version
    [ "$variant" = minimal ] || tag=$tag-$variant
    case $tool,${PLATFORMS:-} in
    docker,) build_with docker buildx build --load -t "$tag" ;;
    docker,*) build_with docker buildx build --load --platform "$PLATFORMS" -t "$tag" ;;
    *,)
        build_with "$tool" build --format docker --timestamp "$epoch" -t "$tag"
        forget_builder "$tag"
        ;;
    *) build_each_with_buildah ;;
    esac
    echo "built $tag"
done
