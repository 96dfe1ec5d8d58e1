#!/bin/sh
# bundle_page.sh SOURCE TARGET: makes one HTML file of the modules, style and frame in SOURCE, and what goes with it.
#
#   page.html, page.html.gz           the page
#   page.tag, page.html.gz.tag        their entity tags, in quotes
#   page.policy                       the Content-Security-Policy: hashes instead of 'unsafe-inline'
#   parts/NAME.json                   a script that the page fetches when it is needed, as a text in JSON; of a module that
#                                     is named FOLDER/NAME_worker.js, one that stands alone, for a worker
#
# A page with texts has those of one language in it, texts/en.json.
#
# The page says the policy itself too, so that it holds when a copy is opened from disk.
set -eu
source=$1 target=$2
mkdir -p "$target"

# The SHA-256 of a file in base64, as a policy wants it: hexadecimal to octal escapes to bytes.
hash_of() {
    bytes=$(sha256sum "$1" | awk '{
        for (i = 1; i <= 64; i += 2)
            printf "\\%03o", 16 * (index("0123456789abcdef", substr($1, i, 1)) - 1) + \
                index("0123456789abcdef", substr($1, i + 1, 1)) - 1 }')
    # The escapes are the format.
    # shellcheck disable=SC2059
    printf "$bytes" | base64
}

tag_of() {
    printf '"%s"' "$(sha256sum "$1" | cut -c 1-32)"
}

rm -rf "$target/parts"
mkdir "$target/parts"
"${0%/*}/bundle_modules.sh" "$source" "$target"
find "$source" -mindepth 2 -name '*.css' | LC_ALL=C sort | xargs cat "$source/style.css" |
    esbuild --loader=css --minify-whitespace --log-level=warning > "$target/style.css"
sed 's/^ *//' "$source/texts/en.json" > "$target/texts.json" 2> /dev/null || :
if grep -qi '</script\|<!--' "$target/script.js" "$target/texts.json" "$target/parts" -r || grep -qi '</style' "$target/style.css"; then
    echo "bundle_page.sh: a module, a text or the style would end its own element" >&2
    exit 1
fi

policy="default-src 'none'; script-src 'sha256-$(hash_of "$target/script.js")'"
for part in "$target"/parts/*.js; do
    [ -f "$part" ] || continue
    [ "${part%_worker.js}" != "$part" ] || policy="$policy 'sha256-$(hash_of "$part")'"
    awk 'BEGIN { printf "\"" } { gsub(/[\\"]/, "\\\\&"); printf "%s\\n", $0 } END { print "\"" }' "$part" > "${part%.js}.json"
done
policy="$policy; style-src 'sha256-$(hash_of "$target/style.css")'"
# A worker is made of a text of the script itself, or of a part.
grep -rq 'new Worker(' "$target/script.js" "$target/parts" && policy="$policy; worker-src blob:"
policy="$policy; connect-src 'self'; img-src data: blob:; base-uri 'none'; form-action 'none'"
printf "%s; frame-ancestors 'none'" "$policy" > "$target/page.policy"

awk -v policy="$policy" -v style="$target/style.css" -v script="$target/script.js" \
    -v texts="$target/texts.json" '
    function put(file,    line) {
        while ((getline line < file) > 0)
            print line
    }
    /<!-- style -->/ { printf "<style>"; put(style); print "</style>"; next }
    /<!-- script -->/ { printf "<script>"; put(script); print "</script>"; next }
    /<!-- texts -->/ { printf "<script type=\"application/json\" id=\"texts\" lang=\"en\">"; put(texts); print "</script>"; next }
    { gsub(/<!-- policy -->/, policy); print }' "$source/index.html" > "$target/page.html"
gzip -9nc "$target/page.html" > "$target/page.html.gz.new"
tag_of "$target/page.html" > "$target/page.tag"
tag_of "$target/page.html.gz.new" > "$target/page.html.gz.tag"
mv "$target/page.html.gz.new" "$target/page.html.gz"
