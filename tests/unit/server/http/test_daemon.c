/*
 * test_daemon.c: the server as a whole: many clients at once, a full queue, draining under load, and limits in time.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "check_main.h"
#include "http_client.h"
#include "http_stage.h"

#define POST      "POST /v1/attention HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void await_begun(size_t jobs)
{
    for (int i = 0; i < 60000 && http_stage_begun() < jobs; i++)
        sleep_ms(1);
    ck_assert_uint_ge(http_stage_begun(), jobs);
}

struct caller {
    pthread_t thread;
    unsigned port;
    atomic_size_t requests; /* requests that are left; 0 ends the thread */
    size_t answered, closed, unanswered;
};

/* Sends requests on one connection. Opens a new one when an answer closes it. */
static void *call(void *argument)
{
    struct caller *caller = argument;
    struct http_client client = http_open(caller->port);
    for (size_t i = 0; i < caller->requests && client.fd >= 0; i++) {
        http_send(&client, POST);
        struct http_answer answer = http_read(&client, false);
        const char *connection = answer.status != 0 ? strstr(answer.head, "Connection: close") : NULL;
        caller->answered += answer.status == 200 && strcmp(answer.body, "{}") == 0;
        caller->unanswered += answer.status == 0;
        http_free(&answer);
        if (connection != NULL || caller->unanswered > 0) {
            caller->closed++;
            http_close(&client);
            client = http_open(caller->port);
        }
    }
    http_close(&client);
    return NULL;
}

