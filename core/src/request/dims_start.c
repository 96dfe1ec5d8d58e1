/* dims_start.c: the dimensions of a request that starts at scores or weights. */
#include "request/dims_start.h"

#include "base/fail_shape.h"
#include "request/dims_checks.h"

static const char *start_field(const attn_request *request)
{
    return request->inputs.scores != NULL ? "inputs.scores" : "inputs.attention";
}

/* Inputs that the given map stands for. */
static attn_status check_replaced(const attn_request *request, attn_error *err)
{
    const attn_inputs *inputs = &request->inputs;
    const struct {
        const attn_tensor *tensor;
        const char *field;
    } replaced[] = {{inputs->query, "inputs.query"},
                    {inputs->key, "inputs.key"},
                    {inputs->past_key, "inputs.past_key"},
                    {inputs->past_value, "inputs.past_value"}};
    const char *name = attn_last_name(start_field(request));
    if (request->is_layer)
        return attn_fail(err, ATTN_ERR_FIELD, start_field(request), "%s belongs to attention without weights", name);
    if (inputs->scores != NULL && inputs->attention != NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "inputs.attention",
                         "attention does not go with scores: a request starts at one of them");
    for (size_t n = 0; n < sizeof replaced / sizeof *replaced; n++)
        if (replaced[n].tensor != NULL)
            return attn_fail(err, ATTN_ERR_FIELD, replaced[n].field,
                             "%s does not go with %s, which stands for queries and keys",
                             attn_last_name(replaced[n].field), name);
    return ATTN_OK;
}

static attn_status read_map(const attn_request *request, attn_dims *dims, attn_error *err)
{
    const attn_tensor *map = attn_start_of(&request->inputs);
    const char *field = start_field(request), *name = attn_last_name(field);
    attn_status status = attn_check_tensor(map, field, request->options.compute, err);
    if (status != ATTN_OK)
        return status;
    if (map->rank < 2 || map->rank > 4)
        return attn_fail_shape(
            err, field, map, NULL,
            "%s has rank %d; it is (q_len, kv_len), (heads, q_len, kv_len) or (batch, heads, q_len, kv_len)", name,
            map->rank);
    dims->batch = map->rank == 4 ? map->shape[0] : 1;
    dims->heads = map->rank > 2 ? map->shape[map->rank - 3] : 1;
    dims->q_len = map->shape[map->rank - 2];
    dims->kv_len = map->shape[map->rank - 1];
    dims->kv_heads = dims->heads;
    if (dims->heads == 0)
        return attn_fail_shape(err, field, map, NULL, "%s has no heads", name);
    return attn_check_heads(request->options.num_heads, dims->heads, "options.num_heads", err);
}

/* Without value, a request that starts at scores ends at the weights. */
static attn_status check_without_value(const attn_request *request, attn_error *err)
{
    if (request->inputs.attention != NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "inputs.value", "inputs.value is missing: attention is multiplied by it");
    if (request->options.kv_num_heads != 0)
        return attn_fail(err, ATTN_ERR_FIELD, "options.kv_num_heads",
                         "kv_num_heads needs inputs.value, whose heads it counts");
    return ATTN_OK;
}

static attn_status read_value_heads(const attn_request *request, attn_dims *dims, attn_error *err)
{
    const attn_tensor *value = request->inputs.value;
    const size_t asked = request->options.kv_num_heads;
    const char *option = asked == 0 ? "the number of heads" : "kv_num_heads";
    dims->kv_heads = value->rank == 4 ? value->shape[1] : asked == 0 ? dims->heads : asked;
    attn_status status = attn_check_heads(asked, dims->kv_heads, "options.kv_num_heads", err);
    if (status == ATTN_OK && dims->kv_heads == 0)
        return attn_fail_shape(err, "inputs.value", value, NULL, "value has no heads");
    if (status == ATTN_OK)
        status = attn_check_groups(dims, err);
    if (status == ATTN_OK)
        status = attn_split_features(dims->d_value, value->rank == 4 ? 1 : dims->kv_heads, "inputs.value", option,
                                     &dims->d_v, err);
    return status;
}

static attn_status read_value(const attn_request *request, attn_dims *dims, attn_error *err)
{
    const attn_tensor *value = request->inputs.value;
    dims->query_rank = 4;
    if (value == NULL)
        return check_without_value(request, err);
    attn_status status = attn_check_tokens(value, "inputs.value", request->options.compute, err);
    if (status != ATTN_OK)
        return status;
    if (value->rank < 2 || value->rank > 4)
        return attn_fail_shape(err, "inputs.value", value, NULL,
                               "value has rank %d; attention takes (len, d), (batch, len, d) or (batch, heads, len, d)",
                               value->rank);
    dims->query_rank = value->rank;
    dims->d_value = value->shape[value->rank - 1];
    if (dims->d_value == 0)
        return attn_fail_shape(err, "inputs.value", value, NULL, "value has no features");
    if (value->rank == 2 && dims->batch != 1)
        return attn_fail_shape(err, "inputs.value", value, NULL, "value has rank 2, but %s has %zu batch items",
                               attn_last_name(start_field(request)), dims->batch);
    if (value->rank > 2)
        status = attn_check_same(value, "inputs.value", 0, dims->batch, start_field(request), "batch items", err);
    if (status == ATTN_OK)
        status = attn_check_same(value, "inputs.value", value->rank - 2, dims->kv_len, start_field(request),
                                 "positions", err);
    if (status == ATTN_OK)
        status = read_value_heads(request, dims, err);
    dims->d_attended = dims->d_out = dims->heads * dims->d_v;
    return status;
}

attn_status attn_dims_read_start(const attn_request *request, attn_dims *dims, attn_error *err)
{
    attn_status status = check_replaced(request, err);
    if (status == ATTN_OK)
        status = read_map(request, dims, err);
    if (status == ATTN_OK)
        status = attn_check_groups(dims, err);
    if (status == ATTN_OK)
        status = read_value(request, dims, err);
    return status;
}
