/* envelope.h: a decoded request: the core's own request, and the options of its answer. envelope_decode.c makes it. */
#ifndef CODEC_REQUEST_ENVELOPE_H
#define CODEC_REQUEST_ENVELOPE_H

#include "attn/arena.h"
#include "attn/gradient.h"
#include "codec/tensor/index_list.h"
#include "codec/tensor/write.h"

/* What a request asks for: attention or a layer, the result or its gradients. */
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

/* A word of requests and answers, and the value of an enumeration that it stands for. A list ends with a row without word. */
struct choice {
    const char *word;
    unsigned value;
};

extern const struct choice envelope_norms[], envelope_norm_positions[], envelope_layouts[], envelope_ropes[],
    envelope_mechanisms[], envelope_update_rules[];
/* The word of a value that is in the list. */
const char *envelope_word(const struct choice *choices, unsigned value);

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

/* How maps are reduced before they are sent (reduce.h). */
struct envelope_reduction {
    bool has_pool, pool_mean;    /* pool_mean: mean instead of maximum */
    size_t pool_rows, pool_cols; /* 0: all rows or columns */
    size_t top_k;                /* 0: whole rows of weights */
    attn_dtype dtype;            /* the type of maps in binary form; ATTN_DTYPE_COUNT: the compute type */
    attn_tensor top_indices;     /* written by reduce_result */
};

/* The defaults of another system; options.c has them all. */
struct envelope_profile {
    const char *name;
    attn_align align;          /* of causal and windows */
    attn_layout layout;        /* of weights */
    double layer_eps, rms_eps; /* rms_eps 0: the machine epsilon of the compute type */
};

/* The cache that a request continues, and how many of its positions are used. */
struct envelope_cache {
    const char *name; /* NULL: none */
    bool has_length;
    size_t length;
};

struct envelope {
    const struct envelope_profile *profile; /* NULL: none */
    attn_request request;                   /* its tensors and selections live in the arena */
    struct index_lists lists;               /* the selections as given */
    tensor_form form;
    int digits;
    struct envelope_reduction reduction;
    envelope_view view;
    struct envelope_cache cache;
    struct envelope_tokens query_tokens, key_tokens;
    bool has_return;                                       /* options.return was given */
    bool training;                                         /* options.training */
    bool has_dropout;                                      /* options.dropout was given, active or not */
    double dropout_p;                                      /* as given; request.options.dropout is 0 unless training */
    bool has_feed_forward_norm, has_feed_forward_position; /* in options.feed_forward */
    const attn_tensor *grad_output;                        /* of gradients; NULL: not given */
    uint64_t of; /* of gradients: bit 1 << attn_gradient for each named in options.return; 0: none */
};

/*
 * The pointer of an option that shows maps in another form than whole maps ("/options/pool"). NULL: the request has
 * none. Gradients, pictures and the Open Inference Protocol have a form of their own, and refuse such an option.
 */
const char *envelope_form_option(const struct envelope *envelope);

/*
 * The core names a member as a C program writes it ("options.norm_eps"); a client knows it by its JSON pointer
 * ("/options/norm/eps"). Writes the pointer of the member that the core calls path. Returns pointer.
 */
enum { ENVELOPE_POINTER_MAX = 160 }; /* bytes, with the NUL */
const char *envelope_pointer(const char *path, char pointer[ENVELOPE_POINTER_MAX]);

/* The plan of a request, and that of its gradients. Errors have pointers, and JSON's names of members. */
ATTN_MUST_CHECK attn_status envelope_plan(const struct envelope *envelope, attn_plan *plan, attn_error *err);
ATTN_MUST_CHECK attn_status envelope_gradient_plan(const struct envelope *envelope,
                                                   const attn_gradient_request *request, attn_gradient_plan *plan,
                                                   attn_error *err);

/* The eps of a norm whose options give none; profile may be NULL. */
double envelope_default_eps(const struct envelope_profile *profile, attn_norm_type type, attn_dtype compute);

/* The word for the compute type of options. */
const char *envelope_compute_name(attn_dtype compute, bool bf16_products);

/* Fills an envelope with the defaults of every request. */
void envelope_set_defaults(struct envelope *envelope, envelope_kind kind);

/* A tensor in bytes beside the JSON text. */
struct envelope_attachment {
    const char *path;   /* "inputs.query", "weights.query.weight", "masks.attend": members joined by dots; UTF-8 */
    attn_tensor tensor; /* contiguous, little-endian, of any type; data may be unaligned */
};

/* JSON text and the tensors beside it. It is a request, or a kept layer without the inputs of its requests. */
struct envelope_source {
    const char *text; /* may be empty when there are attachments */
    size_t length;
    const struct envelope_attachment *attachments;
    size_t count;     /* at most ENVELOPE_ATTACHMENTS_MAX, unless is_of_model */
    bool is_of_model; /* a layer of a whole model: the text may have members that no request can have */
    const char *(*lacking)(const char *path); /* the members that its protocol has no place for (node.h); NULL: none */
};

enum { ENVELOPE_ATTACHMENTS_MAX = 256 };

/*
 * ---- envelope_decode.c ----
 *
 * Decodes the body of a request into an envelope.
 *
 * The body is skimmed once: arrays whose first element is a number are lifted out, and tensor/scan.h reads them. The
 * small rest is the envelope text. jansson parses it strictly: duplicates and NUL are refused, and depth is limited.
 */

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
 * the layer names one. kind is ENVELOPE_LAYER or ENVELOPE_LAYER_GRADIENTS.
 */
ATTN_MUST_CHECK attn_status envelope_decode_base(const struct envelope_source *layer, envelope_kind kind,
                                                 attn_dtype compute, bool shapes_only, attn_arena *arena,
                                                 struct envelope *envelope, attn_error *err);

#endif
