/*
 * bench_case.h: one measured computation, its data and its size. Part of bench/, which no other folder includes.
 *
 * Every contender, in whatever language, makes the same numbers from the same small generator, so that results can be
 * compared: element n of stream s is
 *
 *     h = (n + s 0x9E3779B9) mod 2^32;  h ^= h >> 16;  h *= 0x85EBCA6B;  h ^= h >> 13;  h *= 0xC2B2AE35;  h ^= h >> 16
 *     value = (h >> 9) 2^-22 - 1        in [-1, 1), exact in float
 *
 * (the finalizer of MurmurHash3 on a counter). Streams 0 1 2 are q k v, or stream 0 the input of a layer, all times 2;
 * 3 4 5 6 are the weights w_q w_k w_v w_o of a layer, times 1/16, which keeps its scores near 1; 7 is the gradient of
 * the output, times 2.
 */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include "attn/tensor.h"

enum { BENCH_SAMPLES = 32 }; /* numbers of each result that are compared */

typedef enum {
    STREAM_Q,
    STREAM_K,
    STREAM_V,
    STREAM_W_Q,
    STREAM_W_K,
    STREAM_W_V,
    STREAM_W_O,
    STREAM_GRAD_OUTPUT,
    STREAM_COUNT
} bench_stream;

typedef enum {
    VARIANT_NONE,
    VARIANT_ALIBI,
    VARIANT_SINKS,
    VARIANT_DOCUMENTS,
    VARIANT_GROUPED,
    VARIANT_ROPE,
    VARIANT_PADDED,
    VARIANT_ODD
} bench_variant;

typedef struct {
    bool is_layer;
    bool is_gradients; /* attention forward and backward; its output is the gradient of q */
    attn_dtype dtype;
    size_t threads, batch, heads, q_len, kv_len, dim; /* dim: features per head; a layer has heads * dim features */
    bool is_causal;
    size_t window; /* each query sees itself and window - 1 keys before; 0: no window */
    bool with_maps;
    /*
     * ALiBi with its own slopes; sinks of bench_sink_of; documents of bench_document_of; BENCH_GROUP query heads to a
     * key head; queries and keys turned by their positions, as halves; a padding mask that hides every fourth key,
     * whose values are numbers, or NaN
     */
    bench_variant variant;
} bench_case;

enum { BENCH_DOCUMENTS = 8, BENCH_GROUP = 4, BENCH_PADDING = 4 };

/*
 * "attention float32 THREADS BATCH HEADS Q_LEN KV_LEN DIM CAUSAL WINDOW MAPS" (or "layer" or "gradients", "float64";
 * flags are 0 or 1), and behind it, perhaps, the name of a variant in lower case, into *c; false when the text is not
 * that, or a dimension is 0 or absurd.
 */
bool bench_case_read(bench_case *c, const char *text);

/* Shape of a stream: (batch, heads, len, dim), or the (batch, len, features) and (features, features) of a layer. */
attn_tensor bench_stream_shape(const bench_case *c, bench_stream stream);
/* The streams there are: 0 … last; a layer has no separate k and v. */
bool bench_stream_is_used(const bench_case *c, bench_stream stream);
size_t bench_kv_heads(const bench_case *c);
/* A tensor with its numbers in fresh memory, to be freed by its data; data NULL without memory. */
attn_tensor bench_stream_make(const bench_case *c, bench_stream stream);

/* Shapes of what comes back, data NULL. */
attn_tensor bench_output_shape(const bench_case *c);
attn_tensor bench_maps_shape(const bench_case *c);

/* The sink of a head; the document of position n of len, in runs of one length. */
double bench_sink_of(size_t h);
size_t bench_document_of(size_t n, size_t len);
/* Keys [from, to) that query i attends to. */
void bench_keys_of(const bench_case *c, size_t i, size_t *from, size_t *to);

/* Prints " MEAN X_0 … X_31": the mean magnitude of all elements, and BENCH_SAMPLES spread over the tensor. */
void bench_print_samples(const attn_tensor *tensor);

#endif
