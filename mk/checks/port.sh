#!/bin/sh
# checks/port.sh ADDRESS:PORT: complains of what the server would refuse as ATTND_LISTEN, before anything is installed and
# built: another form, an address for other machines without keys, and a port on which another program listens. Names that
# /etc/hosts does not have are left to the server, and so are ports on a system without /proc/net.
set -u
host=${1%:*} port=${1##*:}
refuse() {
    echo "$1" >&2
    exit 1
}

port=$(echo "$port" | sed 's/^0*\(.\)/\1/') # leading zeros would make it octal
is_port() { case $1 in '' | *[!0-9]* | ??????*) false ;; *) [ "$1" -le 65535 ] ;; esac }
is_host() { case $1 in *[/\ ]*) false ;; \[*\]) ;; *:*) false ;; esac }
case $1 in *:*) is_host "$host" && is_port "$port" ;; *) false ;; esac ||
    refuse "ATTND_LISTEN cannot be \"$1\"; expected address:port, such as 127.0.0.1:8080, [::1]:8080 or :0"

# The server takes every spelling of an address: 127.1, 0, LOCALHOST. No name is asked of the network here.
name=${host#\[}
address=$(getent -s files ahosts "${name%\]}" 2>/dev/null | awk '{print $1; exit}')
address=${address:-$host}
case $address in localhost) address=127.0.0.1 ;; ::ffff:*) address=${address#::ffff:} ;; esac
# The addresses of listeners that leave no room: in hexadecimal, as /proc/net has them on machines of both byte orders.
files='tcp tcp6'
case $address in
::1) files=tcp6 taken='0+|0+1000000|0+1' ;;
'' | '*' | 0.0.0.0 | '[::]' | ::)
    taken='0+|(0+F+0*)?(0100007F|7F000001)'
    case ${ATTND_KEYS:-none}:${ATTND_OPEN:-off} in
    none:0 | none:off)
        refuse "$1 can be reached from other machines and there are no keys: give ATTND_KEYS=FILE, or ATTND_OPEN=1 if something else guards the way here"
        ;;
    esac
    ;;
*[!0-9.]*) exit 0 ;;
*)
    # shellcheck disable=SC2046 # four words on purpose
    as_hex() { printf '%02X' $(echo "$address" | awk -F. "{print $1}"); }
    # shellcheck disable=SC2016 # awk expands these
    taken="0+|(0+F+0*)?($(as_hex '$1, $2, $3, $4')|$(as_hex '$4, $3, $2, $1'))"
    ;;
esac
# The second column is ADDRESS:PORT in hexadecimal, 0A the state of a socket that listens.
hex=$(printf '%04X' "$port" 2>/dev/null) || exit 0
for file in $files; do cat "/proc/net/$file" 2>/dev/null; done |
    awk -v end="^($taken):$hex\$" '$2 ~ end && $4 == "0A" {taken = 1} END {exit !taken}' || exit 0
refuse "port $port is taken; serve on another one: ATTND_LISTEN=$host:$((port + 1)) make run"
