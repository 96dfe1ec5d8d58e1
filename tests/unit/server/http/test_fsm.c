/*
 * test_fsm.c: tests of server/http/fsm.c and admission.c over real sockets: which requests are served, which are refused
 * with which words, and whether the connection is kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "http_client.h"
#include "http_stage.h"

static struct http_stage stage;

static void set_up(void)
{
    stage = http_stage_of(http_stage_echo);
    http_stage_start(&stage);
}

static void tear_down(void)
{
    http_stage_stop(&stage);
}

#define HOST "Host: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"
#define POST "POST /v1/attention HTTP/1.1\r\n" HOST JSON

/* Sends the request and checks the status and one word of the body. */
static void check_answer(const char *request, int status, const char *word)
{
    struct http_answer answer = http_ask(stage.port, request);
    ck_assert_msg(answer.status == status, "%d instead of %d for:\n%s\n%s", answer.status, status, request,
                  answer.body);
    ck_assert_msg(strstr(answer.body, word) != NULL, "no \"%s\" in %s", word, answer.body);
    http_free(&answer);
}

static void check_field(const char *request, const char *name, const char *value)
{
    struct http_answer answer = http_ask(stage.port, request);
    const char *got = http_field(&answer, name);
    if (value == NULL)
        ck_assert_msg(got == NULL, "%s: %s", name, got);
    else
        ck_assert_msg(got != NULL && strcmp(got, value) == 0, "%s: %s instead of %s", name, got, value);
    http_free(&answer);
}

START_TEST(probes_and_facts_are_served)
{
    check_answer("GET /livez HTTP/1.1\r\n" HOST "\r\n", 200, "{\"live\":true}");
    check_answer("GET /readyz HTTP/1.1\r\n" HOST "\r\n", 200, "{\"ready\":true}");
    check_answer("GET /version HTTP/1.1\r\n" HOST "\r\n", 200, "\"libmicrohttpd ");
    check_answer("GET / HTTP/1.1\r\n" HOST "\r\n", 200, "/v1/attention");
    check_answer("GET /openapi.json HTTP/1.1\r\n" HOST "\r\n", 200, "\"openapi\"");
    check_answer("GET /livez?probe=1 HTTP/1.1\r\n" HOST "\r\n", 200, "live");
}
END_TEST

START_TEST(head_answers_like_get_without_a_body)
{
    struct http_client client = http_open(stage.port);
    for (int i = 0; i < 2; i++) {
        http_send(&client, "HEAD /livez HTTP/1.1\r\n" HOST "\r\n");
        struct http_answer answer = http_read(&client, true);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_str_eq(http_field(&answer, "Content-Length"), "13");
        ck_assert_uint_eq(client.pending_bytes, 0);
        http_free(&answer);
    }
    http_close(&client);
}
END_TEST

START_TEST(a_body_comes_back_byte_for_byte_however_it_is_cut)
{
    static const size_t pieces[] = {1, 7, 1000};
    char request[4096];
    snprintf(request, sizeof request, POST "Content-Length: 300\r\n\r\n%0300d", 7);
    for (size_t i = 0; i < 3; i++) {
        struct http_client client = http_open(stage.port);
        ck_assert(http_send_slowly(&client, request, pieces[i]));
        struct http_answer answer = http_read(&client, false);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_str_eq(answer.body, strstr(request, "\r\n\r\n") + 4);
        http_free(&answer);
        http_close(&client);
    }
}
END_TEST

START_TEST(a_large_body_comes_back_whole)
{
    enum { BYTES = 1 << 20 };
    char *body = malloc(BYTES), head[256];
    for (size_t i = 0; i < BYTES; i++)
        body[i] = (char)('a' + i * i % 26);
    snprintf(head, sizeof head, POST "Content-Length: %d\r\n\r\n", BYTES);
    struct http_client client = http_open(stage.port);
    ck_assert(http_send(&client, head) && http_send_bytes(&client, body, BYTES));
    struct http_answer answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_uint_eq(answer.body_bytes, BYTES);
    ck_assert_mem_eq(answer.body, body, BYTES);
    http_free(&answer);
    http_close(&client);
    free(body);
}
END_TEST

START_TEST(a_chunked_body_is_joined_and_its_connection_closed)
{
    struct http_client client = http_open(stage.port);
    http_send_slowly(&client, POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", 3);
    struct http_answer answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, "hello world");
    ck_assert(http_is_closed(&client));
    http_free(&answer);
    http_close(&client);
}
END_TEST

