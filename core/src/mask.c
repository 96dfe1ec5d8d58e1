/* mask.c: masks checked and resolved against the dimensions of a computation, and what they allow. */
#include "attn/mask.h"

#include <math.h>
#include <string.h>

/* Far beyond any length, and far from overflowing when lengths are added. */
static const int64_t POSITION_MAX = (int64_t)1 << 40;

static attn_status fail_shape(attn_error *err, const char *field, const attn_tensor *tensor, int rank,
                              const size_t *wanted)
{
    char expected[64], received[64];
    attn_shape_text(expected, sizeof expected, rank, wanted);
    attn_shape_text(received, sizeof received, tensor->rank, tensor->shape);
    attn_status status = attn_fail(err, ATTN_ERR_SHAPE, field, "%s has shape %s, which does not fit %s",
                                   strrchr(field, '/') + 1, received, expected);
    if (err != NULL)
        attn_expect(err, expected, received);
    return status;
}

/* Strides that read tensor as if it had the shape wanted[4], broadcasting from the right. */
static attn_status broadcast(const attn_tensor *tensor, const char *field, const size_t wanted[4], ptrdiff_t stride[4],
                             attn_error *err)
{
    for (int axis = 0; axis < 4; axis++) {
        int own = axis - (4 - tensor->rank);
        if (own >= 0 && tensor->shape[own] != wanted[axis] && tensor->shape[own] != 1)
            return fail_shape(err, field, tensor, 4, wanted);
        stride[axis] = own >= 0 && tensor->shape[own] == wanted[axis] ? tensor->stride[own] : 0;
    }
    return ATTN_OK;
}

static attn_status fail_dtype(attn_error *err, const char *field, const attn_tensor *tensor, const char *wanted)
{
    return attn_fail(err, ATTN_ERR_FIELD, field, "%s must be %s, got %s", strrchr(field, '/') + 1, wanted,
                     attn_dtype_name(tensor->dtype));
}

static bool is_boolean(const attn_tensor *tensor)
{
    return tensor->dtype == ATTN_BOOL || tensor->dtype == ATTN_U8;
}

/* One int64 for each batch item, or one for all: *stride is 1 or 0. */
static attn_status resolve_per_item(const attn_tensor *tensor, const char *field, size_t batch, const int64_t **items,
                                    size_t *stride, attn_error *err)
{
    if (tensor->dtype != ATTN_I64)
        return fail_dtype(err, field, tensor, "int64");
    if (tensor->rank > 1 || (tensor->rank == 1 && tensor->shape[0] != batch && tensor->shape[0] != 1))
        return fail_shape(err, field, tensor, 1, &batch);
    *items = tensor->data;
    *stride = tensor->rank == 1 && tensor->shape[0] == batch && batch > 1 ? (size_t)tensor->stride[0] : 0;
    return ATTN_OK;
}

static attn_status resolve_lengths(const attn_tensor *tensor, const char *field, size_t batch, size_t longest,
                                   const int64_t **lengths, size_t *stride, attn_error *err)
{
    if (tensor == NULL)
        return ATTN_OK;
    attn_status status = resolve_per_item(tensor, field, batch, lengths, stride, err);
    for (size_t b = 0; status == ATTN_OK && b < batch; b++) {
        int64_t length = (*lengths)[b * *stride];
        if (length < 0 || (uint64_t)length > longest)
            return attn_fail(err, ATTN_ERR_VALUE, field, "%s[%zu] is %lld, it must be from 0 to %zu",
                             strrchr(field, '/') + 1, b, (long long)length, longest);
    }
    return status;
}

static attn_status resolve_offset(const attn_masks *masks, attn_mask *mask, attn_error *err)
{
    bool from_bottom_right = masks->align == ATTN_ALIGN_BOTTOM_RIGHT && (masks->align_given || masks->offset == NULL);
    mask->base_offset = from_bottom_right ? (int64_t)mask->kv_len - (int64_t)mask->q_len : 0;
    if (masks->offset == NULL)
        return ATTN_OK;
    const char *field = "/masks/causal/offset";
    attn_status status = resolve_per_item(masks->offset, field, mask->batch, &mask->offset, &mask->offset_stride, err);
    for (size_t b = 0; status == ATTN_OK && b < mask->batch; b++) {
        int64_t offset = mask->offset[b * mask->offset_stride];
        if (offset < -POSITION_MAX || offset > POSITION_MAX)
            return attn_fail(err, ATTN_ERR_VALUE, field, "offset %lld is beyond any position", (long long)offset);
    }
    return status;
}

