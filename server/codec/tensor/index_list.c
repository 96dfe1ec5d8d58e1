/* index_list.c: decodes and settles selections, among them indices that count from the end. */
#include "codec/tensor/index_list.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "attn/version.h"
#include "base/array.h"
#include "codec/json/node.h"

enum { FIELD_MAX = 64, DIGITS_MAX = 18 };

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

static const char wanted_selection[] = "a list of indices and of ranges such as \"0-2\", or one range";
#define WANTED_FROM_THE_END "; from the end, {\"from\": -3, \"to\": -1}"
static const char wanted_piece[] = "an index, or a range such as \"0-2\" or {\"from\": 0, \"to\": 2}";

/* ---- ranges of a request ---- */

static attn_status decode_index(struct reading *reading, const struct node *node, void *to)
{
    return node_decode_integer(reading, node, INT64_MIN, INT64_MAX, to);
}

/* Reads digits up to the end mark. False: it is not a number, or too long. */
static bool read_digits(const char **at, const char *end, int64_t *value)
{
    const char *begin = *at;
    *value = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++)
        *value = *at - begin < DIGITS_MAX ? *value * 10 + (**at - '0') : *value;
    return *at > begin && *at - begin <= DIGITS_MAX;
}

/* Reads "from-to". */
static bool read_range(const char *text, size_t length, struct index_range *range)
{
    const char *at = text, *end = text + length;
    return read_digits(&at, end, &range->from) && at < end && *at++ == '-' && read_digits(&at, end, &range->to) &&
           at == end;
}

static attn_status decode_ends(struct reading *reading, const struct node *node, struct index_range *range)
{
    static const struct member members[] = {{"from", decode_index, offsetof(struct index_range, from), MEMBER_ALWAYS},
                                            {"to", decode_index, offsetof(struct index_range, to), MEMBER_ALWAYS}};
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), range);
    if (node_find(node->json, "from") == NULL || node_find(node->json, "to") == NULL)
        return node_fail(reading, node, ATTN_ERR_FIELD, "must have \"from\" and \"to\"");
    return reading->status;
}

/* Reads [from, to]. Beside ranges of other forms, such a list of numbers was lifted as a tensor is. */
static attn_status decode_pair(struct reading *reading, const struct node *node, struct index_range *range)
{
    struct node pair = *node;
    if (node_decode_list(reading, node, wanted_piece, &pair) != ATTN_OK)
        return reading->status;
    const struct node from = node_element(&pair, 0), to = node_element(&pair, 1);
    if (json_array_size(pair.json) == 2) {
        decode_index(reading, &from, &range->from);
        decode_index(reading, &to, &range->to);
    } else {
        node_fail_type(reading, node, wanted_piece);
    }
    json_decref(pair.json);
    return reading->status;
}

static attn_status decode_any_range(struct reading *reading, const struct node *node, struct index_range *range)
{
    const char *text;
    size_t length;
    if (node_string(reading, node, &text, &length))
        return read_range(text, length, range)
                   ? ATTN_OK
                   : node_fail_value(reading, node,
                                     node->name != NULL
                                         ? "a list of indices, or a range such as \"0-2\"" WANTED_FROM_THE_END
                                         : "an index, or a range such as \"0-2\"" WANTED_FROM_THE_END);
    if (json_is_object(node->json))
        return decode_ends(reading, node, range);
    return decode_pair(reading, node, range);
}

/* Reads an index or a range. */
static attn_status decode_piece(struct reading *reading, const struct node *node, struct index_range *range)
{
    if (json_is_number(node->json)) {
        attn_status status = decode_index(reading, node, &range->from);
        range->to = range->from;
        return status;
    }
    attn_status status = decode_any_range(reading, node, range);
    if (status == ATTN_OK && range->to < range->from && (range->to < 0) == (range->from < 0))
        return node_fail(reading, node, ATTN_ERR_VALUE, "is a range from %lld to %lld, which ends before it begins",
                         (long long)range->from, (long long)range->to);
    return status;
}

/* ---- lists of a request ---- */

/* Two numbers in ascending order were a range in older servers. The hint about it ends with version 1. */
static bool was_range(const struct node *list, const struct index_range *ranges)
{
    return ATTN_VERSION_MAJOR == 0 && json_array_size(list->json) == 2 &&
           json_is_number(json_array_get(list->json, 0)) && json_is_number(json_array_get(list->json, 1)) &&
           ranges[0].from >= 0 && ranges[1].from - ranges[0].from > 1;
}

