/* memory.c: the machine's memory, narrowed by the limits of control groups, and the C library's ways with free blocks.
 */
#include "memory.h"

#include <inttypes.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "cgroup.h"

/* context: a uint64_t, the bytes so far. A limit that is not set reads "max" (version 2) or is beyond any memory. */
static void narrow(void *context, const char *folder, bool is_v2)
{
    uint64_t *most = context, limit = 0;
    char line[64];
    if (cgroup_read(folder, is_v2 ? "memory.max" : "memory.limit_in_bytes", line, sizeof line) &&
        sscanf(line, "%" SCNu64, &limit) == 1 && limit > 0 && limit < *most)
        *most = limit;
}

uint64_t memory_available_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : (uint64_t)1 << 30;
    cgroup_walk("memory", narrow, &bytes);
    return bytes;
}

void memory_keep_small_blocks(void)
{
#if defined(__GLIBC__)
    /* From here on an arena asks for huge pages (core), which are worth a call to the system each time. */
    enum { LARGE_BYTES = 128 << 10, SPARE_BYTES = 4 << 20 };
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_TRIM_THRESHOLD, SPARE_BYTES);
#endif
}

void memory_return_free_blocks(void)
{
#if defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}
