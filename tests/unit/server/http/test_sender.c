/*
 * test_sender.c: answers that are written while they are sent: they are whole or broken off, and a slow client delays
 * no other.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "check_main.h"
#include "codec/bytes/stream.h"
#include "http_client.h"
#include "http_stage.h"
#include "service/endpoints.h"

#define POST_AS(version, fields)                                                                                       \
    "POST /v1/attention HTTP/" version "\r\nHost: a\r\nContent-Type: application/json\r\n" fields                      \
    "Content-Length: 2\r\n\r\n{}"
#define POST POST_AS("1.1", "")

enum { PIECE = 30000, PIECES = 1000 };

/* The state of the service is global, because a service has no argument of its own. Check forks a process per test. */
static bool is_length_known;
static atomic_bool is_shut; /* pieces from the second batch on wait until this is false */
static atomic_size_t written, waiting;

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

enum { ALPHABET = 26 };
static char alphabets[ALPHABET + PIECE];

static void write_alphabets(void)
{
    for (size_t i = 0; i < sizeof alphabets; i++)
        alphabets[i] = (char)('a' + i % ALPHABET);
}

/* The letters of a piece: the alphabet, repeated. Each piece begins with another letter. */
static const char *letters_of(size_t index)
{
    return alphabets + index * 7 % ALPHABET;
}

static size_t write_letters(const void *context, size_t index, char *to)
{
    (void)context;
    for (waiting++; is_shut && index >= STREAM_BATCH_CHUNKS; sleep_ms(1))
        continue;
    waiting--;
    memcpy(to, letters_of(index), PIECE);
    written++;
    return PIECE;
}

static const struct deferred unmeasured_letters = {
    .write = write_letters, .pieces = PIECES, .piece_bytes_max = PIECE, .total_bytes = CHUNKS_LENGTH_UNKNOWN};
static const struct deferred measured_letters = {
    .write = write_letters, .pieces = PIECES, .piece_bytes_max = PIECE, .total_bytes = (size_t)PIECE * PIECES};

static attn_status letters(struct call *call)
{
    chunks_text(call->out, "[");
    if (call->out->may_defer)
        chunks_defer(call->out, is_length_known ? &measured_letters : &unmeasured_letters);
    for (size_t i = 0; !call->out->may_defer && i < PIECES; i++)
        chunks_commit(call->out, write_letters(NULL, i, chunks_reserve(call->out, PIECE)));
    chunks_text(call->out, "]");
    return call->out->is_ok ? ATTN_OK : attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "no memory for letters");
}

static struct http_stage stage;

static void set_up(void)
{
    write_alphabets();
    stage = http_stage_of(letters);
    stage.setup.limits.memory_bytes = 64 << 20;
    http_stage_start(&stage);
}

static void tear_down(void)
{
    http_stage_stop(&stage);
}

static void check_letters(struct http_answer *answer)
{
    ck_assert_int_eq(answer->status, 200);
    ck_assert_uint_eq(answer->body_bytes, (size_t)PIECE * PIECES + 2);
    ck_assert_int_eq(answer->body[0], '[');
    ck_assert_int_eq(answer->body[answer->body_bytes - 1], ']');
    for (size_t index = 0; index < PIECES; index++)
        if (memcmp(answer->body + 1 + index * PIECE, letters_of(index), PIECE) != 0)
            ck_abort_msg("piece %zu is wrong", index);
    http_free(answer);
}

static void await(const atomic_size_t *counter, size_t least)
{
    for (int i = 0; i < 120000 && *counter < least; i++)
        sleep_ms(1);
    ck_assert_uint_ge(*counter, least);
}

/* A client that has the header and the beginning of the answer while the next batch is written. */
static struct http_client client_in_the_middle(void)
{
    is_shut = true;
    struct http_client client = http_open(stage.port);
    ck_assert(http_send(&client, POST));
    await(&written, 10);
    await(&waiting, 1);
    return client;
}

START_TEST(a_streamed_answer_comes_whole_and_in_order)
{
    struct http_client client = http_open(stage.port);
    for (int i = 0; i < 2; i++) {
        ck_assert(http_send(&client, POST));
        struct http_answer answer = http_read(&client, false);
        ck_assert_str_eq(http_field(&answer, "Transfer-Encoding"), "chunked");
        ck_assert_ptr_null(http_field(&answer, "Content-Length"));
        ck_assert_ptr_null(strstr(http_field(&answer, "Server-Timing"), "write"));
        check_letters(&answer);
    }
    http_close(&client);
}
END_TEST

START_TEST(a_known_length_is_announced)
{
    is_length_known = true;
    struct http_answer answer = http_ask(stage.port, POST);
    ck_assert_ptr_null(http_field(&answer, "Transfer-Encoding"));
    ck_assert_uint_eq(strtoul(http_field(&answer, "Content-Length"), NULL, 10), (size_t)PIECE * PIECES + 2);
    check_letters(&answer);
}
END_TEST

