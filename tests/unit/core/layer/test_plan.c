/*
 * test_plan.c: tests core/src/layer/plan.c: dimensions and defaults, and the cost of a run.
 */
#include "attn/plan.h"

#include <limits.h>
#include <math.h>

#include "check_main.h"
#include "layer/layer.h"
#include "mask/resolved.h"
#include "plan_stage.h"
#include "scene.h"

/* ---- names ---- */

START_TEST(every_step_is_found_by_its_name)
{
    for (attn_step step = 0; step < ATTN_STEP_COUNT; step++)
        ck_assert_int_eq(attn_step_from_name(attn_step_name(step)), step);
    ck_assert_int_eq(attn_step_from_name("weights"), ATTN_STEP_COUNT);
    ck_assert_int_eq(attn_step_from_name(""), ATTN_STEP_COUNT);
}
END_TEST

START_TEST(maps_are_the_steps_with_a_number_for_every_pair)
{
    for (attn_step step = 0; step < ATTN_STEP_COUNT; step++) {
        bool is_map = step == ATTN_STEP_SCORES || step == ATTN_STEP_SCALED || step == ATTN_STEP_MASKED ||
                      step == ATTN_STEP_ATTENTION || step == ATTN_STEP_DROPPED || step == ATTN_STEP_CONTRIBUTION ||
                      step == ATTN_STEP_MASK;
        ck_assert_msg(attn_step_is_map(step) == is_map, "%s", attn_step_name(step));
    }
}
END_TEST

/* ---- dimensions ---- */

START_TEST(dimensions_of_attention_by_heads)
{
    test_scene scene = attention();
    attn_plan plan = planned(&scene.request);
    ck_assert_uint_eq(plan.dims.batch, 2);
    ck_assert_uint_eq(plan.dims.heads, 3);
    ck_assert_uint_eq(plan.dims.kv_heads, 3);
    ck_assert_uint_eq(plan.dims.q_len, 4);
    ck_assert_uint_eq(plan.dims.kv_len, 5);
    ck_assert_uint_eq(plan.dims.d_k, 6);
    ck_assert_uint_eq(plan.dims.d_v, 7);
    ck_assert_int_eq(plan.dims.query_rank, 4);
    ck_assert_double_eq_tol(plan.scale, 1 / sqrt(6), 1e-15);
    scene_destroy(&scene);
}
END_TEST

START_TEST(dimensions_of_a_layer)
{
    test_scene scene = layer();
    attn_plan plan = planned(&scene.request);
    ck_assert_uint_eq(plan.dims.heads, 4);
    ck_assert_uint_eq(plan.dims.kv_heads, 2);
    ck_assert_uint_eq(plan.dims.d_k, 3);
    ck_assert_uint_eq(plan.dims.d_v, 5);
    ck_assert_uint_eq(plan.dims.d_query, 12);
    ck_assert_uint_eq(plan.dims.d_out, 12);
    scene_destroy(&scene);
}
END_TEST

START_TEST(heads_default_to_one_and_key_heads_to_heads)
{
    test_scene scene = layer();
    scene.request.options.num_heads = scene.request.options.kv_num_heads = 0;
    scene.request.weights.key.weight = scene_normal(&scene, 1, SHAPE(12, 12));
    scene.request.weights.key.bias = NULL;
    scene.request.weights.value.weight = scene_normal(&scene, 1, SHAPE(12, 20));
    scene.request.weights.value.bias = NULL;
    attn_plan plan = planned(&scene.request);
    ck_assert_uint_eq(plan.dims.heads, 1);
    ck_assert_uint_eq(plan.dims.kv_heads, 1);
    scene.request.options.num_heads = 4;
    plan = planned(&scene.request);
    ck_assert_uint_eq(plan.dims.kv_heads, 4);
    ck_assert_uint_eq(plan.dims.d_v, 5);
    scene_destroy(&scene);
}
END_TEST

static void expect_shape(const attn_plan *plan, attn_step step, int rank, const size_t *shape)
{
    ck_assert_int_eq(plan->step[step].rank, rank);
    for (int r = 0; r < rank; r++)
        ck_assert_msg(plan->step[step].shape[r] == shape[r], "%s axis %d: %zu", attn_step_name(step), r,
                      plan->step[step].shape[r]);
}

