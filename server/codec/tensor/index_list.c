/* index_list.c: settles selections, among them indices that count from the end. */
#include "codec/tensor/index_list.h"

#include <stdio.h>

enum { FIELD_MAX = 64 };

/* ---- to a selection ---- */

/* The number of selected elements; more than SELECTION_MAX: there are too many. No index is negative. */
static size_t count_selected(const struct index_range *ranges, size_t pieces)
{
    size_t count = 0;
    for (size_t i = 0; i < pieces; i++) {
        if ((size_t)(ranges[i].to - ranges[i].from) >= SELECTION_MAX - count)
            return SELECTION_MAX + 1;
        count += (size_t)(ranges[i].to - ranges[i].from) + 1;
    }
    return count;
}

/* A single range is not expanded: before the plan, it may be far longer than the dimension. Returns NULL without memory. */
static const size_t *expand(const struct index_range *ranges, size_t pieces, size_t count, attn_arena *arena)
{
    size_t *items = attn_arena_take(arena, count, sizeof *items), filled = 0;
    for (size_t i = 0; i < pieces && items != NULL; i++)
        /* n counts from 0, because a counter that begins at from would pass to, which may be INT64_MAX. */
        for (int64_t n = 0; n <= ranges[i].to - ranges[i].from; n++)
            items[filled++] = (size_t)(ranges[i].from + n);
    return items;
}

bool index_list_select(const struct index_list *list, attn_arena *arena, attn_selection *selection)
{
    const size_t count = count_selected(list->ranges, list->count);
    *selection = (attn_selection){.count = count, .first = list->count == 1 ? (size_t)list->ranges[0].from : 0};
    if (list->count > 1 && count <= SELECTION_MAX)
        selection->items = expand(list->ranges, list->count, count, arena);
    return count <= SELECTION_MAX && (list->count == 1 || selection->items != NULL);
}

/* ---- after the plan ---- */

/* Counts a negative index from the end. False: there is no such index. */
static bool settle_index(int64_t *index, size_t count)
{
    if (*index < 0)
        *index += (int64_t)count;
    return *index >= 0 && (uint64_t)*index < count;
}

static attn_status settle_range(struct index_range *range, const char *name, size_t count, attn_error *err)
{
    char field[FIELD_MAX];
    snprintf(field, sizeof field, "/options/%s", name);
    const struct index_range given = *range;
    const bool begins = settle_index(&range->from, count), ends = settle_index(&range->to, count);
    if (!begins || !ends)
        return attn_fail(err, ATTN_ERR_VALUE, field,
                         "options.%s has %lld; they are numbered 0 to %zu, and from the end -1 to -%zu", name,
                         (long long)(begins ? given.to : given.from), count - 1, count);
    if (range->to < range->from)
        return attn_fail(err, ATTN_ERR_VALUE, field,
                         "options.%s has a range from %lld to %lld, which is %lld to %lld of %zu: it ends before it "
                         "begins",
                         name, (long long)given.from, (long long)given.to, (long long)range->from, (long long)range->to,
                         count);
    return ATTN_OK;
}

attn_status index_list_settle(const struct index_list *list, const char *name, size_t count, attn_arena *arena,
                              attn_selection *selection, attn_error *err)
{
    char field[FIELD_MAX];
    snprintf(field, sizeof field, "/options/%s", name);
    if (!list->counts_from_end)
        return ATTN_OK;
    struct index_range *settled = attn_arena_take(arena, list->count, sizeof *settled);
    if (settled == NULL)
        return attn_fail_no_memory(err);
    for (size_t i = 0; i < list->count; i++) {
        settled[i] = list->ranges[i];
        const attn_status status = settle_range(&settled[i], name, count, err);
        if (status != ATTN_OK)
            return status;
    }
    const struct index_list made = {.ranges = settled, .count = list->count};
    if (index_list_select(&made, arena, selection))
        return ATTN_OK;
    if (selection->count > SELECTION_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, field, "options.%s selects more than %d entries", name,
                         SELECTION_MAX);
    return attn_fail_no_memory(err);
}

bool index_lists_count_from_end(const struct index_lists *lists)
{
    return lists->heads.counts_from_end || lists->queries.counts_from_end || lists->keys.counts_from_end;
}

attn_status index_lists_settle(const struct index_lists *lists, size_t heads, size_t q_len, size_t kv_len,
                               attn_arena *arena, attn_options *options, attn_error *err)
{
    const struct {
        const struct index_list *list;
        const char *name;
        size_t count;
        attn_selection *selection;
    } each[] = {{&lists->heads, "heads", heads, &options->heads},
                {&lists->queries, "queries", q_len, &options->queries},
                {&lists->keys, "keys", kv_len, &options->keys}};
    attn_status status = ATTN_OK;
    for (size_t i = 0; i < sizeof each / sizeof *each && status == ATTN_OK; i++)
        status = index_list_settle(each[i].list, each[i].name, each[i].count, arena, each[i].selection, err);
    return status;
}

/* ---- the hint ---- */

bool index_list_hint(const struct index_list *list, const char *name, char message[INDEX_HINT_MAX])
{
    if (!list->was_range)
        return false;
    const long long first = (long long)list->ranges[0].from, second = (long long)list->ranges[1].from;
    snprintf(message, INDEX_HINT_MAX,
             "[%lld, %lld] is %s %lld and %lld; before 0.3.0 it was the range %lld-%lld: write \"%lld-%lld\"", first,
             second, name, first, second, first, second, first, second);
    return true;
}
