/* test_block.c: tests core/src/layer/branches.c through attn_plan_run, against its equations in double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attn/panels.h"
#include "check_main.h"
#include "closeness.h"
#include "plan_stage.h"

enum { WIDTH = 12, HIDDEN = 20, WIDEST = 17 };

static const scene_size size = {2, 4, 2, 5, 5, 3, 3};

/* A block of self-attention, with residuals and a norm before each part. */
static test_scene block(attn_dtype type, attn_activation activation, bool is_gated)
{
    test_scene scene = scene_create(type, (uint64_t)activation);
    scene_layer(&scene, &size, WIDTH);
    scene_feed_forward(&scene, WIDTH, HIDDEN, activation, is_gated);
    attn_request *request = &scene.request;
    request->inputs.key = NULL;
    request->masks.causal = true;
    request->weights.norm = (attn_affine){.weight = scene_normal(&scene, 1, SHAPE(WIDTH))};
    request->options.residual = true;
    request->options.norm = ATTN_NORM_RMS;
    request->options.norm_eps = 1e-6;
    request->options.norm_position = ATTN_NORM_PRE;
    return scene;
}

/*
 * From the run's own attention_output on. 32 roundings of the largest terms bound the network: those of a norm, of sums
 * in runs of 256 features, of an activation, of a product. The output adds a residual, a norm or a factor, with results
 * near 1.
 */
static void expect_network_close(const test_run *run, const attn_request *request, const char *what)
{
    const double u = unit_roundoff(run->plan.compute);
    const attn_dims *n = &run->plan.dims;
    const size_t d = n->d_out;
    double y[WIDEST], network[WIDEST], output[WIDEST], terms[WIDEST];
    for (size_t token = 0; token < size.batch * size.q_len; token++) {
        for (size_t f = 0; f < n->d_attended; f++)
            y[f] = tensor_get(&run->result.step[ATTN_STEP_ATTENTION_OUTPUT], token * n->d_attended + f);
        naive_feed_forward(request, n, token / size.q_len, token % size.q_len, y, network, output, terms);
        for (size_t f = 0; f < d; f++) {
            const double got = tensor_get(&run->result.step[ATTN_STEP_FEED_FORWARD], token * d + f);
            const double got_output = tensor_get(&run->result.step[ATTN_STEP_OUTPUT], token * d + f);
            ck_assert_msg(fabs(got - network[f]) <= 32 * u * terms[f], "%s: feed_forward is %.17g, not %.17g", what,
                          got, network[f]);
            ck_assert_msg(fabs(got_output - output[f]) <= 512 * u * (1 + fabs(output[f])),
                          "%s: output is %.17g, not %.17g", what, got_output, output[f]);
        }
    }
}

/* The output of the same layer without a network is the step attention_output, byte by byte. */
static void expect_attention_unchanged(const test_run *run, const attn_request *request, const attn_kernel *kernel)
{
    attn_request alone = *request;
    alone.weights.feed_forward = (attn_feed_forward_weights){0};
    alone.options.feed_forward = (attn_feed_forward_options){0};
    test_run layer = run_kernel(&alone, kernel, WANT(OUTPUT));
    expect_same_bytes(&run->result.step[ATTN_STEP_ATTENTION_OUTPUT], &layer.result.step[ATTN_STEP_OUTPUT],
                      "attention_output");
    run_release(&layer);
}

static void expect_block_close(const attn_request *request, const char *what)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        test_run run = run_kernel(request, kernel, scene_every_step(request));
        expect_network_close(&run, request, what);
        expect_attention_unchanged(&run, request, kernel);
        run_release(&run);
    }
}

START_TEST(every_activation_meets_its_equation)
{
    for (int activation = ATTN_ACTIVATION_RELU; activation <= ATTN_ACTIVATION_SILU; activation++)
        for (int variant = 0; variant < 4; variant++) {
            test_scene scene =
                block(variant & 1 ? ATTN_F64 : ATTN_F32, (attn_activation)activation, (variant & 2) != 0);
            expect_block_close(&scene.request, "activation");
            scene_destroy(&scene);
        }
}
END_TEST

