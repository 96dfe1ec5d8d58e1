/* dims.c: from the shapes of inputs and weights to the dimensions with their usual names. */
#include "dims.h"

#include <stdio.h>
#include <string.h>

#include "blas.h"

/* ---- inputs ---- */

static const attn_tensor *key_of(const attn_request *request)
{
    return request->inputs.key == NULL ? request->inputs.query : request->inputs.key;
}

static const attn_tensor *value_of(const attn_request *request)
{
    return request->inputs.value == NULL ? key_of(request) : request->inputs.value;
}

static attn_status fail_shapes(attn_error *err, const char *field, const char *message, const char *expected,
                               const attn_tensor *received)
{
    char shape[64];
    attn_shape_text(shape, sizeof shape, received->rank, received->shape);
    attn_status status = attn_fail(err, ATTN_ERR_SHAPE, field, "%s", message);
    if (err != NULL)
        attn_expect(err, expected, shape);
    return status;
}

static attn_status check_tensor(const attn_tensor *tensor, const char *field, attn_dtype compute, attn_error *err)
{
    size_t count;
    if (tensor->dtype != compute)
        return attn_fail(err, ATTN_ERR_FIELD, field, "%s must be %s, got %s", strrchr(field, '/') + 1,
                         attn_dtype_name(compute), attn_dtype_name(tensor->dtype));
    if (!attn_shape_count(tensor->rank, tensor->shape, &count) || count > SIZE_MAX / 16)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, field, "%s has too many elements", strrchr(field, '/') + 1);
    if (!attn_tensor_is_contiguous(tensor))
        return attn_fail(err, ATTN_ERR_FIELD, field, "%s must be row-major without gaps", strrchr(field, '/') + 1);
    return ATTN_OK;
}

static attn_status check_input(const attn_request *request, const attn_tensor *tensor, const char *field,
                               attn_error *err)
{
    int most = request->is_layer ? 3 : 4, rank = request->inputs.query->rank;
    attn_status status = check_tensor(tensor, field, request->options.compute, err);
    if (status != ATTN_OK)
        return status;
    const char *name = strrchr(field, '/') + 1;
    char message[160];
    if (tensor->rank < 2 || tensor->rank > most) {
        snprintf(message, sizeof message, "%s has rank %d; %s takes (len, d), (batch, len, d)%s", name, tensor->rank,
                 request->is_layer ? "a layer" : "attention", most == 4 ? " or (batch, heads, len, d)" : "");
        return fail_shapes(err, field, message, NULL, tensor);
    }
    if (tensor->rank != rank) {
        snprintf(message, sizeof message, "%s has rank %d, query has rank %d", name, tensor->rank, rank);
        return fail_shapes(err, field, message, NULL, tensor);
    }
    if (tensor->shape[tensor->rank - 1] == 0) {
        snprintf(message, sizeof message, "%s has no features", name);
        return fail_shapes(err, field, message, NULL, tensor);
    }
    return ATTN_OK;
}

static attn_status check_inputs(const attn_request *request, attn_error *err)
{
    if (request->inputs.query == NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "/inputs/query", "inputs.query is missing");
    attn_status status = check_input(request, request->inputs.query, "/inputs/query", err);
    if (status == ATTN_OK)
        status = check_input(request, key_of(request), "/inputs/key", err);
    if (status == ATTN_OK)
        status = check_input(request, value_of(request), "/inputs/value", err);
    return status;
}

/* Size of an axis that key or value must share with another input. */
static attn_status check_same(const attn_tensor *tensor, const char *field, int axis, size_t wanted, const char *what,
                              attn_error *err)
{
    char message[160], expected[64];
    if (tensor->shape[axis] == wanted)
        return ATTN_OK;
    size_t shape[ATTN_MAX_RANK];
    memcpy(shape, tensor->shape, sizeof shape);
    shape[axis] = wanted;
    snprintf(message, sizeof message, "%s has %zu %s, %zu expected", strrchr(field, '/') + 1, tensor->shape[axis], what,
             wanted);
    attn_shape_text(expected, sizeof expected, tensor->rank, shape);
    return fail_shapes(err, field, message, expected, tensor);
}

