/* cgroup.c: walks through the control groups of this process, by /proc/self/cgroup. */
#include "base/machine/cgroup.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 + 64, LINE_SIZE = 4096 };

/* Visits the folder of a group, and all folders around it up to the mount point of its version or controller. */
static void walk_up(const char *mount, const char *group, bool is_v2, cgroup_look *look, void *context)
{
    char folder[PATH_SIZE];
    snprintf(folder, sizeof folder, "%s%s", mount, strcmp(group, "/") == 0 ? "" : group);
    const size_t least = strlen(mount);
    while (strlen(folder) >= least) {
        look(context, folder, is_v2);
        *strrchr(folder, '/') = '\0';
    }
}

/* Whether the comma-separated controllers of a line of /proc/self/cgroup include this one. */
static bool names(const char *controllers, size_t length, const char *controller)
{
    const size_t wanted = strlen(controller);
    for (const char *at = controllers, *end = controllers + length; at < end;) {
        const size_t part = strcspn(at, ",:");
        if (part == wanted && memcmp(at, controller, part) == 0)
            return true;
        at += part + 1;
    }
    return false;
}

/* A line is "number:controllers:/group"; version 2 has no controllers. */
static void walk_line(char *line, const char *controller, cgroup_look *look, void *context)
{
    static const char root[] = "/sys/fs/cgroup";
    char mount[sizeof root + 32];
    line[strcspn(line, "\n")] = '\0';
    const char *controllers = strchr(line, ':');
    const char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL || group[1] != '/')
        return;
    const size_t length = (size_t)(group - controllers - 1);
    if (length == 0) {
        walk_up(root, group + 1, true, look, context);
    } else if (names(controllers + 1, length, controller)) {
        snprintf(mount, sizeof mount, "%s/%s", root, controller);
        walk_up(mount, group + 1, false, look, context);
    }
}

void cgroup_walk(const char *controller, cgroup_look *look, void *context)
{
    char line[LINE_SIZE];
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL)
        walk_line(line, controller, look, context);
    fclose(file);
}

bool cgroup_read(const char *folder, const char *name, char *line, int size)
{
    char path[PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    const bool is_read = fgets(line, size, file) != NULL;
    fclose(file);
    return is_read;
}
