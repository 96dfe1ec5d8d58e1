/* test_backward_recurrence.c: tests core/src/backward/recurrence.c: gradients through update rules. */
#include "attn/gradient.h"

#include <math.h>
#include <stdio.h>

#include "check_main.h"
#include "gradient_cases.h"

enum { VARIANTS = 64 };

/* The last one has more positions than states that are kept. */
static const scene_size sizes[] = {
    {1, 1, 1, 1, 1, 1, 1}, {2, 4, 2, 5, 5, 3, 2}, {1, 6, 3, 7, 7, 2, 4}, {1, 2, 1, 131, 131, 3, 2}};

static const attn_tensor *tokens(test_scene *scene, const scene_size *n, size_t heads, size_t width, bool is_log)
{
    attn_tensor *x = scene->request.is_layer ? scene_normal(scene, 1, SHAPE(n->batch, n->kv_len, heads * width))
                                             : scene_normal(scene, 1, SHAPE(n->batch, heads, n->kv_len, width));
    for (size_t at = 0; at < attn_tensor_count(x); at++) {
        const double drawn = fabs(tensor_get(x, at));
        tensor_set(x, at, is_log ? -drawn / 4 : 1 / (1 + drawn));
    }
    return x;
}

/* To a length of at most 1, as models with a delta rule have it: the state does not grow. */
static void shorten_keys(test_scene *scene, const scene_size *n)
{
    attn_options *options = &scene->request.options;
    options->qk_norm = scene->request.is_layer ? ATTN_NORM_RMS : ATTN_NORM_L2;
    options->qk_norm_eps = scene->request.is_layer ? 0.5 : 1e-12; /* few tokens in a layer have nearly no length */
    if (!scene->request.is_layer)
        return;
    attn_tensor *gain = scene_tensor(scene, scene->type, SHAPE(n->d_k));
    for (size_t f = 0; f < n->d_k; f++)
        tensor_set(gain, f, 1 / sqrt((double)n->d_k));
    scene->request.weights.key_norm.weight = gain;
}

/* Variant: the rule, and by bits 4 a decay a head, 8 one beta for all heads, 16 a state of before, 32 a layer. */
static void make(gradient_case *made, attn_dtype type, const scene_size *n, size_t variant)
{
    const attn_update_rule rule = (attn_update_rule)(ATTN_RULE_LINEAR + variant % 4);
    *made = (gradient_case){.scene = scene_create(type, 10 * variant + n->kv_len)};
    test_scene *scene = &made->scene;
    attn_request *request = &scene->request;
    if (variant & 32)
        scene_layer(scene, n, 6);
    else
        scene_attention(scene, n);
    shorten_keys(scene, n);
    request->options.mechanism =
        (attn_mechanism){.type = ATTN_LINEAR, .is_identity = true, .is_unnormalised = true, .update_rule = rule};
    if (rule == ATTN_RULE_GATED || rule == ATTN_RULE_GATED_DELTA)
        request->inputs.decay = tokens(scene, n, n->kv_heads, variant & 4 ? 1 : n->d_k, true);
    if (rule == ATTN_RULE_DELTA || rule == ATTN_RULE_GATED_DELTA)
        request->inputs.beta = tokens(scene, n, variant & 8 ? 1 : n->kv_heads, 1, false);
    if (variant & 16)
        request->inputs.past_state = scene_normal(scene, 1, SHAPE(n->batch, n->kv_heads, n->d_k, n->d_v));
    if (variant % 3 == 1)
        request->masks.padding = scene_coins(scene, 0.7, SHAPE(n->batch, n->kv_len));
    snprintf(made->name, sizeof made->name, "variant %zu, %zu positions", variant, n->kv_len);
    made->wanted = gradient_ask(scene);
    made->wanted.of = gradient_all_of(&made->wanted);
}

