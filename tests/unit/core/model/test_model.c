/* test_model.c: embeddings, patches and prediction heads against loops in double. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "attn/model.h"
#include "check_main.h"
#include "random.h"

enum { ROWS = 7, TOKENS = 5, D = 6, WORDS = 9, OUT = 4 };

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

static attn_tensor random_table(size_t rows, size_t columns, uint64_t seed)
{
    float *data = attn_arena_take(arena, rows * columns, sizeof *data);
    random_source random = random_seeded(seed);
    for (size_t i = 0; i < rows * columns; i++)
        data[i] = (float)random_normal(&random);
    return attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){rows, columns});
}

static double number(const attn_tensor *table, size_t row, size_t column)
{
    return (double)((const float *)table->data)[row * table->shape[1] + column];
}

static const int64_t IDS[TOKENS] = {3, 0, 8, 3, 1}, PLACES[TOKENS] = {2, 3, 4, 6, 0}, TYPES[TOKENS] = {0, 0, 1, 1, 1};

START_TEST(an_embedding_is_the_sum_of_its_rows)
{
    const attn_embedding embedding = {.compute = ATTN_F32,
                                      .words = random_table(WORDS, D, 1),
                                      .scale = 2.5,
                                      .positions = random_table(ROWS, D, 2),
                                      .types = random_table(2, D, 3)};
    const attn_embedding_input input = {TOKENS, IDS, NULL, PLACES, TYPES};
    attn_tensor output;
    ck_assert_uint_eq(attn_embedding_width(&embedding), D);
    ck_assert_int_eq(attn_embed(&embedding, &input, &runtime, arena, &output, &err), ATTN_OK);
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t f = 0; f < D; f++)
            ck_assert_double_eq_tol(number(&output, i, f),
                                    2.5 * number(&embedding.words, (size_t)IDS[i], f) +
                                        number(&embedding.positions, (size_t)PLACES[i], f) +
                                        number(&embedding.types, (size_t)TYPES[i], f),
                                    1e-6);
}
END_TEST

START_TEST(norm_and_projection_follow_the_sum)
{
    const attn_tensor weight = random_table(OUT, D, 4);
    const attn_embedding embedding = {.compute = ATTN_F32,
                                      .words = random_table(WORDS, D, 1),
                                      .norm = {ATTN_NORM_LAYER, 1e-5, {NULL, NULL}},
                                      .projection = {&weight, NULL},
                                      .layout = ATTN_LAYOUT_OUT_IN};
    const attn_embedding_input input = {TOKENS, IDS, NULL, NULL, NULL};
    attn_tensor output;
    ck_assert_uint_eq(attn_embedding_width(&embedding), OUT);
    ck_assert_int_eq(attn_embed(&embedding, &input, &runtime, arena, &output, &err), ATTN_OK);
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t o = 0; o < OUT; o++) {
            double mean = 0, variance = 0, expected = 0;
            for (size_t f = 0; f < D; f++)
                mean += number(&embedding.words, (size_t)IDS[i], f) / D;
            for (size_t f = 0; f < D; f++)
                variance += pow(number(&embedding.words, (size_t)IDS[i], f) - mean, 2) / D;
            for (size_t f = 0; f < D; f++)
                expected += (number(&embedding.words, (size_t)IDS[i], f) - mean) / sqrt(variance + 1e-5) *
                            number(&weight, o, f);
            ck_assert_double_eq_tol(number(&output, i, o), expected, 1e-5);
        }
}
END_TEST

START_TEST(last_positions_are_added_behind_the_projection)
{
    const attn_tensor weight = random_table(OUT, D, 4);
    attn_embedding embedding = {.compute = ATTN_F32,
                                .words = random_table(WORDS, D, 1),
                                .projection = {&weight, NULL},
                                .layout = ATTN_LAYOUT_OUT_IN};
    attn_embedding_input input = {TOKENS, IDS, NULL, PLACES, NULL};
    attn_tensor projected, output;
    ck_assert_int_eq(attn_embed(&embedding, &input, &runtime, arena, &projected, &err), ATTN_OK);
    embedding.positions = random_table(ROWS, OUT, 2);
    embedding.positions_last = true;
    ck_assert_uint_eq(attn_embedding_width(&embedding), OUT);
    for (int is_counted = 0; is_counted < 2; is_counted++) {
        input.positions = is_counted ? PLACES : NULL;
        ck_assert_int_eq(attn_embed(&embedding, &input, &runtime, arena, &output, &err), ATTN_OK);
        for (size_t i = 0; i < TOKENS; i++)
            for (size_t o = 0; o < OUT; o++)
                ck_assert_double_eq_tol(number(&output, i, o),
                                        number(&projected, i, o) +
                                            number(&embedding.positions, is_counted ? (size_t)PLACES[i] : i, o),
                                        1e-6);
    }
}
END_TEST

START_TEST(a_last_norm_is_behind_the_projection)
{
    const attn_tensor weight = random_table(OUT, D, 4);
    attn_embedding embedding = {.compute = ATTN_F32,
                                .words = random_table(WORDS, D, 1),
                                .projection = {&weight, NULL},
                                .layout = ATTN_LAYOUT_OUT_IN};
    const attn_embedding_input input = {TOKENS, IDS, NULL, NULL, NULL};
    attn_tensor projected, expected, output;
    ck_assert_int_eq(attn_embed(&embedding, &input, &runtime, arena, &projected, &err), ATTN_OK);
    embedding.norm = (attn_token_norm){ATTN_NORM_LAYER, 1e-5, {NULL, NULL}};
    embedding.norm_last = true;
    ck_assert_int_eq(attn_norm_tokens(&embedding.norm, &projected, &runtime, arena, &expected, &err), ATTN_OK);
    ck_assert_int_eq(attn_embed(&embedding, &input, &runtime, arena, &output, &err), ATTN_OK);
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t o = 0; o < OUT; o++)
            ck_assert_double_eq(number(&output, i, o), number(&expected, i, o));
}
END_TEST

START_TEST(tables_of_16_bits_are_widened_row_by_row)
{
    attn_tensor wide = random_table(WORDS, D, 1), narrow = wide;
    narrow.dtype = ATTN_BF16;
    narrow.data = attn_arena_take(arena, WORDS * D, 2);
    ck_assert_int_eq(attn_convert(narrow.data, ATTN_BF16, wide.data, ATTN_F32, WORDS * D, &err), ATTN_OK);
    const attn_embedding embedding = {.compute = ATTN_F64, .words = narrow};
    const attn_embedding_input input = {TOKENS, IDS, NULL, NULL, NULL};
    attn_tensor output;
    double expected[WORDS * D];
    ck_assert_int_eq(attn_convert(expected, ATTN_F64, narrow.data, ATTN_BF16, WORDS * D, &err), ATTN_OK);
    ck_assert_int_eq(attn_embed(&embedding, &input, &runtime, arena, &output, &err), ATTN_OK);
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t f = 0; f < D; f++)
            ck_assert_double_eq(((const double *)output.data)[i * D + f], expected[(size_t)IDS[i] * D + f]);
}
END_TEST

START_TEST(vectors_stand_for_the_rows_of_words)
{
    const attn_tensor vectors = random_table(TOKENS, D, 5);
    const attn_embedding embedding = {
        .compute = ATTN_F32, .words = random_table(WORDS, D, 1), .scale = 3, .positions = random_table(ROWS, D, 2)};
    const attn_embedding_input input = {TOKENS, NULL, &vectors, NULL, NULL};
    attn_tensor output;
    ck_assert_int_eq(attn_embed(&embedding, &input, &runtime, arena, &output, &err), ATTN_OK);
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t f = 0; f < D; f++)
            ck_assert_double_eq_tol(number(&output, i, f), number(&vectors, i, f) + number(&embedding.positions, i, f),
                                    1e-6);
}
END_TEST

START_TEST(an_index_without_a_row_is_named)
{
    const attn_embedding embedding = {.compute = ATTN_F32,
                                      .words = random_table(WORDS, D, 1),
                                      .positions = random_table(ROWS, D, 2),
                                      .types = random_table(2, D, 3)};
    static const int64_t high[TOKENS] = {0, 1, WORDS, 0, 0}, low[TOKENS] = {0, -1, 0, 0, 0};
    const struct {
        attn_embedding_input input;
        const char *field, *message;
    } wrong[] = {
        {{TOKENS, high, NULL, NULL, NULL}, "ids", "ids[2] is 9, and the model has tokens from 0 to 8"},
        {{TOKENS, low, NULL, NULL, NULL}, "ids", "ids[1] is -1, and the model has tokens from 0 to 8"},
        {{TOKENS, IDS, NULL, high, NULL}, "positions", "positions[2] is 9, and the model has positions from 0 to 6"},
        {{TOKENS, IDS, NULL, NULL, high}, "types", "types[2] is 9, and the model has token types from 0 to 1"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        attn_tensor output;
        ck_assert_int_eq(attn_embed(&embedding, &wrong[i].input, &runtime, arena, &output, &err), ATTN_ERR_VALUE);
        ck_assert_str_eq(err.field, wrong[i].field);
        ck_assert_str_eq(err.message, wrong[i].message);
    }
}
END_TEST

START_TEST(a_sequence_longer_than_the_positions_is_refused)
{
    static const int64_t many[ROWS + 1] = {0};
    const attn_embedding embedding = {
        .compute = ATTN_F32, .words = random_table(WORDS, D, 1), .positions = random_table(ROWS, D, 2)};
    const attn_embedding_input input = {ROWS + 1, many, NULL, NULL, NULL};
    attn_tensor output;
    ck_assert_int_eq(attn_embed(&embedding, &input, &runtime, arena, &output, &err), ATTN_ERR_VALUE);
    ck_assert_str_eq(err.message, "the sequence has 8 tokens, and the model has 7 positions");
}
END_TEST

START_TEST(an_embedding_fits_the_bytes_that_it_says)
{
    const attn_tensor weight = random_table(OUT, D, 4);
    for (int norm_last = 0; norm_last < 2; norm_last++) {
        const attn_embedding embedding = {.compute = ATTN_F32,
                                          .words = random_table(WORDS, D, 1),
                                          .norm = {ATTN_NORM_RMS, 1e-5, {NULL, NULL}},
                                          .norm_last = norm_last != 0,
                                          .positions = random_table(ROWS, OUT, 2),
                                          .positions_last = true,
                                          .projection = {&weight, NULL},
                                          .layout = ATTN_LAYOUT_OUT_IN};
        const attn_embedding_input input = {TOKENS, IDS, NULL, NULL, NULL};
        attn_tensor output;
        const size_t bytes = attn_embedding_bytes(&embedding, TOKENS, 1);
        attn_arena *own = attn_arena_create(bytes + (64 << 10));
        char *base = attn_arena_take(own, 1, 0);
        ck_assert_int_eq(attn_embed(&embedding, &input, &runtime, own, &output, &err), ATTN_OK);
        const char *behind = attn_arena_take(own, 1, 0);
        ck_assert_uint_le((size_t)(behind - base), bytes + ATTN_ALIGNMENT);
        attn_arena_destroy(own);
    }
}
END_TEST

START_TEST(sinusoidal_positions_have_all_sines_then_all_cosines)
{
    float table[3 * D];
    attn_sinusoidal_positions(3, D, table);
    for (int p = 0; p < 3; p++)
        for (int pair = 0; pair < D / 2; pair++) {
            ck_assert_double_eq_tol((double)table[p * D + pair], sin(p / pow(10000, 2.0 * pair / D)), 1e-7);
            ck_assert_double_eq_tol((double)table[p * D + D / 2 + pair], cos(p / pow(10000, 2.0 * pair / D)), 1e-7);
        }
}
END_TEST

START_TEST(patches_are_products_behind_the_leading_vectors)
{
    enum { CHANNELS = 2, SIDE = 2, HEIGHT = 5, WIDTH = 7, INNER = CHANNELS * SIDE * SIDE };
    const attn_tensor kernel = random_table(D, INNER, 6), leading = random_table(1, D, 7);
    const attn_tensor flat = random_table(CHANNELS, HEIGHT * WIDTH, 8);
    const attn_tensor pixels = attn_tensor_view(flat.data, ATTN_F32, 3, (const size_t[]){CHANNELS, HEIGHT, WIDTH});
    const attn_patches patches = {ATTN_F32, CHANNELS, SIDE, {&kernel, NULL}, leading};
    attn_tensor vectors;
    ck_assert_int_eq(attn_embed_patches(&patches, &pixels, &runtime, arena, &vectors, &err), ATTN_OK);
    ck_assert_uint_eq(vectors.shape[0], 1 + HEIGHT / SIDE * (WIDTH / SIDE));
    for (size_t f = 0; f < D; f++)
        ck_assert_double_eq(number(&vectors, 0, f), number(&leading, 0, f));
    for (size_t patch = 0; patch < HEIGHT / SIDE * (WIDTH / SIDE); patch++)
        for (size_t f = 0; f < D; f++) {
            const size_t top = patch / (WIDTH / SIDE) * SIDE, left = patch % (WIDTH / SIDE) * SIDE;
            double expected = 0;
            for (size_t i = 0; i < INNER; i++)
                expected += number(&kernel, f, i) *
                            number(&flat, i / (SIDE * SIDE), (top + i / SIDE % SIDE) * WIDTH + left + i % SIDE);
            ck_assert_double_eq_tol(number(&vectors, 1 + patch, f), expected, 1e-5);
        }
}
END_TEST

START_TEST(an_image_of_another_form_is_refused)
{
    const attn_tensor kernel = random_table(D, 12, 6);
    const attn_patches patches = {ATTN_F32, 3, 2, {&kernel, NULL}, {.data = NULL}};
    const size_t wrong[2][3] = {{1, 4, 4}, {3, 4, 1}};
    for (int i = 0; i < 2; i++) {
        const attn_tensor pixels = attn_tensor_view(NULL, ATTN_F32, 3, wrong[i]);
        attn_tensor vectors;
        ck_assert_int_eq(attn_embed_patches(&patches, &pixels, &runtime, arena, &vectors, &err), ATTN_ERR_SHAPE);
        ck_assert_str_eq(err.field, "pixels");
    }
}
END_TEST

START_TEST(a_prediction_head_follows_its_equation)
{
    const attn_tensor dense = random_table(D, D, 9), dense_bias_row = random_table(1, D, 10);
    const attn_tensor output = random_table(WORDS, D, 11), bias_row = random_table(1, WORDS, 12);
    const attn_tensor dense_bias = attn_tensor_view(dense_bias_row.data, ATTN_F32, 1, (const size_t[]){D});
    const attn_tensor bias = attn_tensor_view(bias_row.data, ATTN_F32, 1, (const size_t[]){WORDS});
    const attn_tensor input = random_table(TOKENS, D, 13);
    const struct {
        double scale, softcap;
    } variants[] = {{0, 0}, {0.25, 0}, {1, 3}, {0.5, 2}};
    for (size_t variant = 0; variant < COUNT(variants); variant++) {
        const attn_prediction_head head = {.compute = ATTN_F32,
                                           .dense_layout = ATTN_LAYOUT_IN_OUT,
                                           .output_layout = ATTN_LAYOUT_OUT_IN,
                                           .dense = {&dense, &dense_bias},
                                           .activation = ATTN_ACTIVATION_RELU,
                                           .norm = {ATTN_NORM_RMS, 1e-6, {NULL, NULL}},
                                           .scale = variants[variant].scale,
                                           .output = {&output, &bias},
                                           .softcap = variants[variant].softcap};
        attn_tensor scores;
        ck_assert_int_eq(attn_predict(&head, &input, &runtime, arena, &scores, &err), ATTN_OK);
        for (size_t i = 0; i < TOKENS; i++) {
            double hidden[D], squares = 0;
            for (size_t o = 0; o < D; o++) {
                hidden[o] = number(&dense_bias_row, 0, o);
                for (size_t f = 0; f < D; f++)
                    hidden[o] += number(&input, i, f) * number(&dense, f, o);
                hidden[o] = hidden[o] > 0 ? hidden[o] : 0;
                squares += hidden[o] * hidden[o] / D;
            }
            for (size_t word = 0; word < WORDS; word++) {
                double z = 0;
                for (size_t f = 0; f < D; f++)
                    z += hidden[f] / sqrt(squares + 1e-6) * number(&output, word, f);
                z = (head.scale != 0 ? head.scale : 1) * z + number(&bias_row, 0, word);
                z = head.softcap > 0 ? head.softcap * tanh(z / head.softcap) : z;
                ck_assert_double_eq_tol(number(&scores, i, word), z, 1e-5);
            }
        }
    }
}
END_TEST

START_TEST(a_pooler_of_a_head_is_a_tanh)
{
    const attn_tensor dense = random_table(D, D, 9), output = random_table(WORDS, D, 11);
    const attn_tensor input = random_table(TOKENS, D, 13);
    const attn_prediction_head head = {.compute = ATTN_F32,
                                       .dense_layout = ATTN_LAYOUT_OUT_IN,
                                       .output_layout = ATTN_LAYOUT_OUT_IN,
                                       .dense.weight = &dense,
                                       .dense_is_tanh = true,
                                       .output.weight = &output};
    attn_tensor scores;
    ck_assert_int_eq(attn_predict(&head, &input, &runtime, arena, &scores, &err), ATTN_OK);
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t word = 0; word < WORDS; word++) {
            double z = 0;
            for (size_t o = 0; o < D; o++) {
                double inner = 0;
                for (size_t f = 0; f < D; f++)
                    inner += number(&input, i, f) * number(&dense, o, f);
                z += tanh(inner) * number(&output, word, o);
            }
            ck_assert_double_eq_tol(number(&scores, i, word), z, 1e-5); /* sums of D float32 products */
        }
}
END_TEST

