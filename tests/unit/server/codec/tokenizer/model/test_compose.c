/* test_compose.c: tests of server/codec/tokenizer/model/compose.c: parts of a tokenizer.json, made of a list of tokens. */
#include "codec/tokenizer/model/compose.h"

#include "../tokenizer_stage.h"

static struct chunks out;

static void begin(void)
{
    prepare();
    out = chunks_begin(arena);
}

static const struct compose_token tokens[] = {
    {{"<unk>", 5}, 0, COMPOSE_UNKNOWN},
    {{"<s>", 3}, 0, COMPOSE_CONTROL},
    {{"a", 1}, -1, COMPOSE_NORMAL},
    {{"b", 1}, -2, COMPOSE_NORMAL},
    {{"\xC3\xA4", 2}, -3, COMPOSE_NORMAL},
    {{"ab", 2}, -4, COMPOSE_NORMAL},
    {{"b\xC3\xA4", 3}, -4, COMPOSE_NORMAL},
    {{"ab\xC3\xA4", 4}, -3.5F, COMPOSE_NORMAL},
    {{"ba", 2}, -4, COMPOSE_USER_DEFINED},
    {{"aab", 3}, -4, COMPOSE_NORMAL},
    {{"abb", 3}, -4, COMPOSE_NORMAL},
    {{"<0x0A>", 6}, 0, COMPOSE_BYTE},
    {{"\xC3\xA4"
      "b",
      3},
     -4,
     COMPOSE_NORMAL},
};

START_TEST(a_vocabulary_has_the_places_of_its_tokens)
{
    compose_vocabulary(tokens, 4, &out);
    ck_assert_str_eq(chunks_join(&out), "{\"<unk>\":0,\"<s>\":1,\"a\":2,\"b\":3}");
}
END_TEST

#define FLAGS ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":"

START_TEST(tokens_that_are_no_words_are_added)
{
    compose_added_tokens(tokens, COUNT(tokens), &out);
    ck_assert_str_eq(chunks_join(&out), "[{\"id\":0,\"content\":\"<unk>\"" FLAGS "true},"
                                        "{\"id\":1,\"content\":\"<s>\"" FLAGS "true},"
                                        "{\"id\":8,\"content\":\"ba\"" FLAGS "false}]");
    out = chunks_begin(arena);
    compose_added_tokens(tokens + 2, 2, &out);
    ck_assert_str_eq(chunks_join(&out), "[]");
}
END_TEST

/* By the score of the result, the length of the left part, that of the right part, and the id of the result. */
START_TEST(merges_have_the_order_of_scores)
{
    ck_assert_int_eq(compose_merges(tokens, COUNT(tokens), scratch, &out, &err), ATTN_OK);
    ck_assert_str_eq(chunks_join(&out), "[[\"ab\",\"\xC3\xA4\"],[\"a\",\"b\xC3\xA4\"],[\"ab\",\"b\"],[\"a\",\"ab\"],"
                                        "[\"a\",\"b\"],[\"b\",\"\xC3\xA4\"],[\"\xC3\xA4\",\"b\"]]");
}
END_TEST

/* Of tokens with 256, 257, 512 and 513 bytes, one is made of two others: the last is too long. */
START_TEST(long_tokens_have_no_merges)
{
    static char text[514], expected[544];
    memset(text, 'a', 513);
    snprintf(expected, sizeof expected, "[[\"%.256s\",\"%.256s\"]]", text, text);
    const struct compose_token list[] = {{{text, 256}, 0, COMPOSE_NORMAL},
                                         {{text, 257}, 0, COMPOSE_NORMAL},
                                         {{text, 512}, 0, COMPOSE_NORMAL},
                                         {{text, 513}, 0, COMPOSE_NORMAL}};
    ck_assert_int_eq(compose_merges(list, COUNT(list), scratch, &out, &err), ATTN_OK);
    ck_assert_str_eq(chunks_join(&out), expected);
}
END_TEST

/* The squares of 512 bytes of 513 tokens are more than 1 << 27. */
START_TEST(a_search_that_takes_seconds_is_refused)
{
    static char text[513];
    static struct compose_token list[513];
    memset(text, 'a', 512);
    for (size_t i = 0; i < COUNT(list); i++)
        list[i] = (struct compose_token){{text, 512}, 0, COMPOSE_NORMAL};
    ck_assert_int_eq(compose_merges(list, COUNT(list), scratch, &out, &err), ATTN_ERR_TOO_LARGE);
    ck_assert_str_eq(err.message, "the tokens are too long to list the merges that make them");
}
END_TEST

/* "e" is the same token as "b", and no letter "x" is known. */
START_TEST(a_template_names_its_tokens_once)
{
    const struct text_span first = text_span_of("<s>"), last = text_span_of("<unk>");
    const struct compose_special specials[] = {{'b', first, 1}, {'s', last, 0}, {'e', first, 1}};
    compose_template("bxAs", "eAsB1s1", specials, COUNT(specials), &out);
    ck_assert_str_eq(chunks_join(&out),
                     "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
                     "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"<unk>\",\"type_id\":0}}],"
                     "\"pair\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
                     "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"<unk>\",\"type_id\":0}},"
                     "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}},{\"SpecialToken\":{\"id\":\"<unk>\",\"type_id\":1}}],"
                     "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[1],\"tokens\":[\"<s>\"]},"
                     "\"<unk>\":{\"id\":\"<unk>\",\"ids\":[0],\"tokens\":[\"<unk>\"]}}}");
}
END_TEST

CHECK_MAIN("compose")
{
    tcase_add_checked_fixture(tests, begin, release);
    tcase_add_test(tests, a_vocabulary_has_the_places_of_its_tokens);
    tcase_add_test(tests, tokens_that_are_no_words_are_added);
    tcase_add_test(tests, merges_have_the_order_of_scores);
    tcase_add_test(tests, long_tokens_have_no_merges);
    tcase_add_test(tests, a_search_that_takes_seconds_is_refused);
    tcase_add_test(tests, a_template_names_its_tokens_once);
}
