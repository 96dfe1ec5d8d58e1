/*
 * test_pool.c: the promises of attn_pool_* (attn/runtime.h): every job and every task runs once, workers never overlap,
 * regions nest, and nothing is lost at the end. Meant to be run under MODE=thread too.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "check_main.h"

#include "attn/runtime.h"

enum { THREADS = 4, TASKS = 2000 };

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* The record of a region: how often each task ran, and whether a worker was ever in two tasks at once. */
struct record {
    size_t threads;
    atomic_int runs[TASKS];
    atomic_int inside[THREADS];
    atomic_size_t distinct_workers, overlaps, out_of_range;
    atomic_int seen[THREADS];
    long task_ms;
};

static void record_task(void *argument, size_t index, size_t worker)
{
    struct record *record = argument;
    if (worker >= record->threads) {
        record->out_of_range++;
        return;
    }
    if (atomic_fetch_add(&record->inside[worker], 1) != 0)
        record->overlaps++;
    if (atomic_exchange(&record->seen[worker], 1) == 0)
        record->distinct_workers++;
    if (record->task_ms > 0)
        sleep_ms(record->task_ms);
    record->runs[index]++;
    record->inside[worker]--;
}

static void check_record(const struct record *record, size_t tasks)
{
    ck_assert_uint_eq(record->out_of_range, 0);
    ck_assert_uint_eq(record->overlaps, 0);
    for (size_t i = 0; i < TASKS; i++)
        if (record->runs[i] != (i < tasks))
            ck_abort_msg("task %zu of %zu was run %d times", i, tasks, (int)record->runs[i]);
}

START_TEST(no_threads_make_no_pool)
{
    ck_assert_ptr_null(attn_pool_create(&(attn_pool_options){.threads = 0}, NULL));
    ck_assert_ptr_null(attn_pool_create(&(attn_pool_options){.threads = SIZE_MAX}, NULL));
    attn_pool_destroy(NULL);
}
END_TEST

static void count_job(void *argument)
{
    atomic_size_t *count = argument;
    (*count)++;
}

START_TEST(every_submitted_job_runs_before_the_pool_ends)
{
    atomic_size_t count = 0;
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = THREADS}, NULL);
    ck_assert_uint_eq(attn_pool_threads(pool), THREADS);
    for (int i = 0; i < 1000; i++)
        ck_assert(attn_pool_submit(pool, count_job, &count));
    attn_pool_destroy(pool);
    ck_assert_uint_eq(count, 1000);
}
END_TEST

struct order {
    size_t next;
    bool is_ordered;
};

struct order_job {
    struct order *order;
    size_t place;
};

static void order_job(void *argument)
{
    struct order_job *job = argument;
    job->order->is_ordered &= job->order->next == job->place;
    job->order->next++;
}

START_TEST(jobs_start_in_the_order_of_submission)
{
    struct order order = {.is_ordered = true};
    struct order_job jobs[100];
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 1}, NULL);
    for (size_t i = 0; i < 100; i++) {
        jobs[i] = (struct order_job){&order, i};
        ck_assert(attn_pool_submit(pool, order_job, &jobs[i]));
    }
    attn_pool_destroy(pool);
    ck_assert(order.is_ordered);
    ck_assert_uint_eq(order.next, 100);
}
END_TEST

struct gate {
    pthread_mutex_t shut;
    atomic_bool is_reached;
};

static void wait_at_gate(void *argument)
{
    struct gate *gate = argument;
    gate->is_reached = true;
    pthread_mutex_lock(&gate->shut);
    pthread_mutex_unlock(&gate->shut);
}

START_TEST(a_job_submitted_first_runs_before_all_that_wait)
{
    struct gate gate = {.shut = PTHREAD_MUTEX_INITIALIZER};
    struct order order = {.is_ordered = true};
    struct order_job jobs[5] = {{&order, 0}, {&order, 1}, {&order, 2}, {&order, 3}, {&order, 4}};
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 1}, NULL);
    pthread_mutex_lock(&gate.shut);
    ck_assert(attn_pool_submit(pool, wait_at_gate, &gate));
    while (!gate.is_reached)
        sched_yield();
    ck_assert(attn_pool_submit(pool, order_job, &jobs[0]));
    ck_assert(attn_pool_submit(pool, order_job, &jobs[1]));
    ck_assert(attn_pool_submit(pool, order_job, &jobs[2]));
    ck_assert(attn_pool_submit(pool, order_job, &jobs[3]));
    ck_assert(attn_pool_submit(pool, order_job, &jobs[4]));
    pthread_mutex_unlock(&gate.shut);
    attn_pool_destroy(pool);
    ck_assert(order.is_ordered);
    ck_assert_uint_eq(order.next, 5);
}
END_TEST

