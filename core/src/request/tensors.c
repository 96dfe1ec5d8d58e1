/* tensors.c: checks of one tensor, and of heads. */
#include "request/request.h"

#include <string.h>

#include "base/size.h"

/* Where the type is float32, 16 bits are read as they are. */
static attn_dtype readable_type(const attn_tensor *tensor, attn_dtype compute)
{
    const bool is_half = tensor->dtype == ATTN_F16 || tensor->dtype == ATTN_BF16;
    return is_half && compute == ATTN_F32 ? tensor->dtype : compute;
}

static bool check_numbers(const attn_tensor *tensor, const char *field, attn_dtype compute, struct attn_check *check)
{
    size_t count;
    if (tensor->dtype != compute)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "~ must be %s, got %s", attn_dtype_name(compute),
                           attn_dtype_name(tensor->dtype));
    if (!attn_shape_count(tensor->rank, tensor->shape, &count) || count > ATTN_NUMBERS_MAX)
        return attn_refuse(check, ATTN_ERR_TOO_LARGE, field, "~ has too many elements");
    return true;
}

bool attn_check_tensor(const attn_tensor *tensor, const char *field, attn_dtype compute, struct attn_check *check)
{
    if (!check_numbers(tensor, field, compute, check))
        return false;
    if (!attn_tensor_is_contiguous(tensor))
        return attn_refuse(check, ATTN_ERR_FIELD, field, "~ must be row-major without gaps");
    return true;
}

bool attn_check_matrix(const attn_tensor *tensor, const char *field, attn_dtype compute, struct attn_check *check)
{
    return attn_check_tensor(tensor, field, readable_type(tensor, compute), check);
}

/* Tokens of attention, and a cache, may lie anywhere, with their features side by side. */
bool attn_check_tokens(const attn_tensor *tensor, const char *field, attn_dtype compute, struct attn_check *check)
{
    const int last = tensor->rank - 1;
    bool is_fine = last < 0 || tensor->shape[last] <= 1 || tensor->stride[last] == 1;
    for (int axis = 0; axis < last; axis++)
        is_fine = is_fine && tensor->stride[axis] >= 0;
    if (!check_numbers(tensor, field, readable_type(tensor, compute), check))
        return false;
    if (!is_fine)
        return attn_refuse(check, ATTN_ERR_FIELD, field,
                           "~ must have its features side by side, and no stride below 0");
    return true;
}

/* Size of an axis that key or value must share with another input. */
bool attn_check_same(const attn_tensor *tensor, const char *field, int axis, size_t wanted, const char *other,
                     const char *what, struct attn_check *check)
{
    char expected[64];
    if (tensor->shape[axis] == wanted)
        return true;
    size_t shape[ATTN_MAX_RANK];
    memcpy(shape, tensor->shape, sizeof shape);
    shape[axis] = wanted;
    attn_shape_text(expected, sizeof expected, tensor->rank, shape);
    return attn_refuse_shape(check, field, tensor, expected, "~ and ~%s differ in their number of %s: %zu and %zu",
                             other, what, tensor->shape[axis], wanted);
}

/* Head counts are bounded first, so that their sums and products with widths cannot overflow. */
bool attn_check_groups(const attn_dims *dims, struct attn_check *check)
{
    if (dims->heads == 0 || dims->kv_heads == 0)
        return attn_refuse(check, ATTN_ERR_SHAPE, "inputs.query", "there must be at least one head");
    if (dims->heads > DIMENSION_MAX || dims->kv_heads > DIMENSION_MAX)
        return attn_refuse(check, ATTN_ERR_TOO_LARGE,
                           dims->heads > DIMENSION_MAX ? "options.num_heads" : "options.kv_num_heads",
                           "there are more than %zu heads", DIMENSION_MAX);
    if (dims->heads % dims->kv_heads != 0)
        return attn_refuse(check, ATTN_ERR_SHAPE, "options.kv_num_heads",
                           "%zu query heads cannot be divided among %zu key heads", dims->heads, dims->kv_heads);
    return true;
}

bool attn_check_heads(size_t asked, size_t found, const char *field, struct attn_check *check)
{
    if (asked == 0 || asked == found)
        return true;
    return attn_refuse(check, ATTN_ERR_SHAPE, field, "~ is %zu, but the tensors have %zu heads", asked, found);
}

bool attn_split_features(size_t features, size_t heads, const char *field, const char *option, size_t *each,
                         struct attn_check *check)
{
    if (heads == 0 || features % heads != 0)
        return attn_refuse(check, ATTN_ERR_SHAPE, field, "~ has %zu features, which %s = %zu does not divide", features,
                           option, heads);
    *each = features / heads;
    return true;
}
