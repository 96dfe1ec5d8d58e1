/*
 * test_glyphs.c: tests server/codec/picture/fonts/glyphs.c and font_set.c: the supported scripts, and
 * the drawing of text.
 */
#include "codec/picture/fonts/fonts.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "codec/bytes/utf8.h"
#include "words.h"

static attn_arena *arena;
static struct font_set fonts;

static void set_up(void)
{
    char message[256];
    arena = attn_arena_create((size_t)256 << 20);
    ck_assert_msg(font_set_open(&fonts, "auto", message, sizeof message), "%s", message);
    ck_assert_uint_eq(fonts.count, 2);
}

static void tear_down(void)
{
    attn_arena_destroy(arena);
    font_set_close(&fonts);
}

/* The line of a word, by the fonts; the ink stays in the arena. */
static struct glyph_line line_of(const char *word, const struct font_set *set)
{
    struct blocks blocks = blocks_begin(arena);
    struct glyphs *glyphs = glyphs_open(set, &blocks);
    struct label label;
    picture_text_clean(&label, word);
    struct glyph_line line = glyphs_line(glyphs, &label, 22);
    glyphs_close(glyphs);
    return line;
}

static bool same_line(struct glyph_line a, struct glyph_line b)
{
    return a.width == b.width && memcmp(a.ink, b.ink, (size_t)a.width * (size_t)a.height) == 0;
}

START_TEST(every_script_has_glyphs_and_no_two_words_look_alike)
{
    struct glyph_line line[WORDS];
    for (int i = 0; i < WORDS; i++) {
        line[i] = line_of(words[i], &fonts);
        ck_assert_ptr_nonnull(line[i].ink);
        for (int j = 0; j < i; j++)
            ck_assert_msg(!same_line(line[i], line[j]), "%s looks like %s", words[i], words[j]);
    }
}
END_TEST

/* A character that no font had would be in dots or a box with the fonts too. */
START_TEST(the_fonts_have_every_character)
{
    static const struct font_set none = {0};
    for (int i = 0; i < WORDS; i++)
        for (const char *at = words[i]; *at != '\0';) {
            char character[8] = {0};
            const char *next = at;
            (void)utf8_next(&next);
            memcpy(character, at, (size_t)(next - at));
            ck_assert_msg(!same_line(line_of(character, &fonts), line_of(character, &none)), "%s", character);
            at = next;
        }
}
END_TEST

struct clean_case {
    const char *text, *shown;
};

static const struct clean_case CLEAN_CASES[] = {
    {"", ""},
    {"Ben", "Ben"},
    {"\n", "\xE2\x86\xB5"},
    {" ", "\xE2\x90\xA3"},
    {" the", " the"},
    {"a\x01"
     "b\x7F",
     "a\xE2\x90\x81"
     "b\xE2\x90\xA1"},
    {"\xC2\x85", "\xEF\xBF\xBD"},
    {"\x80\xFF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xEF\xBF\xBF", "\xEF\xBF\xBD"},
    {"a\xE2\x80\xAE"
     "b\xE2\x80\x8B",
     "ab"},
    {"\xF0\x9F\x98\x80\xE4", "\xF0\x9F\x98\x80\xEF\xBF\xBD"},
    {"123456789 123456789 123456789 123456789 12345678", "123456789 123456789 123456789 123456789 12345678"},
    {"123456789 123456789 123456789 123456789 123456789",
     "123456789 123456789 123456789 123456789 1234567\xE2\x80\xA6"},
};

START_TEST(labels_are_cleaned)
{
    for (size_t i = 0; i < COUNT(CLEAN_CASES); i++) {
        struct label label;
        picture_text_clean(&label, CLEAN_CASES[i].text);
        ck_assert_str_eq(label.text, CLEAN_CASES[i].shown);
    }
}
END_TEST

START_TEST(a_long_label_is_cut_to_its_width)
{
    struct blocks blocks = blocks_begin(arena);
    struct glyphs *glyphs = glyphs_open(&fonts, &blocks);
    for (int width = 24; width < 400; width += 7) {
        struct label label;
        picture_text_clean(&label, "internationalization of everything that there is");
        glyphs_fit(glyphs, &label, 22, width);
        ck_assert_int_le(glyphs_width(glyphs, &label, 22), width);
        ck_assert_str_eq(label.text + strlen(label.text) - 3, "\xE2\x80\xA6");
    }
    glyphs_close(glyphs);
}
END_TEST