static attn_status read_lengths(const attn_request *request, attn_dims *dims, attn_error *err)
{
    const attn_tensor *q = request->inputs.query, *k = key_of(request), *v = value_of(request);
    const int length_axis = q->rank - 2;
    dims->query_rank = q->rank;
    dims->batch = q->rank == 2 ? 1 : q->shape[0];
    dims->q_len = q->shape[length_axis];
    dims->kv_len = k->shape[length_axis];
    dims->d_query = q->shape[q->rank - 1];
    dims->d_key = k->shape[k->rank - 1];
    dims->d_value = v->shape[v->rank - 1];
    attn_status status = check_same(v, "/inputs/value", length_axis, dims->kv_len, "positions", err);
    if (status == ATTN_OK && q->rank > 2)
        status = check_same(k, "/inputs/key", 0, dims->batch, "batch items", err);
    if (status == ATTN_OK && q->rank > 2)
        status = check_same(v, "/inputs/value", 0, dims->batch, "batch items", err);
    return status;
}

/* ---- heads: attention on q, k, v as given ---- */

/* Bounded first of all: sums and products of head counts and widths must not wrap. */
static attn_status check_groups(const attn_dims *dims, attn_error *err)
{
    if (dims->heads == 0 || dims->kv_heads == 0)
        return attn_fail(err, ATTN_ERR_SHAPE, "/inputs/query", "there must be at least one head");
    if (dims->heads > attn_blas_max() || dims->kv_heads > attn_blas_max())
        return attn_fail(err, ATTN_ERR_TOO_LARGE,
                         dims->heads > attn_blas_max() ? "/options/num_heads" : "/options/kv_num_heads",
                         "there are more than %zu heads", attn_blas_max());
    if (dims->heads % dims->kv_heads != 0)
        return attn_fail(err, ATTN_ERR_SHAPE, "/options/kv_num_heads",
                         "%zu query heads cannot be divided among %zu key heads", dims->heads, dims->kv_heads);
    return ATTN_OK;
}

static attn_status check_option_heads(size_t asked, size_t found, const char *field, attn_error *err)
{
    if (asked == 0 || asked == found)
        return ATTN_OK;
    return attn_fail(err, ATTN_ERR_SHAPE, field, "%s is %zu, but the tensors have %zu heads", strrchr(field, '/') + 1,
                     asked, found);
}

static attn_status heads_of_rank_4(const attn_request *request, attn_dims *dims, attn_error *err)
{
    dims->heads = request->inputs.query->shape[1];
    dims->kv_heads = key_of(request)->shape[1];
    attn_status status = check_same(value_of(request), "/inputs/value", 1, dims->kv_heads, "heads", err);
    if (status == ATTN_OK)
        status = check_option_heads(request->options.num_heads, dims->heads, "/options/num_heads", err);
    if (status == ATTN_OK)
        status = check_option_heads(request->options.kv_num_heads, dims->kv_heads, "/options/kv_num_heads", err);
    dims->d_k = dims->d_query;
    dims->d_v = dims->d_value;
    return status;
}

static attn_status split(size_t features, size_t heads, const char *field, const char *option, size_t *each,
                         attn_error *err)
{
    if (heads == 0 || features % heads != 0)
        return attn_fail(err, ATTN_ERR_SHAPE, field, "%s has %zu features, which %s = %zu does not divide",
                         strrchr(field, '/') + 1, features, option, heads);
    *each = features / heads;
    return ATTN_OK;
}

