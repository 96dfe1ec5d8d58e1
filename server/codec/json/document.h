/*
 * document.h: skims and parses the JSON body of a request. Private to the decoders of requests, because it uses json_t.
 */
#ifndef CODEC_JSON_DOCUMENT_H
#define CODEC_JSON_DOCUMENT_H

#include <jansson.h>
#include <stddef.h>

#include "base/text.h"
#include "codec/json/skim.h"

struct document {
    struct skim skim; /* in the arena */
    json_t *tree;     /* released by document_close */
};

/*
 * Reads text[0 .. length), which must outlive the document. Close *document whatever the outcome.
 *   ATTN_ERR_SYNTAX     with line and column
 *   ATTN_ERR_FIELD      a member is given twice
 *   ATTN_ERR_VALUE      a number beyond 64 bits
 *   ATTN_ERR_TOO_LARGE  the text without its tensors is longer than JSON_TEXT_MAX
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status document_read(const char *text, size_t length, attn_arena *arena, struct document *document,
                                          attn_error *err);
void document_close(struct document *document);

/*
 * Writes the pointer of the value at text[offset] to to: "/a/0/b". The result is always terminated, and is cut when it
 * does not fit. text[0 .. offset) must be the beginning of valid JSON. Escapes in names stay unchanged. The pointer is
 * empty when the value is the root or lies too deep.
 */
void json_path_at(const char *text, size_t offset, char *to, size_t size);

/*
 * Appends a part of a pointer to to[0 .. size), of which used bytes are taken: "/" with the name, or with the index if
 * name.at is NULL. Returns how many bytes are used then. Text that does not fit is dropped. It is made without printf,
 * because every tensor that is read makes its pointer.
 */
size_t json_pointer_add(char *to, size_t size, size_t used, struct text_span name, size_t index);

#endif