START_TEST(an_empty_body_reaches_the_service)
{
    check_answer(POST "Content-Length: 0\r\n\r\n", 200, "");
}
END_TEST

START_TEST(one_connection_serves_request_after_request)
{
    struct http_client client = http_open(stage.port);
    for (int i = 0; i < 20; i++) {
        http_send(&client, i % 2 ? "GET /livez HTTP/1.1\r\n" HOST "\r\n" : POST "Content-Length: 2\r\n\r\n{}");
        struct http_answer answer = http_read(&client, false);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_ptr_null(http_field(&answer, "Connection"));
        http_free(&answer);
    }
    http_close(&client);
}
END_TEST

START_TEST(a_small_mistake_does_not_cost_the_connection)
{
    struct http_client client = http_open(stage.port);
    http_send(&client, "POST /v1/atention HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\n\r\n{}");
    struct http_answer answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 404);
    http_free(&answer);
    http_send(&client, POST "Content-Length: 2\r\n\r\n{}");
    answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 200);
    http_free(&answer);
    http_close(&client);
}
END_TEST

START_TEST(pipelined_requests_are_answered_in_order)
{
    struct http_client client = http_open(stage.port);
    http_send(&client, POST "Content-Length: 5\r\n\r\nfirst" POST "Content-Length: 6\r\n\r\nsecond"
                            "GET /livez HTTP/1.1\r\n" HOST "\r\n" POST "Content-Length: 5\r\n\r\nthird");
    static const char *const bodies[] = {"first", "second", "{\"live\":true}", "third"};
    for (size_t i = 0; i < 4; i++) {
        struct http_answer answer = http_read(&client, false);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_str_eq(answer.body, bodies[i]);
        http_free(&answer);
    }
    http_close(&client);
}
END_TEST

START_TEST(expect_100_continue_is_answered_before_the_body_is_sent)
{
    struct http_client client = http_open(stage.port);
    http_send(&client, POST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    struct http_answer answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 100);
    http_free(&answer);
    http_send(&client, "{}");
    answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 200);
    http_free(&answer);
    http_close(&client);
}
END_TEST

START_TEST(a_refused_expectation_saves_sending_the_body)
{
    check_answer(POST "Expect: 100-continue\r\nContent-Length: 9999999\r\n\r\n", 413, "9999999");
    check_answer("POST /v1/attention HTTP/1.1\r\n" HOST
                 "Content-Type: text/csv\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
                 415, "text/csv");
    check_answer(POST "Expect: a-miracle\r\nContent-Length: 2\r\n\r\n{}", 417, "100-continue");
}
END_TEST

START_TEST(http_1_0_is_served_and_closed)
{
    struct http_client client = http_open(stage.port);
    http_send(&client, "POST /v1/attention HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}");
    struct http_answer answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, "{}");
    ck_assert(http_is_closed(&client));
    http_free(&answer);
    http_close(&client);
}
END_TEST

START_TEST(absolute_targets_name_the_same_path)
{
    check_answer("GET http://localhost:1/livez HTTP/1.1\r\n" HOST "\r\n", 200, "live");
    check_answer("GET HTTPS://localhost?x HTTP/1.1\r\n" HOST "\r\n", 200, "attnd");
    check_answer("GET http:///livez HTTP/1.1\r\n" HOST "\r\n", 400, "target");
    check_answer("GET livez HTTP/1.1\r\n" HOST "\r\n", 400, "slash");
}
END_TEST

START_TEST(unknown_paths_are_told_the_nearest_ones)
{
    check_answer("GET /livezz HTTP/1.1\r\n" HOST "\r\n", 404, "GET /livez");
    check_answer("POST /v1/attentions HTTP/1.1\r\n" HOST JSON "Content-Length: 0\r\n\r\n", 404, "POST /v1/attention");
    check_answer("GET /%6civez HTTP/1.1\r\n" HOST "\r\n", 404, "not found");
    check_answer("GET /livez/ HTTP/1.1\r\n" HOST "\r\n", 404, "not found");
    check_answer("GET /%00%0d%0a HTTP/1.1\r\n" HOST "\r\n", 404, "%00%0d%0a");
    check_answer("GET /v1/attentions HTTP/1.1\r\n" HOST "\r\n", 404, "not found");
}
END_TEST

