/*
 * test_tokenizer.c: tests of server/codec/tokenizer: each kind of step, what is refused, lengths, and little memory.
 * test_tokenizer_vectors.c compares whole tokenizers with recorded tokens.
 */
#include <stdio.h>
#include <string.h>

#include "codec/bytes/pace.h"
#include "codec/bytes/utf8.h"
#include "codec/tokenizer/text/unicode.h"
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
    /* A pattern that matches nothing does so at the end, too. */
    {"\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x*\"},\"content\":\"c\"}", "ab",
     "c:0-0 a:0-1 c:0-1 b:1-2 c:1-2"},
    {"\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x*\"},\"content\":\"c\"}", "\xC3\xA4",
     "c:0-0 \xC3\xA4:0-1 c:0-1"},
    {"\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"$\"},\"content\":\"c\"}", "ab", "ab:0-2 c:1-2"},
    {"\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"_\"}", "ab", "_:0-1 ab:0-2"},
    {"\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"_\"}", "", ""},
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

/* a, a space and the unknown token, which all other characters are. */
#define FEW "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],[\" \",-1]]}"

/* Characters at the ends of the ranges that a normalizer has: each stands between two a's. */
#define NMT     "{\"type\":\"Nmt\"}"
#define CLEAN   "{\"type\":\"BertNormalizer\",\"clean_text\":true}"
#define CHINESE "{\"type\":\"BertNormalizer\",\"handle_chinese_chars\":true}"
#define GOES    "1:0-1 1:2-3"
#define SPACE   "1:0-1 2:1-2 1:2-3"
#define STAYS   "1:0-1 0!:1-2 1:2-3"
#define SPACED  "1:0-1 2:1-2 0!:1-2 2:1-2 1:2-3"

static const struct {
    const char *normalizer, *ids;
    uint32_t characters[32];
} ends[] = {
    {NMT, GOES, {1, 8, 0x0B, 0x0E, 0x1F, 0x7F, 0x8F, 0x9F}},
    {NMT, SPACE, {9, 0x0A, 0x0C, 0x0D, ' ', 0x1680, 0x200B, 0x200F, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD}},
    {NMT,
     STAYS,
     {'!', '~', 0x80, 0x8E, 0x90, 0x9E, 0xA0, 0x167F, 0x1681, 0x200A, 0x2010, 0x2027, 0x202A, 0x2580, 0x2582, 0xFEFE,
      0xFF00, 0xFFFC, 0xFFFE}},
    {CLEAN, GOES, {1, 0x0B, 0x7F, 0x85, 0xAD, 0xE000, 0xFFFD}},
    {CLEAN, SPACE, {'\t', '\n', '\r', ' ', 0xA0, 0x1680, 0x2028, 0x3000}},
    {CLEAN, STAYS, {'!', 0x180F, 0xFFFC, 0xFFFE}},
    {CHINESE,
     SPACED,
     {0x3400, 0x4DBF, 0x4E00, 0x9FFF, 0xF900, 0xFAFF, 0x20000, 0x2A6DF, 0x2A700, 0x2B73F, 0x2B740, 0x2B81F, 0x2B920,
      0x2CEAF, 0x2F800, 0x2FA1F}},
    {CHINESE,
     STAYS,
     {0x33FF, 0x4DC0, 0x4DFF, 0xA000, 0xF8FF, 0xFB00, 0x1FFFF, 0x2A6E0, 0x2A6FF, 0x2B820, 0x2B91F, 0x2CEB0, 0x2F7FF,
      0x2FA20}},
};

START_TEST(ranges_of_characters_have_their_ends)
{
    char text[512];
    snprintf(text, sizeof text, "{\"normalizer\":%s," FEW "}", ends[_i].normalizer);
    const struct tokenizer *tokenizer = load_text(text_span_of(text));
    for (const uint32_t *c = ends[_i].characters; *c != 0; c++) {
        char *to = utf8_write(strcpy(text, "a") + 1, *c);
        strcpy(to, "a");
        const char *ids = said_ids(tokenizer, text);
        ck_assert_msg(strcmp(ids, ends[_i].ids) == 0, "%s of U+%04X: %s", ends[_i].normalizer, (unsigned)*c, ids);
    }
}
END_TEST

/* Files of earlier versions do not say the type of the model. */
START_TEST(a_model_without_a_type_is_guessed)
{
    static const struct {
        const char *model, *ids;
    } models[] = {{"{\"vocab\":{\"a\":0,\"aa\":1},\"merges\":[\"a a\"]}", "1:0-2 0:2-3"},
                  {"{\"vocab\":[[\"a\",-1],[\"aaa\",-1]]}", "1:0-3"},
                  {"{\"vocab\":{\"a\":0,\"aa\":1,\"##a\":2}}", "1:0-2 2:2-3"}};
    for (size_t i = 0; i < COUNT(models); i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"model\":%s}", models[i].model);
        const char *ids = said_ids(load_text(text_span_of(text)), "aaa");
        ck_assert_str_eq(ids, models[i].ids);
    }
}
END_TEST

START_TEST(a_word_of_too_many_characters_is_unknown)
{
    const struct tokenizer *tokenizer = load_text(text_span_of(
        "{\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},\"model\":{\"type\":\"WordPiece\",\"unk_token\":"
        "\"?\",\"max_input_chars_per_word\":2,\"vocab\":{\"?\":0,\"a\":1,\"##a\":2,\"\xC3\xA4\":3}}}"));
    ck_assert_str_eq(said_ids(tokenizer, "aa aaa \xC3\xA4"
                                         "a"),
                     "1:0-1 2:1-2 0!:3-6 3:7-8 2:8-9");
    tokenizer = load_text(text_span_of("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":1,\"[UNK]\":0}}}"));
    ck_assert_str_eq(said_ids(tokenizer, "b"), "0!:0-1");
}
END_TEST

