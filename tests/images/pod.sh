#!/usr/bin/env bash
# pod.sh: the Pod of docker/kubernetes with the overlay keys/ really run, by `podman kube play`: its settings, its keys, its
# security context, its probes; and a model of one's own from a claim, as docs/models.md says.
#
# Needs root, kubectl (for kustomize), and what tests/images/image.sh needs, whose image it takes; else it exits with 77 and says why.
# Not tried here: scheduling, services, autoscaling, network policies; they want a cluster.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=pod
. tests/support/containers.sh
version=$(cat VERSION)
image=localhost/attnd-test:$version

prepare() {
    [ "$(id -u)" = 0 ] || skip_suite "needs root"
    command -v kubectl >/dev/null || skip_suite "no kubectl"
    need podman crun curl unshare ip catatonit
    podman image exists "$image" || skip_suite "no image: tests/images/image.sh builds it"
}

[ -n "${ATTN_INSIDE:-}" ] || prepare
enter_namespaces "$0" "$@"

# The Secret as the overlay says, and the Deployment and the settings it reads, as they are, with the image that was built here.
podman run --rm "$image" key tester compute > /run/attn/keys 2> /run/attn/key
key=$(sed -n 's/^The key of .*: //p' /run/attn/key | tr -d '\r')
kubectl create secret generic attnd-keys --from-file=/run/attn/keys --dry-run=client -o yaml > /run/attn/secret.yaml
# The overlay pvc/ says how a claim is mounted for layers; models want the same at /models.
mkdir /run/attn/models
sed -e 's/attnd-layers/attnd-models/' -e 's/name: layers/name: models/' -e 's|/mnt/models|/models|' -e '/ATTND_LAYERS_READONLY/,$d' \
    -e 's/ATTND_LAYERS/ATTND_MODELS/' docker/kubernetes/overlays/pvc/layers.yaml > /run/attn/models/models.yaml
printf '%s\n' "resources: [../../..$PWD/docker/kubernetes/overlays/keys]" 'patches: [{path: models.yaml}]' \
    > /run/attn/models/kustomization.yaml
podman volume create attnd-models >/dev/null
cp -r tests/others/models/bert "$(podman volume inspect -f '{{.Mountpoint}}' attnd-models)"
kubectl kustomize /run/attn/models | awk -v RS='---\n' '/kind: (ConfigMap|Deployment)\n/ {printf "---\n%s", $0}' |
    sed -e "s|image: attnd:.*|image: $image|" > /run/attn/pod.yaml

verbose=1
give_up() {
    podman ps -a
    podman events --stream=false --since 10m
    for id in $(podman ps -aq); do podman logs "$id" 2>&1 | tail -n 5; done
    uptime
    conclude
    exit 1
}
answers() {
    for _ in $(seq 300); do
        curl -sf -o /dev/null "$url/readyz" && return 0
        sleep 0.1
    done
    return 1
}
container() { podman ps -q --filter name=-attnd | head -n 1; }
status_of() { awk -v name="$1:" '$1 == name {print $2}' "/proc/$(podman inspect -f '{{.State.Pid}}' "$(container)")/status"; }

check "the Secret is made" podman kube play /run/attn/secret.yaml
check "the Pod starts" podman kube play /run/attn/pod.yaml
[ "$failed" = 0 ] || give_up
# podman 4.3 mounts a Secret as the base64 that its object has; the container is started again until it can read its keys.
mounted=$(podman volume inspect -f '{{.Mountpoint}}' attnd-keys)/keys
grep -q '^tester ' "$mounted" || cat /run/attn/keys > "$mounted"
infra=$(podman ps -q --filter name=infra | head -n 1)
url=http://$(podman inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$infra"):8080
check "it is ready" answers
[ "$failed" = 0 ] || give_up
ask() { # ask FLAG…: the status
    curl -s -o /dev/null -w "%{http_code}" -H "Content-Type: application/json" "$@" -d '{"inputs": {"query": [[1, 0], [0, 1]]}}' \
        "$url/v1/attention"
}
check "it answers who has a key" is "$(ask -H "Authorization: Bearer $key")" 200
check "it refuses who has none" is "$(ask)" 401
check "it answers from the model of the claim" curl -sf -o /dev/null -H "Authorization: Bearer $key" \
    -H "Content-Type: application/json" -d '{"inputs": {"text": "a tree"}}' "$url/v1/models/bert/attention"
check "it runs as user 10001" is "$(status_of Uid)" 10001
check "it has no capabilities" is "$(status_of CapEff)" 0000000000000000
check "it can gain no privileges" is "$(status_of NoNewPrivs)" 1
check "its root is read-only" is "$(podman inspect -f '{{.HostConfig.ReadonlyRootfs}}' "$(container)")" true
check "it has the settings of the ConfigMap" is \
    "$(podman inspect -f '{{range .Config.Env}}{{println .}}{{end}}' "$(container)" | grep ATTND_LOG_FORMAT)" ATTND_LOG_FORMAT=json
check "its liveness probe is there" is "$(podman inspect -f '{{ne .Config.Healthcheck nil}}' "$(container)")" true
check "it stops" podman kube down /run/attn/pod.yaml
conclude
