/* test_show.c: tests of server/codec/tokenizer/show.c. */
#include <string.h>

#include "codec/bytes/chunks.h"
#include "tokenizer_stage.h"

/* "a", "ä" (0xC3 0xA4) in pieces and whole, a space with half a character, and the byte 0, in GPT-2's alphabet. */
#define BYTE_LEVEL                                                                                                     \
    "{\"model\":{\"type\":\"BPE\",\"merges\":[\"\xC4\xA0 \xC3\x83\"],\"vocab\":{\"a\":0,\"\xC3\x83\":1,"               \
    "\"\xC2\xA4\":2,\"\xC4\xA0\":3,\"\xC4\xA0\xC3\x83\":4,\"\xC4\x80\":5}},"                                           \
    "\"added_tokens\":[{\"id\":6,\"content\":\"<\xC3\xA4>\",\"special\":true}],"                                       \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"}}"

/* As in Llama 2: a mark for a space, and bytes in hexadecimal. */
#define BYTE_FALLBACK                                                                                                   \
    "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"merges\":[\"\xE2\x96\x81 b\"],\"vocab\":{\"a\":0,"           \
    "\"\xE2\x96\x81\":1,\"b\":2,\"\xE2\x96\x81"                                                                         \
    "b\":3,\"<0xC3>\":4,\"<0xA4>\":5,\"<0x0A>\":6}},"                                                                   \
    "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"},"                \
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"}," \
    "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \","         \
    "\"start\":1,\"stop\":0}]}}"

/* As in CLIP: a mark behind the last part of a word. */
#define SUFFIX                                                                                                              \
    "{\"model\":{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\",\"merges\":[],\"vocab\":{\"a\":0,\"a</w>\":1,\"</w>\":2," \
    "\"\xC3\x83</w>\":3,\"b</v>\":4}},\"decoder\":{\"type\":\"ByteLevel\"}}"

#define PIECES                                                                                                         \
    "{\"normalizer\":{\"type\":\"Lowercase\"},\"pre_tokenizer\":{\"type\":\"Whitespace\"},"                            \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","                  \
    "\"vocab\":{\"[UNK]\":0,\"a\":1,\"##b\":2}},\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":true}]," \
    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}}"

/* One character becomes two, which stand for the same place. */
#define TWO                                                                                                                              \
    "{\"normalizer\":{\"type\":\"Lowercase\"},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"continuing_subword_prefix\":\"\"," \
    "\"vocab\":{\"?\":0,\"i\":1,\"\xCC\x87\":2}}}"

#define TWO_LETTERS                                                                                                               \
    "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"ib\"},\"model\":{\"type\":\"WordPiece\"," \
    "\"unk_token\":\"?\",\"continuing_subword_prefix\":\"\",\"vocab\":{\"?\":0,\"i\":1,\"b\":2}}}"

/* A token of characters that are none of GPT-2's alphabet, and one that are. */
#define ALPHABET                                                                                                       \
    "{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\xE6\xB3\xA8\":0,\"b\xC3\x83\xC2\xA4\":1}},\"decoder\":{\"type\":\"ByteLevel\"}}"

#define REPLACED(text)                                                                                                              \
    "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"aaa\":0}},\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"aaa\"}," \
    "\"content\":\"" text "\"}}"

/* What is shown, each behind a bar; a NUL as 0. */
static const char *joined(const struct text_span *shown, size_t count)
{
    static char said[512];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        said[used++] = '|';
        for (size_t n = 0; n < shown[i].length; n++)
            said[used++] = shown[i].at[n] != '\0' ? shown[i].at[n] : '0';
    }
    said[used] = '\0';
    return said;
}

static const struct {
    const char *tokenizer, *text, *shown;
} texts[] = {
    {BYTE_LEVEL, "a\xC3\xA4", "|a|\\xC3|\\xA4"},
    {BYTE_LEVEL, "a \xC3\xA4", "|a| \\xC3|\\xA4"},
    {BYTE_LEVEL, "<\xC3\xA4>a", "|<\xC3\xA4>|a"},
    {BYTE_FALLBACK, "a b\xC3\xA4", "|a| b|\\xC3|\\xA4"},
    {BYTE_FALLBACK, "a\n", "|a|\n"},
    {PIECES, "AB a", "|A|B|a"},
    {TWO_LETTERS, "aba", "|a|a|b|a|a"},
    {TWO, "\xC4\xB0i\xC4\xB0", "|\xC4\xB0|\xC4\xB0|i|\xC4\xB0|\xC4\xB0"},
    {PIECES, "ab \xC3\xA4 [UNK]", "|a|b|\xC3\xA4|[UNK]"},
};

