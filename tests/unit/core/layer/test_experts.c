/* test_experts.c: tests core/src/layer/experts.c through attn_plan_run, against its equation in double. */
#include <math.h>
#include <stdlib.h>

#include "attn/gradient.h"
#include "check_main.h"
#include "closeness.h"
#include "gemm/gemm.h"
#include "naive_attention.h"
#include "scene.h"

enum { WIDTH = 12, HIDDEN = 20, OF_EXPERT = 9, EXPERTS = 5 };

static const scene_size size = {2, 4, 2, 7, 7, 3, 3};

/* What a block has beside its experts, and how they are. */
struct arrangement {
    size_t per_token;
    bool is_normalised, has_pairs, is_limited, is_gated, has_shared, has_shared_gate, is_out_in;
};

static attn_affine affine(test_scene *scene, double deviation, size_t in, size_t out, bool is_out_in)
{
    return (attn_affine){.weight = is_out_in ? scene_normal(scene, deviation, SHAPE(out, in))
                                             : scene_normal(scene, deviation, SHAPE(in, out)),
                         .bias = scene_normal(scene, 0.5, SHAPE(out))};
}

static void add_experts(test_scene *scene, const struct arrangement *a)
{
    attn_feed_forward_weights *w = &scene->request.weights.feed_forward;
    attn_expert *each = scene_memory(scene, EXPERTS * sizeof *each);
    for (size_t e = 0; e < EXPERTS; e++) {
        each[e].up = affine(scene, 0.3, WIDTH, a->has_pairs ? 2 * OF_EXPERT : OF_EXPERT, a->is_out_in);
        if (a->is_gated && !a->has_pairs)
            each[e].gate = affine(scene, 0.3, WIDTH, OF_EXPERT, a->is_out_in);
        each[e].down = affine(scene, 0.3, OF_EXPERT, WIDTH, a->is_out_in);
    }
    w->experts = (attn_experts){.router = affine(scene, 0.5, WIDTH, EXPERTS, false),
                                .each = each,
                                .count = EXPERTS,
                                .layout = a->is_out_in ? ATTN_LAYOUT_OUT_IN : ATTN_LAYOUT_IN_OUT};
    if (a->has_shared_gate)
        w->experts.shared_gate = affine(scene, 0.5, WIDTH, 1, false);
    if (!a->has_shared)
        w->up = w->gate = w->down = (attn_affine){.weight = NULL};
    scene->request.options.feed_forward.experts = (attn_expert_options){.per_token = a->per_token,
                                                                        .normalised = a->is_normalised,
                                                                        .pairs = a->has_pairs,
                                                                        .limit = a->is_limited ? 0.4 : 0,
                                                                        .offset = a->is_limited ? 1 : 0};
}

/* A block of self-attention, with residuals and a norm before each part. */
static test_scene block(attn_dtype type, const struct arrangement *a)
{
    test_scene scene = scene_create(type, a->per_token);
    scene_layer(&scene, &size, WIDTH);
    scene_feed_forward(&scene, WIDTH, HIDDEN, ATTN_ACTIVATION_SILU, true);
    attn_request *request = &scene.request;
    request->inputs.key = NULL;
    request->masks.causal = true;
    request->options.residual = true;
    add_experts(&scene, a);
    return scene;
}

/* From the run's own attention_output on, which the network reads. As in test_block.c, 32 roundings bound a network. */
static void expect_mixture_close(const test_run *run, const attn_request *request, unsigned choice)
{
    const double u = unit_roundoff(run->plan.compute);
    double y[WIDTH], network[WIDTH], output[WIDTH], terms[WIDTH];
    for (size_t token = 0; token < size.batch * size.q_len; token++) {
        for (size_t f = 0; f < WIDTH; f++)
            y[f] = tensor_get(&run->result.step[ATTN_STEP_ATTENTION_OUTPUT], token * WIDTH + f);
        naive_feed_forward(request, &run->plan.dims, token / size.q_len, token % size.q_len, y, network, output, terms);
        for (size_t f = 0; f < WIDTH; f++) {
            const double got = tensor_get(&run->result.step[ATTN_STEP_FEED_FORWARD], token * WIDTH + f);
            ck_assert_msg(fabs(got - network[f]) <= 32 * u * terms[f],
                          "arrangement %u: feed_forward is %.17g, not %.17g, at %zu,%zu", choice, got, network[f],
                          token, f);
        }
    }
}