static void call_at_once(struct caller *callers, size_t count, unsigned port, size_t requests)
{
    for (size_t i = 0; i < count; i++) {
        callers[i] = (struct caller){.port = port, .requests = requests};
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
}

START_TEST(many_clients_at_once_are_all_served)
{
    enum { CALLERS = 24, REQUESTS = 30 };
    struct caller callers[CALLERS];
    struct http_stage stage = http_stage_of(http_stage_echo);
    stage.queue = CALLERS;
    http_stage_start(&stage);
    call_at_once(callers, CALLERS, stage.port, REQUESTS);
    for (size_t i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_uint_eq(callers[i].answered, REQUESTS);
    }
    http_stage_stop(&stage);
}
END_TEST

START_TEST(probes_answer_while_every_compute_thread_is_busy)
{
    struct http_stage stage = http_stage_of(http_stage_wait);
    http_stage_start(&stage);
    struct http_client clients[2] = {http_open(stage.port), http_open(stage.port)};
    http_send(&clients[0], POST);
    http_send(&clients[1], POST);
    await_begun(2);
    struct http_answer answer = http_ask(stage.port, GET("/livez")); /* the jobs wait until they are released below */
    ck_assert_int_eq(answer.status, 200);
    http_free(&answer);
    http_stage_release();
    for (size_t i = 0; i < 2; i++) {
        answer = http_read(&clients[i], false);
        ck_assert_int_eq(answer.status, 200);
        http_free(&answer);
        http_close(&clients[i]);
    }
    http_stage_stop(&stage);
}
END_TEST

static void hold_thread(void *argument)
{
    const atomic_bool *is_released = argument;
    http_stage_note_begun();
    while (!*is_released)
        sleep_ms(1);
}

static void send_attention(struct http_client *client, const char *body)
{
    char request[600];
    snprintf(
        request, sizeof request,
        "POST /v1/attention HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        strlen(body), body);
    http_send(client, request);
}

START_TEST(a_small_request_waits_for_no_compute_thread_but_a_small_body_that_means_much_does)
{
    enum { LENGTH = 64 }; /* and so 4096 weights in the answer */
    char much[400] = "{\"inputs\":{\"query\":[";
    for (size_t i = 0; i < LENGTH; i++)
        strcat(much, i > 0 ? ",[0]" : "[0]");
    strcat(much, "]}}");
    atomic_bool is_released = false;
    struct http_stage stage = http_stage_of(NULL);
    http_stage_start(&stage);
    for (size_t i = 0; i < stage.compute_threads; i++)
        ck_assert(executor_submit(stage.executor, EXECUTOR_NORMAL, hold_thread, &is_released));
    await_begun(stage.compute_threads);
    struct http_client small = http_open(stage.port), large = http_open(stage.port);
    send_attention(&large, much);
    while (executor_waiting(stage.executor) < 1)
        sleep_ms(1);
    send_attention(&small, "{\"inputs\":{\"query\":[[1,2],[3,4]]}}");
    struct http_answer answer = http_read(&small, false);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_ptr_nonnull(strstr(answer.body, "\"output\":[["));
    ck_assert_uint_eq(executor_waiting(stage.executor), 1);
    http_free(&answer);
    is_released = true;
    answer = http_read(&large, false);
    ck_assert_int_eq(answer.status, 200);
    http_free(&answer);
    http_close(&small);
    http_close(&large);
    http_stage_stop(&stage);
}
END_TEST

enum { WAITING = 3 };

/* Two jobs compute, and a third one fills the queue. */
static void fill_queue(struct http_stage *stage, struct http_client clients[WAITING])
{
    *stage = http_stage_of(http_stage_wait);
    stage->queue = 1;
    http_stage_start(stage);
    for (size_t i = 0; i < WAITING; i++) {
        clients[i] = http_open(stage->port);
        http_send(&clients[i], POST);
        if (i == 1)
            await_begun(2);
    }
    while (executor_waiting(stage->executor) < 1)
        sleep_ms(1);
}

static void empty_queue(struct http_stage *stage, struct http_client clients[WAITING])
{
    http_stage_release();
    for (size_t i = 0; i < WAITING; i++) {
        struct http_answer answer = http_read(&clients[i], false);
        ck_assert_int_eq(answer.status, 200);
        http_free(&answer);
        http_close(&clients[i]);
    }
    http_stage_stop(stage);
}

static void expect_busy(struct http_client *client, bool is_closed)
{
    struct http_answer answer = http_read(client, false);
    ck_assert_int_eq(answer.status, 503);
    ck_assert_int_ge(atoi(http_field(&answer, "Retry-After")), 1);
    ck_assert_ptr_nonnull(strstr(answer.body, "queue is full"));
    ck_assert_int_eq(strstr(answer.head, "Connection: close") != NULL, is_closed);
    http_free(&answer);
}

static void send_header(struct http_client *client, size_t bytes, const char *fields)
{
    char header[300];
    snprintf(
        header, sizeof header,
        "POST /v1/attention HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
        bytes, fields);
    http_send(client, header);
}

START_TEST(a_full_queue_is_told_at_once_with_a_time_to_come_back)
{
    static const size_t sizes[] = {2, 4096, 4097, 65536, 65537, 1 << 20};
    static char body[1 << 20];
    memset(body, ' ', sizeof body);
    struct http_stage stage;
    struct http_client waiting[WAITING];
    fill_queue(&stage, waiting);
    struct http_client client = http_open(stage.port);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        send_header(&client, sizes[i], "");
        http_send_bytes(&client, body, sizes[i]);
        expect_busy(&client, false);
    }
    http_close(&client);
    ck_assert_uint_eq(http_stage_begun(), 2);
    empty_queue(&stage, waiting);
}
END_TEST

START_TEST(who_asks_before_the_body_is_told_of_a_full_queue_without_sending_it)
{
    struct http_stage stage;
    struct http_client waiting[WAITING];
    fill_queue(&stage, waiting);
    struct http_client client = http_open(stage.port);
    send_header(&client, 1 << 20, "Expect: 100-continue\r\n");
    expect_busy(&client, true);
    http_close(&client);
    empty_queue(&stage, waiting);
}
END_TEST

START_TEST(a_body_that_takes_its_time_may_find_room_at_its_end)
{
    enum { BYTES = 100000 };
    static char body[BYTES];
    memset(body, ' ', sizeof body);
    struct http_stage stage;
    struct http_client waiting[WAITING];
    fill_queue(&stage, waiting);
    struct http_client client = http_open(stage.port);
    send_header(&client, BYTES, "");
    http_send_bytes(&client, body, BYTES / 2);
    http_stage_release();
    while (executor_is_full(stage.executor, EXECUTOR_NORMAL))
        sleep_ms(1);
    http_send_bytes(&client, body, BYTES - BYTES / 2);
    struct http_answer answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 200);
    http_free(&answer);
    http_close(&client);
    empty_queue(&stage, waiting);
}
END_TEST

