/*
 * model.h: what stands before and behind the layers of a model: embeddings of tokens, of image patches and of audio, and
 * the prediction head.
 *
 * A layer itself, with its feed-forward network, is an attn_request (plan.h). A caller embeds a sequence, runs the
 * layers one after the other, each on the output of the one before, and gives the last output to the head. All functions
 * here take one sequence. They are safe from several threads, each with its own arena.
 */
#ifndef ATTN_MODEL_H
#define ATTN_MODEL_H

#include "attn/arena.h"
#include "attn/plan.h"
#include "attn/runtime.h"

ATTN_BEGIN_C

/* A normalisation of token vectors of its own (attn_norm_type has the equations). type ATTN_NORM_NONE: none. */
typedef struct {
    attn_norm_type type;
    double eps;
    attn_affine weights; /* weight (d): the gain; bias (d): the shift; of the compute type, each optional */
} attn_token_norm;

/*
 *     x_i = norm(scale * words[id_i] + positions[p_i] + types[t_i]) W + b
 *
 * Tables are row-major and of any float type; a row is converted to the compute type when it is read. A table with data
 * NULL is absent. d is their number of columns. With positions_last, positions have as many columns as W has outputs:
 *
 *     x_i = norm(scale * words[id_i] + types[t_i]) W + b + positions[p_i]
 *
 * With norm_last:
 *
 *     x_i = norm((scale * words[id_i] + positions[p_i] + types[t_i]) W + b)
 */
typedef struct {
    attn_dtype compute;
    attn_tensor words; /* (vocabulary, d) */
    double scale;      /* of the rows of words; 0 means 1 */
    attn_tensor positions, types;
    attn_token_norm norm;
    attn_affine projection; /* to the width of the layers; with ATTN_F32, a weight of 16 bits, too. NULL: none */
    attn_layout layout;     /* of the projection */
    bool positions_last;    /* positions are added behind the projection, as in OPT */
    bool norm_last;         /* the norm is behind the projection, as in DeBERTa */
} attn_embedding;

/* One sequence. Every index must be below the number of rows of its table. */
typedef struct {
    size_t count;
    const int64_t *ids;         /* count of them; NULL: vectors stand for scale * words[id_i] */
    const attn_tensor *vectors; /* (count, d), contiguous, of the compute type */
    const int64_t *positions;   /* NULL: 0, 1, 2 … */
    const int64_t *types;       /* NULL: all 0 */
} attn_embedding_input;

/* The width of the result: that of the projection, or else of the tables. */
size_t attn_embedding_width(const attn_embedding *embedding);
/* Arena bytes of attn_embed for a sequence of that length, with that many threads. The result is included. */
size_t attn_embedding_bytes(const attn_embedding *embedding, size_t count, size_t threads);
/*
 * *output becomes (count, width), of the compute type, in arena.
 *   ATTN_ERR_VALUE      an index has no row; the message says which (field: "ids", "positions" or "types")
 *   ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 */
ATTN_MUST_CHECK attn_status attn_embed(const attn_embedding *embedding, const attn_embedding_input *input,
                                       const attn_runtime *runtime, attn_arena *arena, attn_tensor *output,
                                       attn_error *err);

/*
 * Positions that are not learned: row p has sin(p / 10000^(2j / d)) in column j, and the cosines from column
 * ceil(d / 2) on, as Marian has them (Vaswani et al. 2017, section 3.5, interleaves them). to has count * d numbers.
 */
void attn_sinusoidal_positions(size_t count, size_t d, float *to);

/*
 * An image cut into patches of (patch, patch) pixels, row by row, each multiplied by a kernel. Pixels at the right and
 * the lower edge that fill no patch are left out, as a convolution leaves them out. The leading vectors (the class token,
 * a distillation token) come first.
 */
