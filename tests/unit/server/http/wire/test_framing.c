/*
 * test_framing.c: tests of server/http/wire/framing.c on headers in the form that an older library leaves, whichever
 * version is installed. test_guard.c tests what that library makes of bytes on the wire.
 */
#include "http/wire/guard.h"

#include <stdio.h>
#include <string.h>

#include "check_main.h"

static const char lines_wrong[] = "a line of the header does not end in CR LF, or holds a NUL or no name";
static const char folded[] = "a line of the header is folded";
static const char words_wrong[] = "the first line must hold method, target and version";
static const char spaces_wrong[] = "the first line holds more than one space between two words";
static const char target_wrong[] = "the first line holds a NUL, or more than one space between two words";

/* Words that are not part of any header. They lie in front of it and behind it. */
#define BEFORE "before"
#define BEHIND "elsewhere"
#define FIRST  "GET|/|HTTP/1.1"

/* A header of at most one field. A bar stands for a NUL that the library has left. */
static const struct {
    const char *header, *version, *name, *value;
    size_t missing; /* bytes of the header that it ends too early */
    const char *refusal;
} headers[] = {
    {FIRST "||||", "HTTP/1.1", NULL, NULL, 0, NULL},
    {FIRST "||Name| value||||", "HTTP/1.1", "Name", "value", 0, NULL},
    {FIRST "||Name| value\t ||||", "HTTP/1.1", "Name", "value", 0, NULL},
    {FIRST "||Name| value\r\n\r\n", "HTTP/1.1", "Name", "value", 0, NULL},
    /* The first line */
    {FIRST "||||", BEFORE, NULL, NULL, 0, words_wrong},
    {FIRST "||||", BEHIND, NULL, NULL, 0, words_wrong},
    {FIRST, "HTTP/1.1", NULL, NULL, 1, words_wrong},
    {FIRST "||Name| value||||", BEHIND, BEFORE, "value", 0, words_wrong}, /* the first mistake is reported */
    {"GET| /|HTTP/1.1||||", "HTTP/1.1", NULL, NULL, 0, spaces_wrong},
    {"GET|/||HTTP/1.1||||", "HTTP/1.1", NULL, NULL, 0, target_wrong},
    {"GET|/|a|HTTP/1.1||||", "HTTP/1.1", NULL, NULL, 0, target_wrong},
    /* Fields that are not where they stood */
    {FIRST "||Name| value||||", "HTTP/1.1", BEFORE, "value", 0, folded},
    {FIRST "||Name| value||||", "HTTP/1.1", BEHIND, "value", 0, folded},
    {FIRST "||Name| value||||", "HTTP/1.1", "Name", BEFORE, 0, folded},
    {FIRST "||Name| value||||", "HTTP/1.1", "Name", BEHIND, 0, folded},
    {FIRST "||Name| value", "HTTP/1.1", "Name", "value", 1, folded},
    {FIRST "||value|Name", "HTTP/1.1", "Name", "value", 1, folded},
    /* Lines */
    {FIRST "|Name| value||||", "HTTP/1.1", "Name", "value", 0, lines_wrong},
    {FIRST "|||Name| value||||", "HTTP/1.1", "Name", "value", 0, lines_wrong},
    {FIRST "|aName| value||||", "HTTP/1.1", "Name", "value", 0, lines_wrong},
    {FIRST "| Name| value||||", "HTTP/1.1", "Name", "value", 0, lines_wrong},
    {FIRST "||Name| value|||", "HTTP/1.1", "Name", "value", 0, lines_wrong},
    {FIRST "||Name| value|||||", "HTTP/1.1", "Name", "value", 0, lines_wrong},
    {FIRST "||Name| value|b|||", "HTTP/1.1", "Name", "value", 0, lines_wrong},
    {FIRST "||Name| value \n", "HTTP/1.1", "Name", "value", 0, lines_wrong},
};

/* The header of a row between two words that do not belong to it. */
static struct text_span find(const char *stage, size_t size, const char *word)
{
    const char *at = memmem(stage, size, word, strlen(word));
    ck_assert_ptr_nonnull(at);
    return (struct text_span){at, strlen(word)};
}

START_TEST(what_lies_between_the_fields_must_be_ends_of_lines)
{
    char stage[128];
    const int size = snprintf(stage, sizeof stage, BEFORE "|%s|" BEHIND "|", headers[_i].header);
    ck_assert_int_lt(size, (int)sizeof stage);
    for (int i = 0; i < size; i++)
        stage[i] = (char)(stage[i] == '|' ? '\0' : stage[i]);
    const char *method = stage + sizeof BEFORE;
    const size_t header_bytes = strlen(headers[_i].header) - headers[_i].missing;
    struct framing framing;
    framing_begin(&framing, header_bytes, method, "/", find(stage, (size_t)size, headers[_i].version).at);
    if (headers[_i].name != NULL)
        framing_step_over(&framing, find(stage, (size_t)size, headers[_i].name),
                          find(stage, (size_t)size, headers[_i].value));
    const char *refusal = framing_end(&framing), *expected = headers[_i].refusal;
    ck_assert_msg((refusal == NULL) == (expected == NULL), "%s: %s", headers[_i].header, refusal);
    ck_assert_msg(expected == NULL || strcmp(refusal, expected) == 0, "%s: %s", headers[_i].header, refusal);
}
END_TEST

START_TEST(a_newer_library_is_left_to_look_for_itself)
{
    ck_assert_ptr_null(framing_refuses(FRAMING_IS_THE_LIBRARYS, NULL, "GET", "/", "HTTP/1.1"));
    ck_assert_ptr_null(framing_refuses(FRAMING_IS_THE_LIBRARYS + 1, NULL, "GET", "/", "HTTP/1.1"));
}
END_TEST

CHECK_MAIN("framing")
{
    tcase_add_loop_test(tests, what_lies_between_the_fields_must_be_ends_of_lines, 0, COUNT(headers));
    tcase_add_test(tests, a_newer_library_is_left_to_look_for_itself);
}