START_TEST(central_differences_agree)
{
    for (size_t s = 0; s < COUNT(sizes) - (_i % 8 != 3); s++) { /* the long one in turn */
        gradient_case made;
        make(&made, ATTN_F64, &sizes[s], (size_t)_i);
        gradient_run run = gradient_run_serial(&made.wanted, NULL);
        expect_gradients(&made, &run);
        gradient_run_release(&run);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(threads_change_no_byte)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 3}, NULL);
    ck_assert_ptr_nonnull(pool);
    const attn_runtime shared = attn_pool_runtime(pool, NULL);
    for (size_t variant = 0; variant < VARIANTS; variant++) {
        gradient_case made;
        make(&made, ATTN_F32, &sizes[variant % COUNT(sizes)], variant);
        gradient_run serial = gradient_run_serial(&made.wanted, NULL), spread = gradient_run_on(&made.wanted, &shared);
        expect_same_gradients(&serial, &spread, made.name);
        gradient_run_release(&spread);
        gradient_run_release(&serial);
        gradient_case_release(&made);
    }
    attn_pool_destroy(pool);
}
END_TEST

static void spoil_first_rows(const attn_tensor *tensor)
{
    const size_t len = tensor->shape[2], d = tensor->shape[3];
    for (size_t head = 0; head < tensor->shape[0] * tensor->shape[1]; head++)
        for (size_t f = 0; f < d; f++)
            tensor_set((attn_tensor *)(uintptr_t)tensor, head * len * d + f, NAN);
}

START_TEST(a_query_before_any_key_gives_nothing)
{
    const scene_size *n = &sizes[1];
    for (size_t variant = 0; variant < 4; variant++) {
        gradient_case made;
        make(&made, ATTN_F64, n, variant);
        attn_request *request = &made.scene.request;
        attn_tensor *padding = scene_coins(&made.scene, 1, SHAPE(n->batch, n->kv_len));
        for (size_t b = 0; b < n->batch; b++)
            tensor_set(padding, b * n->kv_len, 0);
        request->masks.padding = padding;
        request->options.qk_norm = ATTN_NORM_NONE;
        request->options.has_scale = true;
        request->options.scale = 0.5;
        made.wanted.of = gradient_all_of(&made.wanted);
        gradient_run clean = gradient_run_serial(&made.wanted, NULL);
        spoil_first_rows(request->inputs.query);
        spoil_first_rows(made.wanted.grad_output);
        gradient_run spoilt = gradient_run_serial(&made.wanted, NULL);
        expect_same_gradients(&clean, &spoilt, made.name);
        gradient_run_release(&spoilt);
        gradient_run_release(&clean);
        gradient_case_release(&made);
    }
}
END_TEST

static bool after_some(void *context)
{
    size_t *looks = context;
    return (*looks)++ > 6;
}

START_TEST(a_cancelled_run_says_so)
{
    static const scene_size large = {1, 1, 1, 300, 300, 40, 40};
    gradient_case made;
    make(&made, ATTN_F32, &large, 3);
    attn_gradient_plan plan;
    attn_gradient_result result;
    attn_error err = {0};
    size_t looks = 0;
    ck_assert_int_eq(attn_gradient_plan_make(&made.wanted, &plan, &err), ATTN_OK);
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = after_some;
    runtime.cancel_context = &looks;
    attn_arena *arena = attn_arena_create(attn_gradient_plan_bytes(&plan, 1));
    ck_assert_int_eq(attn_gradient_run(&plan, NULL, &runtime, arena, &result, &err), ATTN_ERR_CANCELLED);
    attn_arena_destroy(arena);
    gradient_case_release(&made);
}
END_TEST

START_TEST(gradients_that_a_recurrence_lacks_are_refused)
{
    gradient_case made;
    make(&made, ATTN_F32, &sizes[1], 0);
    attn_gradient_plan plan;
    attn_error err = {0};
    made.wanted.of = OF(SCORES);
    ck_assert_int_eq(attn_gradient_plan_make(&made.wanted, &plan, &err), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "of");
    made.wanted.of = OF(DECAY);
    ck_assert_int_eq(attn_gradient_plan_make(&made.wanted, &plan, &err), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "of");
    gradient_case_release(&made);
}
END_TEST

CHECK_MAIN("backward_recurrence")
{
    tcase_add_loop_test(tests, central_differences_agree, 0, VARIANTS);
    tcase_add_test(tests, threads_change_no_byte);
    tcase_add_test(tests, a_query_before_any_key_gives_nothing);
    tcase_add_test(tests, a_cancelled_run_says_so);
    tcase_add_test(tests, gradients_that_a_recurrence_lacks_are_refused);
}
