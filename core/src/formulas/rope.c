/* rope.c: rotary position embeddings: frequencies under every scaling, and the rotation of one head. */
#include "attn/rope.h"

#include <math.h>
#include <string.h>

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

/* ---- the rotation ---- */

/* The indices of the two numbers of pair i: i * step and i * step + apart. */
struct places {
    size_t step, apart;
};

static struct places places_of(bool is_interleaved, size_t dim)
{
    return is_interleaved ? (struct places){2, 1} : (struct places){1, dim / 2};
}

static void turn_f32(struct places from, struct places to, size_t pairs, const float *restrict cos,
                     const float *restrict sin, float sign, const float *restrict x, float *restrict y)
{
    for (size_t i = 0; i < pairs; i++) {
        const float x1 = x[i * from.step], x2 = x[i * from.step + from.apart], s = sign * sin[i];
        y[i * to.step] = x1 * cos[i] - x2 * s;
        y[i * to.step + to.apart] = x2 * cos[i] + x1 * s;
    }
}

static void turn_f64(struct places from, struct places to, size_t pairs, const double *restrict cos,
                     const double *restrict sin, double sign, const double *restrict x, double *restrict y)
{
    for (size_t i = 0; i < pairs; i++) {
        const double x1 = x[i * from.step], x2 = x[i * from.step + from.apart], s = sign * sin[i];
        y[i * to.step] = x1 * cos[i] - x2 * s;
        y[i * to.step + to.apart] = x2 * cos[i] + x1 * s;
    }
}

/* Layout halves for x and y, written so that the compiler sees unit strides. */
static void turn_halves_f32(size_t h, const float *restrict cos, const float *restrict sin, float sign,
                            const float *restrict x, float *restrict y)
{
    for (size_t i = 0; i < h; i++) {
        y[i] = x[i] * cos[i] - x[i + h] * (sign * sin[i]);
        y[i + h] = x[i + h] * cos[i] + x[i] * (sign * sin[i]);
    }
}

void attn_rope_turn(attn_rope_layout layout, attn_dtype compute, size_t d_k, size_t dim, const void *cos,
                    const void *sin, bool inverse, const void *x, void *y)
{
    const size_t element = attn_dtype_bytes(compute);
    struct places from = places_of(layout != ATTN_ROPE_HALF, dim), to = places_of(layout == ATTN_ROPE_INTERLEAVED, dim);
    if (inverse) {
        const struct places swapped = from;
        from = to;
        to = swapped;
    }
    if (compute == ATTN_F32 && layout == ATTN_ROPE_HALF)
        turn_halves_f32(dim / 2, cos, sin, inverse ? -1 : 1, x, y);
    else if (compute == ATTN_F32)
        turn_f32(from, to, dim / 2, cos, sin, inverse ? -1 : 1, x, y);
    else
        turn_f64(from, to, dim / 2, cos, sin, inverse ? -1 : 1, x, y);
    memcpy((char *)y + dim * element, (const char *)x + dim * element, (d_k - dim) * element);
}
