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
 * linear with an update rule is a recurrence instead: each key head has a state S (d_k, d_v), which position after position
 * forgets and learns. With S_-1 = past_state, or 0,
 *
 *     linear       S_t = S_t-1 + k_t v_t^T                                           out_t = scale S_t^T q_t
 *     gated        S_t = diag(e^g_t) S_t-1 + k_t v_t^T                               Yang et al., 2023, arXiv:2312.06635
 *     delta        S_t = S_t-1 + beta_t k_t (v_t - S_t-1^T k_t)^T                    Schlag et al., 2021, arXiv:2102.11174
 *     gated_delta  S' = diag(e^g_t) S_t-1,  S_t = S' + beta_t k_t (v_t - S'^T k_t)^T Yang et al., 2024, arXiv:2412.06464
 *
 * as LinearAttention of ONNX has them (opset 27). g is decay and beta is beta of attn_inputs; phi(x) = x, and there is no
 * denominator. The map "attention" has the equivalent weights: out_i = sum_j A_ij v_j + what is left of past_state,
 *
 *     A_ij = scale q_i^T M_i ... M_j+1 beta_j k_j,    M_t = (I - beta_t k_t k_t^T) diag(e^g_t)    without beta: I, and 1
 *
 * which solves A = G (I + L)^-1 diag(beta), where G and the strictly lower L hold q_i and beta_i k_i times the gates times
 * k_j. A row is its back substitution: from key i down to key 0, q_i is multiplied by what each position does to the state.
 * Query t attends to keys 0 to t. A key that is hidden (padding, key_lengths) leaves the state as it is. Sums are in double
 * for both types; the cost is O(len d_k d_v) a head, and O(len^2 d_k) for the map.
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

typedef enum {
    ATTN_RULE_NONE,
    ATTN_RULE_LINEAR,
    ATTN_RULE_GATED,
    ATTN_RULE_DELTA,
    ATTN_RULE_GATED_DELTA
} attn_update_rule;

enum { ATTN_PERFORMER_FEATURES = 256, ATTN_PERFORMER_FEATURES_MAX = 4096 };

typedef struct {
    attn_mechanism_type type;
    double eps;                    /* linear: added to the denominator; performer: to every feature */
    bool is_identity;              /* linear: phi(x) = x */
    bool is_unnormalised;          /* linear: out_i = scale sum_j phi(q_i) phi(k_j) v_j, without a denominator */
    attn_update_rule update_rule;  /* linear, with phi(x) = x and without a denominator: a recurrence */
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
