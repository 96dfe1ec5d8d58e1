/* options.c: checks options, on their own and against the rest of a request. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "formulas/formulas.h"
#include "request/request.h"

#define STEP(name) ATTN_STEP_BIT(ATTN_STEP_##name)

/* ---- on their own ---- */

/* Each member: its offset, its path and the last value of its enumeration. */
#define WORD(member, last)                                                                                             \
    {                                                                                                                  \
        offsetof(attn_request, member), #member, last                                                                  \
    }
static const struct {
    size_t at;
    const char *field;
    unsigned last;
} words[] = {
    WORD(weights.layout, ATTN_LAYOUT_OUT_IN),
    WORD(weights.feed_forward.experts.layout, ATTN_LAYOUT_OUT_IN),
    WORD(weights.qkv_order, ATTN_QKV_PER_GROUP),
    WORD(masks.align, ATTN_ALIGN_PAST),
    WORD(masks.blocks.kind, ATTN_BLOCKS_PREFIX),
    WORD(options.norm, ATTN_NORM_L2),
    WORD(options.norm_position, ATTN_NORM_PRE),
    WORD(options.qk_norm, ATTN_NORM_L2),
    WORD(options.latent_norm, ATTN_NORM_L2),
    WORD(options.feed_forward.norm, ATTN_NORM_L2),
    WORD(options.feed_forward.position, ATTN_NORM_PRE),
    WORD(options.branch_norm, ATTN_NORM_L2),
    WORD(options.rope.layout, ATTN_ROPE_INTERLEAVED_TO_HALF),
    WORD(options.rope.scaling.type, ATTN_ROPE_PROPORTIONAL),
    WORD(options.mechanism.type, ATTN_PERFORMER),
    WORD(options.mechanism.update_rule, ATTN_RULE_GATED_DELTA),
};
#undef WORD

static bool check_words(const attn_request *request, struct attn_check *check)
{
    for (size_t n = 0; n < sizeof words / sizeof *words; n++) {
        unsigned value;
        memcpy(&value, (const char *)request + words[n].at, sizeof value);
        if (value > words[n].last)
            return attn_refuse(check, ATTN_ERR_VALUE, words[n].field, "~ is %u; its values are 0 to %u", value,
                               words[n].last);
    }
    return true;
}

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

bool attn_caps_scores(const attn_options *options)
{
    return options->softcap > 0;
}

static bool check_numbers(const attn_options *options, struct attn_check *check)
{
    if (options->compute != ATTN_F32 && options->compute != ATTN_F64)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.compute", "~ must be float32 or float64");
    if (options->has_scale && !isfinite(options->scale))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.scale", "~ must be a finite number");
    if (!(options->softcap >= 0) || !isfinite(options->softcap))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.softcap", "~ must be a finite number above 0");
    if (!(options->dropout >= 0 && options->dropout <= 1))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.dropout", "~ must be from 0 to 1");
    if (options->norm != ATTN_NORM_NONE && !attn_check_eps(options->norm_eps, "options.norm_eps", check))
        return false;
    if (options->norm == ATTN_NORM_L2)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.norm", "~ is layer or rms");
    return options->compute == ATTN_F32 ? check_float32(options, check) : true;
}

bool attn_options_check_alone(const attn_request *request, struct attn_check *check)
{
    return check_words(request, check) && check_numbers(&request->options, check);
}

/* ---- what does not go together ---- */

/* A member that the rest of the request refuses, and whether the request has it. */
struct refused {
    bool is_given;
    const char *field, *message; /* message NULL: that of the whole list */
};

static bool refuse_given(const struct refused *refused, size_t count, const char *message, struct attn_check *check)
{
    for (size_t n = 0; n < count; n++)
        if (refused[n].is_given)
            return attn_refuse(check, ATTN_ERR_FIELD, refused[n].field, "%s",
                               refused[n].message != NULL ? refused[n].message : message);
    return true;
}

