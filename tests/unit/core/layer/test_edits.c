/* test_edits.c: tests core/src/layer/edits.c through attn_plan_run: what a caller changes, and what keeps its bits. */
#include <math.h>
#include <string.h>

#include "attn/gradient.h"
#include "check_main.h"
#include "scene.h"

enum { WIDTH = 12, HIDDEN = 20, PLACES = ATTN_EDIT_FEED_FORWARD + 1 };

static const scene_size size = {2, 4, 2, 7, 7, 3, 3};

/* A caller that sets the numbers of rows of one item, query and, where there are heads, head; factor 1 changes no number. */
struct caller {
    attn_edits edits;
    size_t item, head, query;
    double value, factor; /* number = value + factor * number */
    bool says_so;
    size_t calls;
};

static attn_status edit(void *context, attn_edit_place place, const attn_tensor *numbers, bool *changed)
{
    struct caller *caller = context;
    const bool has_heads = numbers->rank == 4;
    const size_t width = numbers->shape[numbers->rank - 1], queries = numbers->shape[numbers->rank - 2];
    const size_t heads = has_heads ? numbers->shape[1] : 1;
    const size_t row = (caller->item * heads + (has_heads ? caller->head : 0)) * queries + caller->query;
    ck_assert_int_eq(has_heads, place == ATTN_EDIT_ATTENTION || place == ATTN_EDIT_CONTEXT);
    for (size_t f = 0; f < width; f++) {
        const double number = tensor_get(numbers, row * width + f);
        tensor_set((attn_tensor *)(uintptr_t)numbers, row * width + f, caller->value + caller->factor * number);
    }
    changed[row] = caller->says_so;
    caller->calls++;
    return ATTN_OK;
}

/* A block, pre-normed or post-normed, and its caller. */
static test_scene block(attn_dtype type, bool is_post, unsigned places, struct caller *caller)
{
    test_scene scene = scene_create(type, 3);
    scene_layer(&scene, &size, WIDTH);
    scene_feed_forward(&scene, WIDTH, HIDDEN, ATTN_ACTIVATION_SILU, true);
    attn_request *request = &scene.request;
    request->inputs.key = NULL;
    request->masks.causal = true;
    request->options.residual = true;
    if (is_post) {
        request->options.norm = ATTN_NORM_LAYER;
        request->options.norm_position = ATTN_NORM_POST;
        request->options.norm_eps = 1e-5;
    }
    *caller = (struct caller){
        .edits = {places, edit, caller}, .item = 1, .head = 2, .query = 4, .factor = 1, .says_so = true};
    request->edits = &caller->edits;
    return scene;
}

static const attn_steps shown = WANT(ATTENTION) | WANT(CONTEXT) | WANT(CONCAT) | WANT(PROJECTED) |
                                WANT(ATTENTION_OUTPUT) | WANT(FEED_FORWARD) | WANT(OUTPUT) | WANT(ATTENTION_MEAN);

static test_run run_with(test_scene *scene, bool has_edits, const struct caller *caller)
{
    scene->request.edits = has_edits ? &caller->edits : NULL;
    return run_kernel(&scene->request, NULL, shown);
}

START_TEST(an_edit_that_changes_no_number_changes_no_bit)
{
    for (unsigned choice = 0; choice < 8; choice++) {
        struct caller caller;
        test_scene scene = block(choice & 1 ? ATTN_F64 : ATTN_F32, choice & 2, 0xe, &caller); /* all but the weights */
        caller.says_so = choice & 4;
        test_run plain = run_with(&scene, false, &caller), edited = run_with(&scene, true, &caller);
        ck_assert_uint_eq(caller.calls, 3);
        expect_same_steps(&plain, &edited, shown, "a factor of 1");
        run_release(&plain);
        run_release(&edited);
        scene_destroy(&scene);
    }
}
END_TEST

/* The rows of the output that differ are those of the query, in its item. */
static void expect_one_row(const test_run *plain, const test_run *edited, const struct caller *caller)
{
    const attn_tensor *a = &plain->result.step[ATTN_STEP_OUTPUT], *b = &edited->result.step[ATTN_STEP_OUTPUT];
    for (size_t row = 0; row < size.batch * size.q_len; row++) {
        bool differs = false;
        for (size_t f = 0; f < WIDTH; f++)
            differs |= tensor_get(a, row * WIDTH + f) != tensor_get(b, row * WIDTH + f);
        ck_assert_int_eq(differs, row == caller->item * size.q_len + caller->query);
    }
}

