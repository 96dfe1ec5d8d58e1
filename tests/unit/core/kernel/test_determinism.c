/*
 * test_determinism.c: the same request gives the same bytes, independent of the wanted steps, the threads, and the
 * other items of the batch.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "mask_cases.h"
#include "scene.h"

static const scene_size sizes[] = {
    {1, 1, 1, 1, 1, 3, 2},
    {1, 1, 1, 1, 1030, 16, 8},
    {2, 3, 1, 49, 517, 8, 5},
    {1, 2, 2, 400, 70, 4, 17},
    /* few queries of heads that share their keys; one task may take several heads */
    {2, 8, 2, 1, 2100, 16, 8},
    {1, 6, 1, 2, 37, 20, 7},
    {1, 16, 2, 1, 530, 65, 130},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* A request of every kind: attention with each mask in turn, and layers with norm, residual and dropout. */
static test_scene varied_scene_of(size_t variant, const scene_size *n)
{
    test_scene scene = scene_create(variant % 3 == 0 ? ATTN_F64 : ATTN_F32, variant);
    size_t masks = 0;
    while (mask_case_at(masks) != NULL)
        masks++;
    if (variant % 2 == 0) {
        scene_attention(&scene, n);
    } else {
        scene_layer(&scene, n, 20);
        scene.request.options.residual = variant % 4 == 1;
        scene.request.options.norm = (attn_norm_type)(variant % 3);
        scene.request.options.norm_eps = 1e-5;
        scene.request.options.norm_position = variant % 8 < 4 ? ATTN_NORM_PRE : ATTN_NORM_POST;
    }
    if (variant % 5 == 0) {
        scene.request.options.dropout = 0.3;
        scene.request.options.dropout_seed = variant;
        scene.request.options.dropout_attention = true;
        scene.request.options.dropout_residual = scene.request.is_layer;
    }
    if (variant % 3 == 1)
        scene_turn(&scene, n, variant / 3);
    mask_case_at(variant % masks)->apply(&scene, n);
    scene.request.options.bf16_products = variant % 3 != 0 && variant % 4 > 1;
    if (variant % 3 != 1)
        scene_biases(&scene, n, (unsigned)(11 * variant) % 128);
    return scene;
}
enum { VARIANTS = 84 };

static test_scene varied_scene(size_t variant)
{
    return varied_scene_of(variant, &sizes[variant % SIZES]);
}