/* Fails for the first wanted step among those, with the reason why the request lacks it. */
static bool refuse_steps(const attn_request *request, attn_steps steps, const char *reason, struct attn_check *check)
{
    const attn_steps wanted = request->options.want & steps;
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        if (wanted >> step & 1)
            return attn_refuse(check, ATTN_ERR_FIELD, "options.want", "\"%s\" %s", attn_step_name((attn_step)step),
                               reason);
    return true;
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
    if (options->differential != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.differential", "~ belongs to attention without weights");
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
    const attn_options *options = &request->options;
    const attn_weights *w = &request->weights;
    const bool has_weights = attn_affine_is_given(&w->query) || attn_affine_is_given(&w->key) ||
                             attn_affine_is_given(&w->value) || attn_affine_is_given(&w->qkv) ||
                             attn_affine_is_given(&w->output) || attn_affine_is_given(&w->norm) ||
                             attn_affine_is_given(&w->query_norm) || attn_affine_is_given(&w->key_norm) ||
                             attn_affine_is_given(&w->gate) || attn_affine_is_given(&w->relative_key) ||
                             attn_affine_is_given(&w->relative_query) || attn_affine_is_given(&w->branch_norm) ||
                             attn_affine_is_given(&w->query_latent) || attn_affine_is_given(&w->key_latent) ||
                             attn_affine_is_given(&w->key_shared) || attn_affine_is_given(&w->query_latent_norm) ||
                             attn_affine_is_given(&w->key_latent_norm) || attn_feed_forward_is_given(&w->feed_forward);
    const struct refused refused[] = {
        {has_weights, "weights", "~ belong to multi-head attention"},
        {options->residual, "options.residual", NULL},
        {options->norm != ATTN_NORM_NONE, "options.norm", NULL},
        {options->latent_norm != ATTN_NORM_NONE, "options.latent_norm", NULL},
        {options->branch_norm != ATTN_NORM_NONE || options->residual_scale != 0, "options.branch_norm",
         "~ and residual_scale belong to multi-head attention"},
        {attn_drops_residual(options), "options.dropout_residual",
         "dropout on the residual belongs to multi-head attention"},
    };
    return refuse_given(refused, sizeof refused / sizeof *refused, "~ belongs to multi-head attention", check);
}

static bool check_wanted(const attn_request *request, struct attn_check *check)
{
    const attn_options *options = &request->options;
    const attn_weights *w = &request->weights;
    const struct {
        attn_steps steps;
        bool is_possible;
        const char *message;
    } needs[] = {
        {STEP(QUERY_LATENT), w->query_latent.weight != NULL, "\"query_latent\" needs weights.query_latent"},
        {STEP(KEY_LATENT), w->key_latent.weight != NULL, "\"key_latent\" needs weights.key_latent"},
        {STEP(PROJECTED), w->output.weight != NULL, "\"projected\" needs weights.output"},
        {STEP(Q_ROTATED) | STEP(K_ROTATED), attn_qk_is_changed(options),
         "\"q_rotated\" and \"k_rotated\" need options.rope or qk_norm"},
        {STEP(GATED), w->gate.weight != NULL, "\"gated\" needs weights.gate"},
        {STEP(CONTRIBUTION), w->output.weight != NULL, "\"contribution\" needs weights.output"},
        {STEP(CONTRIBUTION), w->gate.weight == NULL,
         "\"contribution\" does not go with weights.gate, which changes what each query takes"},
        {STEP(RESIDUAL), options->residual, "\"residual\" needs options.residual: true"},
        {STEP(ATTENTION_OUTPUT) | STEP(FEED_FORWARD),
         w->feed_forward.up.weight != NULL || w->feed_forward.experts.count > 0,
         "\"attention_output\" and \"feed_forward\" need weights.feed_forward"},
        {STEP(DROPPED), options->dropout > 0 && options->dropout_attention,
         "\"dropped\" needs options.dropout above 0 and options.dropout_attention"},
        {STEP(DIFFERENCE), options->differential != NULL, "\"difference\" needs options.differential"},
        {STEP(SINK), options->sinks != NULL, "\"sink\" needs options.sinks"},
        {STEP(PRESENT_STATE), attn_is_recurrent(options),
         "\"present_state\" needs an update_rule in options.mechanism"},
    };
    for (size_t n = 0; n < sizeof needs / sizeof *needs; n++)
        if ((options->want & needs[n].steps) != 0 && !needs[n].is_possible)
            return attn_refuse(check, ATTN_ERR_FIELD, "options.want", "%s", needs[n].message);
    return true;
}

/* ---- selections ---- */

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

/* ---- mechanism ---- */

static bool check_performer(const attn_mechanism *m, const attn_request *request, const attn_dims *dims,
                            struct attn_check *check)
{
    static const char *const field = "options.mechanism.projection";
    const attn_tensor *p = m->projection;
    char shape[64];
    if (m->features > ATTN_PERFORMER_FEATURES_MAX)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.mechanism.features", "~ must be at most %d",
                           ATTN_PERFORMER_FEATURES_MAX);
    if (p == NULL)
        return true;
    if (p->dtype != request->options.compute || !attn_tensor_is_contiguous(p))
        return attn_refuse(check, ATTN_ERR_FIELD, field, "the projection must be %s without gaps",
                           attn_dtype_name(request->options.compute));
    attn_shape_text(shape, sizeof shape, p->rank, p->shape);
    if (p->rank != 2 || p->shape[1] != dims->d_k || p->shape[0] == 0 || p->shape[0] > ATTN_PERFORMER_FEATURES_MAX ||
        (m->features != 0 && m->features != p->shape[0]))
        return attn_refuse(check, ATTN_ERR_SHAPE, field, "the projection has shape %s, expected [features,%zu]", shape,
                           dims->d_k);
    return true;
}