START_TEST(a_caller_outside_the_pool_gets_every_task_run_once)
{
    static const size_t counts[] = {0, 1, 2, 3, THREADS, THREADS + 1, TASKS};
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = THREADS, .caller_works = _i == 1}, NULL);
    const attn_runtime runtime = attn_pool_runtime(pool, NULL);
    ck_assert_ptr_nonnull(runtime.kernel);
    ck_assert_ptr_null((void *)(uintptr_t)runtime.is_cancelled);
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct record record = {.threads = runtime.threads};
        runtime.run(runtime.context, counts[i], record_task, &record);
        check_record(&record, counts[i]);
    }
    attn_pool_destroy(pool);
}
END_TEST

START_TEST(idle_threads_join_a_region)
{
    struct record record = {.threads = THREADS, .task_ms = 20};
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = THREADS, .caller_works = _i == 1}, NULL);
    const attn_runtime runtime = attn_pool_runtime(pool, NULL);
    runtime.run(runtime.context, THREADS * 2, record_task, &record);
    check_record(&record, THREADS * 2);
    ck_assert_uint_ge(record.distinct_workers, 2);
    attn_pool_destroy(pool);
}
END_TEST

struct region_job {
    attn_runtime runtime;
    struct record record;
};

static void region_job(void *argument)
{
    struct region_job *job = argument;
    job->runtime.run(job->runtime.context, TASKS, record_task, &job->record);
}

START_TEST(many_jobs_with_regions_at_once_keep_apart)
{
    enum { JOBS = 24 };
    struct region_job *jobs = calloc(JOBS, sizeof *jobs);
    ck_assert_ptr_nonnull(jobs);
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = THREADS}, NULL);
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i].runtime = attn_pool_runtime(pool, NULL);
        jobs[i].record.threads = THREADS;
        ck_assert(attn_pool_submit(pool, region_job, &jobs[i]));
    }
    attn_pool_destroy(pool);
    for (size_t i = 0; i < JOBS; i++)
        check_record(&jobs[i].record, TASKS);
    free(jobs);
}
END_TEST

static void *region_thread(void *argument)
{
    for (int i = 0; i < 50; i++) {
        struct region_job *job = argument;
        job->record = (struct record){.threads = THREADS};
        region_job(job);
        check_record(&job->record, TASKS);
    }
    return NULL;
}

START_TEST(callers_from_several_threads_share_one_pool)
{
    static struct region_job jobs[3];
    pthread_t threads[3];
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = THREADS, .caller_works = _i == 1}, NULL);
    for (size_t i = 0; i < 3; i++) {
        jobs[i].runtime = attn_pool_runtime(pool, NULL);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, region_thread, &jobs[i]), 0);
    }
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    attn_pool_destroy(pool);
}
END_TEST

struct nest {
    attn_runtime runtime;
    atomic_size_t leaves;
};

static void leaf_task(void *argument, size_t index, size_t worker)
{
    struct nest *nest = argument;
    (void)index;
    (void)worker;
    nest->leaves++;
}

static void branch_task(void *argument, size_t index, size_t worker)
{
    struct nest *nest = argument;
    (void)index;
    (void)worker;
    nest->runtime.run(nest->runtime.context, 10, leaf_task, nest);
}

START_TEST(a_task_may_open_a_region_of_its_own)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = THREADS, .caller_works = _i == 1}, NULL);
    struct nest nest = {.runtime = attn_pool_runtime(pool, NULL)};
    nest.runtime.run(nest.runtime.context, 50, branch_task, &nest);
    ck_assert_uint_eq(nest.leaves, 500);
    attn_pool_destroy(pool);
}
END_TEST

static void mark_job(void *argument)
{
    atomic_bool *is_done = argument;
    *is_done = true;
}

struct long_region {
    atomic_bool *is_job_done;
    atomic_size_t tasks_after_job, tasks_before_job;
};

static void long_task(void *argument, size_t index, size_t worker)
{
    struct long_region *region = argument;
    (void)index;
    (void)worker;
    sleep_ms(5);
    if (*region->is_job_done)
        region->tasks_after_job++;
    else
        region->tasks_before_job++;
}

static void long_job(void *argument)
{
    void **arguments = argument;
    const attn_runtime *runtime = arguments[0];
    runtime->run(runtime->context, 60, long_task, arguments[1]);
}

START_TEST(a_helper_leaves_for_a_job_that_waits)
{
    atomic_bool is_done = false;
    struct long_region region = {.is_job_done = &is_done};
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, NULL);
    attn_runtime runtime = attn_pool_runtime(pool, NULL);
    void *arguments[] = {&runtime, &region};
    ck_assert(attn_pool_submit(pool, long_job, arguments));
    while (region.tasks_before_job == 0) /* until both threads are in the region */
        sleep_ms(1);
    ck_assert(attn_pool_submit(pool, mark_job, &is_done));
    attn_pool_destroy(pool);
    ck_assert_uint_eq(region.tasks_before_job + region.tasks_after_job, 60);
    ck_assert_uint_gt(region.tasks_after_job, 20);
}
END_TEST

