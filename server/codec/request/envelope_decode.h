/*
 * envelope_decode.h: the body of a request to an envelope.
 *
 * The body is skimmed once: arrays whose first element is a number are lifted out (tensor_scan.h reads them), and the
 * small rest, the envelope, is parsed by jansson: strictly, with duplicates and NUL refused and depth limited.
 */
#ifndef CODEC_REQUEST_ENVELOPE_DECODE_H
#define CODEC_REQUEST_ENVELOPE_DECODE_H

#include "codec/request/envelope.h"

/* Once per process, before the first envelope_decode of any thread. */
void envelope_prepare(void);

/*
 * Decodes text[0 .. length) into *envelope; everything lives in arena, and text must outlive it too.
 * Members that are not known are refused by name, with those that are.
 *   ATTN_ERR_SYNTAX with line and column; ATTN_ERR_FIELD, _SHAPE, _VALUE with the pointer; ATTN_ERR_TOO_LARGE when what
 *   is not a tensor is over JSON_TEXT_MAX; ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status envelope_decode(const char *text, size_t length, envelope_kind kind, attn_arena *arena,
                                            struct envelope *envelope, attn_error *err);

/*
 * The same for a request whose tensors come, in part or all, as bytes: each attachment takes the place that its path
 * names, by the same tables and checks, and its pointer in errors is that of the member ("/inputs/query"). A tensor of
 * the type that is needed, aligned to its elements, is used where it lies and must outlive arena; any other is
 * converted into arena by attn_convert, which loses nothing silently.
 *   ATTN_ERR_FIELD     also: a member given both ways, an unknown path, bytes where no tensor is meant
 *   ATTN_ERR_VALUE     also: a number that the needed type cannot hold, bool other than 0 and 1
 *   ATTN_ERR_TOO_LARGE also: more than ENVELOPE_ATTACHMENTS_MAX attachments
 */
ATTN_MUST_CHECK attn_status envelope_decode_attached(const struct envelope_source *request, envelope_kind kind,
                                                     attn_arena *arena, struct envelope *envelope, attn_error *err);

/*
 * The same for a safetensors file: its tensors are the attachments, the string "request" of its metadata, which may
 * be absent, is the text. The metadata "format", which others write, is passed over; any other is refused.
 */
ATTN_MUST_CHECK attn_status envelope_decode_safetensors(const char *body, size_t bytes, envelope_kind kind,
                                                        attn_arena *arena, struct envelope *envelope, attn_error *err);
/* A safetensors file as a source: views of the file, names in the arena. */
ATTN_MUST_CHECK attn_status envelope_open_safetensors(const char *body, size_t bytes, attn_arena *arena,
                                                      struct envelope_source *source, attn_error *err);

/*
 * A request to a kept layer: what envelope_decode_attached decodes, but weights, options and masks are those of layer,
 * except the members of options and masks that the request has itself. The request may have no weights.
 */
ATTN_MUST_CHECK attn_status envelope_decode_over(const struct envelope_source *layer,
                                                 const struct envelope_source *request, attn_arena *arena,
                                                 struct envelope *envelope, attn_error *err);
/*
 * The kept layer alone, to be looked at: without inputs. Masks that belong to a request are refused. With shapes_only,
 * tensors of weights are not converted and their data is not read: what lies there may be of another type.
 */
ATTN_MUST_CHECK attn_status envelope_decode_base(const struct envelope_source *layer, bool shapes_only,
                                                 attn_arena *arena, struct envelope *envelope, attn_error *err);

#endif
