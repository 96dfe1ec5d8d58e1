/* json.c: writes a result as the JSON text of an answer. */
#include "codec/answer/forms.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "codec/answer/reduce.h"
#include "codec/bytes/bound.h"
#include "codec/number/number.h"
#include "codec/tensor/write.h"

enum {
    FRAME_BYTES = 4096,               /* room for all names, braces and single values of an answer */
    INTEGER_BYTES = 21,               /* a 64-bit integer and its comma */
    SHAPE_BYTES = 160,                /* "name":[…] in outputs and in shapes */
    ROW_BYTES = 3 * INTEGER_BYTES + 3 /* [b,h,i], */
};

static bool is_wanted(const attn_plan *plan, int step)
{
    return plan->want >> step & 1;
}

void answer_begin_member(struct chunks *out, bool *is_first, const char *name)
{
    chunks_text(out, *is_first ? "\"" : ",\"");
    chunks_text(out, name);
    chunks_text(out, "\":");
    *is_first = false;
}

void answer_write_number(struct chunks *out, double value)
{
    char text[NUMBER_TEXT_MAX];
    if (isfinite(value))
        chunks_bytes(out, text, (size_t)(number_write_f64(text, value) - text));
    else
        chunks_text(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

/* Writes a number of the compute type. The shortest text depends on that type. */
static void write_computed(struct chunks *out, attn_dtype compute, double value)
{
    char text[NUMBER_TEXT_MAX];
    if (compute == ATTN_F32 && isfinite(value))
        chunks_bytes(out, text, (size_t)(number_write_f32(text, (float)value) - text));
    else
        answer_write_number(out, value);
}

static void write_bool(struct chunks *out, bool value)
{
    chunks_text(out, value ? "true" : "false");
}

void answer_write_sizes(struct chunks *out, const size_t *sizes, size_t count)
{
    chunks_text(out, "[");
    for (size_t i = 0; i < count; i++) {
        chunks_text(out, i > 0 ? "," : "");
        chunks_count(out, sizes[i]);
    }
    chunks_text(out, "]");
}

/* A masked score is written as null. */
static struct tensor_style style_of(const struct envelope *envelope, int step)
{
    return (struct tensor_style){.form = envelope->form,
                                 .digits = envelope->digits,
                                 .null_for_minus_infinity = attn_step_values((attn_step)step) == ATTN_VALUES_SCORES};
}

static void write_outputs(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                          const attn_runtime *runtime, bool *is_first, struct chunks *out)
{
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (!is_wanted(plan, step))
            continue;
        struct tensor_style style = style_of(envelope, step);
        answer_begin_member(out, is_first, attn_step_name((attn_step)step));
        if (reduce_keeps_top(&envelope->reduction, step)) {
            chunks_text(out, "{\"indices\":");
            tensor_write_json(&envelope->reduction.top_indices, &style, runtime, out);
            chunks_text(out, ",\"weights\":");
        }
        tensor_write_json(&result->step[step], &style, runtime, out);
        chunks_text(out, reduce_keeps_top(&envelope->reduction, step) ? "}" : "");
    }
}

static void write_shapes(const attn_plan *plan, const attn_result *result, bool *is_first, struct chunks *out)
{
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (!is_wanted(plan, step))
            continue;
        answer_begin_member(out, is_first, attn_step_name((attn_step)step));
        answer_write_sizes(out, result->step[step].shape, (size_t)result->step[step].rank);
    }
}

/* Writes the offset as a number, or as a list with one number per batch item when the request gave one per item. */
static void write_causal_offset(const attn_masks *masks, const attn_plan *plan, struct chunks *out)
{
    if (masks->offset == NULL || attn_tensor_count(masks->offset) == 1) {
        chunks_format(out, "%lld", (long long)attn_plan_offset(plan, 0));
        return;
    }
    chunks_text(out, "[");
    for (size_t b = 0; b < plan->dims.batch; b++)
        chunks_format(out, "%s%lld", b > 0 ? "," : "", (long long)attn_plan_offset(plan, b));
    chunks_text(out, "]");
}

