/* dims.c: from the shapes of inputs and weights to the dimensions with their usual names. */
#include "request/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

/* ---- inputs ---- */

static const attn_tensor *key_of(const attn_request *request)
{
    return request->inputs.key == NULL ? request->inputs.query : request->inputs.key;
}

static const attn_tensor *value_of(const attn_request *request)
{
    return request->inputs.value == NULL ? key_of(request) : request->inputs.value;
}

static bool check_input(const attn_request *request, const attn_tensor *tensor, const char *field,
                        struct attn_check *check)
{
    int most = request->is_layer ? 3 : 4, rank = request->inputs.query->rank;
    if (!((request->is_layer ? attn_check_tensor : attn_check_tokens)(tensor, field, request->options.compute, check)))
        return false;
    if (tensor->rank < 2 || tensor->rank > most) {
        return attn_refuse_shape(check, field, tensor, NULL, "~ has rank %d; %s takes (len, d), (batch, len, d)%s",
                                 tensor->rank, request->is_layer ? "a layer" : "attention",
                                 most == 4 ? " or (batch, heads, len, d)" : "");
    }
    if (tensor->rank != rank)
        return attn_refuse_shape(check, field, tensor, NULL, "~ has rank %d, query has rank %d", tensor->rank, rank);
    if (tensor->shape[tensor->rank - 1] == 0)
        return attn_refuse_shape(check, field, tensor, NULL, "~ has no features");
    return true;
}

static bool check_inputs(const attn_request *request, struct attn_check *check)
{
    if (request->inputs.query == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "inputs.query", "inputs.query is missing");
    return check_input(request, request->inputs.query, "inputs.query", check) &&
           check_input(request, key_of(request), "inputs.key", check) &&
           check_input(request, value_of(request), "inputs.value", check);
}

/* The input that the keys come from. */
static const char *key_field(const attn_request *request)
{
    return request->inputs.key != NULL ? "inputs.key" : "inputs.query";
}

static bool read_lengths(const attn_request *request, attn_dims *dims, struct attn_check *check)
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
    return attn_check_same(v, "inputs.value", length_axis, dims->kv_len, key_field(request), "positions", check) &&
           (q->rank == 2 || (attn_check_same(k, "inputs.key", 0, dims->batch, "inputs.query", "batch items", check) &&
                             attn_check_same(v, "inputs.value", 0, dims->batch, "inputs.query", "batch items", check)));
}

/* ---- heads: attention on q, k, v as given ---- */

/* Both heads of a pair of differential attention read the same values, and give one head of the output. */
static void share_values(const attn_request *request, attn_dims *dims)
{
    const size_t sharing = request->options.differential != NULL && dims->kv_heads % 2 == 0 ? 2 : 1;
    dims->v_heads = dims->kv_heads / sharing;
    dims->out_heads = dims->heads / sharing;
}

static bool check_pairs(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    return request->options.differential == NULL || dims->kv_heads % 2 == 0 ||
           attn_refuse(check, ATTN_ERR_SHAPE, "options.differential",
                       "~ subtracts neighbouring key heads: expected an even number of them, got %zu", dims->kv_heads);
}

static bool check_value_heads(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_tensor *value = value_of(request);
    char expected[64];
    if (dims->v_heads == dims->kv_heads)
        return attn_check_same(value, "inputs.value", 1, dims->kv_heads, key_field(request), "heads", check);
    if (value->shape[1] == dims->v_heads)
        return true;
    attn_shape_text(expected, sizeof expected, 4,
                    (const size_t[]){value->shape[0], dims->v_heads, value->shape[2], value->shape[3]});
    return attn_refuse_shape(check, "inputs.value", value, expected,
                             "~ has %zu heads, expected %zu: options.differential pairs the %zu key heads",
                             value->shape[1], dims->v_heads, dims->kv_heads);
}

static bool heads_of_rank_4(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    dims->heads = request->inputs.query->shape[1];
    dims->kv_heads = key_of(request)->shape[1];
    dims->d_k = dims->d_query;
    dims->d_v = dims->d_value;
    share_values(request, dims);
    return check_value_heads(request, dims, check) &&
           attn_check_heads(request->options.num_heads, dims->heads, "options.num_heads", check) &&
           attn_check_heads(request->options.kv_num_heads, dims->kv_heads, "options.kv_num_heads", check);
}