START_TEST(asking_for_more_does_not_change_the_output)
{
    const attn_kernel *kernel;
    for (size_t variant = 0; variant < VARIANTS; variant++)
        for (size_t k = variant % one_in(3); (kernel = attn_kernel_at(k)) != NULL; k += one_in(3)) {
            test_scene scene = varied_scene(variant);
            attn_steps every = scene_every_step(&scene.request);
            test_run all = run_kernel(&scene.request, kernel, every);
            test_run output = run_kernel(&scene.request, kernel, WANT(OUTPUT));
            expect_same_steps(&output, &all, WANT(OUTPUT), "output alone");
            ck_assert(output.result.max_abs_score == all.result.max_abs_score);
            run_release(&output);
            run_release(&all);
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(each_step_alone_is_as_among_all)
{
    for (size_t variant = 0; variant < VARIANTS; variant += 3 * one_in(2)) {
        test_scene scene = varied_scene(variant);
        attn_steps every = scene_every_step(&scene.request);
        test_run all = run_kernel(&scene.request, NULL, every);
        for (attn_steps step = 1; step <= every; step <<= 1)
            if (every & step) {
                test_run one = run_kernel(&scene.request, NULL, step);
                expect_same_steps(&one, &all, step, "one step alone");
                run_release(&one);
            }
        run_release(&all);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(threads_do_not_change_a_byte)
{
    const size_t threads[] = {1, 2, 3, 8, 64};
    size_t kernels = 0;
    while (attn_kernel_at(kernels) != NULL)
        kernels++;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = threads[t]}, NULL);
        ck_assert_ptr_nonnull(pool);
        attn_runtime runtime = attn_pool_runtime(pool, NULL);
        for (size_t variant = t % one_in(5); variant < VARIANTS; variant += one_in(5)) {
            test_scene scene = varied_scene(variant);
            attn_steps steps = variant % 4 < 2 ? scene_every_step(&scene.request) : WANT(OUTPUT) | WANT(ATTENTION);
            scene.request.options.want = steps;
            runtime.kernel = attn_kernel_at(variant % kernels);
            test_run serial = run_kernel(&scene.request, runtime.kernel, steps);
            test_run spread = run_request(&scene.request, &runtime);
            expect_same_steps(&serial, &spread, steps, "threads");
            ck_assert(serial.result.max_abs_score == spread.result.max_abs_score);
            run_release(&serial);
            run_release(&spread);
            scene_destroy(&scene);
        }
        attn_pool_destroy(pool);
    }
}
END_TEST

START_TEST(the_order_of_tasks_does_not_change_a_byte)
{
    const attn_runtime runtime = backward_runtime();
    for (size_t variant = 0; variant < VARIANTS; variant += one_in(5)) {
        test_scene scene = varied_scene(variant);
        attn_steps steps = scene_every_step(&scene.request);
        scene.request.options.want = steps;
        test_run serial = run_kernel(&scene.request, NULL, steps);
        test_run backwards = run_request(&scene.request, &runtime);
        expect_same_steps(&serial, &backwards, steps, "backwards");
        ck_assert_uint_eq(serial.result.empty_rows_listed, backwards.result.empty_rows_listed);
        for (size_t row = 0; row < serial.result.empty_rows_listed; row++)
            ck_assert_mem_eq(&serial.result.empty_rows[row], &backwards.result.empty_rows[row], sizeof(attn_row));
        run_release(&serial);
        run_release(&backwards);
        scene_destroy(&scene);
    }
}
END_TEST

/* Data that a run leaves in the arena must not influence the next run. */
START_TEST(a_used_arena_gives_the_same_bytes)
{
    attn_arena *arena = attn_arena_create((size_t)1 << 30);
    attn_runtime runtime = attn_runtime_serial(NULL);
    for (size_t variant = 0; variant < VARIANTS; variant += one_in(5)) {
        test_scene scene = varied_scene(variant);
        attn_steps steps = scene_every_step(&scene.request);
        scene.request.options.want = steps;
        test_run fresh = run_request(&scene.request, &runtime), used = fresh;
        attn_arena_reset(arena);
        size_t size = attn_plan_bytes(&fresh.plan, 1);
        memset(attn_arena_take(arena, size, 1), 0xff, size); /* NaN wherever it is read as a number */
        attn_arena_reset(arena);
        ck_assert_int_eq(attn_plan_run(&used.plan, NULL, &runtime, arena, &used.result, NULL), ATTN_OK);
        expect_same_steps(&fresh, &used, steps, "used arena");
        run_release(&fresh);
        scene_destroy(&scene);
    }
    attn_arena_destroy(arena);
}
END_TEST

/* ---- batch ---- */

static const attn_tensor *item_of(test_scene *scene, const attn_tensor *tensor, size_t b)
{
    return tensor == NULL ? NULL : scene_item(scene, tensor, b);
}

/* Item b of a step; (1, …) like that of a run of its own. */
static void expect_item_same(test_scene *scene, const test_run *batch, const test_run *single, size_t b,
                             attn_steps steps, const char *what)
{
    for (attn_step step = 0; step < ATTN_STEP_COUNT; step++)
        if (steps >> step & 1) {
            char name[160];
            snprintf(name, sizeof name, "%s, item %zu: %s", what, b, attn_step_name(step));
            expect_same_bytes(scene_item(scene, &batch->result.step[step], b), &single->result.step[step], name);
        }
}

static void expect_items_same(test_scene *scene, size_t batch, const char *what)
{
    const attn_request whole = scene->request;
    attn_steps steps = scene_every_step(&whole);
    test_run run = run_kernel(&whole, NULL, steps);
    for (size_t b = 0; b < batch; b++) {
        attn_request *one = &scene->request;
        one->inputs = (attn_inputs){.query = item_of(scene, whole.inputs.query, b),
                                    .key = item_of(scene, whole.inputs.key, b),
                                    .value = item_of(scene, whole.inputs.value, b),
                                    .past_key = item_of(scene, whole.inputs.past_key, b),
                                    .past_value = item_of(scene, whole.inputs.past_value, b)};
        one->masks.padding = item_of(scene, whole.masks.padding, b);
        one->masks.key_lengths = item_of(scene, whole.masks.key_lengths, b);
        one->masks.offset = item_of(scene, whole.masks.offset, b);
        if (whole.masks.bias != NULL && whole.masks.bias->rank == 4)
            one->masks.bias = item_of(scene, whole.masks.bias, b);
        test_run single = run_kernel(one, NULL, steps);
        expect_item_same(scene, &run, &single, b, steps, what);
        run_release(&single);
    }
    scene->request = whole;
    run_release(&run);
}

static void mask_items(test_scene *scene, const scene_size *n)
{
    attn_masks *masks = &scene->request.masks;
    masks->padding = scene_coins(scene, 0.7, SHAPE(n->batch, n->kv_len));
    masks->key_lengths = scene_integers(scene, (const int64_t[]){(int64_t)n->kv_len, 3, 0}, SHAPE(3));
    masks->causal = true;
    masks->offset = scene_integers(scene, (const int64_t[]){-1, 2, (int64_t)n->kv_len}, SHAPE(3));
    masks->bias = scene_normal(scene, 1, SHAPE(n->batch, n->heads, 1, n->kv_len));
}

START_TEST(a_batch_of_n_is_n_single_requests)
{
    const scene_size batches[] = {
        {3, 2, 1, 50, 517, 8, 5}, {3, 4, 4, 1, 9, 16, 16}, {3, 8, 2, 1, 70, 33, 15}, {3, 1, 1, 140, 5, 3, 1}};
    for (size_t s = 0; s < sizeof batches / sizeof *batches; s++)
        for (int kind = 0; kind < 4; kind++) {
            test_scene scene = scene_create(kind & 1 ? ATTN_F64 : ATTN_F32, s);
            if (kind & 2)
                scene_layer(&scene, &batches[s], 70);
            else
                scene_attention(&scene, &batches[s]);
            expect_items_same(&scene, 3, "no mask");
            mask_items(&scene, &batches[s]);
            expect_items_same(&scene, 3, "masks");
            scene_turn(&scene, &batches[s], 3);
            expect_items_same(&scene, 3, "norm, rotation, cache");
            scene_destroy(&scene);
        }
}
END_TEST

/* ---- selections ---- */

/* Element (b, s_h, s_i, s_j) of a selected map against the whole one. */
static void expect_slice(const attn_request *request, const test_run *whole, const test_run *part, attn_step step)
{
    const attn_options *o = &request->options;
    const attn_tensor *all = &whole->result.step[step], *some = &part->result.step[step];
    bool has_heads = step != ATTN_STEP_ATTENTION_MEAN;
    size_t heads = has_heads ? all->shape[1] : 1, q_len = all->shape[all->rank - 2], kv_len = all->shape[all->rank - 1];
    size_t kept_heads = has_heads && !attn_selects_all(&o->heads) ? o->heads.count : heads;
    size_t kept_queries = !attn_selects_all(&o->queries) ? o->queries.count : q_len;
    size_t kept_keys = !attn_selects_all(&o->keys) ? o->keys.count : kv_len;
    ck_assert_uint_eq(attn_tensor_count(some), all->shape[0] * kept_heads * kept_queries * kept_keys);
    for (size_t at = 0; at < attn_tensor_count(some); at++) {
        size_t j = at % kept_keys, i = at / kept_keys % kept_queries, h = at / kept_keys / kept_queries % kept_heads;
        size_t b = at / kept_keys / kept_queries / kept_heads;
        j = !attn_selects_all(&o->keys) ? attn_selected(&o->keys, j) : j;
        i = !attn_selects_all(&o->queries) ? attn_selected(&o->queries, i) : i;
        h = has_heads && !attn_selects_all(&o->heads) ? attn_selected(&o->heads, h) : h;
        double expected = tensor_get(all, ((b * heads + h) * q_len + i) * kv_len + j), got = tensor_get(some, at);
        if (got != expected)
            ck_abort_msg("%s: element %zu is %.17g, not %.17g", attn_step_name(step), at, got, expected);
    }
}

static void expect_selection(size_t variant, const scene_size *size, const attn_selection *some)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        test_scene scene = varied_scene_of(variant, size);
        attn_steps steps = scene_every_step(&scene.request);
        test_run whole = run_kernel(&scene.request, kernel, steps);
        scene.request.options.heads = some[0];
        scene.request.options.queries = some[1];
        scene.request.options.keys = some[2];
        test_run part = run_kernel(&scene.request, kernel, steps);
        attn_steps maps = WANT(ATTENTION_MEAN);
        for (attn_step step = 0; step < ATTN_STEP_COUNT; step++)
            maps |= attn_step_is_map(step) ? ATTN_STEP_BIT(step) : 0;
        for (attn_step step = 0; step < ATTN_STEP_COUNT; step++)
            if (maps & steps & ATTN_STEP_BIT(step))
                expect_slice(&scene.request, &whole, &part, step);
        expect_same_steps(&whole, &part, steps & ~maps, "steps that are no maps");
        run_release(&whole);
        run_release(&part);
        scene_destroy(&scene);
    }
}

