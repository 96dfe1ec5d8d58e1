/*
 * test_mask.c: compares core/src/mask with the rules of mask.h, as naive_allows has them.
 */
#include "mask/resolved.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "mask_cases.h"
#include "naive_attention.h"

static const scene_size sizes[] = {
    {.batch = 1, .heads = 1, .q_len = 1, .kv_len = 1},  {.batch = 1, .heads = 1, .q_len = 1, .kv_len = 7},
    {.batch = 2, .heads = 3, .q_len = 5, .kv_len = 5},  {.batch = 3, .heads = 2, .q_len = 4, .kv_len = 11},
    {.batch = 2, .heads = 2, .q_len = 13, .kv_len = 6}, {.batch = 1, .heads = 2, .q_len = 7, .kv_len = 1},
    {.batch = 2, .heads = 1, .q_len = 3, .kv_len = 0},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static attn_status resolve(const attn_masks *masks, const scene_size *n, attn_dtype compute, attn_mask *mask,
                           attn_error *err)
{
    struct attn_check check = {.err = err};
    const bool fits = attn_mask_resolve(masks, n->batch, n->heads, n->q_len, n->kv_len, compute, NULL, mask, &check);
    return fits ? ATTN_OK : check.status;
}

static attn_mask resolved(const test_scene *scene, const scene_size *n)
{
    attn_mask mask;
    attn_error err = {0};
    attn_status status = resolve(&scene->request.masks, n, scene->type, &mask, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    return mask;
}

static void expect_rule(const test_scene *scene, const scene_size *n, const char *name)
{
    const attn_masks *masks = &scene->request.masks;
    attn_mask mask = resolved(scene, n);
    for (size_t b = 0; b < n->batch; b++)
        for (size_t h = 0; h < n->heads; h++)
            for (size_t i = 0; i < n->q_len; i++)
                for (size_t j = 0; j < n->kv_len; j++)
                    ck_assert_msg(attn_mask_allows(&mask, scene->type, b, h, i, j) ==
                                      naive_allows(masks, n->q_len, n->kv_len, b, h, i, j),
                                  "%s: b %zu h %zu i %zu j %zu", name, b, h, i, j);
}

START_TEST(every_mask_allows_what_its_rule_says)
{
    for (size_t s = 0; s < SIZES; s++)
        for (size_t c = 0; mask_case_at(c) != NULL; c++)
            for (int type = ATTN_F32; type <= ATTN_F64; type++) {
                test_scene scene = scene_create((attn_dtype)type, 17 * c + s);
                mask_case_at(c)->apply(&scene, &sizes[s]);
                expect_rule(&scene, &sizes[s], mask_case_at(c)->name);
                scene_destroy(&scene);
            }
}
END_TEST

/* Without the masks that are looked up, the span is the whole rule. */
static void expect_span(const test_scene *scene, const scene_size *n, const char *name)
{
    attn_masks plain = scene->request.masks;
    attn_mask mask = resolved(scene, n);
    plain.attend = plain.bias = plain.padding = NULL;
    if (!mask.documents_are_sorted)
        plain.documents_query = plain.documents_key = NULL;
    if (plain.blocks.kind < ATTN_BLOCKS_CHUNKED)
        plain.blocks.kind = ATTN_BLOCKS_NONE;
    for (size_t b = 0; b < n->batch; b++)
        for (size_t i = 0; i < n->q_len; i++) {
            attn_span span = attn_mask_span(&mask, b, i);
            ck_assert_msg(span.from <= span.to && span.to <= n->kv_len, "%s: a span is in order and in range", name);
            for (size_t j = 0; j < n->kv_len; j++)
                ck_assert_msg((j >= span.from && j < span.to) == naive_allows(&plain, n->q_len, n->kv_len, b, 0, i, j),
                              "%s: b %zu i %zu j %zu", name, b, i, j);
        }
}

START_TEST(span_is_what_the_masks_that_are_runs_leave)
{
    for (size_t s = 0; s < SIZES; s++)
        for (size_t c = 0; mask_case_at(c) != NULL; c++) {
            test_scene scene = scene_create(ATTN_F32, 31 * c + s);
            mask_case_at(c)->apply(&scene, &sizes[s]);
            expect_span(&scene, &sizes[s], mask_case_at(c)->name);
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(lookup_is_needed_for_masks_that_are_no_runs_alone)
{
    const scene_size n = {.batch = 2, .heads = 2, .q_len = 3, .kv_len = 4};
    for (size_t c = 0; mask_case_at(c) != NULL; c++) {
        test_scene scene = scene_create(ATTN_F32, c);
        mask_case_at(c)->apply(&scene, &n);
        const attn_masks *masks = &scene.request.masks;
        attn_mask mask = resolved(&scene, &n);
        ck_assert_msg(attn_mask_has_lookup(&mask) ==
                          (masks->attend != NULL || masks->padding != NULL || masks->bias != NULL ||
                           (masks->documents_key != NULL && !mask.documents_are_sorted) ||
                           (masks->blocks.kind > ATTN_BLOCKS_NONE && masks->blocks.kind < ATTN_BLOCKS_CHUNKED)),
                      "%s", mask_case_at(c)->name);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(offset_is_the_alignment_plus_what_is_given)
{
    const int64_t three = 3;
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_masks *masks = &scene.request.masks;
    const scene_size n = {.batch = 1, .heads = 1, .q_len = 4, .kv_len = 10};
    masks->causal = true;
    attn_mask mask = resolved(&scene, &n);
    ck_assert_int_eq(attn_mask_offset(&mask, 0), 6);
    masks->align = ATTN_ALIGN_TOP_LEFT;
    mask = resolved(&scene, &n);
    ck_assert_int_eq(attn_mask_offset(&mask, 0), 0);
    masks->align = ATTN_ALIGN_BOTTOM_RIGHT;
    masks->offset = scene_integers(&scene, &three, SHAPE(1));
    mask = resolved(&scene, &n);
    ck_assert_int_eq(attn_mask_offset(&mask, 0), 3);
    masks->align_given = true;
    mask = resolved(&scene, &n);
    ck_assert_int_eq(attn_mask_offset(&mask, 0), 9);
    scene_destroy(&scene);
}
END_TEST

/* A sum with an offset near the limits of int64 would overflow: the offset is refused or handled. */
START_TEST(extreme_offsets_and_windows_do_not_wrap)
{
    const int64_t extremes[] = {INT64_MIN, INT64_MIN + 1, -1000000, 1000000, INT64_MAX - 1, INT64_MAX};
    const scene_size n = {.batch = 1, .heads = 1, .q_len = 3, .kv_len = 4};
    for (size_t e = 0; e < sizeof extremes / sizeof *extremes; e++)
        for (int has_window = 0; has_window < 2; has_window++) {
            test_scene scene = scene_create(ATTN_F32, e);
            attn_masks *masks = &scene.request.masks;
            attn_error err = {0};
            attn_mask mask;
            masks->causal = true;
            masks->offset = scene_integers(&scene, &extremes[e], SHAPE(1));
            masks->has_window = has_window;
            masks->window_left = masks->window_right = INT64_MAX - 1;
            attn_status status = resolve(masks, &n, ATTN_F32, &mask, &err);
            if (status == ATTN_OK)
                expect_rule(&scene, &n, "extreme offset");
            else
                ck_assert_str_eq(err.field, "masks.offset");
            scene_destroy(&scene);
        }
}
END_TEST

/* ---- refusals ---- */

static const scene_size two_by_three = {.batch = 2, .heads = 3, .q_len = 4, .kv_len = 5};

/* Computed in float32. */
static void expect_refused(const attn_masks *masks, attn_status status, const char *field, const char *fragment)
{
    attn_mask mask;
    attn_error err = {0};
    attn_status got = resolve(masks, &two_by_three, ATTN_F32, &mask, &err);
    ck_assert_msg(got == status && err.status == status, "%s: %s: %s", field, attn_status_name(got), err.message);
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.message, fragment) != NULL, "\"%s\" lacks \"%s\"", err.message, fragment);
    ck_assert_int_eq(resolve(masks, &two_by_three, ATTN_F32, &mask, NULL), status);
}

START_TEST(masks_that_do_not_broadcast_are_refused)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    const size_t wrong[][4] = {{2, 3, 4, 6}, {2, 3, 5, 5}, {2, 2, 4, 5}, {3, 3, 4, 5}, {2, 3, 4, 0}, {0, 1, 1, 1}};
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        attn_masks masks = {.attend = scene_coins(&scene, 1, 4, wrong[w])};
        expect_refused(&masks, ATTN_ERR_SHAPE, "masks.attend", "attend");
        masks = (attn_masks){.bias = scene_normal(&scene, 1, 4, wrong[w])};
        expect_refused(&masks, ATTN_ERR_SHAPE, "masks.bias", "bias");
    }
    scene_destroy(&scene);
}
END_TEST

START_TEST(a_shape_error_says_what_was_expected_and_what_came)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_masks masks = {.attend = scene_coins(&scene, 1, SHAPE(4, 6))};
    attn_mask mask;
    attn_error err = {0};
    ck_assert_int_eq(resolve(&masks, &two_by_three, ATTN_F32, &mask, &err), ATTN_ERR_SHAPE);
    ck_assert_str_eq(err.expected, "[2,3,4,5]");
    ck_assert_str_eq(err.received, "[4,6]");
    scene_destroy(&scene);
}
END_TEST

START_TEST(padding_of_another_shape_is_refused)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_masks masks = {.padding = scene_coins(&scene, 1, SHAPE(2, 4))};
    expect_refused(&masks, ATTN_ERR_SHAPE, "masks.padding", "padding");
    masks.padding = scene_coins(&scene, 1, SHAPE(1, 5));
    expect_refused(&masks, ATTN_ERR_SHAPE, "masks.padding", "padding");
    masks.padding = scene_coins(&scene, 1, SHAPE(5)); /* only a batch of 1 may leave the batch out */
    expect_refused(&masks, ATTN_ERR_SHAPE, "masks.padding", "padding");
    masks.padding = scene_coins(&scene, 1, 0, NULL);
    expect_refused(&masks, ATTN_ERR_SHAPE, "masks.padding", "padding");
    scene_destroy(&scene);
}
END_TEST

