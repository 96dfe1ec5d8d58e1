/* test_gradient.c: gradients of embeddings, norms and prediction heads against central differences. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "attn/model.h"
#include "check_main.h"
#include "random.h"

enum { TOKENS = 5, D = 6, WIDTH = 4, WORDS = 9 };

static attn_arena *arena;
static attn_runtime runtime;
static attn_error err;

static void begin(void)
{
    arena = attn_arena_create(16 << 20);
    runtime = attn_runtime_serial(NULL);
}

static void end(void)
{
    attn_arena_destroy(arena);
}

static attn_tensor *random_matrix(size_t rows, size_t columns, uint64_t seed)
{
    double *data = attn_arena_take(arena, rows * columns, sizeof *data);
    attn_tensor *made = attn_arena_take(arena, 1, sizeof *made);
    random_source random = random_seeded(seed);
    for (size_t i = 0; i < rows * columns; i++)
        data[i] = random_normal(&random);
    *made = attn_tensor_view(data, ATTN_F64, 2, (const size_t[]){rows, columns});
    return made;
}

static attn_tensor *random_vector(size_t count, uint64_t seed)
{
    attn_tensor *made = random_matrix(1, count, seed);
    *made = attn_tensor_view(made->data, ATTN_F64, 1, &count);
    return made;
}

static double dot(const attn_tensor *a, const attn_tensor *b)
{
    double sum = 0;
    for (size_t i = 0; i < attn_tensor_count(a); i++)
        sum += ((const double *)a->data)[i] * ((const double *)b->data)[i];
    return sum;
}

/* The forward pass of what is tested: *output = f(input). */
typedef void forward_pass(const void *subject, const attn_tensor *input, attn_tensor *output);

/* The gradient of the sum of behind * f(input). */
static void expect_gradient(forward_pass *forward, const void *subject, const attn_tensor *input,
                            const attn_tensor *behind, const attn_tensor *gradient)
{
    const double h = 6e-6;
    double *x = input->data;
    ck_assert_uint_eq(attn_tensor_count(gradient), attn_tensor_count(input));
    for (size_t i = 0; i < attn_tensor_count(input); i++) {
        const attn_arena_mark mark = attn_arena_mark_here(arena);
        const double kept = x[i];
        double sums[2];
        for (int side = 0; side < 2; side++) {
            attn_tensor output;
            x[i] = kept + (side == 0 ? h : -h);
            forward(subject, input, &output);
            sums[side] = dot(&output, behind);
        }
        x[i] = kept;
        ck_assert_double_eq_tol(((const double *)gradient->data)[i], (sums[0] - sums[1]) / (2 * h), 1e-7);
        attn_arena_release(arena, mark);
    }
}

static attn_token_norm norm_of(attn_norm_type type, size_t d)
{
    return (attn_token_norm){type, 0.1, {random_vector(d, 31), random_vector(d, 32)}};
}

static void run_norm(const void *subject, const attn_tensor *input, attn_tensor *output)
{
    ck_assert_int_eq(attn_norm_tokens(subject, input, &runtime, arena, output, &err), ATTN_OK);
}

START_TEST(norms_have_their_gradient)
{
    const attn_token_norm norm = norm_of((attn_norm_type)_i, D);
    const attn_tensor *input = random_matrix(TOKENS, D, 1), *behind = random_matrix(TOKENS, D, 2);
    attn_tensor gradient;
    ck_assert_int_eq(attn_norm_tokens_back(&norm, input, behind, &runtime, arena, &gradient, &err), ATTN_OK);
    expect_gradient(run_norm, &norm, input, behind, &gradient);
}
END_TEST

static void run_head(const void *subject, const attn_tensor *input, attn_tensor *output)
{
    ck_assert_int_eq(attn_predict(subject, input, &runtime, arena, output, &err), ATTN_OK);
}

