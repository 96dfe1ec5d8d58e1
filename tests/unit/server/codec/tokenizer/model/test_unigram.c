/* test_unigram.c: tests of server/codec/tokenizer/model/unigram.c, against a search of all ways to cut a text. */
#include "../tokenizer_stage.h"
#include "random.h"

/* As slow_convert writes a Unigram, and a token whose score is that of a piece that is never found. */
#define SLOW  "\"single_precision\":true,"
#define NEVER "[\"?\",0],[\"z\",-1e30],[\"a\",-1],[\"b\",-1],[\"ab\",-3]"

/* Words are cut at a bar. */
static struct text_span file_of(const char *members, const char *vocab)
{
    static char text[8192];
    const int length = snprintf(text, sizeof text,
                                "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"|\"},"
                                "\"behavior\":\"Removed\"},\"model\":{\"type\":\"Unigram\",%s\"vocab\":[%s]}}",
                                members, vocab);
    ck_assert_uint_lt((size_t)length, sizeof text);
    return text_span_of(text);
}

/* ---- the best way ---- */

enum { WORD = 8, TOKENS = 24 };

/* Letters of one and two bytes. */
static const char *const letters[] = {"a", "b", "\xC3\xA4"};

/* Random tokens of one to three letters, behind the unknown one. */
struct tokens {
    char texts[TOKENS][8];
    double scores[TOKENS];
    double unknown;
};

static size_t find(const struct tokens *tokens, const char *text, size_t length)
{
    for (size_t id = 1; id < TOKENS; id++)
        if (strlen(tokens->texts[id]) == length && memcmp(tokens->texts[id], text, length) == 0)
            return id;
    return 0;
}

static void make(struct tokens *tokens, random_source *random)
{
    *tokens = (struct tokens){.texts = {"?"}, .unknown = 0};
    for (size_t id = 1; id < TOKENS;) {
        char text[8] = "";
        for (size_t i = random_below(random, 3) + 1; i > 0; i--)
            strcat(text, letters[random_below(random, COUNT(letters))]);
        if (find(tokens, text, strlen(text)) != 0)
            continue;
        strcpy(tokens->texts[id], text);
        tokens->scores[id] = -1 - 20 * random_uniform(random);
        tokens->unknown = tokens->scores[id] < tokens->unknown ? tokens->scores[id] : tokens->unknown;
        id++;
    }
    tokens->unknown -= 10;
}

static const struct tokenizer *load_tokens(const struct tokens *tokens)
{
    char vocab[TOKENS * 48] = "[\"?\",0]";
    for (size_t id = 1; id < TOKENS; id++)
        snprintf(vocab + strlen(vocab), sizeof vocab - strlen(vocab), ",[\"%s\",%.17g]", tokens->texts[id],
                 tokens->scores[id]);
    return load_text(file_of("\"unk_id\":0,", vocab));
}

/* The best way to cut a text, as its ids; a letter without a token of its own may be unknown. */
static double cut(const struct tokens *tokens, const char *text, size_t ids[WORD], size_t *count)
{
    double best = -1e9;
    *count = 0;
    if (*text == '\0')
        return 0;
    const size_t letter = *text == '\xC3' ? 2 : 1;
    for (size_t length = 1; length <= strlen(text); length++) {
        size_t rest[WORD], more;
        const size_t id = find(tokens, text, length);
        if (id == 0 && length != letter)
            continue;
        const double score = (id != 0 ? tokens->scores[id] : tokens->unknown) + cut(tokens, text + length, rest, &more);
        if (score <= best)
            continue;
        best = score;
        ids[0] = id;
        memcpy(ids + 1, rest, more * sizeof *ids);
        *count = more + 1;
    }
    return best;
}

/* Neighbouring unknown letters are one token. */
static size_t fuse(size_t *ids, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || ids[i] != 0 || ids[i - 1] != 0)
            ids[kept++] = ids[i];
    return kept;
}

START_TEST(the_best_way_is_that_of_a_search_of_all)
{
    random_source random = random_seeded((uint64_t)_i);
    struct tokens tokens;
    make(&tokens, &random);
    const struct tokenizer *tokenizer = load_tokens(&tokens);
    for (int round = 0; round < 20; round++) {
        char text[2 * WORD + 1] = "";
        size_t ids[WORD], count;
        for (size_t i = 0; i < WORD; i++)
            strcat(text, letters[random_below(&random, COUNT(letters))]);
        cut(&tokens, text, ids, &count);
        count = fuse(ids, count);
        const struct tokenizer_output output = encode(tokenizer, &(struct tokenizer_input){.text = text_span_of(text)});
        ck_assert_uint_eq(output.count, count);
        for (size_t i = 0; i < count; i++) {
            ck_assert_uint_eq(output.tokens[i].id, ids[i]);
            ck_assert(output.tokens[i].is_unknown == (ids[i] == 0));
        }
    }
}
END_TEST

