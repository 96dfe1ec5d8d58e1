/* check_words.c: members that hold one value of an enumeration. */
#include <string.h>

#include "request/checks.h"

/* Each member: its offset, its path and the last value of its enumeration. */
#define WORD(member, last)                                                                                             \
    {                                                                                                                  \
        offsetof(attn_request, member), #member, last                                                                  \
    }
static const struct {
    size_t at;
    const char *field;
    unsigned last;
} words[] = {
    WORD(weights.layout, ATTN_LAYOUT_OUT_IN),
    WORD(weights.qkv_order, ATTN_QKV_PER_GROUP),
    WORD(masks.align, ATTN_ALIGN_PAST),
    WORD(masks.blocks.kind, ATTN_BLOCKS_PREFIX),
    WORD(options.norm, ATTN_NORM_L2),
    WORD(options.norm_position, ATTN_NORM_PRE),
    WORD(options.qk_norm, ATTN_NORM_L2),
    WORD(options.feed_forward.norm, ATTN_NORM_L2),
    WORD(options.feed_forward.position, ATTN_NORM_PRE),
    WORD(options.branch_norm, ATTN_NORM_L2),
    WORD(options.rope.layout, ATTN_ROPE_INTERLEAVED_TO_HALF),
    WORD(options.rope.scaling.type, ATTN_ROPE_PROPORTIONAL),
    WORD(options.mechanism.type, ATTN_PERFORMER),
};
#undef WORD

bool attn_words_check(const attn_request *request, struct attn_check *check)
{
    for (size_t n = 0; n < sizeof words / sizeof *words; n++) {
        unsigned value;
        memcpy(&value, (const char *)request + words[n].at, sizeof value);
        if (value > words[n].last)
            return attn_refuse(check, ATTN_ERR_VALUE, words[n].field, "~ is %u; its values are 0 to %u", value,
                               words[n].last);
    }
    return true;
}
