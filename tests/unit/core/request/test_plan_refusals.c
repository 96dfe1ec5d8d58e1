/*
 * test_plan_refusals.c: tests core/src/layer/plan.c: every refusal.
 */
#include "attn/plan.h"

#include <math.h>
#include <string.h>

#include "check_main.h"
#include "plan_stage.h"
#include "scene.h"

/* ---- inputs ---- */

START_TEST(a_missing_query_is_refused)
{
    test_scene scene = attention();
    scene.request.inputs.query = NULL;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "inputs.query", "missing");
    scene_destroy(&scene);
}
END_TEST

START_TEST(inputs_of_a_wrong_rank_are_refused)
{
    test_scene scene = attention();
    const attn_inputs in = scene.request.inputs;
    scene.request.inputs.query = scene_normal(&scene, 1, SHAPE(6));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "inputs.query", "rank 1");
    scene.request.inputs = in;
    scene.request.inputs.key = scene_normal(&scene, 1, SHAPE(2, 5, 6));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "inputs.key", "rank 3");
    scene.request.inputs = in;
    scene.request.inputs.value = scene_normal(&scene, 1, SHAPE(5, 6));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "inputs.value", "rank 2");
    scene_destroy(&scene);
    scene = layer();
    scene.request.inputs.query = scene_normal(&scene, 1, SHAPE(2, 3, 4, 12));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "inputs.query", "rank 4");
    scene_destroy(&scene);
}
END_TEST

START_TEST(inputs_of_another_type_are_refused)
{
    test_scene scene = attention();
    scene.request.inputs.key = scene_tensor(&scene, ATTN_F64, SHAPE(2, 3, 5, 6));
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "inputs.key", "float64");
    scene_destroy(&scene);
}
END_TEST

START_TEST(inputs_that_disagree_are_refused)
{
    static const struct {
        size_t key[4], value[4];
        const char *field, *fragment;
    } wrong[] = {
        {{2, 3, 5, 5}, {2, 3, 5, 7}, "inputs.key", "key has 5 features per head, query has 6"},
        {{2, 3, 5, 6}, {2, 3, 4, 7}, "inputs.value", "value and key differ in their number of positions: 4 and"},
        {{1, 3, 5, 6}, {1, 3, 5, 7}, "inputs.key", "key and query differ in their number of batch items: 1 and"},
        {{2, 3, 5, 6}, {1, 3, 5, 7}, "inputs.value", "value and query differ in their number of batch items: 1 and"},
        {{2, 3, 5, 6}, {2, 1, 5, 7}, "inputs.value", "value and key differ in their number of heads: 1 and 3"},
        {{2, 2, 5, 6}, {2, 2, 5, 7}, "options.kv_num_heads", "3 query heads"},
        {{2, 3, 5, 0}, {2, 3, 5, 7}, "inputs.key", "no features"},
        {{2, 3, 5, 6}, {2, 3, 5, 0}, "inputs.value", "no features"},
    };
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        test_scene scene = attention();
        scene.request.inputs.key = scene_tensor(&scene, ATTN_F32, 4, wrong[w].key);
        scene.request.inputs.value = scene_tensor(&scene, ATTN_F32, 4, wrong[w].value);
        expect_refusal(&scene.request, ATTN_ERR_SHAPE, wrong[w].field, wrong[w].fragment);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_shape_error_holds_both_shapes)
{
    test_scene scene = attention();
    attn_plan plan;
    attn_error err = {0};
    scene.request.inputs.key = scene_tensor(&scene, ATTN_F32, SHAPE(2, 3, 5, 9));
    ck_assert_int_eq(attn_plan_make(&scene.request, &plan, &err), ATTN_ERR_SHAPE);
    ck_assert_str_eq(err.expected, "[2,3,5,6]");
    ck_assert_str_eq(err.received, "[2,3,5,9]");
    ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL), ATTN_ERR_SHAPE);
    scene_destroy(&scene);
}
END_TEST

