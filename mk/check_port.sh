#!/bin/sh
# check_port.sh ADDRESS:PORT: complains when another program listens on that port of the loopback or of every address. Other
# addresses are left to the server, and so is a system without /proc/net.
set -u
port=${1##*:}
case $1 in
127.0.0.1:*[!0-9]* | 127.0.0.1:) exit 0 ;;
127.0.0.1:* | :* | 0.0.0.0:*) ;;
*) exit 0 ;;
esac
# The second column is ADDRESS:PORT in hexadecimal, 0A the state of a socket that listens.
hex=$(printf '%04X' "$port" 2>/dev/null) || exit 0
cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk -v end="^(0+|0100007F|7F000001):$hex\$" '$2 ~ end && $4 == "0A" {taken = 1} END {exit !taken}' || exit 0
echo "port $port is taken; serve on another one: ATTND_LISTEN=127.0.0.1:$((port + 1)) make run" >&2
exit 1