typedef struct {
    attn_dtype compute;
    size_t channels, patch;
    attn_affine kernel;  /* out_in: weight (d, channels * patch * patch), with ATTN_F32 of 16 bits, too; bias (d) */
    attn_tensor leading; /* (rows, d), of any float type; data NULL: none */
} attn_patches;

/*
 * pixels is (channels, height, width), contiguous, of the compute type. *vectors becomes (leading rows + patches, d) in
 * arena, for attn_embedding_input.vectors. ATTN_ERR_SHAPE: another number of channels, or height or width is
 * below patch (field: "pixels"). ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_embed_patches(const attn_patches *patches, const attn_tensor *pixels,
                                               const attn_runtime *runtime, attn_arena *arena, attn_tensor *vectors,
                                               attn_error *err);

enum { ATTN_AUDIO_RATE = 16000, ATTN_AUDIO_HOP = 160 }; /* samples of a second, and between two frames */

/*
 * Energies of a sound in bands of the mel scale, as Whisper reads them (Radford et al. 2022, section 2.2). Of samples x,
 * which silence fills up to 160 * frames, mirrored before the first and behind the last:
 *
 *     X_t,k = sum_(n < 400) h_n x_(160 t + n - 200) exp(-2 pi i k n / 400),   h_n = (1 - cos(2 pi n / 400)) / 2
 *     S_m,t = log10(max(sum_(k <= 200) F_m,k |X_t,k|^2, 1e-10))
 *     y_m,t = (max(S_m,t, max S - 8) + 4) / 4
 *
 * F_m is a triangle from f_m to f_(m+2) with its top 2 / (f_(m+2) - f_m) at f_(m+1); f_0 to f_(mels+1) are 0 to 8000 Hz in equal
 * steps of mel(f) = 3 f / 200 up to 1000 Hz, 15 + 27 log(f / 1000) / log(6.4) above (Slaney, "Auditory Toolbox", 1998).
 *
 * samples is (count), finite, of the type that *features has; (mels, frames) in arena. Samples behind 160 * frames have no
 * effect. mels is at least 1, frames at least 2. All is computed in double. ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_log_mel(const attn_tensor *samples, size_t mels, size_t frames,
                                         const attn_runtime *runtime, attn_arena *arena, attn_tensor *features,
                                         attn_error *err);
/* Arena bytes of it with that many threads; the result is included, and all stays taken. */
size_t attn_log_mel_bytes(size_t mels, size_t frames, size_t threads);

/*
 * Frames over time, each of so many channels, through a convolution of three frames and GELU:
 *
 *     y_t = gelu(b + W_0 x_(s t - 1) + W_1 x_(s t) + W_2 x_(s t + 1)),   t < ceil(n / s)
 *
 * x has n frames, and is 0 before the first and behind the last; s is the stride. Radford et al., "Robust Speech
 * Recognition via Large-Scale Weak Supervision" (2022), section 2.2, has two: s = 1, then s = 2.
 */
typedef struct {
    attn_dtype compute;
    size_t stride; /* at least 1 */
    /* out_in: weight (d, channels * 3), the frames of a channel side by side, with ATTN_F32 of 16 bits, too; bias (d) */
    attn_affine kernel;
} attn_convolution;

/*
 * frames is (n, channels), of any strides and of the compute type. *vectors becomes (ceil(n / stride), d) in arena. The
 * scratch memory stays taken. ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_convolve(const attn_convolution *convolution, const attn_tensor *frames,
                                          const attn_runtime *runtime, attn_arena *arena, attn_tensor *vectors,
                                          attn_error *err);

/* *output = norm(input), (rows, d), in arena. With no norm, *output is *input. */
ATTN_MUST_CHECK attn_status attn_norm_tokens(const attn_token_norm *norm, const attn_tensor *input,
                                             const attn_runtime *runtime, attn_arena *arena, attn_tensor *output,
                                             attn_error *err);

