/* check_start.c: what does not go with a start in the middle: options, masks and steps. */
#include <stddef.h>

#include "request/checks.h"
#include "request/steps.h"

#define STEP(name) ATTN_STEP_BIT(ATTN_STEP_##name)

/* The steps of queries, keys and the cache; those before given weights; those that need values. */
static const attn_steps of_keys =
    STEP(Q) | STEP(K) | STEP(Q_ROTATED) | STEP(K_ROTATED) | STEP(PRESENT_KEY) | STEP(PRESENT_VALUE);
static const attn_steps of_scores =
    STEP(SCORES) | STEP(SCALED) | STEP(MASKED) | STEP(LSE) | STEP(LSE_KEYS) | STEP(SINK);
static const attn_steps of_values = STEP(V) | STEP(CONTEXT) | STEP(CONCAT) | STEP(OUTPUT);

/* Fails for the first wanted step among those, with the reason why such a start lacks it. */
static bool refuse_steps(const attn_request *request, attn_steps steps, const char *reason, struct attn_check *check)
{
    const attn_steps wanted = request->options.want & steps;
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        if (wanted >> step & 1)
            return attn_refuse(check, ATTN_ERR_FIELD, "options.want", "\"%s\" %s", attn_step_name((attn_step)step),
                               reason);
    return true;
}

static bool check_steps(const attn_request *request, struct attn_check *check)
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

/* A member that a start refuses, and whether the request has it. */
struct refused {
    bool is_given;
    const char *field;
};

static bool refuse(const struct refused *refused, size_t count, const char *reason, struct attn_check *check)
{
    for (size_t n = 0; n < count; n++)
        if (refused[n].is_given)
            return attn_refuse(check, ATTN_ERR_FIELD, refused[n].field, "~ %s", reason);
    return true;
}

static bool refuse_for_both(const attn_request *request, struct attn_check *check)
{
    const attn_options *options = &request->options;
    const struct refused refused[] = {
        {options->rope.layout != ATTN_ROPE_NONE, "options.rope"},
        {options->qk_norm != ATTN_NORM_NONE, "options.qk_norm"},
        {options->mechanism.type != ATTN_SOFTMAX, "options.mechanism"},
    };
    return refuse(refused, sizeof refused / sizeof *refused,
                  request->inputs.scores != NULL ? "does not go with scores, which stands for queries and keys"
                                                 : "does not go with attention, which stands for queries and keys",
                  check);
}

static bool refuse_for_attention(const attn_request *request, struct attn_check *check)
{
    const attn_options *options = &request->options;
    const attn_masks *masks = &request->masks;
    const struct refused refused[] = {
        {options->has_scale, "options.scale"},
        {options->softcap > 0, "options.softcap"},
        {options->alibi, "options.alibi"},
        {options->alibi_slopes != NULL, "options.alibi_slopes"},
        {options->relative_bias.table != NULL, "options.relative_bias"},
        {options->sinks != NULL, "options.sinks"},
        {masks->causal, "masks.causal"},
        {masks->offset != NULL, "masks.offset"},
        {masks->attend != NULL, "masks.attend"},
        {masks->bias != NULL, "masks.bias"},
        {masks->padding != NULL, "masks.padding"},
        {masks->key_lengths != NULL, "masks.key_lengths"},
        {masks->query_lengths != NULL, "masks.query_lengths"},
        {masks->has_window, "masks.window_left"},
        {masks->documents_query != NULL, "masks.documents_query"},
        {masks->documents_key != NULL, "masks.documents_key"},
        {masks->blocks.kind != ATTN_BLOCKS_NONE, "masks.blocks"},
    };
    return refuse(refused, sizeof refused / sizeof *refused,
                  "does not go with attention, whose weights are used as they are", check);
}

bool attn_start_check(const attn_request *request, struct attn_check *check)
{
    if (attn_start_of(&request->inputs) == NULL)
        return true;
    if (!refuse_for_both(request, check) ||
        (request->inputs.attention != NULL && !refuse_for_attention(request, check)))
        return false;
    if (request->inputs.value == NULL && request->options.head_scale != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.head_scale",
                           "~ needs inputs.value: it scales what the heads give");
    return check_steps(request, check);
}
