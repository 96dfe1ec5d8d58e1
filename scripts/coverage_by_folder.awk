# coverage_by_folder.awk: sums lcov's lines per folder; root (a variable) is cut off the paths. Tests do not count.
/^SF:/ {
    folder = substr($0, 4)
    if (index(folder, root) == 1)
        folder = substr(folder, length(root) + 1)
    sub(/\/[^\/]*$/, "", folder)
}
/^LF:/ && folder !~ /^tests/ {
    lines[folder] += substr($0, 4)
    all += substr($0, 4)
}
/^LH:/ && folder !~ /^tests/ {
    hit[folder] += substr($0, 4)
    all_hit += substr($0, 4)
}
END {
    for (folder in lines)
        printf "coverage: %-20s %5d of %5d lines, %5.1f %%\n", folder, hit[folder], lines[folder],
               100 * hit[folder] / lines[folder] | "sort"
    close("sort")
    if (all > 0)
        printf "coverage: %-20s %5d of %5d lines, %5.1f %%\n", "in all", all_hit, all, 100 * all_hit / all
}
