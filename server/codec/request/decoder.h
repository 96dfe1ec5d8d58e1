/* decoder.h: the decoders of a request's sections, one file each. Private to the decoders of requests. */
#ifndef CODEC_REQUEST_DECODER_H
#define CODEC_REQUEST_DECODER_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/json/document.h"
#include "codec/json/node.h"
#include "codec/request/envelope.h"

/* Scopes of members (node.h). */
enum { MEMBER_OF_LAYERS = 1, MEMBER_OF_GRADIENTS, MEMBER_OF_MODELS, MEMBER_OF_ATTENTION };

/* The state that the sections of a request need, beside that of every decode function. */
struct decoder {
    struct reading reading;
    const struct envelope_attachment *attachments;
    envelope_kind kind;
    const attn_dtype *compute; /* of the envelope; known after the options, which are decoded first */
    bool shapes_only;          /* attached weights are not read, only their shapes */
    size_t label_bytes;        /* bytes of the labels read so far */
    bool takes_bare;           /* NaN, Infinity and -Infinity may stand without quotes in tensors */
    const char *texts_place;   /* what a refusal says when texts are given as vectors */
};

/* Makes a decoder. Its document and attachments are added later. compute must outlive it. */
struct decoder decoder_begin(envelope_kind kind, const attn_dtype *compute, attn_arena *arena, attn_error *err);

/*
 * Reads the text of source, and puts a marker for each of its attachments into the tree. Close *document whatever the
 * outcome. decoder refers to the document and to the attachments.
 */
attn_status decoder_open(struct decoder *decoder, const struct envelope_source *source, struct document *document);

/* Whether a path ("weights.query") is a section or a member of it. */
bool path_is_in(const char *path, const char *section);

/* The decoder that begins with reading. Decode functions of this folder always get such a reading. */
static inline struct decoder *decoder_of(struct reading *reading)
{
    return (struct decoder *)reading;
}

/* The value of one of the words (envelope.h); *to is of any enumeration, or an int. */
attn_status decode_choice(struct reading *reading, const struct node *node, const struct choice *choices, void *to);
/* bool: the opposite of what is given */
decode_function decode_opposite;
/* double, 0 or more */
decode_function decode_not_negative;
/*
 * A list of at most `most` elements, which are called name ("words") in messages. *items becomes (count, bytes), in the
 * arena, each decoded by decode.
 */
struct element_list {
    const char *wanted, *name;
    size_t most, bytes;
    decode_function *decode;
};
attn_status decode_elements(struct reading *reading, const struct node *node, const struct element_list *of,
                            void **items, size_t *count);
/* An integer from low to high. */
attn_status decode_count(struct reading *reading, const struct node *node, int64_t low, int64_t high, size_t *to);

/* tensor_member.c: each *to is a const attn_tensor *, in the arena. */
decode_function decode_tensor; /* numbers, in the compute type */
decode_function decode_rows;   /* likewise, but float16 and bfloat16 stay as they are where attention reads them so */
decode_function decode_past;   /* likewise, of a cache, which layers read so, too */
decode_function decode_scores; /* as decode_tensor, where null is -Infinity */
decode_function decode_bias;   /* likewise, or a single number, which has rank 0 */
decode_function decode_flags;  /* bool */
decode_function decode_flags_or_one;
decode_function decode_counts; /* int64 */
decode_function decode_counts_or_one;
decode_function decode_lengths; /* int64; a single number is a list of one */
decode_function decode_reals;   /* float64 */
decode_function decode_ids;     /* int64, one for each token */
decode_function decode_weight;  /* as decode_tensor, but 16 bits beside the JSON text stay as they are for float32 */

/* envelope_decode.c: names the metadata in the message of a syntax error in its text. Returns status. */
attn_status envelope_name_text(attn_status status, attn_error *err);
/*
 * kept_base.c: opens a kept layer as a tree with markers of its tensors. *envelope has its defaults already. Close
 * *document whatever the outcome; *decoder refers to it.
 */
