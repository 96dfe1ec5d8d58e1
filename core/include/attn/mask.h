/*
 * mask.h: which query may attend to which key.
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
 *     scores          scores[b][h][i][j] is not -infinity; only when a request starts with them (plan.h)
 *     documents       documents_query[b][i] == documents_key[b][j]
 *     blocks          see attn_blocks
 *
 * Causal, window, lengths, chunks, prefixes, and documents in ascending order leave each query one contiguous range of
 * keys (a span), which a formula gives. All other masks are looked up pair by pair.
 */
#ifndef ATTN_MASK_H
#define ATTN_MASK_H

#include "attn/tensor.h"

ATTN_BEGIN_C

/* Where query 0 stands: at kv_len - q_len, at 0, or behind the cache, at past_len (which attn_plan_make adds). */
typedef enum { ATTN_ALIGN_BOTTOM_RIGHT, ATTN_ALIGN_TOP_LEFT, ATTN_ALIGN_PAST } attn_align;

#define ATTN_WINDOW_OPEN INT64_MAX

typedef enum {
    ATTN_BLOCKS_NONE,
    ATTN_BLOCKS_MATRIX,
    ATTN_BLOCKS_STRIDED,
    ATTN_BLOCKS_LONGFORMER,
    ATTN_BLOCKS_BIGBIRD,
    ATTN_BLOCKS_CHUNKED,
    ATTN_BLOCKS_PREFIX
} attn_blocks_kind;

/*
 * Block-sparse attention. It takes no memory of size q_len * kv_len, and hidden tiles are skipped.
 *
 * A matrix counts both sides from 0: query i and key j belong to attend[i / q_size][j / kv_size]. The patterns count in
 * positions, like causal: key j stands at j, query i at p = i + offset[b]; with P = floor(p / size), J = floor(j /
 * size)
 *
 *     strided      |P - J| <= window, or P - J a multiple of stride      Child et al., "Sparse Transformers" (2019)
 *     longformer   |P - J| <= window, or p or j among global_tokens      Beltagy et al., "Longformer" (2020)
 *     bigbird      |P - J| <= window, or p or j among global_tokens or in the first or last global_blocks blocks of the
 *                  keys, or J one of random_blocks drawn for the head and P among those that are left
 *                                                                        Zaheer et al., "Big Bird" (2020)
 *     chunked      P == J
 *     prefix       j < prefix[b] or j <= p: causal behind a prefix that all see. Beside masks.causal it changes nothing
 *
 * The draws of bigbird are the same for the same seed, whatever the batch and the threads: draw t of head h and block P
 * is word 0 of Philox4x32-10 (key seed, counter (256 P + t, h)), by Floyd's algorithm for samples without repetition.
 */
typedef struct {
    attn_blocks_kind kind;
    size_t size, kv_size;      /* tokens of a block, 1 to ATTN_BLOCK_MAX; kv_size belongs to the matrix alone */
    const attn_tensor *attend; /* bool or uint8, (q_blocks, kv_blocks) = lengths / sizes rounded up; heads and batch may
                                  stand in front, each whole or 1 */
    size_t window, stride, global_blocks, random_blocks; /* to ATTN_BLOCK_MAX; random to ATTN_BLOCKS_RANDOM_MAX */
    const attn_tensor *global_tokens;                    /* int64, (n), ascending, from 0 to kv_len - 1; NULL: none */
    const attn_tensor *prefix;                           /* int64, (), (1) or (batch), 0 to kv_len */
    uint64_t seed;
} attn_blocks;

/* A bias this low is probably meant to hide its key. But only -infinity hides a key in every row. */
enum { ATTN_BIAS_AS_MASK = -10000 };

enum { ATTN_BLOCK_MAX = 1 << 30, ATTN_BLOCKS_RANDOM_MAX = 64 };

/* The masks as a caller gives them, with data. NULL: the mask is absent. A zero-initialised struct has no masks. */
typedef struct {
    bool causal;
    attn_align align;                 /* base of the offset */
    const attn_tensor *offset;        /* int64, (), (1) or (batch): added to the base; alone, the base is 0 */
    bool align_given;                 /* whether the request names align; if not, an offset counts from 0 */
    const attn_tensor *attend;        /* bool or uint8; broadcast from the right to (batch, heads, q_len, kv_len) */
    const attn_tensor *bias;          /* the compute type, finite or -infinity; broadcast likewise */
    const attn_tensor *padding;       /* bool or uint8, (batch, kv_len); also (kv_len) when batch is 1 */
    const attn_tensor *key_lengths;   /* int64, (batch) */
    const attn_tensor *query_lengths; /* int64, (batch) */
    bool has_window;
    int64_t window_left, window_right; /* inclusive; ATTN_WINDOW_OPEN = no limit */
    const attn_tensor *documents_query,
        *documents_key; /* int64, (q_len), (kv_len) or with batch in front; or neither */
    attn_blocks blocks;
} attn_masks;

/* What the masks of a plan come to, which attn_plan_span and attn_plan_allows (plan.h) tell in full. */
typedef struct {
    bool has_positions;  /* causal, a window or a pattern of blocks */
    bool has_lookup;     /* besides the span: attend, padding, bias, scores, unsorted documents or blocks */
    size_t bias_as_mask; /* finite numbers of bias up to ATTN_BIAS_AS_MASK */
    double bias_lowest;  /* the lowest finite one */
    union {
        void *alignment;
        unsigned char bytes[512];
    } resolved; /* for the library alone */
} attn_mask_facts;

/* A range of keys [from, to); empty when from == to. */
typedef struct {
    size_t from, to;
} attn_span;

ATTN_END_C

#endif