START_TEST(http_1_0_is_given_the_whole_with_its_length)
{
    struct http_answer answer = http_ask(stage.port, POST_AS("1.0", ""));
    ck_assert_uint_eq(strtoul(http_field(&answer, "Content-Length"), NULL, 10), (size_t)PIECE * PIECES + 2);
    ck_assert_ptr_nonnull(strstr(http_field(&answer, "Server-Timing"), "write"));
    check_letters(&answer);
}
END_TEST

START_TEST(a_compressed_answer_is_streamed_too)
{
    struct http_answer answer = http_ask(stage.port, POST_AS("1.1", "Accept-Encoding: gzip\r\n"));
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(http_field(&answer, "Content-Encoding"), "gzip");
    ck_assert_str_eq(http_field(&answer, "Transfer-Encoding"), "chunked");
    attn_arena *arena = attn_arena_create((size_t)128 << 20);
    attn_error err;
    struct text_span text;
    ck_assert_int_eq(coding_expand(CODING_GZIP, (struct text_span){answer.body, answer.body_bytes}, (size_t)64 << 20,
                                   arena, &text, &err),
                     ATTN_OK);
    struct http_answer expanded = {.status = 200, .body = malloc(text.length), .body_bytes = text.length};
    memcpy(expanded.body, text.at, text.length);
    check_letters(&expanded);
    http_free(&answer);
    attn_arena_destroy(arena);
}
END_TEST

/* Waits until the windows and the socket buffers are full. */
static void await_standstill(void)
{
    size_t before = 0;
    while (before != written || executor_running(stage.executor) > 0) {
        before = written;
        sleep_ms(300);
    }
}

START_TEST(a_slow_client_holds_up_no_thread_and_little_memory)
{
    struct http_client slow[6];
    for (size_t i = 0; i < 6; i++) {
        slow[i] = http_open(stage.port);
        ck_assert(http_send(&slow[i], POST)); /* the client reads nothing */
    }
    await(&written, 6 * STREAM_BATCH_CHUNKS);
    await_standstill();
    ck_assert_uint_lt(written, 6 * PIECES);
    struct http_answer answer = http_ask(stage.port, POST);
    check_letters(&answer);
    for (size_t i = 0; i < 6; i++) {
        answer = http_read(&slow[i], false);
        check_letters(&answer);
        http_close(&slow[i]);
    }
}
END_TEST

START_TEST(an_answer_that_nobody_takes_is_cut_while_others_wait)
{
    const long most_ms = 180000, step_ms = 50;
    stage = http_stage_of(letters);
    stage.setup.limits.memory_bytes = 64 << 20;
    stage.setup.connections = 2;
    http_stage_start(&stage);
    struct http_client silent = http_open(stage.port);
    ck_assert(http_send(&silent, POST)); /* the client reads nothing */
    await(&written, STREAM_BATCH_CHUNKS);
    struct http_client other = http_open(stage.port); /* every place is taken, so others wait */
    for (long ms = 0; ms < most_ms && atomic_load(&stage.setup.metrics->connections_evicted) == 0; ms += step_ms)
        sleep_ms(step_ms);
    ck_assert_uint_eq(atomic_load(&stage.setup.metrics->connections_evicted), 1);
    struct http_answer cut = http_read(&silent, false);
    ck_assert_int_eq(cut.status, 0);
    ck_assert_uint_lt(cut.body_bytes, (size_t)PIECE * PIECES);
    free(cut.body);
    http_close(&silent);
    ck_assert(http_send(&other, POST));
    struct http_answer answer = http_read(&other, false);
    check_letters(&answer);
    http_close(&other);
    tear_down();
}
END_TEST

START_TEST(a_client_that_leaves_in_the_middle_is_forgotten)
{
    for (int i = 0; i < 4; i++) {
        written = 0;
        struct http_client client = client_in_the_middle();
        if (i % 2) /* by a reset */
            setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
        http_close(&client);
        sleep_ms(i < 2 ? 0 : 100);
        is_shut = false;
        ck_assert(http_daemon_await_idle(stage.server, 120));
        ck_assert_uint_lt(written, PIECES);
    }
    struct http_answer answer = http_ask(stage.port, POST);
    check_letters(&answer);
}
END_TEST

START_TEST(a_full_queue_refuses_newcomers_but_goes_on_with_what_was_begun)
{
    enum { QUEUED = 8, CLIENTS = QUEUED + 1 };
    stage = http_stage_of(letters);
    stage.compute_threads = 1;
    stage.queue = QUEUED;
    stage.setup.limits.memory_bytes = 64 << 20;
    http_stage_start(&stage);
    struct http_client clients[CLIENTS] = {client_in_the_middle()};
    for (size_t i = 1; i < CLIENTS; i++) {
        clients[i] = http_open(stage.port);
        ck_assert(http_send(&clients[i], POST));
    }
    while (executor_waiting(stage.executor) < QUEUED)
        sleep_ms(1);
    struct http_answer answer = http_ask(stage.port, POST);
    ck_assert_int_eq(answer.status, 503);
    http_free(&answer);
    is_shut = false;
    for (size_t i = 0; i < CLIENTS; i++) {
        answer = http_read(&clients[i], false);
        check_letters(&answer);
        http_close(&clients[i]);
    }
    tear_down();
}
END_TEST

