/*
 * test_tokenizer.c: tests of server/codec/tokenizer: each kind of step, what is refused, lengths, and little memory.
 * test_tokenizer_vectors.c compares whole tokenizers with recorded tokens.
 */
#include <stdio.h>
#include <string.h>

#include "codec/bytes/pace.h"
#include "tokenizer_stage.h"

/* A WordPiece model of a few letters: x is unknown. */
#define LETTERS                                                                                                        \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"continuing_subword_prefix\":\"\",\"vocab\":{\"?\":0,"     \
    "\"a\":1,\"b\":2,\"c\":3,\" \":4,\"_\":5,\"1\":6,\"2\":7,\".\":8,\"ab\":9,\"\xC3\xA4\":10,\"i\":11}}"

static const struct tokenizer *with(const char *members)
{
    char text[4096];
    snprintf(text, sizeof text, "{%s%s" LETTERS "}", members, members[0] != '\0' ? "," : "");
    return load_text(text_span_of(text));
}

/* The tokens as text: "a:0-1 b:1-2", with ! behind an unknown one and * behind an added one. */
static const char *tokens_of(const struct tokenizer *tokenizer, const struct tokenizer_input *input)
{
    static char said[1024];
    const struct tokenizer_output output = encode(tokenizer, input);
    size_t used = 0;
    said[0] = '\0';
    for (size_t i = 0; i < output.count; i++) {
        const struct tokenizer_token *token = &output.tokens[i];
        used += (size_t)snprintf(said + used, sizeof said - used, "%s%s:%u-%u%s%s", i > 0 ? " " : "", token->text.at,
                                 (unsigned)token->begin, (unsigned)token->end, token->is_unknown ? "!" : "",
                                 token->is_special ? "*" : "");
        ck_assert_uint_lt(used, sizeof said);
    }
    return said;
}

static const char *tokens(const struct tokenizer *tokenizer, const char *text)
{
    return tokens_of(tokenizer, &(struct tokenizer_input){.text = text_span_of(text), .add_special = true});
}

/* ---- steps ---- */

static const struct {
    const char *members, *text, *tokens;
} steps[] = {
    {"", "abc", "ab:0-2 c:2-3"},
    {"\"normalizer\":{\"type\":\"Lowercase\"}", "ABC", "ab:0-2 c:2-3"},
    {"\"normalizer\":{\"type\":\"Lowercase\"}", "\xC4\xB0", "?:0-1!"}, /* becomes i and a mark */
    {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Lowercase\"},{\"type\":\"StripAccents\"}]}",
     "a\xC4\xB0", "a:0-1 i:1-2"},
    {"\"normalizer\":{\"type\":\"NFC\"}",
     "ba\xCC\x88"
     "c",
     "b:0-1 \xC3\xA4:1-2 c:3-4"},
    {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":\"StripAccents\"}]}",
     "b\xC3\xA4"
     "c",
     "b:0-1 a:1-2 c:2-3"},
    {"\"normalizer\":{\"type\":\"NFKC\"}", "\xEF\xBD\x81\xEF\xBD\x82", "ab:0-2"},
    {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKD\"},{\"type\":\"StripAccents\"}]}",
     "\xC3\xA4\xE2\x91\xA0", "a:0-1 1:1-2"},
    {"\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}",
     " \xC2\xA0"
     "ab\t",
     "ab:2-4"},
    {"\"normalizer\":{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}", " a ", " :0-1 a:1-2"},
    {"\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}", " \t", ""},
    {"\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"xx\"},\"content\":\"ab\"}", "cxxc",
     "c:0-1 ab:2-3 c:3-4"},
    {"\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x+\"},\"content\":\"\"}", "cxxxc", "c:0-1 c:4-5"},
    {"\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"_\"}", "ab", "_:0-1 ab:0-2"},
    {"\"normalizer\":{\"type\":\"Nmt\"}",
     "a\x01\xE2\x80\x8B"
     "b",
     "a:0-1  :2-3 b:3-4"},
    {"\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":"
     "null,\"lowercase\":true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}",
     "\xC3\x84\t\xE6\xB3\xA8"
     "b.",
     "a:0-1 ?:2-3! b:3-4 .:4-5"},
    {"\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}", "a.b  ab", "a:0-1 .:1-2 b:2-3 ab:5-7"},
    {"\"pre_tokenizer\":{\"type\":\"Whitespace\"}", "ax ..a", "?:0-2! .:3-4 .:4-5 a:5-6"},
    {"\"pre_tokenizer\":{\"type\":\"Punctuation\"}", "ax.b", "?:0-2! .:2-3 b:3-4"},
    /* The categories are those of Unicode 8, and for StripAccents of Unicode 9. */
    {"\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}",
     "a\xD8\x9D"
     "b",
     "?:0-3!"}, /* U+061D, 14.0 */
    {"\"pre_tokenizer\":{\"type\":\"Punctuation\"}",
     "a\xE1\x99\xAD"
     "b",
     "a:0-1 ?:1-2! b:2-3"}, /* U+166D, now So */
    {"\"pre_tokenizer\":{\"type\":\"Punctuation\"}",
     "a\xDB\x94"
     "b",
     "a:0-1 ?:1-2! b:2-3"},                                                   /* U+06D4 */
    {"\"normalizer\":{\"type\":\"StripAccents\"}", "a\xDF\xBD", "?:0-2!"},    /* U+07FD, 11.0 */
    {"\"normalizer\":{\"type\":\"StripAccents\"}", "a\xE0\xA3\x94", "a:0-1"}, /* U+08D4, 9.0 */
    {"\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"strip_accents\":true,\"lowercase\":false,"
     "\"handle_chinese_chars\":false}",
     "a\xE1\x9C\xB4\xD8\x80", "a:0-1"}, /* U+1734, now Mc, and U+0600 */
    {"\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"Removed\"}", "ax.b", "?:0-2! b:3-4"},
    {"\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":true}", "x12x", "?:0-1! 1:1-2 2:2-3 ?:3-4!"},
    {"\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":false}", "x13x", "?:0-1! ?:1-3! ?:3-4!"},
    {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"always\"}", "a bx",
     "_:0-1 a:0-1 ?:1-4!"},
    {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"never\",\"split\":false}",
     "a b", "a:0-1 _:1-2 b:2-3"},
    {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"add_prefix_space\":false}", "a b",
     "a:0-1 _:1-2 b:2-3"},
    {"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},{\"type\":\"Metaspace\","
     "\"replacement\":\"_\",\"prepend_scheme\":\"first\"}]}",
     "a b", "_:0-1 a:0-1 b:2-3"},
};