START_TEST(padding_of_a_single_sequence_may_leave_the_batch_out)
{
    const scene_size n = {.batch = 1, .heads = 2, .q_len = 3, .kv_len = 5};
    test_scene scene = scene_create(ATTN_F32, 1);
    scene.request.masks.padding = scene_coins(&scene, 0.5, SHAPE(5));
    expect_rule(&scene, &n, "padding (kv)");
    scene_destroy(&scene);
}
END_TEST

START_TEST(masks_of_another_type_are_refused)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_tensor *floats = scene_tensor(&scene, ATTN_F32, SHAPE(2, 5));
    attn_tensor *doubles = scene_tensor(&scene, ATTN_F64, SHAPE(4, 5));
    attn_tensor *bytes = scene_tensor(&scene, ATTN_U8, SHAPE(2));
    expect_refused(&(attn_masks){.attend = doubles}, ATTN_ERR_FIELD, "masks.attend", "float64");
    expect_refused(&(attn_masks){.bias = doubles}, ATTN_ERR_FIELD, "masks.bias", "float32");
    expect_refused(&(attn_masks){.padding = floats}, ATTN_ERR_FIELD, "masks.padding", "float32");
    expect_refused(&(attn_masks){.key_lengths = bytes}, ATTN_ERR_FIELD, "masks.key_lengths", "int64");
    expect_refused(&(attn_masks){.query_lengths = bytes}, ATTN_ERR_FIELD, "masks.query_lengths", "int64");
    expect_refused(&(attn_masks){.causal = true, .offset = bytes}, ATTN_ERR_FIELD, "masks.offset", "int64");
    scene_destroy(&scene);
}
END_TEST