START_TEST(the_plan_tells_the_shape_of_every_step)
{
    test_scene scene = layer();
    scene.request.options.residual = true;
    scene.request.options.want = scene_every_step(&scene.request);
    attn_plan plan = planned(&scene.request);
    expect_shape(&plan, ATTN_STEP_Q, SHAPE(2, 4, 4, 3));
    expect_shape(&plan, ATTN_STEP_K, SHAPE(2, 2, 5, 3));
    expect_shape(&plan, ATTN_STEP_V, SHAPE(2, 2, 5, 5));
    expect_shape(&plan, ATTN_STEP_SCORES, SHAPE(2, 4, 4, 5));
    expect_shape(&plan, ATTN_STEP_ATTENTION, SHAPE(2, 4, 4, 5));
    expect_shape(&plan, ATTN_STEP_MASK, SHAPE(2, 4, 4, 5));
    expect_shape(&plan, ATTN_STEP_LSE, SHAPE(2, 4, 4));
    expect_shape(&plan, ATTN_STEP_ENTROPY, SHAPE(2, 4, 4));
    expect_shape(&plan, ATTN_STEP_CONTEXT, SHAPE(2, 4, 4, 5));
    expect_shape(&plan, ATTN_STEP_CONCAT, SHAPE(2, 4, 20));
    expect_shape(&plan, ATTN_STEP_PROJECTED, SHAPE(2, 4, 12));
    expect_shape(&plan, ATTN_STEP_RESIDUAL, SHAPE(2, 4, 12));
    expect_shape(&plan, ATTN_STEP_OUTPUT, SHAPE(2, 4, 12));
    expect_shape(&plan, ATTN_STEP_ATTENTION_MEAN, SHAPE(2, 4, 5));
    ck_assert_int_eq(plan.step[ATTN_STEP_MASK].dtype, ATTN_BOOL);
    ck_assert_uint_eq(plan.step_bytes[ATTN_STEP_MASK], 2 * 4 * 4 * 5);
    ck_assert_uint_eq(plan.step_bytes[ATTN_STEP_ATTENTION], 2 * 4 * 4 * 5 * 4);
    scene_destroy(&scene);
}
END_TEST

START_TEST(result_bytes_count_what_is_wanted)
{
    test_scene scene = attention();
    attn_plan plan = planned(&scene.request);
    ck_assert_uint_eq(plan.result_bytes, 2 * 3 * 4 * 7 * 4);
    scene.request.options.want |= WANT(ATTENTION);
    plan = planned(&scene.request);
    ck_assert_uint_eq(plan.result_bytes, (2 * 3 * 4 * 7 + 2 * 3 * 4 * 5) * 4);
    const size_t one_head[] = {1};
    scene.request.options.heads = (attn_selection){.items = one_head, .count = 1};
    plan = planned(&scene.request);
    ck_assert_uint_eq(plan.selected_heads, 1);
    ck_assert_uint_eq(plan.result_bytes, (2 * 3 * 4 * 7 + 2 * 1 * 4 * 5) * 4);
    scene_destroy(&scene);
}
END_TEST

START_TEST(hidden_tiles_cost_no_operations)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_attention(&scene, &(scene_size){1, 1, 1, 100, 100, 8, 8});
    attn_plan whole = planned(&scene.request);
    scene.request.masks.causal = true;
    attn_plan causal = planned(&scene.request);
    ck_assert_double_gt(whole.flops.attention, 2.0 * 100 * 100 * 16);
    ck_assert_double_lt(causal.flops.attention, 0.55 * whole.flops.attention);
    ck_assert_double_ge(whole.total_flops, whole.flops.attention);
    ck_assert_double_eq(whole.flops.projections, 0);
    scene_destroy(&scene);
}
END_TEST

START_TEST(documents_and_blocks_cost_what_they_leave)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_attention(&scene, &(scene_size){2, 4, 4, 100, 100, 8, 8});
    attn_plan whole = planned(&scene.request);
    attn_tensor *ids = scene_integers(&scene, NULL, SHAPE(100));
    for (size_t at = 0; at < 100; at++)
        tensor_set(ids, at, (double)(at / 25));
    scene.request.masks.documents_query = scene.request.masks.documents_key = ids;
    attn_plan documents = planned(&scene.request);
    ck_assert_double_eq(documents.flops.attention, whole.flops.attention / 4);
    attn_tensor *matrix = scene_coins(&scene, 0, SHAPE(10, 10));
    tensor_set(matrix, 7, 1);
    scene.request.masks =
        (attn_masks){.blocks = {.kind = ATTN_BLOCKS_MATRIX, .size = 10, .kv_size = 10, .attend = matrix}};
    attn_plan blocks = planned(&scene.request);
    ck_assert_double_eq(blocks.flops.attention, whole.flops.attention / 100);
    scene.request.masks.blocks = (attn_blocks){.kind = ATTN_BLOCKS_BIGBIRD, .size = 5, .window = 1, .random_blocks = 1};
    attn_plan bigbird = planned(&scene.request);
    ck_assert_double_le(bigbird.flops.attention, whole.flops.attention / 5);
    ck_assert_double_gt(bigbird.flops.attention, whole.flops.attention / 10);
    scene_destroy(&scene);
}
END_TEST

