/* bindings.c: a plan on other data. */
#include "request/request.h"

#include <string.h>

#include "mask/resolved.h"

/* *input points to *tensor afterwards, a copy with the data, unless the request does not have it. */
static attn_status bind(const attn_tensor **input, const void *data, const char *field, attn_tensor *tensor,
                        attn_error *err)
{
    if (*input == NULL)
        return data == NULL
                   ? ATTN_OK
                   : attn_fail(err, ATTN_ERR_FIELD, field, "the plan was made without %s", field + strlen("inputs."));
    *tensor = **input;
    *input = tensor;
    if (data != NULL)
        tensor->data = (void *)(uintptr_t)data;
    if (tensor->data == NULL && attn_tensor_count(tensor) > 0)
        return attn_fail(err, ATTN_ERR_FIELD, field, "%s has no data", field + strlen("inputs."));
    return ATTN_OK;
}

attn_status attn_bind(const attn_plan *plan, const attn_bindings *bindings, struct attn_bound *bound, attn_error *err)
{
    static const attn_bindings none;
    const attn_bindings *b = bindings == NULL ? &none : bindings;
    bound->plan = *plan;
    attn_inputs *inputs = &bound->plan.request.inputs;
    const struct {
        const attn_tensor **input;
        const void *data;
        const char *field;
    } each[] = {
        {&inputs->query, b->query, "inputs.query"},
        {&inputs->key, b->key, "inputs.key"},
        {&inputs->value, b->value, "inputs.value"},
        {&inputs->past_key, b->past_key, "inputs.past_key"},
        {&inputs->past_value, b->past_value, "inputs.past_value"},
        {&inputs->scores, b->scores, "inputs.scores"},
        {&inputs->attention, b->attention, "inputs.attention"},
        {&inputs->decay, b->decay, "inputs.decay"},
        {&inputs->beta, b->beta, "inputs.beta"},
        {&inputs->past_state, b->past_state, "inputs.past_state"},
    };
    attn_status status = ATTN_OK;
    for (size_t n = 0; status == ATTN_OK && n < sizeof each / sizeof *each; n++)
        status = bind(each[n].input, each[n].data, each[n].field, &bound->tensors[n], err);
    if (inputs->scores != NULL) {
        attn_mask mask = *attn_mask_of(plan);
        mask.scores = inputs->scores->data;
        attn_mask_put(&mask, &bound->plan);
    }
    return status;
}
