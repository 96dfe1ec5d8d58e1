/*
 * cpus.c: how many processors this process may use: the scheduler's set, narrowed by the quotas of control groups.
 */
#include "cpus.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 512 };

static size_t cpus_of_scheduler(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    const int count = CPU_COUNT(&set);
    return count > 0 ? (size_t)count : 1;
}

/* The first line of a small file; false when there is none. */
static bool read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    const bool is_read = fgets(line, size, file) != NULL;
    fclose(file);
    return is_read;
}

static size_t cpus_of_quota(long long quota_us, long long period_us, size_t most)
{
    if (quota_us <= 0 || period_us <= 0)
        return most;
    const long long cpus = (quota_us - 1) / period_us + 1;
    return (unsigned long long)cpus < most ? (size_t)cpus : most;
}

/* "cpu.max" holds "max 100000" or quota and period. */
static size_t limit_by_v2(const char *folder, size_t most)
{
    char path[PATH_SIZE + 64], line[64];
    long long quota_us = 0, period_us = 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    if (!read_line(path, line, sizeof line) || sscanf(line, "%lld %lld", &quota_us, &period_us) != 2)
        return most;
    return cpus_of_quota(quota_us, period_us, most);
}

static size_t limit_by_v1(const char *folder, size_t most)
{
    char path[PATH_SIZE + 64], line[64];
    long long quota_us = 0, period_us = 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, line, sizeof line) || sscanf(line, "%lld", &quota_us) != 1)
        return most;
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", folder);
    if (!read_line(path, line, sizeof line) || sscanf(line, "%lld", &period_us) != 1)
        return most;
    return cpus_of_quota(quota_us, period_us, most);
}

/* A group and all groups around it, up to the root, which is the folder "". */
static size_t limit_by_groups(char *folder, size_t most, size_t (*limit)(const char *folder, size_t most))
{
    for (;;) {
        most = limit(folder, most);
        char *slash = strrchr(folder, '/');
        if (slash == NULL)
            return most;
        *slash = '\0';
    }
}

/* Whether the comma-separated controllers of a line of /proc/self/cgroup name "cpu". */
static bool names_cpu(const char *controllers, size_t length)
{
    char list[PATH_SIZE];
    snprintf(list, sizeof list, ",%.*s,", (int)length, controllers);
    return strstr(list, ",cpu,") != NULL;
}

/* A line is "number:controllers:/folder"; version 2 has no controllers. */
static size_t limit_by_line(char *line, size_t most)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *folder = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (folder == NULL)
        return most;
    const size_t length = (size_t)(folder - controllers - 1);
    if (length == 0)
        return limit_by_groups(folder + 1, most, limit_by_v2);
    return names_cpu(controllers + 1, length) ? limit_by_groups(folder + 1, most, limit_by_v1) : most;
}

size_t cpus_available(void)
{
    size_t cpus = cpus_of_scheduler();
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return cpus;
    char line[PATH_SIZE];
    while (fgets(line, sizeof line, file) != NULL)
        cpus = limit_by_line(line, cpus);
    fclose(file);
    return cpus;
}
