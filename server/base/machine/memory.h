/*
 * memory.h: how much memory this process may use, how it is divided, and when it is given back. Part of the floor:
 * includes no other folder.
 */
#ifndef BASE_MACHINE_MEMORY_H
#define BASE_MACHINE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes: the machine's memory, or the smallest limit of our control group (version 1 or 2) and of those around it when
 * that is less.
 */
uint64_t memory_available_bytes(void);
/* What "auto" takes of it: all but a sixteenth, for what the kernel keeps on our account, such as pages and sockets. */
uint64_t memory_auto_bytes(void);

/* A share that is not given. */
#define MEMORY_AUTO UINT64_MAX

/* A connection: 64 KiB of the library, the first 16 KiB of a request that are on no budget, and the records of both. */
enum { MEMORY_CONNECTION_BYTES = 96 << 10 };

/*
 * The memory of the process, in bytes, divided by what it is for. What is left is for requests.
 *
 *     process       code, tables and fonts, and each thread's stack and buffers
 *     heap          blocks that are free and still with the process
 *     connections   as many as there are places
 *     layers, caches, prepared   what the settings of these names allow, or a share when they are "auto"
 */
struct memory_division {
    uint64_t total, io_threads, compute_threads;         /* to be filled in */
    uint64_t connections;                                /* places; fewer when they take more than their share */
    uint64_t layers_bytes, caches_bytes, prepared_bytes; /* MEMORY_AUTO: to be decided */
    uint64_t process_bytes, heap_bytes, connections_bytes, requests_bytes; /* what comes out */
    uint64_t largest_request_bytes; /* of that: less than the budget gives one that is alone, so that it is told 413 */
};

/* So many compute threads fit into a quarter of it; at least one. */
uint64_t memory_compute_threads(uint64_t total);
/* False when too little is left for requests; message says of what. */
bool memory_divide(struct memory_division *division, char *message, size_t message_size);
/* So many connections the library must be able to hold: those that are being closed still count with it. */
uint64_t memory_places(uint64_t connections);

/*
 * What the C library does with blocks that were freed, from now on: those of 128 KiB and more go back to the system at
 * once, smaller ones stay for the next request, in a few heaps that all threads share. With a heap for each thread, and
 * larger blocks in them, what was free in one and missing in the next came to several times of what was in use.
 */
void memory_keep_small_blocks(void);

/* Gives the system back what is free in the heaps. Milliseconds, while other threads wait for memory. */
void memory_return_free_blocks(void);

/* How far the process has grown beyond what is known to be in use. All members but the first begin as 0. */
struct memory_growth {
    uint64_t bound_bytes; /* growth that is too much */
    uint64_t least_bytes; /* beyond what was in use, at the last look or less */
    bool is_known;
};
/*
 * Whether anonymous memory, less what is in use, has grown by more than the bound since it was last returned: then
 * memory_return_free_blocks, and memory_growth_is_dealt_with.
 */
bool memory_has_grown(struct memory_growth *growth, uint64_t in_use_bytes);
void memory_growth_is_dealt_with(struct memory_growth *growth, uint64_t in_use_bytes);

#endif
