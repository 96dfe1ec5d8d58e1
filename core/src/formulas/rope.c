/* rope.c: rotary position embeddings: the frequencies under every scaling. */
#include "attn/rope.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

const char *attn_rope_type_name(attn_rope_type type)
{
    static const char *const names[] = {
#define ROPE_TYPE_NAME(code, name) name,
        ATTN_ROPE_TYPE_LIST(ROPE_TYPE_NAME)
#undef ROPE_TYPE_NAME
    };
    return names[type];
}

/* ---- frequencies ---- */

/* The two lengths and the factor of a scaling, with defaults for missing ones. */
struct resolved {
    double theta, original, most, factor;
};

static double or_else(double given, double otherwise)
{
    return given != 0 ? given : otherwise;
}

static struct resolved resolve(const attn_rope *rope)
{
    const attn_rope_scaling *s = &rope->scaling;
    struct resolved r = {.theta = or_else(rope->theta, ATTN_ROPE_THETA)};
    r.original = or_else(s->original_max_position_embeddings, s->max_position_embeddings);
    r.most = or_else(s->max_position_embeddings, s->original_max_position_embeddings);
    r.factor = or_else(s->factor, r.original > 0 ? r.most / r.original : 1);
    return r;
}

static void plain(double theta, size_t dim, double *w)
{
    for (size_t i = 0; i < dim / 2; i++)
        w[i] = 1 / pow(theta, (double)(2 * i) / (double)dim);
}

static void divide(double factor, size_t pairs, double *w)
{
    for (size_t i = 0; i < pairs; i++)
        w[i] /= factor;
}

static double dynamic_theta(const struct resolved *r, size_t dim, double length)
{
    double longest = length > r->most ? length : r->most;
    return r->theta * pow(r->factor * longest / r->most - (r->factor - 1), (double)dim / (double)(dim - 2));
}

/* The real-valued index of the pair that makes this many rotations within the original length. */
static double pair_of_turns(const struct resolved *r, size_t dim, double turns)
{
    return (double)dim * log(r->original / (turns * 2 * PI)) / (2 * log(r->theta));
}

static void yarn(const attn_rope *rope, const struct resolved *r, size_t dim, double *w)
{
    const attn_rope_scaling *s = &rope->scaling;
    double low = pair_of_turns(r, dim, or_else(s->beta_fast, 32)),
           high = pair_of_turns(r, dim, or_else(s->beta_slow, 1));
    if (!s->keeps_fraction) {
        low = floor(low);
        high = ceil(high);
    }
    low = low > 0 ? low : 0;
    high = high < (double)dim - 1 ? high : (double)dim - 1;
    if (low == high)
        high += 0.001; /* avoids a division by 0: the ramp becomes a step */
    for (size_t i = 0; i < dim / 2; i++) {
        double ramp = ((double)i - low) / (high - low);
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        w[i] = w[i] / r->factor * ramp + w[i] * (1 - ramp);
    }
}

static double yarn_mscale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

static double yarn_attention(const attn_rope_scaling *s, const struct resolved *r)
{
    if (s->attention_factor != 0)
        return s->attention_factor;
    if (s->mscale != 0 && s->mscale_all_dim != 0)
        return yarn_mscale(r->factor, s->mscale) / yarn_mscale(r->factor, s->mscale_all_dim);
    return yarn_mscale(r->factor, 1);
}

static double longrope_attention(const attn_rope_scaling *s, const struct resolved *r)
{
    if (s->attention_factor != 0)
        return s->attention_factor;
    return r->factor <= 1 ? 1 : sqrt(1 + log(r->factor) / log(r->original));
}

static void longrope(const attn_rope_scaling *s, const struct resolved *r, size_t pairs, double length, double *w)
{
    const attn_tensor *factors = length > r->original ? s->long_factor : s->short_factor;
    for (size_t i = 0; i < pairs; i++)
        w[i] /= ((const double *)factors->data)[i];
}

static void llama3(const attn_rope_scaling *s, const struct resolved *r, size_t pairs, double *w)
{
    for (size_t i = 0; i < pairs; i++) {
        double wavelength = 2 * PI / w[i];
        double share = (r->original / wavelength - s->low_freq_factor) / (s->high_freq_factor - s->low_freq_factor);
        if (wavelength > r->original / s->low_freq_factor)
            w[i] /= r->factor;
        else if (wavelength >= r->original / s->high_freq_factor)
            w[i] = (1 - share) * w[i] / r->factor + share * w[i];
    }
}

static void proportional(const attn_rope_scaling *s, size_t pairs, double *w)
{
    size_t turning = (size_t)(or_else(s->partial_rotary_factor, 1) * (double)pairs);
    divide(or_else(s->factor, 1), pairs, w);
    for (size_t i = turning; i < pairs; i++)
        w[i] = 0;
}

double attn_rope_frequencies(const attn_rope *rope, size_t dim, double length, double *w)
{
    const struct resolved r = resolve(rope);
    const attn_rope_scaling *s = &rope->scaling;
    plain(s->type == ATTN_ROPE_DYNAMIC ? dynamic_theta(&r, dim, length) : r.theta, dim, w);
    switch (s->type) {
    case ATTN_ROPE_DEFAULT:
    case ATTN_ROPE_DYNAMIC:
        break;
    case ATTN_ROPE_LINEAR:
        divide(r.factor, dim / 2, w);
        break;
    case ATTN_ROPE_YARN:
        yarn(rope, &r, dim, w);
        return yarn_attention(s, &r);
    case ATTN_ROPE_LONGROPE:
        longrope(s, &r, dim / 2, length, w);
        return longrope_attention(s, &r);
    case ATTN_ROPE_LLAMA3:
        llama3(s, &r, dim / 2, w);
        break;
    case ATTN_ROPE_PROPORTIONAL:
        proportional(s, dim / 2, w);
        break;
    }
    return 1;
}
