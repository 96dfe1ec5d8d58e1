/*
 * pool.c: threads that run jobs. A running job can spread over idle threads.
 *
 * One lock guards a first-in first-out queue of jobs and a list of open regions (a region is one call of
 * attn_runtime.run). An idle thread takes a job when there is one, else joins a region that has tasks left. An atomic
 * counter hands out the tasks of a region, so the lock is taken once per helper, not once per task. The caller of a
 * region returns after the last helper has left. If the caller is a thread of the pool, or the pool lets callers work, it
 * computes as worker 0, and takes no other work meanwhile, so regions can be nested. Any other caller only waits.
 *
 * After its work, a thread stays awake for a moment before it sleeps, because the stages of a computation follow each
 * other within microseconds, and waking a thread takes tens of microseconds. The thread yields in this time. An idle
 * pool sleeps.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "attn/runtime.h"
#include "base/float_mode.h"

enum { WORD_BITS = 64, AWAKE_NS = 50000 };

struct pool_job {
    struct pool_job *next;
    void (*job)(void *argument);
    void *argument;
};

/* Lives on the stack of the thread that called run. All but next_task is guarded by the lock of the pool. */
struct pool_region {
    struct pool_region *next, **link; /* link: the pointer that points here, to leave the list from its middle */
    attn_task *task;
    void *argument;
    size_t tasks;
    atomic_size_t next_task;
    uint64_t workers_taken[ATTN_POOL_THREADS_MAX / WORD_BITS];
    atomic_size_t helpers; /* changed under the lock, but looked at without it */
    size_t helpers_most;
    pthread_cond_t helpers_left;
};

struct attn_pool {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a job, a region, or the end */
    struct pool_job *first_job, **last_job_link;
    struct pool_region *regions;
    atomic_size_t jobs_waiting; /* helpers look at it between tasks, without the lock */
    atomic_uint news; /* changes with every new job and region: threads that stay awake look at it, without the lock */
    size_t idle;
    bool is_ending;
    bool caller_works, has_processors; /* has_processors: at least one for each thread */
    size_t threads;                    /* that compute together */
    size_t started;
    pthread_t thread[];
};