START_TEST(each_step_changes_text_and_offsets)
{
    const char *said = tokens(with(steps[_i].members), steps[_i].text);
    ck_assert_msg(strcmp(said, steps[_i].tokens) == 0, "%s of \"%s\": %s, not %s", steps[_i].members, steps[_i].text,
                  said, steps[_i].tokens);
}
END_TEST

static const struct {
    const char *behavior, *tokens;
} behaviors[] = {
    {"Removed", "?:0-1! ?:2-3! ?:5-6!"},
    {"Isolated", "?:0-1! .:1-2 ?:2-3! .:3-4 .:4-5 ?:5-6!"},
    {"MergedWithPrevious", "?:0-2! ?:2-4! .:4-5 ?:5-6!"},
    {"MergedWithNext", "?:0-1! ?:1-3! .:3-4 ?:4-6!"},
    {"Contiguous", "?:0-1! .:1-2 ?:2-3! .:3-4 .:4-5 ?:5-6!"},
};

/* x.x..x */
START_TEST(each_behavior_splits_as_documented)
{
    char members[256];
    snprintf(
        members, sizeof members,
        "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\".\"},\"behavior\":\"%s\",\"invert\":false}",
        behaviors[_i].behavior);
    ck_assert_str_eq(tokens(with(members), "x.x..x"), behaviors[_i].tokens);
}
END_TEST

static const struct {
    const char *regex, *text, *tokens;
} patterns[] = {
    {"[^ab]", "axb", "a:0-1 ?:1-2! b:2-3"},
    {"[a[bc]]", "xabx", "?:0-1! a:1-2 b:2-3 ?:3-4!"},
    {"\\\\u00e4", "x\xC3\xA4", "?:0-1! \xC3\xA4:1-2"},
    {"x{,1}1", "x1", "?:0-2!"},
    {"a|", "xab", "?:0-1! a:1-2 b:2-3"},
    {"[[:digit:]]", "x1", "?:0-1! 1:1-2"},
    {"^b", "b\nb", "b:0-1 ?:1-2! b:2-3"},
    /* U+180E is no space. */
    {"\\\\s", "a\xE1\xA0\x8E b", "?:0-2!  :2-3 b:3-4"},
    {"[^\\\\s]+", "a\xE1\xA0\x8E b", "?:0-2!  :2-3 b:3-4"},
    {"[[:space:]]", "\xE1\xA0\x8E\xE1\xA0\x8E", "?:0-2!"},
    {"[^[:space:]]", "\xE1\xA0\x8E\xE1\xA0\x8E ", "?:0-1! ?:1-2!  :2-3"},
    {"[\\\\S]", "\xE1\xA0\x8E\xE1\xA0\x8E", "?:0-1! ?:1-2!"},
    {"\\\\p{Blank}", "\xE1\xA0\x8E\xE1\xA0\x8E", "?:0-2!"},
    /* A mark, a circled letter and a joining line are parts of a word; so is a superscript alone. */
    {"\\\\w", "\xCC\x81\xE2\x93\x90\xE2\x80\xBF", "?:0-1! ?:1-2! ?:2-3!"},
    {"\\\\W", "\xCC\x81\xCC\x81-", "?:0-2! ?:2-3!"},
    {"\\\\w", "\xC2\xB2\xC2\xB2", "?:0-1! ?:1-2!"},
    {"[\\\\w]", "\xC2\xB2\xC2\xB2", "?:0-2!"},
    {"a\\\\b",
     "a\xCC\x81"
     "a-",
     "?:0-2! a:2-3 ?:3-4!"},
    {"-\\\\B-", "----", "?:0-2! ?:2-4!"},
    {"-\\\\b-", "----", "?:0-4!"},
    /* Symbols are punctuation in brackets. */
    {"[[:punct:]]", "\xE2\x82\xAC\xC2\xA7", "?:0-1! ?:1-2!"},
    {"[[:^punct:]]", "\xE2\x82\xAC\xE2\x82\xAC", "?:0-2!"},
    {"\\\\p{Punct}", "\xE2\x82\xAC\xC2\xA7\xC2\xA7", "?:0-1! ?:1-2! ?:2-3!"},
    {"[[:upper:]]", "\xE2\x85\xA0\xE2\x85\xA0", "?:0-1! ?:1-2!"},
    /* A script has its own characters alone. */
    {"\\\\p{Han}", "\xE3\x80\x81\xE3\x80\x81\xE6\xB3\xA8", "?:0-2! ?:2-3!"},
};

START_TEST(patterns_mean_what_ruby_means)
{
    char members[256];
    snprintf(
        members, sizeof members,
        "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"Isolated\",\"invert\":"
        "false}",
        patterns[_i].regex);
    const char *said = tokens(with(members), patterns[_i].text);
    ck_assert_msg(strcmp(said, patterns[_i].tokens) == 0, "%s: %s, not %s", patterns[_i].regex, said,
                  patterns[_i].tokens);
}
END_TEST

#define ADDED(content, flags) "\"added_tokens\":[{\"id\":12,\"content\":\"" content "\"" flags "}]"

static const struct {
    const char *members, *text, *tokens;
} added[] = {
    {ADDED("<x>", ",\"normalized\":false"), "a<x>b", "a:0-1 <x>:1-4 b:4-5"},
    {ADDED("<x>", ",\"normalized\":false,\"lstrip\":true"), "a  <x> b", "a:0-1   <x>:1-6  :6-7 b:7-8"},
    {ADDED("<x>", ",\"normalized\":false,\"rstrip\":true"), "a <x>  b", "a:0-1  :1-2 <x>  :2-7 b:7-8"},
    {ADDED("cc", ",\"normalized\":false,\"single_word\":true"), "cc acc cc.",
     "cc:0-2  :2-3 a:3-4 c:4-5 c:5-6  :6-7 cc:7-9 .:9-10"},
    {ADDED("CC", ",\"normalized\":true") ",\"normalizer\":{\"type\":\"Lowercase\"}", "acCb", "a:0-1 cc:1-3 b:3-4"},
    {ADDED("CC", ",\"normalized\":false") ",\"normalizer\":{\"type\":\"Lowercase\"}", "acCCCb",
     "a:0-1 c:1-2 CC:2-4 c:4-5 b:5-6"},
};