START_TEST(lengths_out_of_range_are_refused)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_tensor *negative = scene_integers(&scene, (const int64_t[]){2, -1}, SHAPE(2));
    attn_tensor *six = scene_integers(&scene, (const int64_t[]){6, 0}, SHAPE(2));
    attn_tensor *three = scene_integers(&scene, NULL, SHAPE(3));
    expect_refused(&(attn_masks){.key_lengths = negative}, ATTN_ERR_VALUE, "masks.key_lengths", "-1");
    expect_refused(&(attn_masks){.key_lengths = six}, ATTN_ERR_VALUE, "masks.key_lengths", "6");
    expect_refused(&(attn_masks){.query_lengths = negative}, ATTN_ERR_VALUE, "masks.query_lengths", "-1");
    expect_refused(&(attn_masks){.query_lengths = six}, ATTN_ERR_VALUE, "masks.query_lengths", "6");
    expect_refused(&(attn_masks){.key_lengths = three}, ATTN_ERR_SHAPE, "masks.key_lengths", "[3]");
    expect_refused(&(attn_masks){.query_lengths = three}, ATTN_ERR_SHAPE, "masks.query_lengths", "[3]");
    expect_refused(&(attn_masks){.causal = true, .offset = three}, ATTN_ERR_SHAPE, "masks.offset", "[3]");
    scene_destroy(&scene);
}
END_TEST

