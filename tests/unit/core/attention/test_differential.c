/*
 * test_differential.c: tests pairs of heads: the values that they share in core/src/kernel/scratch.inc.h and
 * core/src/backward/heads.c, and their differences in core/src/layer/head_scale.c and steps.c.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "gradient_cases.h"
#include "scene.h"

enum { VARIANTS = 8 };

/* Few queries and many, groups of one and of several, and more keys than a tile of the backward pass. */
static const scene_size sizes[] = {
    {1, 2, 2, 1, 1, 1, 1}, {2, 4, 2, 5, 7, 3, 2}, {1, 8, 4, 17, 23, 4, 6}, {1, 12, 4, 9, 205, 3, 2}};

/*
 * Attention with pairs of heads; by bits of variant 1 a cache, 2 factors of heads and sinks, 4 a causal mask and a bias of
 * each head.
 */
static void make(gradient_case *made, attn_dtype type, const scene_size *n, size_t variant)
{
    *made = (gradient_case){.scene = scene_create(type, 10 * variant + n->kv_len)};
    test_scene *scene = &made->scene;
    attn_request *request = &scene->request;
    scene_attention(scene, n);
    request->inputs.value = scene_normal(scene, 1, SHAPE(n->batch, n->kv_heads / 2, n->kv_len, n->d_v));
    if (variant & 1 && n->kv_len > 3) {
        scene_past(scene, n, 3);
        request->inputs.past_value = scene_normal(scene, 1, SHAPE(n->batch, n->kv_heads / 2, 3, n->d_v));
    }
    if (variant & 2) {
        request->options.head_scale = scene_normal(scene, 1, SHAPE(n->heads));
        request->options.sinks = scene_normal(scene, 1, SHAPE(n->heads));
    }
    if (variant & 4) {
        request->masks.causal = true;
        request->masks.bias = scene_normal(scene, 1, SHAPE(n->heads, n->q_len, n->kv_len));
    }
    request->options.differential = scene_normal(scene, 1, SHAPE(n->heads / 2));
    snprintf(made->name, sizeof made->name, "differential variant %zu, %zu keys", variant, n->kv_len);
    made->wanted = gradient_ask(scene);
    made->wanted.of = gradient_all_of(&made->wanted);
}

/* (batch, heads, len, d) with each head twice. */
static const attn_tensor *doubled(test_scene *scene, const attn_tensor *x)
{
    if (x == NULL)
        return NULL;
    const size_t each = x->shape[2] * x->shape[3];
    attn_tensor *twice =
        scene_tensor(scene, scene->type, SHAPE(x->shape[0], 2 * x->shape[1], x->shape[2], x->shape[3]));
    for (size_t at = 0; at < attn_tensor_count(twice); at++)
        tensor_set(twice, at, tensor_get(x, at / each / 2 * each + at % each));
    return twice;
}

/* The same heads with values of their own, and no pairs. */
static attn_request without_pairs(test_scene *scene)
{
    attn_request request = scene->request;
    request.inputs.value = doubled(scene, request.inputs.value);
    request.inputs.past_value = doubled(scene, request.inputs.past_value);
    request.options.differential = request.options.head_scale = NULL;
    return request;
}

static double factor_of(const attn_tensor *factors, size_t at)
{
    return factors == NULL ? 1 : tensor_get(factors, at);
}

/* each: numbers of a head in x, (batch, heads, each); d has one head for each pair. scale NULL: 1. */
static void expect_differences(const attn_tensor *d, const attn_tensor *x, size_t each, const attn_options *options,
                               const attn_tensor *scale, const char *name)
{
    const double unit = d->dtype == ATTN_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    const size_t pairs = options->differential->shape[0];
    ck_assert_uint_eq(2 * attn_tensor_count(d), attn_tensor_count(x));
    for (size_t at = 0; at < attn_tensor_count(d); at++) {
        const size_t row = at / each, p = row % pairs, first = 2 * row * each + at % each;
        const double a = factor_of(scale, 2 * p) * tensor_get(x, first);
        const double b =
            factor_of(scale, 2 * p + 1) * tensor_get(options->differential, p) * tensor_get(x, first + each);
        ck_assert_msg(fabs(tensor_get(d, at) - (a - b)) <= 2 * unit * (fabs(a) + fabs(b)),
                      "%s: number %zu is %.17g, not %.17g", name, at, tensor_get(d, at), a - b);
    }
}