static bool check_companions(const attn_request *request, struct attn_check *check)
{
    const attn_steps steps =
        STEP(SCORES) | STEP(SCALED) | STEP(MASKED) | STEP(LSE) | STEP(LSE_KEYS) | STEP(ENTROPY) | STEP(SINK);
    const attn_options *options = &request->options;
    const struct refused refused[] = {
        {attn_caps_scores(options), "options.softcap", NULL},
        {options->dropout > 0 && options->dropout_attention, "options.dropout_attention",
         "dropout of weights belongs to mechanism softmax; dropout on the residual is possible"},
        {options->sinks != NULL, "options.sinks", "~ belong to mechanism softmax"},
        {options->differential != NULL, "options.differential", NULL},
        {options->alibi, "options.alibi", "alibi belongs to mechanism softmax"},
        {options->alibi_slopes != NULL, "options.alibi_slopes", "alibi belongs to mechanism softmax"},
        {options->relative_bias.table != NULL, "options.relative_bias", NULL},
        {attn_relative_table(request) != NULL, "options.relative_position", NULL},
        {request->masks.bias != NULL, "masks.bias", "a bias belongs to mechanism softmax; use attend"},
    };
    return refuse_steps(request, steps, "belongs to mechanism softmax", check) &&
           refuse_given(refused, sizeof refused / sizeof *refused, "~ belongs to mechanism softmax", check);
}

/* The masks of a recurrence: query t attends to the keys up to t that are not hidden from all queries. */
static bool check_recurrence(const attn_request *request, struct attn_check *check)
{
    const attn_masks *masks = &request->masks;
    const struct refused refused[] = {
        {request->inputs.past_key != NULL, "inputs.past_key",
         "~ does not go with an update_rule, which keeps a state: use past_state"},
        {masks->offset != NULL, "masks.offset", NULL},
        {masks->attend != NULL, "masks.attend", NULL},
        {masks->query_lengths != NULL, "masks.query_lengths", NULL},
        {masks->has_window, "masks.window_left", NULL},
        {masks->documents_query != NULL, "masks.documents_query", NULL},
        {masks->documents_key != NULL, "masks.documents_key", NULL},
        {masks->blocks.kind != ATTN_BLOCKS_NONE, "masks.blocks", NULL},
    };
    return !attn_is_recurrent(&request->options) ||
           (refuse_given(refused, sizeof refused / sizeof *refused,
                         "~ does not go with an update_rule; causal, padding and key_lengths do", check) &&
            refuse_steps(request, STEP(PRESENT_KEY) | STEP(PRESENT_VALUE),
                         "belongs to a cache of keys; an update_rule keeps \"present_state\"", check));
}

static bool check_mechanism(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_mechanism *m = &request->options.mechanism;
    if (!check_recurrence(request, check) || !attn_recurrence_check(request, dims, check))
        return false;
    if (m->type == ATTN_SOFTMAX)
        return true;
    if (!attn_check_eps(m->eps, "options.mechanism.eps", check))
        return false;
    if (m->type == ATTN_LINEAR && m->is_unnormalised && m->eps != 0)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.mechanism.eps",
                           "~ is added to the denominator, and the mechanism has none");
    if (m->type == ATTN_LINEAR && !m->is_unnormalised && request->options.has_scale)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.scale",
                           "~ has no meaning for mechanism linear, unless it is not normalised");
    return check_companions(request, check) && (m->type != ATTN_PERFORMER || check_performer(m, request, dims, check));
}

/* ---- a start in the middle ---- */

/* The steps of queries, keys and the cache; those before given weights; those that need values. */
static const attn_steps of_keys =
    STEP(Q) | STEP(K) | STEP(Q_ROTATED) | STEP(K_ROTATED) | STEP(PRESENT_KEY) | STEP(PRESENT_VALUE);
static const attn_steps of_scores =
    STEP(SCORES) | STEP(SCALED) | STEP(MASKED) | STEP(LSE) | STEP(LSE_KEYS) | STEP(SINK);
static const attn_steps of_values = STEP(V) | STEP(CONTEXT) | STEP(CONCAT) | STEP(OUTPUT);

