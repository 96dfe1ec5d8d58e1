/*
 * rope.h: rotary position embeddings: queries and keys rotated by angles that grow with their positions.
 *
 * For pair i of the first dim features of a head, at position p:
 *
 *     y1 = x1 cos(p w_i) - x2 sin(p w_i)
 *     y2 = x2 cos(p w_i) + x1 sin(p w_i)          w_i = theta^(-2 i / dim), 0 <= i < dim / 2
 *
 * Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021, arXiv:2104.09864. Features from dim
 * on stay as they are. Angles, sines and cosines are computed in double, multiplied by the attention factor in double,
 * and rounded once to the compute type.
 *
 * Layouts, for h = dim / 2:
 *     half                 pair i is (x[i], x[i + h]), in and out           GPT-NeoX, Llama in transformers
 *     interleaved          pair i is (x[2 i], x[2 i + 1]), in and out       RoFormer, GPT-J, ONNX interleaved = 1
 *     interleaved_to_half  read as interleaved, written as half             DeepSeek in transformers
 *
 * Scaling, as transformers computes it in modeling_rope_utils.py; L is the largest position + 1, of queries and keys,
 * O original_max_position_embeddings, M max_position_embeddings (each stands in for the other where it is missing):
 *     linear        w_i / factor                                     kaiokendev, 2023
 *     dynamic       theta' = theta (factor max(L, M) / M - factor + 1)^(dim / (dim - 2))             NTK by length
 *     yarn          w_i / factor and w_i mixed by a ramp over i between the pairs that make beta_fast and beta_slow
 *                   turns in O positions (ends rounded outwards if truncate); cos and sin times attention_factor, by
 *                   default m(1), or m(mscale) / m(mscale_all_dim) with m(t) = 0.1 t ln factor + 1 for factor > 1,
 *                   else 1                                           Peng et al., 2023, arXiv:2309.00071
 *     longrope      w_i / short_factor[i], or long_factor[i] once L > O; attention_factor by default
 *                   sqrt(1 + ln factor / ln O) for factor > 1        Ding et al., 2024, arXiv:2402.13753
 *     llama3        w_i where the wavelength is below O / high_freq_factor, w_i / factor where it is above
 *                   O / low_freq_factor, between them the two mixed in proportion to O / wavelength   Llama 3.1
 *     proportional  the first floor(partial_rotary_factor dim / 2) pairs turn by w_i / factor, the rest not
 * factor is M / O for yarn and longrope when it is not given; proportional takes 1.
 */
#ifndef ATTN_ROPE_H
#define ATTN_ROPE_H

#include "attn/tensor.h"

ATTN_BEGIN_C

#define ATTN_ROPE_THETA 10000.0 /* by default */

typedef enum { ATTN_ROPE_NONE, ATTN_ROPE_HALF, ATTN_ROPE_INTERLEAVED, ATTN_ROPE_INTERLEAVED_TO_HALF } attn_rope_layout;

/* Kinds of scaling: code, name. */
#define ATTN_ROPE_TYPE_LIST(X)                                                                                         \
    X(ATTN_ROPE_DEFAULT, "default")                                                                                    \
    X(ATTN_ROPE_LINEAR, "linear")                                                                                      \
    X(ATTN_ROPE_DYNAMIC, "dynamic")                                                                                    \
    X(ATTN_ROPE_YARN, "yarn")                                                                                          \
    X(ATTN_ROPE_LONGROPE, "longrope")                                                                                  \
    X(ATTN_ROPE_LLAMA3, "llama3")                                                                                      \
    X(ATTN_ROPE_PROPORTIONAL, "proportional")

typedef enum {
#define ATTN_ROPE_TYPE_ENUM(code, name) code,
    ATTN_ROPE_TYPE_LIST(ATTN_ROPE_TYPE_ENUM)
#undef ATTN_ROPE_TYPE_ENUM
} attn_rope_type;

/* 0 and NULL: not given. A number that the type does not use is refused, except the two lengths. */
typedef struct {
    attn_rope_type type;
    double factor;
    double original_max_position_embeddings, max_position_embeddings;
    double attention_factor, beta_fast, beta_slow, mscale, mscale_all_dim; /* yarn; the first: longrope, too */
    bool keeps_fraction;                                                   /* yarn: truncate = false */
    const attn_tensor *short_factor, *long_factor;                         /* longrope: float64, (dim / 2) */
    double low_freq_factor, high_freq_factor;                              /* llama3 */
    double partial_rotary_factor; /* proportional; of other types dim is floor(d_k partial_rotary_factor) */
} attn_rope_scaling;

/* The positions of the tokens of one side; every tensor may be missing. */
typedef struct {
    const attn_tensor *positions; /* int64, (len), (1, len) or (batch, len) */
    /*
     * Both or neither; they replace theta and scaling. Of the compute type: (len, dim / 2), (1, len, dim / 2) or
     * (batch, len, dim / 2). With positions: a table (rows, dim / 2), of which the positions select rows.
     */
    const attn_tensor *cos, *sin;
} attn_rope_side;

/*
 * len is the number of queries, or of keys that come with the request: cached keys are rotated already. By default the
 * position of query i and of key i is past_len + i.
 */
typedef struct {
    attn_rope_layout layout; /* ATTN_ROPE_NONE: no rotation; the other members are ignored */
    double theta;            /* 0: ATTN_ROPE_THETA */
    size_t dim;              /* 0: all of d_k, or what cos has */
    attn_rope_scaling scaling;
    attn_rope_side query, key;
} attn_rope;

const char *attn_rope_type_name(attn_rope_type type);

/*
 * Writes w[0 .. dim / 2), scaled, for sequences of length positions; dim is at least 2 and even. Returns the factor of
 * cos and sin. attn_plan_make must accept the numbers of rope.
 */
double attn_rope_frequencies(const attn_rope *rope, size_t dim, double length, double *w);

ATTN_END_C

#endif
