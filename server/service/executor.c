/*
 * executor.c: the bounded queue between the I/O threads and the compute threads: a pool and a count.
 *
 * The pool keeps the order and the threads. Here every job is counted in and out, refused over the bound, and timed, so
 * that a refused client can be told when to come back.
 */
#include "service/executor.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct executor {
    attn_pool *pool;
    const attn_kernel *kernel;
    size_t queue_limit;
    pthread_mutex_t *lock; /* guards what follows; a pointer, so that readers of a const executor may take it */
    size_t waiting, running;
    double job_s; /* what a job took of late: an average in which the last job weighs an eighth */
};

struct executor_job {
    struct executor *executor;
    void (*job)(void *argument);
    void *argument;
    bool is_continuation; /* never waited, and its short time says nothing of what a job takes */
};

enum { RETRY_AFTER_MAX_S = 120 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static pthread_mutex_t *lock_create(void)
{
    pthread_mutex_t *lock = malloc(sizeof *lock);
    if (lock != NULL)
        pthread_mutex_init(lock, NULL);
    return lock;
}

static void lock_destroy(pthread_mutex_t *lock)
{
    if (lock != NULL)
        pthread_mutex_destroy(lock);
    free(lock);
}

struct executor *executor_create(size_t threads, size_t queue_limit, const attn_kernel *kernel)
{
    struct executor *executor = malloc(sizeof *executor);
    if (executor == NULL)
        return NULL;
    *executor = (struct executor){
        .pool = attn_pool_create(threads),
        .kernel = kernel != NULL ? kernel : attn_kernel_best(),
        .queue_limit = queue_limit,
        .lock = lock_create(),
    };
    if (executor->pool != NULL && executor->lock != NULL)
        return executor;
    executor_destroy(executor);
    return NULL;
}

void executor_destroy(struct executor *executor)
{
    if (executor == NULL)
        return;
    attn_pool_destroy(executor->pool);
    lock_destroy(executor->lock);
    free(executor);
}

static void job_starts(struct executor *executor, bool is_continuation)
{
    pthread_mutex_lock(executor->lock);
    executor->waiting -= !is_continuation;
    executor->running++;
    pthread_mutex_unlock(executor->lock);
}

static void job_ends(struct executor *executor, bool is_continuation, double took_s)
{
    pthread_mutex_lock(executor->lock);
    executor->running--;
    if (!is_continuation)
        executor->job_s = executor->job_s == 0 ? took_s : executor->job_s + (took_s - executor->job_s) / 8;
    pthread_mutex_unlock(executor->lock);
}

static void executor_run_job(void *argument)
{
    const struct executor_job job = *(struct executor_job *)argument;
    free(argument);
    job_starts(job.executor, job.is_continuation);
    const double start_s = now_s();
    job.job(job.argument);
    job_ends(job.executor, job.is_continuation, now_s() - start_s);
}

/* A job that an idle thread is about to take does not wait: what counts is more jobs than threads and queue hold. */
static bool admit(struct executor *executor)
{
    pthread_mutex_lock(executor->lock);
    const size_t threads = attn_pool_threads(executor->pool);
    const size_t idle = threads > executor->running ? threads - executor->running : 0;
    const bool is_admitted = executor->waiting < idle || executor->waiting - idle < executor->queue_limit;
    if (is_admitted)
        executor->waiting++;
    pthread_mutex_unlock(executor->lock);
    return is_admitted;
}

static void withdraw(struct executor *executor)
{
    pthread_mutex_lock(executor->lock);
    executor->waiting--;
    pthread_mutex_unlock(executor->lock);
}

bool executor_submit(struct executor *executor, void (*job)(void *argument), void *argument)
{
    struct executor_job *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return false;
    *copy = (struct executor_job){executor, job, argument, false};
    if (!admit(executor)) {
        free(copy);
        return false;
    }
    if (!attn_pool_submit(executor->pool, executor_run_job, copy)) {
        withdraw(executor);
        free(copy);
        return false;
    }
    return true;
}

bool executor_continue(struct executor *executor, void (*job)(void *argument), void *argument)
{
    struct executor_job *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return false;
    *copy = (struct executor_job){executor, job, argument, true};
    if (attn_pool_submit_first(executor->pool, executor_run_job, copy))
        return true;
    free(copy);
    return false;
}

unsigned executor_retry_after_s(const struct executor *executor)
{
    pthread_mutex_lock(executor->lock);
    const double jobs = (double)(executor->waiting + executor->running);
    const double wait_s = ceil(jobs * executor->job_s / (double)attn_pool_threads(executor->pool));
    pthread_mutex_unlock(executor->lock);
    return wait_s < 1 ? 1 : wait_s > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S : (unsigned)wait_s;
}

size_t executor_waiting(const struct executor *executor)
{
    pthread_mutex_lock(executor->lock);
    const size_t waiting = executor->waiting;
    pthread_mutex_unlock(executor->lock);
    return waiting;
}

size_t executor_running(const struct executor *executor)
{
    pthread_mutex_lock(executor->lock);
    const size_t running = executor->running;
    pthread_mutex_unlock(executor->lock);
    return running;
}

attn_runtime executor_runtime(const struct executor *executor)
{
    return attn_pool_runtime(executor->pool, executor->kernel);
}