/* The weights of a token fall, and sum to 1 if they are normalised. */
static void expect_weights(const test_run *run, const struct arrangement *a)
{
    const attn_tensor *weights = &run->result.expert_weights, *indices = &run->result.expert_indices;
    ck_assert_int_eq(indices->rank, 3);
    ck_assert_uint_eq(indices->shape[2], a->per_token);
    for (size_t token = 0; token < size.batch * size.q_len; token++) {
        double sum = 0;
        for (size_t r = 0; r < a->per_token; r++) {
            const double weight = tensor_get(weights, token * a->per_token + r);
            ck_assert(r == 0 || weight <= tensor_get(weights, token * a->per_token + r - 1));
            ck_assert(((const int64_t *)indices->data)[token * a->per_token + r] < EXPERTS);
            sum += weight;
        }
        ck_assert(!a->is_normalised || fabs(sum - 1) < 1e-6);
    }
}

START_TEST(every_arrangement_meets_its_equation)
{
    for (unsigned choice = 0; choice < 256; choice++) {
        const struct arrangement a = {.per_token = 1 + choice % EXPERTS,
                                      .is_normalised = choice & 1,
                                      .has_pairs = (choice & 2) != 0,
                                      .is_limited = (choice & 4) != 0,
                                      .is_gated = (choice & 8) != 0 || (choice & 4) != 0,
                                      .has_shared = (choice & 16) != 0,
                                      .has_shared_gate = (choice & 48) == 48,
                                      .is_out_in = (choice & 64) != 0};
        test_scene scene = block(choice & 128 ? ATTN_F64 : ATTN_F32, &a);
        const attn_kernel *kernel;
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            test_run run = run_kernel(&scene.request, kernel, scene_every_step(&scene.request));
            expect_mixture_close(&run, &scene.request, choice);
            expect_weights(&run, &a);
            run_release(&run);
        }
        scene_destroy(&scene);
    }
}
END_TEST

static const struct arrangement usual = {.per_token = 2, .is_normalised = true, .is_gated = true};

/* Logits that are all equal: a router of zeros. */
START_TEST(equal_logits_choose_the_lower_index)
{
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        struct arrangement a = usual;
        a.per_token = 3;
        test_scene scene = block((attn_dtype)type, &a);
        attn_affine *router = &scene.request.weights.feed_forward.experts.router;
        *router = (attn_affine){.weight = scene_normal(&scene, 0, SHAPE(WIDTH, EXPERTS))};
        test_run run = run_kernel(&scene.request, attn_kernel_at(0), WANT(OUTPUT));
        for (size_t n = 0; n < size.batch * size.q_len * a.per_token; n++) {
            ck_assert_int_eq(((const int64_t *)run.result.expert_indices.data)[n], (int64_t)(n % a.per_token));
            ck_assert(fabs(tensor_get(&run.result.expert_weights, n) - 1.0 / 3) < 1e-7);
        }
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

/* An item has the same bytes alone as in a batch: what other items choose changes nothing. */
START_TEST(an_item_alone_has_the_same_bytes)
{
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = block((attn_dtype)type, &usual);
        const attn_kernel *kernel;
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            test_run both = run_kernel(&scene.request, kernel, WANT(OUTPUT));
            for (size_t b = 0; b < size.batch; b++) {
                attn_request one = scene.request;
                one.inputs.query = scene_item(&scene, scene.request.inputs.query, b);
                test_run alone = run_kernel(&one, kernel, WANT(OUTPUT));
                expect_same_bytes(&alone.result.step[ATTN_STEP_OUTPUT],
                                  scene_item(&scene, &both.result.step[ATTN_STEP_OUTPUT], b), "output");
                run_release(&alone);
            }
            run_release(&both);
        }
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(threads_change_no_byte)
{
    test_scene scene = block(ATTN_F32, &usual);
    scene.request.options.want = WANT(OUTPUT);
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 3}, NULL);
    ck_assert_ptr_nonnull(pool);
    const attn_runtime runtime = attn_pool_runtime(pool, NULL);
    test_run many = run_request(&scene.request, &runtime), one = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    expect_same_steps(&many, &one, WANT(OUTPUT), "threads");
    run_release(&many);
    run_release(&one);
    attn_pool_destroy(pool);
    scene_destroy(&scene);
}
END_TEST

