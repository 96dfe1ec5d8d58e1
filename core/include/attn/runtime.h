/*
 * runtime.h: what a caller provides to a computation: threads, a kernel for this CPU, and cancellation.
 *
 * The library shares no state, and starts no threads besides those of a pool. Every call takes an attn_runtime. A pool
 * makes one that spreads the work; attn_runtime_serial() makes one that runs everything in the calling thread. On one
 * kind of processor, results are the same bytes either way.
 */
#ifndef ATTN_RUNTIME_H
#define ATTN_RUNTIME_H

#include <stdint.h>

#include "attn/status.h"

ATTN_BEGIN_C

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
 * Limits the BLAS of the whole process to one thread per call, and makes it allocate its work space now. The library
 * never does so by itself. A program that owns its process calls it once, before the first computation. Without it,
 * results are as exact, but the threads of the BLAS come on top of those of a pool, and its number of threads may change
 * the last bits of layers and gradients. attn_attention does not use the BLAS.
 */
void attn_blas_use_one_thread(void);
/* Name and version of the BLAS in use: "OpenBLAS 0.3.21 Zen". Static storage. */
const char *attn_blas_description(void);

/* The best kernel that this CPU can run. */
const attn_kernel *attn_kernel_best(void);
/* By name ("portable", "avx2", …); NULL when no kernel has that name, this CPU cannot run it, or it was left out. */
const attn_kernel *attn_kernel_by_name(const char *name);
/* Whether this CPU could run the kernel of that name, but the library was built without it (make KERNELS=native). */
bool attn_kernel_is_left_out(const char *name);
/* The i-th kernel that this CPU can run, slowest first; NULL past the end. */
const attn_kernel *attn_kernel_at(size_t i);
const char *attn_kernel_name(const attn_kernel *kernel);

/* Everything in the calling thread, with the given kernel (NULL: the best). */
attn_runtime attn_runtime_serial(const attn_kernel *kernel);

/* Zero-initialise it and fill it in. */
typedef struct {
    size_t threads; /* that compute together, 1 to ATTN_POOL_THREADS_MAX */
    /*
     * A thread from outside that runs a computation on the pool is one of these threads, and the pool starts one less.
     * Otherwise it waits while the threads of the pool compute, as a server wants it that computes in jobs.
     */
    bool caller_works;
    /*
     * Binds each thread to one processor, if the pool starts as many as the process has processors, so that a woken thread
     * starts at once. Two such pools of one process share the same processors: only one should ask for it.
     */
    bool pin;
} attn_pool_options;

/*
 * A fixed set of threads that runs jobs; a running job can spread over idle threads. A queued job has priority over
 * helping a running one: many small requests take a thread each, and a single large request takes them all. A thread
 * stays awake for some microseconds after its work, unless there are more threads than processors. All calls are safe
 * from any thread.
 *
 * NULL, and in *err (which may be NULL)
 *   ATTN_ERR_VALUE      threads is 0 or above ATTN_POOL_THREADS_MAX
 *   ATTN_ERR_NO_MEMORY  the system has no memory or no thread left
 */
attn_pool *attn_pool_create(const attn_pool_options *options, attn_error *err);
/* Runs every job that was submitted, then ends the threads. No submit may follow. NULL is fine. */
void attn_pool_destroy(attn_pool *pool);
/* options.threads */
size_t attn_pool_threads(const attn_pool *pool);
/*
 * Queues job(argument) for a thread of the pool; false without memory, and in a pool that started no thread. The queue is
 * unbounded: the caller sets a limit.
 */
ATTN_MUST_CHECK bool attn_pool_submit(attn_pool *pool, void (*job)(void *argument), void *argument);
/* A runtime that spreads work over the pool; usable from a job of the pool and from any other thread. */
attn_runtime attn_pool_runtime(attn_pool *pool, const attn_kernel *kernel);

ATTN_END_C

#endif