static attn_status heads_by_splitting(const attn_request *request, attn_dims *dims, attn_error *err)
{
    dims->heads = request->options.num_heads == 0 ? 1 : request->options.num_heads;
    dims->kv_heads = request->options.kv_num_heads == 0 ? dims->heads : request->options.kv_num_heads;
    const char *kv_option = request->options.kv_num_heads == 0 ? "num_heads" : "kv_num_heads";
    attn_status status = split(dims->d_query, dims->heads, "/inputs/query", "num_heads", &dims->d_k, err);
    if (status == ATTN_OK)
        status = split(dims->d_value, dims->kv_heads, "/inputs/value", kv_option, &dims->d_v, err);
    return status;
}

static attn_status read_attention_dims(const attn_request *request, attn_dims *dims, attn_error *err)
{
    attn_status status =
        dims->query_rank == 4 ? heads_of_rank_4(request, dims, err) : heads_by_splitting(request, dims, err);
    size_t key_heads = dims->query_rank == 4 ? 1 : dims->kv_heads, d_key = 0;
    if (status == ATTN_OK)
        status = check_groups(dims, err);
    if (status == ATTN_OK)
        status = split(dims->d_key, key_heads, "/inputs/key", "the number of key heads", &d_key, err);
    if (status == ATTN_OK && d_key != dims->d_k) {
        char message[128], expected[64];
        size_t shape[ATTN_MAX_RANK];
        memcpy(shape, key_of(request)->shape, sizeof shape);
        shape[dims->query_rank - 1] = dims->d_k * key_heads;
        attn_shape_text(expected, sizeof expected, dims->query_rank, shape);
        snprintf(message, sizeof message, "key has %zu features per head, query has %zu", d_key, dims->d_k);
        return fail_shapes(err, "/inputs/key", message, expected, key_of(request));
    }
    dims->d_out = dims->heads * dims->d_v;
    return status;
}

/* ---- weights: a layer ---- */

struct weight_name {
    const char *weight, *bias; /* JSON pointers */
};

static attn_status fail_weight(attn_error *err, const char *field, const attn_tensor *weight, attn_layout layout,
                               size_t rows, size_t columns, const char *why)
{
    char expected[64], received[64], message[240];
    size_t shape[2] = {layout == ATTN_LAYOUT_IN_OUT ? rows : columns, layout == ATTN_LAYOUT_IN_OUT ? columns : rows};
    attn_shape_text(expected, sizeof expected, 2, shape);
    attn_shape_text(received, sizeof received, weight->rank, weight->shape);
    snprintf(message, sizeof message, "the weight at %s has shape %s, layout %s expects %s: %s", field, received,
             layout == ATTN_LAYOUT_IN_OUT ? "in_out" : "out_in", expected, why);
    return fail_shapes(err, field, message, expected, weight);
}

/* Input and output widths of a weight of rank 2 or 3; *heads is its own count, 0 for rank 2. */
static attn_status read_weight(const attn_tensor *weight, const char *field, attn_layout layout, attn_dtype compute,
                               size_t *heads, size_t *in, size_t *out, attn_error *err)
{
    attn_status status = check_tensor(weight, field, compute, err);
    if (status != ATTN_OK)
        return status;
    if (weight->rank != 2 && weight->rank != 3)
        return fail_shapes(err, field, "a weight has rank 2, or rank 3 with the heads first", NULL, weight);
    const size_t *last = weight->shape + weight->rank - 2;
    *heads = weight->rank == 3 ? weight->shape[0] : 0;
    *in = layout == ATTN_LAYOUT_IN_OUT ? last[0] : last[1];
    *out = layout == ATTN_LAYOUT_IN_OUT ? last[1] : last[0];
    if (*in == 0 || *out == 0 || (weight->rank == 3 && *heads == 0))
        return fail_shapes(err, field, "a weight needs at least one row and one column", NULL, weight);
    if (attn_tensor_count(weight) > attn_blas_max())
        return attn_fail(err, ATTN_ERR_TOO_LARGE, field, "the weight has more than %zu elements", attn_blas_max());
    return ATTN_OK;
}

