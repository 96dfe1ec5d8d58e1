/*
 * test_public.c: mistakes that a program can make with only the public headers, and floating-point modes that must
 * change nothing. No header of core/src is included here.
 */
#include <attn/attention.h>
#include <attn/gradient.h>
#include <attn/panels.h>
#include <attn/runtime.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"

#define WANT(step) ATTN_STEP_BIT(ATTN_STEP_##step)

enum { LEN = 3, D = 2 };

/* Attention on (LEN, D), self. */
typedef struct {
    float numbers[LEN * D];
    attn_tensor query;
    attn_request request;
    attn_plan plan;
    attn_error err;
} stage;

static void set_stage(stage *s)
{
    *s = (stage){.numbers = {1, 2, 3, 4, 5, 6}};
    s->query = attn_tensor_view(s->numbers, ATTN_F32, 2, (size_t[]){LEN, D});
    s->request.inputs.query = &s->query;
    s->request.options.want = WANT(OUTPUT);
}

static void expect(stage *s, attn_status status, const char *field, const char *fragment)
{
    s->err = (attn_error){0};
    ck_assert_int_eq(attn_plan_make(&s->request, &s->plan, &s->err), status);
    ck_assert_str_eq(s->err.field, field);
    ck_assert_msg(strstr(s->err.message, fragment) != NULL, "%s", s->err.message);
}

/* ---- ranks ---- */

#define MEMBER(path)                                                                                                   \
    {                                                                                                                  \
        offsetof(attn_request, path), #path                                                                            \
    }
static const struct {
    size_t at;
    const char *path;
} members[] = {
    MEMBER(inputs.query),
    MEMBER(inputs.key),
    MEMBER(inputs.value),
    MEMBER(inputs.past_key),
    MEMBER(inputs.past_value),
    MEMBER(weights.query.weight),
    MEMBER(weights.query.bias),
    MEMBER(weights.key.weight),
    MEMBER(weights.value.bias),
    MEMBER(weights.qkv.weight),
    MEMBER(weights.output.weight),
    MEMBER(weights.norm.bias),
    MEMBER(weights.query_norm.weight),
    MEMBER(weights.key_norm.bias),
    MEMBER(weights.gate.weight),
    MEMBER(weights.query_latent.weight),
    MEMBER(weights.key_latent.bias),
    MEMBER(weights.key_shared.weight),
    MEMBER(weights.key_latent_norm.weight),
    MEMBER(masks.offset),
    MEMBER(masks.attend),
    MEMBER(masks.bias),
    MEMBER(masks.padding),
    MEMBER(masks.key_lengths),
    MEMBER(masks.query_lengths),
    MEMBER(masks.documents_query),
    MEMBER(masks.documents_key),
    MEMBER(masks.blocks.attend),
    MEMBER(masks.blocks.global_tokens),
    MEMBER(masks.blocks.prefix),
    MEMBER(options.alibi_slopes),
    MEMBER(options.relative_bias.table),
    MEMBER(options.sinks),
    MEMBER(options.head_scale),
    MEMBER(options.differential),
    MEMBER(options.rope.scaling.short_factor),
    MEMBER(options.rope.scaling.long_factor),
    MEMBER(options.rope.query.positions),
    MEMBER(options.rope.query.cos),
    MEMBER(options.rope.query.sin),
    MEMBER(options.rope.key.positions),
    MEMBER(options.rope.key.cos),
    MEMBER(options.mechanism.projection),
};

/* Invalid ranks of a tensor: no member may be read beyond shape[3]. */
START_TEST(a_rank_that_no_tensor_has_is_refused_wherever_it_stands)
{
    static const int ranks[] = {5, 9, 1 << 20, -1};
    for (size_t r = 0; r < COUNT(ranks); r++) {
        stage s;
        attn_tensor wrong;
        const attn_tensor *pointer = &wrong;
        char fragment[32];
        set_stage(&s);
        wrong = s.query;
        wrong.rank = ranks[r];
        memcpy((char *)&s.request + members[_i].at, &pointer, sizeof pointer);
        snprintf(fragment, sizeof fragment, "has rank %d", ranks[r]);
        ck_assert_int_eq(attn_plan_make(&s.request, &s.plan, &s.err), ATTN_ERR_SHAPE);
        ck_assert_msg(strstr(s.err.message, fragment) != NULL, "%s: %s", members[_i].path, s.err.message);
        ck_assert_str_eq(s.err.field, members[_i].path);
    }
}
END_TEST

START_TEST(a_gradient_of_the_output_with_a_rank_that_no_tensor_has_is_refused)
{
    stage s;
    attn_gradient_plan plan;
    set_stage(&s);
    attn_tensor wrong = s.query;
    wrong.rank = 9;
    const attn_gradient_request request = {.request = &s.request, .grad_output = &wrong};
    ck_assert_int_eq(attn_gradient_plan_make(&request, &plan, &s.err), ATTN_ERR_SHAPE);
    ck_assert_str_eq(s.err.field, "grad_output");
}
END_TEST

