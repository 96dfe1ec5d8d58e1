/*
 * executor.c: the bounded queue between the I/O threads and the compute threads: lanes by priority before a pool.
 *
 * Every job waits in its lane, and the pool gets one turn per job. A thread with a turn takes the next job at that
 * moment. This need not be the job that came with the turn. For example, three low jobs are submitted, and then one
 * high job: the first turn runs the high job. The executor counts jobs in and out, and refuses jobs beyond the limit.
 * It measures their times, to tell a refused client when to try again.
 */
#include "service/executor.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"

struct executor_job {
    struct executor *executor;
    void (*job)(void *argument);
    void *argument;
    bool is_continuation;
    struct executor_job *next;
};

struct lane {
    struct executor_job *first, *last;
};

struct executor {
    attn_pool *pool;
    const attn_kernel *kernel;
    size_t queue_limit;
    pthread_mutex_t lock; /* guards what follows */
    struct lane lanes[EXECUTOR_PRIORITIES];
    struct lane continuations;
    bool was_continuation; /* the last one taken was a continuation */
    size_t turns;          /* the number of jobs taken so far */
    size_t waiting, running;
    double job_s; /* seconds per job: an average in which the last job weighs an eighth */
};

enum { RETRY_AFTER_MAX_S = 120 };

struct executor *executor_create(size_t threads, size_t queue_limit, const attn_kernel *kernel)
{
    struct executor *executor = malloc(sizeof *executor);
    if (executor == NULL)
        return NULL;
    *executor = (struct executor){
        .pool = attn_pool_create(&(attn_pool_options){.threads = threads, .pin = true}, NULL),
        .kernel = kernel != NULL ? kernel : attn_kernel_best(),
        .queue_limit = queue_limit,
    };
    pthread_mutex_init(&executor->lock, NULL);
    if (executor->pool != NULL)
        return executor;
    executor_destroy(executor);
    return NULL;
}

void executor_destroy(struct executor *executor)
{
    if (executor == NULL)
        return;
    attn_pool_destroy(executor->pool);
    pthread_mutex_destroy(&executor->lock);
    free(executor);
}

/* ---- the lanes; the lock is held ---- */

static void lane_append(struct lane *lane, struct executor_job *job)
{
    job->next = NULL;
    if (lane->first == NULL)
        lane->first = job;
    else
        lane->last->next = job;
    lane->last = job;
}

static struct executor_job *lane_take(struct lane *lane)
{
    struct executor_job *job = lane->first;
    if (job != NULL)
        lane->first = job->next;
    return job;
}

/* Of eight turns, one begins with the lowest lane, two with the middle one, and five with the highest. */
static struct executor_job *take_waiting(struct executor *executor)
{
    static const executor_priority begins[] = {EXECUTOR_HIGH, EXECUTOR_HIGH, EXECUTOR_NORMAL, EXECUTOR_HIGH,
                                               EXECUTOR_LOW,  EXECUTOR_HIGH, EXECUTOR_NORMAL, EXECUTOR_HIGH};
    const executor_priority begin = begins[executor->turns++ % ARRAY_LENGTH(begins)];
    struct executor_job *job = lane_take(&executor->lanes[begin]);
    for (int i = 0; i < EXECUTOR_PRIORITIES && job == NULL; i++)
        job = lane_take(&executor->lanes[i]);
    return job;
}

/* While both wait, a continuation and a job are taken in turn, so neither starves the other. */
static struct executor_job *take_next(struct executor *executor)
{
    const bool takes_job =
        executor->waiting > 0 && (executor->was_continuation || executor->continuations.first == NULL);
    executor->was_continuation = !takes_job;
    executor->waiting -= takes_job;
    executor->running++;
    return takes_job ? take_waiting(executor) : lane_take(&executor->continuations);
}

/* A job that an idle thread is about to take does not wait, so idle threads have room beyond the queue. */
static bool has_room(const struct executor *executor, executor_priority priority)
{
    const size_t threads = attn_pool_threads(executor->pool);
    const size_t idle = threads > executor->running ? threads - executor->running : 0;
    const size_t limit = priority == EXECUTOR_LOW ? (executor->queue_limit + 1) / 2 : executor->queue_limit;
    return executor->waiting < idle || executor->waiting - idle < limit;
}

