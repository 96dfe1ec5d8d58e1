#!/bin/sh
# bundle_library.sh SOURCE TARGET: makes the module that pages of others import of those in SOURCE, with their types.
#
#   TARGET/attention.js      SOURCE/modules/attention.js and all it imports, with SOURCE/maps/style.css in it
#   TARGET/attention.d.ts    its types
set -eu
source=$1 target=$2
mkdir -p "$target"

if grep -q '[`$\]' "$source/maps/style.css"; then
    echo "bundle_library.sh: the style would end its own string" >&2
    exit 1
fi
style=$(sed 's/^ *//; /^\/\*.*\*\/$/d' "$source/maps/style.css" | tr '\n' ' ')
esbuild "$source/modules/attention.js" --bundle --format=esm --charset=utf8 --target=es2022 --minify-whitespace --log-level=warning \
    --outfile="$target/modules.js"
awk -v style="$style" '
    { at = index($0, "MAPS_STYLE=\"\"") }
    at { print substr($0, 1, at - 1) "MAPS_STYLE=`" style "`" substr($0, at + 13); found = 1; next }
    { print }
    END { exit !found }' "$target/modules.js" > "$target/attention.js.new"
cp "$source/modules/attention.d.ts" "$target/attention.d.ts"
rm "$target/modules.js"
mv "$target/attention.js.new" "$target/attention.js"
