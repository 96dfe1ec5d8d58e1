#!/usr/bin/env bash
# cluster.sh IMAGE: the Deployment in a real cluster, in a namespace of its own, with the overlay one-node/. A rolling update and
# scaling lose no request of clients that try once; a killed Pod loses none of clients that try three times. The limits and the
# security context hold in the running Pod.
#
#   IMAGE                with its tag, as the cluster's nodes name it; they can pull it, or have it
#   KUBECONFIG           says which cluster; without it the suite is skipped, whatever kubectl's own settings say
#   KUBECTL=kubectl      1.22 or newer, because it renders the overlay
#   ATTND_URL            the address of the Service; by default the first node's with the Service's port of the node
#
# The checks of processes need root on the node's machine, as in a cluster of one machine; they are skipped elsewhere.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=cluster
. tests/support/checks.sh
verbose=1
image=${1:-localhost/attnd:$(cat VERSION)}
namespace=attnd-test-$$

kube() { "${KUBECTL:-kubectl}" -n "$namespace" "$@"; }
clean_up() { kube delete namespace "$namespace" --wait=false >/dev/null 2>&1; }
field() { kube get "$1" -o "jsonpath=$2"; }

# render: the overlay with this image, as a file. Kustomize wants relative paths.
render() {
    printf '%s\n' "resources: [$(realpath --relative-to="$work" docker/kubernetes/overlays/one-node)]" \
        "images: [{name: attnd, newName: ${image%:*}, newTag: '${image##*:}'}]" > "$work/kustomization.yaml"
    kube kustomize "$work" > "$work/objects.yaml"
}
rolled_out() { kube rollout status deployment/attnd --timeout=180s; }
start() { kube create namespace "$namespace" && kube apply -f "$work/objects.yaml" && rolled_out; }

find_url() {
    url=${ATTND_URL:-http://$(field nodes '{.items[0].status.addresses[?(@.type=="InternalIP")].address}'):$(
        field service/attnd '{.spec.ports[0].nodePort}')}
}
answers() {
    for _ in $(seq 100); do
        curl -sf -m 2 -o /dev/null "$url/readyz" && return 0
        sleep 0.2
    done
    return 1
}

# under_load TRIES COMMAND…: whether the command succeeds, and no request of the clients fails meanwhile.
under_load() {
    python3 tests/support/load.py "$url" --clients 6 --pause 0.01 --seconds 600 --tries "$1" > "$work/load" &
    local load=$! status=0
    shift
    sleep 2
    "$@" || status=1
    sleep 2
    kill -TERM "$load"
    wait "$load" || status=1
    cat "$work/load"
    return $status
}
pods() { kube get pods -l app.kubernetes.io/name=attnd -o name; }
scale_to() {
    kube scale deployment/attnd --replicas="$1" && rolled_out || return 1
    for _ in $(seq 300); do
        [ "$(pods | wc -l)" != "$1" ] || return 0
        sleep 0.3
    done
    return 1
}
update() { kube rollout restart deployment/attnd && rolled_out && scale_to 3; }
scale_up_and_down() { scale_to 3 && sleep 3 && scale_to 1; }
kill_a_pod() { kube delete "$(pods | head -n 1)" --grace-period=0 --force && sleep 1 && scale_to 3; }

