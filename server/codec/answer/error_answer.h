/*
 * error_answer.h: writes an error as the JSON text of an answer.
 */
#ifndef CODEC_ANSWER_ERROR_ANSWER_H
#define CODEC_ANSWER_ERROR_ANSWER_H

#include "attn/status.h"
#include "codec/bytes/chunks.h"

/* {"error": …, "type": "/problems/shape", "title": …, "status": …, "detail": …, "pointer": …, …} */
void answer_write_error(const attn_error *error, const char *type, const char *title, int http_status,
                        const char *request_id, struct chunks *out);

#endif
