/*
 * test_reduce.c: tests of server/codec/answer/reduce*.c against plain loops over the whole maps.
 */
#include "codec/answer/reduce.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attended.h"
#include "check_main.h"

enum { ARENA_BYTES = 64 << 20, TEXT_BYTES = 1 << 14, BATCH = 2, HEADS = 3, Q_LEN = 7, KV_LEN = 9 };

static const char MASKS[] = "{\"causal\":{\"align\":\"top_left\",\"offset\":1},\"attend\":[[true,false,true,true,true,"
                            "true,false,true,true]],\"query_lengths\":[7,5]}";

static char text[TEXT_BYTES];
static struct attended attended;

static size_t put_tensor(size_t at, const char *name, size_t length, size_t features)
{
    at += (size_t)snprintf(text + at, sizeof text - at, "%s\"%s\":{\"shape\":[%d,%d,%zu,%zu],\"data\":[",
                           at > 12 ? "," : "", name, BATCH, HEADS, length, features);
    for (size_t n = 0; n < BATCH * HEADS * length * features; n++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", n > 0 ? "," : "", (int)(n * 7919 % 11) - 5);
    return at + (size_t)snprintf(text + at, sizeof text - at, "]}");
}

/* Two batch items of three heads under several masks, and those options. */
static const char *request(const char *options)
{
    size_t at = (size_t)snprintf(text, sizeof text, "{\"inputs\":{");
    at = put_tensor(at, "query", Q_LEN, 2);
    at = put_tensor(at, "key", KV_LEN, 2);
    at += (size_t)snprintf(text + at, sizeof text - at, "},\"masks\":%s,\"options\":{%s}}", MASKS, options);
    ck_assert_uint_lt(at, sizeof text);
    return text;
}

static attn_arena *run_with(const char *options, bool is_binary, const attn_runtime *runtime, attn_status expected)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    ck_assert_ptr_nonnull(arena);
    attn_status status = attended_run(&attended, request(options), is_binary, arena, runtime);
    ck_assert_msg(status == expected, "%s: %s", attn_status_name(status), attended.err.message);
    return arena;
}

static attn_arena *run(const char *options, bool is_binary)
{
    const attn_runtime runtime = attn_runtime_serial(NULL);
    return run_with(options, is_binary, &runtime, ATTN_OK);
}

static bool allows(size_t b, size_t h, size_t i, size_t j)
{
    return attn_plan_allows(&attended.plan, b, h, i, j);
}

/* The cell (r, c) of rows times cols, over the whole map of the step, whose row n is query queries[n], or n. */
static double pooled(attn_step step, const size_t at[4], const size_t parts[2], const size_t *queries, bool is_mean)
{
    const attn_tensor *whole = &attended.whole.step[step];
    size_t rows = whole->shape[2], cols = whole->shape[3], count = 0;
    double sum = 0, largest = -(double)INFINITY;
    for (size_t n = at[2] * rows / parts[0]; n < (at[2] + 1) * rows / parts[0]; n++) {
        for (size_t j = at[3] * cols / parts[1]; j < (at[3] + 1) * cols / parts[1]; j++) {
            if (!allows(at[0], at[1], queries ? queries[n] : n, j))
                continue;
            double value = attended_at(whole, at[0], at[1], n, j);
            sum += value;
            largest = value > largest ? value : largest;
            count++;
        }
    }
    if (count == 0)
        return step == ATTN_STEP_MASKED ? -(double)INFINITY : 0;
    return is_mean ? sum / (double)count : largest;
}

static void check_pool(attn_step step, size_t rows, size_t cols, const size_t *queries, bool is_mean)
{
    const attn_tensor *map = &attended.result.step[step];
    ck_assert_msg(map->rank == 4 && map->shape[1] == HEADS && map->shape[2] == rows && map->shape[3] == cols,
                  "%zu x %zu", map->shape[2], map->shape[3]);
    ck_assert_mem_eq(map->shape, attended.shown.step[step].shape, sizeof map->shape);
    for (size_t n = 0; n < BATCH * HEADS * rows * cols; n++) {
        const size_t at[4] = {n / cols / rows / HEADS, n / cols / rows % HEADS, n / cols % rows, n % cols};
        double expected = pooled(step, at, (size_t[]){rows, cols}, queries, is_mean);
        double got = attended_at(map, at[0], at[1], at[2], at[3]);
        /* One rounding to float32. */
        ck_assert_msg(got == expected || fabs(got - expected) <= fabs(expected) * 1e-7, "%g, not %g", got, expected);
    }
}

