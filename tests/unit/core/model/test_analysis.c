/* test_analysis.c: rollout, the roles of heads and the most probable words against loops. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/analysis.h"
#include "check_main.h"
#include "random.h"

enum { HEADS = 2, N = 5, LAYERS = 3 };

/* Rows of weights that sum to 1. */
static attn_tensor random_maps(float *data, uint64_t seed)
{
    random_source random = random_seeded(seed);
    for (int row = 0; row < HEADS * N; row++) {
        double weights[N], sum = 0;
        for (int j = 0; j < N; j++)
            sum += weights[j] = random_uniform(&random);
        for (int j = 0; j < N; j++)
            data[row * N + j] = (float)(weights[j] / sum);
    }
    return attn_tensor_view(data, ATTN_F32, 3, (const size_t[]){HEADS, N, N});
}

START_TEST(rollout_multiplies_the_mixed_layers)
{
    const attn_runtime runtime = attn_runtime_serial(NULL);
    double expected[N][N] = {{0}}, got[LAYERS][N * N], work[N * N];
    for (int i = 0; i < N; i++)
        expected[i][i] = 1;
    for (int layer = 0; layer < LAYERS; layer++) {
        float data[HEADS * N * N];
        double next[N][N] = {{0}};
        const attn_tensor maps = random_maps(data, (uint64_t)layer + 1);
        attn_rollout_layer(&maps, layer > 0 ? got[layer - 1] : NULL, work, got[layer], &runtime);
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++) {
                const double mean = ((double)data[i * N + k] + (double)data[(N + i) * N + k]) / HEADS;
                for (int j = 0; j < N; j++)
                    next[i][j] += (mean / 2 + (i == k ? 0.5 : 0)) * expected[k][j];
            }
        memcpy(expected, next, sizeof next);
        for (int i = 0; i < N * N; i++)
            ck_assert_double_eq_tol(got[layer][i], expected[i / N][i % N], 1e-12);
    }
}
END_TEST

START_TEST(roles_are_shares_of_the_attention)
{
    /* The second head is the first one's rows turned round, so that it differs. */
    static const float data[2 * 4 * 4] = {
        1,    0,    0,    0,    0.75f, 0.25f, 0,    0,    0.125f, 0.5f, 0.375f, 0,    0.25f, 0.125f, 0.5f, 0.125f,
        0.5f, 0.5f, 0.0f, 0.0f, 0,     1,     0.0f, 0.0f, 0,      0,    0.5f,   0.5f, 0,     0,      0,    1,
    };
    static const int64_t ids[4] = {7, 8, 7, 9};
    const attn_tensor map = attn_tensor_view((void *)(uintptr_t)data, ATTN_F32, 3, (const size_t[]){2, 4, 4});
    double score[2][ATTN_ROLE_COUNT];
    attn_head_roles(&map, ids, score[0], NULL);
    ck_assert_double_eq_tol(score[0][ATTN_ROLE_PREVIOUS_TOKEN], (0.75 + 0.5 + 0.5) / 3, 1e-12);
    ck_assert_double_eq_tol(score[0][ATTN_ROLE_FIRST_TOKEN], (1 + 0.75 + 0.125 + 0.25) / 4, 1e-12);
    /* Tokens 0 and 2 are the same; key 1 follows token 0, which is token 2's earlier one. */
    ck_assert_double_eq_tol(score[0][ATTN_ROLE_SAME_TOKEN], (0 + 0.125) / 2, 1e-12);
    ck_assert_double_eq_tol(score[0][ATTN_ROLE_INDUCTION], 0.5, 1e-12);
    ck_assert_double_eq_tol(score[1][ATTN_ROLE_ENTROPY], (log(2) + log(2)) / 4, 1e-7);
}
END_TEST

START_TEST(a_role_that_no_query_has_is_no_number)
{
    static const float one[1] = {1};
    static const int64_t id = 3;
    const attn_tensor map = attn_tensor_view((void *)(uintptr_t)one, ATTN_F32, 3, (const size_t[]){1, 1, 1});
    double score[ATTN_ROLE_COUNT];
    attn_head_roles(&map, &id, score, NULL);
    ck_assert(isnan(score[ATTN_ROLE_PREVIOUS_TOKEN]));
    ck_assert(isnan(score[ATTN_ROLE_SAME_TOKEN]));
    ck_assert(isnan(score[ATTN_ROLE_INDUCTION]));
    ck_assert_double_eq(score[ATTN_ROLE_FIRST_TOKEN], 1);
    ck_assert_double_eq(score[ATTN_ROLE_ENTROPY], 0);
}
END_TEST