START_TEST(the_text_of_a_shape_ends_with_the_ranks_that_there_are)
{
    static const size_t shape[] = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, 5, 6, 7, 8, 9};
    char text[128], little[8];
    ck_assert_str_eq(attn_shape_text(text, sizeof text, 2, (size_t[]){2, 3}), "[2,3]");
    ck_assert_str_eq(attn_shape_text(text, sizeof text, 0, shape), "[]");
    ck_assert_str_eq(attn_shape_text(text, sizeof text, -3, shape), "[]");
    ck_assert_str_eq(attn_shape_text(text, sizeof text, 9, shape),
                     "[18446744073709551615,18446744073709551615,18446744073709551615,18446744073709551615,5,...]");
    ck_assert_str_eq(attn_shape_text(little, sizeof little, 9, shape), "[184467");
}
END_TEST

/* ---- sizes ---- */

/* (1, heads, len, d): a plan reads no number of an input, so that there need be none. */
static attn_tensor vast(attn_dtype dtype, size_t heads, size_t len, size_t d)
{
    return attn_tensor_view(NULL, dtype, 4, (size_t[]){1, heads, len, d});
}

/* 2^53 weights, of which the mean has 2^45; with 2^20 heads their bytes are more than a size_t counts. */
START_TEST(maps_of_all_heads_that_are_too_large_are_refused)
{
    stage s;
    set_stage(&s);
    for (size_t heads = (size_t)1 << 8; heads <= (size_t)1 << 20; heads <<= 12) {
        attn_tensor query = vast(ATTN_F64, heads, (size_t)1 << 20, 1), key = vast(ATTN_F64, heads, (size_t)1 << 25, 1);
        s.request.inputs = (attn_inputs){.query = &query, .key = &key};
        s.request.options.compute = ATTN_F64;
        s.request.options.want = WANT(ATTENTION_MEAN);
        expect(&s, ATTN_ERR_TOO_LARGE, "inputs", heads > 1 << 8 ? "too many elements" : "numbers");
    }
}
END_TEST

START_TEST(features_of_keys_that_are_too_large_are_refused)
{
    stage s;
    set_stage(&s);
    attn_tensor query = vast(ATTN_F32, 1 << 8, 1, 1), key = vast(ATTN_F32, 1 << 8, (size_t)1 << 30, 1);
    s.request.inputs = (attn_inputs){.query = &query, .key = &key};
    s.request.options.mechanism = (attn_mechanism){.type = ATTN_PERFORMER, .features = ATTN_PERFORMER_FEATURES_MAX};
    expect(&s, ATTN_ERR_TOO_LARGE, "inputs", "numbers");
}
END_TEST

/* Eight times the gradient of the queries is what the splits of the backward pass keep. */
START_TEST(gradients_whose_parts_wrap_round_are_refused)
{
    stage s;
    attn_gradient_plan plan;
    set_stage(&s);
    attn_tensor query = vast(ATTN_F64, (size_t)1 << 20, (size_t)1 << 20, (size_t)1 << 17);
    s.request.inputs = (attn_inputs){.query = &query};
    s.request.options.compute = ATTN_F64;
    const attn_gradient_request request = {.request = &s.request, .grad_output = &query};
    ck_assert_int_eq(attn_gradient_plan_make(&request, &plan, &s.err), ATTN_ERR_TOO_LARGE);
    ck_assert_str_eq(s.err.field, "inputs.query");
}
END_TEST

/* ---- pools ---- */

START_TEST(a_pool_that_the_blas_cannot_serve_is_refused_with_a_message)
{
    static const struct {
        size_t threads;
        const char *fragment;
    } wrong[] = {
        {0, "at least one"}, {ATTN_POOL_THREADS_MAX + 1, "129 threads"}, {512, "at most 128"}, {SIZE_MAX, "128"}};
    for (size_t w = 0; w < COUNT(wrong); w++) {
        attn_error err = {0};
        ck_assert_ptr_null(attn_pool_create(&(attn_pool_options){.threads = wrong[w].threads}, &err));
        ck_assert_int_eq(err.status, ATTN_ERR_VALUE);
        ck_assert_msg(strstr(err.message, wrong[w].fragment) != NULL, "%s", err.message);
        ck_assert_ptr_null(attn_pool_create(&(attn_pool_options){.threads = wrong[w].threads}, NULL));
    }
}
END_TEST

CHECK_MAIN("public")
{
    tcase_add_loop_test(tests, a_rank_that_no_tensor_has_is_refused_wherever_it_stands, 0, COUNT(members));
    tcase_add_test(tests, a_gradient_of_the_output_with_a_rank_that_no_tensor_has_is_refused);
    tcase_add_test(tests, the_text_of_a_shape_ends_with_the_ranks_that_there_are);
    tcase_add_test(tests, maps_of_all_heads_that_are_too_large_are_refused);
    tcase_add_test(tests, features_of_keys_that_are_too_large_are_refused);
    tcase_add_test(tests, gradients_whose_parts_wrap_round_are_refused);
    tcase_add_test(tests, a_pool_that_the_blas_cannot_serve_is_refused_with_a_message);
}
