/* mapping.c: a table of the mapped files, which a signal handler reads without a lock. */
#include "base/mapping.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK_MAPPINGS = 256 };

struct mapping {
    atomic_uintptr_t begin, end; /* end 0: the entry is free */
    atomic_bool is_torn;
    struct mapping *next_free;
};

/* Blocks are never freed, so a handler may read them at any time. There are as many as files were mapped at once. */
struct block {
    struct block *older;
    struct mapping mappings[BLOCK_MAPPINGS];
};

static struct block first;

static struct {
    _Atomic(struct block *) newest;
    pthread_mutex_t lock; /* guards what follows */
    size_t used;          /* the entries of newest that were ever taken */
    struct mapping *free; /* those that were given back */
} table = {.newest = &first, .lock = PTHREAD_MUTEX_INITIALIZER};

static bool add_block(void)
{
    struct block *block = calloc(1, sizeof *block);
    if (block == NULL)
        return false;
    block->older = atomic_load(&table.newest);
    atomic_store(&table.newest, block);
    table.used = 0;
    return true;
}

static struct mapping *take_entry(void)
{
    struct mapping *taken = NULL;
    pthread_mutex_lock(&table.lock);
    if (table.free != NULL) {
        taken = table.free;
        table.free = taken->next_free;
    } else if (table.used < BLOCK_MAPPINGS || add_block()) {
        taken = &atomic_load(&table.newest)->mappings[table.used++];
    }
    pthread_mutex_unlock(&table.lock);
    return taken;
}

static void give_entry(struct mapping *mapping)
{
    pthread_mutex_lock(&table.lock);
    mapping->next_free = table.free;
    table.free = mapping;
    pthread_mutex_unlock(&table.lock);
}

int mapping_add(int fd, size_t bytes, struct mapping **mapping)
{
    struct mapping *made = take_entry();
    if (made == NULL)
        return ENOMEM;
    void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        const int outcome = errno;
        give_entry(made);
        return outcome;
    }
    atomic_store(&made->is_torn, false);
    atomic_store(&made->begin, (uintptr_t)at);
    atomic_store(&made->end, (uintptr_t)at + bytes);
    *mapping = made;
    return 0;
}

const void *mapping_bytes(const struct mapping *mapping)
{
    return (const void *)atomic_load(&mapping->begin);
}

void mapping_rest(const struct mapping *mapping, const void *at, size_t bytes)
{
    const uintptr_t from = (uintptr_t)at, before = from % (uintptr_t)sysconf(_SC_PAGESIZE); /* in the first page */
    assert(from >= atomic_load(&mapping->begin) && bytes <= atomic_load(&mapping->end) - from);
    (void)madvise((void *)(from - before), before + bytes, MADV_DONTNEED); /* a failure costs memory alone */
}

void mapping_remove(struct mapping *mapping)
{
    const uintptr_t begin = atomic_load(&mapping->begin), end = atomic_load(&mapping->end);
    atomic_store(&mapping->end, 0);
    munmap((void *)begin, end - begin);
    give_entry(mapping);
}

bool mapping_is_torn(const struct mapping *mapping)
{
    return atomic_load(&mapping->is_torn);
}

/*
 * An entry may be removed and taken again while this reads it. So end is read twice: the same end belongs to the begin
 * between. The mark comes before the zeros, because whoever reads zeros must find the mark.
 */
static bool mend(struct mapping *mapping, uintptr_t address)
{
    const uintptr_t end = atomic_load(&mapping->end), begin = atomic_load(&mapping->begin);
    if (address < begin || address >= end || atomic_load(&mapping->end) != end)
        return false;
    atomic_store(&mapping->is_torn, true);
    return mmap((void *)begin, end - begin, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

bool mapping_mend(const void *address)
{
    for (struct block *block = atomic_load(&table.newest); block != NULL; block = block->older)
        for (size_t i = 0; i < BLOCK_MAPPINGS; i++)
            if (mend(&block->mappings[i], (uintptr_t)address))
                return true;
    return false;
}
