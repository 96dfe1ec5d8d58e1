#!/bin/sh
# run.sh ATTND: generates clients from the OpenAPI document, compiles them in strict mode, and computes attention with each.
#
# Ends with 77, and why on its last line, when node, npm or the packages cannot be had.
set -u
cd "$(dirname "$0")/../../.." || exit 1
suite=openapi-clients
. tests/support/checks.sh
attnd=$1
document=$(realpath "$(dirname "$attnd")")/server/openapi.json
here=tests/others/generators
made=build/generators
verbose=1

need_node $here
node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || skip_suite "the generators want Node 20, this is $(node --version)"
rm -rf $made
mkdir -p $made
cp $here/*.ts $here/tsconfig.json $made
ln -s "$PWD/$here/node_modules" $made/node_modules
tools=$made/node_modules/.bin

# The name of the generator is that of its folder and of the program that uses it.
generate() {
    to=$made/generated/$1
    case $1 in
    hey_api) $tools/openapi-ts -i "$document" -o "$to" -c @hey-api/client-fetch ;;
    # Without the option, a member of a request that has a default must be given.
    openapi_fetch) $tools/openapi-typescript "$document" --default-non-nullable false -o "$to/schema.ts" ;;
    orval_fetch) DOCUMENT=$document TARGET=$PWD/$to/client.ts SERVER=http://127.0.0.1:$port $tools/orval --config $here/orval.config.cjs ;;
    orval) $tools/orval --input "$document" --output "$to/client.ts" ;;
    codegen) node $made/node_modules/openapi-typescript-codegen/bin/index.js --input "$document" --output "$to" ;;
    esac
}

compile() {
    printf '{"extends": "../tsconfig.json", "files": ["../%s.ts"]}' "$1" >"$made/generated/$1.json"
    $tools/tsc -p "$made/generated/$1.json"
}

"$attnd" --listen 127.0.0.1:0 2>"$work/server" &
server=$!
clean_up() { kill $server; }
port=
while [ -z "$port" ] && kill -0 $server; do
    sleep 0.1
    port=$(sed -n 's/.*127\.0\.0\.1:\([0-9]*\).*/\1/p' "$work/server" | head -n 1)
done

for name in hey_api openapi_fetch orval orval_fetch codegen; do
    check "$name generates" generate $name
    check "$name compiles" compile $name
    check "$name computes" node $made/compiled/$name.js "http://127.0.0.1:$port"
done
conclude
