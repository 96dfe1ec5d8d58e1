/*
 * safetensors_answer.h: writes a result as a safetensors file. answer_media.h says what it contains.
 */
#ifndef CODEC_ANSWER_SAFETENSORS_ANSWER_H
#define CODEC_ANSWER_SAFETENSORS_ANSWER_H

#include "codec/answer/answer.h"

/* Appends the file. Without memory out->is_ok becomes false. out may refer to data of the result. */
void answer_write_safetensors(const struct answer *answer, const attn_runtime *runtime, struct chunks *out);
/* The longest file, in bytes; SIZE_MAX when that exceeds size_t. */
size_t answer_safetensors_bound(const struct answer *answer);

#endif
