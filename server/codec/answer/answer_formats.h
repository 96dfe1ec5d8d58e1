/*
 * answer_formats.h: the forms of answers, a file each. Private to answer_media.c.
 */
#ifndef CODEC_ANSWER_ANSWER_FORMATS_H
#define CODEC_ANSWER_ANSWER_FORMATS_H

#include "codec/answer/answer_media.h"

void answer_write_safetensors(const struct answer *answer, const attn_runtime *runtime, struct chunks *out);
size_t answer_safetensors_bound(const struct answer *answer);

void answer_write_csv(const struct answer *answer, struct chunks *out);
size_t answer_csv_bound(const struct answer *answer);

attn_status answer_check_view(const struct answer *answer, attn_error *err);
void answer_write_view(const struct answer *answer, const attn_runtime *runtime, struct chunks *out);
size_t answer_view_bound(const struct answer *answer);

#endif
