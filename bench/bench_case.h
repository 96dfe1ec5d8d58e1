/*
 * bench_case.h: one measured computation, its data and its size. Part of bench/, which no other folder includes.
 *
 * Every contender, in whatever language, makes the same numbers from the same small generator, so that results can be
 * compared: element n of stream s is
 *
 *     h = (n + s 0x9E3779B9) mod 2^32;  h ^= h >> 16;  h *= 0x85EBCA6B;  h ^= h >> 13;  h *= 0xC2B2AE35;  h ^= h >> 16
 *     value = (h >> 9) 2^-22 - 1        in [-1, 1), exact in float
 *
 * (the finalizer of MurmurHash3 on a counter). Streams 0 1 2 are q k v, times 2; of a layer, stream 0 is the input, and
 * 1 2 are its past keys and values. 3 4 5 6 are the weights w_q w_k w_v w_o of a layer, times 1/16, which keeps its
 * scores near 1. 7 is the gradient of the output, times 2. 8 9 10 are the weights of the gate and of the feed-forward
 * network, up and down, times 1/16.
 */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include "attn/tensor.h"

enum { BENCH_SAMPLES = 32 /* numbers of each result that are compared */, BENCH_RESULTS_MAX = 4 };

typedef enum {
    STREAM_Q,
    STREAM_K,
    STREAM_V,
    STREAM_W_Q,
    STREAM_W_K,
    STREAM_W_V,
    STREAM_W_O,
    STREAM_GRAD_OUTPUT,
    STREAM_W_GATE,
    STREAM_W_UP,
    STREAM_W_DOWN,
    STREAM_COUNT
} bench_stream;

/*
 * What a case has beside its shape: code, word.
 *
 *     alibi, sinks, documents   ALiBi with its own slopes; sinks of bench_sink_of; documents of bench_document_of
 *     grouped                   BENCH_GROUP query heads to a key head
 *     rope                      queries and keys turned by their positions, as halves
 *     padded, odd               every fourth key is hidden; its value is a number, or NaN
 *     dropout                   BENCH_DROPOUT on the weights
 *     linear, performer         feature maps instead of softmax (attn/mechanism.h)
 *     mean                      the mean of the maps over the heads is kept instead of the maps
 *     past                      all but the last q_len keys and values come from a cache
 *     float16, bfloat16         keys and values, or the weights of a layer, have 16 bits; they are computed in float32
 *     bf16products              q k^T and p v by products of bfloat16, for which their operands are rounded
 *     layernorm, rmsnorm        of a layer: a residual, and behind it the norm; a block has LayerNorm unless it says so
 *     prenorm                   the norm comes first
 *     gate                      concat times sigmoid(x W), feature by feature
 *     unpacked                  the weights of a layer are out_in, and no panels of them are kept
 *     plan                      only the plan is made
 *     bare                      a block without norm, residual and gate, and with ReLU in place of GELU. As many
 *                               multiply-adds: the network is wider in place of the gate
 *     gradients                 forward and backward; the output is the gradient of q, or of the input of a layer
 */
#define BENCH_WORD_LIST(X)                                                                                             \
    X(ALIBI, "alibi")                                                                                                  \
    X(SINKS, "sinks")                                                                                                  \
    X(DOCUMENTS, "documents")                                                                                          \
    X(GROUPED, "grouped")                                                                                              \
    X(ROPE, "rope")                                                                                                    \
    X(PADDED, "padded")                                                                                                \
    X(ODD, "odd")                                                                                                      \
    X(DROPOUT, "dropout")                                                                                              \
    X(LINEAR, "linear")                                                                                                \
    X(PERFORMER, "performer")                                                                                          \
    X(MEAN, "mean")                                                                                                    \
    X(PAST, "past")                                                                                                    \
    X(FLOAT16, "float16")                                                                                              \
    X(BFLOAT16, "bfloat16")                                                                                            \
    X(BF16_PRODUCTS, "bf16products")                                                                                   \
    X(LAYERNORM, "layernorm")                                                                                          \
    X(RMSNORM, "rmsnorm")                                                                                              \
    X(PRENORM, "prenorm")                                                                                              \
    X(GATE, "gate")                                                                                                    \
    X(UNPACKED, "unpacked")                                                                                            \
    X(PLAN, "plan")                                                                                                    \
    X(BARE, "bare")                                                                                                    \
    X(GRADIENTS, "gradients")

typedef enum {
#define BENCH_WORD_ENUM(code, word) WORD_##code,
    BENCH_WORD_LIST(BENCH_WORD_ENUM)
#undef BENCH_WORD_ENUM
        WORD_COUNT
} bench_word;

typedef struct {
    bool is_layer; /* a block is a layer, too, and has a feed-forward network behind it */
    bool is_block;
    attn_dtype dtype;
    size_t threads, batch, heads, q_len, kv_len, dim; /* dim: features per head; a layer has heads * dim features */
    bool is_causal;
    size_t window; /* each query sees itself and window - 1 keys before; 0: no window */
    bool with_maps;
    uint32_t words; /* a bit 1 << bench_word for each */
} bench_case;

static inline bool bench_has(const bench_case *c, bench_word word)
{
    return (c->words >> word & 1) != 0;
}

enum { BENCH_DOCUMENTS = 8, BENCH_GROUP = 4, BENCH_PADDING = 4, BENCH_WIDENING = 4 };
#define BENCH_DROPOUT       0.1
#define BENCH_NORM_EPS      1e-5
#define BENCH_PERFORMER_EPS 1e-4 /* added to every feature */

/*
 * "attention float32 THREADS BATCH HEADS Q_LEN KV_LEN DIM CAUSAL WINDOW MAPS" (or "layer" or "block", "float64"; flags
 * are 0 or 1), and behind it the words, into *c; false when the text is not that, or a dimension is 0 or absurd.
 * "gradients" for "attention" is attention with that word.
 */
bool bench_case_read(bench_case *c, const char *text);

/* The streams there are; a layer has k and v only as its past. */
bool bench_stream_is_used(const bench_case *c, bench_stream stream);
/* How many of the keys come from a cache. */
size_t bench_past_len(const bench_case *c);
/* A tensor with its numbers, of the case's type or 16 bits, to be freed by its data; data NULL without memory. */
attn_tensor bench_stream_make(const bench_case *c, bench_stream stream);

bool bench_has_maps(const bench_case *c); /* of the heads, or their mean */

/* The sink of a head; the document of position n of len, in runs of one length. */
double bench_sink_of(size_t h);
size_t bench_document_of(size_t n, size_t len);

/* Prints " MEAN X_0 … X_31": the mean magnitude of all elements, and BENCH_SAMPLES spread over the tensor. */
void bench_print_samples(const attn_tensor *tensor);

#endif