/* Without the residual, down may give another width. A post-norm and the norm of the branch have that width. */
static void give_width(test_scene *scene, size_t width)
{
    attn_feed_forward_weights *w = &scene->request.weights.feed_forward;
    attn_feed_forward_options *own = &scene->request.options.feed_forward;
    own->parallel = own->residual = false;
    w->down.weight = scene_normal(scene, 0.2, SHAPE(HIDDEN, width));
    w->down.bias = scene_normal(scene, 0.5, SHAPE(width));
    if (own->norm != ATTN_NORM_NONE && own->position == ATTN_NORM_POST) {
        w->norm.weight = scene_normal(scene, 1, SHAPE(width));
        w->norm.bias = scene_normal(scene, 1, SHAPE(width));
    }
}

/*
 * Position, residuals, norms with and without gains, biases, branch norms, factor, parallel and another width of the
 * output, in every combination.
 */
START_TEST(every_arrangement_meets_its_equation)
{
    for (unsigned choice = 0; choice < 512; choice++) {
        test_scene scene = block(choice & 1 ? ATTN_F64 : ATTN_F32, ATTN_ACTIVATION_GELU, (choice & 2) != 0);
        attn_request *request = &scene.request;
        attn_feed_forward_options *own = &request->options.feed_forward;
        attn_feed_forward_weights *w = &request->weights.feed_forward;
        own->residual = (choice & 16) != 0;
        own->parallel = own->residual && choice & 4;
        own->position = choice & 8 && !own->parallel ? ATTN_NORM_POST : ATTN_NORM_PRE;
        request->options.norm_position = own->position;
        const size_t width = own->residual || !(choice & 4) ? WIDTH : choice & 2 ? WIDEST : 7;
        if (choice & 64) {
            own->norm = ATTN_NORM_NONE;
            w->norm = (attn_affine){0};
        }
        if (width != WIDTH)
            give_width(&scene, width);
        if (choice & 32)
            w->up.bias = w->down.bias = w->norm.bias = NULL;
        if (choice & 128) {
            request->options.branch_norm = ATTN_NORM_RMS;
            request->options.branch_norm_eps = 1e-6;
            w->branch_norm.weight = scene_normal(&scene, 1, SHAPE(width));
            request->weights.branch_norm.weight = scene_normal(&scene, 1, SHAPE(WIDTH));
        }
        if (choice & 256)
            request->options.residual_scale = 0.22;
        char what[32];
        snprintf(what, sizeof what, "choice %u", choice);
        expect_block_close(request, what);
        scene_destroy(&scene);
    }
}
END_TEST

/* Weights in the layout of torch.nn.Linear, transposed copies of the others. */
START_TEST(a_network_that_is_not_added_gives_the_output_its_width)
{
    test_scene scene = block(ATTN_F32, ATTN_ACTIVATION_GELU, false);
    scene.request.options.want = scene_every_step(&scene.request);
    const attn_plan before = planned(&scene.request);
    give_width(&scene, WIDEST);
    const attn_plan plan = planned(&scene.request);
    ck_assert_uint_eq(plan.dims.d_attended, WIDTH);
    ck_assert_uint_eq(plan.dims.d_out, WIDEST);
    const attn_step attended[] = {ATTN_STEP_PROJECTED, ATTN_STEP_RESIDUAL, ATTN_STEP_ATTENTION_OUTPUT};
    for (size_t s = 0; s < sizeof attended / sizeof *attended; s++)
        ck_assert_uint_eq(plan.step[attended[s]].shape[2], WIDTH);
    ck_assert_uint_eq(plan.step[ATTN_STEP_FEED_FORWARD].shape[2], WIDEST);
    ck_assert_uint_eq(plan.step[ATTN_STEP_OUTPUT].shape[2], WIDEST);
    const double tokens = (double)(size.batch * size.q_len);
    ck_assert_double_eq(plan.flops.output_projection, before.flops.output_projection);
    ck_assert_double_eq(plan.flops.feed_forward - before.flops.feed_forward, tokens * 2 * HIDDEN * (WIDEST - WIDTH));
    ck_assert_uint_eq(plan.result_bytes - before.result_bytes,
                      2 * size.batch * size.q_len * (WIDEST - WIDTH) * sizeof(float));
    scene_destroy(&scene);
}
END_TEST