static const struct {
    const char *path, *nearest;
} words_of_others[] = {
    {"/v1/mha", "nearest: POST /v1/multi-head-attention\""},
    {"/mha", "nearest: POST /v1/multi-head-attention\""},
    {"/v1/MHA/gradients", "nearest: POST /v1/multi-head-attention/gradients\""},
    {"/v1/multihead", "nearest: POST /v1/multi-head-attention\""},
    {"/v1/multi_head_attn", "nearest: POST /v1/multi-head-attention\""},
    {"/v1/sdpa", "nearest: POST /v1/attention\""},
    {"/v1/scaled_dot_product_attention", "nearest: POST /v1/attention\""},
    {"/attn", "nearest: POST /v1/attention\""},
    {"/v1/attn/gradients", "nearest: POST /v1/attention/gradients\""},
    {"/predict", "nearest: POST /v2/models/{model}/infer\""},
    {"/v1/model/bert:predict", "nearest: POST /v2/models/{model}/infer\""},
    {"/infer", "nearest: POST /v2/models/{model}/infer\""},
    {"/v1/models/demo/attentoin", "nearest: POST /v1/models/{model}/attention\""},
    {"/v1/layers/chat/attentoin", "nearest: POST /v1/layers/{name}/attention\""},
    {"/v1/models/demo/logits", "POST /v1/models/{model}/attention\""},
    {"/v1", "nearest: POST /v1/attention, POST /v1/multi-head-attention, GET /v1/layers\""},
    {"/v1/", "nearest: POST /v1/attention, POST /v1/multi-head-attention, GET /v1/layers\""},
    {"/v2/trace/setting", "here: the extensions trace and logging are not offered"},
    {"/v2/models/demo/trace/setting", "here: the extensions trace and logging are not offered"},
    {"/v2/logging", "here: the extensions trace and logging are not offered"},
    {"/v2/systemsharedmemory/region/r/register", "here: shared memory is not offered: send the bytes"},
    {"/v2/nothing", "nearest: GET /v2, GET /v2/models, GET /v2/health/live\""},
    {"/v2/health", "nearest: GET /v2/health/live, GET /v2/health/ready\""},
    {"/swagger", "nearest: GET /docs, GET /openapi.json\""},
    {"/favicon.ico", "nearest: GET /docs, GET /openapi.json\""},
    {"/tokenize", "nearest: POST /v1/models/{model}/tokens\""},
    {"/healthz", "nearest: GET /readyz\""},
    {"//", "nearest: GET /\""},
    {"/v1/chat/completions", "attnd generates no text; POST /v1/models/{model}/attention"},
    {"/v1/completions", "attnd generates no text; POST /v1/models/{model}/attention"},
    {"/v1/responses", "attnd generates no text; POST /v1/models/{model}/attention"},
    {"/api/generate", "attnd generates no text; POST /v1/models/{model}/attention"},
    {"/api/chat", "attnd generates no text; POST /v1/models/{model}/attention"},
    {"/v2/models/demo/generate", "attnd generates no text; POST /v1/models/{model}/attention"},
    {"/v1/embeddings", "attnd embeds no texts; POST /v1/models/{model}/attention"},
    {"/api/embed", "attnd embeds no texts; POST /v1/models/{model}/attention"},
};

START_TEST(words_of_other_systems_lead_to_the_right_path)
{
    char request[256];
    snprintf(request, sizeof request, "POST %s HTTP/1.1\r\n" HOST JSON "Content-Length: 0\r\n\r\n",
             words_of_others[_i].path);
    check_answer(request, 404, words_of_others[_i].nearest);
}
END_TEST

START_TEST(a_wrong_method_is_told_the_right_ones)
{
    check_answer("GET /v1/attention HTTP/1.1\r\n" HOST "\r\n", 405, "POST");
    check_field("GET /v1/attention HTTP/1.1\r\n" HOST "\r\n", "Allow", "POST, OPTIONS");
    check_field("DELETE /livez HTTP/1.1\r\n" HOST "\r\n", "Allow", "GET, HEAD, OPTIONS");
    check_answer("BREW /livez HTTP/1.1\r\n" HOST "\r\n", 405, "BREW");
    check_answer("POST /v1/models/demo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 405,
                 "POST /v1/models/{model}/gradients\"");
    check_answer("POST /v2/models/demo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 405,
                 "nearest: POST /v2/models/{model}/infer, ");
    check_answer("POST /livez HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 405, "allowed: GET, HEAD, OPTIONS\"");
}
END_TEST

