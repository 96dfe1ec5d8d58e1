/*
 * mask.h: what may attend to what, and which tiles nobody attends to.
 *
 * Query i of head h in batch item b may attend to key j when every mask that is given says so:
 *
 *     causal          j <= i + offset[b]
 *     window          i + offset[b] - left <= j <= i + offset[b] + right
 *     key_lengths     j < key_lengths[b]
 *     query_lengths   i < query_lengths[b]
 *     padding         padding[b][j] != 0
 *     attend          attend[b][h][i][j] != 0
 *     bias            bias[b][h][i][j] > -infinity; the finite ones are added to the scaled score
 *
 * The first four leave one run of keys to every query, which costs nothing to know; the others are looked up.
 */
#ifndef ATTN_MASK_H
#define ATTN_MASK_H

#include "attn/tensor.h"

typedef enum { ATTN_ALIGN_BOTTOM_RIGHT, ATTN_ALIGN_TOP_LEFT } attn_align;

#define ATTN_WINDOW_OPEN INT64_MAX

/* The masks as a caller gives them. A NULL tensor is a mask that is not there; zero-initialised there is none. */
typedef struct {
    bool causal;
    attn_align align;                 /* base of the offset: kv_len - q_len (bottom right) or 0 (top left) */
    const attn_tensor *offset;        /* int64, (), (1) or (batch): added to the base; alone, the base is 0 */
    bool align_given;                 /* whether align was said; without it an offset is counted from 0 */
    const attn_tensor *attend;        /* bool or uint8; broadcast from the right to (batch, heads, q_len, kv_len) */
    const attn_tensor *bias;          /* the compute type, finite or -infinity; broadcast likewise */
    const attn_tensor *padding;       /* bool or uint8, (batch, kv_len); also (kv_len) when batch is 1 */
    const attn_tensor *key_lengths;   /* int64, (batch) */
    const attn_tensor *query_lengths; /* int64, (batch) */
    bool has_window;
    int64_t window_left, window_right; /* inclusive; ATTN_WINDOW_OPEN = no limit */
} attn_masks;

/* Masks resolved against the dimensions of one computation: made by attn_mask_resolve, read by everything after. */
typedef struct {
    size_t batch, heads, q_len, kv_len;
    bool causal, has_window;
    int64_t left, right;   /* of the window */
    int64_t base_offset;   /* without offset[] */
    const int64_t *offset; /* per batch item with offset_stride 0 or 1; NULL: base_offset alone */
    size_t offset_stride;
    const int64_t *kv_lengths, *q_lengths; /* NULL: none; the stride is 0 or 1 */
    size_t kv_lengths_stride, q_lengths_stride;
    const uint8_t *padding;
    ptrdiff_t padding_stride[2]; /* b, j */
    const uint8_t *attend;
    ptrdiff_t attend_stride[4]; /* b, h, i, j */
    const void *bias;
    ptrdiff_t bias_stride[4];
} attn_mask;

/* A run of keys [from, to); empty when from == to. */
typedef struct {
    size_t from, to;
} attn_span;

/*
 * Checks every mask against (batch, heads, q_len, kv_len) and the compute type, and resolves broadcasts into strides.
 * The tensors of masks must outlive *mask. Errors name the member ("/masks/attend"): ATTN_ERR_SHAPE when it does not
 * broadcast, ATTN_ERR_VALUE when a length is negative or too long, or a bias is NaN or +infinity.
 */
ATTN_MUST_CHECK attn_status attn_mask_resolve(const attn_masks *masks, size_t batch, size_t heads, size_t q_len,
                                              size_t kv_len, attn_dtype compute, attn_mask *mask, attn_error *err);

/* How far below the diagonal item b starts: key j stands at position j, query i at i + offset. */
int64_t attn_mask_offset(const attn_mask *mask, size_t b);
/* The keys that causal, window and lengths leave to query i of item b: others are never allowed, these may be. */
attn_span attn_mask_span(const attn_mask *mask, size_t b, size_t i);
/* Whether anything beyond the span decides (attend, padding or bias). */
bool attn_mask_has_lookup(const attn_mask *mask);
/* The whole rule for one position; slow and simple. */
bool attn_mask_allows(const attn_mask *mask, attn_dtype compute, size_t b, size_t h, size_t i, size_t j);

/* The same for keys first … first + count of one query at once: allow[c] is 1 or 0. Whether there is any 1. */
bool attn_mask_row(const attn_mask *mask, attn_dtype compute, size_t b, size_t h, size_t i, size_t first, size_t count,
                   uint8_t *allow);

#endif