attn_status kept_base_open(const struct envelope_source *base, attn_arena *arena, struct envelope *envelope,
                           struct document *document, struct decoder *decoder, attn_error *err);
/* Decode the layer's options; then its weights and masks, in the compute type that the options chose. */
attn_status kept_base_decode_options(struct decoder *decoder, json_t *tree, struct envelope *envelope);
attn_status kept_base_decode_rest(struct decoder *decoder, json_t *tree, struct envelope *envelope);

/* block_decode.c */
extern const struct short_form linear_form;  /* the weight alone */
decode_function decode_linear;               /* attn_affine with a weight */
decode_function decode_affine;               /* attn_affine: gain and shift, both optional */
decode_function decode_norm_type;            /* attn_norm_type: layer or rms */
decode_function decode_norm_position;        /* attn_norm_position */
decode_function decode_norm;                 /* attn_options: norm, norm_position, norm_eps */
decode_function decode_qk_norm;              /* attn_options: qk_norm, qk_norm_eps */
decode_function decode_feed_forward_weights; /* attn_feed_forward_weights */
decode_function decode_feed_forward_options; /* struct envelope */
decode_function decode_layout;               /* attn_layout */
decode_function decode_branch_norm;          /* attn_options: branch_norm, branch_norm_eps */
/* Fills in the defaults of options.feed_forward, which depend on the other options and on the weights. */
void settle_feed_forward(struct envelope *envelope);

decode_function decode_inputs;             /* struct envelope */
decode_function decode_weights;            /* attn_weights */
decode_function decode_masks;              /* attn_masks */
extern const struct short_form names_form; /* one name */
decode_function decode_options;            /* struct envelope */
decode_function decode_rope;               /* attn_rope */
decode_function decode_mechanism;          /* attn_mechanism */
decode_function decode_profile;            /* struct envelope */
decode_function decode_compute;            /* attn_options: the type, and whether products are in bfloat16 */
decode_function decode_heads;              /* struct envelope */
decode_function decode_queries;            /* struct envelope */
decode_function decode_keys;               /* struct envelope */
decode_function decode_format;             /* tensor_form */
decode_function decode_digits;             /* int */
decode_function decode_tokens;             /* struct envelope, with its inputs: the labels are counted against them */

/* shown.c: *to is a struct envelope_reduction, unless the line names another type. */
decode_function decode_pool;
decode_function decode_extent; /* size_t, from 1 on */
decode_function decode_map_dtype;
decode_function decode_view; /* struct envelope */
/* Checks that the answer can show what is asked for; node is the options. */
attn_status check_shown(struct reading *reading, const struct node *node, struct envelope *envelope);

extern const struct member_table inputs_table, weights_table, masks_table, options_table;

/*
 * masks.c: the table of masks. It says for each mask where it may stand, beside "masks" of a request. A new mask is one
 * row of MASK_LIST, and its equation in attn/mask.h. The places in the row decide whether layers may keep the mask, and
 * whether the Open Inference Protocol takes it.
 */
enum mask_place {
    MASK_IN_LAYERS = 1,    /* it fits sequences of any length, so a kept layer may have it */
    MASK_AS_PARAMETER = 2, /* a parameter of the Open Inference Protocol, under its own name */
    MASK_AS_TENSOR = 4,    /* an input of that protocol, under its name in capitals */
};

struct mask_row {
    const char *name;
    const char *path; /* of the member: "masks.causal" */
    unsigned places;
};

/* Returns the rows in the order of the table, and NULL after the last one. */
const struct mask_row *mask_row_at(size_t index);
/* Whether a mask of that name exists and may stand in that place. */
bool mask_has_place(const char *name, enum mask_place place);

enum { MASK_NAMES_MAX = 256 };
/*
 * Writes the names of all masks that may stand there, as they are spelt there: "causal, window", for a message. Returns
 * names.
 */
const char *mask_names(enum mask_place place, char names[MASK_NAMES_MAX]);

#endif