/* The first and the last of every block of marks, and what stands behind it. */
static const struct {
    const char *character;
    bool is_mark;
} marks[] = {
    {"\xCC\x80", true},      {"\xCD\xAF", true},          {"\xCD\xB0", false},     {"\xD2\x83", true},
    {"\xD2\x89", true},      {"\xD2\x8A", false},         {"\xE1\xAA\xB0", true},  {"\xE1\xAB\xBF", true},
    {"\xE1\xAC\x80", false}, {"\xE1\xB7\x80", true},      {"\xE1\xB7\xBF", true},  {"\xE1\xB8\x80", false},
    {"\xE2\x83\x90", true},  {"\xE2\x83\xBF", true},      {"\xE2\x84\x80", false}, {"\xE3\x82\x99", true},
    {"\xE3\x82\x9A", true},  {"\xE3\x82\x9B", false},     {"\xEF\xB8\xA0", true},  {"\xEF\xB8\xAF", true},
    {"\xEF\xB8\xB0", false}, {"\xF0\x9F\x98\x80", false},
};

START_TEST(a_label_is_not_cut_between_a_letter_and_its_mark)
{
    char text[64] = "";
    bool was_cut_there = false;
    for (int i = 0; i < 8; i++)
        strcat(strcat(text, "o"), marks[_i].character);
    struct blocks blocks = blocks_begin(arena);
    struct glyphs *glyphs = glyphs_open(&fonts, &blocks);
    struct label whole;
    picture_text_clean(&whole, text);
    ck_assert_uint_eq(whole.count, 16);
    for (int width = 24; width < glyphs_width(glyphs, &whole, 22); width++) {
        struct label label = whole;
        glyphs_fit(glyphs, &label, 22, width);
        ck_assert_int_le(glyphs_width(glyphs, &label, 22), width);
        was_cut_there = was_cut_there || label.count % 2 == 0; /* a letter, its mark, …, a letter, the ellipsis */
    }
    ck_assert_msg(was_cut_there == !marks[_i].is_mark, "mark %d", _i);
    glyphs_close(glyphs);
}
END_TEST

START_TEST(without_fonts_ascii_is_in_dots_and_the_rest_in_boxes)
{
    static const struct font_set none = {0};
    ck_assert(!same_line(line_of("a", &none), line_of("b", &none)));
    ck_assert(!same_line(line_of("\xE4\xBB\x8A", &none), line_of("\xE5\xA4\xA9", &none)));
}
END_TEST

START_TEST(an_accent_is_centred_over_its_letter)
{
    struct glyph_line composed = line_of("\xC3\xA9", &fonts), apart = line_of("e\xCC\x81", &fonts);
    ck_assert_int_eq(composed.width, apart.width);
    int differ = 0;
    for (int i = 0; i < composed.width * composed.height; i++)
        differ += abs(composed.ink[i] - apart.ink[i]) > 128;
    ck_assert_int_lt(differ, 12); /* the accents are drawn a fraction of a pixel apart */
}
END_TEST

START_TEST(fonts_that_are_none_are_refused_by_name)
{
    struct font_set set;
    char message[256];
    ck_assert(!font_set_open(&set, "auto,/does/not/exist.ttf", message, sizeof message));
    ck_assert_str_eq(message, "font /does/not/exist.ttf: No such file or directory");
    ck_assert(!font_set_open(&set, "/proc/self/exe", message, sizeof message));
    ck_assert_ptr_nonnull(strstr(message, "font /proc/self/exe: not a font"));
    ck_assert(!font_set_open(&set, "/", message, sizeof message));
    ck_assert(font_set_open(&set, fonts.file[1].path, message, sizeof message));
    ck_assert_uint_eq(set.count, 1);
    font_set_close(&set);
}
END_TEST

CHECK_MAIN("glyphs")
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, every_script_has_glyphs_and_no_two_words_look_alike);
    tcase_add_test(tests, the_fonts_have_every_character);
    tcase_add_test(tests, labels_are_cleaned);
    tcase_add_test(tests, a_long_label_is_cut_to_its_width);
    tcase_add_test(tests, without_fonts_ascii_is_in_dots_and_the_rest_in_boxes);
    tcase_add_test(tests, an_accent_is_centred_over_its_letter);
    tcase_add_test(tests, fonts_that_are_none_are_refused_by_name);
    tcase_add_loop_test(tests, a_label_is_not_cut_between_a_letter_and_its_mark, 0, COUNT(marks));
}
