/* dims_checks.c: checks of one tensor, and of heads. */
#include "request/dims_checks.h"

#include <string.h>

#include "base/fail_shape.h"
#include "base/size.h"

/* Where the type is float32, 16 bits are read as they are. */
static attn_dtype readable_type(const attn_tensor *tensor, attn_dtype compute)
{
    const bool is_half = tensor->dtype == ATTN_F16 || tensor->dtype == ATTN_BF16;
    return is_half && compute == ATTN_F32 ? tensor->dtype : compute;
}

static attn_status check_numbers(const attn_tensor *tensor, const char *field, attn_dtype compute, attn_error *err)
{
    size_t count;
    if (tensor->dtype != compute)
        return attn_fail(err, ATTN_ERR_FIELD, field, "%s must be %s, got %s", attn_last_name(field),
                         attn_dtype_name(compute), attn_dtype_name(tensor->dtype));
    if (!attn_shape_count(tensor->rank, tensor->shape, &count) || count > ATTN_NUMBERS_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, field, "%s has too many elements", attn_last_name(field));
    return ATTN_OK;
}

attn_status attn_check_tensor(const attn_tensor *tensor, const char *field, attn_dtype compute, attn_error *err)
{
    attn_status status = check_numbers(tensor, field, compute, err);
    if (status == ATTN_OK && !attn_tensor_is_contiguous(tensor))
        return attn_fail(err, ATTN_ERR_FIELD, field, "%s must be row-major without gaps", attn_last_name(field));
    return status;
}

attn_status attn_check_matrix(const attn_tensor *tensor, const char *field, attn_dtype compute, attn_error *err)
{
    return attn_check_tensor(tensor, field, readable_type(tensor, compute), err);
}

/* Tokens of attention, and a cache, may lie anywhere, with their features side by side. */
attn_status attn_check_tokens(const attn_tensor *tensor, const char *field, attn_dtype compute, attn_error *err)
{
    attn_status status = check_numbers(tensor, field, readable_type(tensor, compute), err);
    const int last = tensor->rank - 1;
    bool is_fine = last < 0 || tensor->shape[last] <= 1 || tensor->stride[last] == 1;
    for (int axis = 0; axis < last; axis++)
        is_fine = is_fine && tensor->stride[axis] >= 0;
    if (status == ATTN_OK && !is_fine)
        return attn_fail(err, ATTN_ERR_FIELD, field, "%s must have its features side by side, and no stride below 0",
                         attn_last_name(field));
    return status;
}

/* Size of an axis that key or value must share with another input. */
attn_status attn_check_same(const attn_tensor *tensor, const char *field, int axis, size_t wanted, const char *other,
                            const char *what, attn_error *err)
{
    char expected[64];
    if (tensor->shape[axis] == wanted)
        return ATTN_OK;
    size_t shape[ATTN_MAX_RANK];
    memcpy(shape, tensor->shape, sizeof shape);
    shape[axis] = wanted;
    attn_shape_text(expected, sizeof expected, tensor->rank, shape);
    return attn_fail_shape(err, field, tensor, expected, "%s and %s differ in their number of %s: %zu and %zu",
                           attn_last_name(field), attn_last_name(other), what, tensor->shape[axis], wanted);
}

/* Head counts are bounded first, so that their sums and products with widths cannot overflow. */
attn_status attn_check_groups(const attn_dims *dims, attn_error *err)
{
    if (dims->heads == 0 || dims->kv_heads == 0)
        return attn_fail(err, ATTN_ERR_SHAPE, "inputs.query", "there must be at least one head");
    if (dims->heads > DIMENSION_MAX || dims->kv_heads > DIMENSION_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE,
                         dims->heads > DIMENSION_MAX ? "options.num_heads" : "options.kv_num_heads",
                         "there are more than %zu heads", DIMENSION_MAX);
    if (dims->heads % dims->kv_heads != 0)
        return attn_fail(err, ATTN_ERR_SHAPE, "options.kv_num_heads",
                         "%zu query heads cannot be divided among %zu key heads", dims->heads, dims->kv_heads);
    return ATTN_OK;
}

attn_status attn_check_heads(size_t asked, size_t found, const char *field, attn_error *err)
{
    if (asked == 0 || asked == found)
        return ATTN_OK;
    return attn_fail(err, ATTN_ERR_SHAPE, field, "%s is %zu, but the tensors have %zu heads", attn_last_name(field),
                     asked, found);
}

attn_status attn_split_features(size_t features, size_t heads, const char *field, const char *option, size_t *each,
                                attn_error *err)
{
    if (heads == 0 || features % heads != 0)
        return attn_fail(err, ATTN_ERR_SHAPE, field, "%s has %zu features, which %s = %zu does not divide",
                         attn_last_name(field), features, option, heads);
    *each = features / heads;
    return ATTN_OK;
}
