/* plan.c: a request checked and weighed: dimensions, masks, what is kept, bytes and FLOPs. */
#include "attn/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "blas.h"
#include "heads.h"
#include "multihead_job.h"

static const char *const step_names[] = {
#define STEP_NAME(code, name) name,
    ATTN_STEP_LIST(STEP_NAME)
#undef STEP_NAME
};

const char *attn_step_name(attn_step step)
{
    return step_names[step];
}

attn_step attn_step_from_name(const char *name)
{
    int step = 0;
    while (step < ATTN_STEP_COUNT && strcmp(step_names[step], name) != 0)
        step++;
    return (attn_step)step;
}

bool attn_step_is_map(attn_step step)
{
    return (step >= ATTN_STEP_SCORES && step <= ATTN_STEP_DROPPED) || step == ATTN_STEP_MASK;
}

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
    snprintf(message, sizeof message, "%s has %zu %s, %zu expected", strrchr(field, '/') + 1, tensor->shape[axis],
             what, wanted);
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
    attn_status status = dims->query_rank == 4 ? heads_of_rank_4(request, dims, err)
                                               : heads_by_splitting(request, dims, err);
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

static attn_status check_bias_length(const attn_tensor *bias, const char *field, attn_dtype compute, size_t length,
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
    snprintf(message, sizeof message, "the bias has %zu numbers, the weight gives %zu", attn_tensor_count(bias), length);
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
        return attn_fail(err, ATTN_ERR_FIELD, field,
                         "weights.%s.weight is missing: give query, key and value, or qkv", name);
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
        return attn_fail(err, ATTN_ERR_SHAPE, field, "the weight of %s gives %zu features, which %zu heads do not divide",
                         name, out, heads);
    *d_head = own_heads != 0 ? out : out / heads;
    return check_bias_length(linear->bias, bias_field, request->options.compute, *d_head * heads, err);
}

static bool is_given(const attn_linear *linear)
{
    return linear->weight != NULL || linear->bias != NULL;
}

static attn_status read_separate_dims(const attn_request *request, attn_dims *dims, attn_error *err)
{
    const attn_weights *weights = &request->weights;
    size_t d_key = 0;
    if (is_given(&weights->qkv))
        return attn_fail(err, ATTN_ERR_FIELD, "/weights/qkv/weight", "weights.qkv has a bias but no weight");
    attn_status status = read_projection(&weights->query, "query", request, dims->d_query, dims->heads, &dims->d_k, err);
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
    if (is_given(&weights->query) || is_given(&weights->key) || is_given(&weights->value))
        return attn_fail(err, ATTN_ERR_FIELD, "/weights/qkv", "give either qkv or query, key and value, not both");
    attn_status status = read_weight(weights->qkv.weight, field, weights->layout, request->options.compute, &own_heads,
                                     &in, &out, err);
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
                         "divide", out, dims->heads, dims->kv_heads);
    dims->d_k = dims->d_v = out / parts;
    return check_bias_length(weights->qkv.bias, "/weights/qkv/bias", request->options.compute, out, err);
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
    return check_bias_length(output->bias, "/weights/output/bias", request->options.compute, out, err);
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
        status = weights->qkv.weight != NULL ? read_fused_dims(request, dims, err)
                                             : read_separate_dims(request, dims, err);
    if (status == ATTN_OK)
        status = read_output_dims(request, dims, err);
    return status;
}

/* ---- options ---- */

static attn_status check_numbers(const attn_options *options, attn_error *err)
{
    if (options->compute != ATTN_F32 && options->compute != ATTN_F64)
        return attn_fail(err, ATTN_ERR_VALUE, "/options/compute", "compute must be float32 or float64");
    if (options->has_scale && !isfinite(options->scale))
        return attn_fail(err, ATTN_ERR_VALUE, "/options/scale", "scale must be a finite number");
    if (!(options->softcap >= 0) || !isfinite(options->softcap))
        return attn_fail(err, ATTN_ERR_VALUE, "/options/softcap", "softcap must be a finite number above 0");
    if (!(options->dropout >= 0 && options->dropout <= 1))
        return attn_fail(err, ATTN_ERR_VALUE, "/options/dropout/p", "p must be from 0 to 1");
    if (options->norm != ATTN_NORM_NONE && !(options->norm_eps >= 0 && isfinite(options->norm_eps)))
        return attn_fail(err, ATTN_ERR_VALUE, "/options/norm/eps", "eps must be a finite number, 0 or more");
    return ATTN_OK;
}

