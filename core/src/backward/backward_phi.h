/*
 * backward_phi.h: the backward pass of phi for one token: from the gradient of its features to that of the token.
 *
 *     linear     dx = dphi phi'(x)
 *     performer  du = dphi (phi - eps / sqrt(m))      ds = P^T du - s sum(du)      dx = factor ds, where s = factor x
 */
#ifndef ATTN_BACKWARD_BACKWARD_PHI_H
#define ATTN_BACKWARD_BACKWARD_PHI_H

#include "attention/feature_keys.h"

/*
 * product (m) holds dphi and is overwritten; grad_x (d_k) is written. at is the index of the token in the job's q or k;
 * phi has its features. Returns the token's part of the gradient of the scale. *of_largest accumulates the negative
 * gradient of the largest P s over all keys of a head. For a query, the gradient of its largest P s is part of grad_x.
 */
double attn_gradient_phi_of_query(const struct attn_feature_keys *keys, struct attn_vector q, const double *phi,
                                  double *product, double *grad_x);
double attn_gradient_phi_of_key(const struct attn_feature_keys *keys, struct attn_vector k, const double *phi,
                                double *product, double *grad_x, double *of_largest);

#endif