START_TEST(added_tokens_are_found_by_their_flags)
{
    const char *said = tokens(with(added[_i].members), added[_i].text);
    ck_assert_msg(strcmp(said, added[_i].tokens) == 0, "%s: %s, not %s", added[_i].members, said, added[_i].tokens);
}
END_TEST

START_TEST(the_longest_added_token_wins)
{
    const struct tokenizer *tokenizer =
        with("\"added_tokens\":[{\"id\":12,\"content\":\"<<\",\"normalized\":false},{\"id\":13,\"content\":\"<<<\","
             "\"normalized\":false}]");
    ck_assert_str_eq(tokens(tokenizer, "<<<<<a<"), "<<<:0-3 <<:3-5 ?:5-7!");
}
END_TEST

/* ---- lengths and pairs ---- */

#define BERT "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"b\",2],\"cls\":[\"a\",1]}"
#define ROBERTA                                                                                                        \
    "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"b\",2],\"cls\":[\"a\",1],\"trim_offsets\":false,"   \
    "\"add_prefix_space\":false}"

START_TEST(pairs_get_the_tokens_of_the_post_processor)
{
    struct tokenizer_input input = {.text = text_span_of("12"), .pair = text_span_of("c"), .add_special = true};
    ck_assert_str_eq(tokens_of(with(BERT), &input), "a:0-0* 1:0-1 2:1-2 b:0-0* c:0-1 b:0-0*");
    ck_assert_str_eq(tokens_of(with(ROBERTA), &input), "a:0-0* 1:0-1 2:1-2 b:0-0* b:0-0* c:0-1 b:0-0*");
    ck_assert_str_eq(tokens_of(with(""), &input), "1:0-1 2:1-2 c:0-1");
    const struct tokenizer_output output = encode(with(BERT), &input);
    static const uint32_t types[] = {0, 0, 0, 0, 1, 1};
    static const uint8_t segments[] = {2, 0, 0, 2, 1, 2};
    for (size_t i = 0; i < COUNT(types); i++) {
        ck_assert_uint_eq(output.tokens[i].type_id, types[i]);
        ck_assert_uint_eq(output.tokens[i].segment, segments[i]);
    }
    input.add_special = false;
    ck_assert_str_eq(tokens_of(with(BERT), &input), "1:0-1 2:1-2 c:0-1");
}
END_TEST

static const struct {
    const char *text, *pair;
    size_t max, first, second; /* tokens of each that are left */
} lengths[] = {
    {"ccccc", NULL, 4, 2, 0},   {"ccccc", NULL, 7, 5, 0},  {"ccccc", NULL, 2, 0, 0},
    {"ccccc", "cc", 8, 3, 2},   {"cc", "ccccc", 8, 2, 3},  {"ccccc", "cccc", 8, 3, 2},
    {"cccc", "ccccc", 8, 2, 3}, {"cccc", "cccc", 7, 2, 2}, {"ccccc", "", 6, 3, 0},
};

START_TEST(the_longest_text_is_cut_first)
{
    const struct tokenizer *tokenizer = with(BERT);
    const char *pair = lengths[_i].pair;
    struct tokenizer_input input = {
        .text = text_span_of(lengths[_i].text), .add_special = true, .max_length = lengths[_i].max, .truncate = true};
    if (pair != NULL)
        input.pair = text_span_of(pair);
    const struct tokenizer_output output = encode(tokenizer, &input);
    size_t counts[3] = {0};
    for (size_t i = 0; i < output.count; i++)
        counts[output.tokens[i].segment]++;
    ck_assert_uint_eq(counts[0], lengths[_i].first);
    ck_assert_uint_eq(counts[1], lengths[_i].second);
    ck_assert_uint_le(output.count, lengths[_i].max);
}
END_TEST

/* ---- refusals of a text ---- */

static const struct {
    const char *text;
    size_t length;
    const char *pair;
    size_t max_length;
    bool truncate;
    attn_status status;
    const char *fragment;
} refused_texts[] = {
    {"a\0b", 3, NULL, 0, false, ATTN_ERR_VALUE, "the text holds U+0000, as character 1"},
    {"a\xFF", 2, NULL, 0, false, ATTN_ERR_SYNTAX, "the text is not UTF-8: byte 1"},
    {"\xC3", 1, NULL, 0, false, ATTN_ERR_SYNTAX, "the text is not UTF-8: byte 0"},
    {"\xED\xA0\x80", 3, NULL, 0, false, ATTN_ERR_SYNTAX, "the text is not UTF-8"},
    {"a", 1, "\xC0\x80", 0, false, ATTN_ERR_SYNTAX, "the pair is not UTF-8: byte 0"},
    {"ccc", 3, NULL, 4, false, ATTN_ERR_TOO_LARGE, "the text has 5 tokens; at most 4"},
    {"ccc", 3, NULL, 1, true, ATTN_ERR_VALUE, "at most 1 tokens have no place for the 2"},
};

START_TEST(a_text_that_cannot_be_encoded_is_refused_by_name)
{
    const struct tokenizer *tokenizer = with(BERT);
    struct tokenizer_input input = {.text = {refused_texts[_i].text, refused_texts[_i].length},
                                    .add_special = true,
                                    .max_length = refused_texts[_i].max_length,
                                    .truncate = refused_texts[_i].truncate};
    if (refused_texts[_i].pair != NULL)
        input.pair = text_span_of(refused_texts[_i].pair);
    struct tokenizer_output output;
    ck_assert_int_eq(tokenizer_encode(tokenizer, &input, arena, scratch, &output, &err), refused_texts[_i].status);
    ck_assert_int_eq(err.status, refused_texts[_i].status);
    ck_assert_msg(strstr(err.message, refused_texts[_i].fragment) != NULL, "%s", err.message);
}
END_TEST

START_TEST(a_model_without_an_unknown_token_refuses_the_text)
{
    const struct tokenizer *tokenizer =
        load_text(text_span_of("{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"a\":0}}}"));
    const struct tokenizer_input input = {.text = text_span_of("b")};
    struct tokenizer_output output;
    ck_assert_int_eq(tokenizer_encode(tokenizer, &input, arena, scratch, &output, &err), ATTN_ERR_VALUE);
    ck_assert_ptr_nonnull(strstr(err.message, "no unknown token"));
}
END_TEST