START_TEST(no_heads_are_refused)
{
    test_scene scene = attention();
    scene.request.inputs.query = scene_tensor(&scene, ATTN_F32, SHAPE(2, 0, 4, 6));
    scene.request.inputs.key = scene.request.inputs.value = NULL;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "inputs.query", "at least one head");
    scene_destroy(&scene);
}
END_TEST

/* ---- heads ---- */

START_TEST(heads_that_do_not_divide_the_features_are_refused)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene.request.inputs.query = scene_normal(&scene, 1, SHAPE(2, 4, 10));
    scene.request.options.num_heads = 3;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "inputs.query", "num_heads = 3");
    scene.request.options.num_heads = 5;
    scene.request.inputs.value = scene_normal(&scene, 1, SHAPE(2, 4, 9));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "inputs.value", "num_heads = 5");
    scene_destroy(&scene);
}
END_TEST

START_TEST(heads_said_and_heads_given_must_agree)
{
    test_scene scene = attention();
    scene.request.options.num_heads = 2;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "options.num_heads", "3 heads");
    scene.request.options.num_heads = 3;
    scene.request.options.kv_num_heads = 1;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "options.kv_num_heads", "3 heads");
    scene_destroy(&scene);
    scene = layer();
    scene.request.options.num_heads = 5;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "options.kv_num_heads", "5 query heads");
    scene_destroy(&scene);
}
END_TEST