/*
 * From a token vector to a score for each word of the vocabulary, or for each class:
 *
 *     z = cap(scale * (norm(activation(x W_d + b_d)) W_o + b_o)),   cap(z) = c tanh(z / c)
 *
 * dense, norm and the cap are optional. With dense_is_tanh, tanh stands for activation, as in the pooler of BERT
 * (Devlin et al. 2019); layers have no such activation. Tensors are of the compute type; with ATTN_F32, W_d and W_o may be
 * of 16 bits, and are widened while they are read.
 */
typedef struct {
    attn_dtype compute;
    attn_layout dense_layout, output_layout;
    attn_affine dense;
    attn_activation activation; /* of dense */
    bool dense_is_tanh;
    attn_token_norm norm;
    double scale;       /* of x W_o, before b_o is added; 0 means 1 */
    attn_affine output; /* (d, words) in layout in_out */
    double softcap;     /* c; 0: none */
} attn_prediction_head;

size_t attn_prediction_head_bytes(const attn_prediction_head *head, size_t rows, size_t threads);
/* *scores becomes (rows, words) in arena. ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED. */
ATTN_MUST_CHECK attn_status attn_predict(const attn_prediction_head *head, const attn_tensor *input,
                                         const attn_runtime *runtime, attn_arena *arena, attn_tensor *scores,
                                         attn_error *err);

/*
 * ---- what parts of a token vector add to the score of a word ----
 *
 * Behind a layer, a vector x is a sum of parts: the embedding, and what each head and each feed-forward network added. All
 * that multiplies is held at the number that it has for x, so that what follows is linear. Then a part c adds c . u to the
 * score z_w, with one direction u for each word and place. From the score back to the stream:
 *
 *     z = cap(scale * y W_o + b_o)             u_y = (cap(z) / z) * scale * column w of W_o
 *     y = (x - mean(x)) r g + s                u_x = r (u_y g - mean(u_y g)); an RMS norm has no means
 *     y = act(x)                               u_x = u_y act(x) / x; where x is 0, so is u_x
 *     y = x W + b                              u_x = u_y W^T
 *
 * Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021), and TransformerLens' logit_attrs hold the norm
 * alone; Achtibat et al., "AttnLRP" (2024), section 3.3, have the factor of an activation (the identity rule).
 *
 * directions is (rows * n, width) of the compute type, contiguous: n words for each of the rows. The numbers of a row do not
 * depend on the other rows. Norms are not ATTN_NORM_L2. Once runtime is cancelled, results are incomplete; those with a status say so.
 */

/* factors[row] = r of each row of input, (rows, d); 1 without a norm. */
void attn_norm_factors(const attn_token_norm *norm, const attn_tensor *input, double *factors);
/* Takes the directions from behind the norm to before it, in place. */
void attn_norm_directions(const attn_token_norm *norm, size_t rows, const double *factors,
                          const attn_tensor *directions, const attn_runtime *runtime);
/*
 * Takes the directions from behind a weight to before it: (rows * n, inner), in arena. With float32, the weight may be of 16
 * bits. ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_weight_directions(const attn_tensor *weight, attn_layout layout, size_t rows,
                                                   const attn_tensor *directions, const attn_runtime *runtime,
                                                   attn_arena *arena, attn_tensor *before, attn_error *err);
/*
 * The directions at the input of the head, which has no dense_is_tanh: input is (rows, d), words (rows, n), each below
 * the number of words. *directions is in arena. ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_head_directions(const attn_prediction_head *head, const attn_tensor *input, size_t n,
                                                 const int64_t *words, const attn_runtime *runtime, attn_arena *arena,
                                                 attn_tensor *directions, attn_error *err);
/*
 * What parts add: parts is (rows, width), of which each of the groups, as heads, has width / groups features side by side;
 * added receives rows * n * groups numbers. Sums are taken in double. ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_add_parts(const attn_tensor *parts, size_t groups, const attn_tensor *directions,
                                           double *added, const attn_runtime *runtime, attn_error *err);

/*
 * ---- gradients of what stands before and behind the layers ----
 *
 * Given the gradient of a number L by a result, the gradient of L by the input, of the compute type, in arena. Gradients of
 * layers are those of gradient.h. A row of a gradient that is all 0 gives 0, whatever numbers the input has. ATTN_ERR_NO_MEMORY,
 * ATTN_ERR_CANCELLED.
 */