static bool heads_by_splitting(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    dims->heads = request->options.num_heads == 0 ? 1 : request->options.num_heads;
    dims->kv_heads = request->options.kv_num_heads == 0 ? dims->heads : request->options.kv_num_heads;
    const char *kv_option = request->options.kv_num_heads == 0 ? "num_heads" : "kv_num_heads";
    share_values(request, dims);
    return attn_split_features(dims->d_query, dims->heads, "inputs.query", "num_heads", &dims->d_k, check) &&
           attn_split_features(dims->d_value, dims->v_heads, "inputs.value",
                               dims->v_heads == dims->kv_heads ? kv_option : "the number of pairs", &dims->d_v, check);
}

static bool fail_d_key(const attn_request *request, const attn_dims *dims, size_t key_heads, size_t d_key,
                       struct attn_check *check)
{
    char expected[64];
    size_t shape[ATTN_MAX_RANK];
    memcpy(shape, key_of(request)->shape, sizeof shape);
    shape[dims->query_rank - 1] = dims->d_k * key_heads;
    attn_shape_text(expected, sizeof expected, dims->query_rank, shape);
    if (request->inputs.key == NULL)
        return attn_refuse_shape(check, "inputs.query", key_of(request), expected,
                                 "query stands for the key, too: it has %zu features per head as key, %zu as query",
                                 d_key, dims->d_k);
    return attn_refuse_shape(check, "inputs.key", key_of(request), expected,
                             "key has %zu features per head, query has %zu", d_key, dims->d_k);
}

static bool read_attention_dims(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const bool has_heads = dims->query_rank == 4;
    if (!(has_heads ? heads_of_rank_4 : heads_by_splitting)(request, dims, check) || !attn_check_groups(dims, check) ||
        !check_pairs(request, dims, check))
        return false;
    size_t key_heads = has_heads ? 1 : dims->kv_heads, d_key = 0;
    if (!attn_split_features(dims->d_key, key_heads, "inputs.key", "the number of key heads", &d_key, check))
        return false;
    dims->d_attended = dims->d_out = dims->out_heads * dims->d_v;
    return d_key == dims->d_k || fail_d_key(request, dims, key_heads, d_key, check);
}

/* ---- weights: a layer ---- */

/*
 * A weight that takes another number of features than in; format says where in comes from. Its number of output features
 * is free, so the error expects any.
 */
__attribute__((format(printf, 6, 7))) static bool fail_weight(struct attn_check *check, const char *field,
                                                              const attn_tensor *weight, attn_layout layout, size_t in,
                                                              const char *format, ...)
{
    static const char *const names[] = {[ATTN_LAYOUT_IN_OUT] = "in_out", [ATTN_LAYOUT_OUT_IN] = "out_in"};
    const bool is_in_out = layout == ATTN_LAYOUT_IN_OUT;
    const size_t *last = weight->shape + weight->rank - 2;
    char expected[80], fragment[80], heads[32] = "", received[64], why[96], hint[48] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (weight->rank == 3)
        snprintf(heads, sizeof heads, "%zu, ", weight->shape[0]);
    snprintf(expected, sizeof expected, is_in_out ? "[%s%zu, any]" : "[%sany, %zu]", heads, in);
    snprintf(fragment, sizeof fragment, is_in_out ? "[%s%zu, \"any\"]" : "[%s\"any\", %zu]", heads, in);
    attn_shape_text(received, sizeof received, weight->rank, weight->shape);
    if (last[is_in_out ? 1 : 0] == in)
        snprintf(hint, sizeof hint, "; it fits layout %s", names[is_in_out ? ATTN_LAYOUT_OUT_IN : ATTN_LAYOUT_IN_OUT]);
    return attn_refuse_shape(check, field, weight, fragment, "the weight at @ has shape %s, layout %s expects %s: %s%s",
                             received, names[layout], expected, why, hint);
}