START_TEST(selections_are_slices_of_the_whole_map)
{
    static const scene_size many = {2, 3, 1, 49, 517, 8, 5}, few = {2, 6, 2, 2, 517, 8, 5};
    static const size_t heads[] = {2, 0}, queries[] = {1, 0, 7, 47}, keys[] = {512, 3, 511, 516, 0}, nothing[1];
    for (size_t q_len = 2; q_len <= 4; q_len += 2) { /* of the few there are two */
        const attn_selection all = {.count = 0}, no = {.items = nothing};
        const attn_selection two_heads = {.items = heads, .count = 2}, one_head = {.items = heads, .count = 1};
        const attn_selection rows = {.items = queries, .count = q_len}, row = {.items = queries, .count = 1};
        const attn_selection columns = {.items = keys, .count = 5}, column = {.items = keys, .count = 1};
        const attn_selection last_heads = {.count = 2, .first = 1}, first_row = {.count = 1};
        const attn_selection last_columns = {.count = 16, .first = 501};
        const attn_selection some[][3] = {
            {two_heads, all, all},    {all, rows, all},
            {all, all, columns},      {two_heads, rows, columns},
            {one_head, row, column},  {no, all, all},
            {all, no, all},           {all, all, no},
            {last_heads, all, all},   {all, first_row, all},
            {all, all, last_columns}, {last_heads, first_row, last_columns},
        };
        for (size_t s = 0; s < sizeof some / sizeof *some; s++)
            expect_selection(2 + 4 * s, q_len == 2 ? &few : &many, some[s]);
    }
}
END_TEST

