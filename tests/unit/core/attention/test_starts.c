/*
 * test_starts.c: tests core/src/attention/starts.c, and the checks of core/src/request/options.c: attention that
 * starts at given scores or at given weights.
 */
#include "attention/attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "closeness.h"
#include "mask_cases.h"
#include "naive_attention.h"
#include "scene.h"

static const scene_size sizes[] = {
    {1, 2, 1, 5, 1030, 8, 5},
    {2, 3, 3, 50, 20, 5, 9},
    {1, 4, 2, 37, 53, 3, 16},
    {2, 2, 1, 1, 7, 4, 1},
};
enum { SIZES = sizeof sizes / sizeof *sizes };
static const scene_size medium = {2, 4, 2, 9, 21, 4, 3};

/* The same request from its scores on, which whole has computed. */
static attn_request from_scores(const attn_request *request, const test_run *whole)
{
    attn_request start = *request;
    start.inputs = (attn_inputs){.scores = &whole->result.step[ATTN_STEP_SCORES], .value = request->inputs.value};
    start.options.has_scale = true;
    start.options.scale = whole->plan.scale;
    start.options.want = scene_every_step(&start);
    return start;
}

/* The values of a request from given weights on. */
static attn_request from_weights(const attn_request *request, const attn_tensor *weights)
{
    attn_request start = {.inputs = {.attention = weights, .value = request->inputs.value}};
    start.options = (attn_options){.compute = request->options.compute,
                                   .head_scale = request->options.head_scale,
                                   .dropout = request->options.dropout,
                                   .dropout_attention = request->options.dropout_attention,
                                   .dropout_seed = request->options.dropout_seed};
    start.options.want = scene_every_step(&start);
    return start;
}

static attn_request alone(const attn_tensor *scores, const attn_tensor *value, attn_steps want)
{
    attn_request request = {.inputs = {.scores = scores, .value = value}};
    request.options.compute = scores->dtype;
    request.options.want = want;
    return request;
}

/* ---- from scores ---- */

static void try_scores(const scene_size *n, size_t mask, attn_dtype type, unsigned variant)
{
    char what[160];
    test_scene scene = scene_create(type, 1000 + 10 * mask + variant);
    scene_attention(&scene, n);
    mask_case_at(mask)->apply(&scene, n);
    scene_biases(&scene, n, variant);
    scene.request.options.softcap = variant % 3 == 0 ? 3 : 0;
    snprintf(what, sizeof what, "%s, biases %u, %zu x %zu", mask_case_at(mask)->name, variant, n->q_len, n->kv_len);
    naive_result naive = naive_attention(&scene.request, NULL);
    test_run whole = run_kernel(&scene.request, NULL, WANT(SCORES) | WANT(SCALED));
    attn_request start = from_scores(&scene.request, &whole);
    test_run run = run_kernel(&start, NULL, start.options.want);
    expect_close(&run, &naive, what);
    expect_same_steps(&run, &whole, WANT(SCORES) | (variant % 3 == 0 ? 0 : WANT(SCALED)), what);
    run_release(&run);
    run_release(&whole);
    naive_release(&naive);
    scene_destroy(&scene);
}

START_TEST(the_scores_of_a_request_give_its_other_steps)
{
    for (size_t mask = 0; mask_case_at(mask) != NULL; mask++)
        for (size_t s = 0; s < SIZES; s++)
            try_scores(&sizes[s], mask, (mask + s) % 2 == 0 ? ATTN_F32 : ATTN_F64, (unsigned)(7 * mask + s) % 32);
}
END_TEST