/* -1e30 marks pieces that are never found in what slow_convert writes; in a tokenizer.json it is a score. */
START_TEST(a_low_score_is_found_where_no_other_token_is)
{
    const struct tokenizer *tokenizer = load_text(
        text_span_of("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1e30],[\"b\",-1]]}}"));
    const struct tokenizer_input input = {.text = text_span_of("a")};
    const struct tokenizer_output output = encode(tokenizer, &input);
    ck_assert_uint_eq(output.count, 1);
    ck_assert_uint_eq(output.tokens[0].id, 1);
}
END_TEST

/* ---- refusals of a file ---- */

#define BYTES_32 "--------------------------------"
#define BPE_WITH_PREFIX(PREFIX, PAIR)                                                                                  \
    "{\"model\":{\"type\":\"BPE\",\"continuing_subword_prefix\":\"" PREFIX "\",\"vocab\":{\"a\":0},\"merges\":[[" PAIR \
    "]]}}"

/* Words that the text of slow_convert alone may have. */
#define BEFORE    "{\"before\":{\"type\":\"NFC\"}," LETTERS "}"
#define COMBINING "{\"normalizer\":{\"type\":\"StripCombining\"}," LETTERS "}"
#define FIRST     "{\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"a\",\"first\":true}," LETTERS "}"
#define LONGEST   "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"\",\"longest\":true}," LETTERS "}"
#define SINGLE    "{\"model\":{\"type\":\"Unigram\",\"single_precision\":true,\"vocab\":[[\"a\",0]]}}"

static const struct {
    const char *text;
    attn_status status;
    const char *fragment;
} refused_files[] = {
    {"", ATTN_ERR_SYNTAX, "is not JSON"},
    {"{\"model\":", ATTN_ERR_SYNTAX, "is not JSON"},
    {"[]", ATTN_ERR_FIELD, "is not an object"},
    {"{}", ATTN_ERR_FIELD, "/model is missing"},
    {"{\"version\":\"2.0\"," LETTERS "}", ATTN_ERR_VALUE, "/version must be \"1.0\""},
    {"{\"normalizers\":1," LETTERS "}", ATTN_ERR_FIELD, "/normalizers is an unknown member"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{}}}", ATTN_ERR_VALUE, "\"WordLevel\", which is not supported"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1}}", ATTN_ERR_VALUE,
     "/model/dropout asks for dropout"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", ATTN_ERR_FIELD, "/model/merges must be the list"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}", ATTN_ERR_VALUE,
     "/model/merges/0 merges \"a\" and \"a\""},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a a\"]}}", ATTN_ERR_VALUE, "a pair of tokens"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\",1]]}}", ATTN_ERR_VALUE, "a pair of tokens"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[1,\"a\"]]}}", ATTN_ERR_VALUE, "a pair of tokens"},
    {BPE_WITH_PREFIX("##", "\"a\",\"#\""), ATTN_ERR_VALUE, "too short or too long"},
    {BPE_WITH_PREFIX("##", "\"a\",\"##\""), ATTN_ERR_VALUE, "the vocabulary lacks"},
    {BPE_WITH_PREFIX(BYTES_32 "#", "\"a\",\"a\""), ATTN_ERR_TOO_LARGE, "more than 32 bytes"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"unknown\":1}}", ATTN_ERR_FIELD,
     "/model/unknown is an unknown member"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", ATTN_ERR_VALUE,
     "\"a\" and \"b\" have the same id 0"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", ATTN_ERR_VALUE, "/model/vocab/a must be"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999},\"merges\":[]}}", ATTN_ERR_VALUE,
     "/model/vocab/a must be"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":16777215},\"merges\":[]}}", ATTN_ERR_VALUE,
     "/model/vocab/a must be an integer from 0 to 65537, received 16777215; memory is taken for each id"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"a\":1},\"merges\":[]}}", ATTN_ERR_SYNTAX, "twice"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\xC3\":0},\"merges\":[]}}", ATTN_ERR_SYNTAX, "is not JSON"},
    {"{\"version\":\"1.0\\u0000\"}", ATTN_ERR_VALUE, "/version must be \"1.0\""},
    {"{\"model\":{\"type\":\"BPE\\u0000\",\"vocab\":{},\"merges\":[]}}", ATTN_ERR_VALUE, "of the kind \"\""},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\\u0000\":0},\"merges\":[]}}", ATTN_ERR_VALUE, "U+0000"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\\u0000\",0]]}}", ATTN_ERR_VALUE, "U+0000"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\\u0x61\":0},\"merges\":[]}}", ATTN_ERR_SYNTAX, "invalid escape"},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"a\",0]]}}", ATTN_ERR_VALUE, "\"unk_id\" beyond"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", ATTN_ERR_VALUE,
     "/model/vocab/0 must be a token and its"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":{}}}", ATTN_ERR_FIELD, "needs \"vocab\", a list"},
    {"{\"normalizer\":{\"type\":\"BertNormalizer\",\"x\":1}," LETTERS "}", ATTN_ERR_FIELD, "/normalizer/x"},
    {"{\"normalizer\":{}," LETTERS "}", ATTN_ERR_FIELD, "/normalizer has no \"type\""},
    {"{\"normalizer\":{\"type\":\"Foo\"}," LETTERS "}", ATTN_ERR_VALUE,
     "/normalizer is a normalizer of the kind \"Foo\", which is not supported; supported kinds: Sequence, BertNormalizer"},
    {"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Bar\"}]}," LETTERS "}",
     ATTN_ERR_VALUE, "/normalizer/normalizers/1 is a normalizer of the kind \"Bar\""},
    {"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"!!!!\"}," LETTERS "}", ATTN_ERR_SYNTAX,
     "is not base64"},
    {"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAAAAAAAAAA\"}," LETTERS "}",
     ATTN_ERR_VALUE, "whose trie has 0 bytes"},
    {"{\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}," LETTERS "}", ATTN_ERR_VALUE,
     "\"UnicodeScripts\", which is not"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Removed\"}," LETTERS "}",
     ATTN_ERR_VALUE, "/pre_tokenizer/pattern cannot be used as a pattern"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\h\"},\"behavior\":\"Removed\"}," LETTERS "}",
     ATTN_ERR_VALUE, "/pre_tokenizer/pattern has \\h"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a{1,2}+\"},\"behavior\":\"Removed\"}," LETTERS
     "}",
     ATTN_ERR_VALUE, "{n,m}+"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[\\\\W_]\"},\"behavior\":\"Removed\"}," LETTERS
     "}",
     ATTN_ERR_VALUE, "the complement of word or alnum, within a class"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"},\"behavior\":\"Removed\"}," LETTERS "}",
     ATTN_ERR_VALUE, "&& within a class"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?m:.)\"},\"behavior\":\"Removed\"}," LETTERS "}",
     ATTN_ERR_VALUE, "(?m)"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"\"},\"behavior\":\"Removed\"}," LETTERS "}",
     ATTN_ERR_VALUE, "is an empty pattern"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Kept\"}," LETTERS "}",
     ATTN_ERR_VALUE, "/pre_tokenizer/behavior must be \"Removed\""},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"__\"}," LETTERS "}", ATTN_ERR_VALUE,
     "one character"},
    {"{\"decoder\":{\"type\":\"CTC\"}," LETTERS "}", ATTN_ERR_VALUE, "a decoder of the kind \"CTC\""},
    {"{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"a\",99],\"cls\":[\"a\",1]}," LETTERS "}",
     ATTN_ERR_VALUE, "/post_processor adds the id 99, which no token has"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"a\",\"type_id\":0}}],"
     "\"pair\":[],\"special_tokens\":{}}," LETTERS "}",
     ATTN_ERR_VALUE, "/post_processor/single/0 names a token that \"special_tokens\" does not have"},
    {"{\"added_tokens\":[{\"id\":40,\"content\":\"<x>\"}]," LETTERS "}", ATTN_ERR_VALUE,
     "/added_tokens/0 gives \"<x>\" the id 40, but it is number 12"},
    {"{\"added_tokens\":[{\"id\":1,\"content\":\"a\"},{\"id\":1,\"content\":\"a\"}]," LETTERS "}", ATTN_ERR_VALUE,
     "the token \"a\" twice"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":null}}", ATTN_ERR_FIELD,
     "must be the list of merges"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":1234}}", ATTN_ERR_FIELD,
     "must be the list of merges"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":\"text\",\"merges\":[]}}", ATTN_ERR_FIELD, "needs \"vocab\", an object"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0} {\"b\":1},\"merges\":[]}}", ATTN_ERR_SYNTAX, "is not JSON"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0]},\"merges\":[]}}", ATTN_ERR_SYNTAX, "is not JSON"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[,]}}", ATTN_ERR_SYNTAX, "is not JSON"},
    {"{\"added_tokens\":[{\"id\":12,\"content\":\"\"}]," LETTERS "}", ATTN_ERR_VALUE, "without \"content\""},
    {BEFORE, ATTN_ERR_FIELD, "/before is an unknown member; known here: version, truncation"},
    {COMBINING, ATTN_ERR_VALUE, "/normalizer is a normalizer of the kind \"StripCombining\", which is not supported"},
    {FIRST, ATTN_ERR_FIELD, "/normalizer/first is an unknown member; known here: prepend"},
    {LONGEST, ATTN_ERR_FIELD, "/normalizer/longest is an unknown member; known here: precompiled_charsmap"},
    {SINGLE, ATTN_ERR_FIELD, "/model/single_precision is an unknown member; known here: unk_id, byte_fallback"},
};