/* A head count beside the largest size must not wrap in a product. */
START_TEST(enormous_head_counts_are_refused)
{
    const size_t many[] = {SIZE_MAX, SIZE_MAX / 2 + 1, (size_t)1 << 33};
    for (size_t m = 0; m < 3; m++) {
        attn_plan plan;
        test_scene scene = layer();
        scene.request.options.num_heads = scene.request.options.kv_num_heads = many[m];
        ck_assert_int_ne(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
        scene.request.weights.qkv.weight = scene_normal(&scene, 1, SHAPE(12, 36));
        scene.request.weights.query = scene.request.weights.key = scene.request.weights.value = (attn_affine){0};
        ck_assert_int_ne(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
        scene.request.is_layer = false;
        scene.request.weights = (attn_weights){0};
        ck_assert_int_ne(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
        scene_destroy(&scene);
    }
}
END_TEST

/*
 * Counts of which a sum or product that wraps is small: three times the first are 2; the second and twice its key heads
 * are 0, by which nothing can be divided.
 */
START_TEST(head_counts_whose_products_wrap_to_small_ones_are_refused)
{
    const size_t heads[] = {UINT64_C(6148914691236517206), UINT64_C(1) << 63};
    const size_t kv_heads[] = {UINT64_C(6148914691236517206), UINT64_C(1) << 62};
    for (size_t n = 0; n < 2; n++)
        for (int order = ATTN_QKV_STACKED; order <= ATTN_QKV_PER_GROUP; order++) {
            test_scene scene = scene_create(ATTN_F32, 1);
            scene.request.is_layer = true;
            scene.request.inputs.query = scene_normal(&scene, 1, SHAPE(3, 4, 5));
            scene.request.weights.qkv.weight = scene_normal(&scene, 1, SHAPE(5, 6));
            scene.request.weights.qkv_order = (attn_qkv_order)order;
            scene.request.options.num_heads = heads[n];
            scene.request.options.kv_num_heads = kv_heads[n];
            scene.request.options.want = WANT(OUTPUT);
            expect_refusal(&scene.request, ATTN_ERR_TOO_LARGE, "options.num_heads", "heads");
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(enormous_dimensions_are_too_large)
{
    float nothing = 0;
    const size_t shapes[][4] = {
        {SIZE_MAX / 2, SIZE_MAX / 2, 2, 2}, {1, 1, (size_t)1 << 40, 1}, {(size_t)1 << 31, (size_t)1 << 31, 4, 4}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        attn_tensor query = attn_tensor_view(&nothing, ATTN_F32, 4, shapes[s]);
        attn_request request = {.inputs.query = &query, .options.want = WANT(OUTPUT)};
        expect_refusal(&request, ATTN_ERR_TOO_LARGE, s == 1 ? "inputs" : "inputs.query", "");
    }
}
END_TEST

/* ---- weights ---- */

START_TEST(a_layer_without_its_weights_is_refused)
{
    test_scene scene = layer();
    const attn_weights w = scene.request.weights;
    scene.request.weights.query = (attn_affine){0};
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.query.weight", "missing");
    scene.request.weights = w;
    scene.request.weights.key = (attn_affine){0};
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.key.weight", "missing");
    scene.request.weights = w;
    scene.request.weights.value = (attn_affine){0};
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.value.weight", "missing");
    scene.request.weights = w;
    scene.request.weights.output.weight = NULL;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.output.weight", "bias");
    scene_destroy(&scene);
}
END_TEST

START_TEST(weights_that_do_not_fit_are_refused)
{
    test_scene scene = layer();
    const attn_weights w = scene.request.weights;
    attn_weights *now = &scene.request.weights;
    now->query.weight = scene_normal(&scene, 1, SHAPE(11, 12));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.query.weight", "12 features; it fits layout out_in");
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.query.weight", "layout in_out expects [12, any]");
    now->query.weight = scene_normal(&scene, 1, SHAPE(4, 11, 3));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.query.weight", "expects [4, 12, any]");
    now->layout = ATTN_LAYOUT_OUT_IN;
    now->query.weight = scene_normal(&scene, 1, SHAPE(12, 24));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.query.weight",
                   "layout out_in expects [any, 12]: inputs.query has 12 features; it fits layout in_out");
    now->layout = ATTN_LAYOUT_IN_OUT;
    now->query.weight = scene_normal(&scene, 1, SHAPE(12, 10));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.query.weight", "4 heads");
    now->query.weight = scene_normal(&scene, 1, SHAPE(3, 12, 3));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.query.weight", "3 heads");
    now->query.weight = scene_normal(&scene, 1, SHAPE(12));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.query.weight", "rank 2");
    now->query.weight = scene_tensor(&scene, ATTN_F64, SHAPE(12, 12));
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.query.weight", "float64");
    now->query.weight = scene_tensor(&scene, ATTN_F32, SHAPE(12, 0));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.query.weight", "at least one");
    *now = w;
    now->key.weight = scene_normal(&scene, 1, SHAPE(12, 8));
    now->key.bias = NULL;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.key.weight", "features per head");
    *now = w;
    now->value.weight = scene_normal(&scene, 1, SHAPE(12, 9));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.value.weight", "2 heads");
    *now = w;
    now->output.weight = scene_normal(&scene, 1, SHAPE(19, 12));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.output.weight", "[19,12]");
    now->output.weight = scene_normal(&scene, 1, SHAPE(4, 5, 12));
    planned(&scene.request);
    now->output.weight = scene_normal(&scene, 1, SHAPE(5, 4, 12));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.output.weight", "expected [4, 5, any]");
    now->output.weight = scene_normal(&scene, 1, SHAPE(2, 10, 12));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.output.weight", "expected [4, 5, any]");
    scene_destroy(&scene);
}
END_TEST

START_TEST(biases_that_do_not_fit_are_refused)
{
    test_scene scene = layer();
    const attn_weights w = scene.request.weights;
    const attn_tensor *wrong = scene_normal(&scene, 1, SHAPE(13));
    attn_weights *now = &scene.request.weights;
    now->query.bias = wrong;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.query.bias",
                   "query.bias has 13 numbers, the weight gives 12");
    now->query.bias = scene_normal(&scene, 1, SHAPE(4, 3));
    planned(&scene.request);
    now->query.bias = scene_normal(&scene, 1, SHAPE(3, 4));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.query.bias",
                   "query.bias has shape [3,4], expected [12] or [4,3]");
    *now = w;
    now->key.bias = wrong;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.key.bias", "13");
    *now = w;
    now->value.bias = wrong;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.value.bias", "13");
    *now = w;
    now->output.bias = wrong;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.output.bias", "13");
    now->output.bias = scene_normal(&scene, 1, SHAPE(4, 3));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.output.bias", "output.bias has shape [4,3], expected [12]");
    *now = w;
    scene.request.options.norm = ATTN_NORM_LAYER;
    now->norm.weight = wrong;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.norm.weight",
                   "norm.weight has 13 numbers, a row has 12 features");
    now->norm.weight = scene_normal(&scene, 1, SHAPE(1, 12));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.norm.weight", "shape [1,12], expected [12]");
    now->norm = (attn_affine){.bias = wrong};
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.norm.bias", "13");
    scene_destroy(&scene);
}
END_TEST

START_TEST(a_fused_weight_that_does_not_fit_is_refused)
{
    test_scene scene = layer();
    attn_weights *now = &scene.request.weights;
    const attn_tensor *fits = scene_normal(&scene, 1, SHAPE(12, 8 * 5));
    now->qkv.weight = fits;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.qkv", "not both");
    now->query = now->key = now->value = (attn_affine){0};
    planned(&scene.request);
    now->qkv.weight = scene_normal(&scene, 1, SHAPE(12, 39));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.qkv.weight", "39 features");
    now->qkv.weight = scene_normal(&scene, 1, SHAPE(11, 40));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.qkv.weight", "[11,40]");
    now->qkv.weight = fits;
    now->qkv.bias = scene_normal(&scene, 1, SHAPE(39));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "weights.qkv.bias", "39");
    now->qkv.bias = NULL;
    now->qkv_order = ATTN_QKV_PER_HEAD;
    expect_refusal(&scene.request, ATTN_ERR_VALUE, "weights.qkv_order", "per_group");
    now->qkv_order = ATTN_QKV_STACKED;
    scene.request.inputs.key = scene_normal(&scene, 1, SHAPE(2, 5, 11));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "inputs", "one width");
    scene_destroy(&scene);
}
END_TEST