START_TEST(a_drain_finishes_what_is_being_sent)
{
    struct http_client client = client_in_the_middle();
    http_daemon_stop_listening(stage.server);
    ck_assert(!http_daemon_await_idle(stage.server, 0));
    is_shut = false;
    struct http_answer answer = http_read(&client, false);
    check_letters(&answer);
    ck_assert(http_daemon_await_idle(stage.server, 120));
    http_close(&client);
}
END_TEST

static void *open_later(void *nothing)
{
    sleep_ms(200);
    is_shut = false;
    return nothing;
}

START_TEST(stopping_breaks_off_and_never_looks_whole)
{
    for (int i = 0; i < 2; i++) {
        set_up();
        is_length_known = i == 1;
        written = 0;
        struct http_client client = client_in_the_middle();
        pthread_t opener;
        ck_assert_int_eq(pthread_create(&opener, NULL, open_later, NULL), 0);
        tear_down();
        pthread_join(opener, NULL);
        struct http_answer answer = http_read(&client, false);
        ck_assert_int_eq(answer.status, 0);
        ck_assert_uint_lt(written, PIECES);
        free(answer.body);
        http_close(&client);
    }
}
END_TEST

/* A request for attention over so many tokens with one feature, by that version of HTTP. */
static struct http_answer ask_attention(size_t tokens, const char *version)
{
    const size_t room = tokens * 16 + 512;
    char *body = malloc(room), *request = malloc(room);
    size_t length = (size_t)snprintf(body, room, "{\"inputs\":{\"query\":[");
    for (size_t i = 0; i < tokens; i++)
        length += (size_t)snprintf(body + length, room - length, "%s[0.%zu]", i > 0 ? "," : "", i * 7919 % 10007 + 1);
    length += (size_t)snprintf(body + length, room - length, "]}}");
    snprintf(request, room,
             "POST /v1/attention HTTP/%s\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             version, length, body);
    struct http_answer answer = http_ask(stage.port, request);
    free(body);
    free(request);
    return answer;
}

START_TEST(attention_is_the_same_text_streamed_and_whole)
{
    const size_t tokens[] = {100, 400, 700};
    stage = http_stage_of(attend_attention);
    stage.setup.limits.memory_bytes = 64 << 20;
    http_stage_start(&stage);
    for (size_t i = 0; i < 3; i++) {
        struct http_answer streamed = ask_attention(tokens[i], "1.1"), whole = ask_attention(tokens[i], "1.0");
        ck_assert_int_eq(streamed.status, 200);
        ck_assert_int_eq(http_field(&streamed, "Transfer-Encoding") != NULL, i > 0);
        ck_assert_uint_eq(streamed.body_bytes, whole.body_bytes);
        ck_assert_mem_eq(streamed.body, whole.body, whole.body_bytes);
        http_free(&streamed);
        http_free(&whole);
    }
    tear_down();
}
END_TEST

START_TEST(without_memory_for_the_window_the_answer_is_503)
{
    stage = http_stage_of(letters);
    stage.setup.limits.memory_bytes = 3 << 20;
    http_stage_start(&stage);
    struct http_answer answer = http_ask(stage.port, POST);
    ck_assert_int_eq(answer.status, 503);
    ck_assert_ptr_nonnull(http_field(&answer, "Retry-After"));
    http_free(&answer);
    tear_down();
}
END_TEST

CHECK_MAIN("sender")
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_streamed_answer_comes_whole_and_in_order);
    tcase_add_test(tests, a_known_length_is_announced);
    tcase_add_test(tests, http_1_0_is_given_the_whole_with_its_length);
    tcase_add_test(tests, a_compressed_answer_is_streamed_too);
    tcase_add_test(tests, a_slow_client_holds_up_no_thread_and_little_memory);
    tcase_add_test(tests, a_client_that_leaves_in_the_middle_is_forgotten);
    tcase_add_test(tests, a_drain_finishes_what_is_being_sent);
    TCase *own = check_case("own server");
    tcase_set_timeout(own, 240);
    tcase_add_checked_fixture(own, write_alphabets, NULL);
    tcase_add_test(own, a_full_queue_refuses_newcomers_but_goes_on_with_what_was_begun);
    tcase_add_test(own, an_answer_that_nobody_takes_is_cut_while_others_wait);
    tcase_add_test(own, stopping_breaks_off_and_never_looks_whole);
    tcase_add_test(own, attention_is_the_same_text_streamed_and_whole);
    tcase_add_test(own, without_memory_for_the_window_the_answer_is_503);
}