static bool check_start_steps(const attn_request *request, struct attn_check *check)
{
    const bool has_scores = request->inputs.scores != NULL;
    return refuse_steps(request, of_keys,
                        has_scores
                            ? "belongs to queries and keys, which a request that starts at scores does not have"
                            : "belongs to queries and keys, which a request that starts at attention does not have",
                        check) &&
           (has_scores ||
            refuse_steps(request, of_scores, "comes before attention, where the request starts", check)) &&
           (request->inputs.value != NULL || refuse_steps(request, of_values, "needs inputs.value", check));
}

static bool refuse_for_both(const attn_request *request, struct attn_check *check)
{
    const attn_options *options = &request->options;
    const struct refused refused[] = {
        {options->rope.layout != ATTN_ROPE_NONE, "options.rope", NULL},
        {options->qk_norm != ATTN_NORM_NONE, "options.qk_norm", NULL},
        {attn_relative_table(request) != NULL, "options.relative_position", NULL},
        {options->mechanism.type != ATTN_SOFTMAX, "options.mechanism", NULL},
        {options->differential != NULL, "options.differential", NULL},
    };
    return refuse_given(refused, sizeof refused / sizeof *refused,
                        request->inputs.scores != NULL
                            ? "~ does not go with scores, which stands for queries and keys"
                            : "~ does not go with attention, which stands for queries and keys",
                        check);
}

static bool refuse_for_attention(const attn_request *request, struct attn_check *check)
{
    const attn_options *options = &request->options;
    const attn_masks *masks = &request->masks;
    const struct refused refused[] = {
        {options->has_scale, "options.scale", NULL},
        {attn_caps_scores(options), "options.softcap", NULL},
        {options->alibi, "options.alibi", NULL},
        {options->alibi_slopes != NULL, "options.alibi_slopes", NULL},
        {options->relative_bias.table != NULL, "options.relative_bias", NULL},
        {options->sinks != NULL, "options.sinks", NULL},
        {masks->causal, "masks.causal", NULL},
        {masks->offset != NULL, "masks.offset", NULL},
        {masks->attend != NULL, "masks.attend", NULL},
        {masks->bias != NULL, "masks.bias", NULL},
        {masks->padding != NULL, "masks.padding", NULL},
        {masks->key_lengths != NULL, "masks.key_lengths", NULL},
        {masks->query_lengths != NULL, "masks.query_lengths", NULL},
        {masks->has_window, "masks.window_left", NULL},
        {masks->documents_query != NULL, "masks.documents_query", NULL},
        {masks->documents_key != NULL, "masks.documents_key", NULL},
        {masks->blocks.kind != ATTN_BLOCKS_NONE, "masks.blocks", NULL},
    };
    return refuse_given(refused, sizeof refused / sizeof *refused,
                        "~ does not go with attention, whose weights are used as they are", check);
}

static bool check_start(const attn_request *request, struct attn_check *check)
{
    if (attn_start_of(&request->inputs) == NULL)
        return true;
    if (!refuse_for_both(request, check) ||
        (request->inputs.attention != NULL && !refuse_for_attention(request, check)))
        return false;
    if (request->inputs.value == NULL && request->options.head_scale != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.head_scale",
                           "~ needs inputs.value: it scales what the heads give");
    return check_start_steps(request, check);
}

static bool check_bf16(const attn_request *request, struct attn_check *check)
{
    static const char *const field = "options.bf16_products";
    const attn_options *options = &request->options;
    const struct refused refused[] = {
        {options->compute != ATTN_F32, field, "products in bfloat16 need compute float32"},
        {options->mechanism.type != ATTN_SOFTMAX, field, "products in bfloat16 belong to mechanism softmax"},
        {attn_start_of(&request->inputs) != NULL, field,
         "products in bfloat16 need a request that starts at query and key"},
    };
    return !options->bf16_products || refuse_given(refused, sizeof refused / sizeof *refused, NULL, check);
}

/* ---- all of them ---- */

bool attn_options_check(const attn_request *request, attn_plan *plan, struct attn_check *check)
{
    const attn_options *options = &request->options;
    const attn_dims *dims = &plan->dims;
    struct attn_pace pace = attn_pace_begin(request->watch);
    return (request->is_layer ? check_layer_options(request, dims, check) : check_attention_options(request, check)) &&
           check_start(request, check) && check_bf16(request, check) && attn_feed_forward_check(request, dims, check) &&
           attn_qk_check(request, dims, check) && attn_rope_check(request, plan, check) &&
           attn_relative_check(request, dims, check) && check_mechanism(request, dims, check) &&
           check_wanted(request, check) &&
           check_selection(&options->heads, "options.heads", dims->heads, &pace, &plan->selected_heads, check) &&
           check_selection(&options->queries, "options.queries", dims->q_len, &pace, &plan->selected_queries, check) &&
           check_selection(&options->keys, "options.keys", dims->kv_len, &pace, &plan->selected_keys, check);
}
