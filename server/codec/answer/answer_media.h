/*
 * answer_media.h: writes a result in any media type but pictures: JSON, a view of options.view, safetensors, CSV.
 *
 *   safetensors  Every output is a tensor with the name of its step. top_k gives attention.indices and
 *                attention.weights. __metadata__ has "effective", "diagnostics" and "tokens", as JSON text.
 *   CSV          RFC 4180 with a header line. A single output that is a matrix (its leading dimensions are 1) is
 *                written as a matrix: column labels in the first line, row labels in the first column. Any other answer
 *                has one line per number: step,batch,head,query,key,feature,value. A field is empty when the step does
 *                not have that dimension. With tokens in the request, maps also have the columns query_token and
 *                key_token. Pooled rows and columns are numbered. A masked score is empty. A label that a spreadsheet
 *                might take for a formula gets an apostrophe before it.
 *   bertviz, circuitsvis, inspectus   the input of these programs, for one batch item
 *   rows         a list of objects, one per cell of the attention map, as Vega-Lite loads it
 */
#ifndef CODEC_ANSWER_ANSWER_MEDIA_H
#define CODEC_ANSWER_ANSWER_MEDIA_H

#include "codec/answer/answer.h"
#include "codec/bytes/media.h"

/*
 * Checks, before anything runs, that the request can be answered in this media type.
 *   ATTN_ERR_FIELD a view in another type than JSON
 *   ATTN_ERR_SHAPE a view that cannot show these dimensions
 */
ATTN_MUST_CHECK attn_status answer_check(const struct answer *answer, enum media media, attn_error *err);
/* The longest answer, in bytes; SIZE_MAX when that exceeds size_t. */
size_t answer_bound(const struct answer *answer, enum media media);
/* Appends the answer. Without memory out->is_ok becomes false. out may refer to data of the result. */
void answer_write(const struct answer *answer, enum media media, const attn_runtime *runtime, struct chunks *out);

#endif
