#!/bin/sh
# checks/port.sh ADDRESS:PORT: complains of what the server would refuse as ATTND_LISTEN, before anything is installed and
# built: another form, an address for other machines without keys, and a port on which another program listens. Names and
# other addresses are left to the server, and so are ports on a system without /proc/net.
set -u
host=${1%:*} port=${1##*:}
refuse() {
    echo "$1" >&2
    exit 1
}

is_port() { case $1 in '' | *[!0-9]* | ??????*) false ;; *) [ "$1" -le 65535 ] ;; esac }
is_host() { case $1 in \[*\]) ;; *:*) false ;; esac }
case $1 in *:*) is_host "$host" && is_port "$port" ;; *) false ;; esac ||
    refuse "ATTND_LISTEN cannot be \"$1\"; expected address:port, such as 127.0.0.1:8080, [::1]:8080 or :0"

# The addresses of listeners that leave no room: in hexadecimal, as /proc/net has them on machines of both byte orders.
loopback='0+|0100007F|7F000001'
case $host in
127.0.0.1 | localhost) files='tcp tcp6' taken=$loopback ;;
'[::1]') files=tcp6 taken='0+|0+1000000|0+1' ;;
'' | '*' | 0.0.0.0 | '[::]')
    files='tcp tcp6' taken=$loopback
    case ${ATTND_KEYS:-none}:${ATTND_OPEN:-off} in
    none:0 | none:off)
        refuse "$1 can be reached from other machines and there are no keys: give ATTND_KEYS=FILE, or ATTND_OPEN=1 if something else guards the way here"
        ;;
    esac
    ;;
*) exit 0 ;;
esac
# The second column is ADDRESS:PORT in hexadecimal, 0A the state of a socket that listens.
hex=$(printf '%04X' "$port" 2>/dev/null) || exit 0
for file in $files; do cat "/proc/net/$file" 2>/dev/null; done |
    awk -v end="^($taken):$hex\$" '$2 ~ end && $4 == "0A" {taken = 1} END {exit !taken}' || exit 0
refuse "port $port is taken; serve on another one: ATTND_LISTEN=$host:$((port + 1)) make run"
