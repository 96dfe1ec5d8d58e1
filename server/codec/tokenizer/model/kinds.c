/* kinds.c: what the models share. */
#include "codec/tokenizer/model/kinds.h"

void model_add_token(struct model_run *run, struct model_token token)
{
    void *tokens = run->tokens;
    if (!draft_grow(run->draft, &tokens, &run->capacity, run->count + 1, sizeof token))
        return;
    run->tokens = tokens;
    run->tokens[run->count++] = token;
}

uint32_t model_find_token(const struct loading *loading, struct text_span text)
{
    return text.at != NULL ? vocabulary_find(loading->vocabulary, text.at, text.length) : VOCABULARY_NONE;
}

void model_find_bytes(const struct vocabulary *vocabulary, struct model_bytes *bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    char text[] = "<0x00>";
    for (unsigned byte = 0; byte < 256; byte++) {
        text[3] = digits[byte >> 4];
        text[4] = digits[byte & 15];
        bytes->ids[byte] = vocabulary_find(vocabulary, text, sizeof text - 1);
    }
}

bool model_has_bytes(const struct model_bytes *bytes, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes->ids[(unsigned char)text[i]] == VOCABULARY_NONE)
            return false;
    return true;
}

void model_fail_unknown(struct model_run *run)
{
    draft_fail(run->draft, ATTN_ERR_VALUE,
               "the text holds characters that the tokenizer has no token for, and it has no unknown token");
}
