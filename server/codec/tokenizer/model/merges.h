/* merges.h: the merges of BPE: which pair of tokens becomes which, and how early. */
#ifndef CODEC_TOKENIZER_MODEL_MERGES_H
#define CODEC_TOKENIZER_MODEL_MERGES_H

#include "codec/tokenizer/model/step_kinds.h"

struct merge {
    uint64_t pair; /* left << 32 | right */
    uint32_t rank; /* the place in the list */
    uint32_t id;   /* VOCABULARY_NONE: an empty slot */
};

struct merges {
    struct merge *slots; /* a hash table with open addressing */
    uint32_t count;      /* of slots */
};

/* The memory that the list of the model takes. */
size_t merges_bytes(const struct loading *loading);
/*
 * Loads the list of a model: ["a", "b"] or "a b" each. The token that a pair becomes is left + right, without the prefix
 * of right. All three must be in the vocabulary.
 */
attn_status merges_load(struct loading *loading, const struct node *list, size_t prefix_bytes, struct merges *merges);
/* NULL when the pair has no merge. */
const struct merge *merges_find(const struct merges *merges, uint32_t left, uint32_t right);

#endif
