/* test_bpe.c: tests of server/codec/tokenizer/model/bpe.c, against a search of all pairs, and at the ends of what it takes. */
#include "../tokenizer_stage.h"
#include "random.h"

/* Words are cut at a bar. */
static const struct tokenizer *with(const char *members, const char *vocab, const char *merges)
{
    static char text[32768];
    const int length =
        snprintf(text, sizeof text,
                 "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"|\"},"
                 "\"behavior\":\"Removed\"},\"model\":{\"type\":\"BPE\",%s\"vocab\":{%s},\"merges\":[%s]}}",
                 members, vocab, merges);
    ck_assert_uint_lt((size_t)length, sizeof text);
    return load_text(text_span_of(text));
}

/* ---- merges ---- */

enum { LETTERS = 3, MERGES = 40, TOKENS = LETTERS + MERGES, TOKEN_BYTES = 8, WORD = 24 };

/* Random merges of the letters a, b and c: what each token spells, by id, and which pair of ids becomes which, by rank. */
struct merges {
    char texts[TOKENS][TOKEN_BYTES + 1];
    size_t tokens;
    struct {
        size_t left, right, id;
    } list[MERGES];
    size_t count;
};

static size_t find(const struct merges *merges, const char *text)
{
    size_t id = 0;
    while (id < merges->tokens && strcmp(merges->texts[id], text) != 0)
        id++;
    return id;
}

static bool is_there(const struct merges *merges, size_t left, size_t right)
{
    for (size_t i = 0; i < merges->count; i++)
        if (merges->list[i].left == left && merges->list[i].right == right)
            return true;
    return false;
}

static void make(struct merges *merges, random_source *random)
{
    *merges = (struct merges){.texts = {"a", "b", "c"}, .tokens = LETTERS};
    while (merges->count < MERGES) {
        const size_t left = random_below(random, merges->tokens), right = random_below(random, merges->tokens);
        char text[2 * TOKEN_BYTES + 1];
        snprintf(text, sizeof text, "%s%s", merges->texts[left], merges->texts[right]);
        if (strlen(text) > TOKEN_BYTES || is_there(merges, left, right))
            continue;
        const size_t id = find(merges, text);
        if (id == merges->tokens)
            strcpy(merges->texts[merges->tokens++], text);
        merges->list[merges->count].left = left;
        merges->list[merges->count].right = right;
        merges->list[merges->count++].id = id;
    }
}

/* The id of a token in the file: forwards, or backwards. */
static size_t id_of(const struct merges *merges, size_t id, bool is_backwards)
{
    return is_backwards ? merges->tokens - 1 - id : id;
}

static const struct tokenizer *load_merges(const struct merges *merges, bool is_backwards)
{
    char vocab[TOKENS * 16] = "", list[MERGES * 32] = "";
    size_t used = 0;
    for (size_t id = 0; id < merges->tokens; id++)
        used += (size_t)snprintf(vocab + used, sizeof vocab - used, "%s\"%s\":%zu", id > 0 ? "," : "",
                                 merges->texts[id], id_of(merges, id, is_backwards));
    used = 0;
    for (size_t i = 0; i < merges->count; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s\"%s %s\"", i > 0 ? "," : "",
                                 merges->texts[merges->list[i].left], merges->texts[merges->list[i].right]);
    return with("", vocab, list);
}

/* The merge of the lowest rank that a pair of the word has, the leftmost place of these; false: no pair has one. */
static bool find_first(const struct merges *merges, const size_t *word, size_t count, size_t *rank, size_t *place)
{
    for (*rank = 0; *rank < merges->count; ++*rank)
        for (*place = 0; *place + 1 < count; ++*place)
            if (word[*place] == merges->list[*rank].left && word[*place + 1] == merges->list[*rank].right)
                return true;
    return false;
}

static size_t merge_slowly(const struct merges *merges, const char *text, size_t word[WORD])
{
    size_t count = strlen(text), rank, place;
    for (size_t i = 0; i < count; i++)
        word[i] = (size_t)(text[i] - 'a');
    while (find_first(merges, word, count, &rank, &place)) {
        word[place] = merges->list[rank].id;
        count--;
        memmove(word + place + 1, word + place + 2, (count - place - 1) * sizeof *word);
    }
    return count;
}

START_TEST(the_heap_merges_as_a_search_of_all_pairs)
{
    random_source random = random_seeded((uint64_t)_i);
    struct merges merges;
    make(&merges, &random);
    const bool is_backwards = _i % 2 != 0;
    const struct tokenizer *tokenizer = load_merges(&merges, is_backwards);
    for (int round = 0; round < 50; round++) {
        char text[WORD + 1] = "";
        size_t word[WORD];
        for (size_t i = 0; i < WORD; i++)
            text[i] = (char)('a' + random_below(&random, LETTERS));
        const size_t count = merge_slowly(&merges, text, word);
        const struct tokenizer_output output = encode(tokenizer, &(struct tokenizer_input){.text = text_span_of(text)});
        ck_assert_uint_eq(output.count, count);
        for (size_t i = 0; i < count; i++)
            ck_assert_uint_eq(output.tokens[i].id, id_of(&merges, word[i], is_backwards));
    }
}
END_TEST

