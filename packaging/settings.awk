# settings.awk -v FORM=man|words: the settings in the output of `attnd --help`, for the manual page or for completion.
#
# A setting is a line "  --name, VARIABLE (default VALUE)" and the deeper lines after it; so is "  --help".

function escaped(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text ~ /^['.]/ ? "\\&" text : text
}

/^  --/ {
    flag = $1
    sub(/,$/, "", flag)
    rest = $0
    sub(/^ *--[a-z0-9-]*,? ?/, "", rest)
    if (FORM == "words") {
        printf "%s%s", separator, flag
        separator = " "
    } else if (match(rest, /^ATTND_[A-Z0-9_]*/)) {
        variable = substr(rest, 1, RLENGTH)
        standard = substr(rest, RLENGTH + 2)
        printf ".TP\n.BR %s \", %s\"\n", escaped(flag), variable escaped(standard == "" ? "" : " " standard)
    } else
        printf ".TP\n.B %s\n", escaped(flag)
    next
}

FORM == "man" && /^      / && flag != "" {
    sub(/^ */, "")
    # The range stands on a line of its own.
    if (/^(auto, or )?(a whole number|bytes|a number) from /)
        print ".br"
    print escaped($0)
}

END {
    if (FORM == "words")
        print ""
}