START_TEST(accept_is_honoured)
{
    check_answer(POST "Accept: text/html\r\nContent-Length: 2\r\n\r\n{}", 406, "application/json");
    check_answer(POST "Accept: audio/ogg, application/json;q=0\r\nContent-Length: 2\r\n\r\n{}", 406,
                 "application/json");
    check_answer(POST "Accept: text/html, application/*;q=0.1\r\nContent-Length: 2\r\n\r\n{}", 200, "{}");
    check_answer(POST "Accept: application/problem+json\r\nContent-Length: 2\r\n\r\n{}", 200, "{}");
    check_field(POST "Accept: application/problem+json, application/json;q=0\r\nContent-Length: 2\r\n\r\n{}",
                "Content-Type", "application/json");
    check_answer("GET /livez HTTP/1.1\r\n" HOST "Accept: text/plain\r\n\r\n", 200, "live");
    check_field("GET /x HTTP/1.1\r\n" HOST "Accept: application/problem+json\r\n\r\n", "Content-Type",
                "application/problem+json");
    check_field("GET /x HTTP/1.1\r\n" HOST "Accept: application/problem+json;q=0.5, application/json\r\n\r\n",
                "Content-Type", "application/json");
    check_field("GET /x HTTP/1.1\r\n" HOST "\r\n", "Content-Type", "application/json");
}
END_TEST

START_TEST(a_request_without_a_length_has_an_empty_body)
{
    check_field(POST "\r\n", "Content-Length", "0"); /* the stage sends the body back */
    check_answer(POST "\r\n", 200, "");
    check_answer(POST "Content-Length: 0\r\n\r\n", 200, "");
}
END_TEST

START_TEST(a_body_needs_a_known_type_and_no_encoding)
{
    check_answer(
        "POST /v1/attention HTTP/1.1\r\n" HOST
        "Content-Type: application/x-www-form-urlencoded\r\nOrigin: http://localhost\r\nContent-Length: 2\r\n\r\n{}",
        415, "-H 'Content-Type: application/json'");
    check_answer("POST /v1/attention HTTP/1.1\r\n" HOST
                 "Content-Type: application/json; charset=latin1\r\nContent-Length: 2\r\n\r\n{}",
                 415, "UTF-8");
    check_answer("POST /v1/attention HTTP/1.1\r\n" HOST
                 "Content-Type: Application/JSON; charset=\"UTF-8\"\r\nContent-Length: 2\r\n\r\n{}",
                 200, "{}");
    check_answer("POST /v1/attention HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}", 200, "{}");
    check_answer(POST "Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}", 415, "gzip, zstd or deflate");
    check_answer(POST "Content-Encoding: gzip, gzip\r\nContent-Length: 2\r\n\r\n{}", 415, "gzip");
    check_answer(POST "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 400, "not valid gzip");
    check_answer(POST "Content-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}", 200, "{}");
}
END_TEST

/* Two that disagree: what is ignored of them could be what was meant, or what a proxy in front has read. */
START_TEST(fields_that_decide_come_once)
{
    check_answer(POST JSON "Content-Length: 2\r\n\r\n{}", 400, "one Content-Type field only");
    check_answer(POST "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 400,
                 "one Content-Encoding field only");
    check_answer(POST "Inference-Header-Content-Length: 2\r\ninference-header-content-length: 0\r\n"
                      "Content-Length: 2\r\n\r\n{}",
                 400, "one Inference-Header-Content-Length field only");
    check_answer("GET /livez HTTP/1.1\r\n" HOST "If-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n\r\n", 400,
                 "one If-None-Match field only");
    check_answer("GET /livez HTTP/1.1\r\n" HOST "X-Request-Id: a\r\nX-Request-Id: b\r\n"
                 "Accept-Encoding: gzip\r\nAccept-Encoding: zstd\r\n\r\n",
                 200, "live");
}
END_TEST

START_TEST(answers_are_compressed_when_asked_and_worth_it)
{
    enum { LARGE = 5000 };
    static char request[LARGE + 200], small[] = POST "Accept-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}";
    int used = snprintf(request, sizeof request, POST "Accept-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", LARGE);
    memset(request + used, 'a', LARGE);
    struct http_answer answer = http_ask(stage.port, request);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(http_field(&answer, "Content-Encoding"), "gzip");
    ck_assert_ptr_nonnull(strstr(http_field(&answer, "Vary"), "Accept-Encoding"));
    ck_assert_uint_lt(answer.body_bytes, 100);
    ck_assert_int_eq(memcmp(answer.body, "\x1f\x8b", 2), 0);
    http_free(&answer);
    answer = http_ask(stage.port, small);
    ck_assert_ptr_null(http_field(&answer, "Content-Encoding"));
    ck_assert_str_eq(answer.body, "{}");
    http_free(&answer);
}
END_TEST

START_TEST(a_body_over_the_limit_is_refused_before_it_is_read)
{
    struct http_client client = http_open(stage.port);
    http_send(&client, POST "Content-Length: 1048577\r\n\r\n");
    struct http_answer answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 413);
    ck_assert_ptr_nonnull(strstr(answer.body, "1048576"));
    ck_assert(http_is_closed(&client));
    http_free(&answer);
    http_close(&client);
    /* The library answers 2^64 - 1 itself, from 1.0 on. */
    check_answer(POST "Content-Length: 9223372036854775807\r\n\r\n", 413, "limit");
}
END_TEST

