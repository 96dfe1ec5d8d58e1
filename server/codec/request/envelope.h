/*
 * envelope.h: the JSON body of a request to the core's own request, and back out what frames an answer.
 *
 * The body is skimmed once: arrays whose first element is a number are lifted out (tensor_scan.h reads them), and the
 * small rest, the envelope, is parsed by jansson: strictly, with duplicates and NUL refused and depth limited. No
 * json_t leaves the envelope's own files.
 */
#ifndef CODEC_REQUEST_ENVELOPE_H
#define CODEC_REQUEST_ENVELOPE_H

#include "attn/arena.h"
#include "attn/plan.h"
#include "codec/tensor/form.h"

/* What a request is for: attention or a layer, and its gradients or itself. */
typedef enum {
    ENVELOPE_ATTENTION,
    ENVELOPE_LAYER,
    ENVELOPE_ATTENTION_GRADIENTS,
    ENVELOPE_LAYER_GRADIENTS
} envelope_kind;

static inline bool envelope_is_layer(envelope_kind kind)
{
    return kind == ENVELOPE_LAYER || kind == ENVELOPE_LAYER_GRADIENTS;
}

static inline bool envelope_is_gradients(envelope_kind kind)
{
    return kind == ENVELOPE_ATTENTION_GRADIENTS || kind == ENVELOPE_LAYER_GRADIENTS;
}

/* Labels for the tokens of one side, echoed in the answer. */
struct envelope_tokens {
    const char *json; /* the list as JSON text; NULL: none */
    size_t batch;     /* lists of labels; 0 when the request gave one flat list */
    size_t count;     /* labels in each list */
};

typedef enum {
    ENVELOPE_VIEW_NONE,
    ENVELOPE_VIEW_BERTVIZ,
    ENVELOPE_VIEW_CIRCUITSVIS,
    ENVELOPE_VIEW_INSPECTUS,
    ENVELOPE_VIEW_ROWS
} envelope_view;

/* What is shown instead of whole maps; reduce.h does it. */
struct envelope_reduction {
    bool has_pool, pool_mean;    /* pool_mean: the mean rather than the maximum */
    size_t pool_rows, pool_cols; /* 0: as many as there are */
    size_t top_k;                /* 0: whole rows of weights */
    attn_dtype dtype;            /* of the maps as bytes; ATTN_DTYPE_COUNT: as computed */
    attn_tensor top_indices;     /* written by reduce_result */
};

/* The defaults of another system; profile.c has them all. */
struct envelope_profile {
    const char *name;
    attn_align align;          /* of causal and windows */
    attn_layout layout;        /* of weights */
    double layer_eps, rms_eps; /* rms_eps 0: the machine epsilon of the compute type */
};

/* Keys and values that the server keeps, and from how many positions the request goes on. */
struct envelope_cache {
    const char *name; /* NULL: none */
    bool has_length;
    size_t length;
};

struct envelope {
    const struct envelope_profile *profile; /* NULL: none */
    attn_request request;                   /* its tensors and selections live in the arena */
    tensor_form form;
    int digits;
    struct envelope_reduction reduction;
    envelope_view view;
    struct envelope_cache cache;
    struct envelope_tokens query_tokens, key_tokens;
    bool training;                  /* options.training */
    bool has_dropout;               /* options.dropout was given, be it active or not */
    double dropout_p;               /* as given; request.options.dropout is 0 unless training */
    const attn_tensor *grad_output; /* of gradients; NULL: not given */
    uint32_t of;                    /* of gradients: bit 1 << attn_gradient for each named in options.return; 0: none */
};

/* The eps of a norm that does not say its own; profile may be NULL. */
double envelope_default_eps(const struct envelope_profile *profile, attn_norm_type type, attn_dtype compute);

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

/* A tensor of a request that stands beside its JSON text, as bytes. */
struct envelope_attachment {
    const char *path;   /* "inputs.query", "weights.query.weight", "masks.attend": members joined by dots; UTF-8 */
    attn_tensor tensor; /* contiguous, little-endian, of any type; data may be unaligned */
};

/*
 * The same for a request whose tensors come, in part or all, as bytes: each attachment takes the place that its path
 * names, by the same tables and checks, and its pointer in errors is that of the member ("/inputs/query"). text may be
 * empty when there are attachments. A tensor of the type that is needed, aligned to its elements, is used where it lies
 * and must outlive arena; any other is converted into arena by attn_convert, which loses nothing silently.
 *   ATTN_ERR_FIELD     also: a member given both ways, an unknown path, bytes where no tensor is meant
 *   ATTN_ERR_VALUE     also: a number that the needed type cannot hold, bool other than 0 and 1
 *   ATTN_ERR_TOO_LARGE also: more than ENVELOPE_ATTACHMENTS_MAX attachments
 */
ATTN_MUST_CHECK attn_status envelope_decode_attached(const char *text, size_t length,
                                                     const struct envelope_attachment *attachments, size_t count,
                                                     envelope_kind kind, attn_arena *arena, struct envelope *envelope,
                                                     attn_error *err);

/*
 * The same for a safetensors file: its tensors are the attachments, the string "request" of its metadata, which may
 * be absent, is the text. The metadata "format", which others write, is passed over; any other is refused.
 */
ATTN_MUST_CHECK attn_status envelope_decode_safetensors(const char *body, size_t bytes, envelope_kind kind,
                                                        attn_arena *arena, struct envelope *envelope, attn_error *err);

/* What a kept layer brings to each of its requests: its tensors by path, the rest of it as JSON. */
struct envelope_base {
    const char *text; /* "weights", "options" and "masks" without the tensors; may be empty */
    size_t length;
    const struct envelope_attachment *attachments; /* "weights.query.weight" */
    size_t count;
};

/*
 * A request to a kept layer: what envelope_decode_attached decodes, but weights, options and masks are those of base,
 * except the members of options and masks that the request has itself. The request may have no weights.
 */
ATTN_MUST_CHECK attn_status envelope_decode_over(const struct envelope_base *base, const char *text, size_t length,
                                                 const struct envelope_attachment *attachments, size_t count,
                                                 attn_arena *arena, struct envelope *envelope, attn_error *err);
/*
 * The kept layer alone, to be looked at: without inputs. Masks that belong to a request are refused. With shapes_only,
 * tensors of weights are not converted and their data is not read: what lies there may be of another type.
 */
ATTN_MUST_CHECK attn_status envelope_decode_base(const struct envelope_base *base, bool shapes_only, attn_arena *arena,
                                                 struct envelope *envelope, attn_error *err);
/* A safetensors file as a base, or as what a request is made of: views of the file, names in the arena. */
ATTN_MUST_CHECK attn_status envelope_open_safetensors(const char *body, size_t bytes, attn_arena *arena,
                                                      struct envelope_base *base, attn_error *err);

enum { ENVELOPE_ATTACHMENTS_MAX = 256 };

#endif