attn_status attn_check_vector(const attn_tensor *bias, const char *field, attn_dtype compute, size_t length,
                              attn_error *err)
{
    if (bias == NULL)
        return ATTN_OK;
    attn_status status = check_tensor(bias, field, compute, err);
    if (status != ATTN_OK)
        return status;
    char message[96], expected[32];
    if (bias->rank >= 1 && bias->rank <= 2 && attn_tensor_count(bias) == length)
        return ATTN_OK;
    snprintf(message, sizeof message, "the bias has %zu numbers, the weight gives %zu", attn_tensor_count(bias),
             length);
    snprintf(expected, sizeof expected, "[%zu]", length);
    return fail_shapes(err, field, message, expected, bias);
}

/* Features per head that a projection gives, from its weight. heads is known; 0: taken from a rank-3 weight. */
static attn_status read_projection(const attn_linear *linear, const char *name, const attn_request *request,
                                   size_t d_in, size_t heads, size_t *d_head, attn_error *err)
{
    char field[64], bias_field[64];
    size_t own_heads = 0, in = 0, out = 0;
    snprintf(field, sizeof field, "/weights/%s/weight", name);
    snprintf(bias_field, sizeof bias_field, "/weights/%s/bias", name);
    if (linear->weight == NULL)
        return attn_fail(err, ATTN_ERR_FIELD, field, "weights.%s.weight is missing: give query, key and value, or qkv",
                         name);
    attn_layout layout = request->weights.layout;
    attn_status status =
        read_weight(linear->weight, field, layout, request->options.compute, &own_heads, &in, &out, err);
    if (status != ATTN_OK)
        return status;
    char why[96];
    snprintf(why, sizeof why, "inputs.%s has %zu features", name, d_in);
    if (in != d_in)
        return fail_weight(err, field, linear->weight, layout, d_in, out, why);
    if (own_heads != 0 && own_heads != heads)
        return attn_fail(err, ATTN_ERR_SHAPE, field, "the weight of %s has %zu heads, %zu expected", name, own_heads,
                         heads);
    if (own_heads == 0 && out % heads != 0)
        return attn_fail(err, ATTN_ERR_SHAPE, field,
                         "the weight of %s gives %zu features, which %zu heads do not divide", name, out, heads);
    *d_head = own_heads != 0 ? out : out / heads;
    return attn_check_vector(linear->bias, bias_field, request->options.compute, *d_head * heads, err);
}

static attn_status read_separate_dims(const attn_request *request, attn_dims *dims, attn_error *err)
{
    const attn_weights *weights = &request->weights;
    size_t d_key = 0;
    if (attn_linear_is_given(&weights->qkv))
        return attn_fail(err, ATTN_ERR_FIELD, "/weights/qkv/weight", "weights.qkv has a bias but no weight");
    attn_status status =
        read_projection(&weights->query, "query", request, dims->d_query, dims->heads, &dims->d_k, err);
    if (status == ATTN_OK)
        status = read_projection(&weights->key, "key", request, dims->d_key, dims->kv_heads, &d_key, err);
    if (status == ATTN_OK)
        status = read_projection(&weights->value, "value", request, dims->d_value, dims->kv_heads, &dims->d_v, err);
    if (status == ATTN_OK && d_key != dims->d_k)
        return fail_shapes(err, "/weights/key/weight", "the weights of query and key give different features per head",
                           NULL, weights->key.weight);
    return status;
}

