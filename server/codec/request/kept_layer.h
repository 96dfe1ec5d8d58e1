/*
 * kept_layer.h: an attention layer as a file: its weights, and its options and masks as JSON.
 *
 * The file is safetensors, so that every library for the format can read it. Tensors are named by their place in a
 * request ("weights.query.weight", "weights.output.bias"). "request" in __metadata__ has the parts that are not
 * tensors:
 *
 *     {"weights": {"layout": "out_in"}, "options": {"num_heads": 12}, "masks": {"causal": true}}
 *
 * Only masks that fit sequences of any length are allowed: causal, window, sliding_window, blocks.
 */
#ifndef CODEC_REQUEST_KEPT_LAYER_H
#define CODEC_REQUEST_KEPT_LAYER_H

#include "codec/bytes/chunks.h"
#include "codec/request/envelope.h"

/* Facts about a layer that hold for requests of every length. */
struct kept_layer_facts {
    attn_dims dims;                    /* of one token; batch, q_len and kv_len have no meaning */
    attn_dtype dtype;                  /* the type of most weights in the file */
    attn_dtype compute;                /* the compute type, unless a request asks for another */
    bool bf16_products;                /* the same */
    attn_layout layout, expert_layout; /* of its weights, and of those of experts */
    size_t experts, experts_per_token; /* of its mixture of experts; 0: it has none */
    size_t parameters;                 /* numbers in its tensors */
    bool takes_key_inputs;             /* keys or values have another width than queries, so requests must bring them */
};

/* A kept layer as requests need it. */
struct kept_layer {
    struct envelope_source base;
    const struct kept_layer_facts *facts;
    uint64_t version; /* unique among all versions, and above 0 */
};

/*
 * Reads a file, which must outlive *base, and checks that it is a layer that can run, by a plan for one token. The data
 * of weights is not read, so that a mapped file stays on the disk.
 *   ATTN_ERR_SYNTAX not safetensors, or metadata that is not JSON; ATTN_ERR_FIELD, _SHAPE, _VALUE with the pointer
 *   ("/weights/key/weight"); ATTN_ERR_TOO_LARGE, ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status kept_layer_read(const char *file, size_t bytes, attn_arena *arena,
                                            struct envelope_source *base, struct kept_layer_facts *facts,
                                            attn_error *err);

/* The check alone, of a layer that is open already. Failures are those of kept_layer_read. */
ATTN_MUST_CHECK attn_status kept_layer_check(const struct envelope_source *base, attn_arena *arena,
                                             struct kept_layer_facts *facts, attn_error *err);

/*
 * Whether the inputs have the widths that the layer takes. ATTN_ERR_SHAPE with the pointer of the first input of
 * another width.
 */
ATTN_MUST_CHECK attn_status kept_layer_check_inputs(const struct kept_layer_facts *facts, const attn_inputs *inputs,
                                                    attn_error *err);

/*
 * Appends the file of a layer. The layer is a JSON request without inputs. Its tensors are converted to the compute
 * type and live in arena. out refers to them; text must live as long as arena. Failures are those of kept_layer_read.
 */
ATTN_MUST_CHECK attn_status kept_layer_write(const char *text, size_t length, attn_arena *arena, struct chunks *out,
                                             attn_error *err);

/* Writes {"d_model": 768, "num_heads": 12, …} without the braces. */
void kept_layer_write_facts(const struct kept_layer_facts *facts, struct chunks *out);
/* Writes [{"name", "dtype", "shape"}, …]. */
void kept_layer_write_tensors(const struct envelope_source *base, struct chunks *out);

#endif
