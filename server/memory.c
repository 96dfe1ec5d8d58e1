/* memory.c: the machine's memory, narrowed by the limit of a container, and the C library's ways with free blocks. */
#include "memory.h"

#include <inttypes.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

/* A limit that is not set reads "max" (version 2) or a number beyond any memory (version 1). */
static uint64_t read_limit(const char *path, uint64_t otherwise)
{
    uint64_t limit = otherwise;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return otherwise;
    if (fscanf(file, "%" SCNu64, &limit) != 1 || limit == 0 || limit > otherwise)
        limit = otherwise;
    fclose(file);
    return limit;
}

uint64_t memory_available_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : (uint64_t)1 << 30;
    bytes = read_limit("/sys/fs/cgroup/memory.max", bytes);
    return read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes", bytes);
}

void memory_keep_small_blocks(void)
{
#if defined(__GLIBC__)
    /* From here on an arena asks for huge pages (core), which are worth a call to the system each time. */
    enum { LARGE_BYTES = 2 << 20, SPARE_BYTES = 4 << 20 };
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
