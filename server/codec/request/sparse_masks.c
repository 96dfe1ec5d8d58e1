/* sparse_masks.c: decodes "masks.blocks" of a request: a matrix of blocks, or the name of a pattern. */
#include <stddef.h>

#include "base/array.h"
#include "codec/request/decoder.h"

/* size_t, from 1 */
static attn_status decode_size(struct reading *reading, const struct node *node, void *to)
{
    return decode_count(reading, node, 1, ATTN_BLOCK_MAX, to);
}

/* size_t, from 0 */
static attn_status decode_blocks_count(struct reading *reading, const struct node *node, void *to)
{
    return decode_count(reading, node, 0, ATTN_BLOCK_MAX, to);
}

/* attn_blocks: size and kv_size, from one number or from [q_size, kv_size] */
static attn_status decode_sizes(struct reading *reading, const struct node *node, void *to)
{
    const char *wanted = "an integer of at least 1, or a list [q_size, kv_size] of two";
    attn_blocks *blocks = to;
    struct node list;
    if (json_is_number(node->json)) {
        decode_size(reading, node, &blocks->size);
        blocks->kv_size = blocks->size;
        return reading->status;
    }
    node_decode_list(reading, node, wanted, &list);
    if (node_has_failed(reading))
        return reading->status;
    struct node q_size = node_element(&list, 0), kv_size = node_element(&list, 1);
    if (json_array_size(list.json) != 2)
        node_fail_value(reading, node, wanted);
    decode_size(reading, &q_size, &blocks->size);
    decode_size(reading, &kv_size, &blocks->kv_size);
    json_decref(list.json);
    return reading->status;
}

/* size_t */
static attn_status decode_random_blocks(struct reading *reading, const struct node *node, void *to)
{
    return decode_count(reading, node, 0, ATTN_BLOCKS_RANDOM_MAX, to);
}

/* Decodes nothing, because the name was read already: it chose this table. */
static attn_status decode_nothing(struct reading *reading, const struct node *node, void *to)
{
    (void)reading;
    (void)node;
    (void)to;
    return ATTN_OK;
}

#define AT(field) offsetof(attn_blocks, field)
static const struct member matrix_members[] = {
    {"size", decode_sizes, 0, MEMBER_ALWAYS},
    {"attend", decode_flags, AT(attend), MEMBER_ALWAYS},
};
static const struct member strided_members[] = {
    {"pattern", decode_nothing, 0, MEMBER_ALWAYS},
    {"size", decode_size, AT(size), MEMBER_ALWAYS},
    {"stride", decode_size, AT(stride), MEMBER_ALWAYS},
    {"window", decode_blocks_count, AT(window), MEMBER_ALWAYS},
};
static const struct member longformer_members[] = {
    {"pattern", decode_nothing, 0, MEMBER_ALWAYS},
    {"size", decode_size, AT(size), MEMBER_ALWAYS},
    {"window", decode_blocks_count, AT(window), MEMBER_ALWAYS},
    {"global_tokens", decode_ids, AT(global_tokens), MEMBER_ALWAYS},
};
static const struct member bigbird_members[] = {
    {"pattern", decode_nothing, 0, MEMBER_ALWAYS},
    {"size", decode_size, AT(size), MEMBER_ALWAYS},
    {"window", decode_blocks_count, AT(window), MEMBER_ALWAYS},
    {"global_tokens", decode_ids, AT(global_tokens), MEMBER_ALWAYS},
    {"global_blocks", decode_blocks_count, AT(global_blocks), MEMBER_ALWAYS},
    {"random_blocks", decode_random_blocks, AT(random_blocks), MEMBER_ALWAYS},
    {"seed", node_decode_seed, AT(seed), MEMBER_ALWAYS},
};
static const struct member chunked_members[] = {
    {"pattern", decode_nothing, 0, MEMBER_ALWAYS},
    {"size", decode_size, AT(size), MEMBER_ALWAYS},
};
static const struct member prefix_members[] = {
    {"pattern", decode_nothing, 0, MEMBER_ALWAYS},
    {"length", decode_counts_or_one, AT(prefix), MEMBER_ALWAYS},
};

/* In the order of words[]. A member that is not given keeps the value here. */
static const struct pattern {
    attn_blocks defaults;
    const struct member *members;
    size_t count;
    const char *needed;
} patterns[] = {
    {{.kind = ATTN_BLOCKS_STRIDED, .size = 1, .window = SIZE_MAX},
     strided_members,
     ARRAY_LENGTH(strided_members),
     "stride"},
    {{.kind = ATTN_BLOCKS_LONGFORMER, .size = 1}, longformer_members, ARRAY_LENGTH(longformer_members), "window"},
    {{.kind = ATTN_BLOCKS_BIGBIRD, .size = 64, .window = 1, .global_blocks = 1, .random_blocks = 3},
     bigbird_members,
     ARRAY_LENGTH(bigbird_members),
     NULL},
    {{.kind = ATTN_BLOCKS_CHUNKED}, chunked_members, ARRAY_LENGTH(chunked_members), "size"},
    {{.kind = ATTN_BLOCKS_PREFIX}, prefix_members, ARRAY_LENGTH(prefix_members), "length"},
};

static attn_status decode_pattern(struct reading *reading, const struct node *node, attn_blocks *blocks)
{
    static const char *const words[] = {"strided", "longformer", "bigbird", "chunked", "prefix"};
    struct node name = node_member(node, "pattern");
    size_t index = 0;
    node_decode_word(reading, &name, words, ARRAY_LENGTH(words), &index);
    if (node_has_failed(reading))
        return reading->status;
    const struct pattern *pattern = &patterns[index];
    *blocks = pattern->defaults;
    node_decode_members(reading, node, pattern->members, pattern->count, blocks);
    if (pattern->needed && !node_find(node->json, pattern->needed))
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"%s\", which pattern \"%s\" needs", pattern->needed,
                         words[index]);
    if (blocks->window == SIZE_MAX)
        blocks->window = blocks->stride - 1;
    return reading->status;
}

static attn_status decode_matrix(struct reading *reading, const struct node *node, attn_blocks *blocks)
{
    *blocks = (attn_blocks){.kind = ATTN_BLOCKS_MATRIX};
    node_decode_members(reading, node, matrix_members, ARRAY_LENGTH(matrix_members), blocks);
    for (size_t m = 0; !node_has_failed(reading) && m < ARRAY_LENGTH(matrix_members); m++)
        if (!node_find(node->json, matrix_members[m].name))
            return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"%s\": give size and attend, or a pattern",
                             matrix_members[m].name);
    return reading->status;
}

attn_status decode_blocks(struct reading *reading, const struct node *node, void *to)
{
    node_drop_nulls(node);
    return node_find(node->json, "pattern") ? decode_pattern(reading, node, to) : decode_matrix(reading, node, to);
}
