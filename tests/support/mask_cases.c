/*
 * mask_cases.c: one function a mask, and the table of them.
 */
#include "mask_cases.h"

#include <math.h>

static void none(test_scene *scene, const scene_size *n)
{
    (void)n;
    scene->request.masks = (attn_masks){0};
}

static void causal(test_scene *scene, const scene_size *n)
{
    (void)n;
    scene->request.masks.causal = true;
}

static void causal_top_left(test_scene *scene, const scene_size *n)
{
    causal(scene, n);
    scene->request.masks.align = ATTN_ALIGN_TOP_LEFT;
    scene->request.masks.align_given = true;
}

/* A single offset counts from 0: here the first two queries see nothing. */
static void causal_behind(test_scene *scene, const scene_size *n)
{
    causal(scene, n);
    scene->request.masks.offset = scene_integers(scene, (const int64_t[]){-2}, 0, NULL);
}

static void causal_ahead(test_scene *scene, const scene_size *n)
{
    causal(scene, n);
    scene->request.masks.offset = scene_integers(scene, (const int64_t[]){3}, SHAPE(1));
}

static void causal_per_item(test_scene *scene, const scene_size *n)
{
    causal(scene, n);
    attn_tensor *offset = scene_integers(scene, NULL, SHAPE(n->batch));
    for (size_t b = 0; b < n->batch; b++)
        tensor_set(offset, b, (double)random_below(&scene->random, n->kv_len + n->q_len + 2) - (double)n->q_len - 1);
    scene->request.masks.offset = offset;
}

/* With an alignment beside it, an offset moves the diagonal of that alignment. */
static void causal_aligned_and_moved(test_scene *scene, const scene_size *n)
{
    causal_ahead(scene, n);
    scene->request.masks.align_given = true;
}

static void window(test_scene *scene, const scene_size *n)
{
    (void)n;
    scene->request.masks.has_window = true;
    scene->request.masks.window_left = 2;
    scene->request.masks.window_right = 1;
}

static void window_open_left(test_scene *scene, const scene_size *n)
{
    window(scene, n);
    scene->request.masks.window_left = ATTN_WINDOW_OPEN;
}

static void window_open_right(test_scene *scene, const scene_size *n)
{
    window(scene, n);
    scene->request.masks.window_right = ATTN_WINDOW_OPEN;
}

static void sliding(test_scene *scene, const scene_size *n)
{
    causal(scene, n);
    scene->request.masks.has_window = true;
    scene->request.masks.window_left = (int64_t)(n->kv_len / 3);
}

static void sliding_top_left(test_scene *scene, const scene_size *n)
{
    causal_top_left(scene, n);
    window(scene, n);
}

static void padding(test_scene *scene, const scene_size *n)
{
    scene->request.masks.padding = scene_coins(scene, 0.6, SHAPE(n->batch, n->kv_len));
}

/* Long runs of real and of padded tokens: whole tiles of both. */
static void padding_in_runs(test_scene *scene, const scene_size *n)
{
    attn_tensor *tokens = scene_tensor(scene, ATTN_U8, SHAPE(n->batch, n->kv_len));
    for (size_t at = 0; at < n->batch * n->kv_len; at++)
        tensor_set(tokens, at, at / 131 % 2 == 0);
    scene->request.masks.padding = tokens;
}

static attn_tensor *random_lengths(test_scene *scene, size_t batch, size_t longest)
{
    attn_tensor *lengths = scene_integers(scene, NULL, SHAPE(batch));
    for (size_t b = 0; b < batch; b++)
        tensor_set(lengths, b, (double)random_below(&scene->random, longest + 1));
    return lengths;
}

static void lengths(test_scene *scene, const scene_size *n)
{
    scene->request.masks.key_lengths = random_lengths(scene, n->batch, n->kv_len);
    scene->request.masks.query_lengths = random_lengths(scene, n->batch, n->q_len);
}

static void attend_one_for_all(test_scene *scene, const scene_size *n)
{
    (void)n;
    scene->request.masks.attend = scene_coins(scene, 1, 0, NULL);
}

static void attend_nothing(test_scene *scene, const scene_size *n)
{
    (void)n;
    scene->request.masks.attend = scene_coins(scene, 0, SHAPE(1));
}

static void attend_keys(test_scene *scene, const scene_size *n)
{
    scene->request.masks.attend = scene_coins(scene, 0.5, SHAPE(n->kv_len));
}

