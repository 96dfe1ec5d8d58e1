/*
 * test_backward_run.c: properties of every run for gradients: the same bytes, memory within the plan, refusals,
 * cancellation.
 */
#include "attn/gradient.h"

#include <string.h>

#include "check_main.h"
#include "gradient_cases.h"

#define WANT(step) ATTN_STEP_BIT(ATTN_STEP_##step)

/* ---- the same bytes ---- */

START_TEST(threads_do_not_change_a_byte)
{
    const size_t threads[] = {1, 2, 3, 8};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = threads[t]}, NULL);
        ck_assert_ptr_nonnull(pool);
        const attn_runtime runtime = attn_pool_runtime(pool, NULL);
        gradient_case made;
        for (size_t number = 0; gradient_case_at(&made, number % 2 ? ATTN_F64 : ATTN_F32, number); number++) {
            made.wanted.of = gradient_all_of(&made.wanted);
            gradient_run serial = gradient_run_serial(&made.wanted, NULL),
                         spread = gradient_run_on(&made.wanted, &runtime);
            expect_same_gradients(&serial, &spread, made.name);
            gradient_run_release(&serial);
            gradient_run_release(&spread);
            gradient_case_release(&made);
        }
        attn_pool_destroy(pool);
    }
}
END_TEST

START_TEST(the_order_of_tasks_does_not_change_a_byte)
{
    const attn_runtime runtime = backward_runtime();
    gradient_case made;
    for (size_t number = 0; gradient_case_at(&made, number % 2 ? ATTN_F32 : ATTN_F64, number); number++) {
        made.wanted.of = gradient_all_of(&made.wanted);
        gradient_run serial = gradient_run_serial(&made.wanted, NULL),
                     backwards = gradient_run_on(&made.wanted, &runtime);
        expect_same_gradients(&serial, &backwards, made.name);
        gradient_run_release(&serial);
        gradient_run_release(&backwards);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(each_gradient_alone_is_as_among_all)
{
    gradient_case made;
    for (size_t number = 0; gradient_case_at(&made, ATTN_F32, number); number++) {
        const uint64_t every = gradient_all_of(&made.wanted);
        made.wanted.of = every;
        made.scene.request.options.want = WANT(OUTPUT) | WANT(ATTENTION) | WANT(Q);
        gradient_run all = gradient_run_serial(&made.wanted, NULL);
        made.scene.request.options.want = 0;
        for (uint64_t one = 1; one <= every; one <<= 1)
            if (every & one) {
                made.wanted.of = one;
                gradient_run alone = gradient_run_serial(&made.wanted, NULL);
                expect_same_gradients(&all, &alone, made.name);
                gradient_run_release(&alone);
            }
        gradient_run_release(&all);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(the_forward_steps_are_those_of_a_plain_run)
{
    gradient_case made;
    for (size_t number = 0; gradient_case_at(&made, ATTN_F32, number); number++) {
        made.scene.request.options.want = WANT(OUTPUT) | WANT(ATTENTION) | WANT(Q);
        if (number < GRADIENT_CASES_OF_SOFTMAX)
            made.scene.request.options.want |= WANT(LSE);
        gradient_run run = gradient_run_serial(&made.wanted, NULL);
        test_run plain = run_kernel(&made.scene.request, NULL, made.scene.request.options.want);
        const test_run forward = {.plan = run.plan.forward, .result = run.result.forward};
        ck_assert_uint_eq(run.plan.want, made.scene.request.options.want);
        expect_same_steps(&plain, &forward, made.scene.request.options.want, made.name);
        run_release(&plain);
        gradient_run_release(&run);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(selections_of_the_scores_are_slices_of_the_whole)
{
    static const size_t heads[] = {1, 0}, queries[] = {130, 0, 7}, keys[] = {258, 3};
    gradient_case made = {.scene = scene_create(ATTN_F32, 2)};
    const scene_size *n = &gradient_sizes[4];
    scene_attention(&made.scene, n);
    made.scene.request.options.softcap = 2;
    made.wanted = gradient_ask(&made.scene);
    made.wanted.of = OF(SCORES);
    gradient_run whole = gradient_run_serial(&made.wanted, NULL);
    made.scene.request.options.heads = (attn_selection){.items = heads, .count = 2};
    made.scene.request.options.queries = (attn_selection){.items = queries, .count = 3};
    made.scene.request.options.keys = (attn_selection){.items = keys, .count = 2};
    gradient_run part = gradient_run_serial(&made.wanted, NULL);
    const attn_tensor *all = &whole.result.gradient[ATTN_GRADIENT_SCORES];
    const attn_tensor *some = &part.result.gradient[ATTN_GRADIENT_SCORES];
    ck_assert_uint_eq(attn_tensor_count(some), 2 * 3 * 2);
    for (size_t at = 0; at < attn_tensor_count(some); at++) {
        const size_t row = heads[at / 6] * n->q_len + queries[at / 2 % 3];
        ck_assert(tensor_get(some, at) == tensor_get(all, row * n->kv_len + keys[at % 2]));
    }
    gradient_run_release(&whole);
    gradient_run_release(&part);
    gradient_case_release(&made);
}
END_TEST
START_TEST(without_keys_the_gradient_of_queries_is_zero)
{
    const attn_dtype types[] = {ATTN_F32, ATTN_F64};
    for (size_t t = 0; t < 2; t++) {
        gradient_case made = {.scene = scene_create(types[t], 1)};
        scene_attention(&made.scene, &(scene_size){1, 2, 2, 100, 0, 5, 3});
        made.wanted = gradient_ask(&made.scene);
        gradient_run run = gradient_run_serial(&made.wanted, NULL);
        const attn_tensor *query = &run.result.gradient[ATTN_GRADIENT_QUERY];
        ck_assert_uint_eq(attn_tensor_count(query), 2 * 100 * 5);
        for (size_t at = 0; at < attn_tensor_count(query); at++)
            ck_assert_double_eq(tensor_get(query, at), 0);
        gradient_run_release(&run);
        gradient_case_release(&made);
    }
}
END_TEST

/* A run in memory that another request has filled. */
static gradient_run run_in_used_memory(const attn_gradient_request *wanted, int used)
{
    gradient_run run;
    const attn_runtime runtime = attn_runtime_serial(NULL);
    ck_assert_int_eq(attn_gradient_plan_make(wanted, &run.plan, NULL), ATTN_OK);
    const size_t bytes = attn_gradient_plan_bytes(&run.plan, 1);
    run.arena = attn_arena_create(4 * bytes);
    memset(attn_arena_take(run.arena, 2 * bytes, 1), used, 2 * bytes);
    attn_arena_reset(run.arena);
    ck_assert_int_eq(attn_gradient_run(&run.plan, NULL, &runtime, run.arena, &run.result, NULL), ATTN_OK);
    return run;
}

/* Layers with a gate and norms, without queries or without keys: no stage adds to most of their gradients. */
START_TEST(without_tokens_gradients_do_not_show_the_memory)
{
    const scene_size sizes[] = {{1, 2, 1, 0, 6, 3, 2}, {2, 2, 2, 4, 0, 3, 2}, {1, 2, 1, 0, 0, 3, 2}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        gradient_case made = {.scene = scene_create(ATTN_F32, s)};
        scene_layer(&made.scene, &sizes[s], 5);
        gradient_add_qk_norm(&made.scene, &sizes[s], 4);
        gradient_add_gate(&made.scene, &sizes[s], 1);
        made.wanted = gradient_ask(&made.scene);
        made.wanted.of = gradient_all_of(&made.wanted);
        gradient_run clean = run_in_used_memory(&made.wanted, 0), used = run_in_used_memory(&made.wanted, 0x41);
        expect_same_gradients(&clean, &used, "memory with numbers of another request");
        gradient_run_release(&clean);
        gradient_run_release(&used);
        gradient_case_release(&made);
    }
}
END_TEST

/* ---- memory ---- */

static bool fits(const attn_gradient_plan *plan, size_t limit)
{
    attn_gradient_result result;
    attn_error err = {0};
    const attn_runtime runtime = attn_runtime_serial(NULL);
    attn_arena *arena = attn_arena_create(limit);
    if (arena == NULL)
        return false;
    const attn_status status = attn_gradient_run(plan, NULL, &runtime, arena, &result, &err);
    ck_assert_uint_le(attn_arena_peak_bytes(arena), limit);
    attn_arena_destroy(arena);
    ck_assert_msg(status == ATTN_OK || (status == ATTN_ERR_NO_MEMORY && err.status == status && err.message[0] != '\0'),
                  "%zu bytes: %s", limit, err.message);
    return status == ATTN_OK;
}

START_TEST(an_arena_too_small_is_a_clean_refusal)
{
    gradient_case made;
    for (size_t number = 0; gradient_case_at(&made, ATTN_F32, number); number += 5) {
        attn_gradient_plan plan;
        made.wanted.of = gradient_all_of(&made.wanted);
        ck_assert_int_eq(attn_gradient_plan_make(&made.wanted, &plan, NULL), ATTN_OK);
        const size_t enough = attn_gradient_plan_bytes(&plan, 1), coarse = enough / 200 / 64 * 64 + 64;
        size_t limit = 0;
        while (!fits(&plan, limit)) {
            limit += coarse;
            ck_assert_msg(limit < enough + coarse, "%s: %zu bytes are not enough", made.name, enough);
        }
        for (size_t fine = limit < coarse ? 0 : limit - coarse; fine < limit; fine += coarse / 64 / 20 * 64 + 64)
            (void)fits(&plan, fine);
        ck_assert_msg(fits(&plan, enough), "%s: not within what the plan says", made.name);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(without_maps_no_memory_grows_with_queries_times_keys)
{
    for (size_t variant = 0; variant < 3; variant++) {
        attn_gradient_plan plans[2];
        for (size_t p = 0; p < 2; p++) {
            gradient_case made = {.scene = scene_create(ATTN_F32, 1)};
            const size_t length = p == 0 ? 4096 : 8192;
            scene_attention(&made.scene, &(scene_size){1, 1, 1, length, length, 16, 16});
            if (variant > 0)
                gradient_add_mechanism(&made.scene, variant);
            made.wanted = gradient_ask(&made.scene);
            ck_assert_int_eq(attn_gradient_plan_make(&made.wanted, &plans[p], NULL), ATTN_OK);
            gradient_case_release(&made);
        }
        const double growth =
            (double)attn_gradient_plan_bytes(&plans[1], 2) / (double)attn_gradient_plan_bytes(&plans[0], 2);
        ck_assert_msg(growth <= 2, "variant %zu: twice the length takes %g times the memory", variant, growth);
    }
}
END_TEST

/* ---- refusals and stopping ---- */

static void expect_gradient_refusal(const attn_gradient_request *request, attn_status status, const char *field,
                                    const char *fragment)
{
    attn_gradient_plan plan;
    attn_error err = {0};
    const attn_status got = attn_gradient_plan_make(request, &plan, &err);
    ck_assert_msg(got == status && err.status == status, "%s: %s: %s", field, attn_status_name(got), err.message);
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.message, fragment) != NULL, "\"%s\" lacks \"%s\"", err.message, fragment);
}

START_TEST(what_cannot_be_differentiated_is_refused)
{
    gradient_case made;
    ck_assert(gradient_case_at(&made, ATTN_F32, 2 + GRADIENT_KINDS)); /* attention of keys */
    attn_gradient_request bad = made.wanted;
    bad.grad_output = NULL;
    expect_gradient_refusal(&bad, ATTN_ERR_FIELD, "grad_output", "missing");
    bad.grad_output = scene_tensor(&made.scene, ATTN_F64, 3, made.wanted.grad_output->shape);
    expect_gradient_refusal(&bad, ATTN_ERR_FIELD, "grad_output", "must be float32");
    bad.grad_output = scene_normal(&made.scene, 1, SHAPE(2, 2));
    expect_gradient_refusal(&bad, ATTN_ERR_SHAPE, "grad_output", "the output has");
    bad = made.wanted;
    bad.of = OF(VALUE);
    expect_gradient_refusal(&bad, ATTN_ERR_FIELD, "of", "it is inputs.key");
    bad.of = OF(QKV_WEIGHT);
    expect_gradient_refusal(&bad, ATTN_ERR_FIELD, "of", "weights.qkv.weight");
    gradient_case_release(&made);
}
END_TEST

START_TEST(what_a_mechanism_does_not_have_is_refused)
{
    gradient_case made;
    ck_assert(gradient_case_at(&made, ATTN_F32, GRADIENT_CASES_OF_SOFTMAX + GRADIENT_KINDS));
    attn_options *options = &made.scene.request.options;
    options->mechanism = (attn_mechanism){.type = ATTN_LINEAR, .eps = 0.1};
    options->has_scale = false;
    made.wanted.of = OF(SCORES);
    expect_gradient_refusal(&made.wanted, ATTN_ERR_FIELD, "of", "belongs to mechanism softmax");
    made.wanted.of = OF(SCALE);
    expect_gradient_refusal(&made.wanted, ATTN_ERR_FIELD, "of", "unless it is not normalised");
    options->mechanism = (attn_mechanism){.type = ATTN_PERFORMER, .features = 5};
    options->has_scale = true;
    options->scale = 0;
    expect_gradient_refusal(&made.wanted, ATTN_ERR_VALUE, "options.scale", "root of the scale");
    made.wanted.of = 0;
    expect_gradient_refusal(&made.wanted, ATTN_ERR_VALUE, "options.scale", "root of the scale");
    gradient_case_release(&made);
}
END_TEST

START_TEST(names_lead_to_their_gradients_and_back)
{
    for (int g = 0; g < ATTN_GRADIENT_COUNT; g++)
        ck_assert_int_eq((int)attn_gradient_from_name(attn_gradient_name((attn_gradient)g)), g);
    ck_assert_int_eq((int)attn_gradient_from_name("inputs"), ATTN_GRADIENT_COUNT);
}
END_TEST

static bool after_some_looks(void *context)
{
    size_t *left = context;
    return *left == 0 || --*left == 0;
}

static void cancel_midway(const gradient_case *made)
{
    gradient_run whole = gradient_run_serial(&made->wanted, NULL);
    size_t finished = 0, cancelled = 0;
    for (size_t looks = 1; finished == 0; looks += 1 + looks / 8) {
        size_t left = looks;
        attn_runtime runtime = attn_runtime_serial(NULL);
        runtime.is_cancelled = after_some_looks;
        runtime.cancel_context = &left;
        gradient_run run = {.plan = whole.plan, .arena = attn_arena_create(attn_gradient_plan_bytes(&whole.plan, 1))};
        attn_error err = {0};
        const attn_status status = attn_gradient_run(&run.plan, NULL, &runtime, run.arena, &run.result, &err);
        ck_assert(status == ATTN_OK || (status == ATTN_ERR_CANCELLED && err.status == status));
        if (status == ATTN_OK)
            expect_same_gradients(&whole, &run, "finished before it was cancelled");
        finished += status == ATTN_OK;
        cancelled += status == ATTN_ERR_CANCELLED;
        gradient_run_release(&run);
    }
    ck_assert_uint_gt(cancelled, 0);
    gradient_run_release(&whole);
}

/* A layer with everything and several tiles, by softmax and by another mechanism. */
START_TEST(a_run_cancelled_midway_says_so_or_has_finished)
{
    for (size_t number = 5 + 4 * GRADIENT_KINDS; number < GRADIENT_CASES; number += GRADIENT_CASES_OF_SOFTMAX) {
        gradient_case made;
        ck_assert(gradient_case_at(&made, ATTN_F32, number));
        cancel_midway(&made);
        gradient_case_release(&made);
    }
}
END_TEST

static void expect_items_alone(gradient_case *made, size_t batch)
{
    gradient_run all = gradient_run_serial(&made->wanted, NULL);
    const attn_inputs in = made->scene.request.inputs;
    for (size_t b = 0; b < batch; b++) {
        made->scene.request.inputs = (attn_inputs){.query = scene_item(&made->scene, in.query, b),
                                                   .key = scene_item(&made->scene, in.key, b),
                                                   .value = scene_item(&made->scene, in.value, b)};
        attn_gradient_request one = {&made->scene.request, scene_item(&made->scene, made->wanted.grad_output, b), 0};
        gradient_run single = gradient_run_serial(&one, NULL);
        for (int g = ATTN_GRADIENT_QUERY; g <= ATTN_GRADIENT_VALUE; g++)
            expect_same_bytes(scene_item(&made->scene, &all.result.gradient[g], b), &single.result.gradient[g], "item");
        gradient_run_release(&single);
    }
    gradient_run_release(&all);
}

/* Neighbours in a batch do not change an item. */
START_TEST(a_batch_of_two_is_two_single_requests)
{
    const scene_size n = {2, 4, 2, 140, 300, 8, 5};
    for (size_t variant = 0; variant < 3; variant++) {
        gradient_case made = {.scene = scene_create(ATTN_F32, 3)};
        scene_attention(&made.scene, &n);
        made.scene.request.masks.causal = variant > 0;
        if (variant > 0)
            gradient_add_mechanism(&made.scene, variant);
        made.wanted = gradient_ask(&made.scene);
        expect_items_alone(&made, n.batch);
        gradient_case_release(&made);
    }
}
END_TEST

CHECK_MAIN("gradient_run")
{
    tcase_add_test(tests, threads_do_not_change_a_byte);
    tcase_add_test(tests, the_order_of_tasks_does_not_change_a_byte);
    tcase_add_test(tests, each_gradient_alone_is_as_among_all);
    tcase_add_test(tests, the_forward_steps_are_those_of_a_plain_run);
    tcase_add_test(tests, selections_of_the_scores_are_slices_of_the_whole);
    tcase_add_test(tests, without_keys_the_gradient_of_queries_is_zero);
    tcase_add_test(tests, without_tokens_gradients_do_not_show_the_memory);
    tcase_add_test(tests, an_arena_too_small_is_a_clean_refusal);
    tcase_add_test(tests, without_maps_no_memory_grows_with_queries_times_keys);
    tcase_add_test(tests, what_cannot_be_differentiated_is_refused);
    tcase_add_test(tests, what_a_mechanism_does_not_have_is_refused);
    tcase_add_test(tests, names_lead_to_their_gradients_and_back);
    tcase_add_test(tests, a_run_cancelled_midway_says_so_or_has_finished);
    tcase_add_test(tests, a_batch_of_two_is_two_single_requests);
}