START_TEST(a_file_that_is_not_supported_is_refused_by_name)
{
    const char *text = refused_files[_i].text;
    const struct tokenizer *tokenizer;
    const attn_status status = tokenizer_load(text, strlen(text), arena, scratch, &tokenizer, &err);
    ck_assert_msg(status == refused_files[_i].status, "%s: %s: %s", text, attn_status_name(status), err.message);
    ck_assert_ptr_null(tokenizer);
    ck_assert_msg(strstr(err.message, refused_files[_i].fragment) != NULL, "%s: %s", text, err.message);
}
END_TEST

START_TEST(words_of_slow_tokenizers_are_for_their_own_texts)
{
    static const char *const texts[] = {BEFORE, COMBINING, FIRST, LONGEST, SINGLE};
    ck_assert_ptr_nonnull(load_slow(text_span_of(texts[_i])));
}
END_TEST

/* Vocabularies of many pieces: what a later piece has wrong is told like what the first one has. */
static const struct {
    const char *before, *after; /* of 5,000 items "t1" … */
    bool is_list;
    attn_status status;
    const char *fragment; /* NULL: it loads */
} long_files[] = {
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"x\":0", "},\"merges\":[]}}", false, ATTN_OK, NULL},
    {"{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"x\":0", ",\"t1\":5001}}}", false, ATTN_ERR_SYNTAX,
     "/model/vocab has the token \"t1\" twice"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"x\":0", ",},\"merges\":[]}}", false, ATTN_ERR_SYNTAX, "is not JSON"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"x\":0", "},\"merges\":[]]}}", false, ATTN_ERR_SYNTAX, "is not JSON"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"x\":0", ",\"y\":5000},\"merges\":[]}}", false, ATTN_ERR_VALUE,
     "\"t5000\" and \"y\" have the same id 5000"},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"x\",-1]", "]}}", true, ATTN_OK, NULL},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"x\",-1]", ",[\"y\"]]}}", true, ATTN_ERR_VALUE,
     "/model/vocab/5001 must be a token and its score"},
};

START_TEST(long_vocabularies_are_read_in_pieces)
{
    enum { ITEMS = 5000, PIECES_BYTES = 1 << 20 };
    static char text[ITEMS * 32];
    int length = snprintf(text, sizeof text, "%s", long_files[_i].before);
    for (int i = 1; i <= ITEMS; i++)
        length += long_files[_i].is_list
                      ? snprintf(text + length, sizeof text - (size_t)length, ",[\"t%d\",-%d.5]", i, i)
                      : snprintf(text + length, sizeof text - (size_t)length, ",\n\"t%d\":%d", i, i);
    length += snprintf(text + length, sizeof text - (size_t)length, "%s", long_files[_i].after);
    const struct tokenizer *tokenizer;
    const attn_status status = tokenizer_load(text, (size_t)length, arena, scratch, &tokenizer, &err);
    ck_assert_msg(status == long_files[_i].status, "%d: %s", (int)status, err.message);
    if (status != ATTN_OK) {
        ck_assert_msg(strstr(err.message, long_files[_i].fragment) != NULL, "%s", err.message);
        return;
    }
    ck_assert_uint_lt(attn_arena_peak_bytes(scratch), PIECES_BYTES);
    ck_assert_uint_eq(tokenizer_vocabulary_size(tokenizer), ITEMS + 1);
    ck_assert_str_eq(tokenizer_token(tokenizer, ITEMS).at, "t5000");
}
END_TEST

