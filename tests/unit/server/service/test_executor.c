/*
 * test_executor.c: the bounded queue in front of the compute threads: accepted jobs run, jobs beyond the limit are
 * refused at once, and `Retry-After` follows the load.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "check_main.h"

#include "service/executor.h"

/* Jobs that hold their thread until the gate opens. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    size_t entered, left;
};

static void gate_init(struct gate *gate)
{
    *gate = (struct gate){.is_open = false};
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
}

static void gate_job(void *argument)
{
    struct gate *gate = argument;
    pthread_mutex_lock(&gate->lock);
    gate->entered++;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->is_open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    gate->left++;
    pthread_mutex_unlock(&gate->lock);
}

static void gate_await_entered(struct gate *gate, size_t count)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->entered < count)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

START_TEST(one_job_more_than_threads_and_queue_hold_is_refused_at_once)
{
    struct gate gate;
    gate_init(&gate);
    struct executor *executor = executor_create(2, 3, NULL);
    for (int i = 0; i < 5; i++)
        ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    ck_assert(!executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    gate_await_entered(&gate, 2);
    ck_assert_uint_eq(executor_running(executor), 2);
    ck_assert_uint_eq(executor_waiting(executor), 3);
    ck_assert(!executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    gate_open(&gate);
    executor_destroy(executor);
    ck_assert_uint_eq(gate.left, 5);
}
END_TEST

START_TEST(what_goes_on_with_a_job_is_never_refused_and_counts_as_running)
{
    struct gate gate, first;
    gate_init(&gate);
    gate_init(&first);
    struct executor *executor = executor_create(1, 1, NULL);
    ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    gate_await_entered(&gate, 1);
    ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    ck_assert(!executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    ck_assert(executor_continue(executor, gate_job, &first));
    ck_assert_uint_eq(executor_waiting(executor), 1);
    gate_open(&gate);
    gate_await_entered(&first, 1);
    ck_assert_uint_eq(gate.entered, 1); /* the other one still waits */
    ck_assert_uint_eq(executor_running(executor), 1);
    ck_assert(!executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    gate_open(&first);
    executor_destroy(executor);
    ck_assert_uint_eq(gate.left, 2);
    ck_assert_uint_eq(first.left, 1);
}
END_TEST