/* Input and output widths of a weight of rank 2 or 3; *heads is its own count, 0 for rank 2. */
static bool read_weight(const attn_tensor *weight, const char *field, attn_layout layout, attn_dtype compute,
                        size_t *heads, size_t *in, size_t *out, struct attn_check *check)
{
    if (!attn_check_matrix(weight, field, compute, check))
        return false;
    if (weight->rank != 2 && weight->rank != 3)
        return attn_refuse_shape(check, field, weight, NULL, "a weight has rank 2, or rank 3 with the heads first");
    const size_t *last = weight->shape + weight->rank - 2;
    *heads = weight->rank == 3 ? weight->shape[0] : 0;
    *in = layout == ATTN_LAYOUT_IN_OUT ? last[0] : last[1];
    *out = layout == ATTN_LAYOUT_IN_OUT ? last[1] : last[0];
    if (*in == 0 || *out == 0 || (weight->rank == 3 && *heads == 0))
        return attn_refuse_shape(check, field, weight, NULL, "a weight needs at least one row and one column");
    if (attn_tensor_count(weight) > DIMENSION_MAX)
        return attn_refuse(check, ATTN_ERR_TOO_LARGE, field, "the weight has more than %zu elements", DIMENSION_MAX);
    return true;
}

/* The shapes that a vector may have: rank 1, and with heads also rank 2. */
struct vector_rule {
    size_t length, heads; /* heads 0: rank 1 alone */
    const char *giver, *unit;
};

static bool fail_vector(const attn_tensor *vector, const char *field, const struct vector_rule *rule,
                        struct attn_check *check)
{
    const char *name = field + strlen("weights."); /* "norm.weight" */
    char expected[32], shape[64], or_by_heads[56] = "";
    attn_shape_text(shape, sizeof shape, vector->rank, vector->shape);
    snprintf(expected, sizeof expected, "[%zu]", rule->length);
    if (rule->heads != 0)
        snprintf(or_by_heads, sizeof or_by_heads, " or [%zu,%zu]", rule->heads, rule->length / rule->heads);
    if (attn_tensor_count(vector) != rule->length)
        return attn_refuse_shape(check, field, vector, expected, "%s has %zu numbers, %s %zu%s", name,
                                 attn_tensor_count(vector), rule->giver, rule->length, rule->unit);
    return attn_refuse_shape(check, field, vector, expected, "%s has shape %s, expected %s%s", name, shape, expected,
                             or_by_heads);
}

static bool check_vector(const attn_tensor *vector, const char *field, attn_dtype compute,
                         const struct vector_rule *rule, struct attn_check *check)
{
    if (vector == NULL)
        return true;
    if (!attn_check_tensor(vector, field, compute, check))
        return false;
    const bool fits_flat = vector->rank == 1 && vector->shape[0] == rule->length;
    const bool fits_heads = vector->rank == 2 && rule->heads != 0 && vector->shape[0] == rule->heads &&
                            vector->shape[1] == rule->length / rule->heads;
    return fits_flat || fits_heads ? true : fail_vector(vector, field, rule, check);
}

bool attn_check_row(const attn_tensor *vector, const char *field, attn_dtype compute, size_t length,
                    struct attn_check *check)
{
    return check_vector(vector, field, compute, &(struct vector_rule){length, 0, "a row has", " features"}, check);
}

/* heads 0: only rank 1 is accepted. */
static bool check_bias(const attn_tensor *bias, const char *field, attn_dtype compute, size_t heads, size_t length,
                       struct attn_check *check)
{
    return check_vector(bias, field, compute, &(struct vector_rule){length, heads, "the weight gives", ""}, check);
}