/* 64 KiB a chunk. */
static bool send_chunks(struct http_client *client, size_t count)
{
    static char chunk[(64 << 10) + 10];
    memcpy(chunk, "10000\r\n", 7);
    memset(chunk + 7, 'x', 64 << 10);
    memcpy(chunk + 7 + (64 << 10), "\r\n", 2);
    bool is_sent = http_send(client, POST "Transfer-Encoding: chunked\r\n\r\n");
    for (size_t i = 0; i < count && is_sent; i++)
        is_sent = http_send_bytes(client, chunk, (64 << 10) + 9);
    return is_sent;
}

START_TEST(a_chunked_body_over_the_limit_is_refused_at_its_end)
{
    struct http_client client = http_open(stage.port);
    ck_assert(send_chunks(&client, 20));
    http_send(&client, "0\r\n\r\n");
    struct http_answer answer = http_read(&client, false);
    ck_assert_int_eq(answer.status, 413);
    ck_assert_ptr_nonnull(strstr(answer.body, "1048576"));
    http_free(&answer);
    http_close(&client);
}
END_TEST

START_TEST(a_chunked_body_without_end_is_cut_off)
{
    struct http_client client = http_open(stage.port);
    ck_assert(!send_chunks(&client, 2000));
    http_close(&client);
    check_answer("GET /livez HTTP/1.1\r\n" HOST "\r\n", 200, "live");
}
END_TEST

START_TEST(what_requests_are_smuggled_with_is_refused_and_closed)
{
    static const char *const requests[] = {
        POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        POST "Transfer-Encoding: identity\r\n\r\n{}",
        POST "Content-Length : 2\r\n\r\n{}",
        POST "Content-Length: +2\r\n\r\n{}",
        "GET /livez HTTP/1.1\r\n" HOST HOST "\r\n",
        "GET /livez HTTP/1.1\r\n\r\n",
        "GET /livez HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET /livez HTTP/1.1\r\n" HOST ": x\r\nGET /version HTTP/1.1\r\n" HOST "\r\n",
        "GET /livez HTTP/1.1\r\n" HOST ":\r\nGET /version HTTP/1.1\r\n" HOST "\r\n",
        "GET /livez HTTP/1.1\r\n" HOST "X: \r\n:\r\nGET /version HTTP/1.1\r\n" HOST "\r\n",
        "GET /livez HTTP/1.1\r\n" HOST "X: y\nZ: z\r\n\r\n",
        "GET /livez HTTP/1.1\r\n" HOST "X: y\r\n z\r\n\r\n",
        "GET  /livez HTTP/1.1\r\n" HOST "\r\n",
        "GET /li\x01vez HTTP/1.1\r\n" HOST "\r\n",
        "POST /v1/attention HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET * HTTP/1.1\r\n" HOST "\r\n",
        "GET /livez HTTP/3.7\r\n" HOST "\r\n",
    };
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        struct http_client client = http_open(stage.port);
        http_send(&client, requests[i]);
        struct http_answer answer = http_read(&client, false);
        ck_assert_msg(answer.status >= 400 && answer.status < 600 && answer.status != 500, "%d for:\n%s", answer.status,
                      requests[i]);
        ck_assert_msg(http_is_closed(&client), "not closed after:\n%s", requests[i]);
        http_free(&answer);
        http_close(&client);
    }
}
END_TEST

