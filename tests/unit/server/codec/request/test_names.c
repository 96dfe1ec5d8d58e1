/*
 * test_names.c: tests of envelope_pointer in server/codec/request/envelope.c. tests/api/openapi checks that every name
 * of the core has a member of the schema, and the cases check whole sentences.
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

static void expect_refusal(const char *pointer, const char *sentence)
{
    attn_plan plan;
    attn_error told;
    ck_assert_int_ne(envelope_plan(&envelope, &plan, &told), ATTN_OK);
    ck_assert_str_eq(told.field, pointer);
    ck_assert_str_eq(told.message, sentence);
}

static void begin_request(attn_tensor *query)
{
    *query = attn_tensor_view(NULL, ATTN_F32, 2, (const size_t[]){3, 4});
    envelope_set_defaults(&envelope, ENVELOPE_ATTENTION);
    envelope.request.inputs.query = query;
}

START_TEST(a_refusal_says_the_names_of_json)
{
    const attn_tensor vector = attn_tensor_view(NULL, ATTN_F32, 1, (const size_t[]){2});
    attn_tensor query;
    begin_request(&query);
    envelope.request.options.alibi_slopes = &vector;
    expect_refusal("/options/alibi", "/options/alibi has shape [2], expected [1]: one number for each head");
    begin_request(&query);
    envelope.request.options.dropout = 2;
    expect_refusal("/options/dropout/p", "p must be from 0 to 1");
    begin_request(&query);
    envelope.request.inputs.query = NULL;
    expect_refusal("/inputs/query", "inputs.query is missing");
    begin_request(&query);
    envelope.request.options.want |= ATTN_STEP_BIT(ATTN_STEP_DROPPED);
    expect_refusal("/options/return",
                   "\"dropped\" needs options.dropout on attention with p above 0, and training: true");
}
END_TEST

START_TEST(one_list_of_documents_is_one_member)
{
    static int64_t ids[2];
    const attn_tensor one = attn_tensor_view(ids, ATTN_I64, 1, (const size_t[]){2}), other = one;
    attn_tensor query;
    begin_request(&query);
    envelope.request.masks = (attn_masks){.documents_query = &one, .documents_key = &one};
    expect_refusal("/masks/documents", "documents has shape [2], which does not fit [1,3]");
    envelope.request.masks.documents_key = &other;
    expect_refusal("/masks/documents/query", "query has shape [2], which does not fit [1,3]");
}
END_TEST

CHECK_MAIN("names")
{
    tcase_add_test(tests, a_path_of_c_becomes_a_pointer_of_json);
    tcase_add_test(tests, a_refusal_says_the_names_of_json);
    tcase_add_test(tests, one_list_of_documents_is_one_member);
}