/* Features per head of a projection, from its weight. heads is the known count; 0: the count of a rank-3 weight. */
static bool read_projection(const attn_affine *affine, const char *name, const attn_request *request, const char *input,
                            size_t d_in, size_t heads, size_t *d_head, struct attn_check *check)
{
    char field[64], bias_field[64];
    size_t own_heads = 0, in = 0, out = 0;
    snprintf(field, sizeof field, "weights.%s.weight", name);
    snprintf(bias_field, sizeof bias_field, "weights.%s.bias", name);
    if (affine->weight == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field,
                           "weights.%s.weight is missing: give query, key and value, or qkv", name);
    attn_layout layout = request->weights.layout;
    if (!read_weight(affine->weight, field, layout, request->options.compute, &own_heads, &in, &out, check))
        return false;
    if (in != d_in)
        return fail_weight(check, field, affine->weight, layout, d_in, "%s has %zu features", input, d_in);
    if (own_heads != 0 && own_heads != heads)
        return attn_refuse(check, ATTN_ERR_SHAPE, field, "the weight of %s has %zu heads, %zu expected", name,
                           own_heads, heads);
    if (own_heads == 0 && out % heads != 0)
        return attn_refuse(check, ATTN_ERR_SHAPE, field,
                           "the weight of %s gives %zu features, which %zu heads do not divide", name, out, heads);
    *d_head = own_heads != 0 ? out : out / heads;
    return check_bias(affine->bias, bias_field, request->options.compute, heads, *d_head * heads, check);
}

/* A weight in front of those of queries, or of keys and values. */
static bool read_latent(const attn_affine *affine, const char *name, const attn_request *request, const char *input,
                        size_t d_in, size_t *d_out, struct attn_check *check)
{
    return !attn_affine_is_given(affine) || read_projection(affine, name, request, input, d_in, 1, d_out, check);
}

static bool read_latents(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_weights *w = &request->weights;
    if (!read_latent(&w->query_latent, "query_latent", request, "inputs.query", dims->d_query, &dims->d_query_latent,
                     check) ||
        !read_latent(&w->key_latent, "key_latent", request, "inputs.key", dims->d_key, &dims->d_key_latent, check) ||
        !read_latent(&w->key_shared, "key_shared", request, "inputs.key", dims->d_key, &dims->d_shared, check))
        return false;
    if (dims->d_key_latent > 0 && request->inputs.value != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "inputs.value",
                           "~ does not go with weights.key_latent, which values are made of, too");
    if (attn_has_latents(dims) && attn_affine_is_given(&w->qkv))
        return attn_refuse(check, ATTN_ERR_FIELD, "weights.qkv",
                           "latents and key_shared need weights.query, key and value, and not qkv");
    return true;
}

static bool read_separate_dims(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_weights *weights = &request->weights;
    size_t d_key = 0;
    if (attn_affine_is_given(&weights->qkv))
        return attn_refuse(check, ATTN_ERR_FIELD, "weights.qkv.weight", "weights.qkv has a bias but no weight");
    const bool has_latent = dims->d_key_latent > 0;
    if (!read_projection(&weights->query, "query", request,
                         dims->d_query_latent > 0 ? "weights.query_latent" : "inputs.query", attn_query_inner(dims),
                         dims->heads, &dims->d_k, check) ||
        !read_projection(&weights->key, "key", request, has_latent ? "weights.key_latent" : "inputs.key",
                         attn_key_inner(dims), dims->kv_heads, &d_key, check) ||
        !read_projection(&weights->value, "value", request, has_latent ? "weights.key_latent" : "inputs.value",
                         attn_value_inner(dims), dims->kv_heads, &dims->d_v, check))
        return false;
    if (d_key + dims->d_shared != dims->d_k && dims->d_shared > 0)
        return attn_refuse(
            check, ATTN_ERR_SHAPE, "weights.key.weight",
            "key and key_shared give %zu and %zu features per head, together expected %zu as query gives", d_key,
            dims->d_shared, dims->d_k);
    if (d_key + dims->d_shared != dims->d_k)
        return attn_refuse_shape(check, "weights.key.weight", weights->key.weight, NULL,
                                 "the weights of query and key give different features per head");
    return true;
}