START_TEST(a_text_shows_its_characters)
{
    struct text_span shown[16];
    const struct tokenizer *tokenizer = load_text(text_span_of(texts[_i].tokenizer));
    const struct tokenizer_input input = {.text = text_span_of(texts[_i].text)};
    const struct tokenizer_output output = encode(tokenizer, &input);
    ck_assert_uint_le(output.count, 16);
    ck_assert_int_eq(tokenizer_show_text(tokenizer, &input, output.tokens, output.count, arena, shown, &err), ATTN_OK);
    ck_assert_str_eq(joined(shown, output.count), texts[_i].shown);
}
END_TEST

static const struct {
    const char *tokenizer;
    int64_t ids[6];
    size_t count;
    const char *shown, *first;
} ids[] = {
    {BYTE_LEVEL, {0, 4, 2, 5, 6, 1}, 6, "|a| \\xC3|\\xA4|0|<\xC3\xA4>|\\xC3", "|a"},
    {BYTE_FALLBACK, {3, 3, 4, 5, 6, 0}, 6, "|b| b|\\xC3|\\xA4|\n|a", "|b"},
    {PIECES, {1, 2, 1, 0}, 4, "|a|b|a|[UNK]", "|a"},
    {PIECES, {9}, 1, "|", "|"},
    {BYTE_FALLBACK, {1, 1}, 2, "|\xE2\x96\x81| ", "|\xE2\x96\x81"}, /* the decoder leaves nothing of the first one */
    {ALPHABET, {0, 1}, 2, "|a\xE6\xB3\xA8|b\xC3\xA4", "|a\xE6\xB3\xA8"},
    {REPLACED("xaaa"), {0}, 1, "|xaaa", "|xaaa"},
    {REPLACED(" aab"), {0}, 1, "| aab", "| aab"},
    {REPLACED(" aaa"), {0}, 1, "|aaa", "|aaa"},
    {SUFFIX, {0, 1, 2, 3, 4}, 5, "|a|a|</w>|\\xC3|b</v>", "|a"},
};

START_TEST(ids_show_what_the_decoder_gives)
{
    struct text_span shown[6];
    const struct tokenizer *tokenizer = load_text(text_span_of(ids[_i].tokenizer));
    const size_t bytes = attn_arena_bytes(scratch);
    ck_assert_int_eq(tokenizer_show_ids(tokenizer, ids[_i].ids, ids[_i].count, arena, shown, &err), ATTN_OK);
    ck_assert_str_eq(joined(shown, ids[_i].count), ids[_i].shown);
    char room[TOKENIZER_SHOWN_MAX];
    struct text_span again;
    ck_assert(tokenizer_show_id(tokenizer, (uint32_t)ids[_i].ids[0], true, scratch, room, &again));
    ck_assert_str_eq(joined(&again, 1), ids[_i].first);
    ck_assert_uint_eq(attn_arena_bytes(scratch), bytes);
}
END_TEST

/*
 * With quotes and a comma, two spellings take 7 bytes and four 5. Of what is shown, "\u0000" takes 9, " \\xC3" 9, "\\xC3" and
 * "\\xA4" 8, "<ä>" 7. What is shorter counts as null does.
 */
START_TEST(different_words_take_no_more_than_the_longest)
{
    static const size_t spelled[] = {0, 7, 14, 19, 24, 29, 34, 39, 44}, shown[] = {0, 9, 18, 26, 34, 41, 46, 51, 56};
    const struct tokenizer *tokenizer = load_text(text_span_of(BYTE_LEVEL));
    for (size_t count = 0; count < COUNT(spelled); count++) {
        ck_assert_uint_eq(tokenizer_words_bound(tokenizer, false, count), spelled[count]);
        ck_assert_uint_eq(tokenizer_words_bound(tokenizer, true, count), shown[count]);
    }
}
END_TEST

