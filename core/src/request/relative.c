/* relative.c: checks options.relative_position against the heads. dims.c has read the weights that belong to it. */
#include <stdio.h>

#include "base/size.h"
#include "request/request.h"

#define FIELD(name) "options.relative_position." #name

/* A table has rows, and columns unless these are 0. */
static bool check_table(const attn_tensor *table, const char *field, size_t rows, size_t columns,
                        const attn_request *request, struct attn_check *check)
{
    char expected[64], received[64];
    if (table == NULL)
        return true;
    if (!attn_check_tensor(table, field, request->options.compute, check))
        return false;
    if (table->rank == 2 && table->shape[0] == rows && (columns == 0 || table->shape[1] == columns))
        return true;
    snprintf(expected, sizeof expected, columns != 0 ? "[%zu, %zu]" : "[%zu, \"any\"]", rows, columns);
    return attn_refuse_shape(check, field, table, expected, "@ has shape %s, expected %s: a row for each distance",
                             attn_shape_text(received, sizeof received, table->rank, table->shape), expected);
}

static bool check_buckets(const attn_relative_position *own, struct attn_check *check)
{
    if (own->buckets < 0 || own->buckets == 1 || own->buckets > (int64_t)DIMENSION_MAX)
        return attn_refuse(check, ATTN_ERR_VALUE, FIELD(buckets), "~ is %lld; expected 2 to %zu",
                           (long long)own->buckets, DIMENSION_MAX);
    if (own->buckets > 0 && own->max_distance == 0)
        return attn_refuse(check, ATTN_ERR_FIELD, FIELD(max_distance), "~ is missing; buckets need it");
    if (own->buckets > 0 && own->max_distance <= own->buckets / 2 + 1)
        return attn_refuse(check, ATTN_ERR_VALUE, FIELD(max_distance),
                           "~ is %lld; with %lld buckets it must be above %lld, half of them and 1",
                           (long long)own->max_distance, (long long)own->buckets, (long long)own->buckets / 2 + 1);
    return true;
}

/* The rows that the options ask for, or those of the table. */
static bool count_rows(const attn_relative_position *own, const attn_tensor *table, size_t *rows,
                       struct attn_check *check)
{
    const int64_t half = own->buckets > 0 ? own->buckets : own->max_distance;
    if (!check_buckets(own, check))
        return false;
    if (half < 0 || half > (int64_t)DIMENSION_MAX)
        return attn_refuse(check, ATTN_ERR_VALUE, FIELD(max_distance), "~ is %lld; expected 1 to %zu", (long long)half,
                           DIMENSION_MAX);
    *rows = half > 0 ? 2 * (size_t)half : table->rank == 2 ? table->shape[0] : 0;
    if (*rows == 0 || *rows % 2 != 0)
        return attn_refuse(check, ATTN_ERR_SHAPE, "options.relative_position",
                           "a table has an even number of rows, half of them for later keys; got %zu", *rows);
    return true;
}

static bool check_parts(const attn_request *request, struct attn_check *check)
{
    const attn_relative_position *own = &request->options.relative_position;
    const attn_tensor *const given[] = {own->key, own->query};
    const attn_affine *const weights[] = {&request->weights.relative_key, &request->weights.relative_query};
    if (!request->is_layer && own->embedding != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, FIELD(embedding),
                           "~ belongs to multi-head attention, whose weights make the tables key and query of it");
    for (int n = 0; n < 2; n++)
        if (given[n] != NULL && weights[n]->weight != NULL)
            return attn_refuse(check, ATTN_ERR_FIELD, n == 0 ? FIELD(key) : FIELD(query),
                               "give either ~, or weights.%s, which makes it of embedding",
                               n == 0 ? "relative_key" : "relative_query");
    const bool has_weights = weights[0]->weight != NULL || weights[1]->weight != NULL;
    const bool has_options = own->embedding != NULL || own->buckets != 0 || own->max_distance != 0;
    if (own->embedding != NULL ? has_weights : attn_relative_table(request) != NULL || !has_options)
        return true;
    return attn_refuse(check, ATTN_ERR_FIELD, "options.relative_position", "@ needs %s",
                       own->embedding != NULL ? "weights.relative_key or weights.relative_query beside embedding"
                                              : "key or query");
}

bool attn_relative_check(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_relative_position *own = &request->options.relative_position;
    const attn_tensor *table = attn_relative_table(request);
    size_t rows = 0;
    if (!check_parts(request, check))
        return false;
    return table == NULL || (count_rows(own, table, &rows, check) &&
                             check_table(own->key, FIELD(key), rows, dims->kv_heads * dims->d_k, request, check) &&
                             check_table(own->query, FIELD(query), rows, dims->heads * dims->d_k, request, check) &&
                             check_table(own->embedding, FIELD(embedding), rows, 0, request, check));
}