static void write_reach(int64_t reach, struct chunks *out)
{
    if (reach == ATTN_WINDOW_OPEN)
        chunks_text(out, "null");
    else
        chunks_format(out, "%lld", (long long)reach);
}

static void write_mask(const attn_masks *masks, const attn_plan *plan, bool has_distance, bool *is_first,
                       struct chunks *out)
{
    if (plan->mask.has_positions || has_distance) {
        answer_begin_member(out, is_first, "causal_offset");
        write_causal_offset(masks, plan, out);
    }
    if (!masks->has_window)
        return;
    answer_begin_member(out, is_first, "window");
    chunks_text(out, "[");
    write_reach(masks->window_left, out);
    chunks_text(out, ",");
    write_reach(masks->window_right, out);
    chunks_text(out, "]");
}

static bool has_distance_bias(const attn_options *options)
{
    const attn_relative_position *position = &options->relative_position;
    return options->alibi || options->alibi_slopes || options->relative_bias.table || position->key ||
           position->query || position->embedding;
}

/* Slopes that the request gave are not repeated in the answer. */
static void write_distance_bias(const attn_options *options, size_t heads, bool *is_first, struct chunks *out)
{
    const attn_relative_bias *relative = &options->relative_bias;
    if (options->alibi && !options->alibi_slopes) {
        answer_begin_member(out, is_first, "alibi");
        for (size_t h = 0; h < heads; h++) {
            chunks_text(out, h == 0 ? "[" : ",");
            write_computed(out, options->compute, attn_alibi_slope(heads, h));
        }
        chunks_text(out, "]");
    }
    if (relative->table) {
        answer_begin_member(out, is_first, "relative_bias");
        chunks_format(out, "{\"num_buckets\":%zu,\"bidirectional\":%s,\"max_distance\":%lld}",
                      relative->table->shape[0], relative->bidirectional ? "true" : "false",
                      (long long)relative->max_distance);
    }
}

static void write_relative_position(const attn_relative_position *own, bool *is_first, struct chunks *out)
{
    const attn_tensor *table = own->key ? own->key : own->query ? own->query : own->embedding;
    if (!table)
        return;
    answer_begin_member(out, is_first, "relative_position");
    chunks_format(out, "{\"num_rows\":%zu", table->shape[0]);
    if (own->buckets > 0)
        chunks_format(out, ",\"buckets\":%lld", (long long)own->buckets);
    if (own->max_distance > 0)
        chunks_format(out, ",\"max_distance\":%lld", (long long)own->max_distance);
    chunks_text(out, "}");
}

static void write_dropout(const struct envelope *envelope, struct chunks *out)
{
    const attn_options *options = &envelope->request.options;
    bool both = options->dropout_attention && options->dropout_residual;
    chunks_text(out, "{\"p\":");
    answer_write_number(out, envelope->dropout_p);
    chunks_format(out, ",\"seed\":%llu,\"where\":[%s%s%s],\"active\":", (unsigned long long)options->dropout_seed,
                  options->dropout_attention ? "\"attention\"" : "", both ? "," : "",
                  options->dropout_residual ? "\"residual\"" : "");
    write_bool(out, envelope->training);
    chunks_text(out, "}");
}

static void write_norm(const attn_options *options, struct chunks *out)
{
    chunks_format(out, "{\"type\":\"%s\",\"position\":\"%s\",\"eps\":", envelope_word(envelope_norms, options->norm),
                  envelope_word(envelope_norm_positions, options->norm_position));
    answer_write_number(out, options->norm_eps);
    chunks_text(out, "}");
}

static void write_rope(const attn_rope *rope, const attn_plan *plan, struct chunks *out)
{
    chunks_format(out, "{\"layout\":\"%s\",\"dim\":%zu", envelope_word(envelope_ropes, rope->layout), plan->rope_dim);
    if (!rope->query.cos || !rope->key.cos) {
        chunks_text(out, ",\"theta\":");
        answer_write_number(out, rope->theta > 0 ? rope->theta : ATTN_ROPE_THETA);
        chunks_format(out, ",\"scaling\":\"%s\"", attn_rope_type_name(rope->scaling.type));
    }
    chunks_text(out, "}");
}

