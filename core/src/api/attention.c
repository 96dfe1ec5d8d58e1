/* attention.c: scaled dot-product attention on plain arrays: makes and runs a plan. */
#include "attn/attention.h"

#include <string.h>

#include "attn/multihead.h"

static attn_tensor borrow(const void *data, attn_dtype dtype, int rank, const size_t *shape)
{
    return attn_tensor_view((void *)(uintptr_t)data, dtype, rank, shape);
}

attn_status attn_scaled_dot_product(const attn_shape *shape, const float *q, const float *k, const float *v,
                                    const uint8_t *mask, float *out, float *weights, const attn_runtime *runtime,
                                    attn_arena *scratch, attn_error *err)
{
    const attn_shape *s = shape;
    if (s->batch == 0 || s->heads == 0 || s->q_len == 0 || s->kv_len == 0 || s->d_k == 0 || s->d_v == 0)
        return attn_fail(err, ATTN_ERR_SHAPE, NULL, "every dimension must be at least 1");
    attn_tensor query = borrow(q, ATTN_F32, 4, (size_t[]){s->batch, s->heads, s->q_len, s->d_k});
    attn_tensor key = borrow(k, ATTN_F32, 4, (size_t[]){s->batch, s->heads, s->kv_len, s->d_k});
    attn_tensor value = borrow(v, ATTN_F32, 4, (size_t[]){s->batch, s->heads, s->kv_len, s->d_v});
    attn_tensor attend = borrow(mask, ATTN_U8, 2, (size_t[]){s->q_len, s->kv_len});
    attn_request request = {.inputs = {.query = &query, .key = &key, .value = &value}};
    request.masks.attend = mask == NULL ? NULL : &attend;
    request.options.want = 1u << ATTN_STEP_OUTPUT | (weights == NULL ? 0 : 1u << ATTN_STEP_ATTENTION);
    attn_plan plan;
    attn_result result;
    attn_arena_mark mark = attn_arena_mark_here(scratch);
    attn_status status = attn_plan_make(&request, &plan, err);
    if (status == ATTN_OK)
        status = attn_plan_run(&plan, &request, runtime, scratch, &result, err);
    if (status == ATTN_OK) {
        memcpy(out, result.step[ATTN_STEP_OUTPUT].data, plan.step_bytes[ATTN_STEP_OUTPUT]);
        if (weights != NULL)
            memcpy(weights, result.step[ATTN_STEP_ATTENTION].data, plan.step_bytes[ATTN_STEP_ATTENTION]);
    }
    attn_arena_release(scratch, mark);
    return status;
}
