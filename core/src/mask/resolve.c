/* resolve.c: checks masks, and resolves them against the dimensions of a computation. */
#include "mask/resolved.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"

/* Above every length, and small enough that sums with lengths do not overflow. */
static const int64_t POSITION_MAX = (int64_t)1 << 40;

static bool fail_shape(struct attn_check *check, const char *field, const attn_tensor *tensor, int rank,
                       const size_t *wanted, const char *hint)
{
    char expected[64], received[64];
    attn_shape_text(expected, sizeof expected, rank, wanted);
    attn_shape_text(received, sizeof received, tensor->rank, tensor->shape);
    return attn_refuse_shape(check, field, tensor, expected, "~ has shape %s, which does not fit %s%s", received,
                             expected, hint);
}

/*
 * The shape with which a mask would fit, when its numbers are in that order already: (batch, kv_len), (batch, q_len,
 * kv_len) and (batch * heads, q_len, kv_len) are what other systems take. False: none is known.
 */
static bool find_meant_shape(const attn_tensor *tensor, const size_t wanted[4], size_t meant[4])
{
    const size_t *own = tensor->shape;
    const bool is_padding = tensor->rank == 2 && own[0] == wanted[0] && own[1] == wanted[3];
    const bool is_map = tensor->rank == 3 && own[1] == wanted[2] && own[2] == wanted[3];
    const bool is_flat = is_map && wanted[0] > 0 && own[0] / wanted[0] == wanted[1] && own[0] % wanted[0] == 0;
    if (!is_padding && !is_flat && !(is_map && own[0] == wanted[0]))
        return false;
    meant[0] = wanted[0];
    meant[1] = is_flat ? wanted[1] : 1;
    meant[2] = is_padding ? 1 : wanted[2];
    meant[3] = wanted[3];
    return true;
}

static bool fail_broadcast(struct attn_check *check, const char *field, const attn_tensor *tensor,
                           const size_t wanted[4])
{
    size_t meant[4];
    char shape[64], hint[160];
    if (!find_meant_shape(tensor, wanted, meant))
        return fail_shape(check, field, tensor, 4, wanted, "");
    snprintf(hint, sizeof hint, "; it would fit with the shape %s%s", attn_shape_text(shape, sizeof shape, 4, meant),
             tensor->rank == 2 && strcmp(field, "masks.attend") == 0 ? ", and masks.padding takes (batch, kv_len)"
                                                                     : "");
    return fail_shape(check, field, tensor, 4, wanted, hint);
}

/* The strides that broadcast tensor to the shape wanted[4], aligned at the right. */
static bool broadcast(const attn_tensor *tensor, const char *field, const size_t wanted[4], ptrdiff_t stride[4],
                      struct attn_check *check)
{
    for (int axis = 0; axis < 4; axis++) {
        int own = axis - (4 - tensor->rank);
        if (own >= 0 && tensor->shape[own] != wanted[axis] && tensor->shape[own] != 1)
            return fail_broadcast(check, field, tensor, wanted);
        stride[axis] = own >= 0 && tensor->shape[own] == wanted[axis] ? tensor->stride[own] : 0;
    }
    return true;
}

static bool fail_dtype(struct attn_check *check, const char *field, const attn_tensor *tensor, const char *wanted)
{
    return attn_refuse(check, ATTN_ERR_FIELD, field, "~ must be %s, got %s", wanted, attn_dtype_name(tensor->dtype));
}

static bool is_boolean(const attn_tensor *tensor)
{
    return tensor->dtype == ATTN_BOOL || tensor->dtype == ATTN_U8;
}

/* One int64 for each batch item, or one for all: *stride is 1 or 0. */
static bool resolve_per_item(const attn_tensor *tensor, const char *field, size_t batch, const int64_t **items,
                             size_t *stride, struct attn_check *check)
{
    if (tensor->dtype != ATTN_I64)
        return fail_dtype(check, field, tensor, "int64");
    if (tensor->rank > 1 || (tensor->rank == 1 && tensor->shape[0] != batch && tensor->shape[0] != 1))
        return fail_shape(check, field, tensor, 1, &batch, "");
    *items = tensor->data;
    *stride = tensor->rank == 1 && tensor->shape[0] == batch && batch > 1 ? (size_t)tensor->stride[0] : 0;
    return true;
}

