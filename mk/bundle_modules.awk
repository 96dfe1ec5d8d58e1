# bundle_modules.awk: a module and all it imports, as one module: awk -v main=main.js -v folder=server/web -f …
#
# With -v exports=1 it exports what the module main exports.
#
# Each module comes after those it imports. All of them then share one scope: what they declare at top level, at the
# beginning of a line, has to differ in name. Imports are of "./name.js", "./folder/name.js", "../name.js" or
# "../folder/name.js", by name and without "as". Modules stand in the folder or one folder below it. Lines that
# are only comment stay in the source, and so does the space that lines begin with: no text may run over lines.
#
# import("./folder/name.js") begins a part: with -v parts=FOLDER, it and what it alone imports go to FOLDER/name.js, a script
# for the same scope. In its place stands an object of what it exports, which is there once the part is.
function fail(message) {
    print "bundle_modules.awk: " message > "/dev/stderr"
    failed = 1
    exit 1
}

# The path of the imported module from the folder, for an import in this file.
function imported_file(line, file,    from) {
    if (!match(line, /from "(\.|\.\.)\/([a-z_]+\/)?[a-z_]+\.js";$/))
        fail(file " does not import \"./name.js\" or \"../folder/name.js\": " line)
    from = substr(line, RSTART + 6, RLENGTH - 8)
    if (sub(/^\.\.\//, "", from))
        return from
    sub(/^\.\//, "", from)
    return (file ~ /\// ? substr(file, 1, index(file, "/")) : "") from
}

# What a module exports, as an object.
function exports_of(file,    path, line, names) {
    path = folder "/" file
    while ((getline line < path) > 0)
        if (line ~ /^export (async function|function|const|class) /) {
            sub(/^export (async function|function|const|class) /, "", line)
            sub(/[^A-Za-z0-9_$].*/, "", line)
            names = names (names == "" ? "" : ", ") line
        }
    close(path)
    return "({ " names " })"
}

function begin_part(line, file,    halves) {
    split(line, halves, /import\("|"\)/)
    part[++part_count] = imported_file("from \"" halves[2] "\";", file)
    return halves[1] exports_of(part[part_count]) halves[3]
}

# A statement of import may run over several lines; it ends where it says from what.
function read_module(file,    path, line, statement, in_comment) {
    path = folder "/" file
    count[file] = imports[file] = 0
    while ((status = (getline line < path)) > 0) {
        if (statement == "" && line ~ /^import /)
            statement = " "
        if (statement != "") {
            statement = statement line
            if (line ~ /;$/) {
                import_of[file, ++imports[file]] = imported_file(statement, file)
                statement = ""
            }
            continue
        }
        if (line ~ /^[ \t]*\/\*\*/)
            in_comment = 1
        if (!in_comment && line !~ /^[ \t]*\/\// && line != "") {
            if (!exports || file != main)
                sub(/^export /, "", line)
            if (line ~ /=> import\("/)
                line = begin_part(line, file)
            text[file, ++count[file]] = line
        }
        if (line ~ /\*\/$/)
            in_comment = 0
    }
    if (status < 0)
        fail("cannot read " path)
    close(path)
}

# "const a, b" is one declaration of a alone to this reading: top-level ones declare one name each.
function declare(line, file,    name) {
    sub(/^export /, "", line)
    if (line !~ /^(async function|function|const|let|class) [A-Za-z_$]/)
        return
    name = line
    sub(/^(async function|function|const|let|class) /, "", name)
    sub(/[^A-Za-z0-9_$].*/, "", name)
    if (name in home)
        fail("both " home[name] " and " file " declare " name)
    home[name] = file
}

function visit(file, target,    i) {
    if (file in seen)
        return
    seen[file] = 1
    read_module(file)
    for (i = 1; i <= imports[file]; i++)
        visit(import_of[file, i], target)
    for (i = 1; i <= count[file]; i++) {
        declare(text[file, i], file)
        sub(/^[ \t]+/, "", text[file, i])
        print text[file, i] > target
    }
}

BEGIN {
    print "\"use strict\";"
    visit(main, "/dev/stdout")
    for (n = 1; n <= part_count; n++) {
        target = parts "/" substr(part[n], index(part[n], "/") + 1)
        print "\"use strict\";" > target
        visit(part[n], target)
    }
}
END { exit failed }