/* ---- characters ---- */

#define UNKNOWN "\"unk_id\":0,"
#define BYTES   "[\"?\",0],[\"a\",-1],[\"<0xC3>\",-5],[\"<0xA4>\",-5]"

static const struct {
    const char *members, *vocab, *text, *ids;
} words[] = {
    {UNKNOWN, "[\"?\",0],[\"a\",-1],[\"aa\",-2]", "aa", "2:0-2"}, /* of equal ways, that of the longest first token */
    {UNKNOWN, "[\"?\",0],[\"a\",-1]", "xxa|ax", "0!:0-2 1:2-3 1:4-5 0!:5-6"},
    {"", "[\"b\",-2],[\"a\",-1]", "ab|a", "1:0-1 0:1-2 1:3-4"}, /* no character needs an unknown token */
    {UNKNOWN "\"byte_fallback\":true,", BYTES, "a|\xC3\xA4", "1:0-1 2:2-3 3:2-3"},
    {UNKNOWN "\"byte_fallback\":true,", BYTES, "\xC3\xA4\xC3\xA4", "2:0-2 3:0-2 2:0-2 3:0-2"},
    {UNKNOWN "\"byte_fallback\":true,", BYTES, "\xC3\xA5", "0!:0-1"},
    {UNKNOWN "\"byte_fallback\":true,", "[\"?\",0],[\"<0xA4>\",-5]", "\xC3\xA4", "0!:0-1"},
    {UNKNOWN, BYTES, "\xC3\xA4", "0!:0-1"},
    /* A name with two escapes is read as a tree, with all that follows. */
    {UNKNOWN, "[\"?\",0],[\"\\uD83D\\uDE00\",-5],[\"a\",-1],[\"b\",-1],[\"ab\",-3],[\"b\\uD83D\\uDE00\",-3]",
     "abb\xF0\x9F\x98\x80|\xF0\x9F\x98\x80", "2:0-1 3:1-2 5:2-4 1:5-6"},
    /* An unknown character costs 10 more than the lowest score, wherever that stands. */
    {UNKNOWN, "[\"?\",0],[\"xa\",-25],[\"b\",-20],[\"a\",-1]", "xa", "1:0-2"},
    {UNKNOWN, "[\"?\",0],[\"a\",-1],[\"b\",-20],[\"xa\",-32]", "xa", "3:0-2"},
    /* In a tokenizer.json -1e30 is a score: beside it others do not count, and the longest first token wins. */
    {UNKNOWN, NEVER, "zab", "1:0-1 4:1-3"},
};

/* In a file of slow_convert it is not found, and makes no unknown character dearer; it has the id of what it spells. */
START_TEST(pieces_that_are_never_found)
{
    const struct text_span file = file_of(SLOW UNKNOWN, NEVER);
    ck_assert_str_eq(said_ids(load_slow(file), "zab"), "1:0-1 2:1-2 3:2-3");
}
END_TEST

START_TEST(characters_become_tokens)
{
    ck_assert_str_eq(said_ids(load_text(file_of(words[_i].members, words[_i].vocab)), words[_i].text), words[_i].ids);
}
END_TEST

START_TEST(a_character_needs_a_token_or_the_unknown_one)
{
    static const char *const vocabs[] = {"[\"a\",-1]", "[\"a\",-1],[\"b\",-1e30]"};
    for (size_t i = 0; i < COUNT(vocabs); i++) {
        const struct tokenizer *tokenizer = load_slow(file_of(SLOW, vocabs[i]));
        const struct tokenizer_input input = {.text = text_span_of("ab")};
        struct tokenizer_output output;
        ck_assert_int_eq(tokenizer_encode(tokenizer, &input, arena, scratch, &output, &err), ATTN_ERR_VALUE);
        ck_assert_ptr_nonnull(strstr(err.message, "no unknown token"));
    }
}
END_TEST

CHECK_MAIN("unigram")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, pieces_that_are_never_found);
    tcase_add_loop_test(tests, the_best_way_is_that_of_a_search_of_all, 0, 20);
    tcase_add_loop_test(tests, characters_become_tokens, 0, COUNT(words));
    tcase_add_test(tests, a_character_needs_a_token_or_the_unknown_one);
}
