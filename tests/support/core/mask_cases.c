/*
 * mask_cases.c: one function per mask, and their table.
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

/* Documents of growing length, one after the other: the keys of each are a run. */
static attn_tensor *ascending_ids(test_scene *scene, size_t batch, size_t len)
{
    attn_tensor *ids = scene_integers(scene, NULL, SHAPE(batch, len));
    for (size_t at = 0; at < batch * len; at++)
        tensor_set(ids, at, floor(sqrt((double)(at % len + 3 * (at / len)))));
    return ids;
}

static void documents(test_scene *scene, const scene_size *n)
{
    scene->request.masks.documents_query = ascending_ids(scene, n->batch, n->q_len);
    scene->request.masks.documents_key = ascending_ids(scene, n->batch, n->kv_len);
}

/* Long runs in arbitrary order, the same for every item, so that some tiles match nothing. */
static void documents_in_any_order(test_scene *scene, const scene_size *n)
{
    attn_tensor *query = scene_integers(scene, NULL, SHAPE(n->q_len)),
                *key = scene_integers(scene, NULL, SHAPE(n->kv_len));
    for (size_t i = 0; i < n->q_len; i++)
        tensor_set(query, i, (double)(i / 101 % 3));
    for (size_t j = 0; j < n->kv_len; j++)
        tensor_set(key, j, (double)(2 - j / 157 % 3));
    scene->request.masks.documents_query = query;
    scene->request.masks.documents_key = key;
}

static attn_tensor *random_ids(test_scene *scene, size_t batch, size_t len)
{
    attn_tensor *ids = scene_integers(scene, NULL, SHAPE(batch, len));
    for (size_t at = 0; at < batch * len; at++)
        tensor_set(ids, at, (double)random_below(&scene->random, 3) - 1);
    return ids;
}

static void documents_mixed(test_scene *scene, const scene_size *n)
{
    scene->request.masks.documents_query = random_ids(scene, n->batch, n->q_len);
    scene->request.masks.documents_key = random_ids(scene, n->batch, n->kv_len);
}

static void matrix_of(test_scene *scene, const scene_size *n, size_t size, size_t kv_size, double share, bool is_whole)
{
    const size_t rows = (n->q_len + size - 1) / size, columns = (n->kv_len + kv_size - 1) / kv_size;
    attn_tensor *attend = is_whole ? scene_coins(scene, share, SHAPE(n->batch, n->heads, rows, columns))
                                   : scene_coins(scene, share, SHAPE(rows, columns));
    scene->request.masks.blocks =
        (attn_blocks){.kind = ATTN_BLOCKS_MATRIX, .size = size, .kv_size = kv_size, .attend = attend};
}

static void blocks_matrix(test_scene *scene, const scene_size *n)
{
    matrix_of(scene, n, 2, 3, 0.5, true);
}

static void blocks_of_tiles(test_scene *scene, const scene_size *n)
{
    matrix_of(scene, n, 50, 64, 0.2, false);
}

static void blocks_strided(test_scene *scene, const scene_size *n)
{
    (void)n;
    scene->request.masks.blocks = (attn_blocks){.kind = ATTN_BLOCKS_STRIDED, .size = 1, .window = 2, .stride = 5};
}

static void blocks_strided_wide(test_scene *scene, const scene_size *n)
{
    causal(scene, n);
    scene->request.masks.blocks = (attn_blocks){.kind = ATTN_BLOCKS_STRIDED, .size = 3, .window = 0, .stride = 40};
}

static attn_tensor *global_tokens(test_scene *scene, const scene_size *n)
{
    const size_t count = n->kv_len / 4;
    attn_tensor *tokens = scene_integers(scene, NULL, SHAPE(count));
    for (size_t t = 0; t < count; t++)
        tensor_set(tokens, t, (double)(t * t % 4 + 4 * t));
    return tokens;
}

static void blocks_longformer(test_scene *scene, const scene_size *n)
{
    scene->request.masks.blocks =
        (attn_blocks){.kind = ATTN_BLOCKS_LONGFORMER, .size = 1, .window = 1, .global_tokens = global_tokens(scene, n)};
}

/* So few global tokens that some tiles are hidden from all queries. */
static void blocks_longformer_sparse(test_scene *scene, const scene_size *n)
{
    attn_tensor *tokens = scene_integers(scene, NULL, SHAPE(1));
    tensor_set(tokens, 0, (double)(n->kv_len / 2));
    scene->request.masks.blocks = (attn_blocks){
        .kind = ATTN_BLOCKS_LONGFORMER, .size = 2, .window = 3, .global_tokens = n->kv_len > 0 ? tokens : NULL};
}

static void blocks_bigbird(test_scene *scene, const scene_size *n)
{
    (void)n;
    scene->request.masks.blocks = (attn_blocks){
        .kind = ATTN_BLOCKS_BIGBIRD, .size = 2, .window = 1, .global_blocks = 1, .random_blocks = 2, .seed = 7};
}

/* Queries before the first key and after the last. */
static void blocks_bigbird_moved(test_scene *scene, const scene_size *n)
{
    causal_per_item(scene, n);
    scene->request.masks.blocks = (attn_blocks){.kind = ATTN_BLOCKS_BIGBIRD,
                                                .size = 3,
                                                .window = 0,
                                                .global_blocks = 1,
                                                .random_blocks = 1,
                                                .global_tokens = global_tokens(scene, n)};
}

static void blocks_chunked(test_scene *scene, const scene_size *n)
{
    (void)n;
    scene->request.masks.blocks = (attn_blocks){.kind = ATTN_BLOCKS_CHUNKED, .size = 3};
}

static void blocks_prefix(test_scene *scene, const scene_size *n)
{
    scene->request.masks.blocks =
        (attn_blocks){.kind = ATTN_BLOCKS_PREFIX, .prefix = random_lengths(scene, n->batch, n->kv_len)};
}

static void composed(test_scene *scene, const scene_size *n)
{
    sliding(scene, n);
    padding(scene, n);
    scene->request.masks.key_lengths = random_lengths(scene, n->batch, n->kv_len);
    scene->request.masks.query_lengths = random_lengths(scene, n->batch, n->q_len);
    scene->request.masks.attend = scene_coins(scene, 0.8, SHAPE(n->heads, n->q_len, n->kv_len));
    scene->request.masks.bias = bias_with_holes(scene, SHAPE(n->batch, 1, n->q_len, n->kv_len));
    documents_mixed(scene, n);
    matrix_of(scene, n, 3, 2, 0.9, true);
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
    {"documents ascending", documents},
    {"documents in any order", documents_in_any_order},
    {"documents mixed", documents_mixed},
    {"blocks (b, h)", blocks_matrix},
    {"blocks of 50 x 64", blocks_of_tiles},
    {"strided", blocks_strided},
    {"strided, wide and causal", blocks_strided_wide},
    {"longformer", blocks_longformer},
    {"longformer, one token", blocks_longformer_sparse},
    {"bigbird", blocks_bigbird},
    {"bigbird, moved", blocks_bigbird_moved},
    {"chunked", blocks_chunked},
    {"prefix", blocks_prefix},
    {"all composed", composed},
};

const mask_case *mask_case_at(size_t i)
{
    return i < sizeof cases / sizeof *cases ? &cases[i] : NULL;
}

size_t mask_case_count(void)
{
    return sizeof cases / sizeof *cases;
}

const mask_case *mask_case_composed(void)
{
    return &cases[sizeof cases / sizeof *cases - 1];
}
