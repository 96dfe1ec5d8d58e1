#!/bin/sh
# rolling_update.sh [REPLICA]…: replaces the replicas of compose.yaml one after the other; each drains first.
#
#   COMPOSE='docker compose'|podman-compose   CONTAINERS=docker|podman
#
# The next one goes when the last is ready, so two of three always serve.
set -eu
cd "$(dirname "$0")"
compose=${COMPOSE:-docker compose}
containers=${CONTAINERS:-docker}
[ $# -gt 0 ] || set -- attnd-1 attnd-2 attnd-3

container_of() {
    "$containers" ps -aq --filter "label=com.docker.compose.service=$1" | head -n 1
}

for replica in "$@"; do
    old=$(container_of "$replica")
    [ -z "$old" ] || { "$containers" stop -t 40 "$old" && "$containers" rm "$old"; } >/dev/null
    # A command of several words on purpose.
    # shellcheck disable=SC2086
    $compose -f compose.yaml up -d --no-deps "$replica" >/dev/null
    for _ in $(seq 100); do
        new=$(container_of "$replica")
        [ -z "$new" ] || ! "$containers" exec "$new" /usr/bin/attnd health 2>/dev/null || break
        sleep 0.2
    done
    "$containers" exec "$new" /usr/bin/attnd health
    # Until the balancer has looked again.
    sleep 2
    echo "$replica is replaced and ready"
done