/* ---- stopping ---- */

static bool always(void *context)
{
    (void)context;
    return true;
}

static bool after_some_looks(void *context)
{
    return atomic_fetch_sub((atomic_int *)context, 1) <= 0;
}

START_TEST(a_cancelled_run_says_so)
{
    for (size_t variant = 0; variant < 8; variant++) {
        test_scene scene = varied_scene(variant);
        scene.request.options.want = WANT(OUTPUT) | WANT(ATTENTION);
        attn_runtime runtime = attn_runtime_serial(NULL);
        runtime.is_cancelled = always;
        attn_plan plan;
        attn_result result;
        attn_error err = {0};
        ck_assert_int_eq(attn_plan_make(&scene.request, &plan, &err), ATTN_OK);
        attn_arena *arena = attn_arena_create(attn_plan_bytes(&plan, 1));
        ck_assert_int_eq(attn_plan_run(&plan, NULL, &runtime, arena, &result, &err), ATTN_ERR_CANCELLED);
        ck_assert_int_eq(err.status, ATTN_ERR_CANCELLED);
        attn_arena_destroy(arena);
        scene_destroy(&scene);
    }
}
END_TEST

/* Cancels at each check in turn: the run reports it, or it had finished and the result is complete. */
START_TEST(a_run_cancelled_midway_says_so_or_has_finished)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, NULL);
    test_scene scene = varied_scene(9);
    scene.request.options.want = WANT(OUTPUT);
    test_run whole = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    size_t finished = 0, cancelled = 0;
    for (int looks = 0; looks < 200; looks += 3) {
        atomic_int left = looks;
        attn_runtime runtime = attn_pool_runtime(pool, NULL);
        runtime.is_cancelled = after_some_looks;
        runtime.cancel_context = &left;
        test_run run = {.plan = whole.plan, .arena = attn_arena_create(attn_plan_bytes(&whole.plan, 2))};
        attn_status status = attn_plan_run(&run.plan, NULL, &runtime, run.arena, &run.result, NULL);
        ck_assert(status == ATTN_OK || status == ATTN_ERR_CANCELLED);
        if (status == ATTN_OK)
            expect_same_steps(&whole, &run, WANT(OUTPUT), "finished before it was cancelled");
        finished += status == ATTN_OK;
        cancelled += status == ATTN_ERR_CANCELLED;
        run_release(&run);
    }
    ck_assert_uint_gt(cancelled, 0);
    ck_assert_uint_gt(finished, 0);
    run_release(&whole);
    scene_destroy(&scene);
    attn_pool_destroy(pool);
}
END_TEST

