/*
 * activation.inc.h: the activations of a feed-forward network, elementwise. Part of a kernel.
 */
#ifndef ATTN_KERNEL_ACTIVATION_INC_H
#define ATTN_KERNEL_ACTIVATION_INC_H

#include "kernel/kernel.h"
#include "kernel/vector.inc.h"

/* 1 / (1 + e^-x). Small results keep their digits, because nothing cancels. */
static inline vec sigmoid_vec(vec x)
{
    return 1 / (1 + exp_vec(-x));
}

/*
 * The normal distribution: Phi(-|x|) is e^(-x^2 / 2) times a function that hardly changes, and Phi(x) = 1 - Phi(-x). So
 * small results keep their digits, too. In float, that function is t P(t) with t = 1 / (1 + 0.3 |x|), as in Abramowitz,
 * Stegun, 1964, 7.1.26. P is a Chebyshev fit for |x| <= 14; Phi(-15) is 0 in float. Its error is 5e-9 of Phi.
 */
static inline vec normal_vec(vec x)
{
#if REAL_BITS == 64
    vec y = x;
    for (int lane = 0; lane < LANES; lane++)
        y[lane] = erfc(-x[lane] * 0.70710678118654752440) / 2;
    return y;
#else
    static const REAL coefficient[] = {-0.02091435973f, 0.1140402721f,  -0.2320384829f, 0.196940677f,  -0.08374254902f,
                                       0.09848074018f,  0.07758906438f, 0.1104051798f,  0.1195517632f, 0.1196876931f};
    const vec a = min_vec(abs_vec(x), splat(15)), t = 1 / fma_scalars(a, 0.3f, 1);
    vec p = splat(coefficient[0]);
    for (size_t c = 1; c < sizeof coefficient / sizeof *coefficient; c++)
        p = fma_vec(p, t, splat(coefficient[c]));
    /* e^(-a^2 / 2), with the rounding error of the square as a second factor where the CPU has fused multiply-add. */
    const vec square = a * a, low = fma_vec(a, a, -square);
    const vec tail = exp_vec(square * -0.5f) * fma_vec(low, splat(-0.5f), splat(1)) * t * p;
    return blend(x > 0, 1 - tail, tail);
#endif
}

static inline vec act_vec(attn_activation activation, vec x)
{
    switch (activation) {
    case ATTN_ACTIVATION_RELU:
        return max_vec(splat(0), x); /* in this order of arguments NaN stays NaN */
    case ATTN_ACTIVATION_GELU:
        return x * normal_vec(x);
    case ATTN_ACTIVATION_GELU_TANH: { /* (1 + tanh u) / 2 = sigmoid(2 u), with 2 u = x (linear + cubic x^2) */
        const REAL linear = (REAL)1.59576912160573071176, cubic = (REAL)0.0713548162726002527220;
        return x * sigmoid_vec(x * fma_scalars(x * x, cubic, linear));
    }
    case ATTN_ACTIVATION_QUICK_GELU:
        return x * sigmoid_vec(x * (REAL)1.702);
    case ATTN_ACTIVATION_SILU:
        return x * sigmoid_vec(x);
    case ATTN_ACTIVATION_NONE:
        break;
    }
    return x;
}

ALWAYS_INLINE void activate_all(const attn_activation activation, size_t n, const REAL *x, const REAL *times, REAL *y)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vec a = act_vec(activation, load(x + i));
        store(y + i, times == NULL ? a : a * load(times + i));
    }
    if (i == n)
        return;
    REAL rest[LANES] = {0}, factor[LANES] = {0};
    memcpy(rest, x + i, (n - i) * sizeof *rest);
    if (times != NULL)
        memcpy(factor, times + i, (n - i) * sizeof *factor);
    const vec a = act_vec(activation, load(rest));
    store(rest, times == NULL ? a : a * load(factor));
    memcpy(y + i, rest, (n - i) * sizeof *rest);
}

/* A loop for each activation: the choice is outside of it. */
static void activate(attn_activation activation, size_t n, const void *x, const void *times, void *y)
{
    switch (activation) {
    case ATTN_ACTIVATION_RELU:
        activate_all(ATTN_ACTIVATION_RELU, n, x, times, y);
        break;
    case ATTN_ACTIVATION_GELU:
        activate_all(ATTN_ACTIVATION_GELU, n, x, times, y);
        break;
    case ATTN_ACTIVATION_GELU_TANH:
        activate_all(ATTN_ACTIVATION_GELU_TANH, n, x, times, y);
        break;
    case ATTN_ACTIVATION_QUICK_GELU:
        activate_all(ATTN_ACTIVATION_QUICK_GELU, n, x, times, y);
        break;
    case ATTN_ACTIVATION_SILU:
        activate_all(ATTN_ACTIVATION_SILU, n, x, times, y);
        break;
    case ATTN_ACTIVATION_NONE:
        break;
    }
}

#endif
