/* test_bindings.c: tests core/src/request/bindings.c: one plan, run on many data. */
#include "request/request.h"

#include <string.h>

#include "attn/diagnose.h"
#include "check_main.h"
#include "gradient_cases.h"

enum { KINDS = 6, ROUNDS = 3 };
static const scene_size size = {2, 4, 2, 9, 21, 4, 3};

static void start_at(test_scene *scene, bool at_scores)
{
    const attn_tensor *map = scene_normal(scene, 1, SHAPE(size.batch, size.heads, size.q_len, size.kv_len));
    scene->request.inputs = (attn_inputs){
        .scores = at_scores ? map : NULL, .attention = at_scores ? NULL : map, .value = scene->request.inputs.value};
}

/* The keys lie token by token: (batch, kv_len, kv_heads, d_k) read as (batch, kv_heads, kv_len, d_k). */
static void stride_keys(test_scene *scene)
{
    attn_tensor *key = scene_normal(scene, 1, SHAPE(size.batch, size.kv_len, size.kv_heads, size.d_k));
    const attn_tensor by_tokens = *key;
    for (int to = 1; to <= 2; to++) {
        key->shape[to] = by_tokens.shape[3 - to];
        key->stride[to] = by_tokens.stride[3 - to];
    }
    scene->request.inputs.key = key;
}

/* Every input that can be bound, in one kind of request at least. */
static test_scene make_scene(size_t kind)
{
    test_scene scene = scene_create(ATTN_F32, 7 + kind);
    attn_request *request = &scene.request;
    if (kind == 1 || kind == 2)
        scene_layer(&scene, &size, 12);
    else
        scene_attention(&scene, &size);
    if (kind == 0)
        stride_keys(&scene);
    if (kind == 1)
        scene_turn(&scene, &size, 1);
    if (kind == 2)
        scene_past(&scene, &size, 5);
    if (kind == 3 || kind == 4)
        start_at(&scene, kind == 3);
    if (kind == 5)
        request->options.mechanism.type = ATTN_LINEAR;
    if (kind != 4)
        request->masks.causal = true;
    request->options.want = scene_every_step(request);
    return scene;
}

/* The same shape, type and strides with other numbers; every fifth of scores is -infinity. */
static const attn_tensor *renew(test_scene *scene, const attn_tensor *tensor, bool is_scores)
{
    if (tensor == NULL)
        return NULL;
    attn_tensor *made = scene_tensor(scene, tensor->dtype, tensor->rank, tensor->shape);
    memcpy(made->stride, tensor->stride, sizeof made->stride);
    for (size_t n = 0; n < attn_tensor_count(made); n++)
        tensor_set(made, n, is_scores && n % 5 == 0 ? -(double)INFINITY : random_normal(&scene->random));
    return made;
}

static attn_inputs renew_inputs(test_scene *scene)
{
    const attn_inputs *in = &scene->request.inputs;
    return (attn_inputs){.query = renew(scene, in->query, false),
                         .key = renew(scene, in->key, false),
                         .value = renew(scene, in->value, false),
                         .past_key = renew(scene, in->past_key, false),
                         .past_value = renew(scene, in->past_value, false),
                         .scores = renew(scene, in->scores, true),
                         .attention = renew(scene, in->attention, false)};
}

static const void *data_of(const attn_tensor *tensor)
{
    return tensor == NULL ? NULL : tensor->data;
}

static attn_bindings bindings_to(const attn_inputs *inputs)
{
    return (attn_bindings){.query = data_of(inputs->query),
                           .key = data_of(inputs->key),
                           .value = data_of(inputs->value),
                           .past_key = data_of(inputs->past_key),
                           .past_value = data_of(inputs->past_value),
                           .scores = data_of(inputs->scores),
                           .attention = data_of(inputs->attention)};
}

START_TEST(a_plan_on_other_data_gives_the_bytes_of_a_fresh_plan)
{
    test_scene scene = make_scene((size_t)_i);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    test_run own = run_request(&scene.request, &runtime);
    for (size_t round = 0; round < ROUNDS; round++) {
        attn_request other = scene.request;
        other.inputs = renew_inputs(&scene);
        test_run fresh = run_request(&other, &runtime), again = own;
        const attn_bindings bindings = bindings_to(&other.inputs);
        again.arena = attn_arena_create(attn_plan_bytes(&own.plan, 1));
        ck_assert_int_eq(attn_plan_run(&own.plan, &bindings, &runtime, again.arena, &again.result, NULL), ATTN_OK);
        expect_same_steps(&fresh, &again, fresh.plan.want, "bound");
        ck_assert_uint_eq(fresh.result.rows_without_keys, again.result.rows_without_keys);
        run_release(&fresh);
        attn_arena_destroy(again.arena);
    }
    test_run unbound = run_request(&scene.request, &runtime);
    expect_same_steps(&own, &unbound, own.plan.want, "after the others");
    run_release(&unbound);
    run_release(&own);
    scene_destroy(&scene);
}
END_TEST

