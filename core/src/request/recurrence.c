/* recurrence.c: checks the inputs of a recurrence: decay, beta and past_state, against the dimensions. */
#include "formulas/formulas.h"
#include "request/request.h"

/* A tensor of tokens with one of two numbers of features a head: wide, or narrow. heads_or_one: heads may be 1, too. */
struct shape_rule {
    size_t wide, narrow;
    bool heads_or_one;
    const char *wanted;
};

static bool fits_tokens(const attn_tensor *tensor, const struct shape_rule *rule, const attn_dims *dims)
{
    const size_t heads = dims->kv_heads, last = tensor->rank == 0 ? 0 : tensor->shape[tensor->rank - 1];
    if (tensor->rank != dims->query_rank || tensor->shape[tensor->rank - 2] != dims->kv_len ||
        (tensor->rank > 2 && tensor->shape[0] != dims->batch))
        return false;
    if (tensor->rank < 4)
        return last == heads * rule->wide || last == heads * rule->narrow || (rule->heads_or_one && last == 1);
    return (tensor->shape[1] == heads || (rule->heads_or_one && tensor->shape[1] == 1)) &&
           (last == rule->wide || last == rule->narrow);
}

static bool check_tokens(const attn_tensor *tensor, const char *field, const struct shape_rule *rule,
                         const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    if (!attn_check_tensor(tensor, field, request->options.compute, check))
        return false;
    if (fits_tokens(tensor, rule, dims))
        return true;
    const size_t narrow[] = {dims->batch, dims->kv_len, dims->kv_heads},
                 by_heads[] = {dims->batch, dims->kv_heads, dims->kv_len, rule->narrow};
    const int skip = dims->query_rank == 2 ? 1 : 0;
    char expected[64], received[64];
    if (dims->query_rank == 4)
        attn_shape_text(expected, sizeof expected, 4, by_heads);
    else
        attn_shape_text(expected, sizeof expected, 3 - skip, narrow + skip);
    attn_shape_text(received, sizeof received, tensor->rank, tensor->shape);
    return attn_refuse_shape(check, field, tensor, expected, "~ has shape %s, expected %s%s", received, expected,
                             rule->wanted);
}

/* Whether the rule takes the input: needed and given, or neither. */
static bool check_need(bool is_needed, const attn_tensor *tensor, const char *field, const char *rules,
                       struct attn_check *check)
{
    if (is_needed && tensor == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "@ is missing: update_rule %s needs it", rules);
    if (!is_needed && tensor != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "~ belongs to update_rule %s of mechanism linear", rules);
    return true;
}

static bool check_state(const attn_tensor *state, const attn_request *request, const attn_dims *dims,
                        struct attn_check *check)
{
    const size_t wanted[4] = {dims->batch, dims->kv_heads, dims->d_k, dims->d_v};
    return attn_check_tensor(state, "inputs.past_state", request->options.compute, check) &&
           attn_check_past(state, "inputs.past_state", "d_k, d_v", wanted, dims, check);
}

bool attn_recurrence_check(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_mechanism *mechanism = &request->options.mechanism;
    const attn_inputs *inputs = &request->inputs;
    const bool is_recurrent = attn_is_recurrent(&request->options);
    const struct shape_rule of_decay = {dims->d_k, 1, false, ", or d_k numbers for each of these"};
    const struct shape_rule of_beta = {1, 1, true, ", or one number for all heads"};
    if (!check_need(is_recurrent && attn_has_decay(mechanism), inputs->decay, "inputs.decay", "gated and gated_delta",
                    check) ||
        !check_need(is_recurrent && attn_has_beta(mechanism), inputs->beta, "inputs.beta", "delta and gated_delta",
                    check))
        return false;
    if (!is_recurrent)
        return inputs->past_state == NULL ||
               attn_refuse(check, ATTN_ERR_FIELD, "inputs.past_state", "~ needs an update_rule in options.mechanism");
    if (!mechanism->is_identity || !mechanism->is_unnormalised)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.mechanism.update_rule",
                           "~ has %s: leave the member out that says otherwise",
                           mechanism->is_identity ? "no denominator (normalize)" : "no feature_map");
    if (dims->kv_len != dims->q_len)
        return attn_refuse(check, ATTN_ERR_SHAPE, "inputs.key",
                           "a recurrence has a query at every key: query has %zu positions, key has %zu", dims->q_len,
                           dims->kv_len);
    return (inputs->decay == NULL || check_tokens(inputs->decay, "inputs.decay", &of_decay, request, dims, check)) &&
           (inputs->beta == NULL || check_tokens(inputs->beta, "inputs.beta", &of_beta, request, dims, check)) &&
           (inputs->past_state == NULL || check_state(inputs->past_state, request, dims, check));
}