static const struct {
    const char *behavior, *tokens, *unknown;
} behaviors[] = {
    {"Removed", "?:0-1! ?:2-3! ?:5-6!", "c:0-1 c:2-3 c:5-6"},
    {"Isolated", "?:0-1! .:1-2 ?:2-3! .:3-4 .:4-5 ?:5-6!", "c:0-1 ?:1-2! c:2-3 ?:3-4! ?:4-5! c:5-6"},
    {"MergedWithPrevious", "?:0-2! ?:2-4! .:4-5 ?:5-6!", "?:0-2! ?:2-4! ?:4-5! c:5-6"},
    {"MergedWithNext", "?:0-1! ?:1-3! .:3-4 ?:4-6!", "c:0-1 ?:1-3! ?:3-4! ?:4-6!"},
    {"Contiguous", "?:0-1! .:1-2 ?:2-3! .:3-4 .:4-5 ?:5-6!", "c:0-1 ?:1-2! c:2-3 ?:3-5! c:5-6"},
};

/* Dots between unknown characters, and unknown characters between others: several in a row are one token. */
START_TEST(each_behavior_splits_as_documented)
{
    static const struct {
        const char *pattern, *text;
    } cases[] = {{".", "x.x..x"}, {"x", "cxcxxc"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char members[256];
        snprintf(
            members, sizeof members,
            "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"%s\"},\"behavior\":\"%s\",\"invert\":false}",
            cases[i].pattern, behaviors[_i].behavior);
        ck_assert_str_eq(tokens(with(members), cases[i].text), i == 0 ? behaviors[_i].tokens : behaviors[_i].unknown);
    }
}
END_TEST

/* Marks in another order than that of their classes (U+0301 has 230, U+0323 has 220), and two of one class. */
#define MARKS(form)                                                                                                    \
    "{\"normalizer\":{\"type\":\"" form                                                                                \
    "\"},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],"                                \
    "[\"\xCC\xA3\",-1],[\"\xCC\x81\",-1],[\"\xE1\xBA\xA1\",-1],[\"\xCC\x85\",-1],[\"\xCC\x88\",-1],[\"c\",-1]]}}"
static const struct {
    const char *tokenizer, *text, *ids;
} marks[] = {
    {MARKS("NFD"), "a\xCC\x81\xCC\xA3", "1:0-1 2:1-2 3:2-3"},
    {MARKS("NFC"), "a\xCC\x81\xCC\xA3", "4:0-1 3:2-3"},
    {MARKS("NFC"), "a\xCC\x85\xCC\x88", "1:0-1 5:1-2 6:2-3"},
    {MARKS("NFC"), "a\xCC\xA3\xCC\x88", "4:0-1 6:2-3"},
    {MARKS("NFC"), "\xCC\x81\xCC\xA3", "2:0-1 3:1-2"},
    {MARKS("NFD"),
     "\xE1\xBA\xA1"
     "c",
     "1:0-1 2:0-1 7:1-2"},
};

START_TEST(marks_are_ordered_and_composed)
{
    ck_assert_str_eq(said_ids(load_text(text_span_of(marks[_i].tokenizer)), marks[_i].text), marks[_i].ids);
}
END_TEST

START_TEST(kinds_that_are_known_are_listed)
{
    static const char *const cases[][2] = {
        {"{\"post_processor\":{\"type\":\"Foo\"}," LETTERS "}",
         "/post_processor is a post-processor of the kind \"Foo\", which is not supported; supported kinds: Sequence, "
         "BertProcessing, RobertaProcessing, ByteLevel, TemplateProcessing"},
        {"{\"normalizer\":{\"type\":\"Foo\"}," LETTERS "}",
         "/normalizer is a normalizer of the kind \"Foo\", which is not supported; supported kinds: Sequence, BertNormalizer, "
         "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Replace, Prepend, Nmt, Precompiled, ByteLevel"}};
    const struct tokenizer *tokenizer;
    for (size_t i = 0; i < COUNT(cases); i++) {
        err = (attn_error){0};
        ck_assert_int_eq(tokenizer_load(cases[i][0], strlen(cases[i][0]), arena, scratch, &tokenizer, &err),
                         ATTN_ERR_VALUE);
        ck_assert_str_eq(err.message, cases[i][1]);
    }
}
END_TEST

static const struct {
    const char *regex, *text, *tokens;
} patterns[] = {
    {"[^ab]", "axb", "a:0-1 ?:1-2! b:2-3"},
    {"[a[bc]]", "xabx", "?:0-1! a:1-2 b:2-3 ?:3-4!"},
    {"\\\\u00e4", "xx\xC3\xA4", "?:0-2! \xC3\xA4:2-3"},
    {"(a)b", "xabx", "?:0-1! ab:1-3 ?:3-4!"},
    {"a{,1}1", "xa1x", "?:0-1! a:1-2 1:2-3 ?:3-4!"},
    {"a{2}", "xaax", "?:0-1! a:1-2 a:2-3 ?:3-4!"},
    {"a{,x}", "ba{,x}b", "b:0-1 ?:1-6! b:6-7"},
    {"\\\\d{2}", "x12x", "?:0-1! 1:1-2 2:2-3 ?:3-4!"},
    {"\\\\d{,2}a", "x1ax", "?:0-1! 1:1-2 a:2-3 ?:3-4!"},
    {"\\\\p{^Alpha}", "x1a", "?:0-1! 1:1-2 a:2-3"},
    {"\\\\pL", "a1", "a:0-1 1:1-2"},
    {"\\\\x{61}+", "xaax", "?:0-1! a:1-2 a:2-3 ?:3-4!"},
    {"\\\\[", "x[a", "?:0-1! ?:1-2! a:2-3"},
    {"[a^]", "xax", "?:0-1! a:1-2 ?:2-3!"},
    {"[a&]", "xax", "?:0-1! a:1-2 ?:2-3!"},
    {"\\\\p{Lu}[b[c]]", "xAbx", "?:0-1! ?:1-3! ?:3-4!"},
    {"(?i)A", "xax", "?:0-1! a:1-2 ?:2-3!"},
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
    {"\\\\p{Arabic}", "\xD8\x8C\xD8\x8C\xD8\xA8", "?:0-2! ?:2-3!"},
    {"\\\\p{tibetan}", "\xE3\x80\x88\xE3\x80\x88\xE0\xBD\x80", "?:0-2! ?:2-3!"},
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

#define TOKEN(id, content, flags) "{\"id\":" id ",\"content\":\"" content "\"" flags "}"
#define ADDED(content, flags)     "\"added_tokens\":[" TOKEN("12", content, flags) "]"
/* The first is found before the normalizers, the second after them. */
#define TWO_ADDED(plain, content, flags)                                                                               \
    "\"added_tokens\":[" TOKEN("12", plain, ",\"normalized\":false") "," TOKEN("13", content, flags) "]"

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
    {ADDED("CC", "") ",\"normalizer\":{\"type\":\"Lowercase\"}", "acCb", "a:0-1 cc:1-3 b:3-4"},
    {ADDED("<x>", ",\"normalized\":false,\"lstrip\":true"), "  <x>  <x>", "  <x>:0-5   <x>:5-10"},
    {ADDED("<x>", ",\"normalized\":false,\"rstrip\":true"), "<x>  <x>  ", "<x>  :0-5 <x>  :5-10"},
    {ADDED("cc", ",\"normalized\":false,\"single_word\":true"), "ccb", "c:0-1 c:1-2 b:2-3"},
    /* A token ends the piece that another one is looked for in. */
    {TWO_ADDED("x", "ax", ""), "ax", "a:0-1 x:1-2"},
    {TWO_ADDED("x", "bb", ",\"single_word\":true"), "xbbx", "x:0-1 bb:1-3 x:3-4"},
    {TWO_ADDED(" b", "cc", ",\"rstrip\":true"), "cc b", "cc:0-2  b:2-4"},
    {ADDED(" b",
           ",\"normalized\":false") ",\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}",
     "  b", " b:1-3"},
    {TWO_ADDED("b ", "cc", ",\"lstrip\":true"), "b cc", "b :0-2 cc:2-4"},
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

#define BERT_PROCESSING "{\"type\":\"BertProcessing\",\"sep\":[\"b\",2],\"cls\":[\"a\",1]}"
#define BERT            "\"post_processor\":" BERT_PROCESSING
#define ROBERTA                                                                                                        \
    "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"b\",2],\"cls\":[\"a\",1],\"trim_offsets\":false,"   \
    "\"add_prefix_space\":false}"

START_TEST(pairs_get_the_tokens_of_the_post_processor)
{
    struct tokenizer_input input = {.text = text_span_of("12"), .pair = text_span_of("c"), .add_special = true};
    ck_assert_str_eq(tokens_of(with(BERT), &input), "a:0-0* 1:0-1 2:1-2 b:0-0* c:0-1 b:0-0*");
    ck_assert_str_eq(tokens_of(with(ROBERTA), &input), "a:0-0* 1:0-1 2:1-2 b:0-0* b:0-0* c:0-1 b:0-0*");
    ck_assert_str_eq(tokens_of(with(""), &input), "1:0-1 2:1-2 c:0-1");
    ck_assert_str_eq(tokens(with(ROBERTA), "12"), "a:0-0* 1:0-1 2:1-2 b:0-0*");
    const struct tokenizer_output output = encode(with(BERT), &input);
    static const uint32_t types[] = {0, 0, 0, 0, 1, 1};
    static const uint8_t segments[] = {2, 0, 0, 2, 1, 2};
    for (size_t i = 0; i < COUNT(types); i++) {
        ck_assert_uint_eq(output.tokens[i].type_id, types[i]);
        ck_assert_uint_eq(output.tokens[i].segment, segments[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        const struct tokenizer_output other = encode(with(i == 0 ? "" : ROBERTA), &input);
        for (size_t k = 0; k < other.count; k++)
            ck_assert_uint_eq(other.tokens[k].type_id, i == 0 && other.tokens[k].segment == 1);
    }
    input.add_special = false;
    ck_assert_str_eq(tokens_of(with(BERT), &input), "1:0-1 2:1-2 c:0-1");
}
END_TEST

static const struct {
    const char *text, *pair;
    size_t max, first, second; /* tokens of each that are left */
} lengths[] = {
    {"ccccc", NULL, 4, 2, 0}, {"ccccc", NULL, 7, 5, 0},   {"ccccc", NULL, 2, 0, 0},   {"ccccc", "cc", 8, 3, 2},
    {"cc", "ccccc", 8, 2, 3}, {"ccccc", "cccc", 8, 3, 2}, {"cccc", "ccccc", 8, 2, 3}, {"cccc", "cccc", 7, 2, 2},
    {"ccccc", "", 6, 3, 0},   {"cccc", "cccc", 8, 2, 3},  {"ccccc", "c", 8, 4, 1},
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

/* Spaces that a token begins or ends with are cut off its offsets; the first one stays where the tokenizer set it. */
#define SPACES(processor)                                                                                                      \
    "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false},\"post_processor\":" processor \
    ",\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"merges\":[],\"vocab\":{\"a\":0,\"\xC4\xA0\":1,\"\xC4\xA0"           \
    "a\":2,\"a\xC4\xA0\":3,\"\xC4\xA0\xC4\xA0\":4,\"\xC4\xA0\xC4\xA0"                                                          \
    "a\":5,\"\xC4\xA0"                                                                                                         \
    "aa\xC4\xA0\xC4\xA0\":6}}}"
#define TRIMS(more) "{\"type\":\"ByteLevel\",\"trim_offsets\":true" more "}"

static const struct {
    const char *tokenizer, *text, *ids;
} trimmed[] = {
    {SPACES("null"), " a", "2:0-2"},
    {SPACES(TRIMS("")), " a", "2:1-2"},
    {SPACES(TRIMS("")), "a ", "3:0-1"},
    {SPACES(TRIMS("")), " aa  ", "6:1-3"},
    {SPACES(TRIMS("")), "  ", "4:2-2"},
    {SPACES(TRIMS("")), " ", "1:1-1"},
    {SPACES(TRIMS(",\"add_prefix_space\":true")), " a", "2:0-2"},
    {SPACES(TRIMS(",\"add_prefix_space\":true")), "  a", "5:2-3"},
    {SPACES(TRIMS(",\"add_prefix_space\":true")), " ", "1:0-0"},
    {SPACES("{\"type\":\"ByteLevel\",\"trim_offsets\":false}"), " a", "2:0-2"},
};

START_TEST(spaces_are_trimmed_off_offsets)
{
    ck_assert_str_eq(said_ids(load_text(text_span_of(trimmed[_i].tokenizer)), trimmed[_i].text), trimmed[_i].ids);
}
END_TEST

/* Two words: the second does not begin the text. */
#define FRONT                                                                                                                       \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true},\"post_processor\":" TRIMS(                               \
        ",\"add_prefix_space\":true") ",\"model\":{\"type\":\"BPE\",\"merges\":[\"\xC4\xA0 a\"],\"vocab\":{\"a\":0,\"\xC4\xA0\":1," \
                                      "\"\xC4\xA0"                                                                                  \
                                      "a\":2}}}"

START_TEST(a_space_stays_at_the_front_alone)
{
    const struct tokenizer *tokenizer = load_text(text_span_of("{" FRONT));
    ck_assert_str_eq(said_ids(tokenizer, "a a"), "2:0-1 2:2-3");
    ck_assert_str_eq(said_ids(tokenizer, " a a"), "2:0-2 2:3-4");
    tokenizer = load_text(
        text_span_of("{\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":false}," FRONT));
    ck_assert_str_eq(said_ids(tokenizer, " a"), "2:1-2");
    /* A word ends before its space, unless the file says otherwise. */
    tokenizer =
        load_text(text_span_of("{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{"
                               "\"type\":\"BPE\",\"ignore_merges\":true,\"merges\":[],\"vocab\":{\"a\":0,\"\xC4\xA0"
                               "a\":1,\"a\xC4\xA0"
                               "a\":2}}}"));
    ck_assert_str_eq(said_ids(tokenizer, "a a"), "0:0-1 1:1-3");
}
END_TEST

static const char *template_of(char text[4096], size_t specials, size_t ids)
{
    size_t used = (size_t)snprintf(text, 4096,
                                   "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"pair\":[],\"single\":["
                                   "{\"Sequence\":{\"id\":\"A\",\"type_id\":7}}");
    for (size_t i = 0; i < specials; i++)
        used += (size_t)snprintf(text + used, 4096 - used, ",{\"SpecialToken\":{\"id\":\"s\",\"type_id\":%zu}}", i);
    used += (size_t)snprintf(text + used, 4096 - used, "],\"special_tokens\":{\"s\":{\"ids\":[");
    for (size_t i = 0; i < ids; i++)
        used += (size_t)snprintf(text + used, 4096 - used, "%s%zu", i > 0 ? "," : "", 1 + i % 3);
    snprintf(text + used, 4096 - used, "]}}}," LETTERS "}");
    return text;
}

START_TEST(a_template_has_at_most_64_parts)
{
    char text[4096];
    const struct tokenizer *tokenizer = load_text(text_span_of(template_of(text, 21, 3)));
    const struct tokenizer_input input = {.text = text_span_of("c"), .add_special = true};
    const struct tokenizer_output output = encode(tokenizer, &input);
    ck_assert_uint_eq(output.count, 64);
    ck_assert_uint_eq(output.tokens[0].type_id, 7);
    for (size_t i = 1; i < 64; i++) {
        ck_assert_uint_eq(output.tokens[i].id, 1 + (i - 1) % 3);
        ck_assert_uint_eq(output.tokens[i].type_id, (i - 1) / 3);
    }
    template_of(text, 1, 64);
    ck_assert_int_eq(tokenizer_load(text, strlen(text), arena, scratch, &tokenizer, &err), ATTN_ERR_VALUE);
    ck_assert_msg(strstr(err.message, "/post_processor/single/1 names a token that \"special_tokens\"") != NULL, "%s",
                  err.message);
}
END_TEST

START_TEST(a_text_may_have_as_many_tokens_as_the_limit)
{
    struct tokenizer_input input = {.text = text_span_of("ccc"), .add_special = true, .max_length = 5};
    ck_assert_uint_eq(encode(with(BERT), &input).count, 5);
    input = (struct tokenizer_input){.text = text_span_of("ccc"), .max_length = 3};
    ck_assert_uint_eq(encode(with(BERT), &input).count, 3);
}
END_TEST

/* What a step or an unknown token leaves of the text lives in the output, and no later call writes there. */
START_TEST(outputs_have_texts_of_their_own)
{
    enum { TIMES = 100 };
    const struct tokenizer *tokenizer = load_text(text_span_of(
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"x?\",0],[\"a\",-1]]},\"decoder\":null}"));
    char text[2 * TIMES + 1] = "", joined[2 * TIMES];
    uint32_t ids[TIMES] = {0};
    struct text_span decoded[2];
    for (size_t i = 0; i < TIMES; i++) {
        strcat(text, "xa");
        ids[i] = 1;
        memcpy(joined + 2 * i, i + 1 < TIMES ? "a " : "a", 2);
    }
    const struct tokenizer_input input = {.text = text_span_of(text)};
    const struct tokenizer_output first = encode(tokenizer, &input), second = encode(tokenizer, &input);
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(tokenizer_decode(tokenizer, ids, TIMES, false, arena, scratch, &decoded[i], &err), ATTN_OK);
    const struct tokenizer_output third = encode(tokenizer, &input);
    ck_assert_uint_eq(first.count, 2 * TIMES);
    for (size_t i = 0; i < first.count; i++) {
        const char *expected = i % 2 == 0 ? "x" : "a";
        ck_assert_str_eq(first.tokens[i].text.at, expected);
        ck_assert_str_eq(second.tokens[i].text.at, expected);
        ck_assert_str_eq(third.tokens[i].text.at, expected);
    }
    ck_assert_str_eq(decoded[0].at, joined);
    ck_assert_str_eq(decoded[1].at, joined);
}
END_TEST

START_TEST(scratch_has_its_memory_back)
{
    const struct tokenizer *tokenizer = with("");
    const struct tokenizer_input input = {.text = text_span_of("abc")};
    struct tokenizer_output output;
    struct text_span text;
    const uint32_t id = 9;
    const size_t bytes = attn_arena_bytes(scratch);
    encode(tokenizer, &input);
    ck_assert_int_eq(tokenizer_decode(tokenizer, &id, 1, false, arena, scratch, &text, &err), ATTN_OK);
    ck_assert_uint_eq(attn_arena_bytes(scratch), bytes);
    /* Where the arena is the scratch, nothing is given back, which the results would be in. */
    ck_assert_int_eq(tokenizer_encode(tokenizer, &input, arena, arena, &output, &err), ATTN_OK);
    ck_assert_int_eq(tokenizer_decode(tokenizer, &id, 1, false, arena, arena, &text, &err), ATTN_OK);
    ck_assert_uint_eq(output.count, 2);
    ck_assert_str_eq(output.tokens[0].text.at, "ab");
    ck_assert_str_eq(text.at, "ab");
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
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?m)a\"},\"behavior\":\"Removed\"}," LETTERS "}",
     ATTN_ERR_VALUE, "(?m)"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?i-a)b\"},\"behavior\":\"Removed\"}," LETTERS
     "}",
     ATTN_ERR_VALUE, "(?m), (?a)"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a[^b]]\"},\"behavior\":\"Removed\"}," LETTERS
     "}",
     ATTN_ERR_VALUE, "a negated class within a class"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\\\\\"},\"behavior\":\"Removed\"}," LETTERS "}",
     ATTN_ERR_VALUE, "cannot be used as a pattern"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\p{L\"},\"behavior\":\"Removed\"}," LETTERS
     "}",
     ATTN_ERR_VALUE, "cannot be used as a pattern"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\uzzzz\"},\"behavior\":\"Removed\"}," LETTERS
     "}",
     ATTN_ERR_VALUE, "does not support"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\ug123\"},\"behavior\":\"Removed\"}," LETTERS
     "}",
     ATTN_ERR_VALUE, "does not support"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Removed\"}," LETTERS "}",
     ATTN_ERR_VALUE, "cannot be used as a pattern"},
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
    {"{\"added_tokens\":[{\"id\":2,\"content\":\"<x>\"}],\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":2},\"merges\":[]}}",
     ATTN_ERR_VALUE, "/added_tokens/0 gives \"<x>\" the id 2, which another token has"},
    {"{\"decoder\":{\"type\":\"Metaspace\"}," LETTERS "}", ATTN_ERR_FIELD, "/decoder needs \"replacement\""},
    {"{\"decoder\":{\"type\":\"Strip\"}," LETTERS "}", ATTN_ERR_FIELD, "/decoder needs \"content\""},
    {"{\"decoder\":{\"type\":\"BPEDecoder\",\"suffix\":\"\"}," LETTERS "}", ATTN_ERR_FIELD,
     "/decoder needs \"suffix\", which is not empty"},
    {"{\"decoder\":{\"type\":\"WordPiece\"}," LETTERS "}", ATTN_ERR_FIELD, "/decoder needs \"prefix\""},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\"}," LETTERS "}", ATTN_ERR_FIELD,
     "/pre_tokenizer needs \"replacement\""},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\"}," LETTERS "}", ATTN_ERR_VALUE, "one character"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Removed\"}," LETTERS "}", ATTN_ERR_FIELD,
     "/pre_tokenizer needs \"pattern\" and \"behavior\""},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"}}," LETTERS "}", ATTN_ERR_FIELD,
     "/pre_tokenizer needs \"pattern\" and \"behavior\""},
    {"{\"normalizer\":{\"type\":\"Replace\",\"content\":\"\"}," LETTERS "}", ATTN_ERR_FIELD,
     "/normalizer needs \"pattern\" and \"content\""},
    {"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"}}," LETTERS "}", ATTN_ERR_FIELD,
     "/normalizer needs \"pattern\" and \"content\""},
    {"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":\"a\",\"content\":\"\"}," LETTERS "}", ATTN_ERR_VALUE,
     "/normalizer/pattern must be {\"String\": \xE2\x80\xA6} or {\"Regex\": \xE2\x80\xA6}"},
    {"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\",\"Regex\":\"a\"},\"content\":\"\"}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/normalizer/pattern must be {\"String\""},
    {"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Text\":\"a\"},\"content\":\"\"}," LETTERS "}",
     ATTN_ERR_VALUE, "/normalizer/pattern must be {\"String\""},
    {"{\"normalizer\":{\"type\":\"Prepend\"}," LETTERS "}", ATTN_ERR_FIELD, "/normalizer needs \"prepend\""},
    {"{\"normalizer\":{\"type\":\"Sequence\"}," LETTERS "}", ATTN_ERR_FIELD,
     "/normalizer is a Sequence without the list \"normalizers\""},
    {"{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"b\"],\"cls\":[\"a\",1]}," LETTERS "}", ATTN_ERR_VALUE,
     "/post_processor/sep must be a token and its id"},
    {"{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"b\",2],\"cls\":[1,2]}," LETTERS "}", ATTN_ERR_VALUE,
     "/post_processor/cls must be a token and its id"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"C\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":{}}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor/single/0 names another sequence than A and B"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"B\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":{}}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor/single/0 names B, but there is one sequence"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}}],\"pair\":[],\"special_tokens\":{}}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor/single/0 must be {\"Sequence\": {id, type_id}}"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":-1}}],\"pair\":[],\"special_tokens\":{}}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor/single/0 must be {\"Sequence\": {id, type_id}}"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":2147483648}}],\"pair\":[],\"special_tokens\":{}}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor/single/0 must be {\"Sequence\": {id, type_id}}"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"type_id\":0}}],\"pair\":[],\"special_tokens\":{}}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor/single/0 must be {\"Sequence\": {id, type_id}}"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[],\"pair\":[{\"SpecialToken\":{\"id\":\"a\",\"type_id\":0}}],\"special_tokens\":{\"a\":{\"ids\":[-1]}}}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor/pair/0 names a token whose ids are not numbers"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[],\"pair\":[{\"SpecialToken\":{\"id\":\"a\",\"type_id\":0}}],\"special_tokens\":{\"a\":{\"ids\":[\"a\"]}}}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor/pair/0 names a token whose ids are not numbers"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[],\"pair\":[{\"SpecialToken\":{\"id\":\"a\",\"type_id\":0}}],\"special_tokens\":{\"a\":{\"ids\":[2147483648]}}}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor/pair/0 names a token whose ids are not numbers"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[],\"pair\":[{\"SpecialToken\":{\"id\":\"a\",\"type_id\":0}}],\"special_tokens\":{\"a\":{\"ids\":[99]}}}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor adds the id 99, which no token has"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}," LETTERS "}", ATTN_ERR_FIELD,
     "/post_processor needs the list \"pair\""},
    {"{\"post_processor\":{\"type\":\"Sequence\",\"processors\":[" BERT_PROCESSING "," BERT_PROCESSING "]}," LETTERS
     "}",
     ATTN_ERR_VALUE, "/post_processor has two steps that add tokens"},
    {"{\"added_tokens\":[{\"id\":2147483647,\"content\":\"<x>\"}]," LETTERS "}", ATTN_ERR_VALUE,
     "/added_tokens/0 gives \"<x>\" the id 2147483647, but it is number 12"},
    {"{\"added_tokens\":[{\"id\":1099511627776,\"content\":\"<x>\"}]," LETTERS "}", ATTN_ERR_VALUE,
     "/added_tokens/0/id must be an integer from 0 to 2147483647"},
    {"{\"added_tokens\":[{\"id\":-1,\"content\":\"<x>\"}]," LETTERS "}", ATTN_ERR_VALUE,
     "/added_tokens/0/id must be an integer from 0 to 2147483647"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":65538},\"merges\":[]}}", ATTN_ERR_VALUE,
     "/model/vocab/a must be an integer from 0 to 65537, received 65538; memory"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1.5},\"merges\":[]}}", ATTN_ERR_VALUE, "/model/vocab/a must be"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":\"b\"},\"merges\":[]}}", ATTN_ERR_FIELD, "/model/vocab/a must be"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":null},\"merges\":[]}}", ATTN_ERR_FIELD, "/model/vocab/a must be"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1,0]]}}", ATTN_ERR_VALUE,
     "/model/vocab/0 must be a token and its score"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[1,2]]}}", ATTN_ERR_VALUE,
     "/model/vocab/0 must be a token and its score"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",\"b\"]]}}", ATTN_ERR_VALUE,
     "/model/vocab/0 must be a token and its score"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"\\uD83D\\uDE00\",0],[\"a\"]]}}", ATTN_ERR_VALUE,
     "/model/vocab/1 must be a token and its score"},
    {"{\"added_tokens\":[{\"id\":[0],\"content\":\"x\"}]," LETTERS "}", ATTN_ERR_FIELD,
     "/added_tokens/0/id must be an integer from 0 to 2147483647, received an array"},
    {"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":[0],\"content\":\"\"}," LETTERS "}", ATTN_ERR_VALUE,
     "or {\"Regex\": \xE2\x80\xA6}, received an array"},
    {"{\"version\":[0]," LETTERS "}", ATTN_ERR_VALUE, "/version must be \"1.0\", received an array"},
    {"{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[0],\"cls\":[\"a\",1]}," LETTERS "}", ATTN_ERR_VALUE,
     "as [\"[SEP]\", 3], received an array"},
    {"{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"a\",[0]],\"cls\":[\"a\",1]}," LETTERS "}",
     ATTN_ERR_FIELD, "/post_processor/sep/1 must be an integer from 0 to 2147483647, received an array"},
    {"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"BertNormalizer\",\"lowercase\":[0]}]}," LETTERS
     "}",
     ATTN_ERR_FIELD, "/normalizer/normalizers/0/lowercase must be true or false, received an array"},
    {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"\\u0000\",\"vocab\":{\"a\":0}}}", ATTN_ERR_VALUE,
     "/model/unk_token holds U+0000"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"a\",\"type_id\":0}}],\"pair\":[],"
     "\"special_tokens\":{\"a\":{\"ids\":[98]}}}," LETTERS "}",
     ATTN_ERR_VALUE, "/post_processor adds the id 98, which no token has"},
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
    enum { WITHIN_MAX = 8 };
    for (int count = WITHIN_MAX; count <= WITHIN_MAX + 1; count++) {
        char text[4096] = "{\"normalizer\":";
        for (int i = 0; i < count; i++)
            strcat(text, "{\"type\":\"Sequence\",\"normalizers\":[");
        for (int i = 0; i < count; i++)
            strcat(text, "]}");
        strcat(text, "," LETTERS "}");
        const struct tokenizer *tokenizer;
        const attn_status status = tokenizer_load(text, strlen(text), arena, scratch, &tokenizer, &err);
        ck_assert_int_eq(status, count <= WITHIN_MAX ? ATTN_OK : ATTN_ERR_VALUE);
    }
    ck_assert_ptr_nonnull(strstr(err.message, "is the 8th Sequence within another"));
}
END_TEST