static void run_next_job(attn_pool *pool)
{
    struct pool_job *node = pool->first_job;
    pool->first_job = node->next;
    if (pool->first_job == NULL)
        pool->last_job_link = &pool->first_job;
    atomic_fetch_sub_explicit(&pool->jobs_waiting, 1, memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    node->job(node->argument);
    free(node);
    pthread_mutex_lock(&pool->lock);
}

/* Each participant can count once beyond tasks, so tasks is at most SIZE_MAX - ATTN_POOL_THREADS_MAX. */
static bool region_take_task(struct pool_region *region, size_t *index)
{
    *index = atomic_fetch_add_explicit(&region->next_task, 1, memory_order_relaxed);
    return *index < region->tasks;
}

static bool region_has_tasks(const struct pool_region *region)
{
    return atomic_load_explicit(&region->next_task, memory_order_relaxed) < region->tasks;
}

/* A region has at most as many participants as the pool has threads, so a free number is below threads. */
static size_t region_take_worker(struct pool_region *region)
{
    size_t word = 0;
    while (region->workers_taken[word] == UINT64_MAX)
        word++;
    const size_t bit = (size_t)__builtin_ctzll(~region->workers_taken[word]);
    region->workers_taken[word] |= UINT64_C(1) << bit;
    return word * WORD_BITS + bit;
}

static void region_return_worker(struct pool_region *region, size_t worker)
{
    region->workers_taken[worker / WORD_BITS] &= ~(UINT64_C(1) << (worker % WORD_BITS));
}

static struct pool_region *region_to_help(const attn_pool *pool)
{
    struct pool_region *region = pool->regions;
    while (region != NULL && !(region_has_tasks(region) && region->helpers < region->helpers_most))
        region = region->next;
    return region;
}

static void help_region(attn_pool *pool, struct pool_region *region)
{
    const size_t worker = region_take_worker(region);
    region->helpers++;
    pthread_mutex_unlock(&pool->lock);
    size_t index = 0;
    while (atomic_load_explicit(&pool->jobs_waiting, memory_order_relaxed) == 0 && region_take_task(region, &index))
        region->task(region->argument, index, worker);
    pthread_mutex_lock(&pool->lock);
    region_return_worker(region, worker);
    region->helpers--;
    if (region->helpers == 0)
        pthread_cond_signal(&region->helpers_left);
}

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Yields for AWAKE_NS at most, without the lock, until there is a new job or region. */
static void stay_awake(attn_pool *pool)
{
    const unsigned seen = atomic_load_explicit(&pool->news, memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    const int64_t end = now_ns() + AWAKE_NS;
    while (atomic_load_explicit(&pool->news, memory_order_relaxed) == seen && now_ns() < end)
        sched_yield();
    pthread_mutex_lock(&pool->lock);
}

/* Yields for AWAKE_NS at most, until the helpers of a region without tasks have left. */
static void await_helpers(const attn_pool *pool, const struct pool_region *region)
{
    const int64_t end = now_ns() + AWAKE_NS;
    while (pool->has_processors && atomic_load_explicit(&region->helpers, memory_order_relaxed) > 0 && now_ns() < end)
        sched_yield();
}

/* The pool that this thread belongs to. */
static _Thread_local const attn_pool *own_pool;

static void *pool_thread(void *argument)
{
    attn_pool *pool = argument;
    bool had_work = false;
    own_pool = pool;
    (void)attn_float_mode_enter(); /* a new thread inherits the mode of the thread that makes it */
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct pool_region *region = NULL;
        if (pool->first_job != NULL) {
            run_next_job(pool);
            had_work = true;
        } else if ((region = region_to_help(pool)) != NULL) {
            help_region(pool, region);
            had_work = true;
        } else if (pool->is_ending) {
            break;
        } else if (had_work && pool->has_processors) {
            had_work = false;
            stay_awake(pool);
        } else {
            pool->idle++;
            pthread_cond_wait(&pool->work, &pool->lock);
            pool->idle--;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void pool_end(attn_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_ending = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->started; i++)
        pthread_join(pool->thread[i], NULL);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/*
 * A pinned pool with as many threads as processors binds each thread to one. Otherwise the scheduler may place a woken
 * thread on the processor of the thread that woke it, where it waits for milliseconds although another processor is
 * idle. Virtual machines usually did so.
 */
static void pin(attn_pool *pool, const cpu_set_t *all)
{
    size_t thread = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE && thread < pool->started; cpu++) {
        if (!CPU_ISSET(cpu, all))
            continue;
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(cpu, &own);
        (void)pthread_setaffinity_np(pool->thread[thread++], sizeof own, &own);
    }
}

/* In place of a pool. */
static attn_pool *no_pool(attn_status status)
{
    (void)status;
    return NULL;
}

/* Starts wanted threads, or fewer if the system does not. */
static void start(attn_pool *pool, size_t wanted, bool pins)
{
    cpu_set_t all;
    const size_t processors = sched_getaffinity(0, sizeof all, &all) == 0 ? (size_t)CPU_COUNT(&all) : 0;
    pool->has_processors = pool->threads <= processors;
    while (pool->started < wanted && pthread_create(&pool->thread[pool->started], NULL, pool_thread, pool) == 0)
        pool->started++;
    if (pins && pool->started == processors)
        pin(pool, &all);
}

attn_pool *attn_pool_create(const attn_pool_options *options, attn_error *err)
{
    const size_t threads = options->threads;
    if (threads == 0)
        return no_pool(attn_fail(err, ATTN_ERR_VALUE, NULL, "a pool needs at least one thread"));
    if (threads > ATTN_POOL_THREADS_MAX)
        return no_pool(attn_fail(err, ATTN_ERR_VALUE, NULL, "a pool of %zu threads; the BLAS serves at most %d at once",
                                 threads, ATTN_POOL_THREADS_MAX));
    attn_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->thread[0]);
    if (pool == NULL)
        return no_pool(attn_fail_no_memory(err));
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pool->last_job_link = &pool->first_job;
    pool->threads = threads;
    pool->caller_works = options->caller_works;
    const size_t wanted = threads - options->caller_works;
    start(pool, wanted, options->pin);
    if (pool->started == wanted)
        return pool;
    pool_end(pool);
    return no_pool(attn_fail_no_memory(err));
}

void attn_pool_destroy(attn_pool *pool)
{
    if (pool != NULL)
        pool_end(pool);
}

size_t attn_pool_threads(const attn_pool *pool)
{
    return pool->threads;
}

bool attn_pool_submit(attn_pool *pool, void (*job)(void *argument), void *argument)
{
    struct pool_job *node = pool->started == 0 ? NULL : malloc(sizeof *node);
    if (node == NULL)
        return false;
    *node = (struct pool_job){.job = job, .argument = argument};
    pthread_mutex_lock(&pool->lock);
    assert(!pool->is_ending);
    *pool->last_job_link = node;
    pool->last_job_link = &node->next;
    atomic_fetch_add_explicit(&pool->jobs_waiting, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool->news, 1, memory_order_relaxed);
    pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    return true;
}

/* Opens the region to helpers, and wakes at most one idle thread per task. */
static void region_open(attn_pool *pool, struct pool_region *region)
{
    pthread_mutex_lock(&pool->lock);
    region->next = pool->regions;
    region->link = &pool->regions;
    if (region->next != NULL)
        region->next->link = &region->next;
    pool->regions = region;
    atomic_fetch_add_explicit(&pool->news, 1, memory_order_relaxed);
    size_t wanted = region->tasks;
    if (wanted > region->helpers_most)
        wanted = region->helpers_most;
    if (wanted > pool->idle)
        wanted = pool->idle;
    for (size_t i = 0; i < wanted; i++)
        pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->lock);
}

/* Waits until no task is left and no helper is working. */
static void region_close(attn_pool *pool, struct pool_region *region)
{
    pthread_mutex_lock(&pool->lock);
    while (region_has_tasks(region))
        pthread_cond_wait(&region->helpers_left, &pool->lock);
    *region->link = region->next;
    if (region->next != NULL)
        region->next->link = region->link;
    while (region->helpers > 0)
        pthread_cond_wait(&region->helpers_left, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void run_alone(size_t tasks, attn_task *task, void *argument)
{
    for (size_t i = 0; i < tasks; i++)
        task(argument, i, 0);
}

static void run_together(attn_pool *pool, bool caller_works, size_t tasks, attn_task *task, void *argument)
{
    struct pool_region region = {.task = task,
                                 .argument = argument,
                                 .tasks = tasks,
                                 .workers_taken = {caller_works},
                                 .helpers_most = pool->threads - caller_works};
    pthread_cond_init(&region.helpers_left, NULL);
    region_open(pool, &region);
    size_t index = 0;
    while (caller_works && region_take_task(&region, &index))
        task(argument, index, 0);
    if (caller_works)
        await_helpers(pool, &region);
    region_close(pool, &region);
    pthread_cond_destroy(&region.helpers_left);
}

/* A caller from outside that works has a floating-point mode of its own, which must change nothing. */
static void pool_run(void *context, size_t tasks, attn_task *task, void *argument)
{
    attn_pool *pool = context;
    const bool caller_works = own_pool == pool || pool->caller_works;
    ATTN_FLOAT_MODE;
    if (tasks <= 1 || (caller_works && pool->threads == 1))
        run_alone(tasks, task, argument);
    else
        run_together(pool, caller_works, tasks, task, argument);
}

attn_runtime attn_pool_runtime(attn_pool *pool, const attn_kernel *kernel)
{
    return (attn_runtime){
        .kernel = kernel != NULL ? kernel : attn_kernel_best(),
        .threads = pool->threads,
        .run = pool_run,
        .context = pool,
    };
}

/* ---- without a pool: everything in the calling thread ---- */

static void run_serially(void *context, size_t tasks, attn_task *task, void *argument)
{
    (void)context;
    run_alone(tasks, task, argument);
}

attn_runtime attn_runtime_serial(const attn_kernel *kernel)
{
    return (attn_runtime){.kernel = kernel == NULL ? attn_kernel_best() : kernel, .threads = 1, .run = run_serially};
}