/* Both softmaxes have the bits of ordinary heads; outputs and maps are their difference. */
START_TEST(pairs_are_differences_of_ordinary_heads)
{
    for (size_t s = 0; s < 2 * COUNT(sizes); s++) {
        gradient_case made;
        const scene_size *n = &sizes[s / 2];
        make(&made, s % 2 == 0 ? ATTN_F32 : ATTN_F64, n, (size_t)_i);
        test_scene *scene = &made.scene;
        const attn_options *options = &scene->request.options;
        const attn_request ordinary = without_pairs(scene);
        const attn_steps of_values = WANT(V) | WANT(PRESENT_VALUE) | WANT(CONCAT) | WANT(OUTPUT);
        test_run pairs = run_kernel(&scene->request, NULL, scene_every_step(&scene->request) & ~WANT(CONCAT));
        test_run heads = run_kernel(&ordinary, NULL, scene_every_step(&ordinary) & ~WANT(CONCAT));
        expect_same_steps(&heads, &pairs, scene_every_step(&ordinary) & ~of_values, made.name);
        expect_differences(&pairs.result.step[ATTN_STEP_OUTPUT], &heads.result.step[ATTN_STEP_CONTEXT],
                           n->q_len * n->d_v, options, options->head_scale, made.name);
        expect_differences(&pairs.result.step[ATTN_STEP_DIFFERENCE], &heads.result.step[ATTN_STEP_ATTENTION],
                           n->q_len * n->kv_len, options, NULL, made.name);
        run_release(&heads);
        run_release(&pairs);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(asking_for_less_of_pairs_changes_no_byte)
{
    gradient_case made;
    make(&made, ATTN_F32, &sizes[2], (size_t)_i);
    test_run every = run_kernel(&made.scene.request, NULL, scene_every_step(&made.scene.request));
    const attn_steps wants[] = {WANT(OUTPUT), WANT(OUTPUT) | WANT(CONTEXT), WANT(DIFFERENCE) | WANT(CONCAT),
                                WANT(DIFFERENCE) | WANT(ATTENTION_MEAN) | WANT(PRESENT_VALUE)};
    for (size_t w = 0; w < COUNT(wants); w++) {
        test_run some = run_kernel(&made.scene.request, NULL, wants[w]);
        expect_same_steps(&every, &some, wants[w], "some steps");
        run_release(&some);
    }
    run_release(&every);
    gradient_case_release(&made);
}
END_TEST

/* A selection of heads does not apply to pairs; those of queries and keys do. */
START_TEST(the_difference_has_all_pairs_of_selected_queries_and_keys)
{
    gradient_case made;
    const scene_size *n = &sizes[2];
    make(&made, ATTN_F32, n, 0);
    test_run whole = run_kernel(&made.scene.request, NULL, WANT(DIFFERENCE));
    attn_options *options = &made.scene.request.options;
    options->heads = (attn_selection){.first = 5, .count = 1};
    options->queries = (attn_selection){.first = 2, .count = 3};
    options->keys = (attn_selection){.items = (const size_t[]){20, 4}, .count = 2};
    test_run part = run_kernel(&made.scene.request, NULL, WANT(DIFFERENCE) | WANT(ATTENTION));
    const attn_tensor *some = &part.result.step[ATTN_STEP_DIFFERENCE], *all = &whole.result.step[ATTN_STEP_DIFFERENCE];
    ck_assert_uint_eq(attn_tensor_count(some), 4 * 3 * 2);
    for (size_t at = 0; at < attn_tensor_count(some); at++) {
        const size_t row = at / 6 * n->q_len + 2 + at / 2 % 3;
        ck_assert_double_eq(tensor_get(some, at), tensor_get(all, row * n->kv_len + (at % 2 == 0 ? 20 : 4)));
    }
    run_release(&part);
    run_release(&whole);
    gradient_case_release(&made);
}
END_TEST

/* The keys of the second head are NaN throughout. */
START_TEST(a_second_head_times_0_is_left_out_whatever_it_holds)
{
    gradient_case made;
    make(&made, ATTN_F32, &sizes[0], 0);
    attn_tensor *key = scene_copy(&made.scene, made.scene.request.inputs.key);
    attn_tensor *factor = scene_tensor(&made.scene, ATTN_F32, SHAPE(1));
    tensor_set(key, 1, (double)NAN);
    made.scene.request.inputs.key = key;
    made.scene.request.options.differential = factor;
    test_run run = run_kernel(&made.scene.request, NULL, WANT(OUTPUT) | WANT(CONTEXT));
    const attn_tensor *context = &run.result.step[ATTN_STEP_CONTEXT];
    ck_assert(isnan(tensor_get(context, 1)));
    ck_assert_double_eq(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], 0), tensor_get(context, 0));
    run_release(&run);
    gradient_case_release(&made);
}
END_TEST