static void check_refused(const char *request, size_t length)
{
    struct http_client client = http_open(stage.port);
    http_send_bytes(&client, request, length);
    struct http_answer answer = http_read(&client, false);
    /* libmicrohttpd 1.0 refuses some of them itself and closes without an answer. */
    ck_assert_msg(answer.status == 400 || answer.status == 0, "%d", answer.status);
    http_free(&answer);
    http_close(&client);
}

START_TEST(a_nul_in_a_field_or_the_target_is_refused)
{
    static const char field[] = "GET /livez HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n";
    static const char path[] = "GET /livez\0/../x HTTP/1.1\r\n" HOST "\r\n";
    static const char query[] = "GET /livez?\0 HTTP/1.1\r\n" HOST "\r\n";
    check_refused(field, sizeof field - 1);
    check_refused(path, sizeof path - 1);
    check_refused(query, sizeof query - 1);
}
END_TEST

START_TEST(unusual_but_right_headers_are_served)
{
    check_answer(
        "GET /livez HTTP/1.1\r\nhost:localhost\r\nX-Empty:\r\nX-Blank: \t \r\nX-Tail: y \t\r\nCookie: a=b; c=d\r\n"
        "X-Latin: \xe9\r\nX-Latin: again\r\n\r\n",
        200, "live");
    check_answer("\r\nGET /livez HTTP/1.1\r\n" HOST "\r\n", 200, "live");
}
END_TEST

START_TEST(a_header_over_32_kib_is_refused)
{
    static char request[48 << 10];
    const int used = snprintf(request, sizeof request, "GET /livez HTTP/1.1\r\n" HOST "X: ");
    memset(request + used, 'a', 40 << 10);
    strcpy(request + used + (40 << 10), "\r\n\r\n");
    check_answer(request, 431, "32768");
}
END_TEST

/* The library keeps a record of each field beside the header itself. */
START_TEST(a_header_of_32_kib_in_many_fields_is_served)
{
    enum { FIELDS = 400 };
    static char request[33 << 10];
    int used = snprintf(request, sizeof request, "GET /livez HTTP/1.1\r\n" HOST);
    for (int i = 0; i < FIELDS; i++)
        used += snprintf(request + used, sizeof request - (size_t)used, "X-%03d: %072d\r\n", i, i);
    ck_assert_int_gt(used, 31 << 10);
    ck_assert_int_lt(used, 32 << 10);
    strcpy(request + used, "\r\n");
    check_answer(request, 200, "live");
}
END_TEST

START_TEST(every_answer_has_an_id)
{
    check_field("GET /livez HTTP/1.1\r\n" HOST "X-Request-Id: my.id_7-A\r\n\r\n", "X-Request-Id", "my.id_7-A");
    check_answer("GET /x HTTP/1.1\r\n" HOST "X-Request-Id: seen\r\n\r\n", 404, "\"request_id\":\"seen\"");
    struct http_answer answer = http_ask(stage.port, "GET /livez HTTP/1.1\r\n" HOST "X-Request-Id: a b\r\n\r\n");
    ck_assert_uint_eq(strlen(http_field(&answer, "X-Request-Id")), 16);
    http_free(&answer);
}
END_TEST

START_TEST(answers_to_posts_carry_timing_and_are_not_stored)
{
    struct http_answer answer = http_ask(stage.port, POST "Content-Length: 2\r\n\r\n{}");
    ck_assert_str_eq(http_field(&answer, "Cache-Control"), "no-store");
    static const char *const parts[] = {"receive;dur=", "queue;dur=", "parse;dur=", "compute;dur=", "write;dur="};
    for (size_t i = 0; i < 5; i++)
        ck_assert_ptr_nonnull(strstr(http_field(&answer, "Server-Timing"), parts[i]));
    http_free(&answer);
}
END_TEST

