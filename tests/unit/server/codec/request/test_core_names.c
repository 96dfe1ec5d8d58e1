/*
 * test_core_names.c: tests of server/codec/request/core_names.c. tests/api/openapi checks that every name of the core has
 * a member of the schema, and the cases check whole sentences.
 */
#include <string.h>

#include "envelope_stage.h"

START_TEST(a_path_of_c_becomes_a_pointer_of_json)
{
    static const char *const cases[][2] = {
        {"inputs", "/inputs"},
        {"weights.query_norm.weight", "/weights/query_norm/weight"},
        {"options.norm", "/options/norm"},
        {"options.norm_eps", "/options/norm/eps"},
        {"options.dropout", "/options/dropout/p"},
        {"options.dropout_residual", "/options/dropout/where"},
        {"options.rope.dim", "/options/rope/dim"},
        {"options.rope.key.positions", "/options/rope/positions"},
        {"options.want", "/options/return"},
        {"of", "/options/return"},
        {"output", "/outputs/output"},
    };
    char pointer[ENVELOPE_POINTER_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(envelope_pointer(cases[i][0], pointer), cases[i][1]);
}
END_TEST

static void expect_words(const char *field, const char *message, const char *pointer, const char *sentence)
{
    attn_error told;
    attn_fail(&told, ATTN_ERR_SHAPE, field, "%s", message);
    ck_assert_int_eq(envelope_translate(&envelope, ATTN_ERR_SHAPE, &told), ATTN_ERR_SHAPE);
    ck_assert_str_eq(told.field, pointer);
    ck_assert_str_eq(told.message, sentence);
}

START_TEST(a_sentence_says_the_names_of_json)
{
    envelope = (struct envelope){.form = TENSOR_FORM_NESTED};
    expect_words("masks.blocks.prefix", "prefix[0] is 9", "/masks/blocks/length", "length[0] is 9");
    expect_words("options.alibi_slopes", "options.alibi_slopes has shape [2]", "/options/alibi",
                 "/options/alibi has shape [2]");
    expect_words("weights.key.weight", "the weight at weights.key.weight has shape [2]", "/weights/key/weight",
                 "the weight at /weights/key/weight has shape [2]");
    expect_words("weights.key.weight", "weights.key.weight is missing", "/weights/key/weight",
                 "weights.key.weight is missing");
    expect_words("options.want", "\"residual\" needs options.residual", "/options/return",
                 "\"residual\" needs options.residual: true");
}
END_TEST

START_TEST(one_list_of_documents_is_one_member)
{
    const attn_tensor one = {.rank = 1}, other = {.rank = 1};
    envelope.request.masks = (attn_masks){.documents_query = &one, .documents_key = &one};
    expect_words("masks.documents_query", "documents_query has shape [2]", "/masks/documents",
                 "documents has shape [2]");
    envelope.request.masks.documents_key = &other;
    expect_words("masks.documents_key", "documents_key has shape [2]", "/masks/documents/key", "key has shape [2]");
}
END_TEST

START_TEST(success_and_errors_without_a_member_stay_as_they_are)
{
    attn_error told = {.message = "options.want", .field = "options.want"};
    ck_assert_int_eq(envelope_translate(&envelope, ATTN_OK, &told), ATTN_OK);
    ck_assert_str_eq(told.field, "options.want");
    attn_fail(&told, ATTN_ERR_NO_MEMORY, NULL, "others in of");
    ck_assert_int_eq(envelope_translate(&envelope, ATTN_ERR_NO_MEMORY, &told), ATTN_ERR_NO_MEMORY);
    ck_assert_str_eq(told.message, "others in of");
    ck_assert_int_eq(envelope_translate(&envelope, ATTN_ERR_VALUE, NULL), ATTN_ERR_VALUE);
}
END_TEST

CHECK_MAIN("core_names")
{
    tcase_add_test(tests, a_path_of_c_becomes_a_pointer_of_json);
    tcase_add_test(tests, a_sentence_says_the_names_of_json);
    tcase_add_test(tests, one_list_of_documents_is_one_member);
    tcase_add_test(tests, success_and_errors_without_a_member_stay_as_they_are);
}