START_TEST(one_thread_is_enough)
{
    struct record record = {.threads = 1};
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 1}, NULL);
    const attn_runtime runtime = attn_pool_runtime(pool, NULL);
    runtime.run(runtime.context, TASKS, record_task, &record);
    check_record(&record, TASKS);
    attn_pool_destroy(pool);
}
END_TEST

/* ---- the caller, and processors ---- */

struct who {
    pthread_t caller;
    atomic_size_t started, by_caller, by_others;
    size_t together; /* a task waits until so many have started */
};

static void who_task(void *argument, size_t index, size_t worker)
{
    struct who *who = argument;
    (void)index;
    (void)worker;
    who->started++;
    while (who->started < who->together)
        sched_yield();
    if (pthread_equal(pthread_self(), who->caller))
        who->by_caller++;
    else
        who->by_others++;
}

START_TEST(a_caller_that_works_is_one_of_the_threads)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2, .caller_works = true}, NULL);
    ck_assert_uint_eq(attn_pool_threads(pool), 2);
    const attn_runtime runtime = attn_pool_runtime(pool, NULL);
    ck_assert_uint_eq(runtime.threads, 2);
    struct who who = {.caller = pthread_self(), .together = 2};
    runtime.run(runtime.context, 2, who_task, &who);
    ck_assert_uint_eq(who.by_caller, 1);
    ck_assert_uint_eq(who.by_others, 1);
    atomic_bool is_done = false;
    ck_assert(attn_pool_submit(pool, mark_job, &is_done));
    attn_pool_destroy(pool);
    ck_assert(is_done);
}
END_TEST

START_TEST(any_other_caller_waits)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, NULL);
    const attn_runtime runtime = attn_pool_runtime(pool, NULL);
    struct who who = {.caller = pthread_self()};
    runtime.run(runtime.context, TASKS, who_task, &who);
    ck_assert_uint_eq(who.by_caller, 0);
    ck_assert_uint_eq(who.by_others, TASKS);
    attn_pool_destroy(pool);
}
END_TEST

START_TEST(a_caller_that_works_alone_starts_no_thread)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 1, .caller_works = true}, NULL);
    const attn_runtime runtime = attn_pool_runtime(pool, NULL);
    struct who who = {.caller = pthread_self()};
    runtime.run(runtime.context, TASKS, who_task, &who);
    ck_assert_uint_eq(who.by_caller, TASKS);
    ck_assert(!attn_pool_submit(pool, mark_job, NULL));
    attn_pool_destroy(pool);
}
END_TEST

static void count_processors(void *argument, size_t index, size_t worker)
{
    size_t *processors = argument;
    cpu_set_t own;
    (void)worker;
    ck_assert_int_eq(pthread_getaffinity_np(pthread_self(), sizeof own, &own), 0);
    processors[index] = (size_t)CPU_COUNT(&own);
}

START_TEST(threads_are_bound_only_when_asked)
{
    cpu_set_t all;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    const size_t there = (size_t)CPU_COUNT(&all);
    if (there > ATTN_POOL_THREADS_MAX)
        return;
    for (int pin = 0; pin < 2; pin++) {
        size_t processors[2] = {0};
        attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = there, .pin = pin == 1}, NULL);
        const attn_runtime runtime = attn_pool_runtime(pool, NULL);
        runtime.run(runtime.context, 2, count_processors, processors);
        ck_assert_uint_eq(processors[0], pin == 1 ? 1 : there);
        ck_assert_uint_eq(processors[1], pin == 1 ? 1 : there);
        attn_pool_destroy(pool);
    }
}
END_TEST

CHECK_MAIN("pool")
{
    tcase_add_test(tests, no_threads_make_no_pool);
    tcase_add_test(tests, every_submitted_job_runs_before_the_pool_ends);
    tcase_add_test(tests, jobs_start_in_the_order_of_submission);
    tcase_add_test(tests, a_job_submitted_first_runs_before_all_that_wait);
    tcase_add_loop_test(tests, a_caller_outside_the_pool_gets_every_task_run_once, 0, 2);
    tcase_add_loop_test(tests, idle_threads_join_a_region, 0, 2);
    tcase_add_test(tests, many_jobs_with_regions_at_once_keep_apart);
    tcase_add_loop_test(tests, callers_from_several_threads_share_one_pool, 0, 2);
    tcase_add_loop_test(tests, a_task_may_open_a_region_of_its_own, 0, 2);
    tcase_add_test(tests, a_helper_leaves_for_a_job_that_waits);
    tcase_add_test(tests, one_thread_is_enough);
    tcase_add_test(tests, a_caller_that_works_is_one_of_the_threads);
    tcase_add_test(tests, any_other_caller_waits);
    tcase_add_test(tests, a_caller_that_works_alone_starts_no_thread);
    tcase_add_test(tests, threads_are_bound_only_when_asked);
}