/* Items that are read without a tree, between others that jansson reads. */
START_TEST(all_forms_of_json_are_read)
{
    static const char text[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\\u0061\":0, \"\\\"\" :\n1,\"\\uD83D\\uDE00\":2.0,\"\\u011f\\/\":3,"
        "\"\xF0\x9F\x98\x80\\n\":4e0,\"\\\\\":5,\"a\\\"\" : 6 },\"merges\":[ \"\\u0061 \\\"\" ] }}";
    static const char *const expected[] = {"a",  "\"", "\xF0\x9F\x98\x80", "\xC4\x9F/", "\xF0\x9F\x98\x80\n",
                                           "\\", "a\""};
    const struct tokenizer *tokenizer = load_text(text_span_of(text));
    ck_assert_uint_eq(tokenizer_vocabulary_size(tokenizer), COUNT(expected));
    for (uint32_t id = 0; id < COUNT(expected); id++)
        ck_assert_str_eq(tokenizer_token(tokenizer, id).at, expected[id]);
    const struct tokenizer_input input = {.text = text_span_of("a\"")};
    const struct tokenizer_output output = encode(tokenizer, &input);
    ck_assert_uint_eq(output.count, 1);
    ck_assert_uint_eq(output.tokens[0].id, 6);
}
END_TEST

/* The token behind that of the last merge is looked at first: here it only begins like the joined one. */
START_TEST(a_pair_becomes_the_token_that_it_spells)
{
    const struct tokenizer *tokenizer = load_text(text_span_of(
        "{\"model\":{\"type\":\"BPE\",\"continuing_subword_prefix\":\"" BYTES_32
        "\",\"vocab\":{\"a\":0,\"abc\":1,\"" BYTES_32 "b\":2,\"ab\":3},\"merges\":[[\"a\",\"" BYTES_32 "b\"]]}}"));
    const struct tokenizer_input input = {.text = text_span_of("ab")};
    const struct tokenizer_output output = encode(tokenizer, &input);
    ck_assert_uint_eq(output.count, 1);
    ck_assert_uint_eq(output.tokens[0].id, 3);
}
END_TEST

START_TEST(a_mistake_in_a_later_piece_has_its_line)
{
    enum { ITEMS = 3000 };
    static char text[ITEMS * 32];
    int length = snprintf(text, sizeof text, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"x\":0");
    for (int i = 1; i <= ITEMS; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ",\n\"t%d\":%s", i, i == 2500 ? "?" : "1");
    length += snprintf(text + length, sizeof text - (size_t)length, "},\"merges\":[]}}");
    const struct tokenizer *tokenizer;
    ck_assert_int_eq(tokenizer_load(text, (size_t)length, arena, scratch, &tokenizer, &err), ATTN_ERR_SYNTAX);
    ck_assert_uint_eq(err.line, 2501);
}
END_TEST

START_TEST(sequences_within_sequences_have_a_limit)
{
    char text[4096] = "{\"normalizer\":";
    for (int i = 0; i < 20; i++)
        strcat(text, "{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 20; i++)
        strcat(text, "]}");
    strcat(text, "," LETTERS "}");
    const struct tokenizer *tokenizer;
    ck_assert_int_eq(tokenizer_load(text, strlen(text), arena, scratch, &tokenizer, &err), ATTN_ERR_VALUE);
    ck_assert_ptr_nonnull(strstr(err.message, "Sequence within another"));
}
END_TEST

/* ---- decoding ---- */

#define PIECES                                                                                                         \
    "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0,\"##b\":1,\"_c\":2,\"<0xC3>\":3,\"<0xA4>\":4,\".\":5,"       \
    "\"d</w>\":6,\"\xC4\xA0\":7,\"n't\":8,\"\xC3\x83\":9}}"

static const struct {
    const char *decoder;
    uint32_t ids[4];
    size_t count;
    const char *text;
} decoded[] = {
    {"null", {0, 1, 99, 2}, 4, "a ##b _c"},
    {"{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}", {0, 1, 5, 8}, 4, "ab.n't"},
    {"{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":false}", {0, 1, 5}, 3, "ab ."},
    {"{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"always\"}", {2, 2}, 2, "c c"},
    {"{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"never\"}", {2, 2}, 2, " c c"},
    {"{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}", {6, 0, 6}, 3, "d ad"},
    {"{\"type\":\"ByteFallback\"}",
     {3, 4, 0},
     3,
     "\xC3\xA4"
     "a"},
    {"{\"type\":\"ByteFallback\"}",
     {3, 0, 4},
     3,
     "\xEF\xBF\xBD"
     "a\xEF\xBF\xBD"},
    {"{\"type\":\"ByteLevel\"}", {7, 0, 9}, 3, " a\xEF\xBF\xBD"},
    {"{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"_\"},\"content\":\" \"},"
     "{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":1}]}",
     {2, 2, 5},
     3,
     "c c."},
};

START_TEST(each_decoder_writes_text)
{
    char text[1024];
    snprintf(text, sizeof text, "{\"decoder\":%s," PIECES "}", decoded[_i].decoder);
    const struct tokenizer *tokenizer = load_text(text_span_of(text));
    struct text_span said;
    ck_assert_int_eq(
        tokenizer_decode(tokenizer, decoded[_i].ids, decoded[_i].count, false, arena, scratch, &said, &err), ATTN_OK);
    ck_assert_str_eq(said.at, decoded[_i].text);
    ck_assert_uint_eq(said.length, strlen(decoded[_i].text));
}
END_TEST

START_TEST(special_tokens_are_skipped_when_asked)
{
    const struct tokenizer *tokenizer =
        with("\"added_tokens\":[{\"id\":1,\"content\":\"a\",\"special\":true},{\"id\":12,\"content\":\"<x>\"}]");
    const uint32_t ids[] = {1, 2, 12};
    struct text_span said;
    ck_assert_int_eq(tokenizer_decode(tokenizer, ids, COUNT(ids), true, arena, scratch, &said, &err), ATTN_OK);
    ck_assert_str_eq(said.at, "b <x>");
    ck_assert_int_eq(tokenizer_decode(tokenizer, ids, COUNT(ids), false, arena, scratch, &said, &err), ATTN_OK);
    ck_assert_str_eq(said.at, "a b <x>");
    ck_assert_int_eq(tokenizer_decode(tokenizer, NULL, 0, false, arena, scratch, &said, &err), ATTN_OK);
    ck_assert_str_eq(said.at, "");
}
END_TEST