START_TEST(steps_have_a_limit)
{
    enum { STEPS_MAX = 64 };
    for (int count = STEPS_MAX; count <= STEPS_MAX + 1; count++) {
        char text[4096] = "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[";
        for (int i = 0; i < count; i++)
            strcat(text, i > 0 ? ",{\"type\":\"NFC\"}" : "{\"type\":\"NFC\"}");
        strcat(text, "]}," LETTERS "}");
        const struct tokenizer *tokenizer;
        const attn_status status = tokenizer_load(text, strlen(text), arena, scratch, &tokenizer, &err);
        ck_assert_int_eq(status, count <= STEPS_MAX ? ATTN_OK : ATTN_ERR_TOO_LARGE);
    }
    ck_assert_ptr_nonnull(strstr(err.message, "/normalizer/normalizers/64 is one of more than 64 steps"));
}
END_TEST

/* The long members of the model are cut out before the rest is read, and count as lines all the same. */
START_TEST(a_mistake_behind_the_vocabulary_has_its_line)
{
    static const char *const texts[] = {
        "{\"model\":{\"vocab\":{\"a\":0,\n\"b\":1},\n\"merges\":[\n],\n?}}",
        "{\"model\":{\"merges\":[\n\"a b\"\n],\n\"vocab\":{\n\"a\":0},?}}",
        "{\n\n\n\n?\"model\":{\"merges\":[\n\"a b\"\n],\n\"vocab\":{\n\"a\":0}}}",
        "{\"model\":{\"merges\":[\n\"a b\"\n],\n\n?\n\"vocab\":{\n\"a\":0}}}",
    };
    const struct tokenizer *tokenizer;
    ck_assert_int_eq(tokenizer_load(texts[_i], strlen(texts[_i]), arena, scratch, &tokenizer, &err), ATTN_ERR_SYNTAX);
    ck_assert_uint_eq(err.line, 5);
}
END_TEST

