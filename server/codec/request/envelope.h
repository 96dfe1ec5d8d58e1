/* envelope.h: a decoded request: the core's own request, and the options of its answer. envelope_decode.h makes it. */
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

#endif