/* Of attn_norm_tokens: input and gradient are (rows, d). With no norm, *before is *behind. */
ATTN_MUST_CHECK attn_status attn_norm_tokens_back(const attn_token_norm *norm, const attn_tensor *input,
                                                  const attn_tensor *behind, const attn_runtime *runtime,
                                                  attn_arena *arena, attn_tensor *before, attn_error *err);
/*
 * Of attn_predict, whose scores of input are (rows, words); behind is the gradient by them. A softcap c has the slope
 * 1 - (z / c)^2, and tanh 1 - y^2.
 */
ATTN_MUST_CHECK attn_status attn_predict_back(const attn_prediction_head *head, const attn_tensor *input,
                                              const attn_tensor *scores, const attn_tensor *behind,
                                              const attn_runtime *runtime, attn_arena *arena, attn_tensor *before,
                                              attn_error *err);
/* Of attn_embed: by vectors, (count, d), or by scale * words[id_i]. Errors of the input are those of attn_embed. */
ATTN_MUST_CHECK attn_status attn_embed_back(const attn_embedding *embedding, const attn_embedding_input *input,
                                            const attn_tensor *behind, const attn_runtime *runtime, attn_arena *arena,
                                            attn_tensor *before, attn_error *err);

/* ---- classes ---- */

typedef enum {
    ATTN_CLASSES_SOFTMAX, /* one class is right: p_i = exp(z_i) / sum_j exp(z_j) */
    ATTN_CLASSES_SIGMOID, /* each class is right or not: p_i = 1 / (1 + exp(-z_i)) */
} attn_class_rule;

/*
 * The probabilities of classes from their logits z: rows of count numbers, both of the compute type, contiguous, and
 * apart or the same. Once runtime is cancelled, the results are incomplete: the caller asks for that.
 */
void attn_class_probabilities(attn_class_rule rule, attn_dtype compute, size_t rows, size_t count, const void *logits,
                              void *probabilities, const attn_runtime *runtime);

/* The tokens from first to last, both included. */
typedef struct {
    size_t first, last;
    double probability; /* of first as a start, times that of last as an end */
} attn_answer;

/*
 * The answer to a question: of all first <= last that may be chosen, those with the largest starts[first] + ends[last].
 * Probabilities are a softmax over the tokens that may be chosen. Each array has count elements; may NULL: all may be
 * chosen. The first of equal spans wins. False: no span has a finite sum.
 */
ATTN_MUST_CHECK bool attn_best_span(size_t count, const double *starts, const double *ends, const bool *may,
                                    attn_answer *span);

/* How the vectors of all tokens become one (Reimers and Gurevych 2019, section 3). n is the number of tokens. */
typedef enum {
    ATTN_POOL_FIRST,     /* that of the first token */
    ATTN_POOL_LAST,      /* that of the last token */
    ATTN_POOL_MEAN,      /* sum / n */
    ATTN_POOL_MEAN_SQRT, /* sum / sqrt(n) */
    ATTN_POOL_WEIGHTED,  /* sum_i (i + 1) x_i / sum_i (i + 1), with i from 0 */
    ATTN_POOL_MAX,       /* the largest number of each feature */
} attn_pooling;

/* input is (n, d), contiguous, of the compute type, n at least 1; pooled receives d numbers of the same type. */
void attn_pool_tokens(attn_pooling pool, const attn_tensor *input, void *pooled);
/* Divides the vector by its Euclidean length, as torch.nn.functional.normalize does: by at least 1e-12. */
void attn_normalize_vector(attn_dtype compute, size_t d, void *vector);

ATTN_END_C

#endif