/* A text with spaces is one of two parts in a list of merges, and not cut at the space. */
START_TEST(parts_of_merges_may_hold_spaces)
{
    const struct tokenizer *tokenizer =
        with("", "\"a\":0,\"b\":1,\"c\":2,\" \":3,\"ab\":4,\"a \":5,\"a b\":6,\"a bc\":7",
             "[\"a b\",\"c\"],[\"a\",\" \"],[\"a \",\"b\"]");
    ck_assert_str_eq(said_ids(tokenizer, "a bc"), "7:0-4");
}
END_TEST

static struct text_span long_merge(size_t bytes, bool is_there)
{
    static char text[2 << 14];
    static char as[4097];
    memset(as, 'a', 4096);
    snprintf(text, sizeof text,
             "{\"model\":{\"type\":\"BPE\",\"continuing_subword_prefix\":\"%.32s\",\"vocab\":{\"a\":0,\"%.2048s\":1,"
             "\"%.*s\":2%s%.*s%s},\"merges\":[[\"%.2048s\",\"%.*s\"]]}}",
             as, as, (int)(bytes - 2048 + 32), as, is_there ? ",\"" : "", is_there ? (int)bytes : 0, as,
             is_there ? "\":3" : "", as, (int)(bytes - 2048 + 32), as);
    return text_span_of(text);
}

START_TEST(a_merge_makes_at_most_4096_bytes)
{
    const struct tokenizer *tokenizer = load_text(long_merge(4096, true));
    ck_assert_uint_eq(tokenizer_token(tokenizer, 3).length, 4096);
    static const struct {
        size_t bytes;
        bool is_there;
        const char *message;
    } wrong[] = {{4096, false, "the vocabulary lacks one of them or the result"},
                 {4097, true, "makes a token that is too short or too long"}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const struct text_span text = long_merge(wrong[i].bytes, wrong[i].is_there);
        err = (attn_error){0};
        ck_assert_int_eq(tokenizer_load(text.at, text.length, arena, scratch, &tokenizer, &err), ATTN_ERR_VALUE);
        ck_assert_msg(strstr(err.message, wrong[i].message) != NULL, "%s", err.message);
    }
}
END_TEST

/* ---- characters ---- */

#define BYTES_32 "--------------------------------"

/* \xC3\xA4 is one character of two bytes, and \xF0\x9F\x98\x80 one of four. */
static const struct {
    const char *members, *vocab, *merges, *text, *ids;
} words[] = {
    {"\"dropout\":0,", "\"a\":0", "", "aa", "0:0-1 0:1-2"},
    {"\"dropout\":null,\"unk_token\":\"?\",", "\"?\":0,\"a\":1", "", "xxa", "0!:0-1 0!:1-2 1:2-3"},
    {"\"fuse_unk\":true,\"unk_token\":\"?\",", "\"?\":0,\"a\":1", "", "xxax", "0!:0-2 1:2-3 0!:3-4"},
    {"", "\"a\":0", "", "xa", "0:0-1"}, /* without an unknown token, characters go */
    {"\"continuing_subword_prefix\":\"#\",", "\"a\":0,\"#b\":1,\"#\":2,\"ab\":3", "[\"a\",\"#b\"]", "ab", "3:0-2"},
    {"\"continuing_subword_prefix\":\"#\",", "\"a\":0,\"#\":1", "[\"a\",\"#\"]", "a", "0:0-1"},
    {"\"end_of_word_suffix\":\"#\",", "\"a\":0,\"a#\":1", "", "aa", "0:0-1 1:1-2"},
    {"\"continuing_subword_prefix\":\"" BYTES_32 "\",\"end_of_word_suffix\":\"" BYTES_32 "\",",
     "\"a\":0,\"" BYTES_32 "\xF0\x9F\x98\x80" BYTES_32 "\":1", "", "a\xF0\x9F\x98\x80", "0:0-1 1:1-2"},
    {"\"byte_fallback\":true,", "\"a\":0,\"<0xC3>\":1,\"<0xA4>\":2", "", "a\xC3\xA4", "0:0-1 1:1-2 2:1-2"},
    {"\"byte_fallback\":true,\"unk_token\":\"a\",", "\"a\":0,\"<0xC3>\":1", "", "\xC3\xA4", "0!:0-1"},
    {"\"unk_token\":\"a\",", "\"a\":0,\"<0xC3>\":1,\"<0xA4>\":2", "", "\xC3\xA4", "0!:0-1"},
    /* The byte of the suffix has no character of its own. */
    {"\"byte_fallback\":true,\"end_of_word_suffix\":\"#\",", "\"a\":0,\"<0xC3>\":1,\"<0xA4>\":2,\"<0x23>\":3,\"a#\":4",
     "", "a\xC3\xA4|a", "0:0-1 1:1-2 2:1-2 3:1-2 4:3-4"},
    /* Two escapes that are one character are read as a tree. */
    {"", "\"a\":0,\"\\uD83D\\uDE00\":1,\"a\\uD83D\\uDE00\":2", "[\"a\",\"\\uD83D\\uDE00\"]", "a\xF0\x9F\x98\x80",
     "2:0-2"},
    {"", "\"a\":0,\"\\uD83D\\uDE00\":1,\"a\\uD83D\\uDE00\":2", "\"a \\uD83D\\uDE00\"", "a\xF0\x9F\x98\x80", "2:0-2"},
    /* Two merges in a row may make the same token. */
    {"", "\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4,\"abc\":5,\"x\":6", "\"b c\",\"a b\",\"a bc\",\"ab c\"", "abc",
     "5:0-3"},
    {"", "\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4,\"abc\":5,\"x\":6", "\"a b\",\"b c\",\"a bc\",\"ab c\"", "abc",
     "5:0-3"},
    /* Whole words come before merges, where the file says so. */
    {"\"ignore_merges\":true,", "\"a\":0,\"b\":1,\"ab\":2,\"aba\":3", "[\"a\",\"b\"]", "aba", "3:0-3"},
    {"\"ignore_merges\":true,", "\"a\":0,\"b\":1,\"ba\":2", "", "ab|ba", "0:0-1 1:1-2 2:3-5"},
    {"\"ignore_merges\":false,", "\"a\":0,\"b\":1,\"ab\":2,\"aba\":3", "[\"a\",\"b\"]", "aba", "2:0-2 0:2-3"},
};

