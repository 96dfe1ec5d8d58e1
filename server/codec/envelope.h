/*
 * envelope.h: the JSON body of a request to the core's own request, and back out what frames an answer.
 *
 * The body is skimmed once: arrays whose first element is a number are lifted out (tensor_scan.h reads them), and the
 * small rest, the envelope, is parsed by jansson: strictly, with duplicates and NUL refused and depth limited. No
 * json_t leaves the envelope's own files.
 */
#ifndef CODEC_ENVELOPE_H
#define CODEC_ENVELOPE_H

#include "attn/arena.h"
#include "attn/plan.h"
#include "codec/tensor_write.h"

typedef enum { ENVELOPE_ATTENTION, ENVELOPE_LAYER } envelope_kind;

/* Labels for the tokens of one side, echoed in the answer. */
struct envelope_tokens {
    const char *json; /* the list as JSON text; NULL: none */
    size_t batch;     /* lists of labels; 0 when the request gave one flat list */
    size_t count;     /* labels in each list */
};

struct envelope {
    attn_request request; /* its tensors and selections live in the arena */
    tensor_form form;
    int digits;
    struct envelope_tokens query_tokens, key_tokens;
    bool training;    /* options.training */
    bool has_dropout; /* options.dropout was given, be it active or not */
    double dropout_p; /* as given; request.options.dropout is 0 unless training */
};

/* Once per process, before the first envelope_decode of any thread. */
void envelope_prepare(void);

/*
 * Decodes text[0 .. length) into *envelope; everything lives in arena, and text must outlive it too.
 * Every member of API.md is known: those that are not implemented yet are refused by name, and so are unknown ones.
 *   ATTN_ERR_SYNTAX with line and column; ATTN_ERR_FIELD, _SHAPE, _VALUE with the pointer; ATTN_ERR_TOO_LARGE when what
 *   is not a tensor is over ENVELOPE_TEXT_MAX; ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status envelope_decode(const char *text, size_t length, envelope_kind kind, attn_arena *arena,
                                            struct envelope *envelope, attn_error *err);

enum { ENVELOPE_TEXT_MAX = 1 << 20, ENVELOPE_DEPTH_MAX = 32 };

#endif