static size_t looks, looks_allowed;

static bool look(void *context)
{
    (void)context;
    return ++looks > looks_allowed;
}

/* A number takes some ten nanoseconds. */
START_TEST(roles_of_many_tokens_look)
{
    enum { MANY = 512 };
    float *data = calloc(2 * MANY * MANY, sizeof *data);
    static int64_t ids[MANY];
    const attn_tensor map = attn_tensor_view(data, ATTN_F32, 3, (const size_t[]){2, MANY, MANY});
    double score[2 * ATTN_ROLE_COUNT];
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = look;
    ck_assert_ptr_nonnull(data);
    looks_allowed = SIZE_MAX;
    attn_head_roles(&map, ids, score, &runtime);
    ck_assert_uint_ge(looks, 2 * MANY * MANY / (1 << 17));
    looks = looks_allowed = 0;
    attn_head_roles(&map, ids, score, &runtime);
    ck_assert_uint_le(looks, 2); /* one for each head */
    free(data);
}
END_TEST

START_TEST(the_most_probable_words_come_first)
{
    static const double scores[6] = {0.5, 2, -1, 2, 1000, 3};
    int64_t words[3];
    double probabilities[3];
    attn_top_words(scores, ATTN_F64, 4, 3, words, probabilities, NULL);
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += exp(scores[i]);
    static const int64_t expected[3] = {1, 3, 0}; /* equal scores: the smaller index first */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(words[i], expected[i]);
        ck_assert_double_eq_tol(probabilities[i], exp(scores[expected[i]]) / sum, 1e-15);
    }
    attn_top_words(scores, ATTN_F64, 6, 1, words, probabilities, NULL);
    ck_assert_int_eq(words[0], 4);
    ck_assert_double_eq_tol(probabilities[0], 1, 1e-15);
}
END_TEST

/* The same words as a search for the best of the rest, again and again; few values, so that many are equal. */
START_TEST(words_are_those_of_a_plain_search)
{
    enum { COUNT = 300 };
    static float scores[COUNT];
    int64_t words[COUNT];
    double probabilities[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        scores[i] = (float)(i * i * 7919 % 61);
    for (size_t k = 0; k <= COUNT; k += 1 + k / 3) {
        bool is_taken[COUNT] = {false};
        attn_top_words(scores, ATTN_F32, COUNT, k, words, probabilities, NULL);
        for (size_t n = 0; n < k; n++) {
            size_t best = COUNT;
            for (size_t i = 0; i < COUNT; i++)
                if (!is_taken[i] && (best == COUNT || scores[i] > scores[best]))
                    best = i;
            is_taken[best] = true;
            ck_assert_uint_eq((size_t)words[n], best);
            ck_assert(n == 0 || probabilities[n] <= probabilities[n - 1]);
        }
    }
}
END_TEST

/* The place in a full search, and the logarithm of the probability there. */
START_TEST(given_words_have_the_ranks_of_a_search)
{
    enum { COUNT = 300 };
    static float scores[COUNT];
    int64_t best[COUNT], words[COUNT], ranks[COUNT];
    double probabilities[COUNT], logs[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        scores[i] = (float)(i * i * 7919 % 61);
        words[i] = (int64_t)(i * 7 % COUNT);
    }
    attn_top_words(scores, ATTN_F32, COUNT, COUNT, best, probabilities, NULL);
    attn_score_words(scores, ATTN_F32, COUNT, COUNT, words, logs, ranks, NULL);
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_int_eq(best[ranks[i] - 1], words[i]);
        ck_assert_double_eq_tol(exp(logs[i]), probabilities[ranks[i] - 1], 1e-15);
    }
}
END_TEST

START_TEST(logarithms_of_probabilities_survive_far_scores)
{
    static const double scores[3] = {1e308, -1e300, 0};
    static const int64_t words[3] = {0, 1, 2};
    double logs[3];
    int64_t ranks[3];
    attn_score_words(scores, ATTN_F64, 3, 3, words, logs, ranks, NULL);
    ck_assert_double_eq(logs[0], 0);
    ck_assert_double_eq(logs[1], -1e300 - 1e308);
    ck_assert_double_eq(logs[2], -1e308);
    ck_assert_int_eq(ranks[1], 3);
}
END_TEST

