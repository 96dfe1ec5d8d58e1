#!/usr/bin/env bash
# fresh.sh SUITE [run|root|user|packages|arm64]: the README on bare machines of Debian SUITE (bookworm, trixie), made by
# mmdebstrap, or of any system with apt whose root is SUITE.tar (with make, sudo and ca-certificates). Takes minutes. Without
# a word as root, as a user, and packages:
#
#   run                         make run alone, with the seconds to the first answer, and each curl block of the README pasted
#   as root                     make run, make test, the curl lines of the README
#   a plain user with sudo,     the same; a second make run installs and builds nothing; the tarball of `make dist` builds
#   a path with spaces          and passes its tests without a network
#   packages, in a clone        make deb with its tests, lintian, installed, used, purged; make install, and the commands of examples/core.c;
#                               what make says without a network
#   arm64                       tests/machines/arm64.sh: cross-built, and its tests under an emulator
#
# Needs root and mmdebstrap (installed when it can be); else it exits with 77 and says why. A machine lives on a tmpfs in
# namespaces of its own and is gone when the script ends. ATTN_CACHE keeps the bare bases between runs (build/fresh);
# ATTN_PATIENCE=3600 is how many seconds a machine may take.
set -u
cd "$(dirname "$0")/../.." || exit 1
folder='/home/dev/a path with spaces/attnd'
suite=fresh
. tests/support/checks.sh
verbose=1

# --- outside -------------------------------------------------------------------------------------------------------
make_base() { # make_base SUITE TARBALL: no compiler, no Python, no curl, no git: make and sudo alone are given
    local suite=$1 sources=/etc/apt/sources.list.d/debian.sources mirror security lines=() hook=()
    mirror=$(awk '/^URIs:/{print $2; exit}' $sources 2>/dev/null)
    security=$(awk '/^URIs:/{uri = $2} /^Suites:.*-security/{print uri; exit}' $sources 2>/dev/null)
    [ -z "$mirror" ] || lines=("deb $mirror $suite main" "deb $mirror $suite-updates main")
    [ -z "$security" ] || lines+=("deb $security $suite-security main")
    # Debian 12's usrmerge brings Perl, which its minimal images have not.
    [ "$suite" != bookworm ] || hook=(--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr
        --setup-hook='mkdir -p "$1/etc/apt/preferences.d"
            printf "Package: usrmerge\nPin: version *\nPin-Priority: -1\n" > "$1/etc/apt/preferences.d/no-usrmerge"'
        --customize-hook='rm "$1/etc/apt/preferences.d/no-usrmerge"')
    # Its hooks are talkative.
    mmdebstrap --quiet --variant=minbase --format=tar --include=ca-certificates,make,sudo "${hook[@]}" \
        --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Check-Date "false"' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        "$suite" "$2.part" "${lines[@]}" >"$2.log" 2>&1 && mv "$2.part" "$2"
}

sources() {
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -z -co --exclude-standard | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done
    else find . -path ./build -prune -o -type f -print0; fi | tar -c --null --no-recursion -T -
}

# The last commit with its .git.
clone() {
    local folder
    folder=$(mktemp -d)
    git clone -q --depth 1 "file://$PWD" "$folder/clone" && tar -C "$folder/clone" -c .
    rm -rf "$folder"
}

# machine USER FOLDER WHAT: a new machine, with the sources there, that runs this script once more. We are process 1.
machine() {
    local user=$1 place=$2 what=$3 root=/mnt base
    exec {base}<"$ATTN_BASE"
    # Read before the folder of the machine covers what may lie below it.
    exec {tree}< <(if [ "$what" = packages ]; then clone; else sources; fi) {tarball}<"$ATTN_TARBALL"
    mount -t tmpfs -o size=8g,mode=755 fresh $root || return 1
    tar -C $root -x --numeric-owner <&"$base" || return 1
    mkdir -p "$root$place" && tar -C "$root$place" -x --no-same-owner <&"$tree" || return 1
    cat <&"$tarball" > $root/opt/attnd.tar.gz
    mount -t proc proc $root/proc && mount -t sysfs -o ro sysfs $root/sys && mount --rbind /dev $root/dev || return 1
    mount -t tmpfs -o mode=1777 shm $root/dev/shm
    cat /etc/resolv.conf > $root/etc/resolv.conf
    printf '127.0.0.1 localhost fresh\n' > $root/etc/hosts
    hostname fresh
    printf '#!/bin/sh\nexit 101\n' > $root/usr/sbin/policy-rc.d
    chmod 755 $root/usr/sbin/policy-rc.d
    if [ "$user" != root ]; then
        chroot $root useradd -s /bin/bash -d "/home/$user" "$user" && chroot $root chown -R "$user:" "/home/$user" || return 1
        echo "$user ALL=(ALL) NOPASSWD: ALL" > $root/etc/sudoers.d/$user
    fi
    timeout -k 5 "${ATTN_PATIENCE:-3600}" chroot $root setpriv --reuid="$user" --regid="$user" --init-groups env -i \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$(chroot $root sh -c "echo ~$user")" \
        LANG=C.UTF-8 TERM=dumb bash "$place/tests/machines/fresh.sh" "--$what" </dev/null
}

