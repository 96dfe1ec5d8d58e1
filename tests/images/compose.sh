#!/usr/bin/env bash
# compose.sh: docker/compose.yaml by podman-compose: three replicas behind the balancer, under load while one is killed
# and while all are replaced. No request may fail for a client that keeps the rule for retries. Then one replica with a
# model of one's own, as docs/models.md says.
#
# Needs root, podman-compose and what tests/images/image.sh needs; else it exits with 77 and says why.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=compose
. tests/support/containers.sh
verbose=1
version=$(cat VERSION)
url=http://127.0.0.1:8080
export HAPROXY_IMAGE=localhost/haproxy-test ATTND_IMAGE=localhost/attnd-test:$version COMPOSE_PROJECT_NAME=attnd

prepare() {
    [ "$(id -u)" = 0 ] || skip_suite "needs root"
    need buildah podman crun podman-compose curl python3 unshare ip
    [ -e /usr/lib/cni/dnsname ] || [ -e /usr/lib/podman/aardvark-dns ] ||
        mk/install_packages.sh golang-github-containernetworking-plugin-dnsname >/dev/null 2>&1 ||
        skip_suite "no name service for podman's networks"
    has_base debian:trixie-slim || skip_suite "the base debian:trixie-slim cannot be had"
    podman image exists "$ATTND_IMAGE" || TOOL=buildah IMAGE=attnd-test \
        FLAGS="--isolation chroot --network host --layers -q" docker/image.sh minimal >/dev/null || exit 1
    # The official image where it can be had; Debian's package of the same version with the same command elsewhere.
    printf '%s\n' 'FROM debian:trixie-slim' 'ARG DEBIAN_FRONTEND=noninteractive' \
        'RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends haproxy >/dev/null' 'USER haproxy' \
        'CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]' |
        buildah build -q --isolation chroot --network host --layers --format docker -t "$HAPROXY_IMAGE" - >/dev/null ||
        skip_suite "no image of haproxy"
}

[ -n "${ATTN_INSIDE:-}" ] || prepare
enter_namespaces "$0" "$@"

compose() { podman-compose -f docker/compose.yaml "$@"; }
container_of() { podman ps -q --filter "label=com.docker.compose.service=$1" | head -n 1; }
await() {
    for _ in $(seq 150); do
        curl -sf -o /dev/null "$url/readyz" && return 0
        sleep 0.2
    done
    return 1
}
under_load() { # under_load SECONDS COMMAND…: whether both succeed
    python3 tests/support/load.py "$url" --clients 6 --seconds "$1" > "$work/load" &
    local load=$! status=0
    shift
    sleep 1
    "$@" || status=1
    wait "$load" || status=1
    cat "$work/load"
    return $status
}
kill_one() { podman kill -s KILL "$(container_of attnd-2)" >/dev/null; }
# Podman without systemd says of every container with a health check that it has no timer for it.
replace_all() {
    COMPOSE=podman-compose CONTAINERS=podman docker/rolling_update.sh 2> >(grep -v "systemd connection" >&2)
}

start() {
    compose up -d attnd-1 attnd-2 attnd-3 balancer && await && return 0
    podman ps -a
    podman logs "$(container_of balancer)"
    return 1
}

# The two lines of docs/models.md, in a project of its own: one replica without the balancer.
answers_from_a_model() {
    local file=/run/attn/compose.yaml folder=$PWD/tests/others/models address
    sed -e "s|^    - layers:/mnt/models:ro|&\n    - $folder:/models:ro|" \
        -e 's|^    ATTND_LAYERS: /mnt/models|&\n    ATTND_MODELS: /models|' docker/compose.yaml > "$file"
    podman-compose -p models -f "$file" up -d attnd-1 || return 1
    address=$(podman inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' models_attnd-1_1)
    url=http://$address:8080 await && curl -sf -o /dev/null -H 'Content-Type: application/json' \
        -d '{"inputs": {"text": "a tree"}}' "http://$address:8080/v1/models/bert/attention"
}

check "three replicas start behind the balancer" start
[ "$failed" = 0 ] || { conclude; exit; }
check "no request fails" under_load 4 true
check "no request fails while one replica is killed" under_load 8 kill_one
check "no request fails while all are replaced, one after the other" under_load 40 replace_all
check "it answers from a model of one's own" answers_from_a_model
[ "$failed" = 0 ] || podman logs "$(container_of balancer)" 2>&1 | grep -v ' 200 ' | tail
conclude