/* A member that belongs to a layer, or to another member, is refused where it has no meaning, never ignored. */
START_TEST(members_without_a_meaning_are_refused)
{
    test_scene scene = attention();
    const attn_tensor *vector = scene_normal(&scene, 1, SHAPE(7));
    scene.request.weights.output.weight = scene_normal(&scene, 1, SHAPE(21, 4));
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights", "multi-head");
    scene.request.weights = (attn_weights){.norm = {.bias = vector}};
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights", "multi-head");
    scene.request.weights = (attn_weights){.query = {.bias = vector}};
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights", "multi-head");
    scene.request.weights = (attn_weights){0};
    scene.request.options.residual = true;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "options.residual", "multi-head");
    scene.request.options.residual = false;
    scene.request.options.norm = ATTN_NORM_RMS;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "options.norm", "multi-head");
    scene_destroy(&scene);
    scene = layer();
    vector = scene_normal(&scene, 1, SHAPE(7));
    scene.request.weights.norm.weight = vector;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.norm.weight", "options.norm");
    scene.request.weights.norm = (attn_affine){0};
    scene.request.weights.qkv.bias = vector;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.qkv.weight", "no weight");
    scene.request.weights.qkv.weight = scene_normal(&scene, 1, SHAPE(12, 40));
    scene.request.weights.query.weight = scene.request.weights.key.weight = scene.request.weights.value.weight = NULL;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.qkv", "not both");
    scene_destroy(&scene);
}
END_TEST

START_TEST(a_residual_needs_an_output_as_wide_as_the_query)
{
    test_scene scene = layer();
    scene.request.weights.output = (attn_affine){0};
    scene.request.options.residual = true;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "options.residual", "20 features");
    scene_destroy(&scene);
}
END_TEST

/* ---- options ---- */

