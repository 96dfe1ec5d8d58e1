/* test_charsmap.c: tests of server/codec/tokenizer/charsmap.c, with tables that are made here. */
#include <stdlib.h>

#include "codec/bytes/base64.h"
#include "tokenizer_stage.h"

/*
 * A table whose node n has its children, by their bytes, from the unit 256 (n + 1) on. A unit has the byte, whether a key
 * ends there, and the way to the next node; the unit 0 has the way to the first, as a multiple of 256.
 */
enum { NODES = 16, UNITS = 256 * (NODES + 1), TEXTS = 32, LEAF = 1 << 8, SHIFTED = 1 << 9 };

struct table {
    uint32_t units[UNITS], nodes;
    char texts[TEXTS];
    uint32_t texts_bytes;
};

static void add_rule(struct table *table, const char *key, const char *text)
{
    uint32_t base = 256, place = 0;
    for (const char *at = key; *at != '\0'; at++) {
        place = base + (unsigned char)*at;
        if (table->units[place] == 0) {
            ck_assert_uint_lt(table->nodes + 1, NODES);
            table->units[place] = (place ^ 256 * (++table->nodes + 1)) << 10 | (unsigned char)*at;
        }
        base = place ^ table->units[place] >> 10;
    }
    table->units[place] |= LEAF;
    table->units[base] = UINT32_C(1) << 31 | table->texts_bytes;
    memcpy(table->texts + table->texts_bytes, text, strlen(text) + 1);
    table->texts_bytes += (uint32_t)strlen(text) + 1;
}

static struct table *make_table(void)
{
    static const char *const rules[][2] = {{"x", "y"}, {"xx", "z"},       {"q", "yz"}, {"w", ""},    {"f\xCC\x81", "y"},
                                           {"g", "a"}, {"\xCC\x82", "z"}, {"kk", "z"}, {"\r\n", "z"}};
    struct table *table = attn_arena_take_zeroed(arena, 1, sizeof *table);
    table->units[0] = 1 << 10 | SHIFTED;
    for (size_t i = 0; i < COUNT(rules); i++)
        add_rule(table, rules[i][0], rules[i][1]);
    return table;
}

/* The file of a table of so many units and bytes of text, and of a number of bytes that the trie is said to have. */
static struct text_span file_of(const struct table *table, size_t units, size_t texts, uint32_t said, const char *more)
{
    const size_t length = 4 + 4 * units + texts, room = base64_encoded_length(length);
    char *bytes = attn_arena_take(arena, length, 1), *base64 = attn_arena_take_zeroed(arena, room + 1, 1);
    char *file = attn_arena_take(arena, room + 512, 1);
    memcpy(bytes, &said, 4);
    memcpy(bytes + 4, table->units, 4 * units);
    memcpy(bytes + 4 + 4 * units, table->texts, texts);
    base64_encode(base64, bytes, length);
    snprintf(
        file, room + 512,
        "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"%s\"%s},\"model\":{\"type\":\"Unigram\","
        "\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],[\"y\",-1],[\"z\",-1]]}}",
        base64, more);
    return text_span_of(file);
}

static struct text_span whole(const struct table *table, const char *more)
{
    return file_of(table, UNITS, table->texts_bytes, 4 * UNITS, more);
}

/* U+0301 belongs to the grapheme of the letter before it, and stays as it is; so does U+0302, which has a rule. */
static const struct {
    const char *text, *ids, *longest;
} replaced[] = {
    {"axa", "1:0-1 2:1-2 1:2-3", "1:0-1 2:1-2 1:2-3"},
    {"qa", "2:0-1 3:0-1 1:1-2", "2:0-1 3:0-1 1:1-2"},
    {"awwa", "1:0-1 1:3-4", "1:0-1 1:3-4"},
    {"xxx", "2:0-1 2:1-2 2:2-3", "3:0-1 2:2-3"},
    {"ka", "0!:0-1 1:1-2", "0!:0-1 1:1-2"},
    {"f\xCC\x81za", "2:0-1 3:2-3 1:3-4", "2:0-1 3:2-3 1:3-4"},
    {"g\xCC\x81za", "1:0-1 3:2-3 1:3-4", "1:0-1 0!:1-2 3:2-3 1:3-4"},
    {"g\xCC\x81\xCC\x81z", "1:0-1 3:3-4", "1:0-1 0!:1-3 3:3-4"},
    {"g\xCC\x81\xCC\x81\xCC\x82z", "1:0-1 0!:1-3 3:3-4 3:4-5", "1:0-1 0!:1-3 3:3-4 3:4-5"},
    {"f", "0!:0-1", "0!:0-1"},
    {"af\xCC\x81zaa", "1:0-1 2:1-2 3:3-4 1:4-5 1:5-6", "1:0-1 2:1-2 3:3-4 1:4-5 1:5-6"},
    {"akka", "1:0-1 0!:1-3 1:3-4", "1:0-1 3:1-2 1:3-4"}, /* no grapheme has the key */
    {"a\r\nz", "1:0-1 3:1-2 3:3-4", "1:0-1 3:1-2 3:3-4"},
};

