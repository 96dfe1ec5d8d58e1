/* test_backward_block.c: gradients of a block compared with central differences, in all arrangements. */
#include <math.h>
#include <stdio.h>

#include "check_main.h"
#include "gradient_cases.h"

enum { WIDTH = 5, HIDDEN = 7, WIDER = 8 };

static const scene_size size = {2, 2, 1, 4, 4, 3, 2};

/*
 * Choices by their bits: gate, parallel, position post, no residual, no norm, cross-attention, out_in, no biases; with no
 * residual, another width of the output.
 */
static void make_block(gradient_case *made, attn_dtype type, attn_activation activation, unsigned choice)
{
    *made = (gradient_case){.scene = scene_create(type, choice)};
    test_scene *scene = &made->scene;
    attn_request *request = &scene->request;
    snprintf(made->name, sizeof made->name, "activation %d, choice %u", (int)activation, choice);
    scene_layer(scene, &size, WIDTH);
    scene_feed_forward(scene, WIDTH, HIDDEN, activation, (choice & 1) != 0);
    attn_feed_forward_weights *w = &request->weights.feed_forward;
    attn_feed_forward_options *own = &request->options.feed_forward;
    request->weights.norm.weight = scene_normal(scene, 1, SHAPE(WIDTH));
    request->options.residual = (choice & 8) == 0;
    request->options.norm = choice & 16 ? ATTN_NORM_RMS : ATTN_NORM_LAYER;
    request->options.norm_eps = 1e-5;
    own->parallel = (choice & 2) != 0;
    own->position = choice & 4 && !own->parallel ? ATTN_NORM_POST : ATTN_NORM_PRE;
    request->options.norm_position = own->position;
    own->residual = own->parallel || (choice & 8) == 0;
    if (choice & 16) {
        own->norm = ATTN_NORM_NONE;
        w->norm = (attn_affine){0};
    }
    if ((choice & 32) == 0)
        request->inputs.key = NULL;
    if (choice & 256) {
        const size_t width = choice & 1 ? WIDER : 3;
        w->down.weight = scene_normal(scene, 1, SHAPE(HIDDEN, width));
        w->down.bias = scene_normal(scene, 1, SHAPE(width));
        if (own->norm != ATTN_NORM_NONE && own->position == ATTN_NORM_POST)
            w->norm = (attn_affine){scene_normal(scene, 1, SHAPE(width)), scene_normal(scene, 1, SHAPE(width))};
    }
    attn_affine *all[] = {&request->weights.query,
                          &request->weights.key,
                          &request->weights.value,
                          &request->weights.output,
                          &w->up,
                          &w->gate,
                          &w->down};
    for (size_t a = 0; a < sizeof all / sizeof *all; a++) {
        if (choice & 64 && all[a]->weight != NULL)
            all[a]->weight = scene_copy(scene, scene_transposed(scene, all[a]->weight));
        if (choice & 128)
            all[a]->bias = NULL;
    }
    request->weights.layout = choice & 64 ? ATTN_LAYOUT_OUT_IN : ATTN_LAYOUT_IN_OUT;
    made->wanted = gradient_ask(scene);
}

static void expect_gradients_of(unsigned choice)
{
    gradient_case made;
    make_block(&made, ATTN_F64, ATTN_ACTIVATION_GELU, choice);
    made.wanted.of = gradient_all_of(&made.wanted);
    gradient_run run = gradient_run_serial(&made.wanted, NULL);
    expect_gradients(&made, &run);
    gradient_run_release(&run);
    gradient_case_release(&made);
}

START_TEST(gradients_of_every_arrangement_are_what_central_differences_say)
{
    expect_gradients_of((unsigned)one_of(_i, one_in(3)));
}
END_TEST

START_TEST(gradients_of_an_output_of_another_width_are_what_central_differences_say)
{
    for (unsigned choice = 256; choice < 512; choice++)
        if ((choice & 8) && !(choice & 2))
            expect_gradients_of(choice);
}
END_TEST

START_TEST(gradients_of_every_activation_are_what_central_differences_say)
{
    for (unsigned gated = 0; gated < 2; gated++) {
        gradient_case made;
        make_block(&made, ATTN_F64, (attn_activation)_i, gated);
        gradient_run run = gradient_run_serial(&made.wanted, NULL);
        expect_gradients(&made, &run);
        gradient_run_release(&run);
        gradient_case_release(&made);
    }
}
END_TEST