START_TEST(both_layouts_give_one_block)
{
    test_scene scene = block(ATTN_F64, ATTN_ACTIVATION_SILU, true);
    attn_weights *w = &scene.request.weights;
    test_run in_out = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    attn_affine *all[] = {
        &w->query, &w->key, &w->value, &w->output, &w->feed_forward.up, &w->feed_forward.gate, &w->feed_forward.down};
    for (size_t a = 0; a < sizeof all / sizeof *all; a++)
        all[a]->weight = scene_copy(&scene, scene_transposed(&scene, all[a]->weight));
    w->layout = ATTN_LAYOUT_OUT_IN;
    expect_block_close(&scene.request, "layout out_in");
    test_run out_in = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    for (size_t at = 0; at < attn_tensor_count(&in_out.result.step[ATTN_STEP_OUTPUT]); at++)
        ck_assert_double_eq_tol(tensor_get(&in_out.result.step[ATTN_STEP_OUTPUT], at),
                                tensor_get(&out_in.result.step[ATTN_STEP_OUTPUT], at), 1e-12);
    run_release(&in_out);
    run_release(&out_in);
    scene_destroy(&scene);
}
END_TEST

/* Every subset of the steps that blocks add gives the same bytes, within the bytes of its plan. */
START_TEST(what_is_kept_changes_no_byte)
{
    for (unsigned choice = 0; choice < 16; choice++) {
        test_scene scene = block(ATTN_F32, ATTN_ACTIVATION_GELU_TANH, (choice & 1) != 0);
        attn_feed_forward_options *own = &scene.request.options.feed_forward;
        own->residual = (choice & 8) != 0;
        own->parallel = own->residual && choice & 2;
        own->position = choice & 4 && !own->parallel ? ATTN_NORM_POST : ATTN_NORM_PRE;
        if (!own->residual && choice & 2)
            give_width(&scene, choice & 1 ? WIDEST : 7);
        test_run all = run_kernel(&scene.request, NULL, scene_every_step(&scene.request));
        const attn_steps steps[] = {WANT(PROJECTED), WANT(RESIDUAL), WANT(ATTENTION_OUTPUT), WANT(FEED_FORWARD),
                                    WANT(OUTPUT)};
        for (unsigned subset = 1; subset < 32; subset++) {
            attn_steps want = 0;
            for (unsigned s = 0; s < 5; s++)
                want |= subset >> s & 1 ? steps[s] : 0;
            test_run some = run_kernel(&scene.request, NULL, want);
            expect_same_steps(&all, &some, want, "a subset of the steps");
            run_release(&some);
        }
        run_release(&all);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(threads_and_neighbours_change_no_byte)
{
    test_scene scene = block(ATTN_F32, ATTN_ACTIVATION_GELU, true);
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 3}, NULL);
    ck_assert_ptr_nonnull(pool);
    scene.request.options.want = WANT(OUTPUT);
    const attn_runtime runtime = attn_pool_runtime(pool, NULL);
    test_run many = run_request(&scene.request, &runtime), one = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    expect_same_steps(&many, &one, WANT(OUTPUT), "threads");
    for (size_t b = 0; b < size.batch; b++) {
        attn_request item = scene.request;
        item.inputs.query = scene_item(&scene, scene.request.inputs.query, b);
        test_run alone = run_kernel(&item, NULL, WANT(OUTPUT));
        const attn_tensor *of_batch = scene_item(&scene, &one.result.step[ATTN_STEP_OUTPUT], b);
        expect_same_bytes(of_batch, &alone.result.step[ATTN_STEP_OUTPUT], "an item alone");
        run_release(&alone);
    }
    run_release(&many);
    run_release(&one);
    attn_pool_destroy(pool);
    scene_destroy(&scene);
}
END_TEST

START_TEST(panels_change_no_byte)
{
    test_scene scene = block(ATTN_F32, ATTN_ACTIVATION_GELU, true);
    attn_feed_forward_weights *w = &scene.request.weights.feed_forward;
    const attn_runtime runtime = attn_runtime_serial(NULL);
    test_run plain = run_kernel(&scene.request, runtime.kernel, WANT(OUTPUT));
    attn_affine *all[] = {&w->up, &w->gate, &w->down};
    for (size_t a = 0; a < 3; a++) {
        const size_t bytes = attn_panels_bytes(runtime.kernel, ATTN_LAYOUT_IN_OUT, all[a]->weight);
        if (bytes == 0)
            continue;
        struct attn_panels *panels = scene_memory(&scene, sizeof *panels);
        void *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
        ck_assert_ptr_nonnull(data);
        attn_panels_write(&runtime, ATTN_LAYOUT_IN_OUT, all[a]->weight, data);
        *panels = (struct attn_panels){.kernel = runtime.kernel, .layout = ATTN_LAYOUT_IN_OUT, .data = data};
        ((attn_tensor *)(uintptr_t)all[a]->weight)->panels = panels;
    }
    test_run packed = run_kernel(&scene.request, runtime.kernel, WANT(OUTPUT));
    expect_same_steps(&plain, &packed, WANT(OUTPUT), "panels");
    run_release(&plain);
    run_release(&packed);
    for (size_t a = 0; a < 3; a++)
        if (all[a]->weight->panels != NULL)
            free((void *)(uintptr_t)all[a]->weight->panels->data);
    scene_destroy(&scene);
}
END_TEST

