/*
 * test_diagnose.c: tests core/src/api/diagnose.c: findings against sums over the same map with the library's logarithm.
 */
#include "attn/diagnose.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "mask_cases.h"
#include "scene.h"

static const scene_size SIZE = {.batch = 2, .heads = 4, .kv_heads = 2, .q_len = 9, .kv_len = 300, .d_k = 5, .d_v = 3};

typedef struct {
    test_run run;
    attn_arena *arena;
} diagnosis;

static diagnosis diagnose_by(const attn_kernel *kernel, test_scene *scene, attn_steps want)
{
    const attn_runtime runtime = attn_runtime_serial(kernel);
    attn_error err = {0};
    diagnosis made = {.arena = attn_arena_create(1 << 16)};
    scene->request.options.want = want;
    made.run = run_request(&scene->request, &runtime);
    ck_assert_int_eq(attn_diagnose(&made.run.plan, NULL, &runtime, made.arena, &made.run.result, &err), ATTN_OK);
    return made;
}

static diagnosis diagnose(test_scene *scene, attn_steps want)
{
    return diagnose_by(NULL, scene, want);
}

static void release(diagnosis *made)
{
    run_release(&made->run);
    attn_arena_destroy(made->arena);
}

/* Sums over one head of the map; head counts what was kept. */
static void expect_head(const diagnosis *made, const attn_tensor *map, size_t head, size_t *underflowing)
{
    const size_t heads = map->shape[1], q_len = map->shape[2], kv_len = map->shape[3];
    const attn_tensor *mask = &made->run.result.step[ATTN_STEP_MASK];
    double entropy = 0, first = 0, rows = 0;
    for (size_t row = 0; row < map->shape[0] * q_len; row++) {
        const size_t at = ((row / q_len * heads + head) * q_len + row % q_len) * kv_len;
        double own = 0, sum = 0;
        bool loses_one = false;
        for (size_t j = 0; j < kv_len; j++) {
            const double p = tensor_get(map, at + j);
            own -= p > 0 ? p * log(p) : 0;
            sum += p;
            loses_one = loses_one || (p == 0 && ((const uint8_t *)mask->data)[at + j] != 0);
        }
        *underflowing += sum > 0 && loses_one;
        rows += sum > 0;
        entropy += own;
        first += tensor_get(map, at);
    }
    const attn_findings *findings = &made->run.result.findings;
    /* A float32 logarithm and float32 sums over 300 keys. */
    ck_assert_double_eq_tol(findings->entropy[head], rows > 0 ? entropy / rows : 0, 1e-5);
    ck_assert_double_eq_tol(findings->first_key_share[head], rows > 0 ? first / rows : 0, 1e-6);
}

static void expect_findings_by(const attn_kernel *kernel, test_scene *scene, const char *what)
{
    diagnosis made = diagnose_by(kernel, scene, WANT(ATTENTION) | WANT(MASK));
    const attn_tensor *map = &made.run.result.step[ATTN_STEP_ATTENTION];
    size_t underflowing = 0;
    ck_assert_uint_eq(made.run.result.findings.heads, map->shape[1]);
    for (size_t head = 0; head < map->shape[1]; head++)
        expect_head(&made, map, head, &underflowing);
    ck_assert_msg(made.run.result.findings.rows_underflowing == underflowing, "%s: %zu rows underflow, %zu expected",
                  what, made.run.result.findings.rows_underflowing, underflowing);
    release(&made);
}

static void expect_findings(test_scene *scene, const char *what)
{
    for (size_t i = 0; attn_kernel_at(i) != NULL; i++)
        expect_findings_by(attn_kernel_at(i), scene, what);
}