START_TEST(gradients_of_pairs_agree_with_central_differences)
{
    for (size_t s = 0; s < COUNT(sizes) - (_i % 4 != 3); s++) { /* the long one in turn */
        gradient_case made;
        make(&made, ATTN_F64, &sizes[s], (size_t)_i);
        gradient_run run = gradient_run_serial(&made.wanted, NULL);
        expect_gradients(&made, &run);
        gradient_run_release(&run);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(threads_change_no_byte_of_pairs)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 3}, NULL);
    ck_assert_ptr_nonnull(pool);
    const attn_runtime shared = attn_pool_runtime(pool, NULL), serial_runtime = attn_runtime_serial(NULL);
    for (size_t variant = 0; variant < VARIANTS; variant++) {
        gradient_case made;
        make(&made, ATTN_F32, &sizes[1 + variant % 3], variant);
        made.scene.request.options.want = scene_every_step(&made.scene.request);
        test_run alone = run_request(&made.scene.request, &serial_runtime),
                 together = run_request(&made.scene.request, &shared);
        expect_same_steps(&alone, &together, made.scene.request.options.want, made.name);
        gradient_run serial = gradient_run_serial(&made.wanted, NULL), spread = gradient_run_on(&made.wanted, &shared);
        expect_same_gradients(&serial, &spread, made.name);
        gradient_run_release(&spread);
        gradient_run_release(&serial);
        run_release(&together);
        run_release(&alone);
        gradient_case_release(&made);
    }
    attn_pool_destroy(pool);
}
END_TEST

START_TEST(what_gives_no_pairs_is_refused)
{
    static const char *const field = "options.differential";
    gradient_case made;
    make(&made, ATTN_F32, &sizes[1], 0);
    attn_request request = made.scene.request;
    request.options.differential = scene_normal(&made.scene, 1, SHAPE(4));
    expect_refusal(&request, ATTN_ERR_SHAPE, field, "each pair of heads");
    request = made.scene.request;
    request.inputs.value = scene_normal(&made.scene, 1, SHAPE(2, 2, 7, 2));
    expect_refusal(&request, ATTN_ERR_SHAPE, "inputs.value", "expected 1");
    request = made.scene.request;
    request.inputs.key = scene_normal(&made.scene, 1, SHAPE(2, 1, 7, 3));
    expect_refusal(&request, ATTN_ERR_SHAPE, field, "an even number of them, got 1");
    request = made.scene.request;
    request.options.mechanism.type = ATTN_LINEAR;
    expect_refusal(&request, ATTN_ERR_FIELD, field, "belongs to mechanism softmax");
    request = made.scene.request;
    request.options.differential = NULL;
    request.options.want = WANT(DIFFERENCE);
    request.inputs.value = NULL;
    expect_refusal(&request, ATTN_ERR_FIELD, "options.want", "needs options.differential");
    request = (attn_request){.inputs.scores = scene_normal(&made.scene, 1, SHAPE(2, 3, 3)),
                             .options = {.compute = ATTN_F32, .differential = made.scene.request.options.differential}};
    expect_refusal(&request, ATTN_ERR_FIELD, field, "does not go with scores");
    test_scene layer = scene_create(ATTN_F64, 5);
    scene_layer(&layer, &sizes[1], 6);
    layer.request.options.differential = scene_normal(&layer, 1, SHAPE(2));
    expect_refusal(&layer.request, ATTN_ERR_FIELD, field, "belongs to attention without weights");
    scene_destroy(&layer);
    gradient_case_release(&made);
}
END_TEST

CHECK_MAIN("differential")
{
    tcase_add_loop_test(tests, pairs_are_differences_of_ordinary_heads, 0, VARIANTS);
    tcase_add_loop_test(tests, asking_for_less_of_pairs_changes_no_byte, 0, VARIANTS);
    tcase_add_test(tests, the_difference_has_all_pairs_of_selected_queries_and_keys);
    tcase_add_test(tests, a_second_head_times_0_is_left_out_whatever_it_holds);
    tcase_add_loop_test(tests, gradients_of_pairs_agree_with_central_differences, 0, VARIANTS);
    tcase_add_test(tests, threads_change_no_byte_of_pairs);
    tcase_add_test(tests, what_gives_no_pairs_is_refused);
}