/* Words of more than 512 bytes count as the longest of them does, with quotes and a comma. */
START_TEST(long_words_count_as_the_longest)
{
    char text[2048], as[701];
    memset(as, 'a', 700);
    for (int length = 508; length <= 511; length++) {
        snprintf(text, sizeof text, "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"%.*s\":0,\"%.700s\":1}}}", length,
                 as, as);
        const struct tokenizer *tokenizer = load_text(text_span_of(text));
        ck_assert_uint_eq(tokenizer_words_bound(tokenizer, false, 1), 703);
        ck_assert_uint_eq(tokenizer_words_bound(tokenizer, false, 2),
                          703 + (length + 2 < 512 ? (size_t)length + 3 : 703));
    }
}
END_TEST

START_TEST(the_bound_of_words_holds)
{
    static const char *const tokenizers[] = {BYTE_LEVEL, BYTE_FALLBACK, PIECES};
    const struct tokenizer *tokenizer = load_text(text_span_of(tokenizers[_i]));
    const uint32_t count = tokenizer_vocabulary_size(tokenizer);
    char room[TOKENIZER_SHOWN_MAX];
    size_t spelled = 0, shown = 0;
    for (uint32_t id = 0; id < count; id++) {
        struct text_span word;
        ck_assert(tokenizer_show_id(tokenizer, id, false, scratch, room, &word));
        spelled += chunks_json_bytes(tokenizer_token(tokenizer, id)) + 1;
        shown += chunks_json_bytes(word) + 1;
    }
    ck_assert_uint_le(spelled, tokenizer_words_bound(tokenizer, false, count));
    ck_assert_uint_le(shown, tokenizer_words_bound(tokenizer, true, count));
}
END_TEST

START_TEST(a_token_that_the_decoder_makes_much_longer_is_shown_as_spelled)
{
    char text[512], room[TOKENIZER_SHOWN_MAX];
    for (size_t length = 4; length <= 5; length++) {
        struct text_span shown;
        snprintf(
            text, sizeof text,
            "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}},\"decoder\":{\"type\":\"Replace\",\"pattern\":"
            "{\"String\":\"a\"},\"content\":\"%.*s\"}}",
            (int)length, "bbbbbbbb");
        const struct tokenizer *tokenizer = load_text(text_span_of(text));
        ck_assert(tokenizer_show_id(tokenizer, 0, false, scratch, room, &shown));
        ck_assert_uint_eq(shown.length, length == 4 ? 4 : 1);
    }
}
END_TEST

START_TEST(a_pair_shows_the_characters_of_each_text)
{
    struct text_span shown[8];
    const struct tokenizer *tokenizer = load_text(text_span_of(PIECES));
    const struct tokenizer_input input = {.text = text_span_of("\xC3\xA4 A"), .pair = text_span_of("AB")};
    const struct tokenizer_output output = encode(tokenizer, &input);
    ck_assert_int_eq(tokenizer_show_text(tokenizer, &input, output.tokens, output.count, arena, shown, &err), ATTN_OK);
    ck_assert_str_eq(joined(shown, output.count), "|\xC3\xA4|A|A|B");
}
END_TEST

START_TEST(added_tokens_show_their_spelling)
{
    struct text_span shown[8];
    const struct tokenizer *tokenizer = load_text(text_span_of(
        "{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"##b\",2],\"cls\":[\"a\",1]},"
        "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"a\":1,\"##b\":2}},"
        "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\"}}"));
    const struct tokenizer_input input = {.text = text_span_of("ab"), .add_special = true};
    const struct tokenizer_output output = encode(tokenizer, &input);
    ck_assert_int_eq(tokenizer_show_text(tokenizer, &input, output.tokens, output.count, arena, shown, &err), ATTN_OK);
    ck_assert_str_eq(joined(shown, output.count), "|a|a|b|##b");
}
END_TEST

CHECK_MAIN("show")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, a_text_shows_its_characters, 0, COUNT(texts));
    tcase_add_loop_test(tests, ids_show_what_the_decoder_gives, 0, COUNT(ids));
    tcase_add_test(tests, different_words_take_no_more_than_the_longest);
    tcase_add_test(tests, long_words_count_as_the_longest);
    tcase_add_loop_test(tests, the_bound_of_words_holds, 0, 3);
    tcase_add_test(tests, a_token_that_the_decoder_makes_much_longer_is_shown_as_spelled);
    tcase_add_test(tests, added_tokens_show_their_spelling);
    tcase_add_test(tests, a_pair_shows_the_characters_of_each_text);
}
