/* attention.c: attention on plain arrays: makes and runs a plan. And the version of the library. */
#include "attn/attention.h"

#include "attn/multihead.h"
#include "attn/version.h"
#include "base/size.h"

int attn_version(void)
{
    return ATTN_VERSION_NUMBER;
}

/* (batch, heads, rows, features) */
static attn_tensor array(const void *data, attn_dtype dtype, const size_t shape[4], const attn_strides *strides)
{
    attn_tensor tensor = attn_tensor_view((void *)(uintptr_t)data, dtype, 4, shape);
    if (strides->batch != 0 || strides->head != 0 || strides->row != 0) {
        tensor.stride[0] = (ptrdiff_t)strides->batch;
        tensor.stride[1] = (ptrdiff_t)strides->head;
        tensor.stride[2] = (ptrdiff_t)strides->row;
    }
    return tensor;
}

static int64_t window_side(size_t keys)
{
    return (int64_t)attn_min(keys, (size_t)ATTN_WINDOW_OPEN);
}

static attn_masks masks_of(const attn_attention_args *args, const attn_tensor *mask)
{
    return (attn_masks){.causal = args->causal,
                        .attend = args->mask == NULL ? NULL : mask,
                        .has_window = args->has_window,
                        .window_left = window_side(args->window_left),
                        .window_right = window_side(args->window_right)};
}

static attn_options options_of(const attn_attention_args *args)
{
    attn_options options = {.compute = args->compute,
                            .has_scale = args->scale != 0,
                            .scale = args->scale,
                            .want = ATTN_STEP_BIT(ATTN_STEP_OUTPUT)};
    if (args->weights != NULL)
        options.want |= ATTN_STEP_BIT(ATTN_STEP_ATTENTION);
    if (args->lse != NULL)
        options.want |= ATTN_STEP_BIT(ATTN_STEP_LSE);
    return options;
}

/* Runs the plan in scratch, or in an arena for this run alone. */
static attn_status run(const attn_plan *plan, const attn_runtime *runtime, attn_arena *scratch, attn_error *err)
{
    const attn_runtime serial = attn_runtime_serial(NULL);
    runtime = runtime == NULL ? &serial : runtime;
    attn_arena *own = scratch == NULL ? attn_arena_create(attn_plan_bytes(plan, runtime->threads)) : NULL;
    attn_arena *arena = scratch == NULL ? own : scratch;
    if (arena == NULL)
        return attn_fail_no_memory(err);
    attn_result result;
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    attn_status status = attn_plan_run(plan, NULL, runtime, arena, &result, err);
    attn_arena_release(arena, mark);
    attn_arena_destroy(own);
    return status;
}

attn_status attn_attention(const attn_attention_args *args, const attn_runtime *runtime, attn_arena *scratch,
                           attn_error *err)
{
    const attn_attention_args *a = args;
    const size_t kv_heads = a->kv_heads == 0 ? a->heads : a->kv_heads;
    if (a->batch == 0 || a->heads == 0 || a->q_len == 0 || a->kv_len == 0 || a->d_k == 0 || a->d_v == 0)
        return attn_fail(err, ATTN_ERR_SHAPE, NULL, "every dimension must be at least 1");
    if (a->out_strides.batch > PTRDIFF_MAX || a->out_strides.head > PTRDIFF_MAX || a->out_strides.row > PTRDIFF_MAX)
        return attn_fail(err, ATTN_ERR_FIELD, NULL, "a stride of out does not fit a ptrdiff_t");
    const attn_tensor query = array(a->q, a->compute, (size_t[]){a->batch, a->heads, a->q_len, a->d_k}, &a->q_strides);
    const attn_tensor key = array(a->k, a->compute, (size_t[]){a->batch, kv_heads, a->kv_len, a->d_k}, &a->k_strides);
    const attn_tensor value = array(a->v, a->compute, (size_t[]){a->batch, kv_heads, a->kv_len, a->d_v}, &a->v_strides);
    const attn_tensor mask = attn_tensor_view((void *)(uintptr_t)a->mask, ATTN_U8, 2, (size_t[]){a->q_len, a->kv_len});
    const attn_request request = {.inputs = {.query = &query, .key = &key, .value = &value},
                                  .masks = masks_of(a, &mask),
                                  .options = options_of(a)};
    attn_plan plan;
    attn_status status = attn_plan_make(&request, &plan, err);
    if (status != ATTN_OK)
        return status;
    const attn_tensor *out = &plan.step[ATTN_STEP_OUTPUT];
    plan.step[ATTN_STEP_OUTPUT] = array(a->out, a->compute, out->shape, &a->out_strides);
    plan.step[ATTN_STEP_ATTENTION].data = a->weights;
    plan.step[ATTN_STEP_LSE].data = a->lse;
    return run(&plan, runtime, scratch, err);
}