/* ---- decoding ---- */

#define PIECES                                                                                                         \
    "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0,\"##b\":1,\"_c\":2,\"<0xC3>\":3,\"<0xA4>\":4,\".\":5,"       \
    "\"d</w>\":6,\"\xC4\xA0\":7,\"n't\":8,\"\xC3\x83\":9,\"##\":10,\"<0xG3>\":11,\"<0x3G>\":12,\"<1xA4>\":13,"         \
    "\"<0xA4<\":14,\"<0xA4>.\":15,\"a\xE6\xB3\xA8\":16,\"d>ef>g\":17}}"

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
    {"{\"type\":\"WordPiece\",\"prefix\":\"##\"}", {1, 0, 10, 1}, 4, "##b ab"},
    {"{\"type\":\"BPEDecoder\",\"suffix\":\">\"}", {6, 6}, 2, "d</w d</w"},
    {"{\"type\":\"BPEDecoder\",\"suffix\":\">\"}", {17, 17}, 2, "d ef gdefg"},
    {"{\"type\":\"ByteFallback\"}", {11, 12, 13}, 3, "<0xG3><0x3G><1xA4>"},
    {"{\"type\":\"ByteFallback\"}", {14, 15}, 2, "<0xA4<<0xA4>."},
    {"{\"type\":\"ByteLevel\"}", {0, 16}, 2, "aa\xE6\xB3\xA8"},
    {"{\"type\":\"Strip\",\"content\":\".\",\"start\":1,\"stop\":0}", {5, 0, 5}, 3, "a"},
    {"{\"type\":\"Strip\",\"content\":\".\",\"start\":0,\"stop\":1}", {5, 0, 5}, 3, "a"},
    /* A pattern finds nothing in an empty text. */
    {"{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Strip\",\"content\":\".\",\"start\":1,\"stop\":0},"
     "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"^\"},\"content\":\"x\"}]}",
     {5, 0},
     2,
     "xa"},
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

