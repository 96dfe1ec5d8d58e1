# settings.awk -v FORM=man|words: the settings in the output of `attnd --help`, for the manual page or for completion.
#
# A setting is a line "  --name, VARIABLE (default VALUE)" and the deeper lines after it; so is "  --help".

/^  --/ {
    close_setting()
    flag = $1
    sub(/,$/, "", flag)
    rest = $0
    sub(/^ *--[a-z-]*,? ?/, "", rest)
    if (FORM == "words") {
        printf "%s%s", separator, flag
        separator = " "
        next
    }
    gsub(/\\/, "\\e", flag); gsub(/-/, "\\-", flag); gsub(/\\/, "\\e", rest); gsub(/-/, "\\-", rest)
    if (rest ~ /^ATTND_/) {
        variable = rest
        sub(/ .*/, "", variable)
        sub(/^[A-Z_]* */, "", rest)
        printf ".TP\n.BR %s \" (\" %s \")\"\n", flag, variable
        opened = rest
    } else
        printf ".TP\n.B %s\n", flag
    next
}

FORM == "man" && /^      / && flag != "" {
    text = $0
    sub(/^ */, "", text)
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    if (text ~ /^['.]/)
        text = "\\&" text
    print text
}

function close_setting() {
    if (opened != "") {
        print ".br"
        print opened
    }
    opened = ""
}

END {
    close_setting()
    if (FORM == "words")
        print ""
}
