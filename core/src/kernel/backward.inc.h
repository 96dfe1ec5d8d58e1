/*
 * backward.inc.h: one row of a tile backward: from q·k and dO·v to the weights and the gradient of the scores. Part of
 * attend.inc.h.
 *
 *     s = scale x, c tanh(s / c), + bias     p = exp(s - lse)     dS = p (dP - delta)     dX = dS (1 - tanh^2)
 */
static void FN(gradient_row)(const struct attn_gradient_row *row)
{
    REAL *x = row->x, *g = row->g, *masked = row->masked;
    const REAL *added = row->added;
    const REAL scale = (REAL)row->scale, softcap = (REAL)row->softcap, lse = (REAL)row->lse, delta = (REAL)row->delta;
    const REAL gain = (REAL)row->gain;
    const vec zero = {0};
    for (size_t c = 0; c < row->n; c += LANES) {
        vec s = FN(load)(x + c) * scale, slope = FN(splat)(1), kept = FN(splat)(1);
        if (softcap > 0) {
            vec t = FN(tanh)(s / softcap);
            s = softcap * t;
            slope = FN(fma)(-t, t, FN(splat)(1));
        }
        if (added != NULL)
            s += FN(load)(added + c);
        if (row->keep != NULL)
            kept = FN(select)(FN(mask_from_bytes)(row->keep + c), FN(splat)(gain), zero);
        vec p = FN(exp)(s - lse);
        vec ds = p * FN(fma)(FN(load)(g + c), kept, FN(splat)(-delta));
        p *= kept;
        if (row->allow != NULL) {
            const ivec allowed = FN(mask_from_bytes)(row->allow + c);
            p = FN(select)(allowed, p, zero);
            ds = FN(select)(allowed, ds, zero);
            slope = FN(select)(allowed, slope, zero);
        }
        if (masked != NULL)
            FN(store)(masked + c, ds);
        FN(store)(x + c, p);
        FN(store)(g + c, ds * slope);
    }
}