static attn_status check_norm_vector(const attn_tensor *vector, const char *field, const attn_request *request,
                                     size_t width, attn_error *err)
{
    if (vector != NULL && request->options.norm == ATTN_NORM_NONE)
        return attn_fail(err, ATTN_ERR_FIELD, field, "weights.norm needs options.norm to say which normalisation");
    return check_bias_length(vector, field, request->options.compute, width, err);
}

static attn_status check_layer_options(const attn_request *request, const attn_dims *dims, attn_error *err)
{
    const attn_options *options = &request->options;
    if (options->residual && dims->d_out != dims->d_query)
        return attn_fail(err, ATTN_ERR_SHAPE, "/options/residual",
                         "the residual adds query (%zu features) to the output (%zu features): they must be equal",
                         dims->d_query, dims->d_out);
    bool pre = options->norm != ATTN_NORM_NONE && options->norm_position == ATTN_NORM_PRE;
    size_t width = pre ? dims->d_query : dims->d_out;
    attn_status status = check_norm_vector(request->weights.norm.weight, "/weights/norm/weight", request, width, err);
    if (status == ATTN_OK)
        status = check_norm_vector(request->weights.norm.bias, "/weights/norm/bias", request, width, err);
    return status;
}

static attn_status check_attention_options(const attn_request *request, attn_error *err)
{
    const attn_weights *w = &request->weights;
    if (is_given(&w->query) || is_given(&w->key) || is_given(&w->value) || is_given(&w->qkv) || is_given(&w->output) ||
        is_given(&w->norm))
        return attn_fail(err, ATTN_ERR_FIELD, "/weights", "weights belong to multi-head attention");
    if (request->options.residual)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/residual", "residual belongs to multi-head attention");
    if (request->options.norm != ATTN_NORM_NONE)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/norm", "norm belongs to multi-head attention");
    if (request->options.dropout > 0 && request->options.dropout_residual)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/dropout/where",
                         "dropout on the residual belongs to multi-head attention");
    return ATTN_OK;
}

static attn_status check_wanted(const attn_request *request, attn_error *err)
{
    static const char *const field = "/options/return";
    const attn_options *options = &request->options;
    if (attn_wants(options, ATTN_STEP_PROJECTED) && request->weights.output.weight == NULL)
        return attn_fail(err, ATTN_ERR_FIELD, field, "\"projected\" needs weights.output");
    if (attn_wants(options, ATTN_STEP_RESIDUAL) && !options->residual)
        return attn_fail(err, ATTN_ERR_FIELD, field, "\"residual\" needs options.residual: true");
    if (attn_wants(options, ATTN_STEP_DROPPED) && !(options->dropout > 0 && options->dropout_attention))
        return attn_fail(err, ATTN_ERR_FIELD, field,
                         "\"dropped\" needs options.dropout on attention with p above 0, and training: true");
    return ATTN_OK;
}

enum { UNSORTED_MAX = 4096 };

/* Whether the items are all different; an unsorted list is compared pair by pair, so it may not be long. */
static bool is_repeating(const attn_selection *selection)
{
    bool ascending = true;
    for (size_t s = 1; s < selection->count; s++)
        ascending = ascending && selection->items[s - 1] < selection->items[s];
    if (ascending)
        return false;
    for (size_t s = 0; s < selection->count && selection->count <= UNSORTED_MAX; s++)
        for (size_t earlier = 0; earlier < s; earlier++)
            if (selection->items[earlier] == selection->items[s])
                return true;
    return selection->count > UNSORTED_MAX;
}

static attn_status check_selection(const attn_selection *selection, const char *name, size_t dimension, size_t *kept,
                                   attn_error *err)
{
    char field[32];
    snprintf(field, sizeof field, "/options/%s", name);
    *kept = selection->items == NULL ? dimension : selection->count;
    if (selection->items != NULL && selection->count > dimension)
        return attn_fail(err, ATTN_ERR_VALUE, field, "%s selects %zu of %zu", name, selection->count, dimension);
    for (size_t s = 0; selection->items != NULL && s < selection->count; s++)
        if (selection->items[s] >= dimension)
            return attn_fail(err, ATTN_ERR_VALUE, field, "%s has %zu; they are numbered 0 to %zu", name,
                             selection->items[s], dimension == 0 ? 0 : dimension - 1);
    if (selection->items != NULL && is_repeating(selection))
        return attn_fail(err, ATTN_ERR_VALUE, field, "%s names one twice, or is not ascending and longer than %d", name,
                         UNSORTED_MAX);
    return ATTN_OK;
}