START_TEST(numbers_outside_their_range_are_refused)
{
    const double not_numbers[] = {(double)NAN, HUGE_VAL, -HUGE_VAL};
    test_scene scene = layer();
    attn_options *o = &scene.request.options;
    const attn_options fine = *o;
    for (size_t n = 0; n < 3; n++) {
        o->has_scale = true;
        o->scale = not_numbers[n];
        expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.scale", "finite");
        *o = fine;
        o->softcap = not_numbers[n];
        expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.softcap", "finite");
        *o = fine;
        o->dropout = not_numbers[n];
        expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.dropout", "from 0 to 1");
        *o = fine;
        o->norm = ATTN_NORM_LAYER;
        o->norm_eps = not_numbers[n];
        expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.norm_eps", "finite");
        *o = fine;
    }
    o->softcap = -1;
    expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.softcap", "above 0");
    *o = fine;
    o->dropout = 1.001;
    expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.dropout", "from 0 to 1");
    o->dropout = -0.1;
    expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.dropout", "from 0 to 1");
    *o = fine;
    o->norm = ATTN_NORM_RMS;
    o->norm_eps = -1e-9;
    expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.norm_eps", "0 or more");
    scene_destroy(&scene);
}
END_TEST

START_TEST(scale_and_softcap_must_be_in_the_range_of_the_compute_type)
{
    test_scene scene = attention();
    attn_options *o = &scene.request.options;
    const double scales[] = {1e39, -1e39, 1e300}, softcaps[] = {1e39, 1e-46};
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        attn_plan plan;
        *o = (attn_options){.compute = (attn_dtype)type, .want = WANT(OUTPUT), .has_scale = true};
        scene.request.inputs.query = scene_tensor(&scene, o->compute, SHAPE(2, 3, 4, 6));
        scene.request.inputs.key = scene.request.inputs.value = NULL;
        for (size_t s = 0; s < 3; s++) {
            o->scale = scales[s];
            if (type == ATTN_F32)
                expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.scale", "3.4028235e+38");
            ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL) == ATTN_OK, type == ATTN_F64);
        }
        o->scale = 3.4e38;
        for (size_t s = 0; s < 2; s++) {
            o->softcap = softcaps[s];
            if (type == ATTN_F32)
                expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.softcap", "1.4e-45 to 3.4028235e+38");
            ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL) == ATTN_OK, type == ATTN_F64);
        }
    }
    scene_destroy(&scene);
}
END_TEST

START_TEST(compute_is_float32_or_float64)
{
    const attn_dtype others[] = {ATTN_F16, ATTN_BF16, ATTN_I64, ATTN_I32, ATTN_U8, ATTN_BOOL};
    for (size_t t = 0; t < sizeof others / sizeof *others; t++) {
        test_scene scene = attention();
        scene.request.options.compute = others[t];
        expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.compute", "float32 or float64");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(steps_that_do_not_happen_cannot_be_wanted)
{
    test_scene scene = attention();
    scene.request.options.want = WANT(PROJECTED);
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "options.want", "projected");
    scene.request.options.want = WANT(RESIDUAL);
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "options.want", "residual");
    scene.request.options.want = WANT(DROPPED);
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "options.want", "dropped");
    scene.request.options.want = WANT(SINK);
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "options.want", "options.sinks");
    scene_destroy(&scene);
}
END_TEST

