# settings.awk -v FORM=man|words|values|zsh|fish: the settings in the output of `attnd --help`: for the manual page, and for
# completion their names, the values of those that take words, and the lines of zsh and fish.
#
# A setting is a line "  --name, VARIABLE (default VALUE)" and the deeper lines after it; so is "  --help". Words stand
# first: "debug, info or off"; a setting that is off by default can be on. "Limits:" begins a group.

function escaped(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text ~ /^['.]/ ? "\\&" text : text
}

# The text within quotes of a shell, up to its first semicolon.
function brief(text) {
    sub(/;.*/, "", text)
    gsub(/'/, "’", text)
    if (FORM == "zsh")
        gsub(/\[|\]|:/, "\\\\&", text)
    return text
}

# Writes the line of the setting before, when all of it has been read. What a value is: words, a file, a folder, or free.
function conclude(    kind, value) {
    if (flag == "")
        return
    kind = flag ~ /^--(layers|models)$/ ? "folder" : flag ~ /^--(fonts|keys|log-file|tls-.*)$/ ? "file" : "free"
    if (FORM == "values" && words != "")
        print "    " flag ") COMPREPLY=($(compgen -W \"" words "\" -- \"$word\")) ;;"
    if (FORM == "zsh") {
        value = words != "" ? ":value:(" words ")" : kind == "folder" ? ":folder:_files -/" : kind == "file" ? ":file:_files" : ":value: "
        print "    '" (flag == "--model" ? "*" : "") flag "[" brief(help) "]" (variable == "" ? "" : value) "'"
    }
    if (FORM == "fish") {
        value = words != "" ? " -x -a '" words "'" : kind == "folder" ? " -x -a '(__fish_complete_directories)'" : kind == "file" ? " -r -F" : " -x"
        print "complete -c attnd -l " substr(flag, 3) " -d '" brief(help) "'" (variable == "" ? "" : value)
    }
    flag = words = help = variable = ""
}

/^  --/ {
    conclude()
    flag = $1
    sub(/,$/, "", flag)
    rest = $0
    sub(/^ *--[a-z0-9-]*,? ?/, "", rest)
    variable = match(rest, /^ATTND_[A-Z0-9_]*/) ? substr(rest, 1, RLENGTH) : ""
    if (rest ~ /\(default off\)$/)
        words = "on off"
    if (FORM == "words") {
        printf "%s%s", separator, flag
        separator = " "
    } else if (FORM == "man" && variable != "") {
        standard = substr(rest, length(variable) + 2)
        printf ".TP\n.BR %s \", %s\"\n", escaped(flag), variable escaped(standard == "" ? "" : " " standard)
    } else if (FORM == "man")
        printf ".TP\n.B %s\n", escaped(flag)
    next
}

# The title of a group.
/^[A-Z].*:$/ {
    conclude()
    if (FORM == "man")
        print ".SS " substr($0, 1, length($0) - 1)
    next
}

/^      / && flag != "" {
    sub(/^ */, "")
    if (help == "" && match($0, /^[a-z-]+(, [a-z-]+)* or [a-z-]+/)) {
        words = substr($0, 1, RLENGTH)
        gsub(/,| or/, "", words)
    }
    # The range stands on a line of its own.
    is_range = /^(auto, or )?(a whole number|bytes|a number) from /
    help = help (help == "" ? "" : is_range ? "; " : " ") $0
    if (FORM != "man")
        next
    if (is_range)
        print ".br"
    print escaped($0)
}

END {
    conclude()
    if (FORM == "words")
        print ""
}
