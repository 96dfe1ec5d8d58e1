/* backward_phi.c: the backward pass of the feature maps, token by token. */
#include "backward/backward_phi.h"

#include <math.h>

#include "base/number.h"

static double differentiate_map(const struct attn_feature_keys *keys, struct attn_vector vector, bool is_query,
                                const double *grad_phi, double *grad_x)
{
    const attn_mechanism *mechanism = keys->mechanism;
    const bool is_scaled = is_query && mechanism->is_unnormalised;
    double of_scale = 0;
    for (size_t f = 0; f < keys->m; f++) {
        const double x = attn_number_get(vector.data, vector.dtype, f);
        const double phi = mechanism->is_identity ? x : x > 0 ? x + 1 : exp(x);
        const double slope = mechanism->is_identity || x > 0 ? 1 : phi;
        grad_x[f] = grad_phi[f] * slope * (is_scaled ? keys->plan->scale : 1);
        of_scale += is_scaled ? grad_phi[f] * phi : 0;
    }
    return of_scale;
}

/*
 * du = dphi (phi - eps / sqrt(m)), in place; returns the sum: the negative gradient of |s|^2 / 2 and of the largest P
 * s.
 */
static double differentiate_exp(const struct attn_feature_keys *keys, const double *phi, double *product)
{
    const double floor = keys->mechanism->eps / sqrt((double)keys->m);
    double total = 0;
    for (size_t r = 0; r < keys->m; r++) {
        product[r] *= phi[r] - floor;
        total += product[r];
    }
    return total;
}

/* ds = P^T du - total s; s = factor x, where factor is the root of the scale. */
static double differentiate_projection(const struct attn_feature_keys *keys, struct attn_vector x, double factor,
                                       double total, const double *product, double *grad_x)
{
    double of_scale = 0;
    for (size_t f = 0; f < keys->job->d_k; f++) {
        const double s = factor * attn_number_get(x.data, x.dtype, f);
        const double ds = attn_feature_dot(keys->projection + f * keys->m, product, keys->m) - total * s;
        grad_x[f] = factor * ds;
        of_scale += ds * s;
    }
    return keys->plan->scale == 0 ? 0 : of_scale / (2 * keys->plan->scale);
}

double attn_gradient_phi_of_query(const struct attn_feature_keys *keys, struct attn_vector q, const double *phi,
                                  double *product, double *grad_x)
{
    size_t largest = 0;
    if (keys->mechanism->type == ATTN_LINEAR)
        return differentiate_map(keys, q, true, product, grad_x);
    const double total = differentiate_exp(keys, phi, product);
    for (size_t r = 1; r < keys->m; r++)
        largest = phi[r] > phi[largest] ? r : largest;
    product[largest] -= total;
    return differentiate_projection(keys, q, attn_feature_query_factor(keys), total, product, grad_x);
}

double attn_gradient_phi_of_key(const struct attn_feature_keys *keys, struct attn_vector k, const double *phi,
                                double *product, double *grad_x, double *of_largest)
{
    if (keys->mechanism->type == ATTN_LINEAR)
        return differentiate_map(keys, k, false, product, grad_x);
    const double total = differentiate_exp(keys, phi, product);
    *of_largest -= total;
    return differentiate_projection(keys, k, attn_feature_key_factor(keys), total, product, grad_x);
}