START_TEST(selections_outside_the_map_are_refused)
{
    static const size_t beyond[] = {0, 9}, twice[] = {1, 2, 1};
    static const char *const fields[] = {"options.heads", "options.queries", "options.keys"};
    for (size_t s = 0; s < 3; s++) {
        test_scene scene = attention();
        attn_options *o = &scene.request.options;
        attn_selection *selection = s == 0 ? &o->heads : s == 1 ? &o->queries : &o->keys;
        *selection = (attn_selection){.items = beyond, .count = 2};
        expect_refusal(&scene.request, ATTN_ERR_VALUE, fields[s], "9");
        *selection = (attn_selection){.items = twice, .count = 3};
        expect_refusal(&scene.request, ATTN_ERR_VALUE, fields[s], "twice");
        *selection = (attn_selection){.count = SIZE_MAX};
        expect_refusal(&scene.request, ATTN_ERR_VALUE, fields[s], "they are numbered 0 to");
        *selection = (attn_selection){.count = 2, .first = SIZE_MAX};
        expect_refusal(&scene.request, ATTN_ERR_VALUE, fields[s], "has 18446744073709551615;");
        *selection = (attn_selection){.count = 2, .first = s == 0 ? 2 : s == 1 ? 3 : 4};
        expect_refusal(&scene.request, ATTN_ERR_VALUE, fields[s], s == 0 ? "has 3;" : s == 1 ? "has 4;" : "has 5;");
        *selection = (attn_selection){.first = 1};
        expect_refusal(&scene.request, ATTN_ERR_VALUE, fields[s], "has first 1 without a count");
        scene_destroy(&scene);
    }
}
END_TEST

#define WORD(member, last)                                                                                             \
    {                                                                                                                  \
        offsetof(attn_request, member), #member, last                                                                  \
    }
static const struct {
    size_t at;
    const char *field;
    int last;
} words[] = {
    WORD(weights.layout, ATTN_LAYOUT_OUT_IN),
    WORD(weights.qkv_order, ATTN_QKV_PER_GROUP),
    WORD(masks.align, ATTN_ALIGN_PAST),
    WORD(masks.blocks.kind, ATTN_BLOCKS_PREFIX),
    WORD(options.norm, ATTN_NORM_L2),
    WORD(options.norm_position, ATTN_NORM_PRE),
    WORD(options.qk_norm, ATTN_NORM_L2),
    WORD(options.feed_forward.norm, ATTN_NORM_L2),
    WORD(options.feed_forward.position, ATTN_NORM_PRE),
    WORD(options.branch_norm, ATTN_NORM_L2),
    WORD(options.rope.layout, ATTN_ROPE_INTERLEAVED_TO_HALF),
    WORD(options.rope.scaling.type, ATTN_ROPE_PROPORTIONAL),
    WORD(options.mechanism.type, ATTN_PERFORMER),
    WORD(options.mechanism.update_rule, ATTN_RULE_GATED_DELTA),
};

/* A program without the enumerations, by ctypes for example, can put any number there. */
START_TEST(a_value_outside_its_enumeration_is_refused)
{
    for (int sign = 0; sign < 2; sign++) {
        test_scene scene = layer();
        const int value = sign == 0 ? words[_i].last + 1 : -1;
        memcpy((char *)&scene.request + words[_i].at, &value, sizeof value);
        expect_refusal(&scene.request, ATTN_ERR_VALUE, words[_i].field, "its values are 0 to");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_tensor_of_no_type_is_refused)
{
    test_scene scene = attention();
    attn_tensor wrong = *scene.request.inputs.key;
    scene.request.inputs.key = &wrong;
    for (int dtype = -1; dtype <= (int)ATTN_DTYPE_COUNT; dtype += (int)ATTN_DTYPE_COUNT + 1) {
        wrong.dtype = (attn_dtype)dtype;
        expect_refusal(&scene.request, ATTN_ERR_FIELD, "inputs.key", "got unknown");
    }
    scene_destroy(&scene);
}
END_TEST

START_TEST(a_repetition_far_down_a_long_selection_is_found)
{
    enum { LEN = 100000 };
    test_scene scene = scene_create(ATTN_F32, 1);
    scene.request.inputs.query = scene_tensor(&scene, ATTN_F32, SHAPE(1, 1, LEN, 1));
    scene.request.inputs.key = scene_tensor(&scene, ATTN_F32, SHAPE(1, 1, 1, 1));
    scene.request.options.want = WANT(OUTPUT);
    size_t *items = scene_memory(&scene, LEN * sizeof *items);
    for (size_t s = 0; s < LEN; s++)
        items[s] = s;
    scene.request.options.queries = (attn_selection){.items = items, .count = LEN};
    planned(&scene.request);
    items[LEN - 9]--;
    expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.queries", "twice");
    scene_destroy(&scene);
}
END_TEST

START_TEST(masks_are_checked_with_the_rest)
{
    test_scene scene = attention();
    scene.request.masks.attend = scene_coins(&scene, 1, SHAPE(9, 9));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "masks.attend",
                   "attend has shape [9,9], which does not fit [2,3,4,5]");
    scene.request.masks.attend = scene_coins(&scene, 1, SHAPE(2, 5));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "masks.attend", "with the shape [2,1,1,5], and masks.padding takes");
    scene.request.masks.attend = scene_coins(&scene, 1, SHAPE(2, 4, 5));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "masks.attend", "it would fit with the shape [2,1,4,5]");
    scene.request.masks.attend = scene_coins(&scene, 1, SHAPE(6, 4, 5));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "masks.attend", "it would fit with the shape [2,3,4,5]");
    scene.request.masks = (attn_masks){.padding = scene_coins(&scene, 1, SHAPE(2, 6))};
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "masks.padding", "padding");
    scene_destroy(&scene);
}
END_TEST

