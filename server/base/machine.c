/* machine.c: processors and memory within the limits of control groups; the descriptors of this process. */
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- control groups, by /proc/self/cgroup ---- */

enum { PATH_SIZE = 4096 + 64, LINE_SIZE = 4096 };

/* Called with the folder of one group. is_v2 says whether its files are those of control groups version 2. */
typedef void look_function(void *context, const char *folder, bool is_v2);

/* Visits the folder of a group, and all folders around it up to the mount point of its version or controller. */
static void walk_up(const char *mount, const char *group, bool is_v2, look_function *look, void *context)
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
static void walk_line(char *line, const char *controller, look_function *look, void *context)
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

/*
 * Calls look for the group of this process and for every group around it, the innermost first. These are the groups of
 * version 2, and those of version 1 that the controller ("cpu", "memory") has. Every limit of these groups applies to
 * this process. A folder may not exist: a container that sees the paths of its host has mounted only the outermost
 * group.
 */
static void walk_groups(const char *controller, look_function *look, void *context)
{
    char line[LINE_SIZE];
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL)
        walk_line(line, controller, look, context);
    fclose(file);
}

/* Reads the first line of that file in a group's folder. False: the file cannot be read. */
static bool read_line(const char *folder, const char *name, char *line, int size)
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

/* ---- processors ---- */

/* The kernel refuses a set that is too small for the machine, so this tries larger and larger sets. */
static size_t cpus_of_scheduler(void)
{
    enum { CPUS_FIRST = 1024, CPUS_MOST = 1 << 17 };
    for (int most = CPUS_FIRST; most <= CPUS_MOST; most *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        const size_t bytes = CPU_ALLOC_SIZE((size_t)most);
        if (set == NULL)
            return 1;
        const bool is_told = sched_getaffinity(0, bytes, set) == 0;
        const bool is_too_small = !is_told && errno == EINVAL;
        const int count = is_told ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (!is_too_small)
            return count > 0 ? (size_t)count : 1;
    }
    return 1;
}

/* Reads "cpu.max", which holds "max 100000", or quota and period. */
static bool read_v2(const char *folder, long long *quota_us, long long *period_us)
{
    char line[64];
    return read_line(folder, "cpu.max", line, sizeof line) && sscanf(line, "%lld %lld", quota_us, period_us) == 2;
}

static bool read_v1(const char *folder, long long *quota_us, long long *period_us)
{
    char quota[64], period[64];
    return read_line(folder, "cpu.cfs_quota_us", quota, sizeof quota) && sscanf(quota, "%lld", quota_us) == 1 &&
           read_line(folder, "cpu.cfs_period_us", period, sizeof period) && sscanf(period, "%lld", period_us) == 1;
}

/* Lowers the number of processors to the quota of a group. context points to that number, a size_t. */
static void narrow_processors(void *context, const char *folder, bool is_v2)
{
    size_t *most = context;
    long long quota_us = 0, period_us = 0;
    const bool is_read = is_v2 ? read_v2(folder, &quota_us, &period_us) : read_v1(folder, &quota_us, &period_us);
    if (!is_read || quota_us <= 0 || period_us <= 0)
        return;
    const long long cpus = (quota_us - 1) / period_us + 1;
    if ((unsigned long long)cpus < *most)
        *most = (size_t)cpus;
}

size_t machine_processors(void)
{
    size_t cpus = cpus_of_scheduler();
    walk_groups("cpu", narrow_processors, &cpus);
    return cpus;
}

/* ---- memory ---- */

/*
 * Lowers the bytes to the limit of a group. context points to the bytes, a uint64_t. A missing limit is "max" (version
 * 2), or is larger than any memory.
 */
static void narrow_memory(void *context, const char *folder, bool is_v2)
{
    uint64_t *most = context, limit = 0;
    char line[64];
    if (read_line(folder, is_v2 ? "memory.max" : "memory.limit_in_bytes", line, sizeof line) &&
        sscanf(line, "%" SCNu64, &limit) == 1 && limit > 0 && limit < *most)
        *most = limit;
}

uint64_t machine_memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : (uint64_t)1 << 30;
    walk_groups("memory", narrow_memory, &bytes);
    return bytes;
}

/* ---- this process ---- */

uint64_t machine_open_descriptors(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return 0;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    enum { DOTS_AND_OWN = 3 }; /* ".", ".." and the folder's own descriptor */
    return count > DOTS_AND_OWN ? count - DOTS_AND_OWN : 0;
}

uint64_t machine_most_descriptors(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (uint64_t)limit.rlim_cur : 0;
}