START_TEST(probabilities_of_classes_follow_their_rule)
{
    const double logits[2][3] = {{1, 2, 1000}, {-1000, 0, -1}};
    double p[2][3];
    attn_class_probabilities(ATTN_CLASSES_SOFTMAX, ATTN_F64, 2, 3, logits, p, &runtime);
    ck_assert_double_eq_tol(p[0][2], 1, 1e-15);
    ck_assert_double_eq_tol(p[1][1], 1 / (1 + exp(-1)), 1e-15);
    ck_assert_double_eq_tol(p[1][0] + p[1][1] + p[1][2], 1, 1e-15);
    attn_class_probabilities(ATTN_CLASSES_SIGMOID, ATTN_F64, 2, 3, logits, p, &runtime);
    ck_assert_double_eq_tol(p[0][0], 1 / (1 + exp(-1)), 1e-15);
    ck_assert(p[0][2] == 1 && p[1][0] == 0 && p[1][1] == 0.5);
}
END_TEST

START_TEST(the_best_answer_starts_before_it_ends)
{
    const double starts[] = {1, 0, 5, 0}, ends[] = {0, 3, 0, 2};
    const bool may[] = {true, true, false, true}, none[] = {false, false, false, false};
    attn_answer answer;
    ck_assert(attn_best_span(4, starts, ends, NULL, &answer));
    ck_assert(answer.first == 2 && answer.last == 3);
    const double start = exp(5) / (exp(1) + exp(5) + 2), end = exp(2) / (exp(3) + exp(2) + 2);
    ck_assert_double_eq_tol(answer.probability, start * end, 1e-15);
    ck_assert(attn_best_span(4, starts, ends, may, &answer));
    ck_assert(answer.first == 0 && answer.last == 1);
    ck_assert(!attn_best_span(4, starts, ends, none, &answer));
    ck_assert(!attn_best_span(1, (double[]){NAN}, (double[]){1}, NULL, &answer));
}
END_TEST