static void write_mechanism(const attn_mechanism *mechanism, const attn_plan *plan, struct chunks *out)
{
    if (mechanism->type == ATTN_SOFTMAX) {
        chunks_text(out, "\"softmax\"");
        return;
    }
    chunks_format(out, "{\"type\":\"%s\",\"eps\":", envelope_word(envelope_mechanisms, mechanism->type));
    answer_write_number(out, mechanism->eps);
    if (mechanism->type == ATTN_PERFORMER)
        chunks_format(out, ",\"features\":%zu,\"seed\":%llu", attn_mechanism_features(mechanism, plan->dims.d_k),
                      (unsigned long long)mechanism->seed);
    else
        chunks_format(out, ",\"feature_map\":\"%s\",\"normalize\":%s", mechanism->is_identity ? "identity" : "elu",
                      mechanism->is_unnormalised ? "false" : "true");
    if (mechanism->update_rule != ATTN_RULE_NONE)
        chunks_format(out, ",\"update_rule\":\"%s\"", envelope_word(envelope_update_rules, mechanism->update_rule));
    chunks_text(out, "}");
}

static void write_norm_of_rows(const char *name, attn_norm_type type, double eps, bool *is_first, struct chunks *out)
{
    answer_begin_member(out, is_first, name);
    chunks_format(out, "{\"type\":\"%s\",\"eps\":", envelope_word(envelope_norms, type));
    answer_write_number(out, eps);
    chunks_text(out, "}");
}

/* Writes the options that change queries and keys before their product. */
static void write_queries_and_keys(const attn_options *options, const attn_plan *plan, bool *is_first,
                                   struct chunks *out)
{
    if (options->qk_norm != ATTN_NORM_NONE)
        write_norm_of_rows("qk_norm", options->qk_norm, options->qk_norm_eps, is_first, out);
    if (options->latent_norm != ATTN_NORM_NONE)
        write_norm_of_rows("latent_norm", options->latent_norm, options->latent_norm_eps, is_first, out);
    if (options->rope.layout != ATTN_ROPE_NONE) {
        answer_begin_member(out, is_first, "rope");
        write_rope(&options->rope, plan, out);
    }
    if (plan->dims.past_len > 0) {
        answer_begin_member(out, is_first, "past_len");
        chunks_format(out, "%zu", plan->dims.past_len);
    }
}

static void write_selection(const attn_selection *selection, const char *name, bool *is_first, struct chunks *out)
{
    if (selection->count == 0)
        return;
    answer_begin_member(out, is_first, name);
    for (size_t i = 0; i < selection->count && out->is_ok; i++) {
        chunks_text(out, i > 0 ? "," : "[");
        chunks_count(out, attn_selected(selection, i));
    }
    chunks_text(out, "]");
}

/* The requested number of rows or columns, and at most those that exist. 0 requests all. */
static size_t pooled_length(size_t wanted, size_t length)
{
    return wanted > 0 && wanted < length ? wanted : length;
}

static void write_reduction(const struct envelope_reduction *reduction, const attn_plan *plan, bool *is_first,
                            struct chunks *out)
{
    if (reduction->has_pool) {
        answer_begin_member(out, is_first, "pool");
        chunks_format(out, "{\"rows\":%zu,\"cols\":%zu,\"op\":\"%s\"}",
                      pooled_length(reduction->pool_rows, plan->selected_queries),
                      pooled_length(reduction->pool_cols, plan->selected_keys), reduction->pool_mean ? "mean" : "max");
    }
    if (reduction->top_k > 0) {
        answer_begin_member(out, is_first, "top_k");
        chunks_format(out, "%zu", reduction->top_k);
    }
    if (reduction->dtype != ATTN_DTYPE_COUNT) {
        answer_begin_member(out, is_first, "dtype");
        chunks_format(out, "\"%s\"", attn_dtype_name(reduction->dtype));
    }
}