/* Only those that are wanted are computed: alone each has the bytes that it has among all. */
START_TEST(each_gradient_alone_is_as_among_all)
{
    for (unsigned choice = 0; choice < 32; choice++) {
        gradient_case made;
        make_block(&made, ATTN_F32, ATTN_ACTIVATION_SILU, choice);
        gradient_run all = gradient_run_serial(&made.wanted, NULL);
        for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++) {
            if (!(all.plan.of >> gradient & 1))
                continue;
            made.wanted.of = UINT64_C(1) << gradient;
            gradient_run alone = gradient_run_serial(&made.wanted, NULL);
            expect_same_gradients(&all, &alone, attn_gradient_name((attn_gradient)gradient));
            gradient_run_release(&alone);
        }
        gradient_run_release(&all);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(threads_do_not_change_a_byte)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 3}, NULL);
    ck_assert_ptr_nonnull(pool);
    const attn_runtime runtime = attn_pool_runtime(pool, NULL);
    for (unsigned choice = 0; choice < 32; choice++) {
        gradient_case made;
        make_block(&made, ATTN_F32, ATTN_ACTIVATION_GELU_TANH, choice);
        gradient_run many = gradient_run_on(&made.wanted, &runtime), one = gradient_run_serial(&made.wanted, NULL);
        expect_same_gradients(&many, &one, made.name);
        gradient_run_release(&many);
        gradient_run_release(&one);
        gradient_case_release(&made);
    }
    attn_pool_destroy(pool);
}
END_TEST

/* As Gemma 2, OLMo 2 and Granite have them. Their gains are constants. */
static void add_branches(gradient_case *made, unsigned choice)
{
    attn_request *request = &made->scene.request;
    request->options.residual_scale = choice & 1 ? 0.4 : 0;
    if (choice % 3 == 0)
        return;
    request->options.branch_norm = choice & 2 ? ATTN_NORM_RMS : ATTN_NORM_LAYER;
    request->options.branch_norm_eps = 0.05;
    request->weights.branch_norm.weight = scene_normal(&made->scene, 1, SHAPE(WIDTH));
    request->weights.feed_forward.branch_norm.weight = scene_normal(&made->scene, 1, SHAPE(WIDTH));
    request->weights.feed_forward.branch_norm.bias = scene_normal(&made->scene, 1, SHAPE(WIDTH));
}

START_TEST(gradients_through_norms_and_factors_of_branches_are_what_central_differences_say)
{
    for (unsigned choice = 0; choice < 256; choice += 5) {
        gradient_case made;
        make_block(&made, ATTN_F64, ATTN_ACTIVATION_SILU, choice & ~12U);
        add_branches(&made, choice);
        made.wanted.of = gradient_all_of(&made.wanted);
        gradient_run run = gradient_run_serial(&made.wanted, NULL);
        expect_gradients(&made, &run);
        gradient_run_release(&run);
        gradient_case_release(&made);
    }
}
END_TEST

START_TEST(norms_and_factors_of_branches_beside_a_post_norm_have_no_gradients)
{
    gradient_case made;
    make_block(&made, ATTN_F32, ATTN_ACTIVATION_GELU, 4);
    attn_gradient_plan plan;
    attn_error err = {0};
    made.scene.request.options.residual_scale = 0.5;
    ck_assert_int_eq(attn_gradient_plan_make(&made.wanted, &plan, &err), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "options.branch_norm");
    gradient_case_release(&made);
}
END_TEST

CHECK_MAIN("gradient_block")
{
    tcase_add_loop_test(tests, gradients_of_every_arrangement_are_what_central_differences_say, 0,
                        (int)(256 / one_in(3)));
    tcase_add_test(tests, gradients_of_an_output_of_another_width_are_what_central_differences_say);
    tcase_add_loop_test(tests, gradients_of_every_activation_are_what_central_differences_say, ATTN_ACTIVATION_RELU,
                        ATTN_ACTIVATION_SILU + 1);
    tcase_add_test(tests, each_gradient_alone_is_as_among_all);
    tcase_add_test(tests, threads_do_not_change_a_byte);
    tcase_add_test(tests, gradients_through_norms_and_factors_of_branches_are_what_central_differences_say);
    tcase_add_test(tests, norms_and_factors_of_branches_beside_a_post_norm_have_no_gradients);
}