static bool resolve_lengths(const attn_tensor *tensor, const char *field, size_t batch, size_t longest,
                            const int64_t **lengths, size_t *stride, struct attn_check *check)
{
    if (tensor == NULL)
        return true;
    if (!resolve_per_item(tensor, field, batch, lengths, stride, check))
        return false;
    assert(*lengths != NULL); /* check_data has seen the data */
    for (size_t b = 0; b < batch; b++) {
        int64_t length = (*lengths)[b * *stride];
        if (length < 0 || (uint64_t)length > longest)
            return attn_refuse(check, ATTN_ERR_VALUE, field, "~[%zu] is %lld, it must be from 0 to %zu", b,
                               (long long)length, longest);
    }
    return true;
}

static bool resolve_offset(const attn_masks *masks, attn_mask *mask, struct attn_check *check)
{
    bool from_bottom_right = masks->align == ATTN_ALIGN_BOTTOM_RIGHT && (masks->align_given || masks->offset == NULL);
    mask->base_offset = from_bottom_right ? (int64_t)mask->kv_len - (int64_t)mask->q_len : 0;
    if (masks->offset == NULL)
        return true;
    const char *field = "masks.offset";
    if (!resolve_per_item(masks->offset, field, mask->batch, &mask->offset, &mask->offset_stride, check))
        return false;
    for (size_t b = 0; b < mask->batch; b++) {
        int64_t offset = mask->offset[b * mask->offset_stride];
        if (offset < -POSITION_MAX || offset > POSITION_MAX)
            return attn_refuse(check, ATTN_ERR_VALUE, field, "offset %lld is beyond any position", (long long)offset);
    }
    return true;
}

static bool fail_window(struct attn_check *check, const char *field, int64_t given)
{
    return attn_refuse(check, ATTN_ERR_VALUE, field, "~ is %lld, it must be 0 or more", (long long)given);
}

static bool resolve_window(const attn_masks *masks, attn_mask *mask, struct attn_check *check)
{
    if (!masks->has_window)
        return true;
    if (masks->window_left < 0 || masks->window_right < 0)
        return masks->window_left < 0 ? fail_window(check, "masks.window_left", masks->window_left)
                                      : fail_window(check, "masks.window_right", masks->window_right);
    mask->has_window = true;
    mask->left = masks->window_left < POSITION_MAX ? masks->window_left : 2 * POSITION_MAX;
    mask->right = masks->window_right < POSITION_MAX ? masks->window_right : 2 * POSITION_MAX;
    return true;
}

static bool resolve_padding(const attn_tensor *padding, attn_mask *mask, struct attn_check *check)
{
    if (padding == NULL)
        return true;
    const char *field = "masks.padding";
    const size_t wanted[2] = {mask->batch, mask->kv_len};
    if (!is_boolean(padding))
        return fail_dtype(check, field, padding, "bool");
    bool fits_one = padding->rank == 1 && mask->batch == 1 && padding->shape[0] == mask->kv_len;
    bool fits = padding->rank == 2 && padding->shape[0] == mask->batch && padding->shape[1] == mask->kv_len;
    if (!fits && !fits_one)
        return fail_shape(check, field, padding, 2, wanted, "");
    mask->padding = padding->data;
    mask->padding_stride[0] = fits ? padding->stride[0] : 0;
    mask->padding_stride[1] = padding->stride[padding->rank - 1];
    return true;
}