static attn_status resolve_window(const attn_masks *masks, attn_mask *mask, attn_error *err)
{
    if (!masks->has_window)
        return ATTN_OK;
    if (masks->window_left < 0 || masks->window_right < 0)
        return attn_fail(err, ATTN_ERR_VALUE, "/masks/window", "window is [%lld, %lld]; both must be 0 or more",
                         (long long)masks->window_left, (long long)masks->window_right);
    mask->has_window = true;
    mask->left = masks->window_left < POSITION_MAX ? masks->window_left : 2 * POSITION_MAX;
    mask->right = masks->window_right < POSITION_MAX ? masks->window_right : 2 * POSITION_MAX;
    return ATTN_OK;
}

static attn_status resolve_padding(const attn_tensor *padding, attn_mask *mask, attn_error *err)
{
    if (padding == NULL)
        return ATTN_OK;
    const char *field = "/masks/padding";
    const size_t wanted[2] = {mask->batch, mask->kv_len};
    if (!is_boolean(padding))
        return fail_dtype(err, field, padding, "bool");
    bool fits_one = padding->rank == 1 && mask->batch == 1 && padding->shape[0] == mask->kv_len;
    bool fits = padding->rank == 2 && padding->shape[0] == mask->batch && padding->shape[1] == mask->kv_len;
    if (!fits && !fits_one)
        return fail_shape(err, field, padding, 2, wanted);
    mask->padding = padding->data;
    mask->padding_stride[0] = fits ? padding->stride[0] : 0;
    mask->padding_stride[1] = padding->stride[padding->rank - 1];
    return ATTN_OK;
}