START_TEST(scores_of_words_look)
{
    enum { WORDS = 1 << 19, PASS_LOOKS = WORDS / (1 << 16) - 1 };
    float *scores = calloc(WORDS, sizeof *scores);
    static const int64_t words[2] = {7, WORDS - 1};
    double logs[2];
    int64_t ranks[2];
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = look;
    ck_assert_ptr_nonnull(scores);
    looks = 0;
    looks_allowed = SIZE_MAX;
    attn_score_words(scores, ATTN_F32, WORDS, 2, words, logs, ranks, &runtime);
    ck_assert_uint_ge(looks, 4 * PASS_LOOKS); /* the largest, the sum, and a rank for each word */
    ck_assert_int_eq(ranks[1], WORDS);
    looks = looks_allowed = 0;
    attn_score_words(scores, ATTN_F32, WORDS, 2, words, logs, ranks, &runtime);
    ck_assert_uint_le(looks, 4);
    free(scores);
}
END_TEST

/* Both passes over the scores. */
START_TEST(a_search_for_words_looks)
{
    enum { WORDS = 1 << 19, K = 1000, PASS_LOOKS = WORDS / (1 << 16) - 1 };
    float *scores = calloc(WORDS, sizeof *scores);
    static int64_t words[K];
    static double probabilities[K];
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = look;
    ck_assert_ptr_nonnull(scores);
    for (size_t i = 0; i < WORDS; i++)
        scores[i] = (float)i;
    looks = 0;
    looks_allowed = SIZE_MAX;
    attn_top_words(scores, ATTN_F32, WORDS, K, words, probabilities, &runtime);
    ck_assert_uint_ge(looks, 2 * PASS_LOOKS);
    ck_assert_int_eq(words[0], WORDS - 1);
    ck_assert_int_eq(words[K - 1], WORDS - K);
    looks = looks_allowed = 0;
    attn_top_words(scores, ATTN_F32, WORDS, K, words, probabilities, &runtime);
    ck_assert_uint_le(looks, 2);
    free(scores);
}
END_TEST

/* A row of a thousand tokens is a million products. */
START_TEST(a_row_of_a_rollout_looks)
{
    enum { MANY = 1024, ROW_LOOKS = MANY * MANY / (1 << 17) };
    float *map = calloc((size_t)MANY * MANY, sizeof *map);
    double *numbers = calloc((size_t)3 * MANY * MANY, sizeof *numbers);
    double *before = numbers, *work = before + (size_t)MANY * MANY, *after = work + (size_t)MANY * MANY;
    const attn_tensor maps = attn_tensor_view(map, ATTN_F32, 3, (const size_t[]){1, MANY, MANY});
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = look;
    ck_assert(map != NULL && numbers != NULL);
    looks = 0;
    looks_allowed = ROW_LOOKS; /* so it ends in the first row */
    attn_rollout_layer(&maps, before, work, after, &runtime);
    ck_assert_double_eq(work[MANY - 1], 0);
    ck_assert_double_eq(work[0], 0.5);
    ck_assert_double_eq(work[MANY + 1], 0); /* the second row was not begun */
    free(numbers);
    free(map);
}
END_TEST

/* ---- when tokens are spoken ---- */

enum { ROWS_MAX = 9, FRAMES_MAX = 12 };

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Adds the median of the standardised weights, frame by frame. */
static void add_plainly(const float *map, size_t rows, size_t frames, double *sum)
{
    double z[ROWS_MAX][FRAMES_MAX];
    for (size_t t = 0; t < frames; t++) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < rows; i++)
            mean += (double)map[i * frames + t] / (double)rows;
        for (size_t i = 0; i < rows; i++)
            variance += pow((double)map[i * frames + t] - mean, 2) / (double)rows;
        for (size_t i = 0; i < rows; i++)
            z[i][t] = variance > 0 ? ((double)map[i * frames + t] - mean) / sqrt(variance) : 0;
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t t = 0; t < frames; t++) {
            double near[7];
            for (int u = -3; u <= 3; u++) {
                const int place = abs((int)t + u), last = (int)frames - 1;
                near[u + 3] = frames > 3 ? z[i][place > last ? 2 * last - place : place] : z[i][t];
            }
            qsort(near, 7, sizeof *near, compare_numbers);
            sum[i * frames + t] += near[3];
        }
}

