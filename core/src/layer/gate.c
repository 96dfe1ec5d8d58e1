/* gate.c: the output gate. */
#include "layer/gate.h"

#include <math.h>

#include "base/number.h"

/* The argument of exp is 0 or below, so exp cannot overflow. */
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

/* One head of one token. */
static void go_back(attn_dtype compute, size_t head, size_t d_v, size_t d_gate, const void *concat, const void *gate,
                    const void *grad_gated, void *grad_concat, void *grad_gate)
{
    double shared = 0;
    for (size_t d = 0; d < d_v; d++) {
        const size_t at = head * d_v + d, from = head * d_gate + (d_gate == 1 ? 0 : d);
        const double dy = attn_number_get(grad_gated, compute, at);
        const double s = sigmoid(attn_number_get(gate, compute, from));
        const double of_gate = dy == 0 ? 0 : dy * attn_number_get(concat, compute, at) * s * (1 - s);
        shared += of_gate;
        if (grad_concat != NULL)
            attn_number_put(grad_concat, compute, at, dy == 0 ? 0 : dy * s);
        if (grad_gate != NULL && d_gate != 1)
            attn_number_put(grad_gate, compute, from, of_gate);
    }
    if (grad_gate != NULL && d_gate == 1)
        attn_number_put(grad_gate, compute, head, shared);
}

void attn_gate_rows_back(attn_dtype compute, size_t rows, size_t heads, size_t d_v, size_t d_gate, const void *concat,
                         const void *gate, const void *grad_gated, void *grad_concat, void *grad_gate)
{
    for (size_t head = 0; head < rows * heads; head++)
        go_back(compute, head, d_v, d_gate, concat, gate, grad_gated, grad_concat, grad_gate);
}