START_TEST(options_tell_methods_and_admit_pages)
{
    struct http_answer answer = http_ask(stage.port, "OPTIONS /v1/attention HTTP/1.1\r\n" HOST "\r\n");
    ck_assert_int_eq(answer.status, 204);
    ck_assert_str_eq(http_field(&answer, "Allow"), "POST, OPTIONS");
    ck_assert_ptr_null(http_field(&answer, "Access-Control-Allow-Methods"));
    http_free(&answer);
    answer = http_ask(stage.port, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
    ck_assert_str_eq(http_field(&answer, "Allow"), "GET, HEAD, POST, PUT, DELETE, OPTIONS");
    http_free(&answer);
    answer = http_ask(stage.port, "OPTIONS /v1/attention HTTP/1.1\r\n" HOST
                                  "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n\r\n");
    ck_assert_int_eq(answer.status, 204);
    ck_assert_str_eq(http_field(&answer, "Access-Control-Allow-Origin"), "*");
    ck_assert_str_eq(http_field(&answer, "Access-Control-Allow-Methods"), "POST, OPTIONS");
    ck_assert_ptr_nonnull(strstr(http_field(&answer, "Access-Control-Allow-Headers"), "Content-Type"));
    ck_assert_ptr_null(http_field(&answer, "Access-Control-Allow-Credentials"));
    ck_assert_ptr_nonnull(http_field(&answer, "Access-Control-Max-Age"));
    http_free(&answer);
    check_answer("OPTIONS /nowhere HTTP/1.1\r\n" HOST "\r\n", 404, "nowhere");
}
END_TEST

START_TEST(clients_that_leave_midway_leave_nothing_behind)
{
    static const char *const parts[] = {
        "GET /li",
        "GET /livez HTTP/1.1\r\nHo",
        POST "Content-Length: 100\r\n\r\nonly this",
        POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        POST "Content-Length: 2\r\n\r\n{}",
    };
    for (size_t i = 0; i < 50; i++) {
        struct http_client client = http_open(stage.port);
        http_send(&client, parts[i % 5]);
        http_close(&client);
    }
    ck_assert(http_daemon_await_idle(stage.server, 120));
    check_answer("GET /livez HTTP/1.1\r\n" HOST "\r\n", 200, "live");
}
END_TEST

CHECK_MAIN("request")
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, probes_and_facts_are_served);
    tcase_add_test(tests, head_answers_like_get_without_a_body);
    tcase_add_test(tests, a_body_comes_back_byte_for_byte_however_it_is_cut);
    tcase_add_test(tests, a_large_body_comes_back_whole);
    tcase_add_test(tests, a_chunked_body_is_joined_and_its_connection_closed);
    tcase_add_test(tests, an_empty_body_reaches_the_service);
    tcase_add_test(tests, one_connection_serves_request_after_request);
    tcase_add_test(tests, a_small_mistake_does_not_cost_the_connection);
    tcase_add_test(tests, pipelined_requests_are_answered_in_order);
    tcase_add_test(tests, expect_100_continue_is_answered_before_the_body_is_sent);
    tcase_add_test(tests, a_refused_expectation_saves_sending_the_body);
    tcase_add_test(tests, http_1_0_is_served_and_closed);
    tcase_add_test(tests, absolute_targets_name_the_same_path);
    tcase_add_test(tests, unknown_paths_are_told_the_nearest_ones);
    tcase_add_loop_test(tests, words_of_other_systems_lead_to_the_right_path, 0,
                        sizeof words_of_others / sizeof words_of_others[0]);
    tcase_add_test(tests, a_wrong_method_is_told_the_right_ones);
    tcase_add_test(tests, accept_is_honoured);
    tcase_add_test(tests, a_request_without_a_length_has_an_empty_body);
    tcase_add_test(tests, a_body_needs_a_known_type_and_no_encoding);
    tcase_add_test(tests, fields_that_decide_come_once);
    tcase_add_test(tests, answers_are_compressed_when_asked_and_worth_it);
    tcase_add_test(tests, a_body_over_the_limit_is_refused_before_it_is_read);
    tcase_add_test(tests, a_chunked_body_over_the_limit_is_refused_at_its_end);
    tcase_add_test(tests, a_chunked_body_without_end_is_cut_off);
    tcase_add_test(tests, what_requests_are_smuggled_with_is_refused_and_closed);
    tcase_add_test(tests, a_nul_in_a_field_or_the_target_is_refused);
    tcase_add_test(tests, unusual_but_right_headers_are_served);
    tcase_add_test(tests, a_header_over_32_kib_is_refused);
    tcase_add_test(tests, a_header_of_32_kib_in_many_fields_is_served);
    tcase_add_test(tests, every_answer_has_an_id);
    tcase_add_test(tests, answers_to_posts_carry_timing_and_are_not_stored);
    tcase_add_test(tests, options_tell_methods_and_admit_pages);
    tcase_add_test(tests, clients_that_leave_midway_leave_nothing_behind);
}