/* After the masks and biases, the rest is one softmax: both write the numbers that they read. */
START_TEST(masked_scores_give_the_same_bytes)
{
    for (size_t mask = 0; mask_case_at(mask) != NULL; mask++) {
        test_scene scene = scene_create(mask % 2 == 0 ? ATTN_F32 : ATTN_F64, mask);
        scene_attention(&scene, &medium);
        mask_case_at(mask)->apply(&scene, &medium);
        scene_biases(&scene, &medium, 1 + 4);
        test_run whole = run_kernel(&scene.request, NULL, WANT(SCORES));
        attn_request start = from_scores(&scene.request, &whole);
        test_run first = run_kernel(&start, NULL, start.options.want);
        attn_request rest = alone(&first.result.step[ATTN_STEP_MASKED], scene.request.inputs.value, start.options.want);
        test_run second = run_kernel(&rest, NULL, rest.options.want);
        expect_same_steps(&first, &second, start.options.want & ~(WANT(SCORES) | WANT(SCALED)),
                          mask_case_at(mask)->name);
        ck_assert_uint_eq(first.result.rows_without_keys, second.result.rows_without_keys);
        run_release(&second);
        run_release(&first);
        run_release(&whole);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_score_of_minus_infinity_hides_its_key)
{
    const double hidden = -(double)INFINITY, scales[] = {1, 0, -2};
    for (size_t n = 0; n < sizeof scales / sizeof *scales; n++) {
        test_scene scene = scene_create(n == 0 ? ATTN_F32 : ATTN_F64, n);
        attn_tensor *scores = scene_normal(&scene, 1, SHAPE(2, 3)), *value = scene_normal(&scene, 1, SHAPE(3, 2));
        tensor_set(scores, 1, hidden);
        for (size_t j = 0; j < 3; j++)
            tensor_set(scores, 3 + j, hidden);
        tensor_set(value, 2, (double)NAN);
        attn_request request = alone(scores, value, 0);
        request.options.has_scale = true;
        request.options.scale = scales[n];
        request.options.softcap = n == 1 ? 2 : 0;
        test_run run = run_kernel(&request, NULL, scene_every_step(&request));
        const attn_tensor *step = run.result.step;
        ck_assert_uint_eq(run.result.rows_without_keys, 1);
        ck_assert(tensor_get(&step[ATTN_STEP_SCALED], 1) == hidden);
        ck_assert(tensor_get(&step[ATTN_STEP_ATTENTION], 1) == 0);
        ck_assert(isfinite(tensor_get(&step[ATTN_STEP_OUTPUT], 0)));
        for (size_t j = 0; j < 3; j++)
            ck_assert(tensor_get(&step[ATTN_STEP_ATTENTION], 3 + j) == 0);
        ck_assert(tensor_get(&step[ATTN_STEP_LSE], 1) == hidden);
        ck_assert(tensor_get(&step[ATTN_STEP_OUTPUT], 2) == 0);
        ck_assert(tensor_get(&step[ATTN_STEP_MASK], 1) == 0 && tensor_get(&step[ATTN_STEP_MASK], 0) == 1);
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

/* As of queries and keys: NaN reaches the row that may attend to it, and no other. */
START_TEST(scores_that_are_not_finite_stay_in_their_row)
{
    const double odd[] = {(double)NAN, (double)INFINITY};
    for (size_t n = 0; n < 4; n++) {
        test_scene scene = scene_create(n < 2 ? ATTN_F32 : ATTN_F64, n);
        attn_tensor *scores = scene_normal(&scene, 1, SHAPE(3, 3)), *value = scene_normal(&scene, 1, SHAPE(3, 2));
        tensor_set(scores, 2, odd[n % 2]); /* hidden by the mask */
        tensor_set(scores, 3, odd[n % 2]);
        attn_request request = alone(scores, value, 0);
        request.masks.causal = true;
        test_run run = run_kernel(&request, NULL, WANT(ATTENTION) | WANT(OUTPUT) | WANT(LSE));
        for (size_t i = 0; i < 3; i++) {
            ck_assert(isfinite(tensor_get(&run.result.step[ATTN_STEP_LSE], i)) == (i != 1));
            ck_assert(isnan(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], 2 * i)) == (i == 1));
        }
        ck_assert(tensor_get(&run.result.step[ATTN_STEP_ATTENTION], 5) == 0);
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

/* ---- from weights ---- */

static void expect_context(const test_run *run, const naive_result *naive, attn_dtype type, const char *what)
{
    const attn_tensor *context = &run->result.step[ATTN_STEP_CONTEXT];
    for (size_t at = 0; at < attn_tensor_count(context); at++) {
        /* Every weight that was given is rounded, and the softmax before was off by 8 u peak (closeness.c). */
        const double bound =
            8 * unit_roundoff(type) * (2 + naive->peak[at / naive->d_v]) * naive->terms[ATTN_STEP_CONTEXT][at] + 1e-30;
        const double got = tensor_get(context, at), expected = naive->step[ATTN_STEP_CONTEXT][at];
        ck_assert_msg(fabs(got - expected) <= bound, "%s: context[%zu] is %.9g, not %.9g", what, at, got, expected);
    }
}

START_TEST(the_weights_of_a_request_give_its_context)
{
    for (size_t mask = 0; mask_case_at(mask) != NULL; mask++) {
        const attn_dtype type = mask % 2 == 0 ? ATTN_F32 : ATTN_F64;
        const scene_size *n = &sizes[mask % SIZES];
        test_scene scene = scene_create(type, 50 + mask);
        scene_attention(&scene, n);
        mask_case_at(mask)->apply(&scene, n);
        scene_scale_heads(&scene, n->heads);
        naive_result naive = naive_attention(&scene.request, NULL);
        test_run whole = run_kernel(&scene.request, NULL, WANT(ATTENTION) | WANT(ATTENTION_MEAN) | WANT(CONTEXT));
        attn_request start = from_weights(&scene.request, &whole.result.step[ATTN_STEP_ATTENTION]);
        test_run run = run_kernel(&start, NULL, start.options.want);
        expect_same_bytes(&run.result.step[ATTN_STEP_ATTENTION], &whole.result.step[ATTN_STEP_ATTENTION], "attention");
        expect_same_bytes(&run.result.step[ATTN_STEP_ATTENTION_MEAN], &whole.result.step[ATTN_STEP_ATTENTION_MEAN],
                          "attention_mean");
        expect_context(&run, &naive, type, mask_case_at(mask)->name);
        run_release(&run);
        run_release(&whole);
        naive_release(&naive);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(given_weights_are_used_as_they_are)
{
    test_scene scene = scene_create(ATTN_F64, 1);
    const double weights[] = {2, -1, 0, 0, 0, 0}, values[] = {1, 10, (double)NAN};
    attn_tensor *attention = scene_tensor(&scene, ATTN_F64, SHAPE(2, 3)),
                *value = scene_tensor(&scene, ATTN_F64, SHAPE(3, 1));
    memcpy(attention->data, weights, sizeof weights);
    memcpy(value->data, values, sizeof values);
    attn_request request = {.inputs = {.attention = attention, .value = value}};
    request.options.compute = ATTN_F64;
    test_run run = run_kernel(&request, NULL, scene_every_step(&request));
    ck_assert(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], 0) == -8);
    ck_assert(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], 1) == 0);
    ck_assert(isnan(tensor_get(&run.result.step[ATTN_STEP_ENTROPY], 0)));
    ck_assert(tensor_get(&run.result.step[ATTN_STEP_ENTROPY], 1) == 0);
    ck_assert_uint_eq(run.result.rows_without_keys, 0);
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

/* The decisions of dropout depend on the position alone. */
START_TEST(dropout_takes_the_same_weights)
{
    test_scene scene = scene_create(ATTN_F64, 3);
    scene_attention(&scene, &medium);
    scene.request.options.dropout = 0.5;
    scene.request.options.dropout_attention = true;
    scene.request.options.dropout_seed = 77;
    test_run whole = run_kernel(&scene.request, NULL, WANT(ATTENTION) | WANT(DROPPED));
    attn_request start = from_weights(&scene.request, &whole.result.step[ATTN_STEP_ATTENTION]);
    test_run run = run_kernel(&start, NULL, start.options.want);
    size_t dropped = 0;
    for (size_t at = 0; at < attn_tensor_count(&whole.result.step[ATTN_STEP_DROPPED]); at++) {
        const double was = tensor_get(&whole.result.step[ATTN_STEP_DROPPED], at);
        ck_assert(fabs(tensor_get(&run.result.step[ATTN_STEP_DROPPED], at) - was) <= 8 * 0x1p-53 * was);
        dropped += was == 0;
    }
    ck_assert_uint_gt(dropped, 100);
    run_release(&run);
    run_release(&whole);
    scene_destroy(&scene);
}
END_TEST

/* ---- every start ---- */

/* Both starts of a scene in turn. */
static attn_request start_of(test_scene *scene, const scene_size *n, bool has_scores)
{
    const attn_tensor *map = scene_normal(scene, 1, SHAPE(n->batch, n->heads, n->q_len, n->kv_len));
    const attn_tensor *value = scene_normal(scene, 1, SHAPE(n->batch, n->kv_heads, n->kv_len, n->d_v));
    scene->request.inputs =
        has_scores ? (attn_inputs){.scores = map, .value = value} : (attn_inputs){.attention = map, .value = value};
    scene->request.options.want = scene_every_step(&scene->request);
    return scene->request;
}

START_TEST(the_ranks_of_maps_and_values_give_the_same_numbers)
{
    static const scene_size one = {1, 1, 1, 4, 6, 1, 3};
    for (int has_scores = 0; has_scores < 2; has_scores++) {
        test_scene scene = scene_create(ATTN_F32, 9);
        attn_request request = start_of(&scene, &one, has_scores == 1);
        test_run whole = run_kernel(&request, NULL, request.options.want);
        attn_tensor *map = scene_copy(&scene, attn_start_of(&request.inputs)),
                    *value = scene_copy(&scene, request.inputs.value);
        for (int rank = 2; rank < 4; rank++) {
            *map = attn_tensor_view(map->data, ATTN_F32, rank, (size_t[]){1, 4, 6} + 3 - rank);
            *value = attn_tensor_view(value->data, ATTN_F32, rank, (size_t[]){1, 6, 3} + 3 - rank);
            attn_request same = request;
            same.inputs = has_scores ? (attn_inputs){.scores = map, .value = value}
                                     : (attn_inputs){.attention = map, .value = value};
            test_run run = run_kernel(&same, NULL, request.options.want);
            expect_same_steps(&whole, &run, request.options.want & ~(WANT(OUTPUT) | WANT(CONCAT)), "ranks");
            ck_assert_int_eq(run.result.step[ATTN_STEP_OUTPUT].rank, rank);
            ck_assert_mem_eq(run.result.step[ATTN_STEP_OUTPUT].data, whole.result.step[ATTN_STEP_OUTPUT].data,
                             4 * 3 * sizeof(float));
            run_release(&run);
        }
        run_release(&whole);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(threads_and_other_steps_change_no_byte)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 3}, NULL);
    ck_assert_ptr_nonnull(pool);
    for (int has_scores = 0; has_scores < 2; has_scores++) {
        test_scene scene = scene_create(ATTN_F32, 4);
        attn_request request = start_of(&scene, &sizes[1], has_scores == 1);
        test_run whole = run_kernel(&request, NULL, request.options.want);
        const attn_runtime shared = attn_pool_runtime(pool, NULL);
        test_run threads = run_request(&request, &shared);
        expect_same_steps(&whole, &threads, request.options.want, "threads");
        for (attn_step step = 0; step < ATTN_STEP_COUNT; step++) {
            if (!(request.options.want >> step & 1))
                continue;
            test_run one = run_kernel(&request, NULL, ATTN_STEP_BIT(step));
            expect_same_steps(&whole, &one, ATTN_STEP_BIT(step), "one step");
            run_release(&one);
        }
        run_release(&threads);
        run_release(&whole);
        scene_destroy(&scene);
    }
    attn_pool_destroy(pool);
}
END_TEST

START_TEST(selections_keep_a_part_of_the_maps)
{
    static const size_t heads[] = {3, 0}, queries[] = {1, 2, 8};
    for (int has_scores = 0; has_scores < 2; has_scores++) {
        test_scene scene = scene_create(ATTN_F64, 6);
        attn_request request = start_of(&scene, &medium, has_scores == 1);
        test_run whole = run_kernel(&request, NULL, request.options.want);
        request.options.heads = (attn_selection){.items = heads, .count = 2};
        request.options.queries = (attn_selection){.items = queries, .count = 3};
        request.options.keys = (attn_selection){.first = 4, .count = 5};
        test_run part = run_kernel(&request, NULL, request.options.want);
        for (size_t at = 0; at < medium.batch * 2 * 3 * 5; at++) {
            const size_t b = at / 30, h = heads[at / 15 % 2], i = queries[at / 5 % 3], j = 4 + at % 5;
            const size_t from = ((b * medium.heads + h) * medium.q_len + i) * medium.kv_len + j;
            ck_assert(tensor_get(&part.result.step[ATTN_STEP_ATTENTION], at) ==
                      tensor_get(&whole.result.step[ATTN_STEP_ATTENTION], from));
        }
        expect_same_steps(&whole, &part, WANT(CONTEXT) | WANT(ENTROPY), "selection");
        run_release(&part);
        run_release(&whole);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(scores_without_values_end_at_the_weights)
{
    test_scene scene = scene_create(ATTN_F32, 2);
    attn_request request = alone(scene_normal(&scene, 1, SHAPE(2, 3, 4)), NULL, 0);
    const attn_steps steps = scene_every_step(&request);
    ck_assert_uint_eq(steps & (WANT(OUTPUT) | WANT(CONTEXT) | WANT(V)), 0);
    test_run run = run_kernel(&request, NULL, steps);
    ck_assert_uint_eq(run.plan.dims.heads, 2);
    ck_assert_uint_eq(run.plan.dims.d_v, 0);
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

START_TEST(empty_maps_are_computed)
{
    test_scene scene = scene_create(ATTN_F32, 2);
    attn_request request =
        alone(scene_tensor(&scene, ATTN_F32, SHAPE(2, 3, 0)), scene_tensor(&scene, ATTN_F32, SHAPE(0, 4)), 0);
    test_run run = run_kernel(&request, NULL, scene_every_step(&request));
    ck_assert_uint_eq(run.result.rows_without_keys, 6);
    ck_assert(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], 0) == 0);
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

static bool now(void *context)
{
    (void)context;
    return true;
}

START_TEST(a_cancelled_run_says_so)
{
    test_scene scene = scene_create(ATTN_F32, 5);
    attn_request request = start_of(&scene, &medium, true);
    attn_runtime runtime = attn_runtime_serial(NULL);
    attn_arena *arena = attn_arena_create((size_t)1 << 24);
    attn_plan plan;
    attn_result result;
    attn_error err;
    runtime.is_cancelled = now;
    ck_assert_int_eq(attn_plan_make(&request, &plan, &err), ATTN_OK);
    ck_assert_int_eq(attn_plan_run(&plan, NULL, &runtime, arena, &result, &err), ATTN_ERR_CANCELLED);
    attn_arena_destroy(arena);
    scene_destroy(&scene);
}
END_TEST

/* ---- refusals ---- */

START_TEST(inputs_that_do_not_go_with_a_start_are_refused)
{
    static const char *const names[] = {"inputs.query", "inputs.key", "inputs.past_key", "inputs.past_value"};
    for (int has_scores = 0; has_scores < 2; has_scores++) {
        test_scene scene = scene_create(ATTN_F32, 5);
        const attn_request request = start_of(&scene, &medium, has_scores == 1);
        attn_request wrong = request;
        const attn_tensor **const inputs[] = {&wrong.inputs.query, &wrong.inputs.key, &wrong.inputs.past_key,
                                              &wrong.inputs.past_value};
        for (size_t n = 0; n < 4; n++) {
            wrong = request;
            *inputs[n] = request.inputs.value;
            expect_refusal(&wrong, ATTN_ERR_FIELD, names[n], "stands for queries and keys");
        }
        wrong = request;
        wrong.is_layer = true;
        expect_refusal(&wrong, ATTN_ERR_FIELD, has_scores ? "inputs.scores" : "inputs.attention", "without weights");
        wrong = request;
        wrong.inputs.scores = wrong.inputs.attention = attn_start_of(&request.inputs);
        expect_refusal(&wrong, ATTN_ERR_FIELD, "inputs.attention", "starts at one of them");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(shapes_that_disagree_are_refused)
{
    test_scene scene = scene_create(ATTN_F32, 5);
    const attn_tensor *scores = scene_normal(&scene, 1, SHAPE(2, 4, 3, 5));
    attn_request request = alone(scores, NULL, WANT(ATTENTION));
    request.inputs.scores = scene_normal(&scene, 1, SHAPE(5));
    expect_refusal(&request, ATTN_ERR_SHAPE, "inputs.scores", "rank 1");
    request.inputs.scores = scene_normal(&scene, 1, SHAPE(1, 0, 3, 5));
    expect_refusal(&request, ATTN_ERR_SHAPE, "inputs.scores", "no heads");
    request.inputs.scores = scene_tensor(&scene, ATTN_F64, SHAPE(3, 5));
    expect_refusal(&request, ATTN_ERR_FIELD, "inputs.scores", "float64");
    request.inputs.scores = scores;
    request.options.num_heads = 3;
    expect_refusal(&request, ATTN_ERR_SHAPE, "options.num_heads", "4 heads");
    request.options.num_heads = 0;
    request.options.kv_num_heads = 2;
    expect_refusal(&request, ATTN_ERR_FIELD, "options.kv_num_heads", "inputs.value");
    request.options.kv_num_heads = 0;
    static const struct {
        int rank;
        size_t shape[4];
        const char *fragment;
    } wrong[] = {
        {2, {5, 4}, "2 batch items"},
        {3, {1, 5, 4}, "batch items: 1 and 2"},
        {3, {2, 4, 4}, "number of positions: 4 and 5"},
        {3, {2, 5, 6}, "does not divide"},
        {4, {2, 3, 5, 6}, "key heads"},
        {4, {2, 0, 5, 6}, "no heads"},
        {4, {2, 2, 5, 0}, "no features"},
        {1, {5}, "rank 1"},
    };
    for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
        request.inputs.value = scene_normal(&scene, 1, wrong[n].rank, wrong[n].shape);
        expect_refusal(&request, ATTN_ERR_SHAPE, n == 4 ? "options.kv_num_heads" : "inputs.value", wrong[n].fragment);
    }
    scene_destroy(&scene);
}
END_TEST

START_TEST(options_that_do_not_go_with_a_start_are_refused)
{
    for (int has_scores = 0; has_scores < 2; has_scores++) {
        test_scene scene = scene_create(ATTN_F32, 5);
        const attn_request request = start_of(&scene, &medium, has_scores == 1);
        attn_request wrong = request;
        wrong.options.rope.layout = ATTN_ROPE_HALF;
        expect_refusal(&wrong, ATTN_ERR_FIELD, "options.rope", "stands for queries and keys");
        wrong = request;
        wrong.options.qk_norm = ATTN_NORM_L2;
        expect_refusal(&wrong, ATTN_ERR_FIELD, "options.qk_norm", "stands for queries and keys");
        wrong = request;
        wrong.options.mechanism.type = ATTN_LINEAR;
        expect_refusal(&wrong, ATTN_ERR_FIELD, "options.mechanism", "stands for queries and keys");
        scene_destroy(&scene);
    }
    test_scene scene = scene_create(ATTN_F32, 5);
    attn_request request = alone(scene_normal(&scene, 1, SHAPE(2, 3)), NULL, WANT(ATTENTION));
    request.options.head_scale = scene_normal(&scene, 1, SHAPE(1));
    expect_refusal(&request, ATTN_ERR_FIELD, "options.head_scale", "inputs.value");
    scene_destroy(&scene);
}
END_TEST

START_TEST(nothing_before_the_weights_goes_with_weights)
{
    test_scene scene = scene_create(ATTN_F32, 5);
    const attn_request request = start_of(&scene, &medium, false);
    attn_request wrong = request;
    wrong.inputs.value = NULL;
    expect_refusal(&wrong, ATTN_ERR_FIELD, "inputs.value", "missing");
    wrong = request;
    wrong.options.has_scale = true;
    expect_refusal(&wrong, ATTN_ERR_FIELD, "options.scale", "as they are");
    wrong = request;
    wrong.options.softcap = 2;
    expect_refusal(&wrong, ATTN_ERR_FIELD, "options.softcap", "as they are");
    for (unsigned variant = 1; variant <= 16; variant *= 2) {
        static const char *const names[] = {[1] = "options.alibi",
                                            [2] = "options.alibi_slopes",
                                            [4] = "options.relative_bias",
                                            [8] = "options.relative_bias",
                                            [16] = "options.sinks"};
        scene.request.options = request.options;
        scene_biases(&scene, &medium, variant);
        expect_refusal(&scene.request, ATTN_ERR_FIELD, names[variant], "as they are");
    }
    for (size_t mask = 0; mask_case_at(mask) != NULL; mask++) {
        static const attn_masks none;
        scene.request = request;
        mask_case_at(mask)->apply(&scene, &medium);
        if (memcmp(&scene.request.masks, &none, sizeof none) == 0)
            continue;
        attn_plan plan;
        attn_error err;
        ck_assert_msg(attn_plan_make(&scene.request, &plan, &err) == ATTN_ERR_FIELD &&
                          strncmp(err.field, "masks.", strlen("masks.")) == 0,
                      "%s was not refused", mask_case_at(mask)->name);
    }
    scene_destroy(&scene);
}
END_TEST

START_TEST(steps_that_a_start_lacks_are_refused)
{
    for (int kind = 0; kind < 3; kind++) {
        test_scene scene = scene_create(ATTN_F32, 5);
        attn_request request = start_of(&scene, &medium, kind > 0);
        request.inputs.value = kind == 2 ? NULL : request.inputs.value;
        const attn_steps possible = scene_every_step(&request);
        for (attn_step step = 0; step < ATTN_STEP_COUNT; step++) {
            attn_plan plan;
            attn_error err;
            request.options.want = ATTN_STEP_BIT(step);
            const attn_status status = attn_plan_make(&request, &plan, &err);
            ck_assert_msg((status == ATTN_OK) == ((possible >> step & 1) != 0), "%s", attn_step_name(step));
            if (status != ATTN_OK)
                ck_assert_str_eq(err.field, "options.want");
        }
        scene_destroy(&scene);
    }
}
END_TEST

CHECK_MAIN("starts")
{
    tcase_add_test(tests, the_scores_of_a_request_give_its_other_steps);
    tcase_add_test(tests, masked_scores_give_the_same_bytes);
    tcase_add_test(tests, a_score_of_minus_infinity_hides_its_key);
    tcase_add_test(tests, scores_that_are_not_finite_stay_in_their_row);
    tcase_add_test(tests, the_weights_of_a_request_give_its_context);
    tcase_add_test(tests, given_weights_are_used_as_they_are);
    tcase_add_test(tests, dropout_takes_the_same_weights);
    tcase_add_test(tests, the_ranks_of_maps_and_values_give_the_same_numbers);
    tcase_add_test(tests, threads_and_other_steps_change_no_byte);
    tcase_add_test(tests, selections_keep_a_part_of_the_maps);
    tcase_add_test(tests, scores_without_values_end_at_the_weights);
    tcase_add_test(tests, empty_maps_are_computed);
    tcase_add_test(tests, a_cancelled_run_says_so);
    tcase_add_test(tests, inputs_that_do_not_go_with_a_start_are_refused);
    tcase_add_test(tests, shapes_that_disagree_are_refused);
    tcase_add_test(tests, options_that_do_not_go_with_a_start_are_refused);
    tcase_add_test(tests, nothing_before_the_weights_goes_with_weights);
    tcase_add_test(tests, steps_that_a_start_lacks_are_refused);
}