START_TEST(without_a_queue_every_thread_still_takes_a_job)
{
    struct gate gate;
    gate_init(&gate);
    struct executor *executor = executor_create(2, 0, NULL);
    ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    ck_assert(!executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    gate_open(&gate);
    executor_destroy(executor);
    ck_assert_uint_eq(gate.left, 2);
}
END_TEST

static void sleep_job(void *argument)
{
    (void)argument;
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
}

START_TEST(advice_to_retry_is_at_least_a_second_and_grows_with_what_waits)
{
    struct gate gate;
    gate_init(&gate);
    struct executor *executor = executor_create(1, 20, NULL);
    ck_assert_uint_eq(executor_retry_after_s(executor), 1);
    ck_assert(executor_submit(executor, EXECUTOR_NORMAL, sleep_job, NULL));
    ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    gate_await_entered(&gate, 1);
    for (int i = 0; i < 9; i++)
        ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    ck_assert_uint_ge(executor_retry_after_s(executor), 4); /* ten jobs of 0.4 s */
    gate_open(&gate);
    executor_destroy(executor);
}
END_TEST

START_TEST(impossible_sizes_make_no_executor)
{
    ck_assert_ptr_null(executor_create(0, 1, NULL));
    executor_destroy(NULL);
}
END_TEST

/* Which jobs ran in which order: each appends its letter. */
struct order {
    char letters[32];
    size_t count;
};

struct letter {
    struct order *order;
    char letter;
};

static void letter_job(void *argument)
{
    const struct letter *letter = argument;
    letter->order->letters[letter->order->count++] = letter->letter;
}

START_TEST(urgent_jobs_come_first_and_none_starves)
{
    enum { EACH = 8 };
    struct gate gate;
    struct order order = {.count = 0};
    struct letter letters[] = {{&order, 'h'}, {&order, 'n'}, {&order, 'l'}};
    gate_init(&gate);
    struct executor *executor = executor_create(1, 3 * 2 * EACH, NULL);
    ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    gate_await_entered(&gate, 1);
    for (executor_priority i = EXECUTOR_PRIORITIES; i-- > 0;) /* the least urgent come first */
        for (size_t k = 0; k < EACH; k++)
            ck_assert(executor_submit(executor, i, letter_job, &letters[i]));
    gate_open(&gate);
    executor_destroy(executor);
    ck_assert_uint_eq(order.count, 3 * EACH);
    ck_assert_ptr_null(memchr(order.letters + 2 * EACH, 'h', EACH)); /* all urgent ones are through by then, */
    ck_assert_ptr_nonnull(memchr(order.letters, 'l', EACH));         /* and of each eight one of the least urgent */
    ck_assert_ptr_nonnull(memchr(order.letters, 'n', EACH));
    size_t urgent = 0;
    for (size_t i = 0; i < EACH; i++)
        urgent += order.letters[i] == 'h';
    ck_assert_uint_ge(urgent, 4);
}
END_TEST

/* Each job queues itself again, like the continuation of an answer with a fast reader. */
struct going_on {
    struct executor *executor;
    struct order *order;
    struct gate *end;
    size_t left;
};

static void go_on(void *argument)
{
    struct going_on *it = argument;
    it->order->letters[it->order->count++] = 'c';
    if (--it->left > 0)
        ck_assert(executor_continue(it->executor, go_on, it));
    else
        gate_job(it->end);
}

START_TEST(what_goes_on_without_end_lets_jobs_through)
{
    struct gate gate, end;
    struct order order = {.count = 0};
    struct letter letter = {&order, 'j'};
    gate_init(&gate);
    gate_init(&end);
    gate_open(&end);
    struct executor *executor = executor_create(1, 4, NULL);
    struct going_on one = {executor, &order, &end, 8}, other = one;
    ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    gate_await_entered(&gate, 1);
    for (int i = 0; i < 4; i++)
        ck_assert(executor_submit(executor, EXECUTOR_NORMAL, letter_job, &letter));
    ck_assert(executor_continue(executor, go_on, &one));
    ck_assert(executor_continue(executor, go_on, &other));
    gate_open(&gate);
    gate_await_entered(&end, 2);
    executor_destroy(executor);
    ck_assert_msg(strncmp(order.letters, "cjcjcjcjcccc", 12) == 0, "%s", order.letters);
    ck_assert_uint_eq(order.count, 4 + 2 * 8);
}
END_TEST

START_TEST(what_goes_on_comes_in_order)
{
    struct gate gate;
    struct order order = {.count = 0};
    struct letter letters[] = {{&order, '1'}, {&order, '2'}, {&order, '3'}};
    gate_init(&gate);
    struct executor *executor = executor_create(1, 4, NULL);
    ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    gate_await_entered(&gate, 1);
    for (size_t i = 0; i < COUNT(letters); i++)
        ck_assert(executor_continue(executor, letter_job, &letters[i]));
    gate_open(&gate);
    executor_destroy(executor);
    ck_assert_str_eq(order.letters, "123");
}
END_TEST

START_TEST(the_least_urgent_fill_half_of_the_queue)
{
    struct gate gate;
    gate_init(&gate);
    struct executor *executor = executor_create(1, 4, NULL);
    ck_assert(executor_submit(executor, EXECUTOR_LOW, gate_job, &gate));
    gate_await_entered(&gate, 1);
    ck_assert(executor_submit(executor, EXECUTOR_LOW, gate_job, &gate));
    ck_assert(executor_submit(executor, EXECUTOR_LOW, gate_job, &gate));
    ck_assert(!executor_submit(executor, EXECUTOR_LOW, gate_job, &gate));
    ck_assert(executor_is_full(executor, EXECUTOR_LOW));
    ck_assert(!executor_is_full(executor, EXECUTOR_NORMAL));
    ck_assert(executor_submit(executor, EXECUTOR_NORMAL, gate_job, &gate));
    ck_assert(executor_submit(executor, EXECUTOR_HIGH, gate_job, &gate));
    ck_assert(executor_is_full(executor, EXECUTOR_HIGH));
    gate_open(&gate);
    executor_destroy(executor);
    ck_assert_uint_eq(gate.left, 5);
}
END_TEST

static void add_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    atomic_fetch_add((atomic_size_t *)argument, index);
}

START_TEST(its_runtime_computes)
{
    atomic_size_t sum = 0;
    struct executor *executor = executor_create(2, 1, attn_kernel_by_name("portable"));
    const attn_runtime runtime = executor_runtime(executor);
    ck_assert_str_eq(attn_kernel_name(runtime.kernel), "portable");
    runtime.run(runtime.context, 101, add_task, &sum);
    ck_assert_uint_eq(sum, 5050);
    executor_destroy(executor);
}
END_TEST

CHECK_MAIN("executor")
{
    tcase_add_test(tests, one_job_more_than_threads_and_queue_hold_is_refused_at_once);
    tcase_add_test(tests, what_goes_on_with_a_job_is_never_refused_and_counts_as_running);
    tcase_add_test(tests, without_a_queue_every_thread_still_takes_a_job);
    tcase_add_test(tests, advice_to_retry_is_at_least_a_second_and_grows_with_what_waits);
    tcase_add_test(tests, urgent_jobs_come_first_and_none_starves);
    tcase_add_test(tests, what_goes_on_without_end_lets_jobs_through);
    tcase_add_test(tests, what_goes_on_comes_in_order);
    tcase_add_test(tests, the_least_urgent_fill_half_of_the_queue);
    tcase_add_test(tests, impossible_sizes_make_no_executor);
    tcase_add_test(tests, its_runtime_computes);
}