/* The largest sum over all paths from (i, t) to the end. */
static double best_from(const double *sum, size_t rows, size_t frames, size_t i, size_t t)
{
    double best = i + 1 == rows && t + 1 == frames ? 0 : -HUGE_VAL;
    for (size_t step = 1; step < 4; step++) {
        const size_t di = step & 1, dt = step >> 1;
        if (i + di < rows && t + dt < frames)
            best = fmax(best, best_from(sum, rows, frames, i + di, t + dt));
    }
    return best + sum[i * frames + t];
}

/* The sum over the best path that begins each token at its frame. */
static double sum_of(const double *sum, size_t rows, size_t frames, const size_t *begins)
{
    double total = 0;
    for (size_t i = 0; i < rows; i++) {
        const size_t next = i + 1 < rows ? begins[i + 1] : frames - 1;
        double before = 0;
        for (size_t t = begins[i]; t < next; t++)
            before += sum[i * frames + t];
        const double last = sum[i * frames + next]; /* of a step of a token alone */
        total += before + (i + 1 == rows ? last : next > begins[i] ? fmax(last, 0) : last);
    }
    return total;
}

static const size_t alignments[][2] = {{1, 1}, {1, 5}, {4, 1}, {5, 5}, {3, 12}, {6, 3}, {9, 4}, {5, 7}};

START_TEST(tokens_begin_where_the_best_path_reaches_them)
{
    const size_t rows = alignments[_i][0], frames = alignments[_i][1];
    const attn_runtime runtime = attn_runtime_serial(NULL);
    double sum[ROWS_MAX * FRAMES_MAX] = {0}, expected[ROWS_MAX * FRAMES_MAX] = {0}, costs[2 * (FRAMES_MAX + 1)];
    double work[3 * FRAMES_MAX];
    uint8_t steps[ROWS_MAX * FRAMES_MAX];
    size_t begins[ROWS_MAX];
    random_source random = random_seeded((uint64_t)_i + 1);
    ck_assert_uint_eq(attn_align_work(frames, 1), 3 * frames);
    for (int head = 0; head < 3; head++) {
        float map[ROWS_MAX * FRAMES_MAX];
        for (size_t i = 0; i < rows * frames; i++)
            map[i] = (float)random_uniform(&random);
        const attn_tensor tensor = attn_tensor_view(map, ATTN_F32, 2, (const size_t[]){rows, frames});
        attn_align_add(&tensor, sum, work, &runtime);
        add_plainly(map, rows, frames, expected);
    }
    for (size_t i = 0; i < rows * frames; i++)
        ck_assert_double_eq_tol(sum[i], expected[i], 1e-9);
    attn_align_path(sum, rows, frames, steps, costs, begins);
    ck_assert_uint_eq(begins[0], 0);
    for (size_t i = 1; i < rows; i++)
        ck_assert(begins[i] >= begins[i - 1] && begins[i] < frames);
    ck_assert_double_eq_tol(sum_of(sum, rows, frames, begins), best_from(sum, rows, frames, 0, 0), 1e-9);
}
END_TEST

START_TEST(every_role_has_a_name)
{
    for (int role = 0; role < ATTN_ROLE_COUNT; role++)
        ck_assert_uint_gt(strlen(attn_head_role_name((attn_head_role)role)), 0);
}
END_TEST

CHECK_MAIN("analysis")
{
    tcase_add_test(tests, rollout_multiplies_the_mixed_layers);
    tcase_add_test(tests, roles_are_shares_of_the_attention);
    tcase_add_test(tests, a_role_that_no_query_has_is_no_number);
    tcase_add_test(tests, roles_of_many_tokens_look);
    tcase_add_test(tests, words_are_those_of_a_plain_search);
    tcase_add_test(tests, a_search_for_words_looks);
    tcase_add_test(tests, given_words_have_the_ranks_of_a_search);
    tcase_add_test(tests, logarithms_of_probabilities_survive_far_scores);
    tcase_add_test(tests, scores_of_words_look);
    tcase_add_test(tests, a_row_of_a_rollout_looks);
    tcase_add_test(tests, the_most_probable_words_come_first);
    tcase_add_loop_test(tests, tokens_begin_where_the_best_path_reaches_them, 0, COUNT(alignments));
    tcase_add_test(tests, every_role_has_a_name);
}