/* ---- a decoder layer: self-attention, and then a block that attends to the output of an encoder ---- */

START_TEST(a_decoder_layer_is_two_requests)
{
    test_scene self = block(ATTN_F64, ATTN_ACTIVATION_RELU, false);
    test_scene cross = block(ATTN_F64, ATTN_ACTIVATION_RELU, false);
    self.request.weights.feed_forward = (attn_feed_forward_weights){0};
    self.request.options.feed_forward = (attn_feed_forward_options){0};
    cross.request.masks.causal = false;
    cross.request.inputs.key = scene_normal(&cross, 1, SHAPE(size.batch, 7, WIDTH));
    test_run first = run_kernel(&self.request, NULL, WANT(OUTPUT));
    cross.request.inputs.query = &first.result.step[ATTN_STEP_OUTPUT];
    test_run second = run_kernel(&cross.request, NULL, scene_every_step(&cross.request));
    expect_network_close(&second, &cross.request, "decoder");
    run_release(&second);
    run_release(&first);
    scene_destroy(&cross);
    scene_destroy(&self);
}
END_TEST

/* ---- refusals ---- */

START_TEST(what_a_network_needs_is_asked_for)
{
    test_scene scene = block(ATTN_F32, ATTN_ACTIVATION_GELU, true);
    attn_request *request = &scene.request;
    const attn_request good = *request;
    attn_feed_forward_options *own = &request->options.feed_forward;
    own->activation = ATTN_ACTIVATION_NONE;
    expect_refusal(request, ATTN_ERR_FIELD, "options.feed_forward.activation", "missing");
    own->activation = (attn_activation)17;
    expect_refusal(request, ATTN_ERR_VALUE, "options.feed_forward.activation", "relu");
    *request = good;
    request->weights.feed_forward.down.weight = NULL;
    expect_refusal(request, ATTN_ERR_FIELD, "weights.feed_forward.down.weight", "missing");
    *request = good;
    request->weights.feed_forward.up.weight = NULL;
    expect_refusal(request, ATTN_ERR_FIELD, "weights.feed_forward.up.weight", "missing");
    *request = good;
    request->weights.feed_forward.gate.weight = NULL;
    expect_refusal(request, ATTN_ERR_FIELD, "weights.feed_forward.gate.weight", "missing");
    *request = good;
    request->weights.feed_forward = (attn_feed_forward_weights){0};
    expect_refusal(request, ATTN_ERR_FIELD, "options.feed_forward", "needs weights.feed_forward");
    *own = (attn_feed_forward_options){0};
    request->options.want = WANT(FEED_FORWARD);
    expect_refusal(request, ATTN_ERR_FIELD, "options.want", "weights.feed_forward");
    scene_destroy(&scene);
}
END_TEST

START_TEST(norms_and_positions_that_contradict_each_other_are_refused)
{
    test_scene scene = block(ATTN_F32, ATTN_ACTIVATION_GELU, true);
    attn_request *request = &scene.request;
    const attn_request good = *request;
    attn_feed_forward_options *own = &request->options.feed_forward;
    own->norm = ATTN_NORM_NONE;
    expect_refusal(request, ATTN_ERR_FIELD, "weights.feed_forward.norm.weight", "options.feed_forward.norm");
    own->norm = ATTN_NORM_L2;
    expect_refusal(request, ATTN_ERR_VALUE, "options.feed_forward.norm", "layer or rms");
    *request = good;
    own->norm_eps = -1;
    expect_refusal(request, ATTN_ERR_VALUE, "options.feed_forward.norm_eps", "0 or more");
    *request = good;
    own->parallel = true;
    own->residual = false;
    expect_refusal(request, ATTN_ERR_FIELD, "options.feed_forward.residual", "must be true");
    *request = good;
    own->parallel = true;
    own->position = ATTN_NORM_POST;
    expect_refusal(request, ATTN_ERR_FIELD, "options.feed_forward.position", "must be pre");
    *request = good;
    own->parallel = true;
    request->options.norm_position = ATTN_NORM_POST;
    expect_refusal(request, ATTN_ERR_FIELD, "options.norm_position", "pre");
    *request = good;
    request->weights.branch_norm.weight = scene_normal(&scene, 1, SHAPE(WIDTH));
    expect_refusal(request, ATTN_ERR_FIELD, "weights.branch_norm.weight", "options.branch_norm");
    *request = good;
    request->options.residual_scale = (double)INFINITY;
    expect_refusal(request, ATTN_ERR_VALUE, "options.residual_scale", "finite");
    scene_destroy(&scene);
}
END_TEST