/* 64 draws of a row are 64 blocks of Philox and 2016 comparisons, for two keys or for a thousand. */
START_TEST(a_mask_that_is_looked_up_costs_the_looks)
{
    for (int mechanism = ATTN_SOFTMAX; mechanism <= ATTN_LINEAR; mechanism++) {
        test_scene scene = scene_create(ATTN_F32, 1);
        scene_attention(&scene, &(scene_size){1, 1, 1, 512, 512, 1, 1});
        scene.request.options.mechanism.type = (attn_mechanism_type)mechanism;
        scene.request.masks.blocks = (attn_blocks){.kind = ATTN_BLOCKS_BIGBIRD, .size = 1, .window = 1};
        const double plain = planned(&scene.request).time_flops;
        scene.request.masks.blocks.random_blocks = 64;
        const double drawn = planned(&scene.request).time_flops;
        ck_assert_double_gt(drawn - plain, 2 * 512 * 1.5e5); /* two looks at least, microseconds each */
        ck_assert_double_lt(drawn - plain, 8 * 512 * 3e5);
        scene.request.masks.blocks = (attn_blocks){.kind = ATTN_BLOCKS_STRIDED, .size = 1, .stride = 1};
        ck_assert_double_gt(planned(&scene.request).time_flops, 2 * 512 * 512 * 300.0); /* key by key */
        scene_destroy(&scene);
    }
    ck_assert_double_eq(attn_mask_lookup_flops(&(attn_mask){.batch = 1, .heads = 1, .q_len = 9, .kv_len = 9}, NULL), 0);
}
END_TEST

static int looks, looks_until_cancelled;

static bool look(void *context)
{
    (void)context;
    return ++looks > looks_until_cancelled;
}

/* Counts looks, and cancels after some. Tensors are read, never computed with. */
static attn_status plan_watched(const attn_request *given, int until)
{
    const attn_runtime watch = {.is_cancelled = look};
    attn_request request = *given;
    attn_plan plan;
    request.watch = &watch;
    looks = 0;
    looks_until_cancelled = until;
    return attn_plan_make(&request, &plan, NULL);
}

/* Stops at some of the looks. Each stage that is left looks once more at most. */
static void expect_looks(const attn_request *request, int least, const char *what)
{
    const int step = least < 4 ? 1 : least / 4;
    ck_assert_int_eq(plan_watched(request, INT_MAX), ATTN_OK);
    ck_assert_msg(looks >= least, "%s: %d looks, expected %d", what, looks, least);
    for (int until = 0; until < least; until += step) {
        ck_assert_msg(plan_watched(request, until) == ATTN_ERR_CANCELLED, "%s: not cancelled at %d", what, until);
        ck_assert_msg(looks <= until + 3, "%s: %d looks, cancelled at %d", what, looks, until);
    }
}

enum { NUMBERS = 1 << 18, OF_NUMBERS = NUMBERS >> 16, LENGTH = 512, ROWS = 1 << 14, OF_ROWS = ROWS >> 10 };

static void many_rows(test_scene *scene)
{
    scene_attention(scene, &(scene_size){1, 1, 1, ROWS, 1, 1, 1});
}

static void rows_that_are_looked_up(test_scene *scene)
{
    many_rows(scene);
    scene->request.masks.attend = scene_tensor(scene, ATTN_BOOL, SHAPE(1));
}

static void rows_of_feature_maps(test_scene *scene)
{
    many_rows(scene);
    scene->request.options.mechanism.type = ATTN_LINEAR;
}

static void a_bias(test_scene *scene)
{
    scene_attention(scene, &(scene_size){1, 1, 1, LENGTH, LENGTH, 1, 1});
    scene->request.masks.bias = scene_tensor(scene, ATTN_F32, SHAPE(LENGTH, LENGTH));
}

