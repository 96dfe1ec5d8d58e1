/*
 * csv.h: writes a result as CSV. answer_media.h describes the layout.
 */
#ifndef CODEC_ANSWER_CSV_H
#define CODEC_ANSWER_CSV_H

#include "codec/answer/answer.h"

/* Appends the text. Without memory out->is_ok becomes false. */
void answer_write_csv(const struct answer *answer, struct chunks *out);
/* The longest text, in bytes; SIZE_MAX when that exceeds size_t. */
size_t answer_csv_bound(const struct answer *answer);

#endif