/* A bias may hide a key with -infinity; NaN and +infinity would spoil the row. */
static bool check_bias(const attn_tensor *bias, const attn_runtime *watch, attn_mask *mask, struct attn_check *check)
{
    size_t shape[4] = {1, 1, 1, 1}, at[4];
    ptrdiff_t stride[4] = {0};
    struct attn_pace pace = attn_pace_begin(watch);
    for (int axis = 0; axis < bias->rank; axis++) {
        shape[4 - bias->rank + axis] = bias->shape[axis];
        stride[4 - bias->rank + axis] = bias->stride[axis];
    }
    for (at[0] = 0; at[0] < shape[0]; at[0]++)
        for (at[1] = 0; at[1] < shape[1]; at[1]++)
            for (at[2] = 0; at[2] < shape[2]; at[2]++)
                for (at[3] = 0; at[3] < shape[3]; at[3]++) {
                    if (attn_pace_stops(&pace, 1))
                        return attn_refuse_stopped(check);
                    ptrdiff_t offset = 0;
                    for (int axis = 0; axis < 4; axis++)
                        offset += (ptrdiff_t)at[axis] * stride[axis];
                    double x = attn_number_at(bias->data, bias->dtype, offset);
                    if (isnan(x) || x == (double)INFINITY)
                        return attn_refuse(check, ATTN_ERR_VALUE, "masks.bias",
                                           "~ holds %s; it must be finite or -Infinity", isnan(x) ? "NaN" : "Infinity");
                    if (isfinite(x) && x <= ATTN_BIAS_AS_MASK)
                        mask->bias_as_mask++;
                    if (isfinite(x) && x < mask->bias_lowest)
                        mask->bias_lowest = x;
                }
    return true;
}

static bool resolve_bias(const attn_tensor *bias, attn_dtype compute, const size_t full[4], const attn_runtime *watch,
                         attn_mask *mask, struct attn_check *check)
{
    if (bias == NULL)
        return true;
    if (bias->dtype != compute)
        return fail_dtype(check, "masks.bias", bias, attn_dtype_name(compute));
    mask->bias = bias->data;
    return broadcast(bias, "masks.bias", full, mask->bias_stride, check) && check_bias(bias, watch, mask, check);
}

static bool resolve_attend(const attn_tensor *attend, const size_t full[4], attn_mask *mask, struct attn_check *check)
{
    if (attend == NULL)
        return true;
    if (!is_boolean(attend))
        return fail_dtype(check, "masks.attend", attend, "bool");
    mask->attend = attend->data;
    return broadcast(attend, "masks.attend", full, mask->attend_stride, check);
}

static bool resolve_ids(const attn_tensor *ids, const char *field, size_t batch, size_t len, const int64_t **data,
                        ptrdiff_t stride[2], struct attn_check *check)
{
    const size_t wanted[2] = {batch, len};
    if (ids->dtype != ATTN_I64)
        return fail_dtype(check, field, ids, "int64");
    const bool is_batched = ids->rank == 2 && (ids->shape[0] == batch || ids->shape[0] == 1);
    if ((ids->rank != 1 && !is_batched) || ids->shape[ids->rank - 1] != len)
        return fail_shape(check, field, ids, 2, wanted, "");
    *data = ids->data;
    stride[0] = is_batched && ids->shape[0] == batch ? ids->stride[0] : 0;
    stride[1] = ids->stride[ids->rank - 1];
    return true;
}

/* When watch stops the work, the answer is of no use. */
static bool documents_ascend(const attn_mask *mask, const attn_runtime *watch)
{
    struct attn_pace pace = attn_pace_begin(watch);
    const size_t items = mask->documents_key_stride[0] == 0 ? mask->batch != 0 : mask->batch;
    for (size_t b = 0; b < items; b++)
        for (size_t j = 1; j < mask->kv_len; j++)
            if (attn_pace_stops(&pace, 1) || *attn_document_of_key(mask, b, j - 1) > *attn_document_of_key(mask, b, j))
                return false;
    return true;
}

static bool resolve_documents(const attn_masks *masks, const attn_runtime *watch, attn_mask *mask,
                              struct attn_check *check)
{
    const attn_tensor *query = masks->documents_query, *key = masks->documents_key;
    if (query == NULL && key == NULL)
        return true;
    if (query == NULL || key == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, query == NULL ? "masks.documents_query" : "masks.documents_key",
                           "~masks.documents_query and ~masks.documents_key go together");
    if (query == key && mask->q_len != mask->kv_len)
        return attn_refuse(check, ATTN_ERR_SHAPE, "masks.documents_query",
                           "~ has one list for %zu queries and %zu keys: give @masks.documents_key its own",
                           mask->q_len, mask->kv_len);
    if (!resolve_ids(query, "masks.documents_query", mask->batch, mask->q_len, &mask->documents_query,
                     mask->documents_query_stride, check) ||
        !resolve_ids(key, "masks.documents_key", mask->batch, mask->kv_len, &mask->documents_key,
                     mask->documents_key_stride, check))
        return false;
    mask->documents_are_sorted = documents_ascend(mask, watch);
    return true;
}