/* The output layer alone; behind it a cap; a dense layer with an activation and a norm; a pooler. */
START_TEST(heads_have_their_gradient)
{
    const bool has_dense = _i >= 2;
    const size_t inner = has_dense ? WIDTH : D;
    attn_prediction_head head = {.compute = ATTN_F64,
                                 .dense_layout = ATTN_LAYOUT_IN_OUT,
                                 .output_layout = _i % 2 == 0 ? ATTN_LAYOUT_OUT_IN : ATTN_LAYOUT_IN_OUT,
                                 .scale = _i == 1 ? 0.4 : 0,
                                 .softcap = _i == 1 || _i == 2 ? 1.5 : 0,
                                 .output = {NULL, random_vector(WORDS, 12)}};
    head.output.weight =
        head.output_layout == ATTN_LAYOUT_OUT_IN ? random_matrix(WORDS, inner, 11) : random_matrix(inner, WORDS, 11);
    if (has_dense)
        head.dense = (attn_affine){random_matrix(D, WIDTH, 13), random_vector(WIDTH, 14)};
    head.dense_is_tanh = _i == 3;
    head.activation = _i == 2 ? ATTN_ACTIVATION_GELU : ATTN_ACTIVATION_NONE;
    if (_i == 2)
        head.norm = norm_of(ATTN_NORM_LAYER, WIDTH);
    const attn_tensor *input = random_matrix(TOKENS, D, 1), *behind = random_matrix(TOKENS, WORDS, 2);
    attn_tensor scores, gradient;
    run_head(&head, input, &scores);
    ck_assert_int_eq(attn_predict_back(&head, input, &scores, behind, &runtime, arena, &gradient, &err), ATTN_OK);
    expect_gradient(run_head, &head, input, behind, &gradient);
}
END_TEST

static void run_embedding(const void *subject, const attn_tensor *input, attn_tensor *output)
{
    const attn_embedding_input of = {.count = TOKENS, .vectors = input};
    ck_assert_int_eq(attn_embed(subject, &of, &runtime, arena, output, &err), ATTN_OK);
}

/* Positions and a norm; with a projection behind it; and before it. */
START_TEST(embeddings_have_the_gradient_of_their_vectors)
{
    const size_t normed = _i == 2 ? WIDTH : D;
    attn_embedding embedding = {.compute = ATTN_F64,
                                .positions = *random_matrix(TOKENS, D, 21),
                                .types = *random_matrix(2, D, 22),
                                .norm = norm_of(ATTN_NORM_LAYER, normed),
                                .layout = ATTN_LAYOUT_OUT_IN,
                                .norm_last = _i == 2};
    if (_i > 0)
        embedding.projection = (attn_affine){random_matrix(WIDTH, D, 23), random_vector(WIDTH, 24)};
    const attn_tensor *input = random_matrix(TOKENS, D, 1), *behind = random_matrix(TOKENS, _i > 0 ? WIDTH : D, 2);
    const attn_embedding_input of = {.count = TOKENS, .vectors = input};
    attn_tensor gradient;
    ck_assert_int_eq(attn_embed_back(&embedding, &of, behind, &runtime, arena, &gradient, &err), ATTN_OK);
    expect_gradient(run_embedding, &embedding, input, behind, &gradient);
}
END_TEST

START_TEST(a_row_without_a_gradient_gives_none_whatever_its_numbers)
{
    const attn_token_norm norm = norm_of(ATTN_NORM_RMS, D);
    const attn_tensor *input = random_matrix(TOKENS, D, 1), *behind = random_matrix(TOKENS, D, 2);
    attn_tensor gradient;
    for (size_t f = 0; f < D; f++) {
        ((double *)input->data)[2 * D + f] = NAN;
        ((double *)behind->data)[2 * D + f] = 0;
    }
    ck_assert_int_eq(attn_norm_tokens_back(&norm, input, behind, &runtime, arena, &gradient, &err), ATTN_OK);
    for (size_t i = 0; i < TOKENS * D; i++)
        ck_assert(isfinite(((const double *)gradient.data)[i]));
    for (size_t f = 0; f < D; f++)
        ck_assert(((const double *)gradient.data)[2 * D + f] == 0);
}
END_TEST

CHECK_MAIN("gradient_around_layers")
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, norms_have_their_gradient, ATTN_NORM_NONE, ATTN_NORM_RMS + 1);
    tcase_add_loop_test(tests, heads_have_their_gradient, 0, 4);
    tcase_add_loop_test(tests, embeddings_have_the_gradient_of_their_vectors, 0, 3);
    tcase_add_test(tests, a_row_without_a_gradient_gives_none_whatever_its_numbers);
}
