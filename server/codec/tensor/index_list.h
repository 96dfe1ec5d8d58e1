/*
 * index_list.h: the layers, heads, query rows or key columns that a request asks for.
 *
 * A list is a list of indices. A range is "0-2" or {"from": 0, "to": 2}, with both ends; it stands alone or in a list,
 * where the pair [0, 2] is a range, too. Negative indices count from the end. Only a plan knows the end, so that a list
 * with such indices is settled after it.
 */
#ifndef CODEC_TENSOR_INDEX_LIST_H
#define CODEC_TENSOR_INDEX_LIST_H

#include "attn/arena.h"
#include "attn/plan.h"

/* The indices from one to another, both ends included; -1 is the last index. */
struct index_range {
    int64_t from, to;
};

struct index_list {
    const struct index_range *ranges; /* in the arena of the request */
    size_t count;                     /* 0: not given, which selects all */
    bool counts_from_end;             /* an index is negative */
    bool was_range;                   /* [0, 2], which selected 0 to 2 in older servers */
};

/* What requests to attention and to models select. Lists without negative indices are in attn_options, too. */
struct index_lists {
    struct index_list heads, queries, keys;
};

enum { SELECTION_MAX = 1 << 20 };

/*
 * Makes the selection of a list without negative indices, in arena. False: the memory ends, or selection->count is more
 * than SELECTION_MAX.
 */
bool index_list_select(const struct index_list *list, attn_arena *arena, attn_selection *selection);
/*
 * Makes the selection of a list that counts from the end, in arena; count elements can be selected. Leaves *selection as
 * it is for other lists. name ("heads") is that of the option.
 *   ATTN_ERR_VALUE      no such index, or a range ends before it begins; the message names the last index
 *   ATTN_ERR_TOO_LARGE  too many indices
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status index_list_settle(const struct index_list *list, const char *name, size_t count,
                                              attn_arena *arena, attn_selection *selection, attn_error *err);
/* The same of heads, queries and keys. */
ATTN_MUST_CHECK attn_status index_lists_settle(const struct index_lists *lists, size_t heads, size_t q_len,
                                               size_t kv_len, attn_arena *arena, attn_options *options,
                                               attn_error *err);
/* Whether any of them counts from the end. */
bool index_lists_count_from_end(const struct index_lists *lists);

/* The hint about a list that was a range in older servers. False: there is none. */
enum { INDEX_HINT_MAX = 200 };
bool index_list_hint(const struct index_list *list, const char *name, char message[INDEX_HINT_MAX]);

struct reading;
struct node;
/* Decodes a list: one without negative indices is settled at once; *selection of others selects all until they are. */
attn_status decode_selection(struct reading *reading, const struct node *node, struct index_list *list,
                             attn_selection *selection);

#endif