START_TEST(draining_is_told_and_finishes_what_runs)
{
    struct http_stage stage = http_stage_of(http_stage_wait);
    http_stage_start(&stage);
    struct http_client client = http_open(stage.port), idle = http_open(stage.port);
    http_send(&client, POST);
    await_begun(1);
    http_daemon_begin_drain(stage.server);
    struct http_answer answer = http_ask(stage.port, GET("/readyz"));
    ck_assert_int_eq(answer.status, 503);
    ck_assert_ptr_nonnull(strstr(answer.body, "draining"));
    ck_assert_str_eq(http_field(&answer, "Connection"), "close");
    http_free(&answer);
    http_daemon_stop_listening(stage.server);
    ck_assert_int_eq(http_ask(stage.port, GET("/livez")).status, 0); /* refused: the server does not listen any more */
    http_send(&idle, GET("/livez"));
    answer = http_read(&idle, false); /* an open connection is still served */
    ck_assert_int_eq(answer.status, 200);
    http_free(&answer);
    ck_assert(!http_daemon_await_idle(stage.server, 0));
    http_stage_release();
    answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(http_field(&answer, "Connection"), "close");
    ck_assert(http_daemon_await_idle(stage.server, 120));
    http_free(&answer);
    http_close(&client);
    http_close(&idle);
    http_stage_stop(&stage);
}
END_TEST

START_TEST(a_drain_under_load_loses_no_request)
{
    enum { CALLERS = 8 };
    struct caller callers[CALLERS];
    struct http_stage stage = http_stage_of(http_stage_echo);
    stage.queue = CALLERS;
    http_stage_start(&stage);
    call_at_once(callers, CALLERS, stage.port, 100000);
    sleep_ms(100);
    http_daemon_begin_drain(stage.server);
    sleep_ms(100);
    /* A connection in the kernel's backlog is lost with the socket, so no client may be about to connect. */
    for (size_t i = 0; i < CALLERS; i++)
        callers[i].requests = 0;
    for (size_t i = 0; i < CALLERS; i++)
        pthread_join(callers[i].thread, NULL);
    http_daemon_stop_listening(stage.server);
    ck_assert(http_daemon_await_idle(stage.server, 120));
    http_stage_stop(&stage);
    for (size_t i = 0; i < CALLERS; i++) {
        ck_assert_uint_gt(callers[i].answered, 0);
        ck_assert_uint_gt(callers[i].closed, 0);
        ck_assert_uint_eq(callers[i].unanswered, 0);
    }
}
END_TEST

START_TEST(stopping_ends_running_and_waiting_jobs_with_an_answer)
{
    enum { CLIENTS = 6 };
    struct http_stage stage = http_stage_of(http_stage_wait);
    http_stage_start(&stage);
    struct http_client clients[CLIENTS];
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = http_open(stage.port);
        http_send(&clients[i], POST);
    }
    await_begun(2);
    while (executor_waiting(stage.executor) < CLIENTS - 2)
        sleep_ms(1);
    http_stage_stop(&stage);
    for (size_t i = 0; i < CLIENTS; i++) {
        struct http_answer answer = http_read(&clients[i], false);
        ck_assert_int_eq(answer.status, 503);
        ck_assert_ptr_nonnull(http_field(&answer, "Retry-After"));
        http_free(&answer);
        http_close(&clients[i]);
    }
}
END_TEST

