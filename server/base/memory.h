/* memory.h: how the memory of this process is divided, and when free memory returns to the system. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The total that "auto" means: 15/16 of the available memory. The rest is for memory that the kernel counts for this
 * process, such as page tables and sockets.
 */
uint64_t memory_auto_bytes(void);

/* memory_divide chooses this share. */
#define MEMORY_AUTO UINT64_MAX

/* Per connection: 64 KiB of the library, 16 KiB of a request before its budget begins, and the records of both. */
enum { MEMORY_CONNECTION_BYTES = 96 << 10 };

/*
 * The memory of the process, in bytes, divided by use. Requests have the rest.
 *
 *     process       code, tables and fonts, and each thread's stack and buffers
 *     models        whole models without their files, and what reading them takes
 *     heap          free blocks that the process keeps
 *     connections   one place each
 *     layers, caches, prepared   what the settings of these names allow, or a share when they are "auto"
 */
struct memory_division {
    uint64_t total, io_threads, compute_threads;         /* set by the caller */
    uint64_t connections;                                /* set by the caller; reduced to what their share holds */
    uint64_t layers_bytes, caches_bytes, prepared_bytes; /* set by the caller; MEMORY_AUTO is decided */
    bool has_models;                                     /* set by the caller: beside those of the program */
    bool has_only_demo;                                  /* set by the caller: of the program's models, one is served */
    uint64_t process_bytes, heap_bytes, connections_bytes, models_bytes, requests_bytes; /* results */
    /*
     * Of requests_bytes, the part that one request can have when no other request runs. A larger request is answered
     * 413.
     */
    uint64_t largest_request_bytes;
};

/* The number of compute threads that fit into a quarter of total; at least 1. */
uint64_t memory_compute_threads(uint64_t total);
/* Divides the memory. False: too little is left for requests; message lists all parts. */
bool memory_divide(struct memory_division *division, char *message, size_t message_size);
/* The number of connections that the library must hold, because it still counts those that are being closed. */
uint64_t memory_places(uint64_t connections);
/* The connections asked for, and at most as many as that many places hold; at least 1. */
uint64_t memory_connections(uint64_t asked, uint64_t places);

/*
 * Sets how the C library treats freed blocks. Blocks of 128 KiB and more return to the system at once. Smaller blocks
 * stay for the next request, in two heaps that all threads share. A heap per thread with larger blocks left several
 * times more memory free than in use.
 */
void memory_keep_small_blocks(void);

/* Returns the free blocks of the heaps to the system. This takes milliseconds; other threads that need memory wait. */
void memory_return_free_blocks(void);

/* Resident memory of the process, and the part of it that belongs to files. Both are 0 where the kernel does not tell. */
uint64_t memory_resident_bytes(uint64_t *of_files);
/* The address space of the process; 0 where the kernel does not tell. */
uint64_t memory_virtual_bytes(void);

/* How far the process has grown beyond the memory in use. All members but the first start at 0. */
struct memory_growth {
    uint64_t bound_bytes; /* the growth that is allowed */
    uint64_t least_bytes; /* the least memory beyond that in use since free blocks were last returned */
    bool is_known;
};
/*
 * Whether anonymous memory, minus the memory in use, has grown by more than the bound since free blocks were last
 * returned. If so, call memory_return_free_blocks and then memory_growth_is_dealt_with.
 */
bool memory_has_grown(struct memory_growth *growth, uint64_t in_use_bytes);
void memory_growth_is_dealt_with(struct memory_growth *growth, uint64_t in_use_bytes);

#endif