START_TEST(means_are_those_of_the_map)
{
    const mask_case *mask;
    for (size_t i = 0; (mask = mask_case_at(i)) != NULL; i++) {
        test_scene scene = scene_create(i % 2 == 0 ? ATTN_F32 : ATTN_F64, i);
        scene_attention(&scene, &SIZE);
        mask->apply(&scene, &SIZE);
        scene.request.options.has_scale = true;
        scene.request.options.scale = i % 3 == 0 ? 40 : 1; /* many weights underflow */
        expect_findings(&scene, mask->name);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(selected_heads_and_queries_are_what_is_looked_at)
{
    test_scene scene = scene_create(ATTN_F32, 3);
    scene_attention(&scene, &SIZE);
    scene.request.options.heads = (attn_selection){.items = (size_t[]){3, 0}, .count = 2};
    scene.request.options.queries = (attn_selection){.items = (size_t[]){5, 1, 2}, .count = 3};
    expect_findings(&scene, "selections");
    scene.request.options.keys = (attn_selection){.items = (size_t[]){5}, .count = 1};
    diagnosis made = diagnose(&scene, WANT(ATTENTION));
    ck_assert_uint_eq(made.run.result.findings.heads, 0);
    release(&made);
    scene_destroy(&scene);
}
END_TEST

START_TEST(the_entropy_alone_gives_the_same_means)
{
    test_scene scene = scene_create(ATTN_F64, 4);
    scene_attention(&scene, &SIZE);
    scene.request.masks.query_lengths = scene_integers(&scene, (int64_t[]){9, 4}, SHAPE(2));
    diagnosis map = diagnose(&scene, WANT(ATTENTION)), line = diagnose(&scene, WANT(ENTROPY));
    ck_assert_ptr_null(line.run.result.findings.first_key_share);
    ck_assert(!line.run.result.findings.has_rows && map.run.result.findings.has_rows);
    for (size_t h = 0; h < SIZE.heads; h++)
        ck_assert_double_eq_tol(line.run.result.findings.entropy[h], map.run.result.findings.entropy[h], 1e-5);
    release(&map);
    release(&line);
    scene_destroy(&scene);
}
END_TEST

START_TEST(an_empty_selection_of_keys_leaves_no_row_to_look_at)
{
    test_scene scene = scene_create(ATTN_F32, 3);
    scene_attention(&scene, &SIZE);
    scene.request.options.keys = (attn_selection){.items = (size_t[]){5}, .count = 0};
    diagnosis made = diagnose(&scene, WANT(ATTENTION));
    ck_assert_uint_eq(made.run.plan.selected_keys, 0);
    ck_assert_uint_eq(made.run.result.findings.heads, 0);
    release(&made);
    scene_destroy(&scene);
}
END_TEST

START_TEST(the_entropy_is_read_where_the_caller_has_it)
{
    test_scene scene = scene_create(ATTN_F32, 4);
    scene_attention(&scene, &SIZE);
    diagnosis made = diagnose(&scene, WANT(ENTROPY));
    attn_plan plan = made.run.plan;
    attn_tensor *entropy = &plan.step[ATTN_STEP_ENTROPY];
    entropy->data = scene_memory(&scene, 2 * attn_tensor_count(entropy) * sizeof(float));
    for (int axis = 0; axis < 3; axis++)
        entropy->stride[axis] *= 2;
    const attn_runtime runtime = attn_runtime_serial(NULL);
    attn_arena *arena = attn_arena_create(SIZE_MAX);
    attn_result result;
    ck_assert_int_eq(attn_plan_run(&plan, NULL, &runtime, arena, &result, NULL), ATTN_OK);
    ck_assert_int_eq(attn_diagnose(&plan, NULL, &runtime, arena, &result, NULL), ATTN_OK);
    ck_assert_mem_eq(result.findings.entropy, made.run.result.findings.entropy, SIZE.heads * sizeof(double));
    attn_arena_destroy(arena);
    release(&made);
    scene_destroy(&scene);
}
END_TEST

START_TEST(scores_that_the_softcap_holds_are_counted)
{
    for (size_t q_len = 3; q_len <= 40; q_len += 37) { /* few queries and many */
        scene_size size = SIZE;
        size.q_len = q_len;
        test_scene scene = scene_create(ATTN_F64, 5);
        scene_attention(&scene, &size);
        scene.request.options.softcap = 0.5;
        scene.request.masks.causal = true;
        diagnosis made = diagnose(&scene, WANT(SCALED) | WANT(MASK));
        size_t capped = 0, saturated = 0;
        const attn_tensor *scaled = &made.run.result.step[ATTN_STEP_SCALED];
        for (size_t at = 0; at < attn_tensor_count(scaled); at++) {
            const bool is_allowed = ((const uint8_t *)made.run.result.step[ATTN_STEP_MASK].data)[at] != 0;
            capped += is_allowed;
            saturated += is_allowed && fabs(tensor_get(scaled, at)) >= 0.5 * tanh(3);
        }
        ck_assert_uint_gt(saturated, 0);
        ck_assert_uint_eq(made.run.result.capped_scores, capped);
        ck_assert_uint_eq(made.run.result.saturated_scores, saturated);
        release(&made);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_bias_that_is_meant_as_a_mask_is_counted)
{
    test_scene scene = scene_create(ATTN_F32, 6);
    scene_attention(&scene, &SIZE);
    attn_tensor *bias = scene_tensor(&scene, ATTN_F32, SHAPE(SIZE.q_len, SIZE.kv_len));
    tensor_set(bias, 1, -3.4028234663852886e38);
    tensor_set(bias, 7, -1e4);
    tensor_set(bias, 8, -9999);
    tensor_set(bias, 9, -INFINITY);
    scene.request.masks.bias = bias;
    diagnosis made = diagnose(&scene, WANT(OUTPUT));
    ck_assert_uint_eq(made.run.plan.mask.bias_as_mask, 2);
    ck_assert_double_eq(made.run.plan.mask.bias_lowest, -3.4028234663852886e38);
    ck_assert_uint_eq(made.run.result.findings.not_finite_fields, 0);
    release(&made);
    scene_destroy(&scene);
}
END_TEST

START_TEST(what_made_the_output_not_finite_is_named)
{
    test_scene scene = scene_create(ATTN_F32, 7);
    scene_attention(&scene, &SIZE);
    attn_tensor *value = scene_copy(&scene, scene.request.inputs.value);
    tensor_set(value, 4, NAN);
    tensor_set(value, 5, INFINITY);
    scene.request.inputs.value = value;
    diagnosis made = diagnose(&scene, WANT(OUTPUT));
    const attn_findings *findings = &made.run.result.findings;
    ck_assert_uint_eq(findings->not_finite_fields, 2);
    ck_assert_str_eq(findings->not_finite[0].field, "output");
    ck_assert_uint_eq(findings->not_finite[0].count, 2 * 2 * SIZE.q_len); /* two features of the two heads of a group */
    ck_assert_str_eq(findings->not_finite[1].field, "inputs.value");
    ck_assert_uint_eq(findings->not_finite[1].count, 2);
    release(&made);
    scene_destroy(&scene);
}
END_TEST

/* From the weights and from the entropy alone, which are told by other code. */
START_TEST(rows_that_are_no_numbers_are_counted_and_left_out_of_the_means)
{
    static const attn_steps wanted[] = {WANT(ATTENTION), WANT(ENTROPY)};
    test_scene scene = scene_create(ATTN_F32, 7);
    scene_attention(&scene, &SIZE);
    attn_tensor *query = scene_copy(&scene, scene.request.inputs.query);
    tensor_set(query, 0, NAN); /* one feature of the first query of the first head */
    scene.request.inputs.query = query;
    for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++) {
        diagnosis made = diagnose(&scene, wanted[n]);
        ck_assert_uint_eq(made.run.result.findings.rows_not_finite, 1);
        ck_assert(isfinite(made.run.result.findings.entropy[0]));
        release(&made);
    }
    for (size_t at = 0; at < attn_tensor_count(query); at++)
        tensor_set(query, at, NAN);
    for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++) {
        diagnosis made = diagnose(&scene, wanted[n]);
        ck_assert_uint_gt(made.run.result.findings.rows_not_finite, SIZE.q_len);
        ck_assert(isnan(made.run.result.findings.entropy[0]));
        release(&made);
    }
    scene_destroy(&scene);
}
END_TEST

START_TEST(without_memory_there_are_no_findings)
{
    test_scene scene = scene_create(ATTN_F32, 8);
    scene_attention(&scene, &SIZE);
    diagnosis made = diagnose(&scene, WANT(ATTENTION));
    attn_arena *small = attn_arena_create(64);
    attn_error err = {0};
    const attn_runtime runtime = attn_runtime_serial(NULL);
    made.run.result.findings = (attn_findings){0};
    ck_assert_int_eq(attn_diagnose(&made.run.plan, NULL, &runtime, small, &made.run.result, &err), ATTN_ERR_NO_MEMORY);
    ck_assert_uint_eq(made.run.result.findings.heads, 0);
    attn_arena_destroy(small);
    release(&made);
    scene_destroy(&scene);
}
END_TEST

static int looks, looks_until_cancelled;

static bool look(void *context)
{
    (void)context;
    return ++looks > looks_until_cancelled;
}

/* least: looks of a diagnosis that nothing cancels. */
static void expect_cancelled(const scene_size *size, attn_steps want, int least)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_attention(&scene, size);
    scene.request.options.want = want;
    attn_runtime runtime = attn_runtime_serial(NULL);
    test_run run = run_request(&scene.request, &runtime);
    runtime.is_cancelled = look;
    for (int until = 0; until <= least; until++) {
        attn_arena *arena = attn_arena_create(1 << 16);
        attn_error err = {0};
        looks = 0;
        looks_until_cancelled = until < least ? until : INT_MAX;
        const attn_status status = attn_diagnose(&run.plan, NULL, &runtime, arena, &run.result, &err);
        ck_assert_int_eq(status, until < least ? ATTN_ERR_CANCELLED : ATTN_OK);
        ck_assert(until < least ? looks <= until + 3 : looks >= least);
        attn_arena_destroy(arena);
    }
    run_release(&run);
    scene_destroy(&scene);
}

