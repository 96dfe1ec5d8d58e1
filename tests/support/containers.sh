# containers.sh: for scripts that run containers: namespaces of their own, a base image, the tools. To be sourced.
# shellcheck shell=bash
#
# Everything started inside ends with the script: processes, networks, mounts and containers are in namespaces of their
# own, container layers on a tmpfs. Images are read from the machine's own store. The harness comes along.
. tests/support/checks.sh

# need PROGRAM…: installs what is missing (packages have the programs' names), or skips.
need() {
    for program in "$@"; do
        command -v "$program" >/dev/null || mk/install_packages.sh "$program" >/dev/null 2>&1 ||
            skip_suite "no $program, and it cannot be installed"
        command -v "$program" >/dev/null || skip_suite "no $program"
    done
}

# has_base NAME: whether the base image is there, can be pulled, or can be made by mmdebstrap from the machine's mirror.
has_base() {
    buildah inspect --type image "$1" >/dev/null 2>&1 && return 0
    timeout 120 buildah pull -q "$1" >/dev/null 2>&1 && return 0
    command -v mmdebstrap >/dev/null || mk/install_packages.sh mmdebstrap >/dev/null 2>&1 || return 1
    local debian=${1##*:} mirror made
    debian=${debian%-slim}
    mirror=$(awk '/^URIs:/{print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null)
    mmdebstrap --quiet --variant=minbase --format=tar "$debian" "$work/base.tar" \
        ${mirror:+"deb $mirror $debian main" "deb $mirror $debian-updates main"} >/dev/null 2>&1 &&
        podman import -q "$work/base.tar" "localhost/$1" >/dev/null
    made=$?
    rm -f "$work/base.tar"
    return $made
}

# enter_namespaces SCRIPT ARGUMENT…: once more from the start, inside; returns there.
enter_namespaces() {
    [ -z "${ATTN_INSIDE:-}" ] || { set_up_inside; return; }
    ATTN_INSIDE=1 ATTN_IMAGES=$(podman info --format '{{.Store.GraphRoot}}') || skip_suite "podman does not work here"
    export ATTN_INSIDE ATTN_IMAGES
    unshare --mount --net --pid --ipc --uts true 2>/dev/null || skip_suite "no namespaces"
    rm -rf "$work"
    exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc --net --ipc --uts "$@"
}

set_up_inside() {
    # crun refuses two cgroup hierarchies side by side.
    umount /sys/fs/cgroup/unified 2>/dev/null || true
    ip link set lo up
    mkdir -p /run/attn
    mount -t tmpfs -o mode=755 attn /run/attn
    # Podman's locks are shared memory: without its own, this podman and the machine's, or another test's, share them.
    mount -t tmpfs -o mode=1777 attn /dev/shm
    for folder in /run/netns /run/libpod /run/containers /run/crun /run/lock /var/lib/cni /etc/containers/networks; do
        mkdir -p "$folder"
        mount -t tmpfs -o mode=755 attn "$folder"
    done
    mkdir /run/attn/graph /run/attn/run
    cat > /run/attn/storage.conf <<EOF
[storage]
driver = "overlay"
graphroot = "/run/attn/graph"
runroot = "/run/attn/run"
[storage.options]
additionalimagestores = ["$ATTN_IMAGES"]
EOF
    printf '[engine]\nevents_logger = "file"\ncgroup_manager = "cgroupfs"\n' > /run/attn/containers.conf
    export CONTAINERS_STORAGE_CONF=/run/attn/storage.conf CONTAINERS_CONF=/run/attn/containers.conf
    # Control groups have no namespace here: what is not removed leaves empty ones to the machine.
    clean_up() { podman pod rm --all --force -t 0; podman rm --all --force -t 0; } >/dev/null 2>&1
}