/* Bytes, and the text that they are: U+FFFD for each longest beginning of a character that no character follows. */
#define LOST "\xEF\xBF\xBD"
static const struct {
    const char *bytes;
    size_t length;
    const char *text;
} bytes[] = {
    {"a\0b", 3, "a"}, /* and a NUL, and a b */
    {"\xC3\xA4", 2, "\xC3\xA4"},
    {"\xE2\x96", 2, LOST},
    {"\xF0\x9F\x98", 3, LOST},
    {"a\xE2\x96z", 4, "a" LOST "z"},
    {"ab\xC3yz\xF0\x9F\x98uv", 10, "ab" LOST "yz" LOST "uv"},
    {"\xC3\xC3\xA4", 3, LOST "\xC3\xA4"},
    {"\xED\xA0\x80", 3, LOST LOST LOST},
    {"\xF4\x90\x80\x80", 4, LOST LOST LOST LOST},
    {"\x80\xE0\x80", 3, LOST LOST LOST},
};

START_TEST(bytes_that_are_no_text_are_marked)
{
    char text[512], spelling[64], *to = spelling;
    for (size_t i = 0; i < bytes[_i].length; i++)
        to = utf8_write(to, unicode_of_byte((unsigned char)bytes[_i].bytes[i]));
    *to = '\0';
    snprintf(text, sizeof text,
             "{\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"%s\":0},\"merges\":[]}}",
             spelling);
    const uint32_t id = 0;
    struct text_span said;
    ck_assert_int_eq(tokenizer_decode(load_text(text_span_of(text)), &id, 1, false, arena, scratch, &said, &err),
                     ATTN_OK);
    ck_assert_str_eq(said.at, bytes[_i].text);
    ck_assert_uint_eq(said.length, _i == 0 ? bytes[_i].length : strlen(bytes[_i].text));
}
END_TEST