/* ---- jobs ---- */

/* Continuations are not timed, because they are much shorter than jobs. */
static void job_ends(const struct executor_job *job, double took_s)
{
    struct executor *executor = job->executor;
    pthread_mutex_lock(&executor->lock);
    executor->running--;
    if (!job->is_continuation)
        executor->job_s = executor->job_s == 0 ? took_s : executor->job_s + (took_s - executor->job_s) / 8;
    pthread_mutex_unlock(&executor->lock);
}

/* There are as many turns as jobs and continuations together, so a turn always finds one. */
static void take_turn(void *argument)
{
    struct executor *executor = argument;
    pthread_mutex_lock(&executor->lock);
    struct executor_job *taken = take_next(executor);
    pthread_mutex_unlock(&executor->lock);
    const struct executor_job job = *taken;
    free(taken);
    const double start_ms = clock_now_ms();
    job.job(job.argument);
    job_ends(&job, 1e-3 * (clock_now_ms() - start_ms));
}

static struct executor_job *job_create(struct executor *executor, void (*job)(void *argument), void *argument,
                                       bool is_continuation)
{
    struct executor_job *made = malloc(sizeof *made);
    if (made != NULL)
        *made = (struct executor_job){executor, job, argument, is_continuation, NULL};
    return made;
}

/*
 * The pool is asked for the turn before the job enters its lane, while the lock is held. So a failure leaves nothing
 * behind, and a thread that begins the turn at once waits for the lock.
 */
bool executor_submit(struct executor *executor, executor_priority priority, void (*job)(void *argument), void *argument)
{
    struct executor_job *made = job_create(executor, job, argument, false);
    if (made == NULL)
        return false;
    pthread_mutex_lock(&executor->lock);
    const bool is_admitted = has_room(executor, priority) && attn_pool_submit(executor->pool, take_turn, executor);
    if (is_admitted) {
        lane_append(&executor->lanes[priority], made);
        executor->waiting++;
    }
    pthread_mutex_unlock(&executor->lock);
    if (!is_admitted)
        free(made);
    return is_admitted;
}

bool executor_continue(struct executor *executor, void (*job)(void *argument), void *argument)
{
    struct executor_job *made = job_create(executor, job, argument, true);
    if (made == NULL)
        return false;
    pthread_mutex_lock(&executor->lock);
    const bool is_taken = attn_pool_submit(executor->pool, take_turn, executor);
    if (is_taken)
        lane_append(&executor->continuations, made);
    pthread_mutex_unlock(&executor->lock);
    if (!is_taken)
        free(made);
    return is_taken;
}

bool executor_is_full(struct executor *executor, executor_priority priority)
{
    pthread_mutex_lock(&executor->lock);
    const bool is_full = !has_room(executor, priority);
    pthread_mutex_unlock(&executor->lock);
    return is_full;
}

unsigned executor_retry_after_s(struct executor *executor)
{
    pthread_mutex_lock(&executor->lock);
    const double jobs = (double)(executor->waiting + executor->running);
    const double wait_s = ceil(jobs * executor->job_s / (double)attn_pool_threads(executor->pool));
    pthread_mutex_unlock(&executor->lock);
    return wait_s < 1 ? 1 : wait_s > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S : (unsigned)wait_s;
}

size_t executor_threads(const struct executor *executor)
{
    return attn_pool_threads(executor->pool);
}

size_t executor_queue_limit(const struct executor *executor)
{
    return executor->queue_limit;
}

size_t executor_waiting(struct executor *executor)
{
    pthread_mutex_lock(&executor->lock);
    const size_t waiting = executor->waiting;
    pthread_mutex_unlock(&executor->lock);
    return waiting;
}

size_t executor_running(struct executor *executor)
{
    pthread_mutex_lock(&executor->lock);
    const size_t running = executor->running;
    pthread_mutex_unlock(&executor->lock);
    return running;
}

attn_runtime executor_runtime(const struct executor *executor)
{
    return attn_pool_runtime(executor->pool, executor->kernel);
}
