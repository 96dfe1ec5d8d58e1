/*
 * runtime.h: what a computation takes from its caller: threads, a kernel for this CPU, and cancelling.
 *
 * The library shares no state, and starts no threads besides those of a pool. Every call takes an attn_runtime. A pool
 * makes one that spreads the work; attn_runtime_serial() makes one that runs everything in the calling thread. On one
 * kind of processor, results are the same bytes either way.
 */
#ifndef ATTN_RUNTIME_H
#define ATTN_RUNTIME_H

#include <stdint.h>

#include "attn/status.h"

typedef struct attn_kernel attn_kernel;
typedef struct attn_pool attn_pool;

/* OpenBLAS ends the process when some 200 threads call it at once. All pools of a process share that limit. */
enum { ATTN_POOL_THREADS_MAX = 128 };

/* One piece of parallel work: index in [0, tasks), worker in [0, threads). Two tasks with one worker never overlap. */
typedef void attn_task(void *argument, size_t index, size_t worker);

typedef struct {
    const attn_kernel *kernel; /* which instruction set computes; never NULL */
    size_t threads;            /* at least 1 */
    /* Calls task(argument, 0 … tasks - 1, worker), each once, in any order, and returns when all are done. */
    void (*run)(void *context, size_t tasks, attn_task *task, void *argument);
    void *context;
    /* Asked between tiles; true makes the computation return ATTN_ERR_CANCELLED soon. It must stay true. NULL: never. */
    bool (*is_cancelled)(void *cancel_context);
    void *cancel_context;
} attn_runtime;

/*
 * Once per process, before the first computation: pins the BLAS to one thread of its own (more would oversubscribe, and
 * change the last bits), and makes it allocate its work space now.
 */
void attn_blas_prepare(void);
/* Name and version of the BLAS in use: "OpenBLAS 0.3.21 Zen". Static storage. */
const char *attn_blas_description(void);

/* The best kernel that this CPU can run. */
const attn_kernel *attn_kernel_best(void);
/* By name ("portable", "avx2", …); NULL when there is none of that name or this CPU cannot run it. */
const attn_kernel *attn_kernel_by_name(const char *name);
/* The i-th kernel that this CPU can run, slowest first; NULL past the end. */
const attn_kernel *attn_kernel_at(size_t i);
const char *attn_kernel_name(const attn_kernel *kernel);

/* Everything in the calling thread, with the given kernel (NULL: the best). */
attn_runtime attn_runtime_serial(const attn_kernel *kernel);

/*
 * A fixed set of threads that runs jobs, and lets a running job spread itself over those that are idle. A queued job is
 * preferred to helping one that runs: many small requests take a thread each, a lone big one takes them all. A pool of
 * as many threads as the process may use processors binds each to one, so that a woken thread starts at once, and
 * keeps it awake for some microseconds after its work. All calls are safe from any thread.
 *
 * NULL, and in *err (which may be NULL)
 *   ATTN_ERR_VALUE      threads is 0 or above ATTN_POOL_THREADS_MAX
 *   ATTN_ERR_NO_MEMORY  the system has no memory or no thread left
 */
attn_pool *attn_pool_create(size_t threads, attn_error *err);
/* Runs every job that was submitted, then ends the threads. No submit may follow. NULL is fine. */
void attn_pool_destroy(attn_pool *pool);
size_t attn_pool_threads(const attn_pool *pool);
/* Queues job(argument) for a thread of the pool; false without memory. The queue has no bound: the caller keeps one. */
ATTN_MUST_CHECK bool attn_pool_submit(attn_pool *pool, void (*job)(void *argument), void *argument);
/* A runtime that spreads over the pool; usable from a job of the pool and from any other thread. */
attn_runtime attn_pool_runtime(attn_pool *pool, const attn_kernel *kernel);

#endif