static bool read_fused_dims(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_weights *weights = &request->weights;
    const char *field = "weights.qkv.weight";
    size_t own_heads = 0, in = 0, out = 0, parts = dims->heads + 2 * dims->kv_heads;
    if (attn_affine_is_given(&weights->query) || attn_affine_is_given(&weights->key) ||
        attn_affine_is_given(&weights->value))
        return attn_refuse(check, ATTN_ERR_FIELD, "weights.qkv", "give either qkv or query, key and value, not both");
    if (!read_weight(weights->qkv.weight, field, weights->layout, request->options.compute, &own_heads, &in, &out,
                     check))
        return false;
    if (own_heads != 0)
        return attn_refuse_shape(check, field, weights->qkv.weight, NULL, "a fused weight has rank 2");
    if (dims->d_key != dims->d_query || dims->d_value != dims->d_query)
        return attn_refuse(check, ATTN_ERR_SHAPE, "inputs", "a fused weight needs query, key and value of one width");
    if (in != dims->d_query)
        return fail_weight(check, field, weights->qkv.weight, weights->layout, dims->d_query,
                           "the inputs have %zu features", dims->d_query);
    if (weights->qkv_order == ATTN_QKV_PER_HEAD && dims->heads != dims->kv_heads)
        return attn_refuse(check, ATTN_ERR_VALUE, "weights.qkv_order",
                           "~ per_head needs as many key heads as query heads; use per_group");
    if (out % parts != 0)
        return attn_refuse(
            check, ATTN_ERR_SHAPE, field,
            "the fused weight gives %zu features, which %zu query and 2 x %zu key and value heads do not "
            "divide",
            out, dims->heads, dims->kv_heads);
    dims->d_k = dims->d_v = out / parts;
    return check_bias(weights->qkv.bias, "weights.qkv.bias", request->options.compute, 0, out, check);
}

static size_t heads_of(const attn_affine *affine)
{
    return affine->weight != NULL && affine->weight->rank == 3 ? affine->weight->shape[0] : 0;
}

/* An output weight of rank 3 must have the same heads, because rows would move to another head. */
static bool fail_output_heads(const attn_tensor *weight, const char *field, const attn_dims *dims,
                              struct attn_check *check)
{
    char received[64], expected[80];
    attn_shape_text(received, sizeof received, weight->rank, weight->shape);
    snprintf(expected, sizeof expected, "[%zu, %zu, \"any\"]", dims->heads, dims->d_v);
    return attn_refuse_shape(check, field, weight, expected,
                             "the weight at @ has shape %s, expected [%zu, %zu, any]: heads, d_v, d_out", received,
                             dims->heads, dims->d_v);
}

static bool read_output_dims(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_affine *output = &request->weights.output;
    dims->d_attended = dims->heads * dims->d_v;
    if (output->weight == NULL && output->bias != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "weights.output.weight", "weights.output has a bias but no weight");
    if (output->weight == NULL)
        return true;
    const char *field = "weights.output.weight";
    attn_layout layout = request->weights.layout;
    size_t own_heads = 0, in = 0, out = 0;
    if (!read_weight(output->weight, field, layout, request->options.compute, &own_heads, &in, &out, check))
        return false;
    if (own_heads != 0 && layout == ATTN_LAYOUT_OUT_IN)
        return attn_refuse_shape(check, field, output->weight, NULL,
                                 "an output weight of rank 3 is (heads, d_v, d_out), with layout in_out");
    if (own_heads != 0 && (own_heads != dims->heads || in != dims->d_v))
        return fail_output_heads(output->weight, field, dims, check);
    if (own_heads == 0 && in != dims->d_attended)
        return fail_weight(check, field, output->weight, layout, dims->d_attended, "%zu heads give %zu features each",
                           dims->heads, dims->d_v);
    dims->d_attended = out;
    return check_bias(output->bias, "weights.output.bias", request->options.compute, 0, out, check);
}

/* ---- the gate, and the past ---- */

static bool read_gate_dims(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_affine *gate = &request->weights.gate;
    size_t features = 0;
    if (gate->weight == NULL && gate->bias == NULL)
        return true;
    if (gate->weight == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "weights.gate.weight", "weights.gate has a bias but no weight");
    if (!read_projection(gate, "gate", request, "inputs.query", dims->d_query, dims->heads, &features, check))
        return false;
    if (features != 1 && features != dims->d_v)
        return attn_refuse(check, ATTN_ERR_SHAPE, "weights.gate.weight",
                           "the weight of gate gives %zu features a head, expected %zu (d_v), or 1", features,
                           dims->d_v);
    dims->d_gate = features;
    return true;
}

