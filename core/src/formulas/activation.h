/*
 * activation.h: the activations of a feed-forward network (attn_activation in plan.h), one number at a time in double.
 */
#ifndef ATTN_FORMULAS_ACTIVATION_H
#define ATTN_FORMULAS_ACTIVATION_H

#include "attn/plan.h"

/* act(x); *slope = its derivative at x. At 0 relu has the slope 0. */
double attn_activation_at(attn_activation activation, double x, double *slope);

#endif
