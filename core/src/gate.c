/* gate.c: the output gate. */
#include "gate.h"

#include <math.h>

/* exp of a number that is not positive, so that nothing overflows. */
static double sigmoid(double x)
{
    const double e = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

void attn_gate_rows(attn_dtype compute, size_t rows, size_t heads, size_t d_v, size_t d_gate, const void *concat,
                    const void *gate, void *gated)
{
    for (size_t head = 0; head < rows * heads; head++)
        for (size_t d = 0; d < d_v; d++) {
            const size_t at = head * d_v + d, from = head * d_gate + (d_gate == 1 ? 0 : d);
            if (compute == ATTN_F32)
                ((float *)gated)[at] =
                    ((const float *)concat)[at] * (float)sigmoid((double)((const float *)gate)[from]);
            else
                ((double *)gated)[at] = ((const double *)concat)[at] * sigmoid(((const double *)gate)[from]);
        }
}