static void a_matrix_of_blocks(test_scene *scene)
{
    scene_attention(scene, &(scene_size){1, 1, 1, LENGTH, LENGTH, 1, 1});
    scene->request.masks.blocks = (attn_blocks){.kind = ATTN_BLOCKS_MATRIX,
                                                .size = 1,
                                                .kv_size = 1,
                                                .attend = scene_tensor(scene, ATTN_BOOL, SHAPE(LENGTH, LENGTH))};
}

static void many_keys(test_scene *scene, size_t d_k)
{
    scene_attention(scene, &(scene_size){1, 1, 1, 1, NUMBERS, d_k, 1});
}

static void ids_of_documents(test_scene *scene)
{
    many_keys(scene, 1);
    scene->request.masks.documents_query = scene_integers(scene, NULL, SHAPE(1));
    scene->request.masks.documents_key = scene_integers(scene, NULL, SHAPE(NUMBERS));
}

static void global_tokens(test_scene *scene)
{
    many_keys(scene, 1);
    attn_tensor *tokens = scene_integers(scene, NULL, SHAPE(NUMBERS));
    for (int64_t token = 0; token < NUMBERS; token++)
        ((int64_t *)tokens->data)[token] = token;
    scene->request.masks.blocks = (attn_blocks){.kind = ATTN_BLOCKS_LONGFORMER, .size = 1, .global_tokens = tokens};
}

static void positions_of_keys(test_scene *scene)
{
    many_keys(scene, 2);
    scene->request.options.rope.layout = ATTN_ROPE_HALF;
    scene->request.options.rope.key.positions = scene_integers(scene, NULL, SHAPE(NUMBERS));
}

/* The positions are read three times: on their own, and against the rows of both tables. */
static void positions_in_tables(test_scene *scene)
{
    positions_of_keys(scene);
    scene->request.options.rope.key.cos = scene_tensor(scene, ATTN_F32, SHAPE(1, 1));
    scene->request.options.rope.key.sin = scene_tensor(scene, ATTN_F32, SHAPE(1, 1));
}

static void factors_of_frequencies(test_scene *scene)
{
    scene_attention(scene, &(scene_size){1, 1, 1, 1, 1, 2 * NUMBERS, 1});
    attn_tensor *factors = scene_tensor(scene, ATTN_F64, SHAPE(NUMBERS));
    for (size_t pair = 0; pair < NUMBERS; pair++)
        tensor_set(factors, pair, 1);
    scene->request.options.rope = (attn_rope){.layout = ATTN_ROPE_HALF,
                                              .scaling = {.type = ATTN_ROPE_LONGROPE,
                                                          .factor = 2,
                                                          .original_max_position_embeddings = 8,
                                                          .short_factor = factors,
                                                          .long_factor = factors}};
}

static void a_relative_bias(test_scene *scene)
{
    scene_attention(scene, &(scene_size){1, 1, 1, 1, 1, 1, 1});
    scene->request.options.relative_bias =
        (attn_relative_bias){.table = scene_tensor(scene, ATTN_F32, SHAPE(NUMBERS, 1)), .max_distance = NUMBERS};
}

static void many_heads(test_scene *scene)
{
    scene_attention(scene, &(scene_size){1, NUMBERS, NUMBERS, 1, 1, 1, 1});
}

static void sinks(test_scene *scene)
{
    many_heads(scene);
    scene->request.options.sinks = scene_tensor(scene, ATTN_F32, SHAPE(NUMBERS));
}

static void slopes_that_are_given(test_scene *scene)
{
    many_heads(scene);
    scene->request.options.alibi_slopes = scene_tensor(scene, ATTN_F32, SHAPE(NUMBERS));
}

static void slopes_by_number(test_scene *scene)
{
    many_heads(scene);
    scene->request.options.alibi = true;
}

/* In descending order, so each item is compared with all before it. */
static void a_selection(test_scene *scene)
{
    enum { COUNT = 1024 };
    scene_attention(scene, &(scene_size){1, 1, 1, COUNT, 1, 1, 1});
    size_t *items = scene_memory(scene, COUNT * sizeof *items);
    for (size_t at = 0; at < COUNT; at++)
        items[at] = COUNT - 1 - at;
    scene->request.options.queries = (attn_selection){.items = items, .count = COUNT};
}