START_TEST(pooled_cells_are_the_maximum_or_the_mean_of_the_allowed_ones)
{
    static const struct {
        const char *options;
        size_t rows, cols;
        bool is_mean;
    } cases[] = {
        {"\"pool\":{\"rows\":3,\"cols\":4}", 3, 4, false},
        {"\"pool\":{\"rows\":3,\"cols\":4,\"op\":\"mean\"}", 3, 4, true},
        {"\"pool\":{\"rows\":1,\"cols\":1,\"op\":\"mean\"}", 1, 1, true},
        {"\"pool\":{\"rows\":100,\"cols\":100}", Q_LEN, KV_LEN, false},
        {"\"pool\":{\"cols\":2,\"op\":\"max\"}", Q_LEN, 2, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char options[200];
        snprintf(options, sizeof options, "%s,\"return\":[\"masked\",\"attention\"]", cases[i].options);
        attn_arena *arena = run(options, false);
        check_pool(ATTN_STEP_ATTENTION, cases[i].rows, cases[i].cols, NULL, cases[i].is_mean);
        check_pool(ATTN_STEP_MASKED, cases[i].rows, cases[i].cols, NULL, cases[i].is_mean);
        attn_arena_destroy(arena);
    }
}
END_TEST

START_TEST(pooling_applies_to_what_is_selected)
{
    static const size_t queries[] = {1, 2, 4, 6};
    attn_arena *arena = run("\"queries\":[1,2,4,6],\"pool\":{\"rows\":2,\"cols\":3},\"return\":[\"attention\"]", false);
    check_pool(ATTN_STEP_ATTENTION, 2, 3, queries, false);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(a_pooled_mask_says_where_something_is_allowed)
{
    attn_arena *arena =
        run("\"pool\":{\"rows\":3,\"cols\":9},\"return\":[\"mask\",\"attention_mean\",\"attention\"]", false);
    const attn_tensor *mask = &attended.result.step[ATTN_STEP_MASK];
    const attn_tensor *mean = &attended.result.step[ATTN_STEP_ATTENTION_MEAN];
    ck_assert(mask->dtype == ATTN_BOOL && mask->shape[2] == 3 && mean->rank == 3 && mean->shape[1] == 3);
    for (size_t r = 0; r < 3; r++) {
        for (size_t j = 0; j < KV_LEN; j++) {
            bool expected = false;
            for (size_t i = r * Q_LEN / 3; i < (r + 1) * Q_LEN / 3; i++)
                expected = expected || allows(1, 2, i, j);
            size_t at = ((HEADS + 2) * 3 + r) * KV_LEN + j;
            ck_assert_int_eq(((const uint8_t *)mask->data)[at], expected);
            double weight = (double)((const float *)mean->data)[(3 + r) * KV_LEN + j];
            ck_assert(expected ? weight > 0 : weight == 0);
        }
    }
    attn_arena_destroy(arena);
}
END_TEST

/* ---- long rows without a mask that is looked up, which are read many numbers at a time ---- */

enum { WIDE = 170 };

/* One head of three causal queries over WIDE keys with few different numbers; key nan, if there is one, is NaN. */
static attn_arena *run_wide(const char *options, size_t nan)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    size_t at = (size_t)snprintf(text, sizeof text, "{\"inputs\":{\"query\":[[1],[-1],[0.5]],\"key\":[");
    for (size_t j = 0; j < WIDE; j++)
        at += (size_t)snprintf(text + at, sizeof text - at, j == nan ? "%s[\"NaN\"]" : "%s[%d]", j > 0 ? "," : "",
                               (int)(j * 7919 % 23) - 11);
    snprintf(text + at, sizeof text - at,
             "]},\"masks\":{\"causal\":{\"align\":\"top_left\",\"offset\":165}},\"options\":{%s}}", options);
    ck_assert_int_eq(attended_run(&attended, text, false, arena, &runtime), ATTN_OK);
    return arena;
}

/* Row i of parts cells; row 0 sees all but the last four keys. */
static void check_wide_pool(size_t parts, bool is_mean, size_t nan)
{
    const attn_tensor *whole = &attended.whole.step[ATTN_STEP_ATTENTION];
    for (size_t n = 0; n < 3 * parts; n++) {
        const size_t i = n / parts, c = n % parts;
        double sum = 0, largest = 0, got = attended_at(&attended.result.step[ATTN_STEP_ATTENTION], 0, 0, i, c);
        size_t count = 0;
        bool has_nan = false;
        for (size_t j = c * WIDE / parts; j < (c + 1) * WIDE / parts && j <= i + 165; j++, count++) {
            const double value = attended_at(whole, 0, 0, i, j);
            sum += value;
            largest = value > largest ? value : largest;
            has_nan = has_nan || isnan(value);
        }
        const double expected = has_nan ? (double)NAN : count == 0 ? 0 : is_mean ? sum / (double)count : largest;
        /* one rounding to float32 */
        ck_assert_msg(isnan(expected) ? isnan(got) : fabs(got - expected) <= expected * 1e-7, "%zu of %zu: %g, not %g",
                      n, parts, got, expected);
    }
    ck_assert(nan == WIDE || isnan(attended_at(whole, 0, 0, 2, nan)));
}

START_TEST(long_rows_are_pooled_number_by_number)
{
    for (size_t parts = 1; parts <= 170; parts += parts == 5 ? 165 : 1)
        for (size_t nan = 60; nan <= WIDE; nan += 110)
            for (int is_mean = 0; is_mean < 2; is_mean++) {
                char options[120];
                snprintf(options, sizeof options,
                         "\"pool\":{\"rows\":3,\"cols\":%zu,\"op\":\"%s\"},\"return\":[\"attention\"]", parts,
                         is_mean ? "mean" : "max");
                attn_arena *arena = run_wide(options, nan);
                check_wide_pool(parts, is_mean, nan);
                attn_arena_destroy(arena);
            }
}
END_TEST

START_TEST(top_k_of_long_rows_misses_no_weight)
{
    for (size_t k = 1; k <= 60; k += 7) {
        char options[64];
        snprintf(options, sizeof options, "\"top_k\":%zu,\"return\":[\"attention\"]", k);
        attn_arena *arena = run_wide(options, WIDE);
        const attn_tensor *whole = &attended.whole.step[ATTN_STEP_ATTENTION];
        const int64_t *indices = attended.envelope.reduction.top_indices.data;
        for (size_t n = 0; n < 3 * WIDE; n++) {
            const size_t i = n / WIDE, j = n % WIDE;
            const double weight = attended_at(whole, 0, 0, i, j);
            size_t before = 0;
            for (size_t other = 0; other < WIDE; other++) {
                const double its = attended_at(whole, 0, 0, i, other);
                before += its > weight || (its == weight && other < j);
            }
            if (before < k)
                ck_assert_int_eq(indices[i * k + before], (int64_t)j);
        }
        attn_arena_destroy(arena);
    }
}
END_TEST

/*
 * The number of allowed keys of the row that rank before key j: a larger weight, or an equal weight and a lower index.
 */
static size_t rank_of(size_t b, size_t h, size_t i, size_t j)
{
    const attn_tensor *whole = &attended.whole.step[ATTN_STEP_ATTENTION];
    double weight = attended_at(whole, b, h, i, j);
    size_t before = 0;
    for (size_t other = 0; other < KV_LEN; other++) {
        double its = attended_at(whole, b, h, i, other);
        before += allows(b, h, i, other) && (its > weight || (its == weight && other < j));
    }
    return before;
}

static void check_top_k(size_t k)
{
    const attn_tensor *weights = &attended.result.step[ATTN_STEP_ATTENTION];
    const int64_t *indices = attended.envelope.reduction.top_indices.data;
    ck_assert(weights->shape[3] == k && attended.shown.step[ATTN_STEP_ATTENTION].shape[3] == k);
    for (size_t n = 0; n < BATCH * HEADS * Q_LEN; n++) {
        size_t b = n / Q_LEN / HEADS, h = n / Q_LEN % HEADS, i = n % Q_LEN, listed = 0;
        for (size_t j = 0; j < KV_LEN; j++) {
            if (!allows(b, h, i, j) || rank_of(b, h, i, j) >= k)
                continue;
            size_t place = rank_of(b, h, i, j);
            ck_assert_int_eq(indices[n * k + place], (int64_t)j);
            ck_assert(attended_at(weights, b, h, i, place) ==
                      attended_at(&attended.whole.step[ATTN_STEP_ATTENTION], b, h, i, j));
            listed++;
        }
        for (; listed < k; listed++)
            ck_assert(indices[n * k + listed] == -1 && attended_at(weights, b, h, i, listed) == 0);
    }
}

START_TEST(top_k_lists_the_heaviest_allowed_keys)
{
    for (size_t k = 1; k <= KV_LEN + 1; k++) {
        char options[64];
        snprintf(options, sizeof options, "\"top_k\":%zu", k);
        attn_arena *arena = run(options, false);
        check_top_k(k < KV_LEN ? k : KV_LEN);
        attn_arena_destroy(arena);
    }
}
END_TEST

START_TEST(equal_weights_are_listed_by_key)
{
    attn_arena *arena = run("\"top_k\":4,\"scale\":0", false);
    check_top_k(4);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(top_k_of_selected_keys_tells_their_positions)
{
    attn_arena *arena = run("\"top_k\":9,\"keys\":[0,4,5],\"heads\":[1],\"queries\":[6]", false);
    const int64_t *indices = attended.envelope.reduction.top_indices.data;
    const attn_tensor *weights = &attended.result.step[ATTN_STEP_ATTENTION];
    ck_assert(weights->shape[1] == 1 && weights->shape[2] == 1 && weights->shape[3] == 3);
    for (size_t n = 0; n < 3; n++)
        ck_assert(indices[n] == 0 || indices[n] == 4 || indices[n] == 5);
    ck_assert(attended_at(weights, 0, 0, 0, 0) >= attended_at(weights, 0, 0, 0, 1));
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(weights_of_nan_come_first_and_harm_nothing)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    const char *with_nan = "{\"inputs\":{\"query\":[[1]],\"key\":[[1],[\"NaN\"],[2]]},\"options\":{\"top_k\":3}}";
    ck_assert_int_eq(attended_run(&attended, with_nan, false, arena, &runtime), ATTN_OK);
    const int64_t *indices = attended.envelope.reduction.top_indices.data;
    ck_assert_int_eq(indices[0] + indices[1] + indices[2], 3);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(bytes_hold_weights_to_a_255th)
{
    attn_arena *arena = run("\"dtype\":\"uint8\",\"return\":[\"attention\",\"output\",\"mask\"]", true);
    const attn_tensor *map = &attended.result.step[ATTN_STEP_ATTENTION];
    const float *whole = attended.whole.step[ATTN_STEP_ATTENTION].data;
    ck_assert(map->dtype == ATTN_U8 && attended.shown.step[ATTN_STEP_ATTENTION].dtype == ATTN_U8);
    for (size_t n = 0; n < attn_tensor_count(map); n++)
        ck_assert_int_eq(((const uint8_t *)map->data)[n], (int)lrint((double)whole[n] * 255));
    ck_assert_int_eq(attended.result.step[ATTN_STEP_OUTPUT].dtype, ATTN_F32);
    ck_assert_int_eq(attended.result.step[ATTN_STEP_MASK].dtype, ATTN_BOOL);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(halves_are_rounded_and_what_they_cannot_hold_is_refused)
{
    attn_arena *arena = run("\"dtype\":\"float16\",\"top_k\":2,\"return\":[\"attention\",\"scores\"]", true);
    ck_assert_int_eq(attended.result.step[ATTN_STEP_ATTENTION].dtype, ATTN_F16);
    ck_assert_int_eq(attended.result.step[ATTN_STEP_SCORES].dtype, ATTN_F16);
    attn_arena_destroy(arena);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    arena = run_with("\"dtype\":\"float16\",\"scale\":10000,\"return\":[\"scaled\"]", true, &runtime, ATTN_ERR_VALUE);
    ck_assert_str_eq(attended.err.field, "/options/dtype");
    ck_assert_ptr_nonnull(strstr(attended.err.message, "\"scaled\" holds a number that float16 cannot"));
    attn_arena_destroy(arena);
    arena = run_with("\"dtype\":\"float16\"", false, &runtime, ATTN_ERR_FIELD);
    ck_assert_str_eq(attended.err.field, "/options/dtype");
    attn_arena_destroy(arena);
}
END_TEST

static bool is_cancelled_now(void *context)
{
    (void)context;
    return true;
}

START_TEST(cancelling_stops_the_reductions)
{
    attn_arena *arena = run("\"return\":[\"attention\"]", false);
    attended.envelope.reduction.has_pool = true;
    attended.runtime.is_cancelled = is_cancelled_now;
    ck_assert_int_eq(reduce_result(&attended.envelope, &attended.plan, &attended.shown, &attended.runtime, arena,
                                   &attended.result, &attended.err),
                     ATTN_ERR_CANCELLED);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(threads_change_no_byte_and_memory_stays_within_what_was_said)
{
    static const char *const options[] = {"\"pool\":{\"rows\":3,\"cols\":4,\"op\":\"mean\"},\"dtype\":\"float16\"",
                                          "\"top_k\":3,\"dtype\":\"bfloat16\""};
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 4}, NULL);
    ck_assert_ptr_nonnull(pool);
    const attn_runtime spread = attn_pool_runtime(pool, attn_kernel_best());
    for (size_t n = 0; n < 2; n++) {
        attn_arena *arena = run(options[n], true);
        const attn_tensor alone = attended.result.step[ATTN_STEP_ATTENTION];
        attn_arena *other = run_with(options[n], true, &spread, ATTN_OK);
        ck_assert_mem_eq(alone.data, attended.result.step[ATTN_STEP_ATTENTION].data,
                         attn_tensor_count(&alone) * attn_dtype_bytes(alone.dtype));
        double bytes = reduce_bytes(&attended.envelope, &attended.shown, spread.threads);
        attn_arena *exact = attn_arena_create((size_t)bytes + 4096);
        attended.result = attended.whole;
        ck_assert_int_eq(reduce_result(&attended.envelope, &attended.plan, &attended.shown, &spread, exact,
                                       &attended.result, &attended.err),
                         ATTN_OK);
        attn_arena_destroy(exact);
        attn_arena_destroy(arena);
        attn_arena_destroy(other);
    }
    attn_pool_destroy(pool);
}
END_TEST

START_TEST(too_little_memory_is_said)
{
    attn_arena *arena = run("\"top_k\":3", false);
    attn_status status = ATTN_ERR_NO_MEMORY;
    for (size_t limit = 256; status != ATTN_OK; limit += 256) {
        ck_assert_uint_lt(limit, ARENA_BYTES);
        attn_arena *small = attn_arena_create(limit);
        attended.result = attended.whole;
        if (small == NULL)
            continue;
        status = reduce_result(&attended.envelope, &attended.plan, &attended.shown, &attended.runtime, small,
                               &attended.result, &attended.err);
        ck_assert(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY);
        attn_arena_destroy(small);
    }
    attn_arena_destroy(arena);
}
END_TEST

CHECK_MAIN("reduce")
{
    tcase_add_test(tests, pooled_cells_are_the_maximum_or_the_mean_of_the_allowed_ones);
    tcase_add_test(tests, pooling_applies_to_what_is_selected);
    tcase_add_test(tests, a_pooled_mask_says_where_something_is_allowed);
    tcase_add_test(tests, long_rows_are_pooled_number_by_number);
    tcase_add_test(tests, top_k_of_long_rows_misses_no_weight);
    tcase_add_test(tests, top_k_lists_the_heaviest_allowed_keys);
    tcase_add_test(tests, equal_weights_are_listed_by_key);
    tcase_add_test(tests, top_k_of_selected_keys_tells_their_positions);
    tcase_add_test(tests, weights_of_nan_come_first_and_harm_nothing);
    tcase_add_test(tests, bytes_hold_weights_to_a_255th);
    tcase_add_test(tests, halves_are_rounded_and_what_they_cannot_hold_is_refused);
    tcase_add_test(tests, cancelling_stops_the_reductions);
    tcase_add_test(tests, threads_change_no_byte_and_memory_stays_within_what_was_said);
    tcase_add_test(tests, too_little_memory_is_said);
}