static void write_feed_forward(const attn_feed_forward_options *options, size_t d_ff, struct chunks *out)
{
    chunks_format(out, "{\"activation\":\"%s\",\"d_ff\":%zu,\"parallel\":", attn_activation_name(options->activation),
                  d_ff);
    write_bool(out, options->parallel);
    chunks_text(out, ",\"residual\":");
    write_bool(out, options->residual);
    if (options->norm != ATTN_NORM_NONE) {
        chunks_format(out, ",\"position\":\"%s\",\"norm\":{\"type\":\"%s\",\"eps\":",
                      envelope_word(envelope_norm_positions, options->position),
                      envelope_word(envelope_norms, options->norm));
        answer_write_number(out, options->norm_eps);
        chunks_text(out, "}");
    }
    chunks_text(out, "}");
}

static void write_layer(const attn_request *request, const attn_plan *plan, bool *is_first, struct chunks *out)
{
    if (!request->is_layer)
        return;
    if (plan->dims.d_ff > 0) {
        answer_begin_member(out, is_first, "feed_forward");
        write_feed_forward(&request->options.feed_forward, plan->dims.d_ff, out);
    }
    answer_begin_member(out, is_first, "layout");
    chunks_format(out, "\"%s\"", envelope_word(envelope_layouts, request->weights.layout));
    answer_begin_member(out, is_first, "residual");
    write_bool(out, request->options.residual);
    if (request->options.norm == ATTN_NORM_NONE)
        return;
    answer_begin_member(out, is_first, "norm");
    write_norm(&request->options, out);
}

/* Writes the name and all settings of the profile. The request's own options stand elsewhere in effective. */
static void write_profile(const struct envelope *envelope, bool *is_first, struct chunks *out)
{
    static const char *const aligns[] = {
        [ATTN_ALIGN_BOTTOM_RIGHT] = "bottom_right", [ATTN_ALIGN_TOP_LEFT] = "top_left", [ATTN_ALIGN_PAST] = "past"};
    const struct envelope_profile *profile = envelope->profile;
    const attn_dtype compute = envelope->request.options.compute;
    if (profile == NULL)
        return;
    answer_begin_member(out, is_first, "profile");
    chunks_format(out, "\"%s\"", profile->name);
    answer_begin_member(out, is_first, "profile_defaults");
    chunks_format(out, "{\"causal_align\":\"%s\",\"layout\":\"%s\",\"norm_eps\":{\"layer\":", aligns[profile->align],
                  envelope_word(envelope_layouts, profile->layout));
    answer_write_number(out, envelope_default_eps(profile, ATTN_NORM_LAYER, compute));
    chunks_text(out, ",\"rms\":");
    answer_write_number(out, envelope_default_eps(profile, ATTN_NORM_RMS, compute));
    chunks_text(out, "}}");
}

static void write_dims(const attn_dims *dims, struct chunks *out)
{
    const struct {
        const char *member;
        size_t size;
    } sizes[] = {{",\"num_heads\":", dims->heads}, {",\"kv_num_heads\":", dims->kv_heads}, {",\"d_k\":", dims->d_k},
                 {",\"d_v\":", dims->d_v},         {",\"batch\":", dims->batch},           {",\"q_len\":", dims->q_len},
                 {",\"kv_len\":", dims->kv_len}};
    for (size_t s = 0; s < ARRAY_LENGTH(sizes); s++) {
        chunks_text(out, sizes[s].member);
        chunks_count(out, sizes[s].size);
    }
}