START_TEST(a_vocabulary_spells_its_ids)
{
    const struct tokenizer *tokenizer = with(ADDED("<x>", ""));
    ck_assert_uint_eq(tokenizer_vocabulary_size(tokenizer), 13);
    ck_assert_str_eq(tokenizer_token(tokenizer, 9).at, "ab");
    ck_assert_str_eq(tokenizer_token(tokenizer, 12).at, "<x>");
    ck_assert_ptr_null(tokenizer_token(tokenizer, 13).at);
    ck_assert_ptr_null(tokenizer_token(tokenizer, UINT32_MAX).at);
}
END_TEST

/* ---- long texts, little memory, deadlines ---- */

enum { LONG = 1 << 19 };

static struct text_span repeat(const char *text)
{
    const size_t length = strlen(text);
    char *all = attn_arena_take(arena, LONG, 1);
    for (size_t i = 0; i + length <= LONG; i += length)
        memcpy(all + i, text, length);
    return (struct text_span){all, LONG / length * length};
}

static const char *const repeated[] = {
    "a", "ab", " ", "\n", ".", "<", "\xCC\x81", "\xE6\xB3\xA8", "[U]", "1", "a\xCC\xA3\xCC\x81"};

/* A quadratic step would take minutes. */
START_TEST(long_texts_take_linear_time)
{
    static const char *const vectors[] = {"bert", "gpt2", "t5"};
    const struct tokenizer_input input = {.text = repeat(repeated[_i])};
    for (size_t i = (size_t)_i % one_in(3); i < COUNT(vectors); i += one_in(3)) {
        char path[128];
        snprintf(path, sizeof path, "tests/unit/server/codec/tokenizer/vectors/%s/tokenizer.json", vectors[i]);
        const struct tokenizer_output output = encode(load_text(read_whole(path)), &input);
        ck_assert_uint_le(output.count, (size_t)4 * LONG);
    }
}
END_TEST

START_TEST(a_pattern_that_explodes_is_stopped)
{
    const struct tokenizer *tokenizer =
        with("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+$\"},\"behavior\":\"Isolated\"}");
    char text[64];
    memset(text, 'a', sizeof text);
    text[63] = 'b';
    const struct tokenizer_input input = {.text = {text, sizeof text}};
    struct tokenizer_output output;
    ck_assert_int_eq(tokenizer_encode(tokenizer, &input, arena, scratch, &output, &err), ATTN_ERR_VALUE);
    ck_assert_ptr_nonnull(strstr(err.message, "takes too long"));
}
END_TEST

static bool is_always_cancelled(void *context)
{
    (void)context;
    return true;
}

START_TEST(a_deadline_ends_the_work)
{
    const struct tokenizer *tokenizer = with("");
    const struct tokenizer_input input = {.text = repeat("a")};
    struct tokenizer_output output;
    attn_arena_watch(scratch, is_always_cancelled, NULL);
    ck_assert_int_eq(tokenizer_encode(tokenizer, &input, arena, scratch, &output, &err), ATTN_ERR_CANCELLED);
}
END_TEST

static size_t looks, looks_allowed;

static bool look(void *context)
{
    (void)context;
    return ++looks > looks_allowed;
}

static attn_status encode_watched(const struct tokenizer *tokenizer, struct text_span text, size_t allowed)
{
    const struct tokenizer_input input = {.text = text, .add_special = true};
    struct tokenizer_output output;
    looks = 0;
    looks_allowed = allowed;
    attn_arena_watch(arena, look, NULL);
    attn_arena_watch(scratch, look, NULL);
    const attn_status status = tokenizer_encode(tokenizer, &input, arena, scratch, &output, &err);
    attn_arena_watch(arena, NULL, NULL);
    attn_arena_watch(scratch, NULL, NULL);
    return status;
}

/* Wherever a look says so, the work ends at once: it may look once more in a step behind. */
static void expect_cancelled(const struct tokenizer *tokenizer, struct text_span text, size_t all)
{
    for (size_t allowed = 0; allowed < all; allowed += 1 + all / 20 * one_in(7)) {
        ck_assert_int_eq(encode_watched(tokenizer, text, allowed), ATTN_ERR_CANCELLED);
        ck_assert_uint_le(looks, allowed + 2);
    }
}

/* What one long text costs, in looks at the deadline. */
static const struct {
    const char *members, *text;
    size_t looks;
} watched[] = {
    {"\"normalizer\":{\"type\":\"NFC\"}", "\xCC\x81", 75},          /* one run of marks */
    {"\"normalizer\":{\"type\":\"NFC\"}", "a\xCC\xA3\xCC\x81", 75}, /* runs that are composed */
    {"\"normalizer\":{\"type\":\"NFKC\"}", "\xEF\xB7\xBA", 800},    /* 18 characters each */
    {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}", "a", 90},
    {"\"added_tokens\":[{\"id\":12,\"content\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"}]", "a", 250},
    {"\"post_processor\":{\"type\":\"ByteLevel\"},\"pre_tokenizer\":{\"type\":\"Punctuation\"}", ".", 1000},
    {"\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"MergedWithNext\"}", ".", 2000},
    {"\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"}", ".", 350},
};

START_TEST(every_step_looks)
{
    const struct tokenizer *tokenizer = with(watched[_i].members);
    const struct text_span text = repeat(watched[_i].text);
    ck_assert_int_eq(encode_watched(tokenizer, text, SIZE_MAX), ATTN_OK);
    ck_assert_msg(looks >= watched[_i].looks, "%s: %zu looks", watched[_i].members, looks);
    expect_cancelled(tokenizer, text, looks);
}
END_TEST

START_TEST(every_model_looks)
{
    static const char *const vectors[] = {"bert", "gpt2", "t5"};
    char path[128];
    snprintf(path, sizeof path, "tests/unit/server/codec/tokenizer/vectors/%s/tokenizer.json", vectors[_i]);
    const struct tokenizer *tokenizer = load_text(read_whole(path));
    const struct text_span text = repeat("a1");
    ck_assert_int_eq(encode_watched(tokenizer, text, SIZE_MAX), ATTN_OK);
    expect_cancelled(tokenizer, text, looks);
}
END_TEST

