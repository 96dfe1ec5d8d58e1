/*
 * envelope_parts.h: the sections of a request, a file each. Private to the envelope.
 */
#ifndef CODEC_ENVELOPE_PARTS_H
#define CODEC_ENVELOPE_PARTS_H

#include "codec/member.h"

/* envelope_tensor.c: each *to is a const attn_tensor *, in the arena. */
decode_function decode_tensor;        /* numbers, in the compute type */
decode_function decode_tensor_or_one; /* likewise, or a single number, which has rank 0 */
decode_function decode_flags;         /* bool */
decode_function decode_flags_or_one;
decode_function decode_counts; /* int64 */
decode_function decode_counts_or_one;
decode_function decode_reals; /* float64 */

decode_function decode_inputs;    /* attn_inputs */
decode_function decode_weights;   /* attn_weights */
decode_function decode_masks;     /* attn_masks */
decode_function decode_options;   /* struct envelope */
decode_function decode_rope;      /* attn_rope */
decode_function decode_mechanism; /* attn_mechanism */
decode_function decode_tokens;    /* struct envelope: its inputs are decoded, the labels are counted against them */

extern const struct member_table inputs_table, weights_table, masks_table, options_table;

#endif