/* Writes what the computation used, defaults included. */
void answer_write_effective(const struct envelope *envelope, const attn_plan *plan, const attn_runtime *runtime,
                            struct chunks *out)
{
    const attn_options *options = &envelope->request.options;
    bool is_first = false;
    chunks_text(out, "{\"mechanism\":");
    write_mechanism(&options->mechanism, plan, out);
    chunks_text(out, ",\"scale\":");
    answer_write_number(out, plan->scale);
    write_dims(&plan->dims, out);
    chunks_text(out, ",\"compute\":\"");
    chunks_text(out, envelope_compute_name(plan->compute, options->bf16_products));
    chunks_text(out, "\",\"kernel\":");
    chunks_json_string(out, attn_kernel_name(runtime->kernel));
    write_profile(envelope, &is_first, out);
    write_mask(&envelope->request.masks, plan, has_distance_bias(options), &is_first, out);
    write_distance_bias(options, plan->dims.heads, &is_first, out);
    write_relative_position(&options->relative_position, &is_first, out);
    if (options->softcap > 0) {
        answer_begin_member(out, &is_first, "softcap");
        answer_write_number(out, options->softcap);
    }
    write_queries_and_keys(options, plan, &is_first, out);
    write_layer(&envelope->request, plan, &is_first, out);
    if (envelope->has_dropout) {
        answer_begin_member(out, &is_first, "dropout");
        write_dropout(envelope, out);
    }
    write_selection(&options->heads, "heads", &is_first, out);
    write_selection(&options->queries, "queries", &is_first, out);
    write_selection(&options->keys, "keys", &is_first, out);
    write_reduction(&envelope->reduction, plan, &is_first, out);
    chunks_text(out, "}");
}

static void write_means(const char *name, const double *means, size_t count, struct chunks *out)
{
    if (means == NULL)
        return;
    chunks_text(out, ",\"");
    chunks_text(out, name);
    chunks_text(out, "\":[");
    for (size_t i = 0; i < count; i++) {
        chunks_text(out, i > 0 ? "," : "");
        write_computed(out, ATTN_F32, means[i]);
    }
    chunks_text(out, "]");
}

static void write_findings(const attn_findings *findings, struct chunks *out)
{
    write_means("entropy_per_head", findings->entropy, findings->heads, out);
    write_means("first_key_share_per_head", findings->first_key_share, findings->heads, out);
    if (findings->rows_not_finite > 0) {
        chunks_text(out, ",\"rows_not_finite_count\":");
        chunks_count(out, findings->rows_not_finite);
    }
    if (findings->has_rows) {
        chunks_text(out, ",\"rows_on_one_key_count\":");
        chunks_count(out, findings->rows_on_one_key);
        chunks_text(out, ",\"rows_underflowing_count\":");
        chunks_count(out, findings->rows_underflowing);
    }
    if (findings->not_finite_fields == 0)
        return;
    chunks_text(out, ",\"not_finite\":{");
    for (size_t i = 0; i < findings->not_finite_fields; i++) {
        char pointer[ENVELOPE_POINTER_MAX];
        chunks_format(out, "%s\"%s\":%zu", i > 0 ? "," : "", envelope_pointer(findings->not_finite[i].field, pointer),
                      findings->not_finite[i].count);
    }
    chunks_text(out, "}");
}

void answer_write_diagnostics(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                              struct chunks *out)
{
    chunks_text(out, "{\"rows_without_keys\":[");
    for (size_t i = 0; i < result->empty_rows_listed; i++) {
        const attn_row *row = &result->empty_rows[i];
        chunks_format(out, "%s[%zu,%zu,%zu]", i > 0 ? "," : "", row->b, row->h, row->i);
    }
    chunks_text(out, "],\"rows_without_keys_count\":");
    chunks_count(out, result->rows_without_keys);
    chunks_text(out, ",\"max_abs_score\":");
    write_computed(out, plan->compute, result->max_abs_score);
    if (result->capped_scores > 0)
        chunks_format(out, ",\"softcap\":{\"scores\":%zu,\"saturated\":%zu}", result->capped_scores,
                      result->saturated_scores);
    if (plan->mask.bias_as_mask > 0) {
        chunks_format(out, ",\"bias_as_mask\":{\"count\":%zu,\"lowest\":", plan->mask.bias_as_mask);
        write_computed(out, plan->compute, plan->mask.bias_lowest);
        chunks_text(out, "}");
    }
    write_findings(&result->findings, out);
    hints_write(envelope, plan, result, out);
    chunks_text(out, "}");
}

