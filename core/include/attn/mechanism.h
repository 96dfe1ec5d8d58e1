/*
 * mechanism.h: how weights come from queries and keys: by softmax, or by feature maps in time linear in the length.
 *
 *     softmax    w_ij = exp(scale q_i k_j) / sum_j …                                      attention.h
 *     linear     w_ij = phi(q_i) phi(k_j) / (sum_j phi(q_i) phi(k_j) + eps),  phi(x) = elu(x) + 1
 *                Katharopoulos et al., "Transformers are RNNs", 2020, arXiv:2006.16236
 *     performer  the same with m positive random features that approximate softmax (FAVOR+), eps_d = 0:
 *                phi(x) = m^(-1/2) (exp(P s - |s|^2 / 2 - c) + eps),  s = sqrt(scale) x
 *                c is the largest P s, of one query or of all keys of a head that the mask leaves to any query.
 *                Choromanski et al., "Rethinking Attention with Performers", 2021, arXiv:2009.14794
 *
 * out_i = sum_j w_ij v_j over the keys that the mask allows. Where the mask leaves every query a range of keys that
 * starts at key 0 (no mask, causal, lengths, padding), a running sum computes this in O(len m d) time, without q_len x
 * kv_len memory. Any other mask is looked up for every pair. The maps "attention" and "attention_mean" are the
 * equivalent weights, which cost O(q_len kv_len m) when a request asks for them. Sums are of the compute type, as sums of
 * sums (docs/accuracy.md). So in float32 a sum of weights times values beyond 3.4e38 is infinite, and a query whose
 * weights are all below 1e-38 has a sum of 0; compute in float64 reaches further.
 */
#ifndef ATTN_MECHANISM_H
#define ATTN_MECHANISM_H

#include "attn/tensor.h"

ATTN_BEGIN_C

typedef enum { ATTN_SOFTMAX, ATTN_LINEAR, ATTN_PERFORMER } attn_mechanism_type;

enum { ATTN_PERFORMER_FEATURES = 256, ATTN_PERFORMER_FEATURES_MAX = 4096 };

typedef struct {
    attn_mechanism_type type;
    double eps;                    /* linear: added to the denominator; performer: to every feature */
    bool is_identity;              /* linear: phi(x) = x */
    bool is_unnormalised;          /* linear: out_i = scale sum_j phi(q_i) phi(k_j) v_j, without a denominator */
    size_t features;               /* performer: m; 0: ATTN_PERFORMER_FEATURES, or the rows of the projection */
    uint64_t seed;                 /* performer: of the projection */
    const attn_tensor *projection; /* performer: P (m, d_k), the compute type; NULL: drawn from the seed */
} attn_mechanism;

/* m: the number of features that phi computes from d_k numbers. */
size_t attn_mechanism_features(const attn_mechanism *mechanism, size_t d_k);

/*
 * P (features, d_k), row-major: blocks of d_k orthogonal rows, the last block truncated. Each row has the length of a
 * vector of d_k independent normal numbers. Philox4x32-10 with the seed as key gives the random words: stream 2 for the
 * directions, stream 3 for the lengths. The Box-Muller transform turns the two halves of a Philox block into two normal
 * numbers. Gram-Schmidt, applied twice, makes a block orthogonal. work is scratch of d_k numbers.
 */
void attn_performer_projection(uint64_t seed, size_t features, size_t d_k, double *work, double *projection);

ATTN_END_C

#endif
