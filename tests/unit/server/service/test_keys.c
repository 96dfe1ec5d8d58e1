/*
 * test_keys.c: API keys: which lines are keys, who is let in, and what a quota allows.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/digest.h"
#include "check_main.h"
#include "service/keys.h"

/* A file in memory with that text; the same one at each call. */
static const char *file_of(const char *text)
{
    static int fd = -1;
    static char path[32];
    if (fd < 0)
        fd = memfd_create("keys", 0);
    ck_assert_int_ge(fd, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
    return path;
}

/* The line of a key whose token is known: "secret". */
static const char *line_of(const char *name, const char *rest)
{
    static char lines[4][512];
    static size_t used;
    char *line = lines[used++ % 4], text[DIGEST_TEXT];
    uint8_t digest[DIGEST_BYTES];
    digest_of("secret", 6, digest);
    snprintf(line, sizeof lines[0], "%s:%s%s\n", name, digest_write(digest, text), rest);
    return line;
}

static struct keys *keys_of(const char *text)
{
    char message[320] = "";
    struct keys *keys = keys_create(file_of(text), message, sizeof message);
    ck_assert_msg(keys != NULL, "%s", message);
    return keys;
}

static void check_refused(const char *text, const char *word)
{
    char message[320] = "";
    struct keys *keys = keys_create(file_of(text), message, sizeof message);
    ck_assert_msg(keys == NULL, "taken: %s", text);
    ck_assert_msg(strstr(message, word) != NULL, "no \"%s\" in \"%s\" for %s", word, message, text);
}

START_TEST(digests_are_those_of_the_standard)
{
    /* FIPS 180-4: the examples of one block and of the empty message. */
    char text[DIGEST_TEXT];
    uint8_t digest[DIGEST_BYTES], again[DIGEST_BYTES];
    digest_of("abc", 3, digest);
    ck_assert_str_eq(digest_write(digest, text), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert(digest_read(text_span_of("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"), again));
    ck_assert(digest_equal(digest, again));
    digest_of("", 0, again);
    ck_assert_str_eq(digest_write(again, text), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    ck_assert(!digest_equal(digest, again));
    ck_assert(!digest_read(text_span_of("ba78"), again));
    text[5] = 'g';
    ck_assert(!digest_read(text_span_of(text), again));
}
END_TEST

START_TEST(a_key_has_the_rights_of_its_line)
{
    static const struct {
        const char *rest;
        unsigned rights;
    } lines[] = {{"", RIGHT_COMPUTE},
                 {":", RIGHT_COMPUTE},
                 {":compute", RIGHT_COMPUTE},
                 {":metrics", RIGHT_METRICS},
                 {":compute, layers", RIGHT_COMPUTE | RIGHT_LAYERS},
                 {":all", RIGHT_COMPUTE | RIGHT_LAYERS | RIGHT_METRICS},
                 {":layers:requests=1", RIGHT_LAYERS}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct keys *keys = keys_of(line_of("one", lines[i].rest));
        for (unsigned right = RIGHT_COMPUTE; right <= RIGHT_METRICS; right *= 2) {
            const struct keys_answer answer = keys_ask(keys, "secret", right, 0);
            ck_assert_int_eq(answer.verdict, lines[i].rights & right ? KEYS_ALLOWED : KEYS_FORBIDDEN);
            ck_assert_str_eq(answer.name, "one");
        }
        keys_destroy(keys);
    }
}
END_TEST

START_TEST(another_token_is_unknown)
{
    static const char *const tokens[] = {"", "secre", "secret ", "Secret", "one"};
    struct keys *keys = keys_of(line_of("one", ""));
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        const struct keys_answer answer = keys_ask(keys, tokens[i], RIGHT_COMPUTE, 0);
        ck_assert_int_eq(answer.verdict, KEYS_UNKNOWN);
        ck_assert_str_eq(answer.name, "");
    }
    keys_destroy(keys);
}
END_TEST

START_TEST(wrong_lines_are_refused_with_their_number)
{
    char text[1024];
    check_refused("", "holds no key");
    check_refused("# nothing\n\n", "holds no key");
    check_refused("one\n", "line 1");
    check_refused("one:abc\n", "SHA-256");
    check_refused(line_of("a b", ""), "a name is");
    check_refused(line_of("", ""), "a name is");
    check_refused(line_of("one", ":everything"), "rights are");
    check_refused(line_of("one", ":compute:requests=0"), "above 0");
    check_refused(line_of("one", ":compute:bytes=1X"), "a quota is");
    check_refused(line_of("one", ":compute:flops=-1"), "a quota is");
    check_refused(line_of("one", ":compute:speed=1"), "a quota is");
    check_refused(line_of("one", ":compute:flops=1:more"), "four parts");
    snprintf(text, sizeof text, "#\n%s%s", line_of("one", ""), line_of("one", ""));
    check_refused(text, "line 3: the name stands there twice");
    char message[320];
    ck_assert_ptr_null(keys_create("/no/such/file", message, sizeof message));
    ck_assert_ptr_nonnull(strstr(message, "/no/such/file"));
}
END_TEST

START_TEST(a_quota_of_requests_lets_so_many_in_at_once)
{
    struct keys *keys = keys_of(line_of("one", ":compute:requests=3"));
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(keys_ask(keys, "secret", RIGHT_COMPUTE, 0).verdict, KEYS_ALLOWED);
    const struct keys_answer answer = keys_ask(keys, "secret", RIGHT_COMPUTE, 0);
    ck_assert_int_eq(answer.verdict, KEYS_EXHAUSTED);
    ck_assert_str_eq(answer.exhausted, "requests");
    ck_assert(answer.retry_after_s > 0 && answer.retry_after_s <= 1.0 / 3);
    keys_destroy(keys);
}
END_TEST

START_TEST(a_slow_quota_lets_one_in)
{
    struct keys *keys = keys_of(line_of("one", ":compute:requests=0.01"));
    ck_assert_int_eq(keys_ask(keys, "secret", RIGHT_COMPUTE, 0).verdict, KEYS_ALLOWED);
    const struct keys_answer answer = keys_ask(keys, "secret", RIGHT_COMPUTE, 0);
    ck_assert_int_eq(answer.verdict, KEYS_EXHAUSTED);
    ck_assert(answer.retry_after_s > 90 && answer.retry_after_s <= 100);
    keys_destroy(keys);
}
END_TEST

START_TEST(what_a_request_has_cost_is_owed)
{
    struct keys *keys = keys_of(line_of("one", ":compute:bytes=1K,flops=1e6"));
    ck_assert_int_eq(keys_ask(keys, "secret", RIGHT_COMPUTE, 0).verdict, KEYS_ALLOWED);
    keys_charge(keys, "one", &(struct keys_cost){100 << 10, 0});
    struct keys_answer answer = keys_ask(keys, "secret", RIGHT_COMPUTE, 0);
    ck_assert_int_eq(answer.verdict, KEYS_EXHAUSTED);
    ck_assert_str_eq(answer.exhausted, "bytes");
    ck_assert(answer.retry_after_s > 95 && answer.retry_after_s <= 100);
    keys_destroy(keys);
    keys = keys_of(line_of("one", ":compute:flops=1e6"));
    ck_assert_int_eq(keys_ask(keys, "secret", RIGHT_COMPUTE, 0).verdict, KEYS_ALLOWED);
    keys_charge(keys, "one", &(struct keys_cost){0, 5e7});
    keys_charge(keys, "nobody", &(struct keys_cost){0, 5e7});
    answer = keys_ask(keys, "secret", RIGHT_COMPUTE, 0);
    ck_assert_str_eq(answer.exhausted, "flops");
    keys_destroy(keys);
}
END_TEST

/* Of requests that begin at once, one may overdraw: the others find what it took, before its end. */
START_TEST(what_is_planned_is_owed_at_once)
{
    const struct keys_cost nothing = {0, 0}, much = {0, 5e7}, some = {4 << 10, 0};
    struct keys *keys = keys_of(line_of("one", ":compute:bytes=1K,flops=1e6"));
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(keys_ask(keys, "secret", RIGHT_COMPUTE, 0).verdict, KEYS_ALLOWED);
    ck_assert_int_eq(keys_spend(keys, "one", &nothing, &much).verdict, KEYS_ALLOWED);
    struct keys_answer answer = keys_spend(keys, "one", &nothing, &much);
    ck_assert_int_eq(answer.verdict, KEYS_EXHAUSTED);
    ck_assert_str_eq(answer.exhausted, "flops");
    ck_assert_str_eq(answer.name, "one");
    ck_assert(answer.retry_after_s > 30);
    ck_assert_int_eq(keys_spend(keys, "one", &much, &nothing).verdict, KEYS_ALLOWED); /* what it owes is its own */
    keys_charge(keys, "one", &(struct keys_cost){0, -5e7});
    ck_assert_int_eq(keys_ask(keys, "secret", RIGHT_COMPUTE, 4 << 10).verdict, KEYS_ALLOWED);
    ck_assert_int_eq(keys_ask(keys, "secret", RIGHT_COMPUTE, 0).verdict, KEYS_EXHAUSTED);
    ck_assert_int_eq(keys_spend(keys, "one", &some, &some).verdict, KEYS_ALLOWED);
    ck_assert_str_eq(keys_spend(keys, "one", &some, &some).exhausted, "bytes");
    ck_assert_int_eq(keys_spend(keys, "nobody", &nothing, &much).verdict, KEYS_ALLOWED);
    keys_destroy(keys);
}
END_TEST

START_TEST(reading_again_keeps_what_is_owed_and_refuses_wrong_files)
{
    char message[320];
    struct keys *keys = keys_of(line_of("one", ":compute:bytes=1K"));
    keys_charge(keys, "one", &(struct keys_cost){100 << 10, 0});
    file_of(line_of("one", ":compute,metrics:bytes=1K"));
    ck_assert(keys_reload(keys, message, sizeof message));
    ck_assert_int_eq(keys_ask(keys, "secret", RIGHT_METRICS, 0).verdict, KEYS_EXHAUSTED);
    file_of("nonsense\n");
    ck_assert(!keys_reload(keys, message, sizeof message));
    ck_assert_ptr_nonnull(strstr(message, "line 1"));
    ck_assert(keys_knows(keys, "secret"));
    file_of(line_of("two", ""));
    ck_assert(keys_reload(keys, message, sizeof message));
    ck_assert_str_eq(keys_ask(keys, "secret", RIGHT_COMPUTE, 0).name, "two");
    keys_destroy(keys);
}
END_TEST

START_TEST(a_made_key_opens_with_its_line)
{
    char token[KEYS_TOKEN_MAX], other[KEYS_TOKEN_MAX], line[512], message[320];
    ck_assert(keys_make("new", "all", "requests=5", token, line, sizeof line, message, sizeof message));
    struct keys *keys = keys_of(line);
    ck_assert_int_eq(keys_ask(keys, token, RIGHT_LAYERS, 0).verdict, KEYS_ALLOWED);
    ck_assert(keys_make("new", NULL, NULL, other, line, sizeof line, message, sizeof message));
    ck_assert_str_ne(token, other);
    ck_assert_int_eq(keys_ask(keys, other, RIGHT_COMPUTE, 0).verdict, KEYS_UNKNOWN);
    ck_assert(!keys_make("no name", NULL, NULL, token, line, sizeof line, message, sizeof message));
    ck_assert(!keys_make("new", "some", NULL, token, line, sizeof line, message, sizeof message));
    keys_destroy(keys);
}
END_TEST

CHECK_MAIN("keys")
{
    tcase_add_test(tests, digests_are_those_of_the_standard);
    tcase_add_test(tests, a_key_has_the_rights_of_its_line);
    tcase_add_test(tests, another_token_is_unknown);
    tcase_add_test(tests, wrong_lines_are_refused_with_their_number);
    tcase_add_test(tests, a_quota_of_requests_lets_so_many_in_at_once);
    tcase_add_test(tests, a_slow_quota_lets_one_in);
    tcase_add_test(tests, what_a_request_has_cost_is_owed);
    tcase_add_test(tests, what_is_planned_is_owed_at_once);
    tcase_add_test(tests, reading_again_keeps_what_is_owed_and_refuses_wrong_files);
    tcase_add_test(tests, a_made_key_opens_with_its_line);
}