bool answer_has_tokens(const struct envelope *envelope)
{
    return envelope->query_tokens.json || envelope->key_tokens.json;
}

void answer_write_tokens(const struct envelope *envelope, struct chunks *out)
{
    bool is_first = true;
    chunks_text(out, "{");
    if (envelope->query_tokens.json) {
        answer_begin_member(out, &is_first, "query");
        chunks_text(out, envelope->query_tokens.json);
    }
    if (envelope->key_tokens.json) {
        answer_begin_member(out, &is_first, "key");
        chunks_text(out, envelope->key_tokens.json);
    }
    chunks_text(out, "}");
}

void answer_write_outputs(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                          const struct answer_more *more, const attn_runtime *runtime, struct chunks *out)
{
    bool is_first = true;
    chunks_text(out, "{\"outputs\":{");
    write_outputs(envelope, plan, result, runtime, &is_first, out);
    if (more)
        more->write_outputs(more->context, &is_first, out);
    is_first = true;
    chunks_text(out, "},\"shapes\":{");
    write_shapes(plan, result, &is_first, out);
    if (more)
        more->write_shapes(more->context, &is_first, out);
    chunks_text(out, "}");
}

void answer_write_facts(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                        const attn_runtime *runtime, struct chunks *out)
{
    chunks_text(out, ",\"effective\":");
    answer_write_effective(envelope, plan, runtime, out);
    chunks_text(out, ",\"diagnostics\":");
    answer_write_diagnostics(envelope, plan, result, out);
    if (answer_has_tokens(envelope)) {
        chunks_text(out, ",\"tokens\":");
        answer_write_tokens(envelope, out);
    }
    chunks_text(out, "}");
}

void answer_write_json(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                       const attn_runtime *runtime, struct chunks *out)
{
    answer_write_outputs(envelope, plan, result, NULL, runtime, out);
    answer_write_facts(envelope, plan, result, runtime, out);
}

static size_t text_length(const char *text)
{
    return text ? strlen(text) : 0;
}

size_t answer_facts_bound(const struct envelope *envelope, const attn_plan *plan)
{
    const attn_options *options = &envelope->request.options;
    size_t bound = bound_add(FRAME_BYTES, plan->dims.batch, INTEGER_BYTES);
    const size_t rows = bound_add(0, bound_add(0, plan->dims.batch, plan->dims.heads), plan->dims.q_len);
    bound = bound_add(bound, rows < ATTN_EMPTY_ROWS_LISTED ? rows : ATTN_EMPTY_ROWS_LISTED, ROW_BYTES);
    bound = bound_add(bound, 2 * plan->dims.heads, NUMBER_TEXT_MAX); /* the means in diagnostics */
    bound = bound_add(bound, options->alibi ? plan->dims.heads : 0, NUMBER_TEXT_MAX);
    bound = bound_add(bound, options->heads.count, INTEGER_BYTES);
    bound = bound_add(bound, options->queries.count, INTEGER_BYTES);
    bound = bound_add(bound, options->keys.count, INTEGER_BYTES);
    bound = bound_add(bound, 1, text_length(envelope->query_tokens.json));
    return bound_add(bound, 1, text_length(envelope->key_tokens.json));
}

size_t answer_bytes_bound(const struct envelope *envelope, const attn_plan *plan)
{
    size_t bound = answer_facts_bound(envelope, plan);
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (!is_wanted(plan, step))
            continue;
        struct tensor_style style = style_of(envelope, step);
        bound = bound_add(bound, 1, SHAPE_BYTES);
        bound = bound_add(bound, 1, tensor_write_bound(&plan->step[step], &style));
        attn_tensor indices = plan->step[step];
        indices.dtype = ATTN_I64;
        if (reduce_keeps_top(&envelope->reduction, step))
            bound = bound_add(bound, 1, tensor_write_bound(&indices, &style));
    }
    return bound;
}