START_TEST(reading_many_numbers_can_be_cancelled)
{
    enum { LENGTH = 1024 };
    const scene_size of_rows = {1, 1, 1, 1 << 18, 1, 1, 1}, of_pairs = {1, 1, 1, LENGTH, LENGTH, 1, 1};
    expect_cancelled(&of_rows, WANT(OUTPUT), 4);
    expect_cancelled(&of_rows, WANT(ENTROPY), 4);
    expect_cancelled(&of_pairs, WANT(ATTENTION), LENGTH * LENGTH / 65536);
}
END_TEST

CHECK_MAIN("diagnose")
{
    tcase_add_test(tests, means_are_those_of_the_map);
    tcase_add_test(tests, reading_many_numbers_can_be_cancelled);
    tcase_add_test(tests, selected_heads_and_queries_are_what_is_looked_at);
    tcase_add_test(tests, the_entropy_alone_gives_the_same_means);
    tcase_add_test(tests, an_empty_selection_of_keys_leaves_no_row_to_look_at);
    tcase_add_test(tests, the_entropy_is_read_where_the_caller_has_it);
    tcase_add_test(tests, scores_that_the_softcap_holds_are_counted);
    tcase_add_test(tests, a_bias_that_is_meant_as_a_mask_is_counted);
    tcase_add_test(tests, what_made_the_output_not_finite_is_named);
    tcase_add_test(tests, rows_that_are_no_numbers_are_counted_and_left_out_of_the_means);
    tcase_add_test(tests, without_memory_there_are_no_findings);
}
