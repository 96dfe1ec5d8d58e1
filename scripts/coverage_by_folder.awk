# coverage_by_folder.awk: lines and branches that lcov saw executed, per folder; root (a variable) is cut off the paths.
# Tests do not count. A line that several objects hold is executed when one of them executed it, and so is a branch; one
# of a line that was never reached counts as not taken. Lines that nothing executed go into the file uncovered.
function percent(part, whole) { return whole > 0 ? 100 * part / whole : 100 }

function tell(name, lines, executed, branches, taken) {
    return sprintf("coverage: %-20s %5d of %5d lines, %5.1f %%   %5d of %5d branches, %5.1f %%", name, executed, lines,
                   percent(executed, lines), taken, branches, percent(taken, branches))
}

function folder_of(key) {
    sub(/\/[^\/]*$/, "", key)
    return key
}

/^SF:/ {
    file = substr($0, 4)
    if (index(file, root) == 1)
        file = substr(file, length(root) + 1)
}
/^DA:/ && file !~ /^tests\// {
    split(substr($0, 4), parts, ",")
    line_hits[file ":" parts[1]] += parts[2]
}
/^BRDA:/ && file !~ /^tests\// {
    split(substr($0, 6), parts, ",")
    branch_hits[file ":" parts[1] ":" parts[2] ":" parts[3]] += parts[4] == "-" ? 0 : parts[4]
}
END {
    for (key in line_hits) {
        folder = folder_of(key)
        lines[folder]++
        executed[folder] += line_hits[key] > 0
        all_lines++
        all_executed += line_hits[key] > 0
        if (line_hits[key] == 0 && uncovered != "")
            print key | "sort -t: -k1,1 -k2,2n > " uncovered
    }
    for (key in branch_hits) {
        folder = folder_of(key)
        branches[folder]++
        taken[folder] += branch_hits[key] > 0
        all_branches++
        all_taken += branch_hits[key] > 0
    }
    for (folder in lines)
        print tell(folder, lines[folder], executed[folder], branches[folder], taken[folder]) | "sort"
    close("sort")
    print tell("in all", all_lines, all_executed, all_branches, all_taken)
}
