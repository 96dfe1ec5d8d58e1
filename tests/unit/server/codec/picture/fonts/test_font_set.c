/*
 * test_font_set.c: tests server/codec/picture/fonts/font_set.c: unusable font files, and failures of system calls.
 */
#include "failing_calls.h"

#include "check_main.h"
#include "codec/picture/fonts/fonts.h"

static struct font_set fonts;
static char message[320];

/* A whole font, of one glyph of eight by one dots. */
static const char bitmap_font[] = "STARTFONT 2.1\n"
                                  "FONT -a-b-medium-r-normal--8-80-75-75-c-80-iso10646-1\n"
                                  "SIZE 8 75 75\n"
                                  "FONTBOUNDINGBOX 8 1 0 0\n"
                                  "STARTPROPERTIES 2\n"
                                  "FONT_ASCENT 8\n"
                                  "FONT_DESCENT 0\n"
                                  "ENDPROPERTIES\n"
                                  "CHARS 1\n"
                                  "STARTCHAR A\n"
                                  "ENCODING 65\n"
                                  "SWIDTH 500 0\n"
                                  "DWIDTH 8 0\n"
                                  "BBX 8 1 0 0\n"
                                  "BITMAP\n"
                                  "FF\n"
                                  "ENDCHAR\n"
                                  "ENDFONT\n";

START_TEST(a_font_of_bitmaps_is_refused)
{
    char path[] = "/tmp/font_set_XXXXXX";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bitmap_font, sizeof bitmap_font - 1), sizeof bitmap_font - 1);
    close(fd);
    const bool is_open = font_set_open(&fonts, path, message, sizeof message);
    unlink(path);
    ck_assert(!is_open && fonts.count == 0);
    ck_assert_msg(strstr(message, path) != NULL && strstr(message, "not a scalable font") != NULL, "%s", message);
}
END_TEST

/* The file of a font that is there. */
static void find_font(char *path, size_t size)
{
    ck_assert_msg(font_set_open(&fonts, "auto", message, sizeof message), "%s", message);
    ck_assert_uint_gt(fonts.count, 0);
    snprintf(path, size, "%s", fonts.file[0].path);
    font_set_close(&fonts);
}

static const struct {
    const char *call;
    int skip;
    const char *fragment;
} refusals[] = {
    {"mmap", 0, ": no memory"},
#if HAS_OWN_MALLOC
    {"malloc", 0, "fonts: no memory"}, /* the list */
    {"malloc", 1, ": the font library does not start"},
#endif
};

START_TEST(what_the_system_refuses_is_said)
{
    char path[256];
    find_font(path, sizeof path);
    fault.call = refusals[_i].call;
    fault.skip = refusals[_i].skip;
    fault.reason = ENOMEM;
    const bool is_open = font_set_open(&fonts, path, message, sizeof message);
    fault.call = NULL;
    ck_assert_msg(!is_open && fault.skip < 0, "%s was not called", refusals[_i].call);
    ck_assert_msg(strstr(message, refusals[_i].fragment) != NULL, "%s", message);
    ck_assert(fonts.count == 0 && fonts.paths == NULL);
    ck_assert_msg(font_set_open(&fonts, path, message, sizeof message), "%s", message);
    ck_assert_uint_eq(fonts.count, 1);
    font_set_close(&fonts);
}
END_TEST

CHECK_MAIN("font_set")
{
    tcase_add_test(tests, a_font_of_bitmaps_is_refused);
    tcase_add_loop_test(tests, what_the_system_refuses_is_said, 0, COUNT(refusals));
}
