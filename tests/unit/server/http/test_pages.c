/*
 * test_pages.c: GET / over real sockets: which clients get the page, in which coding, with which policy, and when the
 * answer is 304.
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

#define BROWSER "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

static struct http_answer get(const char *accept, const char *more)
{
    char request[1024];
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n%s\r\n", accept, more);
    return http_ask(stage.port, request);
}

static bool has_field(const struct http_answer *answer, const char *name, const char *value)
{
    const char *got = http_field(answer, name);
    return got != NULL && strcmp(got, value) == 0;
}

START_TEST(a_browser_gets_the_page_and_a_program_the_index)
{
    static const struct {
        const char *accept;
        bool is_page;
    } cases[] = {
        {BROWSER, true},
        {"text/html", true},
        {"text/*", true},
        {"application/json;q=0.5, text/html;q=0.6", true},
        {"*/*", false},
        {"application/json", false},
        {"text/html;q=0.5, application/json;q=0.6", false},
        {"text/html;q=0", false},
        {"image/png", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_answer answer = get(cases[i].accept, "");
        const char *type = cases[i].is_page ? "text/html" : "application/json";
        ck_assert_int_eq(answer.status, 200);
        ck_assert_msg(has_field(&answer, "Content-Type", type), "%s", cases[i].accept);
        ck_assert_int_eq(strncmp(answer.body, cases[i].is_page ? "<!doctype html>" : "{\"name\":\"attnd\"", 15), 0);
        ck_assert(has_field(&answer, "Vary", "Accept, Accept-Encoding"));
        http_free(&answer);
    }
}
END_TEST

START_TEST(the_page_alone_is_guarded)
{
    static const char *const names[] = {"Content-Security-Policy", "X-Frame-Options", "Referrer-Policy", "ETag"};
    struct http_answer page = get(BROWSER, ""), index = get("*/*", "");
    for (size_t i = 0; i < COUNT(names); i++) {
        ck_assert_ptr_nonnull(http_field(&page, names[i]));
        ck_assert_ptr_null(http_field(&index, names[i]));
    }
    ck_assert(has_field(&page, "X-Content-Type-Options", "nosniff"));
    ck_assert(has_field(&index, "X-Content-Type-Options", "nosniff"));
    const char *policy = http_field(&page, "Content-Security-Policy");
    ck_assert_int_eq(strncmp(policy, "default-src 'none'; script-src 'sha256-", 39), 0);
    ck_assert_ptr_null(strstr(policy, "unsafe"));
    http_free(&page);
    http_free(&index);
}
END_TEST

START_TEST(gzip_is_for_those_who_take_it)
{
    static const struct {
        const char *accept_encoding;
        bool is_gzip;
    } cases[] = {
        {"gzip", true},
        {"x-gzip", true},
        {"br, gzip;q=0.1", true},
        {"gzip, deflate, br, zstd", true},
        {"*", true},
        {"gzip;q=0", false},
        {"*;q=0", false},
        {"gzip;q=0, *", false},
        {"br, zstd", false},
        {"identity", false},
        {"", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char field[80];
        snprintf(field, sizeof field, "Accept-Encoding: %s\r\n", cases[i].accept_encoding);
        struct http_answer answer = get(BROWSER, field);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_msg(has_field(&answer, "Content-Encoding", "gzip") == cases[i].is_gzip, "%s",
                      cases[i].accept_encoding);
        ck_assert_int_eq(memcmp(answer.body, cases[i].is_gzip ? "\x1f\x8b" : "<!", 2), 0);
        http_free(&answer);
    }
}
END_TEST

START_TEST(who_has_the_page_is_told_so)
{
    struct http_answer first = get(BROWSER, "");
    const char *tag = http_field(&first, "ETag");
    char fields[4][128];
    snprintf(fields[0], sizeof fields[0], "If-None-Match: %s\r\n", tag);
    snprintf(fields[1], sizeof fields[1], "If-None-Match: \"other\", W/%s\r\n", tag);
    snprintf(fields[2], sizeof fields[2], "If-None-Match: \"other\",\"another\" ,\t%s\r\n", tag);
    snprintf(fields[3], sizeof fields[3], "If-None-Match: *\r\n");
    for (size_t i = 0; i < 4; i++) {
        struct http_answer again = get(BROWSER, fields[i]);
        ck_assert_msg(again.status == 304, "%d for %s", again.status, fields[i]);
        ck_assert_uint_eq(again.body_bytes, 0);
        http_free(&again);
    }
    http_free(&first);
}
END_TEST

START_TEST(another_tag_gets_the_page_again)
{
    struct http_answer plain = get(BROWSER, "");
    char field[128];
    snprintf(field, sizeof field, "If-None-Match: %s\r\nAccept-Encoding: gzip\r\n", http_field(&plain, "ETag"));
    struct http_answer other = get(BROWSER, "If-None-Match: \"other\", W/\r\n"), packed = get(BROWSER, field);
    ck_assert_int_eq(other.status, 200);
    ck_assert_int_eq(packed.status, 200);
    http_free(&plain);
    http_free(&other);
    http_free(&packed);
}
END_TEST

CHECK_MAIN("page")
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_browser_gets_the_page_and_a_program_the_index);
    tcase_add_test(tests, the_page_alone_is_guarded);
    tcase_add_test(tests, gzip_is_for_those_who_take_it);
    tcase_add_test(tests, who_has_the_page_is_told_so);
    tcase_add_test(tests, another_tag_gets_the_page_again);
}
