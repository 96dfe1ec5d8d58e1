#!/bin/sh
# pack_files.sh SOURCE CLIENT TARGET: the files that are fetched from /web/, compressed: SOURCE/FOLDER/NAME.json, and
# TARGET/parts/NAME.json of bundle_page.sh, compact; and the modules for pages of others, of bundle_library.sh.
#
#   files/FOLDER/NAME, files/FOLDER/NAME.gz    the file
#   the same with .tag behind                  their entity tags, in quotes
#   files.inc                                  a line X(FOLDER_NAME, "FOLDER", "NAME", MEDIA) for each
set -eu
source=$1 client=$2 target=$3

tag_of() {
    printf '"%s"' "$(sha256sum "$1" | cut -c 1-32)"
}

# pack NAME MEDIA: of the file files/NAME.
pack() {
    file=$target/files/$1
    gzip -9nc "$file" > "$file.gz"
    tag_of "$file" > "$file.tag"
    tag_of "$file.gz" > "$file.gz.tag"
    printf 'X(%s, "%s", "%s", %s)\n' "$(printf '%s' "$1" | tr /. __)" "${1%/*}" "${1#*/}" "$2"
}

"${0%/*}/bundle_library.sh" "$source" "$client" "$target/files/modules"
{
    for module in attention client; do
        pack "modules/$module.js" MEDIA_SCRIPT
        pack "modules/$module.d.ts" MEDIA_TYPESCRIPT
    done
    for path in "$source"/*/*.json "$target"/parts/*.json; do
        name=${path%/*}
        name=${name##*/}/${path##*/}
        mkdir -p "$target/files/${name%/*}"
        sed 's/^ *//' "$path" > "$target/files/$name"
        pack "$name" MEDIA_JSON
    done
} > "$target/files.inc.new"
mv "$target/files.inc.new" "$target/files.inc"
