/*
 * test_overflow.c: values whose unnormalised sum overflows although the mean does not; and values that are not finite,
 * visible and hidden.
 */
#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "random.h"

enum { KEYS = 1100, QUERIES_MAX = 13, D_K = 5, D_V = 19, ROOM = 1 << 26, NUMBERS_MAX = KEYS * D_V };

/* Other members of the request. */
typedef enum { PLAIN, CAUSAL, PADDED, CAPPED, SINKS, ALIBI, BIASED, MAPS, VARIANTS } variant;

typedef struct {
    attn_dtype compute;
    variant variant;
    size_t queries;
    const attn_kernel *kernel;
    float query[QUERIES_MAX * D_K], key[KEYS * D_K], value[KEYS * D_V], bias[KEYS]; /* of value: parts of the largest */
    uint8_t padding[KEYS];
    double out[QUERIES_MAX * D_V], map[QUERIES_MAX * KEYS];
} stage;

/* Numbers of the compute type, each times factor. */
static attn_tensor tensor_of(const stage *s, const float *from, double factor, void *to, int rank, const size_t *shape)
{
    attn_tensor tensor = attn_tensor_view(to, s->compute, rank, shape);
    for (size_t at = 0; at < attn_tensor_count(&tensor); at++)
        if (s->compute == ATTN_F32)
            ((float *)to)[at] = (float)((double)from[at] * factor);
        else
            ((double *)to)[at] = (double)from[at] * factor;
    return tensor;
}

static double number(const attn_tensor *tensor, size_t at)
{
    return tensor->dtype == ATTN_F32 ? (double)((const float *)tensor->data)[at] : ((const double *)tensor->data)[at];
}

static void run(stage *s, double size)
{
    static double memory[5][NUMBERS_MAX];
    static const float logit[1] = {0.5f}, slope[1] = {0.01f};
    attn_tensor query = tensor_of(s, s->query, 1, memory[0], 2, (size_t[]){s->queries, D_K});
    attn_tensor key = tensor_of(s, s->key, 1, memory[1], 2, (size_t[]){KEYS, D_K});
    attn_tensor value = tensor_of(s, s->value, size, memory[2], 2, (size_t[]){KEYS, D_V});
    attn_tensor bias = tensor_of(s, s->bias, 1, memory[3], 1, (size_t[]){KEYS});
    attn_tensor one = tensor_of(s, s->variant == SINKS ? logit : slope, 1, memory[4], 1, (size_t[]){1});
    attn_tensor padding = attn_tensor_view(s->padding, ATTN_BOOL, 1, (size_t[]){KEYS});
    attn_request request = {.inputs = {.query = &query, .key = &key, .value = &value}};
    request.masks = (attn_masks){.causal = s->variant == CAUSAL};
    request.masks.padding = s->variant == PADDED ? &padding : NULL;
    request.masks.bias = s->variant == BIASED ? &bias : NULL;
    request.options.compute = s->compute;
    request.options.softcap = s->variant == CAPPED ? 2 : 0;
    request.options.sinks = s->variant == SINKS ? &one : NULL;
    request.options.alibi_slopes = s->variant == ALIBI ? &one : NULL;
    request.options.alibi = s->variant == ALIBI;
    request.options.want =
        ATTN_STEP_BIT(ATTN_STEP_OUTPUT) | (s->variant == MAPS ? ATTN_STEP_BIT(ATTN_STEP_ATTENTION) : 0);
    attn_plan plan;
    attn_result result;
    attn_error err;
    const attn_runtime runtime = attn_runtime_serial(s->kernel);
    attn_arena *arena = attn_arena_create(ROOM);
    ck_assert_msg(attn_plan_make(&request, &plan, &err) == ATTN_OK, "%s", err.message);
    ck_assert_int_eq(attn_plan_run(&plan, NULL, &runtime, arena, &result, &err), ATTN_OK);
    for (size_t at = 0; at < s->queries * D_V; at++)
        s->out[at] = number(&result.step[ATTN_STEP_OUTPUT], at);
    for (size_t at = 0; s->variant == MAPS && at < s->queries * KEYS; at++)
        s->map[at] = number(&result.step[ATTN_STEP_ATTENTION], at);
    attn_arena_destroy(arena);
}

/* Even columns of one sign, odd ones of both; of the last column every value is the largest that there is. */
static void fill(stage *s)
{
    random_source random = random_seeded(7);
    for (size_t at = 0; at < QUERIES_MAX * D_K; at++)
        s->query[at] = (float)random_normal(&random);
    for (size_t at = 0; at < KEYS * D_K; at++)
        s->key[at] = (float)random_normal(&random);
    for (size_t at = 0; at < KEYS * D_V; at++) {
        const double x = random_uniform(&random);
        s->value[at] = at % D_V == D_V - 1 ? 1 : (float)(at % 2 == 0 ? x : 2 * x - 1);
    }
    for (size_t j = 0; j < KEYS; j++) {
        s->bias[j] = (float)random_normal(&random);
        s->padding[j] = j % 3 != 0;
    }
}

static double largest(attn_dtype compute)
{
    return compute == ATTN_F32 ? (double)FLT_MAX : DBL_MAX;
}

/*
 * The same with values of ordinary size, times that size: both are off by less than 200 u of a number up to the
 * largest, for scores of this size (docs/accuracy.md).
 */
