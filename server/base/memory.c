/* memory.c: divides the memory of this process, and returns the free blocks of the C library. */
#include "base/memory.h"

#include <inttypes.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/process.h"

uint64_t memory_auto_bytes(void)
{
    const uint64_t bytes = machine_memory_bytes();
    return bytes - bytes / 16;
}

/* ---- the division ------------------------------------------------------------------------------------------------ */

/*
 * Measured: an idle process has 10 MiB of mapped files and 5 MiB of its own. A compute thread keeps 1.1 MiB of the BLAS
 * and of its stack once it has multiplied large matrices.
 */
enum { PROCESS_BYTES = 22 << 20, IO_THREAD_BYTES = 1 << 20, COMPUTE_THREAD_BYTES = 2 << 20 };
/*
 * Each share is 1/n of the memory beside the process itself. The heap's share is for free blocks of the C library. They
 * are returned when they have grown by half of it, and may grow further until then.
 */
enum { HEAP_SHARE = 16, CONNECTIONS_SHARE = 8, LAYERS_SHARE = 8, CACHES_SHARE = 8, PREPARED_SHARE = 16 };
enum { MODELS_SHARE = 4, DEMO_BYTES = 2 << 20, OWN_MODELS_BYTES = 4 << 20 };
enum { HEAP_BYTES_MAX = 256 << 20, REQUESTS_BYTES_MIN = 8 << 20 };

uint64_t memory_compute_threads(uint64_t total)
{
    const uint64_t threads = total / 4 / COMPUTE_THREAD_BYTES;
    return threads > 0 ? threads : 1;
}

uint64_t memory_places(uint64_t connections)
{
    return connections + connections / 8 + 16;
}

uint64_t memory_connections(uint64_t asked, uint64_t places)
{
    uint64_t connections = places > memory_places(1) ? (places - memory_places(0)) * 8 / 9 : 1;
    while (memory_places(connections + 1) <= places)
        connections++;
    return asked < connections ? asked : connections;
}

static uint64_t share_of(uint64_t given, uint64_t part)
{
    return given == MEMORY_AUTO ? part : given;
}

static bool refuse(const struct memory_division *d, char *message, size_t message_size)
{
    enum { MIB = 1 << 20 };
    snprintf(message, message_size,
             "--memory: %" PRIu64 " MiB are too few: the process takes %" PRIu64 " MiB with %" PRIu64
             " threads, free blocks %" PRIu64 " MiB, connections %" PRIu64 " MiB, layers %" PRIu64
             " MiB, caches %" PRIu64 " MiB, prepared weights %" PRIu64 " MiB, models %" PRIu64
             " MiB; at least %d MiB must be left for requests",
             d->total / MIB, d->process_bytes / MIB, d->io_threads + d->compute_threads, d->heap_bytes / MIB,
             d->connections_bytes / MIB, d->layers_bytes / MIB, d->caches_bytes / MIB, d->prepared_bytes / MIB,
             d->models_bytes / MIB, REQUESTS_BYTES_MIN / MIB);
    return false;
}

/* Returns rest - part, and at least 0. */
static uint64_t less(uint64_t rest, uint64_t part)
{
    return part < rest ? rest - part : 0;
}

bool memory_divide(struct memory_division *d, char *message, size_t message_size)
{
    d->process_bytes = PROCESS_BYTES + d->io_threads * IO_THREAD_BYTES + d->compute_threads * COMPUTE_THREAD_BYTES;
    const uint64_t own_models = d->has_only_demo ? DEMO_BYTES : OWN_MODELS_BYTES;
    const uint64_t all = less(d->total, d->process_bytes + own_models);
    d->heap_bytes = all / HEAP_SHARE < HEAP_BYTES_MAX ? all / HEAP_SHARE : HEAP_BYTES_MAX;
    d->connections = memory_connections(d->connections, all / CONNECTIONS_SHARE / MEMORY_CONNECTION_BYTES);
    d->connections_bytes = memory_places(d->connections) * MEMORY_CONNECTION_BYTES;
    d->layers_bytes = share_of(d->layers_bytes, all / LAYERS_SHARE);
    d->caches_bytes = share_of(d->caches_bytes, all / CACHES_SHARE);
    d->prepared_bytes = share_of(d->prepared_bytes, all / PREPARED_SHARE);
    const uint64_t models_part = d->has_models ? all / MODELS_SHARE : 0;
    d->models_bytes = own_models + models_part;
    const uint64_t parts[] = {d->heap_bytes,   d->connections_bytes, d->layers_bytes,
                              d->caches_bytes, d->prepared_bytes,    models_part};
    d->requests_bytes = all;
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        d->requests_bytes = less(d->requests_bytes, parts[i]);
    d->largest_request_bytes = d->requests_bytes / 16 * 13;
    return d->requests_bytes >= REQUESTS_BYTES_MIN || refuse(d, message, message_size);
}

/* ---- the C library ----------------------------------------------------------------------------------------------- */

void memory_keep_small_blocks(void)
{
#if defined(__GLIBC__)
    enum { LARGE_BYTES = 128 << 10, SPARE_BYTES = 4 << 20, HEAPS = 2 };
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_TRIM_THRESHOLD, SPARE_BYTES);
    mallopt(M_ARENA_MAX, HEAPS);
#endif
}

void memory_return_free_blocks(void)
{
#if defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}

/* The kernel's file has "size resident shared …" in pages. */
static void read_pages(unsigned long long pages[3])
{
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%llu %llu %llu", &pages[0], &pages[1], &pages[2]) != 3)
        pages[0] = pages[1] = pages[2] = 0;
    if (file != NULL)
        fclose(file);
}

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t memory_resident_bytes(uint64_t *of_files)
{
    unsigned long long pages[3];
    read_pages(pages);
    *of_files = pages[2] * page_bytes();
    return pages[1] * page_bytes();
}

uint64_t memory_virtual_bytes(void)
{
    unsigned long long pages[3];
    read_pages(pages);
    return pages[0] * page_bytes();
}

/* The figures are read one after the other, so the memory in use may exceed the resident memory. */
static uint64_t beyond(uint64_t in_use_bytes)
{
    uint64_t of_files;
    const uint64_t resident = memory_resident_bytes(&of_files);
    return less(less(resident, of_files), in_use_bytes);
}

bool memory_has_grown(struct memory_growth *growth, uint64_t in_use_bytes)
{
    const uint64_t now = beyond(in_use_bytes);
    if (!growth->is_known || now < growth->least_bytes)
        growth->least_bytes = now;
    growth->is_known = true;
    return now - growth->least_bytes > growth->bound_bytes;
}

void memory_growth_is_dealt_with(struct memory_growth *growth, uint64_t in_use_bytes)
{
    growth->least_bytes = beyond(in_use_bytes);
}