# --- inside --------------------------------------------------------------------------------------------------------
excerpt() {
    grep -E '\*\*\*|:[FE]:|[Ff]ailed|wrong' "$1" | grep -v ' 0 failed' | head -n 30
    tail -n 5 "$1"
}

# serve COMMAND…: `make run` on a free port, COMMAND with its address, SIGTERM; both must end well. /tmp/seconds has the time.
serve() {
    local run status=0 address= begun=$SECONDS
    ATTND_LISTEN=127.0.0.1:0 setsid make run >/tmp/run 2>&1 &
    run=$!
    for _ in $(seq 3000); do
        address=$(grep -oE '127\.0\.0\.1:[1-9][0-9]*' /tmp/run | head -n 1)
        [ -z "$address" ] || break
        kill -0 $run 2>/dev/null || break
        sleep 0.1
    done
    echo "listens after $((SECONDS - begun)) s; processor time of the shell, and of all that it ran:" > /tmp/seconds
    if [ -n "$address" ]; then "$@" "$address" || status=1; else status=1; fi
    # The whole group: make passes no signal on.
    kill -TERM -- -$run 2>/dev/null
    wait $run
    times >> /tmp/seconds
    cat /tmp/run
    return $status
}
# No curl and no Python is there yet. A server listens before its self-test is done.
is_ready() {
    exec 3<>"/dev/tcp/${1%:*}/${1#*:}" && printf 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3 &&
        head -n 1 <&3 | grep -q ' 200 '
}
answers() {
    for _ in $(seq 600); do
        is_ready "$1" && return
        sleep 0.1
    done
    return 1
}
curl_lines() { python3 tests/api/readme/run.py --url "http://$1" README.md; }
# As a reader pastes them, one after the other: no Python is there.
pasted() (
    local place=$1 number
    mkdir -p /tmp/pasted && cp README.md /tmp/pasted && cd /tmp/pasted || return 1
    awk '/^```sh$/ {on = 1; file = sprintf("%02d", ++count); next} /^```$/ {on = 0} on {print > file}' README.md
    for number in $(grep -l '^ *curl' [0-9]*); do
        sed "s/127\.0\.0\.1:8080/$place/" "$number" | bash -e > "$number.out" && { [ -s "$number.out" ] || [ -s heads.png ]; } ||
            { echo "block $number: $(cat "$number.out")"; return 1; }
    done
    [ "$(grep -l '"outputs"' ./*.out | wc -l)" -ge 3 ] && ! grep -l '"error"' ./*.out
)
run_alone() {
    echo "$(. /etc/os-release; echo "$PRETTY_NAME"), $(id -un), $PWD"
    check "make run" serve answers
    cat /tmp/seconds
    grep -E '^\[|^installing|^fetching' /tmp/run
    check "the curl blocks of the README, pasted" serve pasted
    conclude
}
installs_and_builds_nothing() {
    touch /tmp/before
    serve answers && ! grep -q installing /tmp/run && [ -z "$(find build -newer /tmp/before -type f)" ]
}
tarball_offline() {
    mkdir -p /tmp/dist && tar -C /tmp/dist -xzf /opt/attnd.tar.gz && cd /tmp/dist/attnd-* || return 1
    sudo unshare --net sh -c 'ip link set lo up 2>/dev/null || python3 -c "
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sh14x\", b\"lo\", 0x41))"
exec setpriv --reuid='"$(id -u)"' --clear-groups make -j"$(nproc)" test'
}

commands() {
    echo "$(. /etc/os-release; echo "$PRETTY_NAME"), $(id -un), $PWD"
    check "make run" serve answers
    check "make test" make -j"$(nproc)" test
    check "the curl lines of the README" serve curl_lines
    check "a second make run installs and builds nothing" installs_and_builds_nothing
    [ "$(id -u)" = 0 ] || check "the tarball builds and passes its tests without a network" tarball_offline
    conclude
}

# What it is about to do in two lines, why it cannot, and the line of make.
says_that_it_is_offline() {
    local said
    said=$(unshare --net make deb 2>&1) && return 1
    echo "$said"
    grep -q '^packages could not be fetched or installed (is there a network?)' <<<"$said" && [ "$(wc -l <<<"$said")" = 4 ]
}
installs_and_serves() {
    apt-get install -y -qq --no-install-recommends ./build/deb/*.deb || return 1
    attnd --version || return 1
    attnd --listen 127.0.0.1:0 2>/tmp/attnd.log &
    local server=$! address=
    for _ in $(seq 600); do
        address=$(grep -oE '127\.0\.0\.1:[1-9][0-9]*' /tmp/attnd.log | head -n 1)
        [ -n "$address" ] && attnd health --listen "$address" && break
        sleep 0.1
    done
    attnd health --listen "$address" && kill "$server" && wait "$server"
}
# The first command in the head of core.c, as it is printed, and after it what stands behind its second `make install`.
core_as_printed() { # core_as_printed FIRST LAST: lines of its commands
    mkdir -p ~/core && cp examples/core.c ~/core && sed -n 's/^ \*     //p' examples/core.c | sed -n "$1,$2p" > ~/core/commands &&
        cat ~/core/commands && (cd ~/core && rm -f core && bash -e commands)
}
purges() {
    apt-get purge -y -qq attnd libattn-dev libattn0.2 && [ ! -e /usr/bin/attnd ] && [ -z "$(find / -xdev -path "$PWD" -prune -o -name '*libattn*' -print)" ]
}
lintian_is_content() {
    apt-get install -y -qq --no-install-recommends lintian && lintian --allow-root --fail-on error,warning build/deb/*.changes
}

packages() {
    echo "$(. /etc/os-release; echo "$PRETTY_NAME"), $(id -un), $PWD, a clone"
    check "without a network make deb says so in one line" says_that_it_is_offline
    export DEB_BUILD_OPTIONS="parallel=$(nproc)"
    check "make deb, which runs the unit tests" make deb
    check "the packages install, and serve" installs_and_serves
    check "core.c builds with libattn-dev as its head says" core_as_printed 1 1
    check "the packages are purged" purges
    check "lintian" lintian_is_content
    check "make install" make -j"$(nproc)" install
    check "core.c builds with /usr/local as its head says" core_as_printed 1 1
    check "make install PREFIX=~/attn" make install PREFIX="$HOME/attn"
    check "core.c builds with ~/attn as its head says" core_as_printed 2 3
    conclude
}

case ${1:-} in
--commands) commands; exit ;;
--run) run_alone; exit ;;
--packages) packages; exit ;;
--arm64) tests/machines/arm64.sh; exit ;;
--machine) machine "$2" "$3" "$4"; exit ;;
bookworm | trixie | *.tar) ;;
*) echo "usage: fresh.sh bookworm|trixie|ROOT.tar [run|root|user|packages|arm64]" >&2; exit 2 ;;
esac

[ "$(id -u)" = 0 ] || skip_suite "needs root"
mk/install_packages.sh mmdebstrap >/dev/null 2>&1 || skip_suite "no mmdebstrap, and it cannot be installed"
unshare --mount --pid --fork true 2>/dev/null || skip_suite "no namespaces"
cache=${ATTN_CACHE:-build/fresh}
mkdir -p "$cache"
ATTN_BASE=$cache/$1.tar
[ "${1%.tar}" = "$1" ] || ATTN_BASE=$(readlink -f "$1")
[ -f "$ATTN_BASE" ] || make_base "$1" "$ATTN_BASE" || skip_suite "no bare Debian $1 from this machine's mirror"
ATTN_TARBALL=$(make --no-print-directory -s dist) || exit 1
export ATTN_BASE ATTN_TARBALL
status=0
for way in ${2:-root user packages}; do
    case $way in
    run) machine=(root /src run) ;;
    root) machine=(root /src commands) ;;
    user) machine=(dev "$folder" commands) ;;
    packages) machine=(root /src packages) ;;
    arm64) machine=(root /src arm64) ;;
    esac
    unshare --mount --propagation private --pid --fork --kill-child --uts --ipc "$0" --machine "${machine[@]}" ||
        status=1
done
exit $status
