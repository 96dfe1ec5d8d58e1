#!/usr/bin/env bash
# image.sh [minimal|full]…: builds the images, runs them with podman and checks them from outside.
#
# Needs root, and buildah, podman and crun (installed when they can be); else it exits with 77 and says why. The checks
# run in namespaces of their own: no port of the machine is taken. ATTN_TWICE=0 leaves out the second build, ATTN_BUILT=1
# both; ATTN_ARM64=1 adds the manifest list of two processors, whose arm64 program is run by qemu-aarch64.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=image
. tests/support/containers.sh
[ $# -gt 0 ] || set -- minimal full
version=$(cat VERSION)
image=attnd-test
port=8080
url=http://127.0.0.1:$port
verbose=1

say() { printf '   %s\n' "$*"; }
tag_of() { [ "$1" = minimal ] && echo "$image:$version" || echo "$image:$version-$1"; }

# The digests of the layers' bytes, and the settings. The history tells which steps came from the cache of builds before.
contents_of() { podman image inspect -f '{{.RootFS.Layers}} {{json .Config}}' "$(tag_of "$1")"; }

build() { # build FLAGS VARIANT…
    local flags=$1
    shift
    TOOL=buildah IMAGE=$image FLAGS="--isolation chroot --network host --force-rm -q $flags" docker/image.sh "$@" >/dev/null
}

emulator() { command -v qemu-aarch64-static || command -v qemu-aarch64; }

prepare() {
    [ "$(id -u)" = 0 ] || skip_suite "needs root"
    need buildah podman crun curl openssl python3 unshare ip
    [ "${ATTN_ARM64:-}" != 1 ] || emulator >/dev/null || skip_suite "no qemu-aarch64"
    [ "${ATTN_BUILT:-}" != 1 ] || return 0
    has_base "${BASE:-debian:trixie-slim}" || skip_suite "the base ${BASE:-debian:trixie-slim} cannot be had"
    build --layers "$@" || { echo "the image does not build"; exit 1; }
    local first
    if ! is "$(buildah inspect --type image --format '{{.Docker.Container}}{{.Docker.Config.Hostname}}' "$(tag_of "$1")")" ''; then
        echo "the image names the container it was built in: another one each time"
        exit 1
    fi
    [ "${ATTN_TWICE:-1}" = 1 ] || return 0
    first=$(contents_of "$1")
    build "--layers --no-cache" "$1" || exit 1
    if ! is "$(contents_of "$1")" "$first"; then
        echo "a second build gives other bytes"
        exit 1
    fi
    say "ok   a second build of $1 gives the same bytes: ${first%% *}"
}

# start FLAG…: a container of the image under test; its flags are those that a careful operator gives.
start() {
    podman rm -f -t 0 attnd >/dev/null 2>&1
    podman run -d --name attnd --network host --read-only --cap-drop=ALL --security-opt=no-new-privileges \
        --pids-limit 64 --memory 256m "$@" >/dev/null || return 1
    for _ in $(seq 200); do
        [ "$(ask /readyz)" = 200 ] && return 0
        sleep 0.02
    done
    podman logs attnd
    return 1
}
ask() { curl -s -o /dev/null -w '%{http_code}' "$url$1"; }
post() { curl -s -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' --data-binary "$1" "$url/v1/attention"; }
pid() { podman inspect -f '{{.State.Pid}}' attnd; }
state() { podman inspect -f "{{.State.$1}}" attnd; }
stop_with() { # stop_with SIGNAL: the exit status
    podman kill -s "$1" attnd >/dev/null
    podman wait attnd
}

label_of() { podman image inspect -f "{{index .Labels \"org.opencontainers.image.$2\"}}" "$1"; }

looks() {
    local tag=$1 most=$2 bytes packed
    bytes=$(podman image inspect -f '{{.Size}}' "$tag")
    packed=$(podman save "$tag" 2>/dev/null | gzip -9 | wc -c)
    say "$bytes bytes, $packed gzipped"
    check "at most $most bytes" at_most "$bytes" "$most"
    [ "$tag" != "$(tag_of minimal)" ] || check "at most 15.5 MB gzipped" at_most "$packed" 15500000
    check "a numeric user" is "$(podman image inspect -f '{{.Config.User}}' "$tag")" 10001:10001
    check "a stop signal" is "$(podman image inspect -f '{{.Config.StopSignal}}' "$tag")" SIGTERM
    check "a health check" is "$(podman image inspect -f '{{index .HealthCheck.Test 1}}' "$tag")" /usr/bin/attnd
    check "a version label" is "$(label_of "$tag" version)" "$version"
    check "a revision label" is "$(label_of "$tag" revision)" "$(git rev-parse HEAD 2>/dev/null || echo unknown)"
    check "documentation of this version" is "$(label_of "$tag" documentation)" "$(label_of "$tag" source)/blob/v$version/README.md"
    check "the date of the commit" is "$(date -u -d "$(label_of "$tag" created)" +%s)" \
        "$(git log -1 --format=%ct 2>/dev/null || date -u -r VERSION +%s)"
}

runs() {
    local tag=$1
    python3 tests/support/first_answer.py "$port" > "$work/first-answer" &
    local watcher=$!
    check "starts, read-only and without capabilities" start "$tag"
    wait "$watcher"
    local started first ms rss root
    started=$(date -d "$(podman inspect -f '{{.State.StartedAt.Format "2006-01-02T15:04:05.999999999Z07:00"}}' attnd)" +%s%3N)
    first=$(cat "$work/first-answer")
    ms=$((first - started))
    rss=$(awk '/^VmRSS/{print $2}' "/proc/$(pid)/status")
    say "first answer $ms ms after the start, $rss KiB resident when idle"
    check "takes at most 20 MB when idle" at_most "$rss" 19531
    check "its user is not root" is "$(awk '/^Uid/{print $2}' "/proc/$(pid)/status")" 10001
    check "it has no capabilities" is "$(awk '/^CapEff/{print $2}' "/proc/$(pid)/status")" 0000000000000000
    root=/proc/$(pid)/root
    check "lists its parts" python3 tests/support/check_sbom.py "$root/usr/share/doc/attnd/sbom.spdx.json" \
        libopenblas-pthread-dev "$([ "$tag" = "$(tag_of minimal)" ] && echo libmicrohttpd-dev || echo libgnutls30t64)"
    check "has no shell" test ! -e "$root/bin/sh" -a ! -e "$root/usr/bin/sh"
    check "its health check passes" podman healthcheck run attnd
    check "the README's commands" python3 tests/api/readme/run.py --url "$url" README.md
    check "pictures with labels of a font" curl -sf -o /dev/null -H 'Content-Type: application/json' -H 'Accept: image/png' \
        -d '{"inputs": {"query": [[1, 0], [0, 1]]}, "tokens": {"query": ["é", "注"]}}' "$url/v1/attention"
    check "SIGTERM drains and ends with 0" is "$(stop_with TERM)" 0
    check "over its limits it refuses, and is not killed; SIGINT ends it with 0" limits "$tag"
    [ "$tag" = "$(tag_of minimal)" ] || check "behind TLS its health check passes" health_behind_tls "$tag"
}

# 256 MiB of memory: what does not fit is refused, and nothing is killed.
limits() {
    local tag=$1 big
    start -e ATTND_MAX_BODY=1M -e ATTND_DRAIN_DELAY=0 "$tag" || return 1
    big=$(python3 -c 'import json; print(json.dumps({"inputs": {"query": {"shape": [12, 1500, 2], "data": [0.5] * 36000}}}))')
    for _ in 1 2 3 4 5 6 7 8; do post "$big" & done > "$work/answers"
    wait $(jobs -p)
    grep -oE '[0-9]{3}' "$work/answers" | sort | uniq -c
    head -c 1100000 /dev/zero | tr '\0' ' ' > "$work/body"
    is "$(post "@$work/body")" 413 || return 1
    is "$(ask /readyz)" 200 && is "$(state OOMKilled)" false && is "$(state Running)" true || return 1
    is "$(stop_with INT)" 0
}

# The settings are variables, which the health check gets too.
health_behind_tls() {
    local folder
    folder=$(mktemp -d)
    openssl req -x509 -newkey ed25519 -nodes -subj /CN=attnd -days 2 -keyout "$folder/key" -out "$folder/cert" || return 1
    chmod 755 "$folder" && chmod 644 "$folder/key"
    podman rm -f -t 0 attnd >/dev/null 2>&1
    podman run -d --name attnd --network host --read-only --cap-drop=ALL -v "$folder:/tls:ro" -e ATTND_TLS_CERT=/tls/cert \
        -e ATTND_TLS_KEY=/tls/key "$1" >/dev/null || return 1
    for _ in $(seq 300); do
        podman healthcheck run attnd && curl -sk -o /dev/null "https://127.0.0.1:$port/readyz" && rm -rf "$folder" && return 0
        sleep 0.1
    done
    podman logs attnd
    return 1
}

# The image for arm64 without a kernel that could run it: its files alone, under an emulator.
arm64() {
    local qemu root container status
    qemu=$(emulator)
    PLATFORMS=linux/amd64,linux/arm64 build --layers minimal || return 1
    python3 tests/support/check_list.py "build/$image-$version.oci.tar" amd64 arm64 || return 1
    container=$(buildah from --pull-never "$image:$version-arm64" 2>/dev/null)
    root=$(buildah mount "$container")
    python3 tests/api/readme/run.py --attnd "$qemu $root/usr/bin/attnd" README.md
    status=$?
    buildah rm "$container" >/dev/null
    return $status
}

[ -n "${ATTN_INSIDE:-}" ] || prepare "$@"
[ -n "${ATTN_INSIDE:-}" ] || [ "${ATTN_ARM64:-}" != 1 ] || check "arm64: the commands of the README under an emulator" arm64
enter_namespaces "$0" "$@"
for variant in "$@"; do
    echo "image $variant"
    looks "$(tag_of "$variant")" "$([ "$variant" = minimal ] && echo 33000000 || echo 65000000)"
    runs "$(tag_of "$variant")"
done
podman rm -f -t 0 attnd >/dev/null 2>&1
conclude
