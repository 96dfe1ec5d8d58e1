/*
 * backward.inc.h: one row of a tile of the backward pass: from q·k and dO·v to the weights and the gradient of the
 * scores. Part of a kernel.
 *
 *     s = scale x, c tanh(s / c), + bias     p = exp(s - lse)     dS = p (dP - delta)     dX = dS (1 - tanh^2)
 */
#ifndef ATTN_KERNEL_PRODUCTS_BACKWARD_INC_H
#define ATTN_KERNEL_PRODUCTS_BACKWARD_INC_H

#include "kernel/entries.h"
#include "kernel/vector/operations.inc.h"

static void backward_row(const struct attn_backward_row *row)
{
    REAL *x = row->x, *g = row->g, *masked = row->masked;
    const REAL *added = row->added;
    const REAL scale = (REAL)row->scale, softcap = (REAL)row->softcap, lse = (REAL)row->lse, delta = (REAL)row->delta;
    const REAL gain = (REAL)row->gain;
    const vec zero = {0};
    for (size_t c = 0; c < row->n; c += LANES) {
        vec s = load(x + c) * scale, slope = splat(1), kept = splat(1);
        if (softcap > 0) {
            vec t = tanh_vec(s / softcap);
            s = softcap * t;
            slope = fma_vec(-t, t, splat(1));
        }
        if (added != NULL)
            s += load(added + c);
        if (row->keep != NULL)
            kept = blend(mask_from_bytes(row->keep + c), splat(gain), zero);
        vec p = exp_vec(s - lse);
        vec ds = p * fma_vec(load(g + c), kept, splat(-delta));
        p *= kept;
        if (row->allow != NULL) {
            const ivec allowed = mask_from_bytes(row->allow + c);
            p = blend(allowed, p, zero);
            ds = blend(allowed, ds, zero);
            slope = blend(allowed, slope, zero);
        }
        if (masked != NULL)
            store(masked + c, ds);
        store(x + c, p);
        store(g + c, ds * slope);
    }
}

#endif