START_TEST(a_client_that_leaves_ends_its_job)
{
    struct http_stage stage = http_stage_of(http_stage_wait);
    http_stage_start(&stage);
    struct http_client client = http_open(stage.port);
    http_send(&client, POST);
    await_begun(1);
    http_close(&client);
    ck_assert(http_daemon_await_idle(stage.server, 120)); /* although the gate is still closed */
    http_stage_stop(&stage);
}
END_TEST

START_TEST(a_half_closed_client_is_served_when_the_setting_says_so)
{
    struct http_stage stage = http_stage_of(http_stage_wait);
    stage.setup.cancels_on_half_close = false;
    http_stage_start(&stage);
    struct http_client client = http_open(stage.port);
    http_send(&client, POST);
    shutdown(client.fd, SHUT_WR);
    await_begun(1);
    sleep_ms(600);
    http_stage_release();
    struct http_answer answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 200);
    http_free(&answer);
    http_close(&client);
    http_stage_stop(&stage);
}
END_TEST

START_TEST(a_body_that_trickles_in_is_cut_off)
{
    struct http_stage stage = http_stage_of(http_stage_echo);
    stage.setup.receive_timeout_s = 1;
    http_stage_start(&stage);
    struct http_client client = http_open(stage.port);
    http_send(&client, "POST /v1/attention HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
    int sent = 0; /* without a cut these bytes take 50 s and are not yet the whole body */
    while (sent < 999 && http_send(&client, "x")) {
        sent++;
        sleep_ms(50);
    }
    ck_assert_int_lt(sent, 999);
    http_close(&client);
    http_stage_stop(&stage);
}
END_TEST

START_TEST(silence_is_cut_off_in_time)
{
    struct http_stage stage = http_stage_of(http_stage_echo);
    stage.setup.idle_timeout_s = 1;
    http_stage_start(&stage);
    struct http_client client = http_open(stage.port);
    http_send(&client, "GET /livez HT");
    ck_assert(http_is_closed(&client));
    http_close(&client);
    http_stage_stop(&stage);
}
END_TEST

static attn_status hungry(struct call *call)
{
    while (attn_arena_take(call->out->arena, 1, 4096) != NULL)
        continue;
    return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "the arena is full");
}

START_TEST(a_full_arena_is_a_503_that_still_says_why)
{
    struct http_stage stage = http_stage_of(hungry);
    http_stage_start(&stage);
    struct http_answer answer = http_ask(stage.port, POST);
    ck_assert_int_eq(answer.status, 503);
    ck_assert_ptr_nonnull(strstr(answer.body, "the arena is full"));
    ck_assert_ptr_nonnull(http_field(&answer, "Retry-After"));
    http_free(&answer);
    http_stage_stop(&stage);
}
END_TEST

static attn_status until_cancelled(struct call *call)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    while (!call->in.runtime->is_cancelled(call->in.runtime->cancel_context))
        nanosleep(&pause, NULL);
    return attn_fail(call->err, ATTN_ERR_CANCELLED, NULL, "stopped before the end");
}

START_TEST(a_deadline_stops_the_work_and_is_told)
{
    struct http_stage stage = http_stage_of(until_cancelled);
    stage.setup.deadline_s = 1;
    http_stage_start(&stage);
    struct http_answer answer = http_ask(stage.port, POST);
    ck_assert_int_eq(answer.status, 504);
    ck_assert_ptr_nonnull(strstr(answer.body, "/problems/deadline"));
    http_free(&answer);
    http_stage_stop(&stage);
}
END_TEST

static attn_status each_failure(struct call *call)
{
    return attn_fail(call->err, (attn_status)(call->in.body[0] - '0'), "/inputs/key", "as asked");
}

