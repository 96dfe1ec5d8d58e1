/* masks.c: decodes "masks" of a request by the table of masks. */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/request/decoder.h"

/* attn_masks: align */
static attn_status decode_align(struct reading *reading, const struct node *node, void *to)
{
    static const struct choice aligns[] = {
        {"bottom_right", ATTN_ALIGN_BOTTOM_RIGHT}, {"top_left", ATTN_ALIGN_TOP_LEFT}, {NULL, 0}};
    attn_masks *masks = to;
    masks->align_given = true;
    return decode_choice(reading, node, aligns, &masks->align);
}

/* attn_masks: true, false or {align, offset} */
static attn_status decode_causal(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"align", decode_align, 0, MEMBER_ALWAYS},
        {"offset", decode_counts_or_one, offsetof(attn_masks, offset), MEMBER_ALWAYS},
    };
    attn_masks *masks = to;
    if (json_is_boolean(node->json))
        return node_decode_bool(reading, node, &masks->causal);
    if (!json_is_object(node->json))
        return node_fail_type(reading, node, "true, false, or an object with align and offset");
    masks->causal = true;
    return node_decode_members(reading, node, members, ARRAY_LENGTH(members), masks);
}

/* The smaller reach wins, because every mask applies. */
static void narrow_window(attn_masks *masks, int64_t left, int64_t right)
{
    bool is_first = !masks->has_window;
    masks->window_left = is_first || left < masks->window_left ? left : masks->window_left;
    masks->window_right = is_first || right < masks->window_right ? right : masks->window_right;
    masks->has_window = true;
}

static attn_status decode_reach(struct reading *reading, const struct node *node, int64_t *reach)
{
    *reach = ATTN_WINDOW_OPEN;
    if (json_is_null(node->json))
        return ATTN_OK;
    const char *wanted = "an integer of at least 0, or null for an open side";
    if (!json_is_number(node->json))
        return node_fail_type(reading, node, wanted);
    int64_t given;
    if (!node_integer_of(node->json, &given) || given < 0)
        return node_fail_value(reading, node, wanted);
    *reach = given;
    return ATTN_OK;
}

/* attn_masks: [left, right]; null: that side is open */
static attn_status decode_window(struct reading *reading, const struct node *node, void *to)
{
    const char *wanted = "a list [left, right] of integers or null";
    struct node list;
    node_decode_list(reading, node, wanted, &list);
    struct node left_node = node_element(&list, 0), right_node = node_element(&list, 1);
    int64_t left = 0, right = 0;
    if (json_array_size(list.json) != 2)
        node_fail_value(reading, node, wanted);
    else if (decode_reach(reading, &left_node, &left) == ATTN_OK)
        decode_reach(reading, &right_node, &right);
    narrow_window(to, left, right);
    json_decref(list.json);
    return reading->status;
}

/* attn_masks: W keys, the query's own included */
static attn_status decode_sliding_window(struct reading *reading, const struct node *node, void *to)
{
    int64_t width = 1;
    node_decode_integer(reading, node, 1, INT64_MAX, &width);
    narrow_window(to, width - 1, 0);
    return reading->status;
}

/* attn_masks: ids of each side */
static attn_status decode_document_sides(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"query", decode_ids, offsetof(attn_masks, documents_query), MEMBER_ALWAYS},
        {"key", decode_ids, offsetof(attn_masks, documents_key), MEMBER_ALWAYS},
    };
    const attn_masks *masks = to;
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), to);
    if ((!masks->documents_query || !masks->documents_key))
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"%s\"", masks->documents_query ? "key" : "query");
    return reading->status;
}

/* attn_masks: ids for queries and keys alike, or {query, key} */
static attn_status decode_documents(struct reading *reading, const struct node *node, void *to)
{
    attn_masks *masks = to;
    if (json_is_object(node->json) && !node_find(node->json, "shape"))
        return decode_document_sides(reading, node, masks);
    decode_ids(reading, node, &masks->documents_query);
    masks->documents_key = masks->documents_query;
    return reading->status;
}

/* ---- blocks ---- */

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

/* attn_blocks: a matrix of blocks, or the name of a pattern */
static attn_status decode_blocks(struct reading *reading, const struct node *node, void *to)
{
    node_drop_nulls(node);
    return node_find(node->json, "pattern") ? decode_pattern(reading, node, to) : decode_matrix(reading, node, to);
}

/* ---- the table ---- */

/* Each row: name, decoder, the member of attn_masks that it sets (0: several), and other places where it may stand. */
#define MASK_LIST(X)                                                                                                   \
    X("causal", decode_causal, 0, MASK_IN_LAYERS | MASK_AS_PARAMETER)                                                  \
    X("attend", decode_flags_or_one, offsetof(attn_masks, attend), MASK_AS_TENSOR)                                     \
    X("bias", decode_bias, offsetof(attn_masks, bias), MASK_AS_TENSOR)                                                 \
    X("padding", decode_flags, offsetof(attn_masks, padding), 0)                                                       \
    X("key_lengths", decode_lengths, offsetof(attn_masks, key_lengths), 0)                                             \
    X("query_lengths", decode_lengths, offsetof(attn_masks, query_lengths), 0)                                         \
    X("window", decode_window, 0, MASK_IN_LAYERS | MASK_AS_PARAMETER)                                                  \
    X("sliding_window", decode_sliding_window, 0, MASK_IN_LAYERS | MASK_AS_PARAMETER)                                  \
    X("documents", decode_documents, 0, 0)                                                                             \
    X("blocks", decode_blocks, offsetof(attn_masks, blocks), MASK_IN_LAYERS)

#define MASK_MEMBER(name, decode, offset, places) {name, decode, offset, MEMBER_ALWAYS},
#define MASK_ROW(name, decode, offset, places)    {name, "masks." name, places},
static const struct member masks_members[] = {MASK_LIST(MASK_MEMBER)};
static const struct mask_row rows[] = {MASK_LIST(MASK_ROW)};
#undef MASK_MEMBER
#undef MASK_ROW

const struct mask_row *mask_row_at(size_t index)
{
    return index < ARRAY_LENGTH(rows) ? &rows[index] : NULL;
}

bool mask_has_place(const char *name, enum mask_place place)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].places & place;
    return false;
}

const char *mask_names(enum mask_place place, char names[MASK_NAMES_MAX])
{
    size_t length = 0;
    names[0] = '\0';
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (rows[i].places & place)
            length +=
                (size_t)snprintf(names + length, MASK_NAMES_MAX - length, "%s%s", length > 0 ? ", " : "", rows[i].name);
    for (size_t i = 0; place == MASK_AS_TENSOR && i < length; i++)
        names[i] = (char)toupper((unsigned char)names[i]);
    return names;
}

const struct member_table masks_table = {"masks", masks_members, ARRAY_LENGTH(masks_members)};

attn_status decode_masks(struct reading *reading, const struct node *node, void *to)
{
    static const char members[] = "a mask is masks.attend (true may attend), masks.causal or another member";
    if (!json_is_object(node->json))
        return node_fail_type_with(reading, node, "an object", members);
    if (node_find(node->json, "shape"))
        return node_fail(reading, node, ATTN_ERR_FIELD, "is a tensor; %s", members);
    return node_decode_members(reading, node, masks_members, ARRAY_LENGTH(masks_members), to);
}
