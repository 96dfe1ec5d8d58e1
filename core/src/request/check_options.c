/* check_options.c: checks options, on their own and against the rest of a request. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/pace.h"
#include "formulas/features.h"
#include "request/checks.h"
#include "request/dims.h"
#include "request/steps.h"

/* Numbers must be finite in the compute type too. A softcap must not become 0, because scores are divided by it. */
static bool check_float32(const attn_options *options, struct attn_check *check)
{
    const float scale = options->has_scale ? (float)options->scale : 1, softcap = (float)options->softcap;
    if (!isfinite(scale))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.scale",
                           "~ must be from %.8g to %.8g, the range of compute float32", -(double)FLT_MAX,
                           (double)FLT_MAX);
    if (!isfinite(softcap) || (softcap == 0 && options->softcap != 0))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.softcap",
                           "~ must be from %.2g to %.8g, the range of compute float32", (double)FLT_TRUE_MIN,
                           (double)FLT_MAX);
    return true;
}

bool attn_options_check_numbers(const attn_options *options, struct attn_check *check)
{
    if (options->compute != ATTN_F32 && options->compute != ATTN_F64)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.compute", "~ must be float32 or float64");
    if (options->has_scale && !isfinite(options->scale))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.scale", "~ must be a finite number");
    if (!(options->softcap >= 0) || !isfinite(options->softcap))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.softcap", "~ must be a finite number above 0");
    if (!(options->dropout >= 0 && options->dropout <= 1))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.dropout", "~ must be from 0 to 1");
    if (options->norm != ATTN_NORM_NONE && !(options->norm_eps >= 0 && isfinite(options->norm_eps)))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.norm_eps", "~ must be a finite number, 0 or more");
    if (options->norm == ATTN_NORM_L2)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.norm", "~ is layer or rms");
    return options->compute == ATTN_F32 ? check_float32(options, check) : true;
}

static bool check_norm_vector(const attn_tensor *vector, const char *field, const attn_request *request, size_t width,
                              struct attn_check *check)
{
    if (vector != NULL && request->options.norm == ATTN_NORM_NONE)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "weights.norm needs options.norm to say which normalisation");
    return attn_check_row(vector, field, request->options.compute, width, check);
}

static bool check_layer_options(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_options *options = &request->options;
    if (options->residual && dims->d_attended != dims->d_query)
        return attn_refuse(check, ATTN_ERR_SHAPE, "options.residual",
                           "the residual adds query (%zu features) to the output (%zu features): they must be equal",
                           dims->d_query, dims->d_attended);
    const size_t width = attn_is_pre_normed(options) ? dims->d_query : dims->d_attended;
    return check_norm_vector(request->weights.norm.weight, "weights.norm.weight", request, width, check) &&
           check_norm_vector(request->weights.norm.bias, "weights.norm.bias", request, width, check);
}

static bool check_attention_options(const attn_request *request, struct attn_check *check)
{
    const attn_weights *w = &request->weights;
    if (attn_affine_is_given(&w->query) || attn_affine_is_given(&w->key) || attn_affine_is_given(&w->value) ||
        attn_affine_is_given(&w->qkv) || attn_affine_is_given(&w->output) || attn_affine_is_given(&w->norm) ||
        attn_affine_is_given(&w->query_norm) || attn_affine_is_given(&w->key_norm) || attn_affine_is_given(&w->gate) ||
        attn_affine_is_given(&w->branch_norm) || attn_feed_forward_is_given(&w->feed_forward))
        return attn_refuse(check, ATTN_ERR_FIELD, "weights", "~ belong to multi-head attention");
    if (request->options.residual)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.residual", "~ belongs to multi-head attention");
    if (request->options.norm != ATTN_NORM_NONE)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.norm", "~ belongs to multi-head attention");
    if (request->options.branch_norm != ATTN_NORM_NONE || request->options.residual_scale != 0)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.branch_norm",
                           "~ and residual_scale belong to multi-head attention");
    if (attn_drops_residual(&request->options))
        return attn_refuse(check, ATTN_ERR_FIELD, "options.dropout_residual",
                           "dropout on the residual belongs to multi-head attention");
    return true;
}

