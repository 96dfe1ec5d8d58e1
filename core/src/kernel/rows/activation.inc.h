/*
 * activation.inc.h: the activations of a feed-forward network, elementwise. Part of a kernel.
 */
#ifndef ATTN_KERNEL_ROWS_ACTIVATION_INC_H
#define ATTN_KERNEL_ROWS_ACTIVATION_INC_H

#include "kernel/entries.h"
#include "kernel/vector/operations.inc.h"

/* 1 / (1 + e^-x). Small results keep their digits, because nothing cancels. */
static inline vec sigmoid_vec(vec x)
{
    return 1 / (1 + exp_vec(-x));
}

/*
 * The normal distribution: Phi(-|x|) is e^(-x^2 / 2) times a function that hardly changes, and Phi(x) = 1 - Phi(-x). So
 * small results keep their digits, too. That function is t P with t = 1 / (1 + c |x|), as in Abramowitz, Stegun, 1964,
 * 7.1.26, and P is a Chebyshev fit. In float it is a polynomial in t with c = 0.3, for |x| <= 14; Phi(-15) is 0 in float.
 * Its error is 5e-9 of Phi. In double c is 0.2, |x| is at most 39, where Phi is 0, and the error is 1e-17. There the
 * polynomial is in u = 1 - k |x| t, which goes from 1 to -1: t alone would lose digits of a small |x|.
 */
static inline vec normal_vec(vec x)
{
#if REAL_BITS == 64
    static const REAL coefficient[] = {
        -2.2937863485385516e-12, -3.4180959726983339e-11, 5.4184960252759534e-11,  4.3716321896236544e-10,
        -6.9970517834157948e-10, -3.7466789601538684e-09, 6.9655851373885324e-09,  3.2062658438429735e-08,
        -5.9025849674833508e-08, -3.1685246483098489e-07, 3.7129650729459806e-07,  3.5619703887307251e-06,
        8.9422245550069264e-07,  -3.8645513201865606e-05, -1.0487029417147945e-04, 1.7254972401872283e-04,
        2.2130755980400503e-03,  9.1945865951053337e-03,  2.5734013027088313e-02,  5.5443694420751271e-02,
        9.6797979149959253e-02,  1.4024520173287323e-01,  1.7033792891176728e-01};
    const vec a = min_vec(abs_vec(x), splat(39)), t = 1 / fma_scalars(a, 0.2, 1);
    const vec u = fma_vec(a * -0.45128205128205128, t, splat(1));
#else
    static const REAL coefficient[] = {-0.02091435973f, 0.1140402721f,  -0.2320384829f, 0.196940677f,  -0.08374254902f,
                                       0.09848074018f,  0.07758906438f, 0.1104051798f,  0.1195517632f, 0.1196876931f};
    const vec a = min_vec(abs_vec(x), splat(15)), t = 1 / fma_scalars(a, 0.3f, 1), u = t;
#endif
    vec p = splat(coefficient[0]);
    for (size_t c = 1; c < sizeof coefficient / sizeof *coefficient; c++)
        p = fma_vec(p, u, splat(coefficient[c]));
    /* e^(-a^2 / 2), with the rounding error of the square as a second factor where the CPU has fused multiply-add. */
    const vec square = a * a, low = fma_vec(a, a, -square);
    const vec tail = exp_vec(square * (REAL)-0.5) * fma_vec(low, splat((REAL)-0.5), splat(1)) * t * p;
    return blend(x > 0, 1 - tail, tail);
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

/* For one vector, which is not worth a copy of the code. */
static __attribute__((noinline)) vec act_once(attn_activation activation, vec x)
{
    return act_vec(activation, x);
}

/* The first n numbers of a vector, fewer than LANES; the others are 0. */
static inline vec load_part(const REAL *from, size_t n)
{
    vec x = {0};
    memcpy(&x, from, n * sizeof(REAL));
    return x;
}

static inline void store_part(REAL *to, size_t n, vec x)
{
    memcpy(to, &x, n * sizeof(REAL));
}

ALWAYS_INLINE void activate_all(const attn_activation activation, size_t n, const REAL *x, const REAL *times, REAL *y)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vec a = act_vec(activation, load(x + i));
        store(y + i, times == NULL ? a : a * load(times + i));
    }
    const vec a = act_once(activation, load_part(x + i, n - i));
    store_part(y + i, n - i, times == NULL ? a : a * load_part(times + i, n - i));
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

/* ---- the backward pass ---- */

/* An activation and its slope at the same place. */
struct active {
    vec y, slope;
};

/* y = x s and its slope, with s = 1 / (1 + e^-u) and du = du/dx. s (1 - s) is e / (1 + e)^2, where nothing cancels. */
static inline struct active times_sigmoid(vec x, vec u, vec du)
{
    const vec e = exp_vec(-abs_vec(u)), larger = 1 / (1 + e), s = blend(u < 0, e * larger, larger);
    return (struct active){x * s, s + x * (du * (e * larger * larger))};
}

/* Not a loop for each activation, as above: this one would be much code for little time. */
static __attribute__((noinline)) struct active act_back(attn_activation activation, vec x)
{
    switch (activation) {
    case ATTN_ACTIVATION_RELU:
        return (struct active){max_vec(splat(0), x), blend(x > 0, splat(1), splat(0))};
    case ATTN_ACTIVATION_GELU: { /* the slope of Phi is the density */
        const vec s = normal_vec(x), density = exp_vec(x * x * (REAL)-0.5) * (REAL)0.398942280401432677940;
        return (struct active){x * s, fma_vec(x, density, s)};
    }
    case ATTN_ACTIVATION_GELU_TANH: { /* beyond 30 s is 0 or 1; in this order of arguments NaN stays NaN */
        const REAL linear = (REAL)1.59576912160573071176, cubic = (REAL)0.0713548162726002527220;
        const vec a = min_vec(splat(30), max_vec(splat(-30), x)), square = a * a;
        struct active act =
            times_sigmoid(a, a * fma_scalars(square, cubic, linear), fma_scalars(square, 3 * cubic, linear));
        act.y = act_once(activation, x);
        return act;
    }
    case ATTN_ACTIVATION_QUICK_GELU:
        return times_sigmoid(x, x * (REAL)1.702, splat((REAL)1.702));
    case ATTN_ACTIVATION_SILU:
        return times_sigmoid(x, x, splat(1));
    case ATTN_ACTIVATION_NONE:
        break;
    }
    return (struct active){x, splat(1)};
}

/* At most LANES numbers from number i on. */
static inline void activate_lanes_back(const struct attn_activation_gradient *gradient, size_t i, size_t n)
{
    const REAL *up = (const REAL *)gradient->up + i, *gate = gradient->gate;
    REAL *grad_hidden = (REAL *)gradient->grad_hidden + i;
    const vec zero = {0}, grad = load_part(grad_hidden, n), x = load_part(up, n);
    if (gate == NULL) {
        store_part(grad_hidden, n, blend(grad == zero, zero, grad * act_back(gradient->activation, x).slope));
        return;
    }
    const struct active act = act_back(gradient->activation, load_part(gate + i, n));
    store_part(grad_hidden, n, blend(grad == zero, zero, grad * act.y));
    store_part((REAL *)gradient->grad_gate + i, n, blend(grad == zero, zero, grad * x * act.slope));
}

static void activate_back(const struct attn_activation_gradient *gradient)
{
    size_t i = 0;
    for (; i + LANES <= gradient->n; i += LANES)
        activate_lanes_back(gradient, i, LANES);
    activate_lanes_back(gradient, i, gradient->n - i);
}

#endif
