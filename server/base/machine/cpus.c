/*
 * cpus.c: counts the processors that this process may use: the scheduler's set, limited by the quotas of control
 * groups.
 */
#include "base/machine/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "base/machine/cgroup.h"

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
    return cgroup_read(folder, "cpu.max", line, sizeof line) && sscanf(line, "%lld %lld", quota_us, period_us) == 2;
}

static bool read_v1(const char *folder, long long *quota_us, long long *period_us)
{
    char quota[64], period[64];
    return cgroup_read(folder, "cpu.cfs_quota_us", quota, sizeof quota) && sscanf(quota, "%lld", quota_us) == 1 &&
           cgroup_read(folder, "cpu.cfs_period_us", period, sizeof period) && sscanf(period, "%lld", period_us) == 1;
}

/* Lowers the number of processors to the quota of a group. context points to that number, a size_t. */
static void narrow(void *context, const char *folder, bool is_v2)
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

size_t cpus_available(void)
{
    size_t cpus = cpus_of_scheduler();
    cgroup_walk("cpu", narrow, &cpus);
    return cpus;
}
