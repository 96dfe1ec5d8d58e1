/* memory.c: the machine's memory, narrowed by the limit of a container. */
#include "memory.h"

#include <inttypes.h>
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
