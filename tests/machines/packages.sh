#!/usr/bin/env bash
# packages.sh: what make says where packages are missing and cannot be installed: one plain line, before any work; and
# what it says while it installs and builds.
#
# The programs of this machine are seen through a folder of links, from which some are taken away; apt-get, sudo, id and
# dpkg-query are replaced. Nothing is installed. `make packages-test` runs it.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=packages-test
. tests/support/checks.sh

mkdir "$work/bin"
for folder in ${PATH//:/ }; do
    ln -s "$folder"/* "$work/bin/" 2>/dev/null
done
# without NAME…, instead NAME LINES: another set of programs, for the length of a test.
without() { for name in "$@"; do rm -f "$work/bin/$name"; done; }
instead() {
    rm -f "$work/bin/$1"
    printf '#!/bin/sh\n%s\n' "$2" > "$work/bin/$1"
    chmod +x "$work/bin/$1"
}
run() { env -u MAKEFLAGS -u MAKELEVEL -u MAKEOVERRIDES PATH="$work/bin" "$@" 2>&1; }

# says TEXT COMMAND…: it fails, in one line (and make's own behind it), which has the text.
says() {
    local text=$1 said
    shift
    said=$(run "$@") && { echo "does not fail: $said"; return 1; }
    said=$(grep -v '^make.* Error ' <<<"$said")
    case $said in
    *$'\n'*) echo "more than one line: $said"; return 1 ;;
    *"$text"*) ;;
    *) echo "says: $said"; return 1 ;;
    esac
}
install=mk/install_packages.sh

check "what is there is not missing" run $install make gcc libc6-dev
instead dpkg-query 'exit 1'
instead id 'echo 1000'
instead apt-get 'case "$*" in *install*) echo "E: Unable to locate package" >&2; exit 100 ;; esac; echo "W: Failed to fetch"'
instead sudo '[ "$1" = true ] && { printf "sudo: %s\n" "unable to resolve host vm" "a password is required" >&2; exit 1; }'
check "sudo that refuses" says "packages are missing and sudo refuses (sudo: a password is required); as root: apt-get install no-such-thing" \
    $install gcc no-such-thing
check "INSTALL=no installs nothing" says "missing packages (by Debian's names): no-such-thing; INSTALL=no leaves them to you" \
    env INSTALL=no $install gcc no-such-thing
without sudo
check "no root and no sudo" says "packages are missing and there is no sudo; as root: apt-get install no-such-thing" $install no-such-thing
instead id 'echo 0'
offline() {
    local said
    said=$(run $install no-such-thing) && return 1
    [ "$said" = "installing: no-such-thing
fetching the lists of packages
packages could not be fetched or installed (is there a network?): no-such-thing; apt-get: E: Unable to locate package" ] ||
        { echo "says: $said"; return 1; }
}
check "no network" offline
fetches_nothing() { run $install no-such-thing | tail -n 1 | grep -q "(is there a network?): no-such-thing; apt-get: E: Failed to fetch one"; }

# What apt-get says while it installs two packages, on a terminal and elsewhere.
instead apt-get 'case "$*" in "-s "*) printf "Inst %s\n" one two; exit ;; esac
printf "dlstatus:%s of 2\n" "1:0.0:Retrieving file 1" "1:9.1:Retrieving file 1" "2:50.0:Retrieving file 2"
printf "pmstatus:%s\n" "one:10.0:Unpacking one (all)" "one:60.0:Installed one (all)" "two:100.0:Installed two (all)"
echo "debconf: delaying package configuration"'
installs_in_plain_lines() {
    is "$(run $install no-such-thing)" "installing: no-such-thing
[0/2] installing packages
[1/2] downloading packages
[2/2] downloading packages
[1/2] installing one
[2/2] installing two"
}
check "installing says what and how many of how many" installs_in_plain_lines
# on_terminal COMMAND…: what stays on the screen, without the lines that were written over.
on_terminal() { run script -qec "$*" /dev/null </dev/null | tr -d '\r' | sed -e ':again' -e 'N' -e 's/[^\n]*\n\x1b\[A\x1b\[K//' -e 't again' -e '$!b again'; }
installs_in_one_line() {
    is "$(on_terminal $install no-such-thing)" "installing: no-such-thing
[2/2] installing two"
}
if command -v script >/dev/null; then check "on a terminal it is one line" installs_in_one_line; else skip "a terminal: no script"; fi
instead apt-get 'case "$*" in "-s "*) echo "Inst one"; exit ;; *update*) exit ;; esac; echo "E: Failed to fetch one"; exit 100'
check "a package that cannot be fetched is told" fetches_nothing
without apt-get
check "no apt-get" says "missing packages (by Debian's names): no-such-thing; there is no apt-get here" $install no-such-thing

without dpkg-query
packages_of_run() { awk '/^RUN_PACKAGES := / {on = 1; $1 = $2 = ""} on {print} on && !/\\$/ {exit}' mk/packages.mk | tr -d '\\'; }
runs_off_debian() { [ "$(packages_of_run | wc -w)" -gt 10 ] && [ -z "$(run mk/missing_packages.sh $(packages_of_run))" ]; }
check "another system with the libraries lacks nothing" runs_off_debian
without python3 node
check "a target names what it misses" says "missing: nodejs python3; install by: make deps" make examples
check "and so do others" says "missing: python3; install by: make deps" make cases readme
without clang-tidy
check "what make deps does not install is named as apt-get wants it" says "install by: apt-get install clang-tidy" make tidy
without pkg-config
check "make alone names the packages" says "missing (by Debian's names): pkgconf" make all BUILD="$work/build"
ln -sf "$(command -v pkg-config)" "$work/bin/pkg-config"
without docker podman buildah
check "make image names a builder's package" says "apt-get install buildah" make image

mkdir "$work/tree"
cp -r Makefile VERSION mk packaging "$work/tree"
if command -v git >/dev/null; then
    check "the tarball is made in a clone alone" says "dist: the tarball is made of a commit" \
        make -C "$work/tree" --no-print-directory dist
else
    check "the tarball takes git" says "missing: git" make -C "$work/tree" --no-print-directory dist
fi
check "packages are made in a clone alone" says "deb: the tarball is made of a commit" make -C "$work/tree" --no-print-directory deb
no_tarball() { [ -z "$(find "$work/tree" -name '*.gz')" ]; }
check "nothing is left of a tarball that was not made" no_tarball

# A program, not a function: script(1) starts the shell of the account, and dash passes no functions on.
build_two="$work/build_two"
cat > "$build_two" <<END
#!/bin/sh
mk/build.sh "$work/built/command" "$work/built/server/base/text.o $work/built/server/base/clock.o" make --no-print-directory BUILD="$work/built"
END
chmod +x "$build_two"
builds_in_plain_lines() {
    is "$(run "$build_two")" "[0/2] building
[1/2] compiling server/base/text.c
[2/2] compiling server/base/clock.c" && ! run "$build_two" | grep -F '['
}
builds_in_one_line() {
    rm "$work"/built/server/base/*.o
    is "$(on_terminal "$build_two")" "[2/2] compiling server/base/clock.c"
}
fails_as_make_does() {
    printf 'a:\n\tmk/progress.sh 1 1 a; exit 3\n' > "$work/makefile"
    run mk/build.sh a a make -f "$work/makefile"
    [ $? = 2 ]
}
check "building says what and how many of how many, and nothing when nothing is built" builds_in_plain_lines
if command -v script >/dev/null; then check "on a terminal it is one line" builds_in_one_line; fi
check "building fails when a step fails" fails_as_make_does

# A port that another program has.
port_in_use() {
    local port named status=0
    exec 3< <(exec python3 -uc 'import socket, time
s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])
t = socket.create_server((socket.gethostname(), 0)); print(t.getsockname()[1]); time.sleep(600)')
    local holder=$!
    read -r port <&3
    read -r named <&3
    ATTND_LISTEN=127.0.0.1:$port says "port $port is taken; serve on another one: ATTND_LISTEN=127.0.0.1:" make run || status=1
    for host in 127.0.0.1 localhost LOCALHOST 127.1 '[::ffff:127.0.0.1]' '' 0; do
        ATTND_OPEN=1 says "port $port is taken" mk/checks/port.sh "$host:$port" || status=1
    done
    says "port $port is taken" mk/checks/port.sh "127.0.0.1:0$port" || status=1
    [ -z "$(getent -s files ahosts "$(hostname)")" ] || says "port $named is taken" mk/checks/port.sh "$(hostname):$named" || status=1
    run mk/checks/port.sh "[::1]:$port" || status=1
    kill $holder
    return $status
}
wrong_address() {
    for address in 8081 127.0.0.1: 127.0.0.1:http 127.0.0.1:65536 ::1:8080 ' 127.0.0.1:8080'; do
        ATTND_LISTEN=$address says "ATTND_LISTEN cannot be \"$address\"; expected address:port" make run || return 1
    done
    for address in :0 0.0.0.0:0 0:0 '[::]:0'; do
        ATTND_LISTEN=$address says "$address can be reached from other machines and there are no keys" make run || return 1
        ATTND_LISTEN=$address ATTND_KEYS=keys run mk/checks/port.sh "$address" || return 1
    done
    for address in 127.0.0.1:0 127.0.0.1:000 '[::1]:0' localhost:0 name.example:80 127.0.0.2:8080 127.0.0.1:000001; do
        run mk/checks/port.sh "$address" || return 1
    done
}
check "a wrong ATTND_LISTEN is noticed before anything is built" wrong_address
if [ -e /proc/net/tcp ]; then
    check "a port that is taken is noticed before anything is built" port_in_use
else
    skip "a port that is taken: no /proc/net/tcp"
fi

conclude
