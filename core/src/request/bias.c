/*
 * bias.c: alibi, relative_bias, relative_position, sinks, head_scale and differential against the heads and the mask.
 * dims.c has read the weights of relative_position.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"
#include "formulas/formulas.h"
#include "mask/resolved.h"
#include "request/request.h"

static bool check_finite(const attn_tensor *tensor, const char *field, const attn_request *request,
                         struct attn_check *check)
{
    const attn_dtype compute = request->options.compute;
    struct attn_pace pace = attn_pace_begin(request->watch);
    const size_t columns = tensor->rank == 2 ? tensor->shape[1] : 1;
    if (tensor->dtype != compute)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "@ must be %s, got %s", attn_dtype_name(compute),
                           attn_dtype_name(tensor->dtype));
    for (size_t row = 0; row < tensor->shape[0]; row++)
        for (size_t column = 0; column < columns; column++) {
            const ptrdiff_t at =
                (ptrdiff_t)row * tensor->stride[0] + (tensor->rank == 2 ? (ptrdiff_t)column * tensor->stride[1] : 0);
            if (attn_pace_stops(&pace, 1))
                return attn_refuse_stopped(check);
            if (!isfinite(attn_number_at(tensor->data, tensor->dtype, at)))
                return attn_refuse(check, ATTN_ERR_VALUE, field, "@ holds a number that is not finite");
        }
    return true;
}

/* One number for each unit of the request, of which there are count. */
static bool check_each(const attn_tensor *tensor, const char *field, const attn_request *request, size_t count,
                       const char *unit, struct attn_check *check)
{
    if (tensor == NULL)
        return true;
    char expected[32], received[64];
    attn_shape_text(expected, sizeof expected, 1, &count);
    if (tensor->rank != 1 || tensor->shape[0] != count)
        return attn_refuse_shape(check, field, tensor, expected, "@ has shape %s, expected %s: one number for each %s",
                                 attn_shape_text(received, sizeof received, tensor->rank, tensor->shape), expected,
                                 unit);
    return check_finite(tensor, field, request, check);
}

static double largest_of(attn_dtype compute)
{
    return compute == ATTN_F32 ? (double)FLT_MAX : DBL_MAX;
}

enum { SLOPE = 16 }; /* a slope takes as long as so many numbers */

/* The product of the largest slope and the largest distance must stay finite, because offsets can be large. */
static bool check_slopes(const attn_request *request, size_t heads, const attn_mask *mask, struct attn_check *check)
{
    const attn_options *options = &request->options;
    struct attn_pace pace = attn_pace_begin(request->watch);
    double farthest = 0, steepest = 0;
    if (!check_each(options->alibi_slopes, "options.alibi_slopes", request, heads, "head", check))
        return false;
    if (!attn_has_alibi(options))
        return true;
    for (size_t b = 0; b < mask->batch; b++) {
        const double offset = (double)attn_mask_offset(mask, b);
        farthest = fmax(farthest, fabs(offset) + (double)mask->q_len + (double)mask->kv_len);
    }
    for (size_t h = 0; h < heads; h++) {
        if (attn_pace_stops(&pace, SLOPE))
            return attn_refuse_stopped(check);
        steepest = fmax(steepest, fabs(attn_slope_of(options, heads, h)));
    }
    /* Half of the range is left for a relative bias. */
    if (!(steepest * farthest <= largest_of(options->compute) / 2))
        return attn_refuse(check, ATTN_ERR_VALUE,
                           options->alibi_slopes != NULL ? "options.alibi_slopes" : "options.alibi",
                           "a slope of %g over a distance of %g leaves the range of compute %s", steepest, farthest,
                           attn_dtype_name(options->compute));
    return true;
}

static bool check_relative(const attn_request *request, size_t heads, struct attn_check *check)
{
    const attn_relative_bias *relative = &request->options.relative_bias;
    const char *field = "options.relative_bias.table";
    if (relative->table == NULL)
        return true;
    char expected[48], received[64];
    snprintf(expected, sizeof expected, "[\"any\", %zu]", heads);
    if (relative->table->rank != 2 || relative->table->shape[1] != heads)
        return attn_refuse_shape(
            check, field, relative->table, expected, "@ has shape %s, expected [buckets, %zu]: a column for each head",
            attn_shape_text(received, sizeof received, relative->table->rank, relative->table->shape), heads);
    const size_t buckets = relative->table->shape[0], min = relative->bidirectional ? 4 : 2;
    if (buckets < min)
        return attn_refuse(check, ATTN_ERR_SHAPE, field, "table has %zu buckets; %s needs at least %zu", buckets,
                           relative->bidirectional ? "both directions" : "one direction", min);
    const size_t exact = (relative->bidirectional ? buckets / 2 : buckets) / 2;
    if (relative->max_distance <= (int64_t)exact)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.relative_bias.max_distance",
                           "~ is %lld, it must be above the %zu distances that have a bucket of their own",
                           (long long)relative->max_distance, exact);
    return check_finite(relative->table, field, request, check);
}

bool attn_score_bias_check(const attn_request *request, const attn_plan *plan, struct attn_check *check)
{
    const size_t heads = plan->dims.heads;
    return check_slopes(request, heads, attn_mask_of(plan), check) && check_relative(request, heads, check) &&
           check_each(request->options.sinks, "options.sinks", request, heads, "head", check) &&
           check_each(request->options.head_scale, "options.head_scale", request, heads, "head", check) &&
           check_each(request->options.differential, "options.differential", request, plan->dims.out_heads,
                      "pair of heads", check);
}

/* ---- relative_position ---- */

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