static void attend_queries(test_scene *scene, const scene_size *n)
{
    scene->request.masks.attend = scene_coins(scene, 0.5, SHAPE(n->q_len, 1));
}

static void attend_pairs(test_scene *scene, const scene_size *n)
{
    scene->request.masks.attend = scene_coins(scene, 0.5, SHAPE(n->q_len, n->kv_len));
}

static void attend_heads(test_scene *scene, const scene_size *n)
{
    scene->request.masks.attend = scene_coins(scene, 0.5, SHAPE(n->heads, 1, n->kv_len));
}

static void attend_items(test_scene *scene, const scene_size *n)
{
    scene->request.masks.attend = scene_coins(scene, 0.5, SHAPE(n->batch, 1, 1, n->kv_len));
}

static void attend_everything_said(test_scene *scene, const scene_size *n)
{
    scene->request.masks.attend = scene_coins(scene, 0.4, SHAPE(n->batch, n->heads, n->q_len, n->kv_len));
}

static void attend_strided(test_scene *scene, const scene_size *n)
{
    scene->request.masks.attend = scene_strided(scene, scene_coins(scene, 0.5, SHAPE(n->heads, n->q_len, n->kv_len)));
}

static void bias_pairs(test_scene *scene, const scene_size *n)
{
    scene->request.masks.bias = scene_normal(scene, 2, SHAPE(n->q_len, n->kv_len));
}

static attn_tensor *bias_with_holes(test_scene *scene, int rank, const size_t *shape)
{
    attn_tensor *bias = scene_normal(scene, 1, rank, shape);
    for (size_t at = 0; at < attn_tensor_count(bias); at++)
        if (random_uniform(&scene->random) < 0.3)
            tensor_set(bias, at, -HUGE_VAL);
    return bias;
}

static void bias_that_hides(test_scene *scene, const scene_size *n)
{
    scene->request.masks.bias = bias_with_holes(scene, SHAPE(n->batch, n->heads, n->q_len, n->kv_len));
}

static void bias_that_hides_keys(test_scene *scene, const scene_size *n)
{
    scene->request.masks.bias = bias_with_holes(scene, SHAPE(n->heads, 1, n->kv_len));
}

static void bias_per_query_strided(test_scene *scene, const scene_size *n)
{
    scene->request.masks.bias = scene_strided(scene, scene_normal(scene, 1, SHAPE(n->batch, 1, n->q_len, 1)));
}

static void composed(test_scene *scene, const scene_size *n)
{
    sliding(scene, n);
    padding(scene, n);
    scene->request.masks.key_lengths = random_lengths(scene, n->batch, n->kv_len);
    scene->request.masks.query_lengths = random_lengths(scene, n->batch, n->q_len);
    scene->request.masks.attend = scene_coins(scene, 0.8, SHAPE(n->heads, n->q_len, n->kv_len));
    scene->request.masks.bias = bias_with_holes(scene, SHAPE(n->batch, 1, n->q_len, n->kv_len));
}

static const mask_case cases[] = {
    {"no mask", none},
    {"causal", causal},
    {"causal top left", causal_top_left},
    {"causal offset -2", causal_behind},
    {"causal offset 3", causal_ahead},
    {"causal offset per item", causal_per_item},
    {"causal bottom right + 3", causal_aligned_and_moved},
    {"window", window},
    {"window open left", window_open_left},
    {"window open right", window_open_right},
    {"sliding", sliding},
    {"sliding top left", sliding_top_left},
    {"padding", padding},
    {"padding in runs", padding_in_runs},
    {"lengths", lengths},
    {"attend ()", attend_one_for_all},
    {"attend nothing", attend_nothing},
    {"attend (kv)", attend_keys},
    {"attend (q, 1)", attend_queries},
    {"attend (q, kv)", attend_pairs},
    {"attend (h, 1, kv)", attend_heads},
    {"attend (b, 1, 1, kv)", attend_items},
    {"attend (b, h, q, kv)", attend_everything_said},
    {"attend strided", attend_strided},
    {"bias (q, kv)", bias_pairs},
    {"bias with -inf", bias_that_hides},
    {"bias (h, 1, kv) with -inf", bias_that_hides_keys},
    {"bias (b, 1, q, 1) strided", bias_per_query_strided},
    {"all composed", composed},
};

const mask_case *mask_case_at(size_t i)
{
    return i < sizeof cases / sizeof *cases ? &cases[i] : NULL;
}

const mask_case *mask_case_composed(void)
{
    return &cases[sizeof cases / sizeof *cases - 1];
}
