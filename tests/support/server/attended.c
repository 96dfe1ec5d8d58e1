/*
 * attended.c: runs a request in JSON to its result.
 */
#include "attended.h"
#include "codec/request/envelope.h"

#include <check.h>
#include <string.h>

#include "codec/answer/reduce.h"

attn_status attended_run(struct attended *attended, const char *text, bool is_binary, attn_arena *arena,
                         const attn_runtime *runtime)
{
    *attended = (struct attended){.arena = arena, .runtime = *runtime};
    struct envelope *envelope = &attended->envelope;
    attn_error *err = &attended->err;
    envelope_prepare();
    attn_status status = envelope_decode(text, strlen(text), ENVELOPE_ATTENTION, arena, envelope, err);
    if (status == ATTN_OK)
        status = attn_plan_make(&envelope->request, &attended->plan, err);
    if (status == ATTN_OK)
        status = reduce_plan(envelope, &attended->plan, attended->plan.want, is_binary, &attended->shown, err);
    if (status == ATTN_OK)
        status = attn_plan_run(&attended->plan, NULL, runtime, arena, &attended->whole, err);
    attended->result = attended->whole;
    if (status == ATTN_OK)
        status = reduce_result(envelope, &attended->plan, &attended->shown, runtime, arena, &attended->result, err);
    return status;
}

char *attended_answer(const struct attended *attended, enum media media, size_t *length)
{
    const struct answer answer = {&attended->envelope, &attended->shown, &attended->result};
    const struct answer before = {&attended->envelope, &attended->shown, NULL};
    struct chunks out = chunks_begin(attended->arena);
    size_t bound = answer_bound(&before, media);
    answer_write(&answer, media, &attended->runtime, &out);
    ck_assert(out.is_ok);
    ck_assert_uint_le(out.total_bytes, bound);
    if (length != NULL)
        *length = out.total_bytes;
    return chunks_join(&out);
}

double attended_at(const attn_tensor *tensor, size_t b, size_t h, size_t i, size_t j)
{
    ptrdiff_t at = (ptrdiff_t)b * tensor->stride[0] + (ptrdiff_t)h * tensor->stride[1] +
                   (ptrdiff_t)i * tensor->stride[2] + (ptrdiff_t)j * tensor->stride[3];
    return tensor->dtype == ATTN_F32 ? (double)((const float *)tensor->data)[at] : ((const double *)tensor->data)[at];
}