/* Where the kernel multiplies, a token's bytes do not depend on those behind it, which choose experts, too. */
START_TEST(later_tokens_change_no_byte_of_the_kernel)
{
    test_scene scene = block(ATTN_F32, &usual);
    const attn_kernel *kernel;
    const size_t shape[] = {1, size.q_len - 3, WIDTH};
    attn_request all = scene.request, some = scene.request;
    all.inputs.query = scene_item(&scene, scene.request.inputs.query, 0);
    const attn_tensor first = attn_tensor_view(all.inputs.query->data, ATTN_F32, 3, shape);
    some.inputs.query = &first;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        const attn_runtime runtime = attn_runtime_serial(kernel);
        if (!attn_multiplies_rows_alike(ATTN_F32, &runtime))
            continue;
        test_run longer = run_kernel(&all, kernel, WANT(OUTPUT)), shorter = run_kernel(&some, kernel, WANT(OUTPUT));
        const attn_tensor *of_longer = &longer.result.step[ATTN_STEP_OUTPUT];
        const attn_tensor beginning = attn_tensor_view(of_longer->data, ATTN_F32, 3, shape);
        expect_same_bytes(&beginning, &shorter.result.step[ATTN_STEP_OUTPUT], "the first tokens");
        run_release(&longer);
        run_release(&shorter);
    }
    scene_destroy(&scene);
}
END_TEST

START_TEST(too_little_memory_is_a_clean_refusal)
{
    test_scene scene = block(ATTN_F32, &usual);
    attn_plan plan;
    attn_error err = {0};
    scene.request.options.want = WANT(OUTPUT);
    ck_assert(attn_plan_make(&scene.request, &plan, &err) == ATTN_OK);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    attn_status status = ATTN_ERR_NO_MEMORY;
    size_t refusals = 0;
    for (size_t limit = 1024; status != ATTN_OK; limit += 1024) {
        attn_arena *arena = attn_arena_create(limit);
        attn_result result;
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

START_TEST(there_are_no_gradients)
{
    test_scene scene = block(ATTN_F32, &usual);
    attn_gradient_plan plan;
    attn_error err = {0};
    const attn_gradient_request request = {.request = &scene.request, .grad_output = scene.request.inputs.query};
    ck_assert(attn_gradient_plan_make(&request, &plan, &err) == ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "weights.feed_forward.experts");
    scene_destroy(&scene);
}
END_TEST

START_TEST(wrong_mixtures_are_refused)
{
    test_scene scene = block(ATTN_F32, &usual);
    attn_request *request = &scene.request;
    attn_experts *experts = &request->weights.feed_forward.experts;
    attn_expert_options *own = &request->options.feed_forward.experts;
    attn_expert *each = (attn_expert *)(uintptr_t)experts->each;
    static const char per_token[] = "options.feed_forward.experts.per_token";
    own->per_token = EXPERTS + 1;
    expect_refusal(request, ATTN_ERR_VALUE, per_token, "1 to 5");
    own->per_token = 0;
    expect_refusal(request, ATTN_ERR_VALUE, per_token, "1 to 5");
    own->per_token = 1;
    own->limit = NAN;
    expect_refusal(request, ATTN_ERR_VALUE, "options.feed_forward.experts.limit", "finite");
    own->limit = 0;
    experts->count = EXPERTS - 1;
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.experts.router.weight", "5 experts");
    experts->count = EXPERTS;
    const attn_expert last = each[EXPERTS - 1];
    each[EXPERTS - 1].gate = (attn_affine){.weight = NULL};
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.experts", "a gate as expert 0");
    each[EXPERTS - 1] = last;
    each[EXPERTS - 1].down.weight = scene_normal(&scene, 1, SHAPE(1, OF_EXPERT, WIDTH));
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.experts.each.4.up", "rank 2");
    each[EXPERTS - 1] = last;
    experts->shared_gate = experts->router;
    expect_refusal(request, ATTN_ERR_FIELD, "weights.feed_forward.experts.shared_gate", "weights.feed_forward.up");
    experts->shared_gate = (attn_affine){.weight = NULL};
    own->pairs = true;
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.feed_forward.experts.each.0.up.weight", "even number");
    experts->count = 0;
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("experts")
{
    tcase_add_test(tests, every_arrangement_meets_its_equation);
    tcase_add_test(tests, equal_logits_choose_the_lower_index);
    tcase_add_test(tests, an_item_alone_has_the_same_bytes);
    tcase_add_test(tests, threads_change_no_byte);
    tcase_add_test(tests, later_tokens_change_no_byte_of_the_kernel);
    tcase_add_test(tests, too_little_memory_is_a_clean_refusal);
    tcase_add_test(tests, there_are_no_gradients);
    tcase_add_test(tests, wrong_mixtures_are_refused);
}
