/* postprocess.h: the post-processor: which tokens are added around the texts, and how offsets are trimmed. */
#ifndef CODEC_TOKENIZER_POSTPROCESS_H
#define CODEC_TOKENIZER_POSTPROCESS_H

#include "codec/tokenizer/encoding.h"
#include "codec/tokenizer/model/step_kinds.h"

enum { PART_TEXT, PART_PAIR, PART_SPECIAL };

/* A text or an added token. */
struct template_part {
    uint8_t what;
    uint32_t id; /* of the added token */
    uint32_t type_id;
};

struct template
{
    struct template_part *parts;
    size_t count;
    size_t added; /* parts that are added tokens */
};

struct trim {
    bool add_prefix_space;
};

struct postprocessor {
    struct template single, pair;
    struct trim *trims;
    size_t trim_count;
};

/* post_processor may have no JSON. */
attn_status postprocess_load(struct loading *loading, const struct node *node, struct postprocessor *postprocessor);
/* Trims spaces off the offsets of the tokens of a draft. */
void postprocess_trim(const struct postprocessor *postprocessor, struct draft *draft, struct tokenizer_token *tokens,
                      size_t count);

#endif
