# bundle_modules.awk: a module and all it imports, as one module: awk -v main=main.js -v folder=server/web -f …
#
# Each module comes after those it imports. All of them then share one scope: what they declare at top level, at the
# beginning of a line, has to differ in name. Imports are of "./name.js", "./folder/name.js", "../name.js" or
# "../folder/name.js", by name and without "as". Modules stand in the folder or one folder below it. Lines that
# are only comment stay in the source, and so does the space that lines begin with: no text may run over lines.
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
            sub(/^export /, "", line)
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
    if (line !~ /^(async function|function|const|let|class) [A-Za-z_$]/)
        return
    name = line
    sub(/^(async function|function|const|let|class) /, "", name)
    sub(/[^A-Za-z0-9_$].*/, "", name)
    if (name in home)
        fail("both " home[name] " and " file " declare " name)
    home[name] = file
}

function visit(file,    i) {
    if (file in seen)
        return
    seen[file] = 1
    read_module(file)
    for (i = 1; i <= imports[file]; i++)
        visit(import_of[file, i])
    for (i = 1; i <= count[file]; i++) {
        declare(text[file, i], file)
        sub(/^[ \t]+/, "", text[file, i])
        print text[file, i]
    }
}

BEGIN { visit(main) }
END { exit failed }