/* From each space to the end of all, and back. */
static const char spaces_and_sign[] =
    "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\s+[xy]\"},\"behavior\":\"Isolated\"}";

START_TEST(one_search_looks_and_ends)
{
    const struct tokenizer *tokenizer = with(spaces_and_sign);
    const struct text_span text = {repeat(" ").at, 1 << 14};
    ck_assert_int_eq(encode_watched(tokenizer, text, SIZE_MAX), ATTN_ERR_VALUE);
    ck_assert_ptr_nonnull(strstr(err.message, "takes too long"));
    ck_assert_uint_ge(looks, (1 << 20) / 32);
    expect_cancelled(tokenizer, text, looks);
}
END_TEST

START_TEST(decoding_looks)
{
    enum { IDS = 100000, STEP_BYTES = 16 };
    char text[1024];
    snprintf(text, sizeof text, "{\"decoder\":%s," PIECES "}", decoded[_i].decoder);
    const struct tokenizer *tokenizer = load_text(text_span_of(text));
    uint32_t *ids = attn_arena_take(arena, IDS, sizeof *ids);
    struct text_span said;
    for (size_t i = 0; i < IDS; i++)
        ids[i] = decoded[_i].ids[i % decoded[_i].count];
    looks = 0;
    looks_allowed = SIZE_MAX;
    attn_arena_watch(scratch, look, NULL);
    ck_assert_int_eq(tokenizer_decode(tokenizer, ids, IDS, false, arena, scratch, &said, &err), ATTN_OK);
    const size_t all = looks;
    ck_assert_uint_ge(all, IDS * STEP_BYTES / PACE_BYTES);
    for (size_t allowed = 0; allowed < all; allowed += 1 + all / 20 * one_in(7)) {
        looks = 0;
        looks_allowed = allowed;
        ck_assert_int_eq(tokenizer_decode(tokenizer, ids, IDS, false, arena, scratch, &said, &err), ATTN_ERR_CANCELLED);
        ck_assert_uint_le(looks, allowed + 2);
    }
}
END_TEST

/* With a little more memory each time, both calls fail cleanly until they succeed. */
START_TEST(little_memory_is_reported)
{
    char path[128];
    snprintf(path, sizeof path, "tests/unit/server/codec/tokenizer/vectors/%s/tokenizer.json",
             _i == 0 ? "bert" : "gpt2");
    const struct text_span file = read_whole(path);
    const struct tokenizer_input input = {.text = text_span_of("the \xC3\xA9t\xC3\xA9 is 2024, [MASK] it's"),
                                          .add_special = true};
    attn_status status = ATTN_ERR_NO_MEMORY;
    for (size_t limit = 0; status == ATTN_ERR_NO_MEMORY; limit += 2048) {
        ck_assert_uint_lt(limit, 8 << 20);
        attn_arena *small = attn_arena_create(limit), *lent = attn_arena_create(limit);
        const struct tokenizer *tokenizer;
        struct tokenizer_output output;
        struct text_span text;
        status = tokenizer_load(file.at, file.length, small, lent, &tokenizer, &err);
        attn_arena_destroy(lent);
        for (size_t more = 0; status == ATTN_OK && more < 256 << 10; more += 1024) {
            lent = attn_arena_create(more);
            status = tokenizer_encode(tokenizer, &input, arena, lent, &output, &err);
            ck_assert_msg(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY, "%s", err.message);
            if (status == ATTN_OK) {
                const uint32_t ids[] = {output.tokens[0].id, output.tokens[1].id};
                status = tokenizer_decode(tokenizer, ids, COUNT(ids), false, arena, lent, &text, &err);
                ck_assert_msg(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY, "%s", err.message);
            }
            status = ATTN_OK;
            attn_arena_destroy(lent);
        }
        ck_assert_msg(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY, "%s", err.message);
        attn_arena_destroy(small);
    }
    ck_assert_int_eq(status, ATTN_OK);
}
END_TEST

CHECK_MAIN("tokenizer")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, each_step_changes_text_and_offsets, 0, COUNT(steps));
    tcase_add_loop_test(tests, each_behavior_splits_as_documented, 0, COUNT(behaviors));
    tcase_add_loop_test(tests, patterns_mean_what_ruby_means, 0, COUNT(patterns));
    tcase_add_loop_test(tests, added_tokens_are_found_by_their_flags, 0, COUNT(added));
    tcase_add_test(tests, the_longest_added_token_wins);
    tcase_add_test(tests, pairs_get_the_tokens_of_the_post_processor);
    tcase_add_loop_test(tests, the_longest_text_is_cut_first, 0, COUNT(lengths));
    tcase_add_loop_test(tests, a_text_that_cannot_be_encoded_is_refused_by_name, 0, COUNT(refused_texts));
    tcase_add_test(tests, a_low_score_is_found_where_no_other_token_is);
    tcase_add_test(tests, a_model_without_an_unknown_token_refuses_the_text);
    tcase_add_loop_test(tests, a_file_that_is_not_supported_is_refused_by_name, 0, COUNT(refused_files));
    tcase_add_loop_test(tests, words_of_slow_tokenizers_are_for_their_own_texts, 0, 5);
    tcase_add_test(tests, all_forms_of_json_are_read);
    tcase_add_loop_test(tests, long_vocabularies_are_read_in_pieces, 0, COUNT(long_files));
    tcase_add_test(tests, a_pair_becomes_the_token_that_it_spells);
    tcase_add_test(tests, a_mistake_in_a_later_piece_has_its_line);
    tcase_add_test(tests, sequences_within_sequences_have_a_limit);
    tcase_add_loop_test(tests, each_decoder_writes_text, 0, COUNT(decoded));
    tcase_add_test(tests, special_tokens_are_skipped_when_asked);
    tcase_add_test(tests, a_vocabulary_spells_its_ids);
    tcase_add_loop_test(tests, long_texts_take_linear_time, 0, COUNT(repeated));
    tcase_add_test(tests, a_pattern_that_explodes_is_stopped);
    tcase_add_test(tests, a_deadline_ends_the_work);
    tcase_add_loop_test(tests, every_step_looks, 0, COUNT(watched));
    tcase_add_loop_test(tests, every_model_looks, 0, 3);
    tcase_add_test(tests, one_search_looks_and_ends);
    tcase_add_loop_test(tests, decoding_looks, 0, COUNT(decoded));
    tcase_add_loop_test(tests, little_memory_is_reported, 0, 2);
}