START_TEST(pooling_makes_one_vector_of_all_tokens)
{
    float rows[3][2] = {{1, -4}, {3, 0}, {5, -2}}, to[2];
    const attn_tensor input = attn_tensor_view(rows, ATTN_F32, 2, (const size_t[]){3, 2});
    const struct {
        attn_pooling pool;
        double first, second;
    } cases[] = {{ATTN_POOL_FIRST, 1, -4},
                 {ATTN_POOL_LAST, 5, -2},
                 {ATTN_POOL_MEAN, 3, -2},
                 {ATTN_POOL_MEAN_SQRT, 9 / sqrt(3), -6 / sqrt(3)},
                 {ATTN_POOL_WEIGHTED, 22.0 / 6, -10.0 / 6},
                 {ATTN_POOL_MAX, 5, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        attn_pool_tokens(cases[i].pool, &input, to);
        ck_assert_double_eq_tol(to[0], cases[i].first, 1e-6);
        ck_assert_double_eq_tol(to[1], cases[i].second, 1e-6);
    }
    attn_pool_tokens(ATTN_POOL_MEAN, &input, to);
    attn_normalize_vector(ATTN_F32, 2, to);
    ck_assert_double_eq_tol(hypot(to[0], to[1]), 1, 1e-6);
    float zeros[2] = {0, 0};
    attn_normalize_vector(ATTN_F32, 2, zeros);
    ck_assert(zeros[0] == 0 && zeros[1] == 0);
}
END_TEST

/* One part of row i through the head, forward, with what multiplies held at the numbers of the whole row x. */
static double pass_part(const attn_prediction_head *head, const attn_tensor *x, const attn_tensor *part, size_t i,
                        size_t word)
{
    const attn_tensor *dense = head->dense.weight, *output = head->output.weight;
    double whole[D], own[D], mean[2] = {0, 0}, squares = 0, z[2] = {0, 0};
    for (size_t o = 0; o < D; o++) {
        whole[o] = number(head->dense.bias, 0, o);
        own[o] = 0;
        for (size_t f = 0; f < D; f++) {
            whole[o] += number(x, i, f) * number(dense, f, o);
            own[o] += number(part, i, f) * number(dense, f, o);
        }
        own[o] *= whole[o] > 0 ? 1 : 0;
        whole[o] = whole[o] > 0 ? whole[o] : 0;
        mean[0] += whole[o] / D;
        mean[1] += own[o] / D;
    }
    for (size_t o = 0; o < D; o++)
        squares += (whole[o] - mean[0]) * (whole[o] - mean[0]) / D;
    for (size_t o = 0; o < D; o++) {
        const double factor = number(head->norm.weights.weight, 0, o) / sqrt(squares + head->norm.eps);
        z[0] += ((whole[o] - mean[0]) * factor + number(head->norm.weights.bias, 0, o)) * number(output, word, o);
        z[1] += (own[o] - mean[1]) * factor * number(output, word, o);
    }
    const double score = head->scale * z[0] + number(head->output.bias, 0, word);
    return head->scale * z[1] * head->softcap * tanh(score / head->softcap) / score;
}

START_TEST(directions_give_what_each_part_adds_to_a_score)
{
    enum { N = 2 };
    static const int64_t words[TOKENS * N] = {3, 0, 8, 8, 1, 2, 4, 5, 6, 7};
    const attn_tensor dense = random_table(D, D, 9), output = random_table(WORDS, D, 11);
    const attn_tensor dense_bias = random_table(1, D, 10), bias = random_table(1, WORDS, 12);
    const attn_tensor gain = random_table(1, D, 14), shift = random_table(1, D, 15);
    const attn_tensor input = random_table(TOKENS, D, 13), part = random_table(TOKENS, D, 16);
    const attn_prediction_head head = {.compute = ATTN_F32,
                                       .dense_layout = ATTN_LAYOUT_IN_OUT,
                                       .output_layout = ATTN_LAYOUT_OUT_IN,
                                       .dense = {&dense, &dense_bias},
                                       .activation = ATTN_ACTIVATION_RELU,
                                       .norm = {ATTN_NORM_LAYER, 1e-5, {&gain, &shift}},
                                       .scale = 0.5,
                                       .output = {&output, &bias},
                                       .softcap = 3};
    attn_tensor directions;
    double added[TOKENS * N];
    ck_assert_int_eq(attn_head_directions(&head, &input, N, words, &runtime, arena, &directions, &err), ATTN_OK);
    ck_assert_int_eq(attn_add_parts(&part, 1, &directions, added, &runtime, &err), ATTN_OK);
    for (size_t i = 0; i < TOKENS * N; i++)
        ck_assert_double_eq_tol(added[i], pass_part(&head, &input, &part, i / N, (size_t)words[i]), 1e-5);
}
END_TEST

/* A norm adds its shift to the score beside its parts, which are all numbers of the row here. */
START_TEST(all_numbers_of_a_row_add_what_its_norm_gives)
{
    const attn_tensor gain = random_table(1, D, 14), input = random_table(TOKENS, D, 13),
                      direction = random_table(TOKENS, D, 17);
    for (int type = ATTN_NORM_NONE; type <= ATTN_NORM_RMS; type++) {
        const attn_token_norm norm = {(attn_norm_type)type, 1e-5, {&gain, NULL}};
        const attn_tensor before = random_table(TOKENS, D, 17);
        double factors[TOKENS], added[TOKENS * 2];
        attn_tensor normed;
        attn_norm_factors(&norm, &input, factors);
        attn_norm_directions(&norm, TOKENS, factors, &before, &runtime);
        ck_assert_int_eq(attn_add_parts(&input, 2, &before, added, &runtime, &err), ATTN_OK);
        ck_assert_int_eq(attn_norm_tokens(&norm, &input, &runtime, arena, &normed, &err), ATTN_OK);
        for (size_t i = 0; i < TOKENS; i++) {
            double wanted = 0;
            for (size_t f = 0; f < D; f++)
                wanted += number(&normed, i, f) * number(&direction, i, f);
            ck_assert_double_eq_tol(added[2 * i] + added[2 * i + 1], wanted, 1e-5);
        }
    }
}
END_TEST

/* The bytes of the same numbers in float32. */
START_TEST(a_prediction_head_reads_weights_of_16_bits)
{
    const attn_tensor input = random_table(TOKENS, D, 13);
    attn_tensor wide[2] = {random_table(D, D, 9), random_table(WORDS, D, 11)}, narrow[2], scores[2];
    const attn_kernel *kernel;
    for (int i = 0; i < 2; i++) {
        const attn_dtype dtype = i == 0 ? ATTN_F16 : ATTN_BF16;
        const size_t count = attn_tensor_count(&wide[i]);
        narrow[i] = attn_tensor_view(attn_arena_take(arena, count, 2), dtype, 2, wide[i].shape);
        ck_assert_int_eq(attn_convert(narrow[i].data, dtype, wide[i].data, ATTN_F32, count, &err), ATTN_OK);
        ck_assert_int_eq(attn_convert(wide[i].data, ATTN_F32, narrow[i].data, dtype, count, &err), ATTN_OK);
    }
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        const attn_runtime serial = attn_runtime_serial(kernel);
        for (int i = 0; i < 2; i++) {
            const attn_tensor *weights = i == 0 ? wide : narrow;
            const attn_prediction_head head = {.compute = ATTN_F32,
                                               .dense_layout = ATTN_LAYOUT_IN_OUT,
                                               .output_layout = ATTN_LAYOUT_OUT_IN,
                                               .dense.weight = &weights[0],
                                               .output.weight = &weights[1]};
            ck_assert_int_eq(attn_predict(&head, &input, &serial, arena, &scores[i], &err), ATTN_OK);
        }
        ck_assert_mem_eq(scores[0].data, scores[1].data, attn_tensor_count(&scores[0]) * sizeof(float));
    }
}
END_TEST