START_TEST(weights_that_do_not_fit_are_refused)
{
    test_scene scene = block(ATTN_F32, ATTN_ACTIVATION_GELU, true);
    attn_request *request = &scene.request;
    const attn_request good = *request;
    attn_feed_forward_weights *w = &request->weights.feed_forward;
    w->up.weight = scene_normal(&scene, 1, SHAPE(WIDTH + 1, HIDDEN));
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.up.weight", "12");
    w->up.weight = scene_normal(&scene, 1, SHAPE(2, WIDTH, HIDDEN));
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.up.weight", "rank 2");
    *request = good;
    w->up.bias = scene_normal(&scene, 1, SHAPE(HIDDEN + 1));
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.up.bias", "20");
    *request = good;
    w->gate.weight = scene_normal(&scene, 1, SHAPE(WIDTH, HIDDEN + 1));
    w->gate.bias = NULL;
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.gate.weight", "equal");
    *request = good;
    w->down.weight = scene_normal(&scene, 1, SHAPE(HIDDEN + 1, WIDTH));
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.down.weight", "20");
    w->down.weight = scene_normal(&scene, 1, SHAPE(HIDDEN, WIDTH + 1));
    w->down.bias = NULL;
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.down.weight", "equal");
    request->options.feed_forward.parallel = true;
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.down.weight", "equal");
    request->options.feed_forward.residual = false;
    expect_refusal(request, ATTN_ERR_FIELD, "options.feed_forward.residual", "must be true");
    request->options.feed_forward.parallel = false;
    request->options.feed_forward.position = ATTN_NORM_POST;
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.norm.weight", "12 numbers, a row has 13");
    *request = good;
    w->norm.weight = scene_normal(&scene, 1, SHAPE(WIDTH + 1));
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.norm.weight", "12");
    scene_destroy(&scene);
}
END_TEST

/* More memory at each try: all earlier ones are clean refusals. */
START_TEST(too_little_memory_is_a_clean_refusal)
{
    test_scene scene = block(ATTN_F32, ATTN_ACTIVATION_GELU, true);
    scene.request.options.want = scene_every_step(&scene.request);
    const attn_plan plan = planned(&scene.request);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    attn_status status = ATTN_ERR_NO_MEMORY;
    size_t refusals = 0;
    for (size_t limit = 1024; status != ATTN_OK; limit += 1024) {
        attn_arena *arena = attn_arena_create(limit);
        attn_result result;
        attn_error err = {0};
        if (arena != NULL)
            status = attn_plan_run(&plan, NULL, &runtime, arena, &result, &err);
        ck_assert(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY);
        refusals += status != ATTN_OK;
        attn_arena_destroy(arena);
    }
    ck_assert_uint_gt(refusals, 0);
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("block")
{
    tcase_add_test(tests, every_activation_meets_its_equation);
    tcase_add_test(tests, every_arrangement_meets_its_equation);
    tcase_add_test(tests, a_network_that_is_not_added_gives_the_output_its_width);
    tcase_add_test(tests, both_layouts_give_one_block);
    tcase_add_test(tests, what_is_kept_changes_no_byte);
    tcase_add_test(tests, threads_and_neighbours_change_no_byte);
    tcase_add_test(tests, panels_change_no_byte);
    tcase_add_test(tests, a_decoder_layer_is_two_requests);
    tcase_add_test(tests, what_a_network_needs_is_asked_for);
    tcase_add_test(tests, norms_and_positions_that_contradict_each_other_are_refused);
    tcase_add_test(tests, weights_that_do_not_fit_are_refused);
    tcase_add_test(tests, too_little_memory_is_a_clean_refusal);
}