/* The weights that make tables of relative positions from their embedding. */
static bool read_relative_dims(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    static const char *const input = "options.relative_position.embedding";
    const attn_tensor *embedding = request->options.relative_position.embedding;
    const attn_affine *const affine[] = {&request->weights.relative_key, &request->weights.relative_query};
    static const char *const name[] = {"relative_key", "relative_query"};
    const size_t heads[] = {dims->kv_heads, dims->heads};
    for (int n = 0; n < 2; n++) {
        size_t d = dims->d_k;
        if (!attn_affine_is_given(affine[n]))
            continue;
        if (embedding == NULL || embedding->rank != 2)
            return attn_refuse(check, ATTN_ERR_FIELD, input, "weights.%s needs @, of shape [rows, features]", name[n]);
        if (!read_projection(affine[n], name[n], request, input, embedding->shape[1], heads[n], &d, check))
            return false;
        if (d != dims->d_k)
            return attn_refuse(check, ATTN_ERR_SHAPE,
                               n == 0 ? "weights.relative_key.weight" : "weights.relative_query.weight",
                               "the weight of %s gives %zu features a head, expected %zu (d_k)", name[n], d, dims->d_k);
    }
    return true;
}

bool attn_matrix_read(const attn_affine *affine, const char *name, const attn_request *request, attn_layout layout,
                      size_t in, const char *giver, size_t *out, struct attn_check *check)
{
    char field[80], bias_field[80];
    size_t own_heads = 0, own_in = 0;
    snprintf(field, sizeof field, "weights.feed_forward.%s.weight", name);
    snprintf(bias_field, sizeof bias_field, "weights.feed_forward.%s.bias", name);
    if (affine->weight == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "weights.feed_forward.%s.weight is missing", name);
    if (!read_weight(affine->weight, field, layout, request->options.compute, &own_heads, &own_in, out, check))
        return false;
    if (own_heads != 0)
        return attn_refuse_shape(check, field, affine->weight, NULL, "a weight of a feed-forward network has rank 2");
    if (own_in != in)
        return fail_weight(check, field, affine->weight, layout, in, "%s %zu features", giver, in);
    return check_bias(affine->bias, bias_field, request->options.compute, 0, *out, check);
}

size_t attn_feed_forward_d_in(const attn_request *request, const attn_dims *dims)
{
    return request->options.feed_forward.parallel ? dims->d_query : dims->d_attended;
}

static bool read_feed_forward_dims(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_feed_forward_weights *w = &request->weights.feed_forward;
    const attn_layout layout = request->weights.layout;
    const size_t in = attn_feed_forward_d_in(request, dims);
    size_t gates = 0;
    dims->d_out = dims->d_attended;
    const bool is_shared =
        attn_affine_is_given(&w->up) || attn_affine_is_given(&w->gate) || attn_affine_is_given(&w->down);
    if (!attn_feed_forward_is_given(w) || (w->experts.count > 0 && !is_shared))
        return true;
    const char *giver = attn_feed_forward_giver(request);
    if (!attn_matrix_read(&w->up, "up", request, layout, in, giver, &dims->d_ff, check) ||
        (attn_affine_is_given(&w->gate) &&
         !attn_matrix_read(&w->gate, "gate", request, layout, in, giver, &gates, check)))
        return false;
    if (w->gate.weight != NULL && gates != dims->d_ff)
        return attn_refuse_shape(check, "weights.feed_forward.gate.weight", w->gate.weight, NULL,
                                 "gate gives %zu features, up gives %zu: they must be equal", gates, dims->d_ff);
    if (!attn_matrix_read(&w->down, "down", request, layout, dims->d_ff, "up gives", &dims->d_out, check))
        return false;
    if (request->options.feed_forward.residual && dims->d_out != dims->d_attended)
        return attn_refuse_shape(check, "weights.feed_forward.down.weight", w->down.weight, NULL,
                                 "down gives %zu features, the attention gives %zu: they must be equal", dims->d_out,
                                 dims->d_attended);
    return true;
}