START_TEST(masks_without_data_are_refused)
{
    test_scene scene = attention();
    attn_tensor lengths = {.dtype = ATTN_I64, .rank = 1, .shape = {2}, .stride = {1}};
    scene.request.masks.key_lengths = &lengths;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "masks.key_lengths", "key_lengths has no data");
    attn_tensor attend = {.dtype = ATTN_BOOL, .rank = 1, .shape = {5}, .stride = {1}};
    scene.request.masks = (attn_masks){.attend = &attend};
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "masks.attend", "attend has no data");
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("plan_refusals")
{
    tcase_add_test(tests, a_missing_query_is_refused);
    tcase_add_test(tests, inputs_of_a_wrong_rank_are_refused);
    tcase_add_test(tests, inputs_of_another_type_are_refused);
    tcase_add_test(tests, inputs_that_disagree_are_refused);
    tcase_add_test(tests, a_shape_error_holds_both_shapes);
    tcase_add_test(tests, no_heads_are_refused);
    tcase_add_test(tests, heads_that_do_not_divide_the_features_are_refused);
    tcase_add_test(tests, heads_said_and_heads_given_must_agree);
    tcase_add_test(tests, enormous_head_counts_are_refused);
    tcase_add_test(tests, head_counts_whose_products_wrap_to_small_ones_are_refused);
    tcase_add_test(tests, enormous_dimensions_are_too_large);
    tcase_add_test(tests, a_layer_without_its_weights_is_refused);
    tcase_add_test(tests, weights_that_do_not_fit_are_refused);
    tcase_add_test(tests, biases_that_do_not_fit_are_refused);
    tcase_add_test(tests, a_fused_weight_that_does_not_fit_is_refused);
    tcase_add_test(tests, members_without_a_meaning_are_refused);
    tcase_add_test(tests, a_residual_needs_an_output_as_wide_as_the_query);
    tcase_add_test(tests, numbers_outside_their_range_are_refused);
    tcase_add_test(tests, scale_and_softcap_must_be_in_the_range_of_the_compute_type);
    tcase_add_test(tests, compute_is_float32_or_float64);
    tcase_add_test(tests, steps_that_do_not_happen_cannot_be_wanted);
    tcase_add_test(tests, selections_outside_the_map_are_refused);
    tcase_add_loop_test(tests, a_value_outside_its_enumeration_is_refused, 0, COUNT(words));
    tcase_add_test(tests, a_tensor_of_no_type_is_refused);
    tcase_add_test(tests, a_repetition_far_down_a_long_selection_is_found);
    tcase_add_test(tests, masks_are_checked_with_the_rest);
    tcase_add_test(tests, masks_without_data_are_refused);
}