START_TEST(failures_become_the_status_of_whose_fault_they_are)
{
    static const int expected[] = {0, 400, 400, 400, 400, 413, 503, 503};
    struct http_stage stage = http_stage_of(each_failure);
    http_stage_start(&stage);
    for (int i = ATTN_ERR_SYNTAX; i <= ATTN_ERR_CANCELLED; i++) {
        char request[160];
        snprintf(request, sizeof request, "POST /v1/attention HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n%d", i);
        struct http_answer answer = http_ask(stage.port, request);
        ck_assert_int_eq(answer.status, expected[i]);
        ck_assert_ptr_nonnull(strstr(answer.body, "/inputs/key"));
        ck_assert_ptr_nonnull(strstr(answer.body, attn_status_name((attn_status)i)));
        http_free(&answer);
    }
    http_stage_stop(&stage);
}
END_TEST

START_TEST(only_listed_origins_may_read_answers)
{
    struct http_stage stage = http_stage_of(http_stage_echo);
    stage.setup.cors_origin = "https://a.example, https://b.example";
    http_stage_start(&stage);
    struct http_answer answer =
        http_ask(stage.port, "GET /livez HTTP/1.1\r\nHost: a\r\nOrigin: https://b.example\r\n\r\n");
    ck_assert_str_eq(http_field(&answer, "Access-Control-Allow-Origin"), "https://b.example");
    ck_assert_str_eq(http_field(&answer, "Vary"), "Origin");
    http_free(&answer);
    answer = http_ask(stage.port, "GET /livez HTTP/1.1\r\nHost: a\r\nOrigin: https://c.example\r\n\r\n");
    ck_assert_ptr_null(http_field(&answer, "Access-Control-Allow-Origin"));
    ck_assert_str_eq(http_field(&answer, "Vary"), "Origin");
    http_free(&answer);
    http_stage_stop(&stage);
}
END_TEST

START_TEST(a_taken_port_is_refused_with_its_name)
{
    char message[256], port[16];
    struct http_stage stage = http_stage_of(http_stage_echo);
    http_stage_start(&stage);
    snprintf(port, sizeof port, "%u", stage.port);
    struct http_setup second = stage.setup;
    second.port = port;
    ck_assert_ptr_null(http_daemon_start(&second, message, sizeof message));
    ck_assert_ptr_nonnull(strstr(message, port));
    http_stage_stop(&stage);
}
END_TEST

CHECK_MAIN("daemon")
{
    tcase_add_test(tests, many_clients_at_once_are_all_served);
    tcase_add_test(tests, a_small_request_waits_for_no_compute_thread_but_a_small_body_that_means_much_does);
    tcase_add_test(tests, probes_answer_while_every_compute_thread_is_busy);
    tcase_add_test(tests, a_full_queue_is_told_at_once_with_a_time_to_come_back);
    tcase_add_test(tests, who_asks_before_the_body_is_told_of_a_full_queue_without_sending_it);
    tcase_add_test(tests, a_body_that_takes_its_time_may_find_room_at_its_end);
    tcase_add_test(tests, draining_is_told_and_finishes_what_runs);
    tcase_add_test(tests, a_drain_under_load_loses_no_request);
    tcase_add_test(tests, stopping_ends_running_and_waiting_jobs_with_an_answer);
    tcase_add_test(tests, a_client_that_leaves_ends_its_job);
    tcase_add_test(tests, a_half_closed_client_is_served_when_the_setting_says_so);
    tcase_add_test(tests, a_body_that_trickles_in_is_cut_off);
    tcase_add_test(tests, silence_is_cut_off_in_time);
    tcase_add_test(tests, a_full_arena_is_a_503_that_still_says_why);
    tcase_add_test(tests, a_deadline_stops_the_work_and_is_told);
    tcase_add_test(tests, failures_become_the_status_of_whose_fault_they_are);
    tcase_add_test(tests, only_listed_origins_may_read_answers);
    tcase_add_test(tests, a_taken_port_is_refused_with_its_name);
}
