/* present.c: joins the rows of the cache and the new rows, for the steps that show them. */
#include "layer/stages.h"

#include "attention/operand.h"
#include "base/copy.h"

/* Rows from … to of every head. */
static attn_tensor rows_between(const struct attn_operand *operand, const attn_tensor *all, size_t from, size_t to)
{
    attn_tensor rows = attn_operand_view(operand, all);
    rows.data = (char *)rows.data + (ptrdiff_t)from * rows.stride[2] * (ptrdiff_t)attn_dtype_bytes(rows.dtype);
    rows.shape[2] = to - from;
    return rows;
}

static bool is_same_place(const attn_tensor *a, const attn_tensor *b)
{
    bool is_same = a->data == b->data && a->dtype == b->dtype;
    for (int axis = 0; axis < 3; axis++)
        is_same = is_same && (a->shape[axis] <= 1 || a->stride[axis] == b->stride[axis]);
    return is_same;
}

static attn_status join(struct layer_run *run, const struct attn_keys *keys, attn_step step, struct attn_operand *to)
{
    const attn_tensor *shape = &run->plan->step[step];
    const size_t past_len = keys->past_len, end = shape->shape[2];
    if (shape->data != NULL && shape->stride[3] == 1) {
        *to = attn_operand_of(shape, shape->shape[3]);
    } else {
        const char *data = layer_take(run, attn_tensor_count(shape));
        *to = attn_operand_by_heads(data, run->plan->compute, shape->shape[1], end, shape->shape[3]);
    }
    if (to->data == NULL)
        return attn_fail_no_memory(run->err);
    const attn_tensor past = rows_between(&keys->past, shape, 0, past_len),
                      to_past = rows_between(to, shape, 0, past_len);
    const attn_tensor added = rows_between(&keys->added, shape, 0, end - past_len);
    const attn_tensor to_added = rows_between(to, shape, past_len, end);
    if (!is_same_place(&past, &to_past))
        attn_tensor_copy(&past, &to_past, run->runtime);
    attn_tensor_copy(&added, &to_added, run->runtime);
    return ATTN_OK;
}

attn_status attn_layer_present(struct layer_run *run)
{
    const struct attn_heads_job *job = &run->job;
    attn_status status = ATTN_OK;
    run->present_k = job->k.added;
    run->present_v = job->v.added;
    if (job->k.past_len == 0)
        return ATTN_OK;
    const attn_step keys = layer_wants(run, ATTN_STEP_PRESENT_KEY) ? ATTN_STEP_PRESENT_KEY : ATTN_STEP_K_ROTATED;
    if (layer_wants(run, keys))
        status = join(run, &job->k, keys, &run->present_k);
    if (status == ATTN_OK && layer_wants(run, ATTN_STEP_PRESENT_VALUE))
        status = join(run, &job->v, ATTN_STEP_PRESENT_VALUE, &run->present_v);
    return status;
}