static attn_status decode_pieces(struct reading *reading, const struct node *node, size_t count,
                                 struct index_list *list)
{
    const bool is_list = json_is_array(node->json);
    struct index_range *ranges = attn_arena_take(reading->arena, count, sizeof *ranges);
    if (ranges == NULL)
        return node_fail_memory(reading, node);
    *list = (struct index_list){.ranges = ranges, .count = count};
    for (size_t i = 0; i < count; i++) {
        const struct node piece = is_list ? node_element(node, i) : *node;
        const attn_status status = decode_piece(reading, &piece, &ranges[i]);
        if (status != ATTN_OK)
            return status;
        list->counts_from_end |= ranges[i].from < 0 || ranges[i].to < 0;
    }
    list->was_range = is_list && was_range(node, ranges);
    return ATTN_OK;
}

static attn_status select_now(struct reading *reading, const struct node *node, const struct index_list *list,
                              attn_selection *selection)
{
    if (index_list_select(list, reading->arena, selection))
        return ATTN_OK;
    return selection->count > SELECTION_MAX
               ? node_fail(reading, node, ATTN_ERR_TOO_LARGE, "selects more than %d entries", SELECTION_MAX)
               : node_fail_memory(reading, node);
}

attn_status decode_selection(struct reading *reading, const struct node *node, struct index_list *list,
                             attn_selection *selection)
{
    struct node whole = *node;
    const char *text;
    size_t length;
    const bool is_one =
        json_is_object(node->json) ? !node_is_array(reading, node) : node_string(reading, node, &text, &length);
    attn_status status = is_one ? ATTN_OK : node_decode_list(reading, node, wanted_selection, &whole);
    if (status != ATTN_OK)
        return status;
    const size_t pieces = is_one ? 1 : json_array_size(whole.json);
    status = pieces > 0 ? decode_pieces(reading, &whole, pieces, list)
                        : node_fail(reading, node, ATTN_ERR_VALUE, "selects nothing");
    *selection = (attn_selection){.count = 0};
    if (status == ATTN_OK && !list->counts_from_end)
        status = select_now(reading, node, list, selection);
    if (!is_one)
        json_decref(whole.json);
    return status;
}

/* ---- after the plan ---- */

/* Counts a negative index from the end. False: there is no such index. */
static bool settle_index(int64_t *index, size_t count)
{
    if (*index < 0)
        *index += (int64_t)count;
    return *index >= 0 && (uint64_t)*index < count;
}

/* Messages name an option as "options.heads", and what is within an option by its pointer. */
static const char *tell(const char *name, const char field[FIELD_MAX], char told[FIELD_MAX])
{
    snprintf(told, FIELD_MAX, "options.%s", name);
    return strchr(name, '/') != NULL ? field : told;
}

static attn_status settle_range(struct index_range *range, const char *told, const char *field, size_t count,
                                attn_error *err)
{
    const struct index_range given = *range;
    const bool begins = settle_index(&range->from, count), ends = settle_index(&range->to, count);
    if (!begins || !ends)
        return attn_fail(err, ATTN_ERR_VALUE, field,
                         "%s has %lld; they are numbered 0 to %zu, and from the end -1 to -%zu", told,
                         (long long)(begins ? given.to : given.from), count - 1, count);
    if (range->to < range->from)
        return attn_fail(err, ATTN_ERR_VALUE, field,
                         "%s has a range from %lld to %lld, which is %lld to %lld of %zu: it ends before it begins",
                         told, (long long)given.from, (long long)given.to, (long long)range->from, (long long)range->to,
                         count);
    return ATTN_OK;
}

attn_status index_list_settle(const struct index_list *list, const char *name, size_t count, attn_arena *arena,
                              attn_selection *selection, attn_error *err)
{
    char field[FIELD_MAX], room[FIELD_MAX];
    snprintf(field, sizeof field, "/options/%s", name);
    const char *told = tell(name, field, room);
    if (!list->counts_from_end)
        return ATTN_OK;
    struct index_range *settled = attn_arena_take(arena, list->count, sizeof *settled);
    if (settled == NULL)
        return attn_fail_no_memory(err);
    for (size_t i = 0; i < list->count; i++) {
        settled[i] = list->ranges[i];
        const attn_status status = settle_range(&settled[i], told, field, count, err);
        if (status != ATTN_OK)
            return status;
    }
    const struct index_list made = {.ranges = settled, .count = list->count};
    if (index_list_select(&made, arena, selection))
        return ATTN_OK;
    if (selection->count > SELECTION_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, field, "%s selects more than %d entries", told, SELECTION_MAX);
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
             "[%lld, %lld] is %s %lld and %lld; older servers read the range %lld-%lld: for that, write \"%lld-%lld\"",
             first, second, name, first, second, first, second, first, second);
    return true;
}