START_TEST(characters_become_tokens)
{
    const struct tokenizer *tokenizer = with(words[_i].members, words[_i].vocab, words[_i].merges);
    ck_assert_str_eq(said_ids(tokenizer, words[_i].text), words[_i].ids);
}
END_TEST

/* ---- refusals ---- */

static const struct {
    const char *text;
    attn_status status;
    const char *message;
} refused[] = {
    {"\"vocab\":{\"a\":0,\"aa\":1},\"merges\":[\"aa\"]", ATTN_ERR_VALUE, "/model/merges/0 must be a pair of tokens"},
    {"\"vocab\":{\"a\":0,\"aa\":1},\"merges\":[[\"a a\",1]]", ATTN_ERR_VALUE,
     "/model/merges/0 must be a pair of tokens"},
    {"\"vocab\":{\"a\":0,\"aa\":1},\"merges\":[[\"a\",\"a\",\"a\"]]", ATTN_ERR_VALUE, "must be a pair of tokens"},
    {"\"vocab\":{\"a\":0,\"aa\":1},\"merges\":[[\"a\",\"a\"],1]", ATTN_ERR_VALUE, "/model/merges/1 must be a pair"},
    {"\"vocab\":{\"a\":0,\"ab\":1},\"merges\":[\"a b\"]", ATTN_ERR_VALUE, "the vocabulary lacks one of them"},
    {"\"vocab\":{\"b\":0,\"ab\":1},\"merges\":[\"a b\"]", ATTN_ERR_VALUE, "the vocabulary lacks one of them"},
    {"\"vocab\":{\"a\":0},\"merges\":{}", ATTN_ERR_FIELD, "/model/merges must be the list of merges"},
    {"\"vocab\":{\"a\":0},\"m\\u0065rges\":[]", ATTN_ERR_FIELD, "/model/merges must be the list of merges"},
    {"\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":\"0\"", ATTN_ERR_VALUE, "/model/dropout asks for dropout"},
    {"\"vocab\":{\"a\":0},\"merges\":[],\"end_of_word_suffix\":\"" BYTES_32 "-\"", ATTN_ERR_TOO_LARGE,
     "/model/end_of_word_suffix has more than 32 bytes"},
};

START_TEST(what_is_no_bpe_is_named)
{
    char text[512];
    const struct tokenizer *tokenizer;
    snprintf(text, sizeof text, "{\"model\":{\"type\":\"BPE\",%s}}", refused[_i].text);
    err = (attn_error){0};
    ck_assert_int_eq(tokenizer_load(text, strlen(text), arena, scratch, &tokenizer, &err), refused[_i].status);
    ck_assert_msg(strstr(err.message, refused[_i].message) != NULL, "%s", err.message);
}
END_TEST

CHECK_MAIN("bpe")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, the_heap_merges_as_a_search_of_all_pairs, 0, 20);
    tcase_add_test(tests, parts_of_merges_may_hold_spaces);
    tcase_add_test(tests, a_merge_makes_at_most_4096_bytes);
    tcase_add_loop_test(tests, characters_become_tokens, 0, COUNT(words));
    tcase_add_loop_test(tests, what_is_no_bpe_is_named, 0, COUNT(refused));
}
