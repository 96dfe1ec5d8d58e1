# coverage_by_folder.awk: lines that lcov saw executed, per folder; root (a variable) is cut off the paths. Tests do not
# count. A line that several objects hold is executed when one of them executed it.
/^SF:/ {
    file = substr($0, 4)
    if (index(file, root) == 1)
        file = substr(file, length(root) + 1)
}
/^DA:/ && file !~ /^tests\// {
    split(substr($0, 4), parts, ",")
    line = file ":" parts[1]
    hits[line] += parts[2]
}
END {
    for (line in hits) {
        folder = line
        sub(/\/[^\/]*$/, "", folder)
        lines[folder]++
        executed[folder] += hits[line] > 0
        all++
        all_executed += hits[line] > 0
    }
    for (folder in lines)
        printf "coverage: %-20s %5d of %5d lines, %5.1f %%\n", folder, executed[folder], lines[folder],
               100 * executed[folder] / lines[folder] | "sort"
    close("sort")
    if (all > 0)
        printf "coverage: %-20s %5d of %5d lines, %5.1f %%\n", "in all", all_executed, all, 100 * all_executed / all
}
