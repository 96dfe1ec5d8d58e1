#!/bin/sh
# install_packages.sh NAME…: installs the Debian packages that are missing (missing_packages.sh), and does nothing when
# none is. What it cannot do it says in one line. With INSTALL=no in the environment it installs nothing. It runs in the
# repository's root.
set -eu

missing=$(mk/missing_packages.sh "$@")
[ -n "$missing" ] || exit 0

die() {
    echo "$1" >&2
    exit 1
}

[ "${INSTALL:-}" != no ] || die "missing packages (by Debian's names): $missing; INSTALL=no leaves them to you"

as_root=
command -v apt-get >/dev/null ||
    die "missing packages (by Debian's names): $missing; there is no apt-get here, so install them by this system's own means"
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "packages are missing and there is no sudo; as root: apt-get install $missing"
    said=$(sudo true 2>&1) || die "packages are missing and sudo refuses ($(echo "$said" | tail -n 1)); as root: apt-get install $missing"
    as_root=sudo
fi
echo "installing${as_root:+ by sudo}: $missing"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# apt_get WORD…: says how far it is, logs the rest, and ends with apt-get's status. Its words are English in every locale.
# $as_root and $missing are words on purpose.
# shellcheck disable=SC2086
apt_get() {
    { $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq -o APT::Status-Fd=1 "$@" 2>&1; echo "status:$?"; } | tell "$1"
}

# tell COMMAND: "dlstatus:3:35.4:Retrieving file 3 of 4" comes several times a second, "pmstatus:gcc:85.2:Installed gcc" once.
tell() {
    fetched=0 installed=0
    while IFS= read -r line; do
        case $line in
        dlstatus:*"Retrieving file $fetched of "*) ;;
        dlstatus:*"Retrieving file "*" of "*)
            files=${line##* of } line=${line##*Retrieving file }
            fetched=${line%% of *}
            [ "$1" = update ] || mk/progress.sh "$fetched" "$files" downloading packages
            ;;
        pmstatus:*:Installed*)
            installed=$((installed + 1)) line=${line#pmstatus:}
            [ "$installed" -gt "$packages" ] || mk/progress.sh "$installed" "$packages" "installing ${line%%:*}"
            ;;
        dlstatus:* | pmstatus:*) ;;
        status:*) return "${line#status:}" ;;
        *) echo "$line" >>"$log" ;;
        esac
    done
}

# It tries without changing anything, to count the packages: those that are missing come with others.
# shellcheck disable=SC2086
install_missing() {
    packages=$(apt-get -s -qq install --no-install-recommends $missing 2>>"$log" | grep -c '^Inst ') || return 1
    mk/progress.sh 0 "$packages" "installing packages"
    apt_get install -y --no-install-recommends $missing
}

# The lists of a bare machine are empty, and old ones name versions that are gone: then fetch them once and try again.
install_missing || { : >"$log" && echo "fetching the lists of packages" && apt_get update && install_missing; } ||
    die "packages could not be fetched or installed (is there a network?): $missing; apt-get: $(grep -m 1 '^E:' "$log" || tail -n 1 "$log")"
