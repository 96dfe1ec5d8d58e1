#!/bin/sh
# bundle_modules.sh SOURCE TARGET: the modules of the page in SOURCE as scripts, by esbuild.
#
#   TARGET/script.js       SOURCE/main.js and all it imports
#   TARGET/parts/NAME.js   SOURCE/FOLDER/NAME.js, where import("…/NAME.js") begins a part, and what it alone imports: a script
#                          that takes the other modules from MODULES of script.js, and puts itself there;
#                          SOURCE/FOLDER/NAME_worker.js, with all it imports
#
# Names stay as they are: a stack of calls can be read, and painter.js gives its worker the text of a function.
set -eu
source=$1 target=$2
main=$source/main.js

# bundle FORMAT FLAG…: the module of the standard input as a script, with all it imports. A module that is left out is
# required by its path in SOURCE.
bundle() {
    format=$1
    shift
    esbuild --bundle --format="$format" --charset=utf8 --target=es2022 --minify-whitespace --minify-syntax \
        --supported:dynamic-import=false --log-level=warning --outfile="$target/bundled.js" "$@"
    echo '"use strict";'
    sed -E "s#require\(\"[^\"]*$source/([^\"]*)\"\)#require(\"\1\")#g" "$target/bundled.js"
    rm "$target/bundled.js"
}

# import_of MODULE: a module that is this one.
import_of() {
    echo "export * from \"./$1\";"
}

# The modules that are imported when they are needed, as paths from here.
parts_of() {
    find "$source" -name '*.js' | LC_ALL=C sort | while read -r file; do
        sed -n 's/.*=> import("\([^"]*\)").*/\1/p' "$file" | while read -r path; do
            realpath --relative-to=. "${file%/*}/$path"
        done
    done
}

# --external for each path of the standard input.
leaving_out() {
    sed 's#^#--external:./#'
}

mkdir -p "$target/parts"
parts=$(parts_of)
# Words on purpose: paths have no spaces.
# shellcheck disable=SC2046,SC2086
if [ -z "$parts" ]; then
    import_of "$main" | bundle iife > "$target/script.js"
else
    import_of "$main" | bundle cjs $(echo "$parts" | leaving_out) --metafile="$target/modules.json" > /dev/null
    modules=$(grep -o "^ *\"$source/[^\"]*\": {" "$target/modules.json" | cut -d '"' -f 2)
    for part in $parts; do
        name=${part##*/}
        {
            printf 'MODULES["%s"]=((module,require)=>{' "${part#"$source"/}"
            import_of "$part" | bundle cjs $(echo "$modules" | leaving_out)
            echo 'return module.exports})({exports:{}},moduleOf);'
        } > "$target/parts/$name"
    done
    {
        grep -oh 'require("[^"]*")' $(for part in $parts; do echo "$target/parts/${part##*/}"; done) | LC_ALL=C sort -u | cut -d '"' -f 2 |
            awk -v source="$source" '{ printf "import * as module%d from \"./%s/%s\";\nMODULES[\"%s\"] = module%d;\n", NR, source, $0, $0, NR }'
        echo "import \"./$main\";"
    } > "$target/entry.js"
    {
        echo 'const MODULES={},moduleOf=name=>{if(!(name in MODULES))throw Error(name);return MODULES[name]};'
        echo '((module,require)=>{'
        bundle cjs $(echo "$parts" | leaving_out) < "$target/entry.js"
        echo '})({exports:{}},moduleOf);'
    } > "$target/script.js"
    rm "$target/entry.js" "$target/modules.json"
fi
for worker in "$source"/*/*_worker.js; do
    [ ! -f "$worker" ] || import_of "$worker" | bundle iife > "$target/parts/${worker##*/}"
done
