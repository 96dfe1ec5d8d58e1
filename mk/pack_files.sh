#!/bin/sh
# pack_files.sh SOURCE TARGET: the files that pages fetch from /web/: SOURCE/FOLDER/NAME.json, compact and compressed.
#
#   files/FOLDER/NAME.json, files/FOLDER/NAME.json.gz    the file
#   the same with .tag behind                            their entity tags, in quotes
#   files.inc                                            a line X(FOLDER_NAME, "FOLDER/NAME.json") for each
set -eu
source=$1 target=$2

tag_of() {
    printf '"%s"' "$(sha256sum "$1" | cut -c 1-32)"
}

for path in "$source"/*/*.json; do
    name=${path#"$source"/}
    file=$target/files/$name
    mkdir -p "${file%/*}"
    sed 's/^ *//' "$path" > "$file"
    gzip -9nc "$file" > "$file.gz"
    tag_of "$file" > "$file.tag"
    tag_of "$file.gz" > "$file.gz.tag"
    printf 'X(%s, "%s")\n' "$(printf '%s' "${name%.json}" | tr / _)" "$name"
done > "$target/files.inc.new"
mv "$target/files.inc.new" "$target/files.inc"