/* A layer of some 6400 tokens: the norm before it, or none. */
static test_scene long_layer(attn_norm_type norm)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_layer(&scene, &(scene_size){2, 1, 1, 3201, 5, 4, 4}, 8);
    scene.request.options.norm = norm;
    scene.request.options.norm_position = ATTN_NORM_PRE;
    scene.request.options.norm_eps = 1e-5;
    return scene;
}

static bool count_look(void *context)
{
    ++*(size_t *)context;
    return false;
}

static size_t looks_of(attn_norm_type norm)
{
    test_scene scene = long_layer(norm);
    size_t looks = 0;
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = count_look;
    runtime.cancel_context = &looks;
    attn_plan plan;
    attn_result result;
    ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
    attn_arena *arena = attn_arena_create(attn_plan_bytes(&plan, 1));
    ck_assert_int_eq(attn_plan_run(&plan, NULL, &runtime, arena, &result, NULL), ATTN_OK);
    attn_arena_destroy(arena);
    scene_destroy(&scene);
    return looks;
}

START_TEST(a_norm_looks_before_each_64_tokens)
{
    ck_assert_uint_eq(looks_of(ATTN_NORM_LAYER) - looks_of(ATTN_NORM_NONE), (2 * 3201 + 63) / 64);
}
END_TEST

struct watch {
    size_t runs, tasks; /* calls of run, and the tasks of the first */
};

static void run_and_watch(void *context, size_t tasks, attn_task *task, void *argument)
{
    struct watch *watch = context;
    if (watch->runs++ == 0)
        watch->tasks = tasks;
    for (size_t t = tasks; t-- > 0;)
        task(argument, t, 0);
}

/* The runtime is given the norm in pieces, which any thread may take in any order. */
START_TEST(a_norm_before_the_layer_is_spread)
{
    test_scene scene = long_layer(ATTN_NORM_RMS);
    test_run whole = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    struct watch watch = {0};
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.run = run_and_watch;
    runtime.context = &watch;
    test_run run = {.plan = whole.plan, .arena = attn_arena_create(attn_plan_bytes(&whole.plan, 1))};
    ck_assert_int_eq(attn_plan_run(&run.plan, NULL, &runtime, run.arena, &run.result, NULL), ATTN_OK);
    ck_assert_uint_eq(watch.tasks, (2 * 3201 + 63) / 64);
    expect_same_steps(&whole, &run, WANT(OUTPUT), "the norm in pieces");
    run_release(&run);
    run_release(&whole);
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("determinism")
{
    tcase_add_test(tests, asking_for_more_does_not_change_the_output);
    tcase_add_test(tests, each_step_alone_is_as_among_all);
    tcase_add_test(tests, threads_do_not_change_a_byte);
    tcase_add_test(tests, the_order_of_tasks_does_not_change_a_byte);
    tcase_add_test(tests, a_used_arena_gives_the_same_bytes);
    tcase_add_test(tests, a_batch_of_n_is_n_single_requests);
    tcase_add_test(tests, selections_are_slices_of_the_whole_map);
    tcase_add_test(tests, a_cancelled_run_says_so);
    tcase_add_test(tests, a_run_cancelled_midway_says_so_or_has_finished);
    tcase_add_test(tests, a_norm_looks_before_each_64_tokens);
    tcase_add_test(tests, a_norm_before_the_layer_is_spread);
}