START_TEST(a_bias_of_nan_or_plus_infinity_is_refused)
{
    const double wrong[] = {(double)NAN, HUGE_VAL};
    test_scene scene = scene_create(ATTN_F32, 1);
    for (size_t w = 0; w < 2; w++) {
        attn_tensor *bias = scene_normal(&scene, 1, SHAPE(4, 5));
        tensor_set(bias, 19, wrong[w]);
        expect_refused(&(attn_masks){.bias = bias}, ATTN_ERR_VALUE, "masks.bias", w == 0 ? "NaN" : "Infinity");
    }
    scene_destroy(&scene);
}
END_TEST

START_TEST(a_negative_window_is_refused)
{
    expect_refused(&(attn_masks){.has_window = true, .window_left = -1}, ATTN_ERR_VALUE, "masks.window_left", "-1");
    expect_refused(&(attn_masks){.has_window = true, .window_right = -2}, ATTN_ERR_VALUE, "masks.window_right", "-2");
}
END_TEST

/* ---- documents and blocks ---- */

static const scene_size four_by_six = {.batch = 2, .heads = 3, .q_len = 4, .kv_len = 6};

static void refuse(const attn_masks *masks, attn_status status, const char *field, const char *fragment)
{
    const scene_size *n = &four_by_six;
    attn_mask mask;
    attn_error err = {0};
    attn_status got = resolve(masks, n, ATTN_F32, &mask, &err);
    ck_assert_msg(got == status, "%s: %s", field, err.message);
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.message, fragment) != NULL, "%s: %s", field, err.message);
}

START_TEST(documents_that_do_not_fit_are_refused)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_tensor *four = scene_integers(&scene, NULL, SHAPE(4)), *six = scene_integers(&scene, NULL, SHAPE(2, 6));
    refuse(&(attn_masks){.documents_query = four}, ATTN_ERR_FIELD, "masks.documents_key", "go together");
    refuse(&(attn_masks){.documents_key = six}, ATTN_ERR_FIELD, "masks.documents_query", "go together");
    refuse(&(attn_masks){.documents_query = four, .documents_key = four}, ATTN_ERR_SHAPE, "masks.documents_query",
           "4 queries and 6 keys: give masks.documents_key its own");
    refuse(&(attn_masks){.documents_query = six, .documents_key = four}, ATTN_ERR_SHAPE, "masks.documents_query",
           "[2,6], which does not fit [2,4]");
    refuse(&(attn_masks){.documents_query = four, .documents_key = scene_integers(&scene, NULL, SHAPE(3, 6))},
           ATTN_ERR_SHAPE, "masks.documents_key", "[3,6]");
    refuse(&(attn_masks){.documents_query = four, .documents_key = scene_normal(&scene, 1, SHAPE(6))}, ATTN_ERR_FIELD,
           "masks.documents_key", "int64");
    scene_destroy(&scene);
}
END_TEST