bool attn_check_past(const attn_tensor *past, const char *field, const char *axes, const size_t wanted[4],
                     const attn_dims *dims, struct attn_check *check)
{
    const int skip = past->rank == 3 && dims->query_rank == 2 ? 1 : 0;
    bool fits = past->rank == 4 - skip;
    for (int axis = 0; fits && axis < past->rank; axis++)
        fits = past->shape[axis] == wanted[axis + skip] ||
               (wanted[2] == 0 && axis == past->rank - 1 && past->shape[axis] == 0); /* no token has no features */
    if (fits)
        return true;
    char expected[64];
    attn_shape_text(expected, sizeof expected, 4, wanted);
    return attn_refuse_shape(check, field, past, expected, "~ must be (batch, kv_heads, %s): %zu, %zu, %zu, %zu%s",
                             axes, wanted[0], wanted[1], wanted[2], wanted[3],
                             dims->query_rank == 2 ? "; the batch may be left out" : "");
}

static bool check_cached(const attn_tensor *past, const char *field, const attn_request *request, const attn_dims *dims,
                         const size_t wanted[4], struct attn_check *check)
{
    return attn_check_tokens(past, field, request->options.compute, check) &&
           attn_check_past(past, field, "past_len, d", wanted, dims, check);
}

static bool read_past(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_tensor *key = request->inputs.past_key, *value = request->inputs.past_value;
    if (key == NULL && value == NULL)
        return true;
    if (key == NULL || value == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, key == NULL ? "inputs.past_key" : "inputs.past_value",
                           "past_key and past_value go together");
    if (key->rank < 2)
        return attn_refuse_shape(
            check, "inputs.past_key", key, NULL,
            "past_key must be (batch, kv_heads, past_len, d); without tokens, each head has an empty "
            "list: [[[]]], or \"shape\" says 0 for past_len");
    const size_t past_len = key->shape[key->rank - 2];
    const size_t keys[4] = {dims->batch, dims->kv_heads, past_len, dims->d_k};
    const size_t values[4] = {dims->batch, dims->v_heads, past_len, dims->d_v};
    if (!check_cached(key, "inputs.past_key", request, dims, keys, check) ||
        !check_cached(value, "inputs.past_value", request, dims, values, check))
        return false;
    if (past_len > DIMENSION_MAX || dims->kv_len > DIMENSION_MAX - past_len)
        return attn_refuse(check, ATTN_ERR_TOO_LARGE, "inputs.past_key", "%zu past keys and %zu new ones are too many",
                           past_len, dims->kv_len);
    dims->past_len = past_len;
    dims->kv_len += past_len;
    return true;
}

static bool read_layer_dims(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const attn_weights *weights = &request->weights;
    const attn_options *options = &request->options;
    size_t own = heads_of(&weights->query), own_kv = heads_of(&weights->key);
    dims->heads = options->num_heads != 0 ? options->num_heads : own != 0 ? own : 1;
    dims->kv_heads = options->kv_num_heads != 0 ? options->kv_num_heads : own_kv != 0 ? own_kv : dims->heads;
    dims->v_heads = dims->kv_heads;
    dims->out_heads = dims->heads;
    return attn_check_groups(dims, check) && read_latents(request, dims, check) &&
           (weights->qkv.weight != NULL ? read_fused_dims(request, dims, check)
                                        : read_separate_dims(request, dims, check)) &&
           read_output_dims(request, dims, check) && read_gate_dims(request, dims, check) &&
           read_relative_dims(request, dims, check) && read_feed_forward_dims(request, dims, check);
}

bool attn_dims_read(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    if (attn_start_of(&request->inputs) != NULL)
        return attn_dims_read_start(request, dims, check);
    return check_inputs(request, check) && read_lengths(request, dims, check) &&
           (request->is_layer ? read_layer_dims(request, dims, check) : read_attention_dims(request, dims, check)) &&
           read_past(request, dims, check);
}