# process: the id of the first Pod's process, where the node's processes are this machine's.
process() {
    local id
    id=$(field pods '{.items[0].status.containerStatuses[0].containerID}')
    for cgroup in $(grep -ls "${id##*/}" /proc/[0-9]*/cgroup); do
        [ "$(cat "${cgroup%/*}/comm")" != attnd ] || { basename "${cgroup%/*}"; return; }
    done
}
status_of() { awk -v name="$1:" '$1 == name {print $2}' "/proc/$pid/status"; }
root_is() { awk '$2 == "/" {print substr($4, 1, 2)}' "/proc/$pid/mounts"; }
# limit_of FILE-OF-VERSION-2 FILE-OF-VERSION-1: what the control group's file says.
limit_of() { cat "/proc/$pid/root/sys/fs/cgroup/$1" 2>/dev/null || cat "/proc/$pid/root/sys/fs/cgroup/$2"; }
processors() { limit_of cpu.max cpu/cpu.cfs_quota_us | awk '{print $1 / 100000}'; }
kill_a_process() {
    local restarts='{.items[*].status.containerStatuses[0].restartCount}'
    pid=$(process) && kill -KILL "$pid" || return 1
    for _ in $(seq 100); do
        [[ $(field pods "$restarts") != *1* ]] || { rolled_out; return; }
        sleep 0.3
    done
    echo "restarts: $(field pods "$restarts")"
    return 1
}

# More work at once than the memory has room for: it is refused, and nothing is killed.
over_the_limit() {
    python3 -c 'import json; print(json.dumps({"inputs": {"query": {"shape": [12, 900, 2], "data": [0.5] * 21600}}}))' > "$work/body"
    local restarts='{.items[0].status.containerStatuses[0].restartCount}' before
    before=$(field pods "$restarts")
    for _ in 1 2 3 4 5 6 7 8; do
        curl -s -o /dev/null -w '%{http_code}\n' -H 'Content-Type: application/json' --data-binary "@$work/body" "$url/v1/attention" &
    done > "$work/statuses"
    wait $(jobs -p)
    sort "$work/statuses" | uniq -c
    grep -q 503 "$work/statuses" && ! grep -qvE '200|503' "$work/statuses" && is "$(field pods "$restarts")" "$before"
}
threads() { curl -s "$url/version" | grep -o '"compute":[0-9]*'; }

# figures CLAIM COMMAND…: a check that also prints the clients' results.
figures() {
    check "$@"
    sed 's/^/        /' "$work/load"
}

for program in "${KUBECTL:-kubectl}" python3 curl; do
    command -v "$program" >/dev/null || skip_suite "no $program"
done
[ -n "${KUBECONFIG:-}" ] && kube get --raw /readyz >/dev/null 2>&1 || skip_suite "no cluster: KUBECONFIG names none that answers"
echo "Kubernetes $(field nodes '{.items[0].status.nodeInfo.kubeletVersion}'), image $image"
render || exit 1
check "three replicas start" start
[ "$failed" = 0 ] || { kube get pods,events; kube logs deployment/attnd; conclude; exit; }
find_url
check "the Service answers at $url" answers
[ "$failed" = 0 ] || { conclude; exit; }

figures "a rolling update loses nothing" under_load 1 update
check "one replica is left" scale_to 1
figures "scaling from one to three and back loses nothing" under_load 1 scale_up_and_down
check "three replicas again" scale_to 3
figures "a killed Pod loses nothing with three tries" under_load 3 kill_a_pod

check "one replica is left" scale_to 1
check "it computes with the threads that its limit allows" is "$(threads)" '"compute":1'
check "beyond the limit of memory it refuses, and is not killed" over_the_limit
check "a command in the Pod finds it healthy" kube exec deployment/attnd -- /usr/bin/attnd health
pid=$(process)
if [ -n "$pid" ]; then
    check "its limit of memory holds" is "$(limit_of memory.max memory/memory.limit_in_bytes)" $((512 << 20))
    check "its limit of processors holds" is "$(processors)" 1
    check "it runs as user 10001" is "$(status_of Uid)" 10001
    check "it has no capabilities" is "$(status_of CapEff)$(status_of CapBnd)" 00000000000000000000000000000000
    check "it can gain no privileges" is "$(status_of NoNewPrivs)" 1
    check "its system calls are filtered" is "$(status_of Seccomp)" 2
    check "its root is read-only" is "$(root_is)" ro
    check "three replicas again" scale_to 3
    figures "a killed process loses nothing with three tries" under_load 3 kill_a_process
else
    skip "processes: the node is another machine, or this is not root"
fi
conclude