START_TEST(keys_are_replaced_by_their_texts)
{
    const struct table *table = make_table();
    ck_assert_str_eq(said_ids(load_text(whole(table, "")), replaced[_i].text), replaced[_i].ids);
    ck_assert_str_eq(said_ids(load_slow(whole(table, ",\"longest\":true")), replaced[_i].text), replaced[_i].longest);
}
END_TEST

/* Where a key ends with the text before a token, what follows does not count. */
START_TEST(a_key_ends_with_its_piece)
{
    const struct table *table = make_table();
    struct text_span file = whole(table, ",\"longest\":true");
    char *text = attn_arena_take(arena, file.length + 128, 1);
    snprintf(text, file.length + 128, "{\"added_tokens\":[{\"id\":4,\"content\":\"xw\",\"normalized\":false}],%s",
             file.at + 1);
    ck_assert_str_eq(said_ids(load_slow(text_span_of(text)), "axxw"), "1:0-1 2:1-2 4:2-4");
}
END_TEST

static void expect_refusal(struct text_span file, attn_status status, const char *message)
{
    const struct tokenizer *tokenizer;
    err = (attn_error){0};
    ck_assert_int_eq(tokenizer_load(file.at, file.length, arena, scratch, &tokenizer, &err), status);
    ck_assert_msg(strstr(err.message, message) != NULL, "%s", err.message);
}

START_TEST(a_table_has_a_size)
{
    const struct table *table = make_table();
    ck_assert_str_eq(said_ids(load_text(file_of(table, 1, 0, 4, "")), "xa"), "0!:0-1 1:1-2");
    ck_assert_str_eq(said_ids(load_text(file_of(table, UNITS, 0, 4 * UNITS, "")), "xa"), "0!:0-1 1:1-2");
    expect_refusal(file_of(table, 0, 3, 4, ""), ATTN_ERR_SYNTAX, "precompiled_charsmap is not base64 of a table");
    expect_refusal(file_of(table, 1, 0, 8, ""), ATTN_ERR_VALUE, "is a table whose trie has 8 bytes of 8");
    expect_refusal(file_of(table, 1, 1, 3, ""), ATTN_ERR_VALUE, "is a table whose trie has 0 bytes of 9");
}
END_TEST

START_TEST(a_table_has_texts_of_characters)
{
    struct table *table = make_table();
    table->texts[0] = '\xFF';
    expect_refusal(whole(table, ""), ATTN_ERR_VALUE, "is a table with texts that are not UTF-8");
    memcpy(table->texts, "\xE6\xB3\xA8", 3); /* over "y", a NUL and "z", which the second offset is that of */
    expect_refusal(whole(table, ""), ATTN_ERR_VALUE, "is a table with texts that are not UTF-8");
}
END_TEST

/* An offset behind the texts has no text. */
START_TEST(a_key_without_a_text_is_not_replaced)
{
    struct table *table = make_table();
    const uint32_t place = 256 + 'x', value = place ^ table->units[place] >> 10;
    table->units[value] = UINT32_C(1) << 31 | table->texts_bytes;
    ck_assert_str_eq(said_ids(load_text(whole(table, "")), "xaq"), "0!:0-1 1:1-2 2:2-3 3:2-3");
}
END_TEST

CHECK_MAIN("charsmap")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, keys_are_replaced_by_their_texts, 0, COUNT(replaced));
    tcase_add_test(tests, a_key_ends_with_its_piece);
    tcase_add_test(tests, a_table_has_a_size);
    tcase_add_test(tests, a_table_has_texts_of_characters);
    tcase_add_test(tests, a_key_without_a_text_is_not_replaced);
}