static attn_status read_fused_dims(const attn_request *request, attn_dims *dims, attn_error *err)
{
    const attn_weights *weights = &request->weights;
    const char *field = "/weights/qkv/weight";
    size_t own_heads = 0, in = 0, out = 0, parts = dims->heads + 2 * dims->kv_heads;
    if (attn_linear_is_given(&weights->query) || attn_linear_is_given(&weights->key) ||
        attn_linear_is_given(&weights->value))
        return attn_fail(err, ATTN_ERR_FIELD, "/weights/qkv", "give either qkv or query, key and value, not both");
    attn_status status =
        read_weight(weights->qkv.weight, field, weights->layout, request->options.compute, &own_heads, &in, &out, err);
    if (status != ATTN_OK)
        return status;
    if (own_heads != 0)
        return fail_shapes(err, field, "a fused weight has rank 2", NULL, weights->qkv.weight);
    if (dims->d_key != dims->d_query || dims->d_value != dims->d_query)
        return attn_fail(err, ATTN_ERR_SHAPE, "/inputs", "a fused weight needs query, key and value of one width");
    if (in != dims->d_query)
        return fail_weight(err, field, weights->qkv.weight, weights->layout, dims->d_query, out,
                           "the inputs' features come in");
    if (weights->qkv_order == ATTN_QKV_PER_HEAD && dims->heads != dims->kv_heads)
        return attn_fail(err, ATTN_ERR_VALUE, "/weights/qkv/order",
                         "order per_head needs as many key heads as query heads; use per_group");
    if (out % parts != 0)
        return attn_fail(err, ATTN_ERR_SHAPE, field,
                         "the fused weight gives %zu features, which %zu query and 2 x %zu key and value heads do not "
                         "divide",
                         out, dims->heads, dims->kv_heads);
    dims->d_k = dims->d_v = out / parts;
    return attn_check_vector(weights->qkv.bias, "/weights/qkv/bias", request->options.compute, out, err);
}

static size_t heads_of(const attn_linear *linear)
{
    return linear->weight != NULL && linear->weight->rank == 3 ? linear->weight->shape[0] : 0;
}

static attn_status read_output_dims(const attn_request *request, attn_dims *dims, attn_error *err)
{
    const attn_linear *output = &request->weights.output;
    dims->d_out = dims->heads * dims->d_v;
    if (output->weight == NULL && output->bias != NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "/weights/output/weight", "weights.output has a bias but no weight");
    if (output->weight == NULL)
        return ATTN_OK;
    const char *field = "/weights/output/weight";
    attn_layout layout = request->weights.layout;
    size_t own_heads = 0, in = 0, out = 0;
    attn_status status =
        read_weight(output->weight, field, layout, request->options.compute, &own_heads, &in, &out, err);
    if (status != ATTN_OK)
        return status;
    if (own_heads != 0 && layout == ATTN_LAYOUT_OUT_IN)
        return fail_shapes(err, field, "an output weight of rank 3 is (heads, d_v, d_out), with layout in_out", NULL,
                           output->weight);
    in = own_heads == 0 ? in : in * own_heads;
    if (in != dims->d_out)
        return fail_weight(err, field, output->weight, layout, dims->d_out, out,
                           "the heads together give that many features");
    dims->d_out = out;
    return attn_check_vector(output->bias, "/weights/output/bias", request->options.compute, out, err);
}

static attn_status read_layer_dims(const attn_request *request, attn_dims *dims, attn_error *err)
{
    const attn_weights *weights = &request->weights;
    const attn_options *options = &request->options;
    size_t own = heads_of(&weights->query), own_kv = heads_of(&weights->key);
    dims->heads = options->num_heads != 0 ? options->num_heads : own != 0 ? own : 1;
    dims->kv_heads = options->kv_num_heads != 0 ? options->kv_num_heads : own_kv != 0 ? own_kv : dims->heads;
    attn_status status = check_groups(dims, err);
    if (status == ATTN_OK)
        status =
            weights->qkv.weight != NULL ? read_fused_dims(request, dims, err) : read_separate_dims(request, dims, err);
    if (status == ATTN_OK)
        status = read_output_dims(request, dims, err);
    return status;
}

attn_status attn_dims_read(const attn_request *request, attn_dims *dims, attn_error *err)
{
    attn_status status = check_inputs(request, err);
    if (status == ATTN_OK)
        status = read_lengths(request, dims, err);
    if (status == ATTN_OK)
        status = request->is_layer ? read_layer_dims(request, dims, err) : read_attention_dims(request, dims, err);
    return status;
}