/* ---- what is kept, and its weight ---- */

static void set_shape(attn_plan *plan, attn_step step, attn_dtype dtype, int rank, const size_t *shape)
{
    plan->step[step] = attn_tensor_view(NULL, dtype, rank, shape);
}

static void shape_steps(attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const attn_dtype t = plan->compute;
    const size_t map[4] = {d->batch, plan->selected_heads, plan->selected_queries, plan->selected_keys};
    const size_t mean[3] = {d->batch, plan->selected_queries, plan->selected_keys};
    const size_t concat[3] = {d->batch, d->q_len, d->heads * d->d_v}, tokens[3] = {d->batch, d->q_len, d->d_out};
    const size_t context[4] = {d->batch, d->heads, d->q_len, d->d_v};
    const int skip = d->query_rank == 2 ? 1 : 0; /* no batch axis where the query has none */
    set_shape(plan, ATTN_STEP_Q, t, 4, (size_t[]){d->batch, d->heads, d->q_len, d->d_k});
    set_shape(plan, ATTN_STEP_K, t, 4, (size_t[]){d->batch, d->kv_heads, d->kv_len, d->d_k});
    set_shape(plan, ATTN_STEP_V, t, 4, (size_t[]){d->batch, d->kv_heads, d->kv_len, d->d_v});
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        if (attn_step_is_map((attn_step)step))
            set_shape(plan, (attn_step)step, step == ATTN_STEP_MASK ? ATTN_BOOL : t, 4, map);
    set_shape(plan, ATTN_STEP_LSE, t, 3, context);
    set_shape(plan, ATTN_STEP_ENTROPY, t, 3, context);
    set_shape(plan, ATTN_STEP_CONTEXT, t, 4, context);
    set_shape(plan, ATTN_STEP_CONCAT, t, 3 - skip, concat + skip);
    set_shape(plan, ATTN_STEP_PROJECTED, t, 3 - skip, tokens + skip);
    set_shape(plan, ATTN_STEP_RESIDUAL, t, 3 - skip, tokens + skip);
    if (d->query_rank == 4)
        set_shape(plan, ATTN_STEP_OUTPUT, t, 4, context);
    else
        set_shape(plan, ATTN_STEP_OUTPUT, t, 3 - skip, tokens + skip);
    set_shape(plan, ATTN_STEP_ATTENTION_MEAN, t, 3, mean);
}

/* Every dimension is below 2^40 or so in practice; doubles hold the products that a size_t might not. */
static attn_status weigh_results(attn_plan *plan, attn_error *err)
{
    double bytes = 0;
    shape_steps(plan);
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (!(plan->want >> step & 1))
            continue;
        const attn_tensor *tensor = &plan->step[step];
        double own = (double)attn_dtype_bytes(tensor->dtype);
        for (int axis = 0; axis < tensor->rank; axis++)
            own *= (double)tensor->shape[axis];
        bytes += own;
        if (bytes > (double)((size_t)1 << 52))
            return attn_fail(err, ATTN_ERR_TOO_LARGE, "/options/return", "\"%s\" would take %.3g bytes",
                             step_names[step], own);
        plan->step_bytes[step] = (size_t)own;
    }
    plan->result_bytes = (size_t)bytes;
    return ATTN_OK;
}

/* Pairs of a query and a key that the spans leave, over the batch, for one head. */
static double count_pairs(const attn_plan *plan)
{
    double pairs = 0;
    for (size_t b = 0; b < plan->dims.batch; b++)
        for (size_t i = 0; i < plan->dims.q_len; i++) {
            attn_span span = attn_mask_span(&plan->mask, b, i);
            pairs += (double)(span.to - span.from);
        }
    return pairs;
}

static double product_flops(double rows, double inner, double columns)
{
    return 2 * rows * inner * columns;
}

