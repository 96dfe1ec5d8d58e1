#!/bin/sh
# bundle_library.sh SOURCE TARGET: makes the module that pages of others import of those in SOURCE, with their types.
#
#   TARGET/attention.js      SOURCE/modules/attention.js and all it imports, with SOURCE/maps/style.css in it
#   TARGET/attention.d.ts    its types
set -eu
source=$1 target=$2
folder=$(dirname "$0")
mkdir -p "$target"

if grep -q '[`$\]' "$source/maps/style.css"; then
    echo "bundle_library.sh: the style would end its own string" >&2
    exit 1
fi
style=$(sed 's/^ *//; /^\/\*.*\*\/$/d' "$source/maps/style.css" | tr '\n' ' ')
awk -v main=modules/attention.js -v exports=1 -v folder="$source" -f "$folder/bundle_modules.awk" /dev/null > "$target/modules.js"
awk -v style="$style" '
    $0 == "const MAPS_STYLE = \"\";" { print "const MAPS_STYLE = `" style "`;"; found = 1; next }
    { print }
    END { exit !found }' "$target/modules.js" > "$target/attention.js.new"
cp "$source/modules/attention.d.ts" "$target/attention.d.ts"
rm "$target/modules.js"
mv "$target/attention.js.new" "$target/attention.js"
