# exported_symbols.awk: from the public headers to the linker's version script of libattn.so.
#
# Every attn_ name that is followed by a parenthesis at the outermost level is a function; comments and static inline
# functions, which no library has, do not count.
function without_comments(line,    code, at)
{
    code = ""
    while (line != "") {
        at = index(line, in_comment ? "*/" : "/*")
        if (!in_comment)
            code = code (at ? substr(line, 1, at - 1) : line)
        if (!at)
            break
        line = substr(line, at + 2)
        in_comment = !in_comment
    }
    return code
}
BEGIN {
    print "{\n  global:"
}
{
    line = without_comments($0)
    if (line ~ /^#/ || line ~ /^typedef/ || line ~ /^static / || line ~ /^ /)
        next
    if (match(line, /attn_[a-z0-9_]+\(/)) {
        name = substr(line, RSTART, RLENGTH - 1)
        if (!(name in seen))
            print "    " name ";"
        seen[name] = 1
    }
}
END {
    print "  local: *;\n};"
}
