/*
 * envelope_decode.h: decodes the body of a request into an envelope.
 *
 * The body is skimmed once: arrays whose first element is a number are lifted out, and tensor/scan.h reads them. The
 * small rest is the envelope text. jansson parses it strictly: duplicates and NUL are refused, and depth is limited.
 */
#ifndef CODEC_REQUEST_ENVELOPE_DECODE_H
#define CODEC_REQUEST_ENVELOPE_DECODE_H

#include "codec/request/envelope.h"

/* Once per process, before the first envelope_decode of any thread. */
void envelope_prepare(void);

/*
 * Decodes text[0 .. length) into *envelope. Everything lives in arena, and text must outlive it, too. An unknown member
 * is refused; the message lists the known ones.
 *   ATTN_ERR_SYNTAX                 with line and column
 *   ATTN_ERR_FIELD, _SHAPE, _VALUE  with the pointer
 *   ATTN_ERR_TOO_LARGE              the text without its tensors is longer than JSON_TEXT_MAX
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status envelope_decode(const char *text, size_t length, envelope_kind kind, attn_arena *arena,
                                            struct envelope *envelope, attn_error *err);

/*
 * The same for a request with tensors beside its text. Each attachment takes the place that its path names; the same
 * tables and checks hold, and errors have the pointer of the member ("/inputs/query"). A tensor that has the needed
 * type and is aligned to its elements is used in place, and must outlive arena. Any other tensor is converted into
 * arena by attn_convert, which refuses numbers that the type cannot hold.
 *   ATTN_ERR_FIELD     also: a member given both ways, an unknown path, bytes where no tensor is meant
 *   ATTN_ERR_VALUE     also: a number that the needed type cannot hold, bool other than 0 and 1
 *   ATTN_ERR_TOO_LARGE also: more than ENVELOPE_ATTACHMENTS_MAX attachments
 */
ATTN_MUST_CHECK attn_status envelope_decode_attached(const struct envelope_source *request, envelope_kind kind,
                                                     attn_arena *arena, struct envelope *envelope, attn_error *err);

/*
 * The same for a safetensors file: its tensors are the attachments, the string "request" of its metadata, which may
 * be absent, is the text. The metadata "format", which other programs write, is ignored; any other is refused.
 */
ATTN_MUST_CHECK attn_status envelope_decode_safetensors(const char *body, size_t bytes, envelope_kind kind,
                                                        attn_arena *arena, struct envelope *envelope, attn_error *err);
/* Opens a safetensors file as a source. Its tensors are views of the file; their names live in the arena. */
ATTN_MUST_CHECK attn_status envelope_open_safetensors(const char *body, size_t bytes, attn_arena *arena,
                                                      struct envelope_source *source, attn_error *err);

/*
 * Decodes a request to a kept layer, as envelope_decode_attached does. Weights, options and masks come from layer, but
 * members of options and masks in the request replace those of layer. The request may have no weights. kind is
 * ENVELOPE_LAYER or ENVELOPE_LAYER_GRADIENTS.
 */
ATTN_MUST_CHECK attn_status envelope_decode_over(const struct envelope_source *layer,
                                                 const struct envelope_source *request, envelope_kind kind,
                                                 attn_arena *arena, struct envelope *envelope, attn_error *err);
/*
 * The kept layer alone, without inputs. Masks that belong to a request are refused. With shapes_only, weights are
 * neither read nor converted: the views have the compute type, whatever type the data has. compute is the type unless
 * the layer names one.
 */
ATTN_MUST_CHECK attn_status envelope_decode_base(const struct envelope_source *layer, attn_dtype compute,
                                                 bool shapes_only, attn_arena *arena, struct envelope *envelope,
                                                 attn_error *err);

#endif
