/*
 * test_labels_drawn.c: tests of glyphs.c and font_set.c: how a label is made fit to be drawn, and which fonts
 * are taken.
 */
#include "codec/picture/fonts/fonts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check_main.h"
#include "codec/bytes/utf8.h"

#define BAD "\xEF\xBF\xBD" /* U+FFFD */

static const struct {
    const char *text, *shown;
} labels[] = {
    {"", ""},
    {"plain", "plain"},
    {"\n\t\r", "\xE2\x86\xB5\xE2\x87\xA5\xE2\x86\xA4"},
    {"\x01\x1F\x7F", "\xE2\x90\x81\xE2\x90\x9F\xE2\x90\xA1"},
    {" ", "\xE2\x90\xA3"},
    {"\xC2\xA0\xE2\x80\x83\xE2\x80\xAF\xE2\x81\x9F", "\xE2\x90\xA3\xE2\x90\xA3\xE2\x90\xA3\xE2\x90\xA3"}, /* blanks */
    {"a\xC2\xA0\xE2\x80\x80z", "a  z"},
    {"a\xC2\xAD\xD8\x9C\xE2\x80\x8B\xE2\x80\xAA\xE2\x81\xA0\xEF\xB8\x8F\xEF\xBB\xBF\xF3\xA0\x80\x81z", "az"},
    {"\xC2\x85\xE2\x80\xA8\xE2\x80\xA9", BAD BAD BAD},         /* ends of lines and paragraphs */
    {"\xEF\xBF\xBE\xEF\xB7\x90\xF0\x9F\xBF\xBF", BAD BAD BAD}, /* noncharacters */
    {"\xE2\x80\xB0\xE2\x81\xB0\xEF\xB8\xA0\xEF\xB7\xB0\xF3\xA1\x80\x80",
     "\xE2\x80\xB0\xE2\x81\xB0\xEF\xB8\xA0\xEF\xB7\xB0\xF3\xA1\x80\x80"}, /* just beside what is left out */
    {"\xC3\xA7\xE4\xB8\xAD\xF0\x9F\x98\x80", "\xC3\xA7\xE4\xB8\xAD\xF0\x9F\x98\x80"},
    {"\x80\xFF", BAD BAD},
    {"\xC0\x80\xE0\x80\x80\xF0\x80\x80\x80", BAD BAD BAD BAD BAD BAD BAD BAD BAD}, /* longer than they need be */
    {"\xED\xA0\x80", BAD BAD BAD},                                                 /* a surrogate */
    {"\xF4\x90\x80\x80", BAD BAD BAD BAD},                                         /* beyond Unicode */
    {"\xE4\xB8", BAD BAD},
    {"1234567890123456789012345678901234567890123456 890",
     "1234567890123456789012345678901234567890123456\xE2\x80\xA6"},
    {"123456789012345678901234567890123456789012345678", "123456789012345678901234567890123456789012345678"},
};

START_TEST(labels_are_made_fit_to_be_drawn)
{
    struct label label;
    picture_text_clean(&label, labels[_i].text);
    ck_assert_msg(strcmp(label.text, labels[_i].shown) == 0, "%d: %s", _i, label.text);
    const char *at = label.text;
    for (size_t i = 0; i < label.count; i++)
        ck_assert_uint_eq(utf8_next(&at), label.character[i]);
    ck_assert(*at == '\0');
}
END_TEST

/* ---- fonts ---- */

static void check_font(const char *list, const char *expected)
{
    struct font_set set;
    char message[256] = "";
    const bool is_open = font_set_open(&set, list, message, sizeof message);
    ck_assert_msg(is_open == (expected == NULL), "%s: %s", list, message);
    if (expected != NULL)
        ck_assert_msg(strstr(message, expected) != NULL, "%s: %s", list, message);
    else
        font_set_close(&set);
    ck_assert_uint_eq(set.count, 0);
}

START_TEST(a_font_that_is_named_must_be_one)
{
    char path[] = "/tmp/fonts_XXXXXX", list[256];
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    snprintf(list, sizeof list, "font %s: not a file with content", path);
    check_font(path, list);
    ck_assert_int_eq(write(fd, "no font", 7), 7);
    snprintf(list, sizeof list, "font %s: not a font", path);
    check_font(path, list);
    close(fd);
    ck_assert_int_eq(unlink(path), 0);
    check_font(path, "No such file or directory");
    check_font("/tmp", "font /tmp: not a file with content");
    check_font("auto,/nowhere.ttf", "font /nowhere.ttf: No such file");
    check_font("", NULL);
}
END_TEST

START_TEST(there_is_room_for_some_fonts)
{
    struct font_set set;
    char message[256] = "", list[2048] = "auto";
    ck_assert(font_set_open(&set, list, message, sizeof message));
    const char *path = set.count > 0 ? set.file[0].path : NULL;
    for (int i = 0; path != NULL && i < FONT_SET_MAX; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), ",%s", path);
    font_set_close(&set);
    if (path != NULL)
        check_font(list, "one font too many");
    ck_assert(font_set_open(&set, "auto,auto,auto,auto,auto,auto,auto,auto,auto", message, sizeof message));
    ck_assert_uint_le(set.count, FONT_SET_MAX);
    font_set_close(&set);
}
END_TEST

CHECK_MAIN("label")
{
    tcase_add_loop_test(tests, labels_are_made_fit_to_be_drawn, 0, COUNT(labels));
    tcase_add_test(tests, a_font_that_is_named_must_be_one);
    tcase_add_test(tests, there_is_room_for_some_fonts);
}