START_TEST(blocks_that_do_not_fit_are_refused)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_masks masks = {.blocks = {.kind = ATTN_BLOCKS_MATRIX, .size = 2, .kv_size = 3}};
    attn_blocks *blocks = &masks.blocks;
    refuse(&masks, ATTN_ERR_FIELD, "masks.blocks.attend", "needs attend");
    blocks->attend = scene_coins(&scene, 1, SHAPE(2, 3));
    refuse(&masks, ATTN_ERR_SHAPE, "masks.blocks.attend", "[2,3], which does not fit [2,3,2,2]");
    blocks->attend = scene_coins(&scene, 1, SHAPE(2, 2, 2));
    refuse(&masks, ATTN_ERR_SHAPE, "masks.blocks.attend", "[2,2,2]");
    blocks->attend = scene_normal(&scene, 1, SHAPE(2, 2));
    refuse(&masks, ATTN_ERR_FIELD, "masks.blocks.attend", "bool");
    blocks->size = 0;
    refuse(&masks, ATTN_ERR_VALUE, "masks.blocks.size", "from 1");
    *blocks = (attn_blocks){.kind = ATTN_BLOCKS_STRIDED, .size = 1};
    refuse(&masks, ATTN_ERR_VALUE, "masks.blocks.stride", "from 1");
    *blocks = (attn_blocks){.kind = ATTN_BLOCKS_LONGFORMER, .size = 1, .window = (size_t)ATTN_BLOCK_MAX + 1};
    refuse(&masks, ATTN_ERR_VALUE, "masks.blocks.window", "from 0");
    *blocks = (attn_blocks){.kind = ATTN_BLOCKS_BIGBIRD, .size = 1, .random_blocks = ATTN_BLOCKS_RANDOM_MAX + 1};
    refuse(&masks, ATTN_ERR_VALUE, "masks.blocks.random_blocks", "from 0 to 64");
    *blocks = (attn_blocks){.kind = ATTN_BLOCKS_PREFIX};
    refuse(&masks, ATTN_ERR_FIELD, "masks.blocks.prefix", "needs prefix");
    blocks->prefix = scene_integers(&scene, (const int64_t[]){7}, 0, NULL);
    refuse(&masks, ATTN_ERR_VALUE, "masks.blocks.prefix", "from 0 to 6");
    scene_destroy(&scene);
}
END_TEST

START_TEST(global_tokens_that_are_no_ascending_keys_are_refused)
{
    static const char *const field = "masks.blocks.global_tokens";
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_masks masks = {.blocks = {.kind = ATTN_BLOCKS_LONGFORMER, .size = 1}};
    attn_blocks *blocks = &masks.blocks;
    blocks->global_tokens = scene_integers(&scene, (const int64_t[]){0, 6}, SHAPE(2));
    refuse(&masks, ATTN_ERR_VALUE, field, "has 6; keys are numbered 0 to 5");
    blocks->global_tokens = scene_integers(&scene, (const int64_t[]){-1}, SHAPE(1));
    refuse(&masks, ATTN_ERR_VALUE, field, "has -1");
    blocks->global_tokens = scene_integers(&scene, (const int64_t[]){3, 3}, SHAPE(2));
    refuse(&masks, ATTN_ERR_VALUE, field, "must ascend");
    blocks->global_tokens = scene_integers(&scene, (const int64_t[]){3}, SHAPE(1, 1));
    refuse(&masks, ATTN_ERR_SHAPE, field, "flat list");
    blocks->global_tokens = scene_normal(&scene, 1, SHAPE(1));
    refuse(&masks, ATTN_ERR_FIELD, field, "int64");
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("mask")
{
    tcase_add_test(tests, every_mask_allows_what_its_rule_says);
    tcase_add_test(tests, span_is_what_the_masks_that_are_runs_leave);
    tcase_add_test(tests, lookup_is_needed_for_masks_that_are_no_runs_alone);
    tcase_add_test(tests, documents_that_do_not_fit_are_refused);
    tcase_add_test(tests, blocks_that_do_not_fit_are_refused);
    tcase_add_test(tests, global_tokens_that_are_no_ascending_keys_are_refused);
    tcase_add_test(tests, offset_is_the_alignment_plus_what_is_given);
    tcase_add_test(tests, extreme_offsets_and_windows_do_not_wrap);
    tcase_add_test(tests, masks_that_do_not_broadcast_are_refused);
    tcase_add_test(tests, a_shape_error_says_what_was_expected_and_what_came);
    tcase_add_test(tests, padding_of_another_shape_is_refused);
    tcase_add_test(tests, padding_of_a_single_sequence_may_leave_the_batch_out);
    tcase_add_test(tests, masks_of_another_type_are_refused);
    tcase_add_test(tests, lengths_out_of_range_are_refused);
    tcase_add_test(tests, a_bias_of_nan_or_plus_infinity_is_refused);
    tcase_add_test(tests, a_negative_window_is_refused);
}
