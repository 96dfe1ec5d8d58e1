#!/bin/sh
# check_layers.sh: the rules about includes, as greps. Prints what breaks one, and fails then.
#
#   main -> http -> service -> codec -> core; server/config, log and text include none of the rooms
#   microhttpd.h only in server/http; jansson.h, png.h and FreeType only in server/codec; cblas.h only in
#   core/src/gemm/blas.c
#   no two sources share a name, main.c aside
set -u
cd "$(dirname "$0")/.." || exit 1
broken=0

# forbid WHAT PATTERN FILE…: no FILE may have a line that matches PATTERN.
forbid() {
    what=$1 pattern=$2
    shift 2
    [ $# -gt 0 ] || return 0
    if grep -nE "$pattern" /dev/null "$@"; then
        echo "  ^ $what"
        broken=1
    fi
}

# sources FOLDER…: the C files and headers below them.
sources() {
    for folder in "$@"; do
        [ -d "$folder" ] && find "$folder" -name '*.[ch]' -o -name '*.S'
    done
}

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]'
main=$(find server -maxdepth 1 -name main.c)
floor=$(find server/base server/health -name '*.[ch]')
# The lists below are words on purpose: no source has a space in its name.
# shellcheck disable=SC2046,SC2086
{
    forbid "core knows nothing of the server" "$include(http|service|codec|config|log|text|main)(/|\.h)" $(sources core)
    forbid "codec includes codec and core only" "$include(http|service|main)(/|\.h)" $(sources server/codec)
    forbid "service does not include http" "$include(http|main)(/|\.h)" $(sources server/service)
    forbid "nobody includes main" "${include}main\.h" $(sources server/http)
    forbid "the floor includes no room of the server, nor the core" "$include(http|service|codec|attn)/" $floor
    forbid "the server includes the core's public headers only" "$include(kernel/|\.\./|core/)" $(sources server)
    forbid "microhttpd.h lives in server/http" "${include}microhttpd\.h" \
        $(sources core server/codec server/service) $main $floor
    forbid "jansson.h lives in server/codec" "${include}jansson\.h" \
        $(sources core server/http server/service) $main $floor
    forbid "png.h and FreeType live in server/codec" "${include}(png\.h|ft2build\.h|freetype)" \
        $(sources core server/http server/service) $main $floor
    forbid "zlib.h and zstd.h live in server/codec" "${include}(zlib|zstd|zstd_errors)\.h" \
        $(sources core server/http server/service) $main $floor
    forbid "nettle lives in server/base/digest.c" "${include}nettle/" \
        $(sources core server | grep -v '^server/base/digest\.c$')
    forbid "gnutls lives in server/http/connections/tls.c and server/health/health_tls.c" "${include}gnutls/" \
        $(sources core server | grep -vE '^server/(http/connections/tls|health/health_tls)\.c$')
    forbid "cblas.h lives in core/src/gemm/blas.c" "${include}(cblas|openblas_config)\.h" \
        $(sources core server | grep -v '^core/src/gemm/blas\.c$')
    forbid "json_t does not leave the codec" "\bjson_t\b" $(sources server/http server/service)
}

twins=$(sources core server | grep '\.c$' | sed 's|.*/||' | sort | uniq -d | grep -vx main.c)
if [ -n "$twins" ]; then
    echo "sources that share a name: $twins"
    broken=1
fi
[ $broken = 0 ] && echo "layers: includes point one way"
exit $broken
