/*
 * analysis.h: what people compute from the maps of a model. Maps are weights behind the softmax; they are read alone.
 */
#ifndef ATTN_ANALYSIS_H
#define ATTN_ANALYSIS_H

#include "attn/runtime.h"
#include "attn/tensor.h"

ATTN_BEGIN_C

/*
 * Attention rollout, one layer further:
 *
 *     R_l = (A/2 + I/2) R_(l-1),   A = the mean of the layer's maps over its heads,   R_(-1) = I
 *
 * Abnar, Zuidema, "Quantifying Attention Flow in Transformers" (2020), section 3. maps is (heads, n, n) of the compute
 * type; before, after and work are n * n doubles in row-major order; before NULL stands for R_(-1). after may not overlap
 * the others.
 */
void attn_rollout_layer(const attn_tensor *maps, const double *before, double *work, double *after,
                        const attn_runtime *runtime);

/* What a head does, as shares of its attention in one sequence. docs/semantics.md has equations and sources. */
typedef enum {
    ATTN_ROLE_PREVIOUS_TOKEN, /* mean weight on key i - 1, over queries i >= 1 */
    ATTN_ROLE_FIRST_TOKEN,    /* mean weight on key 0, over all queries */
    ATTN_ROLE_SAME_TOKEN,     /* mean weight on earlier or later keys with the query's id, over queries that have one */
    ATTN_ROLE_INDUCTION,      /* mean weight on keys that follow an earlier token with the query's id, likewise */
    ATTN_ROLE_ENTROPY,        /* mean entropy of a row in nats */
    ATTN_ROLE_COUNT
} attn_head_role;

/* "previous_token" for ATTN_ROLE_PREVIOUS_TOKEN. */
const char *attn_head_role_name(attn_head_role role);
/*
 * score has (heads, ATTN_ROLE_COUNT) numbers. map is (heads, n, n); ids has n numbers, NULL: same_token and induction
 * are NaN. A role without a query that it speaks of is NaN. watch is asked whether the work is cancelled, and if so, the
 * scores are wrong; NULL: it is never cancelled.
 */
void attn_head_roles(const attn_tensor *map, const int64_t *ids, double *score, const attn_runtime *watch);

/*
 * When tokens are spoken, from the maps of some heads from tokens to frames of audio. attn_align_add adds one head to a sum
 * of all, which begins with 0:
 *
 *     M_i,t += median(Z_i,t-3 .. Z_i,t+3),   Z_i,t = (A_i,t - mean_j A_j,t) / sd_j A_j,t
 *
 * Z is mirrored at its first and last frame, 0 where the deviation is 0, and taken as it is for 3 frames or fewer.
 * attn_align_path finds the path from (0, 0) to the last token and frame, in steps of one token, one frame or both, with
 * the largest sum of M, and gives the first frame of each token on it (Sakoe, Chiba, "Dynamic Programming Algorithm
 * Optimization for Spoken Word Recognition", 1978; the measure is that of Whisper's word times). A step of both is taken
 * where it is better than either, then one of a token.
 *
 * map is (tokens, frames), of any strides and of a compute type; sum has tokens * frames doubles; work lends
 * attn_align_work(…) doubles. runtime is asked whether the work is cancelled, and if so, the results are wrong.
 */
void attn_align_add(const attn_tensor *map, double *sum, double *work, const attn_runtime *runtime);
size_t attn_align_work(size_t frames, size_t threads);
/* steps lends tokens * frames bytes, costs lends 2 * (frames + 1) doubles; begins receives a frame for each token. */
void attn_align_path(const double *sum, size_t tokens, size_t frames, uint8_t *steps, double *costs, size_t *begins);

/*
 * The k largest of scores[0 .. count), best first, with their probabilities under a softmax over all. Equal scores: the
 * smaller index first. k <= count. Sums are taken in double. watch is asked whether the work is cancelled, and if so,
 * words and probabilities are wrong; NULL: it is never cancelled.
 */
void attn_top_words(const void *scores, attn_dtype compute, size_t count, size_t k, int64_t *words,
                    double *probabilities, const attn_runtime *watch);

/*
 * What a row of scores z[0 .. count) says of given words, n of them, each below count:
 *
 *     log p_w = z_w - max(z) - log sum_i exp(z_i - max(z))
 *     rank_w  = 1 + the number of words with a larger score, or with an equal one and a smaller index
 *
 * So rank r is place r of attn_top_words. log_probabilities and ranks have n elements. Sums are taken in double. The time
 * is O(n count). watch as above.
 */
void attn_score_words(const void *scores, attn_dtype compute, size_t count, size_t n, const int64_t *words,
                      double *log_probabilities, int64_t *ranks, const attn_runtime *watch);

ATTN_END_C

#endif
