/* activation.c: the activations of a feed-forward network and their slopes. */
#include "formulas/activation.h"

#include <math.h>
#include <string.h>

#define ACTIVATION_NAME(code, name) [code] = name,
static const char *const NAMES[] = {ATTN_ACTIVATION_LIST(ACTIVATION_NAME)};
#undef ACTIVATION_NAME

const char *attn_activation_name(attn_activation activation)
{
    return NAMES[activation];
}

attn_activation attn_activation_from_name(const char *name)
{
    size_t activation = sizeof NAMES / sizeof NAMES[0] - 1;
    while (activation > ATTN_ACTIVATION_NONE && strcmp(name, NAMES[activation]) != 0)
        activation--;
    return (attn_activation)activation;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double attn_activation_at(attn_activation activation, double x, double *slope)
{
    const double root = 0.79788456080286535588, cubic = 0.044715; /* sqrt(2 / pi) */
    double y = 0, u, s;
    *slope = 0;
    switch (activation) {
    case ATTN_ACTIVATION_NONE:
        break;
    case ATTN_ACTIVATION_RELU:
        *slope = x > 0;
        y = x > 0 ? x : 0;
        break;
    case ATTN_ACTIVATION_GELU:
        s = erfc(-x * 0.70710678118654752440) / 2;
        *slope = s + x * exp(-x * x / 2) * root / 2;
        y = x * s;
        break;
    case ATTN_ACTIVATION_GELU_TANH:
        u = x > 30 ? 30 : x < -30 ? -30 : x; /* the same values beyond, without a power that overflows */
        s = sigmoid(2 * root * (u + cubic * u * u * u));
        *slope = s + u * s * (1 - s) * 2 * root * (1 + 3 * cubic * u * u);
        y = x * s;
        break;
    case ATTN_ACTIVATION_QUICK_GELU:
        s = sigmoid(1.702 * x);
        *slope = s + 1.702 * x * s * (1 - s);
        y = x * s;
        break;
    case ATTN_ACTIVATION_SILU:
        s = sigmoid(x);
        *slope = s + x * s * (1 - s);
        y = x * s;
        break;
    }
    return y;
}