START_TEST(gradients_on_other_data_have_the_bytes_of_a_fresh_plan)
{
    const attn_runtime runtime = attn_runtime_serial(NULL);
    gradient_case made;
    for (size_t number = 0; gradient_case_at(&made, ATTN_F32, number); number += 7) {
        gradient_run own = gradient_run_on(&made.wanted, &runtime), again = own;
        attn_request other = *made.wanted.request;
        other.inputs = renew_inputs(&made.scene);
        attn_gradient_request wanted = made.wanted;
        wanted.request = &other;
        wanted.grad_output = renew(&made.scene, made.wanted.grad_output, false);
        gradient_run fresh = gradient_run_on(&wanted, &runtime);
        attn_bindings bindings = bindings_to(&other.inputs);
        bindings.grad_output = wanted.grad_output->data;
        again.arena = attn_arena_create(attn_gradient_plan_bytes(&own.plan, 1));
        ck_assert_int_eq(attn_gradient_run(&own.plan, &bindings, &runtime, again.arena, &again.result, NULL), ATTN_OK);
        expect_same_gradients(&fresh, &again, made.name);
        gradient_run_release(&fresh);
        gradient_run_release(&again);
        gradient_run_release(&own);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(diagnostics_look_at_the_data_of_the_run)
{
    test_scene scene = make_scene(0);
    scene.request.options.want = ATTN_STEP_BIT(ATTN_STEP_OUTPUT);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    test_run run = run_request(&scene.request, &runtime);
    attn_tensor *value = scene_copy(&scene, scene.request.inputs.value);
    tensor_set(value, 3, (double)NAN);
    const attn_bindings bindings = {.value = value->data};
    attn_arena *arena = attn_arena_create(SIZE_MAX);
    attn_result result;
    ck_assert_int_eq(attn_plan_run(&run.plan, &bindings, &runtime, arena, &result, NULL), ATTN_OK);
    ck_assert_int_eq(attn_diagnose(&run.plan, &bindings, &runtime, arena, &result, NULL), ATTN_OK);
    ck_assert_uint_eq(result.findings.not_finite_fields, 2);
    ck_assert_str_eq(result.findings.not_finite[1].field, "inputs.value");
    ck_assert_uint_eq(result.findings.not_finite[1].count, 1);
    attn_arena_destroy(arena);
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

static void expect_error(const attn_plan *plan, const attn_bindings *bindings, const char *field, const char *message)
{
    attn_arena *arena = attn_arena_create(SIZE_MAX);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    attn_result result;
    attn_error err = {0};
    ck_assert_int_eq(attn_plan_run(plan, bindings, &runtime, arena, &result, &err), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, field);
    ck_assert_str_eq(err.message, message);
    attn_arena_destroy(arena);
}

START_TEST(data_for_an_input_that_the_request_does_not_have_is_refused)
{
    static const float number;
    static const struct {
        size_t kind; /* of a request without the input */
        attn_bindings bindings;
        const char *field, *message;
    } wrong[] = {
        {3, {.query = &number}, "inputs.query", "the plan was made without query"},
        {3, {.key = &number}, "inputs.key", "the plan was made without key"},
        {0, {.past_key = &number}, "inputs.past_key", "the plan was made without past_key"},
        {0, {.past_value = &number}, "inputs.past_value", "the plan was made without past_value"},
        {0, {.scores = &number}, "inputs.scores", "the plan was made without scores"},
        {0, {.attention = &number}, "inputs.attention", "the plan was made without attention"},
        {0, {.grad_output = &number}, "grad_output", "the plan is not for gradients"},
    };
    for (size_t w = 0; w < COUNT(wrong); w++) {
        test_scene scene = make_scene(wrong[w].kind);
        attn_plan plan;
        ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
        expect_error(&plan, &wrong[w].bindings, wrong[w].field, wrong[w].message);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_plan_of_shapes_alone_runs_on_bound_data_only)
{
    test_scene scene = make_scene(0);
    const attn_tensor with_data = *scene.request.inputs.query;
    attn_tensor shape = with_data;
    shape.data = NULL;
    scene.request.inputs.query = &shape;
    attn_plan plan;
    ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
    expect_error(&plan, NULL, "inputs.query", "query has no data");
    const attn_runtime runtime = attn_runtime_serial(NULL);
    attn_arena *arena = attn_arena_create(SIZE_MAX);
    attn_result result;
    const attn_bindings bindings = {.query = with_data.data};
    ck_assert_int_eq(attn_plan_run(&plan, &bindings, &runtime, arena, &result, NULL), ATTN_OK);
    attn_arena_destroy(arena);
    scene_destroy(&scene);
}
END_TEST

START_TEST(gradients_without_data_of_the_output_are_refused)
{
    gradient_case made;
    ck_assert(gradient_case_at(&made, ATTN_F32, 0));
    attn_tensor shape = *made.wanted.grad_output;
    shape.data = NULL;
    made.wanted.grad_output = &shape;
    const attn_runtime runtime = attn_runtime_serial(NULL);
    attn_arena *arena = attn_arena_create(SIZE_MAX);
    attn_gradient_plan plan;
    attn_gradient_result result;
    attn_error err = {0};
    ck_assert_int_eq(attn_gradient_plan_make(&made.wanted, &plan, NULL), ATTN_OK);
    ck_assert_int_eq(attn_gradient_run(&plan, NULL, &runtime, arena, &result, &err), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "grad_output");
    ck_assert_int_eq(attn_gradient_run(&plan, &(attn_bindings){.scores = shape.shape}, &runtime, arena, &result, &err),
                     ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "inputs.scores");
    attn_arena_destroy(arena);
    gradient_case_release(&made);
}
END_TEST

CHECK_MAIN("bindings")
{
    tcase_add_loop_test(tests, a_plan_on_other_data_gives_the_bytes_of_a_fresh_plan, 0, KINDS);
    tcase_add_test(tests, gradients_on_other_data_have_the_bytes_of_a_fresh_plan);
    tcase_add_test(tests, diagnostics_look_at_the_data_of_the_run);
    tcase_add_test(tests, data_for_an_input_that_the_request_does_not_have_is_refused);
    tcase_add_test(tests, a_plan_of_shapes_alone_runs_on_bound_data_only);
    tcase_add_test(tests, gradients_without_data_of_the_output_are_refused);
}
