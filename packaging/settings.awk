# settings.awk -v FORM=man|words|values: the settings in the output of `attnd --help`: for the manual page, and for completion
# their names, and the values of those that take words.
#
# A setting is a line "  --name, VARIABLE (default VALUE)" and the deeper lines after it; so is "  --help". Words stand
# first: "debug, info or off"; a setting that is off by default can be on. "Limits:" begins a group.

function escaped(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text ~ /^['.]/ ? "\\&" text : text
}

function offer(words) {
    print "    " flag ") COMPREPLY=($(compgen -W \"" words "\" -- \"$word\")) ;;"
}

/^  --/ {
    flag = $1
    sub(/,$/, "", flag)
    rest = $0
    sub(/^ *--[a-z0-9-]*,? ?/, "", rest)
    is_first = 1
    if (FORM == "words") {
        printf "%s%s", separator, flag
        separator = " "
    } else if (FORM == "values") {
        if (rest ~ /\(default off\)$/)
            offer("on off")
    } else if (match(rest, /^ATTND_[A-Z0-9_]*/)) {
        variable = substr(rest, 1, RLENGTH)
        standard = substr(rest, RLENGTH + 2)
        printf ".TP\n.BR %s \", %s\"\n", escaped(flag), variable escaped(standard == "" ? "" : " " standard)
    } else
        printf ".TP\n.B %s\n", escaped(flag)
    next
}

# The title of a group.
/^[A-Z].*:$/ {
    if (FORM == "man")
        print ".SS " substr($0, 1, length($0) - 1)
    flag = ""
    next
}

/^      / && flag != "" {
    sub(/^ */, "")
    if (FORM == "values" && is_first && match($0, /^[a-z-]+(, [a-z-]+)* or [a-z-]+/)) {
        words = substr($0, 1, RLENGTH)
        gsub(/,| or/, "", words)
        offer(words)
    }
    is_first = 0
    if (FORM != "man")
        next
    # The range stands on a line of its own.
    if (/^(auto, or )?(a whole number|bytes|a number) from /)
        print ".br"
    print escaped($0)
}

END {
    if (FORM == "words")
        print ""
}