static double number_at(const void *data, attn_dtype dtype, ptrdiff_t at)
{
    return dtype == ATTN_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

/* A bias may hide a key with -infinity; NaN and +infinity would spoil the row. */
static attn_status check_bias(const attn_tensor *bias, attn_error *err)
{
    size_t shape[4] = {1, 1, 1, 1}, at[4];
    ptrdiff_t stride[4] = {0};
    for (int axis = 0; axis < bias->rank; axis++) {
        shape[4 - bias->rank + axis] = bias->shape[axis];
        stride[4 - bias->rank + axis] = bias->stride[axis];
    }
    for (at[0] = 0; at[0] < shape[0]; at[0]++)
        for (at[1] = 0; at[1] < shape[1]; at[1]++)
            for (at[2] = 0; at[2] < shape[2]; at[2]++)
                for (at[3] = 0; at[3] < shape[3]; at[3]++) {
                    ptrdiff_t offset = 0;
                    for (int axis = 0; axis < 4; axis++)
                        offset += (ptrdiff_t)at[axis] * stride[axis];
                    double x = number_at(bias->data, bias->dtype, offset);
                    if (isnan(x) || x == (double)INFINITY)
                        return attn_fail(err, ATTN_ERR_VALUE, "/masks/bias",
                                         "bias holds %s; it must be finite or -Infinity",
                                         isnan(x) ? "NaN" : "Infinity");
                }
    return ATTN_OK;
}

static attn_status resolve_bias(const attn_tensor *bias, attn_dtype compute, const size_t full[4], attn_mask *mask,
                                attn_error *err)
{
    if (bias == NULL)
        return ATTN_OK;
    if (bias->dtype != compute)
        return fail_dtype(err, "/masks/bias", bias, attn_dtype_name(compute));
    attn_status status = broadcast(bias, "/masks/bias", full, mask->bias_stride, err);
    mask->bias = bias->data;
    return status == ATTN_OK ? check_bias(bias, err) : status;
}

static attn_status resolve_attend(const attn_tensor *attend, const size_t full[4], attn_mask *mask, attn_error *err)
{
    if (attend == NULL)
        return ATTN_OK;
    if (!is_boolean(attend))
        return fail_dtype(err, "/masks/attend", attend, "bool");
    mask->attend = attend->data;
    return broadcast(attend, "/masks/attend", full, mask->attend_stride, err);
}

attn_status attn_mask_resolve(const attn_masks *masks, size_t batch, size_t heads, size_t q_len, size_t kv_len,
                              attn_dtype compute, attn_mask *mask, attn_error *err)
{
    const size_t full[4] = {batch, heads, q_len, kv_len};
    *mask = (attn_mask){.batch = batch, .heads = heads, .q_len = q_len, .kv_len = kv_len, .causal = masks->causal};
    attn_status status = resolve_offset(masks, mask, err);
    if (status == ATTN_OK)
        status = resolve_window(masks, mask, err);
    if (status == ATTN_OK)
        status = resolve_lengths(masks->key_lengths, "/masks/key_lengths", batch, kv_len, &mask->kv_lengths,
                                 &mask->kv_lengths_stride, err);
    if (status == ATTN_OK)
        status = resolve_lengths(masks->query_lengths, "/masks/query_lengths", batch, q_len, &mask->q_lengths,
                                 &mask->q_lengths_stride, err);
    if (status == ATTN_OK)
        status = resolve_padding(masks->padding, mask, err);
    if (status == ATTN_OK)
        status = resolve_attend(masks->attend, full, mask, err);
    if (status == ATTN_OK)
        status = resolve_bias(masks->bias, compute, full, mask, err);
    return status;
}

int64_t attn_mask_offset(const attn_mask *mask, size_t b)
{
    return mask->base_offset + (mask->offset == NULL ? 0 : mask->offset[b * mask->offset_stride]);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

attn_span attn_mask_span(const attn_mask *mask, size_t b, size_t i)
{
    int64_t from = 0, to = (int64_t)mask->kv_len, position = (int64_t)i + attn_mask_offset(mask, b);
    if (mask->causal)
        to = smaller(to, position + 1);
    if (mask->has_window) {
        to = smaller(to, position + mask->right + 1);
        from = position - mask->left > 0 ? position - mask->left : 0;
    }
    if (mask->kv_lengths != NULL)
        to = smaller(to, mask->kv_lengths[b * mask->kv_lengths_stride]);
    if (mask->q_lengths != NULL && (int64_t)i >= mask->q_lengths[b * mask->q_lengths_stride])
        to = 0;
    if (from >= to)
        return (attn_span){0, 0};
    return (attn_span){(size_t)from, (size_t)to};
}

bool attn_mask_has_lookup(const attn_mask *mask)
{
    return mask->attend != NULL || mask->padding != NULL || mask->bias != NULL;
}

static ptrdiff_t at(const ptrdiff_t stride[4], size_t b, size_t h, size_t i, size_t j)
{
    return (ptrdiff_t)b * stride[0] + (ptrdiff_t)h * stride[1] + (ptrdiff_t)i * stride[2] + (ptrdiff_t)j * stride[3];
}

bool attn_mask_allows(const attn_mask *mask, attn_dtype compute, size_t b, size_t h, size_t i, size_t j)
{
    attn_span span = attn_mask_span(mask, b, i);
    if (j < span.from || j >= span.to)
        return false;
    if (mask->padding != NULL &&
        mask->padding[(ptrdiff_t)b * mask->padding_stride[0] + (ptrdiff_t)j * mask->padding_stride[1]] == 0)
        return false;
    if (mask->attend != NULL && mask->attend[at(mask->attend_stride, b, h, i, j)] == 0)
        return false;
    return mask->bias == NULL || number_at(mask->bias, compute, at(mask->bias_stride, b, h, i, j)) > -(double)INFINITY;
}

bool attn_mask_row(const attn_mask *mask, attn_dtype compute, size_t b, size_t h, size_t i, size_t first, size_t count,
                   uint8_t *allow)
{
    const attn_span span = attn_mask_span(mask, b, i);
    uint8_t any = 0;
    for (size_t c = 0; c < count; c++)
        allow[c] = first + c >= span.from && first + c < span.to;
    if (mask->padding != NULL) {
        const uint8_t *padding = mask->padding + (ptrdiff_t)b * mask->padding_stride[0];
        for (size_t c = 0; c < count; c++)
            allow[c] &= padding[(ptrdiff_t)(first + c) * mask->padding_stride[1]] != 0;
    }
    if (mask->attend != NULL) {
        const uint8_t *attend = mask->attend + at(mask->attend_stride, b, h, i, first);
        for (size_t c = 0; c < count; c++)
            allow[c] &= attend[(ptrdiff_t)c * mask->attend_stride[3]] != 0;
    }
    if (mask->bias != NULL) {
        const ptrdiff_t bias = at(mask->bias_stride, b, h, i, first);
        for (size_t c = 0; c < count; c++)
            allow[c] &= number_at(mask->bias, compute, bias + (ptrdiff_t)c * mask->bias_stride[3]) > -(double)INFINITY;
    }
    for (size_t c = 0; c < count; c++)
        any |= allow[c];
    return any != 0;
}
