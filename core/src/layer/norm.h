/*
 * norm.h: normalisation of token vectors.
 *
 *     LayerNorm(x) = (x - mean) / sqrt(variance + eps) * gain + shift      Ba, Kiros, Hinton, 2016, arXiv:1607.06450
 *     RMSNorm(x)   = x / sqrt(mean of squares + eps) * gain + shift        Zhang, Sennrich, 2019, arXiv:1910.07467
 *     L2Norm(x)    = x / max(|x|, eps) * gain + shift                      torch.nn.functional.normalize
 */
#ifndef ATTN_LAYER_NORM_H
#define ATTN_LAYER_NORM_H

#include "attn/plan.h"

/*
 * y[row] = norm(x[row]) for rows of d numbers of type dtype (float or double), row-major; y may be x. gain and shift
 * have d numbers, NULL: 1 and 0. Sums are taken in double for both types.
 */
void attn_norm_rows(attn_norm_type type, attn_dtype dtype, size_t rows, size_t d, const void *x, const void *gain,
                    const void *shift, double eps, void *y);

#endif
