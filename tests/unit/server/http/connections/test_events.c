/*
 * test_events.c: tests of server/http/connections/events.c: answers as streams of events, while the service of the test
 * computes what the test wants.
 */
#include "http/connections/events.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/progress.h"
#include "check_main.h"
#include "codec/bytes/pace.h"
#include "http_client.h"
#include "http_stage.h"

#define POST_AS(version, fields)                                                                                       \
    "POST /v1/attention HTTP/" version "\r\nHost: a\r\nContent-Type: application/json\r\n" fields                      \
    "Content-Length: 2\r\n\r\n{}"
#define EVENTS "Accept: text/event-stream\r\n"

/* The state of the service is global, because a service has no argument of its own. Check forks a process per test. */
static atomic_bool is_shut; /* the service waits until this is false, or until it is cancelled */
static atomic_size_t begun, looks;
static attn_status outcome;
static bool is_guarded;
static uint64_t steps;
static _Atomic double least_ms; /* that a step takes */

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void await(const atomic_size_t *counter, size_t least)
{
    for (int i = 0; i < 120000 && *counter < least; i++)
        sleep_ms(1);
    ck_assert_uint_ge(*counter, least);
}

/* Two threads look whether they go on, as those of a computation do. */
static void look(void *argument, size_t index, size_t worker)
{
    const struct call *call = argument;
    (void)worker;
    for (const double until = clock_now_ms() + least_ms; index > 0 && (is_shut || clock_now_ms() < until);
         sleep_ms(1)) {
        if (pace_is_cancelled(call->in.runtime))
            return;
        looks++;
    }
    (void)pace_is_cancelled(call->in.runtime);
}

static attn_status compute(struct call *call)
{
    const attn_runtime *runtime = call->in.runtime;
    begun++;
    if (outcome == ATTN_ERR_FIELD)
        return attn_fail(call->err, ATTN_ERR_FIELD, "/a", "a is wrong");
    call->is_guarded = is_guarded;
    progress_set(call->in.progress, PROGRESS_LAYER, 0, steps);
    for (uint64_t i = 0; i < steps; i++) {
        runtime->run(runtime->context, 4, look, call);
        if (pace_is_cancelled(runtime))
            return attn_fail(call->err, ATTN_ERR_CANCELLED, NULL, "stopped before the end");
        progress_add(call->in.progress, PROGRESS_LAYER, 1, 0);
    }
    if (outcome != ATTN_OK)
        return attn_fail(call->err, outcome, "/b", "b is wrong");
    chunks_text(call->out, "{\"steps\":");
    chunks_count(call->out, steps);
    chunks_text(call->out, "}");
    return call->out->is_ok ? ATTN_OK : attn_fail_no_memory(call->err);
}

static struct http_stage stage;

static void set_up(void)
{
    steps = 3;
    stage = http_stage_of(compute);
    http_stage_start(&stage);
}