START_TEST(planning_many_numbers_or_rows_can_be_cancelled)
{
    static const struct {
        const char *what;
        void (*build)(test_scene *scene);
        int looks;
    } cases[] = {
        {"rows", many_rows, OF_ROWS},
        {"rows that are looked up", rows_that_are_looked_up, 2 * OF_ROWS},
        {"rows of feature maps", rows_of_feature_maps, 2 * OF_ROWS},
        {"bias", a_bias, OF_NUMBERS},
        {"matrix of blocks", a_matrix_of_blocks, OF_NUMBERS},
        {"ids of documents", ids_of_documents, OF_NUMBERS},
        {"global tokens", global_tokens, OF_NUMBERS},
        {"positions", positions_of_keys, OF_NUMBERS},
        {"positions in tables", positions_in_tables, 3 * OF_NUMBERS},
        {"factors of frequencies", factors_of_frequencies, 2 * OF_NUMBERS},
        {"relative bias", a_relative_bias, OF_NUMBERS},
        {"sinks", sinks, OF_NUMBERS},
        {"slopes that are given", slopes_that_are_given, OF_NUMBERS},
        {"slopes by number", slopes_by_number, 16 * OF_NUMBERS},
        {"selection", a_selection, 1024 * 1023 / 2 / 65536},
    };
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        test_scene scene = scene_create(ATTN_F32, 1);
        cases[at].build(&scene);
        expect_looks(&scene.request, cases[at].looks, cases[at].what);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(queries_may_be_aligned_behind_the_cache)
{
    const scene_size size = {.batch = 1, .heads = 1, .kv_heads = 1, .q_len = 2, .kv_len = 7, .d_k = 3, .d_v = 3};
    test_scene scene = scene_create(ATTN_F32, 5);
    scene_attention(&scene, &size);
    scene_past(&scene, &size, 3);
    scene.request.masks = (attn_masks){.causal = true, .align = ATTN_ALIGN_PAST};
    attn_plan plan = planned(&scene.request);
    ck_assert_int_eq(attn_plan_offset(&plan, 0), 3);
    scene.request.masks.offset = scene_integers(&scene, (int64_t[]){1}, SHAPE(1));
    plan = planned(&scene.request);
    ck_assert_int_eq(attn_plan_offset(&plan, 0), 1);
    scene_destroy(&scene);
}
END_TEST

/* Many queries, of which half are selected. */
START_TEST(places_of_a_selection_look)
{
    enum { QUERIES = 1 << 20, FIRST = 1000, SELECTED = QUERIES / 2, LOOKS_MIN = (QUERIES + SELECTED) / (1 << 17) };
    const attn_options options = {.queries = {.first = FIRST, .count = SELECTED}};
    const attn_dims dims = {.heads = 1, .q_len = QUERIES, .kv_len = 1};
    attn_runtime runtime = attn_runtime_serial(NULL);
    struct attn_heads_job job;
    attn_arena *arena = attn_arena_create(64 << 20);
    attn_error err;
    ck_assert_ptr_nonnull(arena);
    runtime.is_cancelled = look;
    looks = 0;
    looks_until_cancelled = INT_MAX;
    ck_assert_int_eq(attn_invert_selections(&options, &dims, &runtime, arena, &job, &err), ATTN_OK);
    ck_assert_int_ge(looks, LOOKS_MIN);
    ck_assert_ptr_null(job.head_slot);
    ck_assert_uint_eq(job.query_slot[FIRST - 1], SIZE_MAX);
    ck_assert_uint_eq(job.query_slot[FIRST + 7], 7);
    looks = looks_until_cancelled = 0;
    ck_assert_int_eq(attn_invert_selections(&options, &dims, &runtime, arena, &job, &err), ATTN_ERR_CANCELLED);
    ck_assert_int_eq(looks, 1);
    attn_arena_destroy(arena);
}
END_TEST

CHECK_MAIN("plan")
{
    tcase_add_test(tests, places_of_a_selection_look);
    tcase_add_test(tests, every_step_is_found_by_its_name);
    tcase_add_test(tests, maps_are_the_steps_with_a_number_for_every_pair);
    tcase_add_test(tests, dimensions_of_attention_by_heads);
    tcase_add_test(tests, dimensions_of_a_layer);
    tcase_add_test(tests, heads_default_to_one_and_key_heads_to_heads);
    tcase_add_test(tests, the_plan_tells_the_shape_of_every_step);
    tcase_add_test(tests, result_bytes_count_what_is_wanted);
    tcase_add_test(tests, hidden_tiles_cost_no_operations);
    tcase_add_test(tests, documents_and_blocks_cost_what_they_leave);
    tcase_add_test(tests, a_mask_that_is_looked_up_costs_the_looks);
    tcase_add_test(tests, planning_many_numbers_or_rows_can_be_cancelled);
    tcase_add_test(tests, queries_may_be_aligned_behind_the_cache);
}