START_TEST(long_texts_are_decoded_whole)
{
    enum { IDS = 1000 };
    static uint32_t ids[IDS];
    static char expected[2 * IDS];
    for (size_t i = 0; i < IDS; i++)
        memcpy(expected + 2 * i, i + 1 < IDS ? "a " : "a", 2);
    struct text_span said;
    const struct tokenizer *tokenizer =
        load_text(text_span_of("{\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\"}," PIECES "}"));
    ck_assert_int_eq(tokenizer_decode(tokenizer, ids, IDS, false, arena, scratch, &said, &err), ATTN_OK);
    ck_assert_str_eq(said.at, expected);
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

START_TEST(added_tokens_may_stand_in_any_order)
{
    const struct tokenizer *tokenizer = with(
        "\"added_tokens\":[{\"id\":9,\"content\":\"ab\",\"special\":true},{\"id\":3,\"content\":\"c\",\"special\":true},"
        "{\"id\":1,\"content\":\"a\",\"special\":true}]");
    const uint32_t ids[] = {1, 3, 9, 2};
    struct text_span said;
    ck_assert_int_eq(tokenizer_decode(tokenizer, ids, COUNT(ids), true, arena, scratch, &said, &err), ATTN_OK);
    ck_assert_str_eq(said.at, "b");
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
    tokenizer = load_text(text_span_of("{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}"));
    ck_assert_uint_eq(tokenizer_vocabulary_size(tokenizer), 0);
    tokenizer = load_text(text_span_of("{\"added_tokens\":[{\"id\":0,\"content\":\"x\"}],\"model\":{\"type\":\"BPE\","
                                       "\"vocab\":{},\"merges\":[]}}"));
    ck_assert_str_eq(tokenizer_token(tokenizer, 0).at, "x");
    tokenizer = load_text(text_span_of("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":65537},\"merges\":[]}}"));
    ck_assert_uint_eq(tokenizer_vocabulary_size(tokenizer), 65538);
    tokenizer = load_text(
        text_span_of("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\\uD83D\\uDE00\":0,\"a\":1},\"merges\":[]}}"));
    ck_assert_str_eq(tokenizer_token(tokenizer, 0).at, "\xF0\x9F\x98\x80");
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
    tcase_add_loop_test(tests, ranges_of_characters_have_their_ends, 0, COUNT(ends));
    tcase_add_test(tests, a_model_without_a_type_is_guessed);
    tcase_add_test(tests, a_word_of_too_many_characters_is_unknown);
    tcase_add_loop_test(tests, each_behavior_splits_as_documented, 0, COUNT(behaviors));
    tcase_add_loop_test(tests, marks_are_ordered_and_composed, 0, COUNT(marks));
    tcase_add_test(tests, kinds_that_are_known_are_listed);
    tcase_add_loop_test(tests, patterns_mean_what_ruby_means, 0, COUNT(patterns));
    tcase_add_loop_test(tests, added_tokens_are_found_by_their_flags, 0, COUNT(added));
    tcase_add_test(tests, the_longest_added_token_wins);
    tcase_add_test(tests, pairs_get_the_tokens_of_the_post_processor);
    tcase_add_loop_test(tests, the_longest_text_is_cut_first, 0, COUNT(lengths));
    tcase_add_loop_test(tests, spaces_are_trimmed_off_offsets, 0, COUNT(trimmed));
    tcase_add_test(tests, a_space_stays_at_the_front_alone);
    tcase_add_test(tests, a_template_has_at_most_64_parts);
    tcase_add_test(tests, a_text_may_have_as_many_tokens_as_the_limit);
    tcase_add_test(tests, outputs_have_texts_of_their_own);
    tcase_add_test(tests, scratch_has_its_memory_back);
    tcase_add_loop_test(tests, a_text_that_cannot_be_encoded_is_refused_by_name, 0, COUNT(refused_texts));
    tcase_add_test(tests, a_model_without_an_unknown_token_refuses_the_text);
    tcase_add_loop_test(tests, a_file_that_is_not_supported_is_refused_by_name, 0, COUNT(refused_files));
    tcase_add_loop_test(tests, words_of_slow_tokenizers_are_for_their_own_texts, 0, 5);
    tcase_add_test(tests, all_forms_of_json_are_read);
    tcase_add_loop_test(tests, long_vocabularies_are_read_in_pieces, 0, COUNT(long_files));
    tcase_add_test(tests, a_pair_becomes_the_token_that_it_spells);
    tcase_add_test(tests, a_mistake_in_a_later_piece_has_its_line);
    tcase_add_loop_test(tests, a_mistake_behind_the_vocabulary_has_its_line, 0, 4);
    tcase_add_test(tests, steps_have_a_limit);
    tcase_add_test(tests, sequences_within_sequences_have_a_limit);
    tcase_add_loop_test(tests, each_decoder_writes_text, 0, COUNT(decoded));
    tcase_add_loop_test(tests, bytes_that_are_no_text_are_marked, 0, COUNT(bytes));
    tcase_add_test(tests, long_texts_are_decoded_whole);
    tcase_add_test(tests, special_tokens_are_skipped_when_asked);
    tcase_add_test(tests, added_tokens_may_stand_in_any_order);
    tcase_add_test(tests, a_vocabulary_spells_its_ids);
    tcase_add_test(tests, a_deadline_ends_the_work);
    tcase_add_loop_test(tests, little_memory_is_reported, 0, 2);
    TCase *long_tests = check_case("long");
    tcase_add_checked_fixture(long_tests, prepare, release);
    tcase_add_loop_test(long_tests, long_texts_take_linear_time, 0, COUNT(repeated));
    tcase_add_test(long_tests, a_pattern_that_explodes_is_stopped);
    tcase_add_loop_test(long_tests, every_step_looks, 0, COUNT(watched));
    tcase_add_loop_test(long_tests, every_model_looks, 0, 3);
    tcase_add_test(long_tests, one_search_looks_and_ends);
    tcase_add_loop_test(long_tests, decoding_looks, 0, COUNT(decoded));
}
