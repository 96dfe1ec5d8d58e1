#!/bin/sh
# bundle_library.sh SOURCE CLIENT TARGET: makes the modules that pages of others import, with their types.
#
#   TARGET/attention.js      SOURCE/modules/attention.js and all it imports, with SOURCE/maps/style.css in it
#   TARGET/client.js         CLIENT/index.js
#   TARGET/….d.ts            their types
set -eu
source=$1 client=$2 target=$3
mkdir -p "$target"

if grep -q '[`$\]' "$source/maps/style.css"; then
    echo "bundle_library.sh: the style would end its own string" >&2
    exit 1
fi
# bundle SOURCE TARGET
bundle() {
    esbuild "$1" --bundle --format=esm --charset=utf8 --target=es2022 --minify-whitespace --log-level=warning --outfile="$2"
}

style=$(sed 's/^ *//; /^\/\*.*\*\/$/d' "$source/maps/style.css" | tr '\n' ' ')
bundle "$source/modules/attention.js" "$target/modules.js"
bundle "$client/index.js" "$target/client.js"
awk -v style="$style" '
    { at = index($0, "MAPS_STYLE=\"\"") }
    at { print substr($0, 1, at - 1) "MAPS_STYLE=`" style "`" substr($0, at + 13); found = 1; next }
    { print }
    END { exit !found }' "$target/modules.js" > "$target/attention.js.new"
cp "$source/modules/attention.d.ts" "$target/attention.d.ts"
cp "$client/index.d.ts" "$target/client.d.ts"
rm "$target/modules.js"
mv "$target/attention.js.new" "$target/attention.js"