CHECK_MAIN("model")
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, an_embedding_is_the_sum_of_its_rows);
    tcase_add_test(tests, norm_and_projection_follow_the_sum);
    tcase_add_test(tests, last_positions_are_added_behind_the_projection);
    tcase_add_test(tests, a_last_norm_is_behind_the_projection);
    tcase_add_test(tests, tables_of_16_bits_are_widened_row_by_row);
    tcase_add_test(tests, vectors_stand_for_the_rows_of_words);
    tcase_add_test(tests, an_index_without_a_row_is_named);
    tcase_add_test(tests, a_sequence_longer_than_the_positions_is_refused);
    tcase_add_test(tests, an_embedding_fits_the_bytes_that_it_says);
    tcase_add_test(tests, sinusoidal_positions_have_all_sines_then_all_cosines);
    tcase_add_test(tests, patches_are_products_behind_the_leading_vectors);
    tcase_add_test(tests, an_image_of_another_form_is_refused);
    tcase_add_test(tests, a_prediction_head_follows_its_equation);
    tcase_add_test(tests, a_pooler_of_a_head_is_a_tanh);
    tcase_add_test(tests, probabilities_of_classes_follow_their_rule);
    tcase_add_test(tests, the_best_answer_starts_before_it_ends);
    tcase_add_test(tests, pooling_makes_one_vector_of_all_tokens);
    tcase_add_test(tests, a_prediction_head_reads_weights_of_16_bits);
    tcase_add_test(tests, directions_give_what_each_part_adds_to_a_score);
    tcase_add_test(tests, all_numbers_of_a_row_add_what_its_norm_gives);
}
