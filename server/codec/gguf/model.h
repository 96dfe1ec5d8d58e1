/*
 * model.h: a model in a GGUF file, in the terms of a folder of transformers: its configuration, its tensors under their
 * names there, and its tokenizer.json. So the rest of the server reads one kind of model.
 *
 * kinds.json has the names: of the kinds of models, of the members of their configurations, of tensors, and of the ways
 * in which tokenizers split texts.
 */
#ifndef CODEC_GGUF_MODEL_H
#define CODEC_GGUF_MODEL_H

#include "codec/checkpoint/find.h"
#include "codec/gguf/gguf.h"
#include "codec/json/tree.h"

/* The most quantised numbers of a file that are widened to float32. Those of larger files become float16. */
enum { GGUF_WIDE_MAX = 1 << 28 };

/*
 * Fills in the checkpoint, which lives in arena. Plain tensors are views of the file, and quantised ones are widened
 * into arena. runtime does the work.
 *   ATTN_ERR_VALUE      attnd does not have the kind; metadata is missing or is not what it should be; a number does not
 *                       fit float16
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status gguf_describe(const struct gguf *file, const attn_runtime *runtime, attn_arena *arena,
                                          struct checkpoint *checkpoint, attn_error *err);

/*
 * Writes the tokenizer.json of the file in arena. scratch lends memory. text->at NULL: the file has no tokenizer.
 *   ATTN_ERR_VALUE      the metadata of the tokenizer is not what it should be, or attnd does not have it
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status gguf_tokenizer(const struct gguf *file, attn_arena *arena, attn_arena *scratch,
                                           struct checkpoint_text *text, attn_error *err);

/* kinds.json as a tree in arena; release it by json_decref. NULL: no memory. */
json_t *gguf_kinds(attn_arena *arena);

#endif