static void weigh_work(const attn_request *request, attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const double queries = (double)d->batch * (double)d->q_len, keys = (double)d->batch * (double)d->kv_len;
    const double heads = (double)d->heads, kv_heads = (double)d->kv_heads, d_k = (double)d->d_k, d_v = (double)d->d_v;
    attn_flops *f = &plan->flops;
    if (request->is_layer)
        f->projections = product_flops(queries, (double)d->d_query, heads * d_k) +
                         product_flops(keys, (double)d->d_key, kv_heads * d_k) +
                         product_flops(keys, (double)d->d_value, kv_heads * d_v);
    f->attention = heads * count_pairs(plan) * (2 * (d_k + d_v) + 8);
    if (request->weights.output.weight != NULL)
        f->output_projection = product_flops(queries, heads * d_v, (double)d->d_out);
    f->rest = queries * (double)d->d_out * 8;
    plan->total_flops = f->projections + f->attention + f->output_projection + f->rest;
}

/* Also when the tensors are empty, so that no loop over heads is long without data to justify it. */
enum { HEADS_MAX = 1 << 20 };

static attn_status check_sizes(const attn_plan *plan, attn_error *err)
{
    const attn_dims *d = &plan->dims;
    const size_t sizes[] = {d->batch, d->q_len,   d->kv_len,  d->d_query,         d->d_key, d->d_value,
                            d->d_out, d->heads * d->d_k, d->heads * d->d_v};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        if (sizes[s] > attn_blas_max())
            return attn_fail(err, ATTN_ERR_TOO_LARGE, "/inputs", "a dimension is %zu; at most %zu can be counted",
                             sizes[s], attn_blas_max());
    size_t count;
    if (d->batch > HEADS_MAX / d->heads)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, "/inputs", "%zu batch items of %zu heads; at most %d heads in all",
                         d->batch, d->heads, HEADS_MAX);
    if (!attn_shape_count(3, (size_t[]){d->batch * d->heads, d->q_len > d->kv_len ? d->q_len : d->kv_len,
                                        d->d_k + d->d_v + d->d_out}, &count) || count > SIZE_MAX / 64)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, "/inputs", "the request has too many elements");
    return ATTN_OK;
}

static attn_status read_dims(const attn_request *request, attn_dims *dims, attn_error *err)
{
    attn_status status = check_inputs(request, err);
    if (status == ATTN_OK)
        status = read_lengths(request, dims, err);
    if (status == ATTN_OK)
        status = request->is_layer ? read_layer_dims(request, dims, err) : read_attention_dims(request, dims, err);
    return status;
}

static attn_status check_options(const attn_request *request, attn_plan *plan, attn_error *err)
{
    const attn_options *options = &request->options;
    const attn_dims *dims = &plan->dims;
    attn_status status = request->is_layer ? check_layer_options(request, dims, err)
                                           : check_attention_options(request, err);
    if (status == ATTN_OK)
        status = check_wanted(request, err);
    if (status == ATTN_OK)
        status = check_selection(&options->heads, "heads", dims->heads, &plan->selected_heads, err);
    if (status == ATTN_OK)
        status = check_selection(&options->queries, "queries", dims->q_len, &plan->selected_queries, err);
    if (status == ATTN_OK)
        status = check_selection(&options->keys, "keys", dims->kv_len, &plan->selected_keys, err);
    return status;
}

attn_status attn_plan_make(const attn_request *request, attn_plan *plan, attn_error *err)
{
    const attn_options *options = &request->options;
    *plan = (attn_plan){.compute = options->compute, .want = options->want};
    attn_status status = check_numbers(options, err);
    if (status == ATTN_OK)
        status = read_dims(request, &plan->dims, err);
    if (status == ATTN_OK)
        status = check_sizes(plan, err);
    if (status == ATTN_OK)
        status = check_options(request, plan, err);
    const attn_dims *d = &plan->dims;
    if (status == ATTN_OK)
        status = attn_mask_resolve(&request->masks, d->batch, d->heads, d->q_len, d->kv_len, options->compute,
                                   &plan->mask, err);
    if (status == ATTN_OK)
        status = weigh_results(plan, err);
    if (status != ATTN_OK)
        return status;
    plan->scale = options->has_scale ? options->scale : 1 / sqrt((double)d->d_k);
    weigh_work(request, plan);
    attn_multihead_weigh(plan, request);
    return ATTN_OK;
}

size_t attn_plan_bytes(const attn_plan *plan, size_t threads)
{
    return plan->result_bytes + plan->working_bytes + threads * plan->scratch_bytes;
}