static bool resolve_matrix(const attn_tensor *matrix, attn_mask *mask, struct attn_check *check)
{
    const char *field = "masks.blocks.attend";
    const size_t full[4] = {mask->batch, mask->heads, mask->q_blocks, mask->kv_blocks};
    if (matrix == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "blocks needs attend: which block may attend to which");
    if (!is_boolean(matrix))
        return fail_dtype(check, field, matrix, "bool");
    if (matrix->rank < 2 || matrix->shape[matrix->rank - 2] != full[2] || matrix->shape[matrix->rank - 1] != full[3])
        return fail_shape(check, field, matrix, 4, full, "");
    return broadcast(matrix, field, full, mask->blocks_stride, check);
}

static bool check_prefix(const attn_tensor *prefix, const attn_mask *mask, struct attn_check *check)
{
    const char *field = "masks.blocks.prefix";
    const int64_t *lengths = NULL;
    size_t stride = 0;
    if (prefix == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "the prefix pattern needs ~: how many keys all may see");
    return resolve_lengths(prefix, field, mask->batch, mask->kv_len, &lengths, &stride, check);
}

static bool resolve_blocks(const attn_blocks *blocks, const attn_runtime *watch, attn_mask *mask,
                           struct attn_check *check)
{
    if (!attn_blocks_check(blocks, mask, watch, check))
        return false;
    const bool is_matrix = blocks->kind == ATTN_BLOCKS_MATRIX;
    const size_t size = blocks->size == 0 ? 1 : blocks->size, kv_size = is_matrix ? blocks->kv_size : size;
    mask->blocks = *blocks;
    mask->q_blocks = attn_ceil_div(mask->q_len, size);
    mask->kv_blocks = attn_ceil_div(mask->kv_len, kv_size);
    if (is_matrix)
        return resolve_matrix(blocks->attend, mask, check);
    return blocks->kind == ATTN_BLOCKS_PREFIX ? check_prefix(blocks->prefix, mask, check) : true;
}

/* The plan reads masks, so no run can bring them, as it can bring the inputs. */
static bool check_data(const attn_masks *masks, struct attn_check *check)
{
    const struct attn_tensor_row *row;
    for (size_t n = 0; (row = attn_tensor_row_at(n)) != NULL; n++) {
        const attn_tensor *tensor;
        if (strncmp(row->path, "masks.", strlen("masks.")) != 0)
            continue;
        memcpy(&tensor, (const char *)masks + row->at - offsetof(attn_request, masks), sizeof tensor);
        if (tensor != NULL && tensor->data == NULL && attn_tensor_count(tensor) > 0)
            return attn_refuse(check, ATTN_ERR_FIELD, row->path, "~ has no data");
    }
    return true;
}

bool attn_mask_resolve(const attn_masks *masks, size_t batch, size_t heads, size_t q_len, size_t kv_len,
                       attn_dtype compute, const attn_runtime *watch, attn_mask *mask, struct attn_check *check)
{
    const size_t full[4] = {batch, heads, q_len, kv_len};
    *mask = (attn_mask){.batch = batch, .heads = heads, .q_len = q_len, .kv_len = kv_len, .causal = masks->causal};
    return check_data(masks, check) && resolve_offset(masks, mask, check) && resolve_window(masks, mask, check) &&
           resolve_lengths(masks->key_lengths, "masks.key_lengths", batch, kv_len, &mask->kv_lengths,
                           &mask->kv_lengths_stride, check) &&
           resolve_lengths(masks->query_lengths, "masks.query_lengths", batch, q_len, &mask->q_lengths,
                           &mask->q_lengths_stride, check) &&
           resolve_padding(masks->padding, mask, check) && resolve_attend(masks->attend, full, mask, check) &&
           resolve_bias(masks->bias, compute, full, watch, mask, check) &&
           resolve_documents(masks, watch, mask, check) && resolve_blocks(&masks->blocks, watch, mask, check);
}