static void tear_down(void)
{
    http_stage_stop(&stage);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

/* The body ends with an event of that name and data. */
static void expect_last(const struct http_answer *answer, const char *name, const char *data)
{
    char *event = malloc(strlen(name) + strlen(data) + 32);
    ck_assert_ptr_nonnull(event);
    sprintf(event, "event: %s\ndata: %s\n\n", name, data);
    ck_assert_uint_ge(answer->body_bytes, strlen(event));
    ck_assert_str_eq(answer->body + answer->body_bytes - strlen(event), event);
    free(event);
}

START_TEST(the_last_event_has_the_bytes_of_the_plain_answer)
{
    struct http_client client = http_open(stage.port);
    for (int i = 0; i < 2; i++) {
        ck_assert(http_send(&client, POST_AS("1.1", "")));
        struct http_answer plain = http_read(&client, false);
        ck_assert_str_eq(plain.body, "{\"steps\":3}");
        least_ms = 120;
        ck_assert(http_send(&client, POST_AS("1.1", EVENTS "Accept-Encoding: gzip\r\n")));
        struct http_answer answer = http_read(&client, false);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_str_eq(http_field(&answer, "Content-Type"), "text/event-stream");
        ck_assert_str_eq(http_field(&answer, "Vary"), "Accept, Accept-Encoding");
        ck_assert_ptr_null(http_field(&answer, "Content-Encoding"));
        ck_assert_ptr_nonnull(
            strstr(answer.body, "event: progress\ndata: {\"done\":0,\"of\":3,\"what\":\"layer\"}\n\n"));
        ck_assert_ptr_nonnull(
            strstr(answer.body, "event: progress\ndata: {\"done\":1,\"of\":3,\"what\":\"layer\"}\n\n"));
        expect_last(&answer, "result", plain.body);
        ck_assert_uint_eq(count_of(answer.body, "event: "), count_of(answer.body, "event: progress") + 1);
        least_ms = 0;
        http_free(&plain);
        http_free(&answer);
    }
    http_close(&client);
}
END_TEST

/* A client of HTTP/1.0 gets no chunks: the stream ends with the connection. */
START_TEST(a_client_of_http_1_0_gets_events)
{
    static const char last[] = "event: result\ndata: {\"steps\":3}\n\n";
    char text[4096];
    size_t length = 0;
    ssize_t got;
    least_ms = 120;
    struct http_client client = http_open(stage.port);
    ck_assert(http_send(&client, POST_AS("1.0", EVENTS)));
    while ((got = recv(client.fd, text + length, sizeof text - 1 - length, 0)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    ck_assert_ptr_null(strstr(text, "chunked"));
    ck_assert_ptr_nonnull(strstr(text, "\r\n\r\nevent: progress\n"));
    ck_assert_uint_gt(length, strlen(last));
    ck_assert_str_eq(text + length - strlen(last), last);
    http_close(&client);
}
END_TEST

/* What an answer tells of kept data is known when the computation begins. */
START_TEST(a_guarded_stream_is_not_for_every_page)
{
    least_ms = 120;
    for (int i = 0; i < 2; i++) {
        is_guarded = i == 1;
        struct http_answer answer = http_ask(stage.port, POST_AS("1.1", EVENTS "Origin: http://page.example\r\n"));
        ck_assert_int_eq(answer.status, 200);
        ck_assert_ptr_nonnull(strstr(answer.body, "event: progress"));
        ck_assert_int_eq(http_field(&answer, "Access-Control-Allow-Origin") == NULL, is_guarded);
        http_free(&answer);
    }
}
END_TEST

/* The time of the whole request, by the clock of the test, bounds the number of events. */
START_TEST(there_are_at_most_ten_events_a_second)
{
    steps = 1000;
    least_ms = 1;
    const double since = clock_now_ms();
    struct http_answer answer = http_ask(stage.port, POST_AS("1.1", EVENTS "Connection: close\r\n"));
    const double took_ms = clock_now_ms() - since;
    const size_t events = count_of(answer.body, "event: progress");
    ck_assert_uint_ge(events, 1);
    ck_assert_double_le((double)events, took_ms / 100 + 2);
    expect_last(&answer, "result", "{\"steps\":1000}");
    http_free(&answer);
}
END_TEST

START_TEST(an_error_before_the_computation_has_its_status)
{
    outcome = ATTN_ERR_FIELD;
    struct http_answer answer = http_ask(stage.port, POST_AS("1.1", EVENTS));
    ck_assert_int_eq(answer.status, 400);
    ck_assert_str_eq(http_field(&answer, "Content-Type"), "application/json");
    ck_assert_ptr_nonnull(strstr(answer.body, "a is wrong"));
    http_free(&answer);
}
END_TEST

START_TEST(an_error_behind_the_first_event_is_the_last_event)
{
    outcome = ATTN_ERR_VALUE;
    least_ms = 120;
    struct http_answer answer = http_ask(stage.port, POST_AS("1.1", EVENTS "X-Request-Id: it\r\n"));
    ck_assert_int_eq(answer.status, 200);
    outcome = ATTN_OK;
    const char *error = strstr(answer.body, "event: error\ndata: {\"error\":\"b is wrong\"");
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(strstr(error, "\"status\":400"));
    ck_assert_ptr_nonnull(strstr(error, "\"pointer\":\"/b\",\"request_id\":\"it\"}\n\n"));
    ck_assert_ptr_null(strstr(answer.body, "event: result"));
    http_free(&answer);
}
END_TEST

START_TEST(the_deadline_is_an_error_event)
{
    is_shut = true;
    struct http_answer answer = http_ask(stage.port, POST_AS("1.1", EVENTS "Request-Timeout: 0.3\r\n"));
    ck_assert_int_eq(answer.status, 200);
    ck_assert_ptr_nonnull(strstr(answer.body, "event: error\n"));
    ck_assert_ptr_nonnull(strstr(answer.body, "\"type\":\"/problems/deadline\""));
    http_free(&answer);
}
END_TEST

/* Reads the first event. */
static struct http_client client_of_a_stream(void)
{
    is_shut = true;
    struct http_client client = http_open(stage.port);
    ck_assert(http_send(&client, POST_AS("1.1", EVENTS)));
    await(&begun, 1);
    await(&looks, 300);
    return client;
}

START_TEST(a_client_that_leaves_ends_the_computation)
{
    const atomic_uint_fast64_t *cancelled = &stage.setup.metrics->cancelled[METRICS_CLIENT_GONE];
    for (size_t i = 1; i <= 3; i++) {
        struct http_client client = client_of_a_stream();
        http_close(&client);
        for (int wait = 0; wait < 120000 && *cancelled < i; wait++)
            sleep_ms(1);
        ck_assert_uint_eq(*cancelled, i);
        looks = begun = 0;
    }
    is_shut = false;
    struct http_answer answer = http_ask(stage.port, POST_AS("1.1", ""));
    ck_assert_int_eq(answer.status, 200);
    http_free(&answer);
}
END_TEST

/* A client that has sent all it has to say may still read. */
START_TEST(a_half_closed_client_gets_its_result)
{
    struct http_client client = client_of_a_stream();
    ck_assert_int_eq(shutdown(client.fd, SHUT_WR), 0);
    sleep_ms(400);
    is_shut = false;
    struct http_answer answer = http_read(&client, false);
    expect_last(&answer, "result", "{\"steps\":3}");
    http_free(&answer);
    http_close(&client);
}
END_TEST

START_TEST(a_server_that_ends_says_so_in_the_last_event)
{
    struct http_client client = client_of_a_stream();
    http_daemon_stop_listening(stage.server);
    ck_assert(!http_daemon_await_idle(stage.server, 1));
    http_stage_stop(&stage);
    struct http_answer answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_ptr_nonnull(strstr(answer.body, "event: error\ndata: "));
    ck_assert_ptr_nonnull(strstr(answer.body, "\"status\":503"));
    http_free(&answer);
    http_close(&client);
    http_stage_start(&stage);
}
END_TEST

/* A draining server finishes the streams that have begun. */
START_TEST(a_draining_server_sends_the_result)
{
    struct http_client client = client_of_a_stream();
    http_daemon_stop_listening(stage.server);
    is_shut = false;
    struct http_answer answer = http_read(&client, false);
    expect_last(&answer, "result", "{\"steps\":3}");
    ck_assert(http_daemon_await_idle(stage.server, 30));
    http_free(&answer);
    http_close(&client);
}
END_TEST

/* Streams next to each other, and clients that leave at any moment. */
START_TEST(many_streams_end_in_any_order)
{
    enum { CLIENTS = 24 };
    struct http_client clients[CLIENTS];
    steps = 2;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = http_open(stage.port);
        ck_assert(http_send(&clients[i], POST_AS("1.1", EVENTS)));
        least_ms = i * 5 % 13;
    }
    for (int i = 0; i < CLIENTS; i++) {
        if (i % 3 != 0) {
            struct http_answer answer = http_read(&clients[i], false);
            ck_assert(answer.status == 200 || answer.status == 503);
            http_free(&answer);
        }
        http_close(&clients[i]);
    }
}
END_TEST

CHECK_MAIN("events")
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_last_event_has_the_bytes_of_the_plain_answer);
    tcase_add_test(tests, a_client_of_http_1_0_gets_events);
    tcase_add_test(tests, a_guarded_stream_is_not_for_every_page);
    tcase_add_test(tests, there_are_at_most_ten_events_a_second);
    tcase_add_test(tests, an_error_before_the_computation_has_its_status);
    tcase_add_test(tests, an_error_behind_the_first_event_is_the_last_event);
    tcase_add_test(tests, the_deadline_is_an_error_event);
    tcase_add_test(tests, a_client_that_leaves_ends_the_computation);
    tcase_add_test(tests, a_half_closed_client_gets_its_result);
    tcase_add_test(tests, a_server_that_ends_says_so_in_the_last_event);
    tcase_add_test(tests, a_draining_server_sends_the_result);
    tcase_add_test(tests, many_streams_end_in_any_order);
}
