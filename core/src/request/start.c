/* start.c: the dimensions of a request that starts at scores or weights. */
#include "request/request.h"

static const char *start_field(const attn_request *request)
{
    return request->inputs.scores != NULL ? "inputs.scores" : "inputs.attention";
}

/* Inputs that the given map stands for. */
static bool check_replaced(const attn_request *request, struct attn_check *check)
{
    const attn_inputs *inputs = &request->inputs;
    const struct {
        const attn_tensor *tensor;
        const char *field;
    } replaced[] = {{inputs->query, "inputs.query"},
                    {inputs->key, "inputs.key"},
                    {inputs->past_key, "inputs.past_key"},
                    {inputs->past_value, "inputs.past_value"}};
    if (request->is_layer)
        return attn_refuse(check, ATTN_ERR_FIELD, start_field(request), "~ belongs to attention without weights");
    if (inputs->scores != NULL && inputs->attention != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "inputs.attention",
                           "~ does not go with scores: a request starts at one of them");
    for (size_t n = 0; n < sizeof replaced / sizeof *replaced; n++)
        if (replaced[n].tensor != NULL)
            return attn_refuse(check, ATTN_ERR_FIELD, replaced[n].field,
                               "~ does not go with ~%s, which stands for queries and keys", start_field(request));
    return true;
}

static bool read_map(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_tensor *map = attn_start_of(&request->inputs);
    const char *field = start_field(request);
    if (!attn_check_tensor(map, field, request->options.compute, check))
        return false;
    if (map->rank < 2 || map->rank > 4)
        return attn_refuse_shape(
            check, field, map, NULL,
            "~ has rank %d; it is (q_len, kv_len), (heads, q_len, kv_len) or (batch, heads, q_len, kv_len)", map->rank);
    dims->batch = map->rank == 4 ? map->shape[0] : 1;
    dims->heads = map->rank > 2 ? map->shape[map->rank - 3] : 1;
    dims->q_len = map->shape[map->rank - 2];
    dims->kv_len = map->shape[map->rank - 1];
    dims->kv_heads = dims->v_heads = dims->out_heads = dims->heads;
    if (dims->heads == 0)
        return attn_refuse_shape(check, field, map, NULL, "~ has no heads");
    return attn_check_heads(request->options.num_heads, dims->heads, "options.num_heads", check);
}

/* Without value, a request that starts at scores ends at the weights. */
static bool check_without_value(const attn_request *request, struct attn_check *check)
{
    if (request->inputs.attention != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "inputs.value",
                           "inputs.value is missing: attention is multiplied by it");
    if (request->options.kv_num_heads != 0)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.kv_num_heads",
                           "~ needs inputs.value, whose heads it counts");
    return true;
}

static bool read_value_heads(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_tensor *value = request->inputs.value;
    const size_t asked = request->options.kv_num_heads;
    const char *option = asked == 0 ? "the number of heads" : "kv_num_heads";
    dims->kv_heads = value->rank == 4 ? value->shape[1] : asked == 0 ? dims->heads : asked;
    if (!attn_check_heads(asked, dims->kv_heads, "options.kv_num_heads", check))
        return false;
    dims->v_heads = dims->kv_heads;
    if (dims->kv_heads == 0)
        return attn_refuse_shape(check, "inputs.value", value, NULL, "value has no heads");
    return attn_check_groups(dims, check) && attn_split_features(dims->d_value, value->rank == 4 ? 1 : dims->kv_heads,
                                                                 "inputs.value", option, &dims->d_v, check);
}

static bool read_value(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_tensor *value = request->inputs.value;
    dims->query_rank = 4;
    if (value == NULL)
        return check_without_value(request, check);
    if (!attn_check_tokens(value, "inputs.value", request->options.compute, check))
        return false;
    if (value->rank < 2 || value->rank > 4)
        return attn_refuse_shape(
            check, "inputs.value", value, NULL,
            "value has rank %d; attention takes (len, d), (batch, len, d) or (batch, heads, len, d)", value->rank);
    dims->query_rank = value->rank;
    dims->d_value = value->shape[value->rank - 1];
    if (dims->d_value == 0)
        return attn_refuse_shape(check, "inputs.value", value, NULL, "value has no features");
    if (value->rank == 2 && dims->batch != 1)
        return attn_refuse_shape(check, "inputs.value", value, NULL, "value has rank 2, but ~%s has %zu batch items",
                                 start_field(request), dims->batch);
    if ((value->rank > 2 &&
         !attn_check_same(value, "inputs.value", 0, dims->batch, start_field(request), "batch items", check)) ||
        !attn_check_same(value, "inputs.value", value->rank - 2, dims->kv_len, start_field(request), "positions",
                         check) ||
        !read_value_heads(request, dims, check))
        return false;
    dims->d_attended = dims->d_out = dims->heads * dims->d_v;
    return true;
}

bool attn_dims_read_start(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    return check_replaced(request, check) && read_map(request, dims, check) && attn_check_groups(dims, check) &&
           read_value(request, dims, check);
}