START_TEST(an_edit_moves_the_output_of_its_rows_alone)
{
    for (unsigned choice = 0; choice < 4 * PLACES; choice++) {
        struct caller caller;
        test_scene scene = block(choice & 1 ? ATTN_F64 : ATTN_F32, choice & 2, 1U << choice / 4, &caller);
        caller.value = 0.25;
        test_run plain = run_with(&scene, false, &caller), edited = run_with(&scene, true, &caller);
        ck_assert_uint_eq(caller.calls, 1);
        expect_one_row(&plain, &edited, &caller);
        run_release(&plain);
        run_release(&edited);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(edited_weights_have_the_context_of_their_sum)
{
    struct caller caller;
    test_scene scene = block(ATTN_F64, false, 1U << ATTN_EDIT_ATTENTION, &caller);
    caller.factor = 0;
    caller.value = 0.5; /* on every key, later ones, too */
    scene.request.edits = &caller.edits;
    test_run run = run_kernel(&scene.request, NULL, shown | WANT(V));
    const size_t group = caller.head / (size.heads / size.kv_heads);
    for (size_t f = 0; f < size.d_v; f++) {
        double sum = 0;
        for (size_t j = 0; j < size.kv_len; j++)
            sum += 0.5 * tensor_get(&run.result.step[ATTN_STEP_V],
                                    ((caller.item * size.kv_heads + group) * size.kv_len + j) * size.d_v + f);
        const size_t at = ((caller.item * size.heads + caller.head) * size.q_len + caller.query) * size.d_v + f;
        ck_assert_double_eq_tol(tensor_get(&run.result.step[ATTN_STEP_CONTEXT], at), sum, 1e-14);
    }
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

START_TEST(a_branch_of_zeros_leaves_the_residual)
{
    struct caller caller;
    test_scene scene = block(ATTN_F32, false, 1U << ATTN_EDIT_ATTENTION_OUTPUT, &caller);
    caller.factor = 0;
    test_run run = run_with(&scene, true, &caller);
    for (size_t f = 0; f < WIDTH; f++) {
        const size_t at = (caller.item * size.q_len + caller.query) * WIDTH + f;
        ck_assert(tensor_get(&run.result.step[ATTN_STEP_ATTENTION_OUTPUT], at) ==
                  tensor_get(scene.request.inputs.query, at));
    }
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

START_TEST(what_cannot_be_edited_is_refused)
{
    struct caller caller;
    test_scene scene = block(ATTN_F32, false, 1U << ATTN_EDIT_ATTENTION, &caller),
               attention = scene_create(ATTN_F32, 1);
    attn_gradient_plan plan;
    attn_error err = {0};
    scene.request.options.want = WANT(OUTPUT);
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "edits", "the whole attention");
    scene.request.options.want |= WANT(ATTENTION);
    scene.request.options.keys = (attn_selection){.first = 1, .count = 2};
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "edits", "the whole attention");
    scene.request.options.keys.count = scene.request.options.keys.first = 0;
    const attn_gradient_request request = {.request = &scene.request, .grad_output = scene.request.inputs.query};
    ck_assert(attn_gradient_plan_make(&request, &plan, &err) == ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "edits");
    scene_attention(&attention, &size);
    attention.request.options.want = WANT(OUTPUT);
    attention.request.edits = &caller.edits;
    expect_refusal(&attention.request, ATTN_ERR_FIELD, "edits", "of layers");
    scene_destroy(&attention);
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("edits")
{
    tcase_add_test(tests, an_edit_that_changes_no_number_changes_no_bit);
    tcase_add_test(tests, an_edit_moves_the_output_of_its_rows_alone);
    tcase_add_test(tests, edited_weights_have_the_context_of_their_sum);
    tcase_add_test(tests, a_branch_of_zeros_leaves_the_residual);
    tcase_add_test(tests, what_cannot_be_edited_is_refused);
}