static void expect_scaled(stage *s)
{
    stage small = *s;
    const double size = largest(s->compute), u = s->compute == ATTN_F32 ? 0x1p-24 : 0x1p-53;
    run(s, size);
    run(&small, 1);
    for (size_t at = 0; at < s->queries * D_V; at++)
        ck_assert_msg(fabs(s->out[at] / size - small.out[at]) <= 400 * u,
                      "%s, variant %d, %zu queries: out[%zu] is %g of %g", attn_kernel_name(s->kernel), (int)s->variant,
                      s->queries, at, s->out[at], small.out[at] * size);
    ck_assert_mem_eq(s->map, small.map, sizeof s->map);
}

START_TEST(values_whose_sum_overflows_have_their_mean)
{
    static stage s;
    fill(&s);
    for (int type = 0; type < 2; type++)
        for (size_t k = 0; (s.kernel = attn_kernel_at(k)) != NULL; k++)
            for (s.queries = 1; s.queries <= QUERIES_MAX; s.queries += 6) {
                s.compute = type == 0 ? ATTN_F32 : ATTN_F64;
                s.variant = (variant)_i;
                expect_scaled(&s);
            }
}
END_TEST

START_TEST(equal_keys_give_the_value_that_they_share)
{
    static stage s;
    for (int type = 0; type < 2; type++)
        for (size_t k = 0; (s.kernel = attn_kernel_at(k)) != NULL; k++)
            for (s.queries = 1; s.queries <= QUERIES_MAX; s.queries += 12) {
                s.compute = type == 0 ? ATTN_F32 : ATTN_F64;
                for (size_t at = 0; at < KEYS * D_V; at++)
                    s.value[at] = 1;
                const double value = type == 0 ? (double)1e36f : 1e308;
                run(&s, value);
                for (size_t at = 0; at < s.queries * D_V; at++)
                    ck_assert_msg(fabs(s.out[at] / value - 1) < (type == 0 ? 1e-5 : 1e-14), "%s: %g",
                                  attn_kernel_name(s.kernel), s.out[at]);
            }
}
END_TEST

/* Columns that do not overflow have the same bytes, whether other columns overflow or not. */
START_TEST(other_columns_of_such_a_row_are_the_same_bytes)
{
    static stage s, tame;
    fill(&s);
    for (size_t at = 0; at < KEYS * D_V; at++)
        s.value[at] *= at % D_V < 2 ? FLT_MAX : 1;
    tame = s;
    for (size_t at = 0; at < KEYS * D_V; at++)
        tame.value[at] = at % D_V < 2 ? 1 : s.value[at];
    for (size_t k = 0; (s.kernel = tame.kernel = attn_kernel_at(k)) != NULL; k++)
        for (s.queries = 1; s.queries <= QUERIES_MAX; s.queries += 12) {
            tame.queries = s.queries;
            run(&s, 1);
            run(&tame, 1);
            for (size_t at = 0; at < s.queries * D_V; at++)
                ck_assert(isfinite(s.out[at]) && (at % D_V < 2 || s.out[at] == tame.out[at]));
        }
}
END_TEST

/* Hidden values that are not finite change no byte, beside values whose sum overflows and beside others. */
START_TEST(hidden_values_that_are_not_finite_change_nothing)
{
    static stage s, clean;
    static const double sizes[] = {1, FLT_MAX};
    fill(&s);
    s.variant = PADDED;
    clean = s;
    for (size_t at = 0; at < KEYS * D_V; at++)
        if (!s.padding[at / D_V])
            s.value[at] = at % 2 == 0 ? NAN : INFINITY;
    for (size_t z = 0; z < 2; z++)
        for (size_t k = 0; (s.kernel = clean.kernel = attn_kernel_at(k)) != NULL; k++)
            for (s.queries = 1; s.queries <= QUERIES_MAX; s.queries += 4) {
                clean.queries = s.queries;
                run(&s, sizes[z]);
                run(&clean, sizes[z]);
                ck_assert_mem_eq(s.out, clean.out, s.queries * D_V * sizeof *s.out);
            }
}
END_TEST

/* A row gets every value that it may attend to, with weight and sign. */
START_TEST(values_that_are_seen_and_not_finite_reach_their_rows)
{
    static stage s;
    fill(&s);
    s.variant = CAUSAL;
    s.value[(KEYS - 3) * D_V + 1] = INFINITY;
    s.value[(KEYS - 1) * D_V + 2] = NAN;
    for (size_t k = 0; (s.kernel = attn_kernel_at(k)) != NULL; k++)
        for (s.queries = 5; s.queries <= QUERIES_MAX; s.queries += 8) {
            run(&s, 1);
            for (size_t i = 0; i < s.queries; i++) {
                const size_t last = KEYS - s.queries + i;
                for (size_t d = 0; d < D_V; d++) {
                    const double x = s.out[i * D_V + d];
                    if (d == 1 && last >= KEYS - 3)
                        ck_assert(isinf(x) && x > 0);
                    else if (d == 2 && last >= KEYS - 1)
                        ck_assert(isnan(x));
                    else
                        ck_assert(isfinite(x));
                }
            }
        }
}
END_TEST

CHECK_MAIN("overflow")
{
    tcase_add_loop_test(tests, values_whose_sum_overflows_have_their_mean, 0, VARIANTS);
    tcase_add_test(tests, equal_keys_give_the_value_that_they_share);
    tcase_add_test(tests, other_columns_of_such_a_row_are_the_same_bytes);
    tcase_add_test(tests, hidden_values_that_are_not_finite_change_nothing);
    tcase_add_test(tests, values_that_are_seen_and_not_finite_reach_their_rows);
}