static bool check_wanted(const attn_request *request, struct attn_check *check)
{
    static const char *const field = "options.want";
    const attn_options *options = &request->options;
    if (attn_wants(options, ATTN_STEP_PROJECTED) && request->weights.output.weight == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "\"projected\" needs weights.output");
    if ((attn_wants(options, ATTN_STEP_Q_ROTATED) || attn_wants(options, ATTN_STEP_K_ROTATED)) &&
        !attn_qk_is_changed(options))
        return attn_refuse(check, ATTN_ERR_FIELD, field,
                           "\"q_rotated\" and \"k_rotated\" need options.rope or qk_norm");
    if (attn_wants(options, ATTN_STEP_GATED) && request->weights.gate.weight == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "\"gated\" needs weights.gate");
    if (attn_wants(options, ATTN_STEP_CONTRIBUTION) && request->weights.output.weight == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "\"contribution\" needs weights.output");
    if (attn_wants(options, ATTN_STEP_CONTRIBUTION) && request->weights.gate.weight != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field,
                           "\"contribution\" does not go with weights.gate, which changes what each query takes");
    if (attn_wants(options, ATTN_STEP_RESIDUAL) && !options->residual)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "\"residual\" needs options.residual: true");
    if ((attn_wants(options, ATTN_STEP_ATTENTION_OUTPUT) || attn_wants(options, ATTN_STEP_FEED_FORWARD)) &&
        request->weights.feed_forward.up.weight == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field,
                           "\"attention_output\" and \"feed_forward\" need weights.feed_forward");
    if (attn_wants(options, ATTN_STEP_DROPPED) && !(options->dropout > 0 && options->dropout_attention))
        return attn_refuse(check, ATTN_ERR_FIELD, field,
                           "\"dropped\" needs options.dropout above 0 and options.dropout_attention");
    if (attn_wants(options, ATTN_STEP_SINK) && options->sinks == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "\"sink\" needs options.sinks");
    return true;
}

enum { UNSORTED_MAX = 4096 };

/*
 * Whether an item repeats. An unsorted list is compared pair by pair, so a long one is treated as repeating. When pace
 * stops the work, the answer is of no use.
 */
static bool is_repeating(const attn_selection *selection, struct attn_pace *pace)
{
    bool ascending = true;
    if (selection->items == NULL)
        return false;
    for (size_t s = 1; s < selection->count; s++)
        ascending = ascending && selection->items[s - 1] < selection->items[s];
    if (ascending)
        return false;
    for (size_t s = 0; s < selection->count && selection->count <= UNSORTED_MAX && !attn_pace_stops(pace, s); s++)
        for (size_t earlier = 0; earlier < s; earlier++)
            if (selection->items[earlier] == selection->items[s])
                return true;
    return selection->count > UNSORTED_MAX;
}

/* Whether all items are below the dimension; if not, *outside is the first item that is too large. */
static bool is_within(const attn_selection *selection, size_t dimension, size_t *outside)
{
    if (selection->items == NULL) {
        *outside = selection->first > dimension ? selection->first : dimension;
        return selection->first <= dimension && selection->count <= dimension - selection->first;
    }
    for (size_t s = 0; s < selection->count; s++) {
        *outside = selection->items[s];
        if (*outside >= dimension)
            return false;
    }
    return true;
}

static bool check_selection(const attn_selection *selection, const char *field, size_t dimension,
                            struct attn_pace *pace, size_t *kept, struct attn_check *check)
{
    size_t outside;
    *kept = attn_selects_all(selection) ? dimension : selection->count;
    if (attn_selects_all(selection) && selection->first != 0)
        return attn_refuse(check, ATTN_ERR_VALUE, field, "~ has first %zu without a count", selection->first);
    if (attn_selects_all(selection))
        return true;
    if (!is_within(selection, dimension, &outside))
        return attn_refuse(check, ATTN_ERR_VALUE, field, "~ has %zu; they are numbered 0 to %zu%s", outside,
                           dimension == 0 ? 0 : dimension - 1,
                           strcmp(field, "options.heads") == 0 ? ", and num_heads is how many there are" : "");
    if (selection->count > dimension)
        return attn_refuse(check, ATTN_ERR_VALUE, field, "~ selects %zu of %zu", selection->count, dimension);
    if (is_repeating(selection, pace))
        return attn_refuse(check, ATTN_ERR_VALUE, field, "~ names one twice, or is not ascending and longer than %d",
                           UNSORTED_MAX);
    return true;
}

static bool check_bf16(const attn_request *request, struct attn_check *check)
{
    static const char *const field = "options.bf16_products";
    const attn_options *options = &request->options;
    if (!options->bf16_products)
        return true;
    if (options->compute != ATTN_F32)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "products in bfloat16 need compute float32");
    if (attn_has_feature_maps(options))
        return attn_refuse(check, ATTN_ERR_FIELD, field, "products in bfloat16 belong to mechanism softmax");
    if (attn_start_of(&request->inputs) != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field,
                           "products in bfloat16 need a request that starts at query and key");
    return true;
}

bool attn_options_check(const attn_request *request, attn_plan *plan, struct attn_check *check)
{
    const attn_options *options = &request->options;
    const attn_dims *dims = &plan->dims;
    struct attn_pace pace = attn_pace_begin(request->watch);
    return (request->is_layer ? check_layer_options(request, dims, check) : check_attention_options(request, check)) &&
           attn_start_check(request, check) && check_bf16(request, check) &&
           attn_feed_forward_check(request, dims, check) && attn_qk_check(request, dims, check) &&
           attn_rope_check(request, plan, check) && attn_mechanism_check(request, dims, check) &&
           check_wanted(request, check) &&
           check_selection(&options->heads, "options.heads", dims->heads, &pace, &plan->selected_heads, check) &&
           check_selection(&options->queries, "options.queries", dims->q_len, &pace, &plan->selected_queries, check) &&
           check_selection(&options->keys, "options.keys", dims->kv_len, &pace, &plan->selected_keys, check);
}
