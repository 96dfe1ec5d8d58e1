/*
 * accuracy.c: how far attention in float32 is from the same in double, over random and adversarial inputs.
 *
 *     accuracy FILE      a minute or so; writes a table as Markdown, ends with 1 when the bound was broken
 *
 * Every output is compared, of every kernel of this machine, with equation 1 in double on the same float32 inputs. The
 * bound and its derivation are what write_head and write_tail put into the file: docs/accuracy.md.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/multihead.h"
#include "random.h"

enum { KEYS_MAX = 16384, QUERIES_MAX = 48, FEATURES_MAX = 1024, ROOM = 1 << 28 };

enum { CHAIN = 64 /* the numbers that a kernel adds one after the other, of a score and of the values */ };

static const double roundoff = 0x1p-24, bf16_roundoff = 0x1p-8;

typedef enum {
    NORMAL,
    UNIFORM,
    LARGE,
    HUGE_SCORES,
    TIES,
    TWO_KEYS,
    RISING,
    OFFSET_VALUES,
    ALTERNATING,
    MEANS,
    EQUALS,
    CAUSAL,
    CAPPED,
    BIASED,
    CANCELLING,
    ONE_PRODUCT,
    TWO_PRODUCTS,
    TIED_VALUES,
    LOST_VALUES,
    TIED_SCORES,
    LOST_SCORES,
    RISING_SLOWLY,
    FAMILIES
} family;

static const char *const families[FAMILIES] = {
    [NORMAL] = "normal numbers",
    [UNIFORM] = "numbers from 0 to 1, as in ONNX's test data",
    [LARGE] = "large scores: queries and keys 5 times as large",
    [HUGE_SCORES] = "scores of thousands: queries and keys 60 times as large",
    [TIES] = "near ties: all keys alike but for a millionth, large scores",
    [TWO_KEYS] = "near ties: two keys alike but for an ulp far above all others",
    [RISING] = "scores that rise from key to key, so that every tile has a new maximum",
    [OFFSET_VALUES] = "values of 1000 and a little",
    [ALTERNATING] = "values that cancel: + and - of equal weights",
    [MEANS] = "equal weights: queries of 0, values from 0 to 1",
    [EQUALS] = "equal weights of equal values: each sum adds one number again and again",
    [CAUSAL] = "normal numbers under a causal mask",
    [CAPPED] = "large scores under a softcap of 5",
    [BIASED] = "normal numbers and a bias from -50 to 50",
    [CANCELLING] = "scores that cancel: features in pairs of opposite products, 25 times as large as their sum",
    [ONE_PRODUCT] = "scores that add one product again and again: each query and each key is one number",
    [TWO_PRODUCTS] = "the same, of two keys far above all others and with opposite values",
    [TIED_VALUES] = "equal weights of values near 1, each chosen so that its addition rounds up the most",
    [LOST_VALUES] = "equal weights of one value of 1 and others of half its ulp, which each addition loses",
    [TIED_SCORES] = "two keys, the products of one chosen so that each addition rounds up, of the other down",
    [LOST_SCORES] = "two keys of one large product and many of half its ulp: lost in one, doubled in the other",
    [RISING_SLOWLY] = "the maximum rises a little in every tile, so that the sum is rescaled again and again",
};

/* Families of compute bfloat16: those with scores so small that its bound says something. */
static const family bf16_families[] = {NORMAL, UNIFORM, OFFSET_VALUES, MEANS, EQUALS, CAUSAL, CANCELLING, LOST_VALUES};
enum { BF16_FAMILIES = sizeof bf16_families / sizeof *bf16_families };

typedef struct {
    size_t queries, keys, features, seeds;
} shape;

static const shape shapes[] = {
    {4, 64, 16, 100},   {16, 512, 64, 40},    {16, 512, 128, 30},    {48, 1000, 80, 4},
    {16, 512, 256, 10}, {4, KEYS_MAX, 64, 4}, {16, KEYS_MAX, 64, 3}, {16, 4096, 128, 4},
    {4, 512, 256, 10},  {16, 512, 576, 6},    {4, 512, 1024, 4},     {13, 512, 1024, 4},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The worst of something: errors as parts of each bound, and where it was. */
typedef struct {
    double error, of_bound; /* in u sum p |v|; of the bound */
    double largest_score;
    size_t outputs, at_shape, at_seed;
    const char *at_kernel;
} worst;

typedef struct {
    float q[QUERIES_MAX * FEATURES_MAX], k[KEYS_MAX * FEATURES_MAX], v[KEYS_MAX * FEATURES_MAX];
    float bias[QUERIES_MAX * KEYS_MAX];
    double score[QUERIES_MAX * KEYS_MAX], terms[QUERIES_MAX]; /* exact; the largest scale sum |q k| of each row */
    double exact[QUERIES_MAX * FEATURES_MAX], size[QUERIES_MAX * FEATURES_MAX]; /* sum p v, sum p |v| */
    double all_max;                                                             /* |score| */
    bool is_bf16;
    double rises[QUERIES_MAX]; /* tiles with a new maximum, beyond the first */
} problem;

static void die(const char *what)
{
    fprintf(stderr, "accuracy: %s\n", what);
    exit(2);
}

/* ---- inputs ---- */

static void fill_normal(random_source *random, float *numbers, size_t count, double size)
{
    for (size_t n = 0; n < count; n++)
        numbers[n] = (float)(size * random_normal(random));
}

static void fill_uniform(random_source *random, float *numbers, size_t count, double from, double to)
{
    for (size_t n = 0; n < count; n++)
        numbers[n] = (float)(from + (to - from) * random_uniform(random));
}

/* Key j is base * factor(j), and every feature off by a part of noise. */
static void fill_alike(random_source *random, problem *p, const shape *n, bool rises, double noise)
{
    for (size_t j = 0; j < n->keys; j++)
        for (size_t f = 0; f < n->features; f++) {
            const double factor = rises ? (double)(j + 1) / (double)n->keys : 1;
            p->k[j * n->features + f] = (float)((double)p->q[f] * factor * (1 + noise * random_normal(random)));
        }
}

/* The scores of query 0 with key pairs stand out; both keys of a pair differ by an ulp of one feature. */
static void fill_two_keys(problem *p, const shape *n)
{
    const size_t d = n->features;
    for (size_t f = 0; f < d; f++)
        p->k[f] = p->k[(n->keys - 1) * d + f] = 3 * p->q[f];
    p->k[(n->keys - 1) * d] = nextafterf(p->k[0], 100);
}

/* Features come in pairs (x, x) of queries and (y, -y + little) of keys. */
static void fill_cancelling(random_source *random, problem *p, const shape *n)
{
    const size_t d = n->features;
    for (size_t i = 0; i < n->queries; i++)
        for (size_t f = 0; f + 1 < d; f += 2)
            p->q[i * d + f + 1] = p->q[i * d + f];
    for (size_t j = 0; j < n->keys; j++)
        for (size_t f = 0; f + 1 < d; f += 2)
            p->k[j * d + f + 1] = (float)(-(double)p->k[j * d + f] * (1 + 0.04 * random_normal(random)));
}

/* Every feature of a query is one number, and so is every feature of a key: a score adds one product again and again.
 */
static void fill_one_number(random_source *random, float *rows, size_t count, size_t features, double from, double to)
{
    for (size_t i = 0; i < count; i++)
        for (size_t f = 0; f < features; f++)
            rows[i * features + f] = f > 0 ? rows[i * features] : (float)(from + (to - from) * random_uniform(random));
}

/* The first and the last key stand out, nearly alike, and their values are opposite. */
static void fill_opposite(problem *p, const shape *n)
{
    const size_t d = n->features, last = (n->keys - 1) * d;
    for (size_t j = 1; j + 1 < n->keys; j++)
        for (size_t f = 0; f < d; f++)
            p->k[j * d + f] = -p->k[j * d + f];
    for (size_t f = 0; f < d; f++)
        p->v[last + f] = -p->v[f];
}

/*
 * The next number of a chain of float32 additions onto sum: of the 16 floats from base on, the one whose addition
 * rounds the most in the direction of sign.
 */
static float next_tied(float sum, float base, double sign)
{
    float best = base;
    double most = -INFINITY;
    for (int k = 0; k < 16; k++) {
        const float x = base * (1 + (float)k * 0x1p-23f), after = sum + x;
        const double gain = sign * ((double)after - ((double)sum + (double)x));
        if (sum != 0 && gain > most) {
            most = gain;
            best = x;
        }
    }
    return best;
}

/* Chains of numbers, one after the other; what they come to is left as it falls. */
static void fill_tied(float *numbers, size_t count, size_t step, float base, double sign)
{
    float sum = 0;
    for (size_t at = 0; at < count; at++) {
        sum = at % CHAIN == 0 ? 0 : sum;
        numbers[at * step] = next_tied(sum, base, sign);
        sum += numbers[at * step];
    }
}

/*
 * A large number first and little ones behind: each of them, or behind the first sum each sum of them, is half an ulp of
 * it, so that an addition loses it or, with a little more than half, doubles it.
 */
static void fill_lost(float *numbers, size_t count, size_t step, float large, float little)
{
    for (size_t at = 0; at < count; at++)
        numbers[at * step] = at == 0 ? large : at < CHAIN ? little : little / CHAIN;
}

/* All queries 1; the first key and the last stand out by the sums that make_key gives them, with values of 1 and 0. */
static void fill_two_sums(problem *p, family which, const shape *n)
{
    const size_t d = n->features, last = (n->keys - 1) * d;
    for (size_t at = 0; at < n->queries * d; at++)
        p->q[at] = 1;
    for (size_t at = 0; at < n->keys * d; at++) {
        p->k[at] = -4;
        p->v[at] = at < d ? 1 : 0;
    }
    if (which == TIED_SCORES) {
        fill_tied(p->k, d, 1, 4, 1);
        fill_tied(p->k + last, d, 1, 4.125f, -1);
        return;
    }
    const float large = (float)(32 * sqrt((double)d)), ulp = nextafterf(large, INFINITY) - large;
    fill_lost(p->k, d, 1, large, ulp / 2);
    fill_lost(p->k + last, d, 1, large * 1.1f, ulp / 2 * 1.01f);
}

/* Every column alike. */
static void fill_values(problem *p, family which, const shape *n)
{
    memset(p->q, 0, n->queries * n->features * sizeof *p->q);
    for (size_t f = 0; f < n->features; f++)
        if (which == TIED_VALUES)
            fill_tied(p->v + f, n->keys, n->features, 1, 1);
        else
            fill_lost(p->v + f, n->keys < 512 ? n->keys : 512, n->features, 1, 0x1p-24f);
}

/* The first key of each tile scores a little more than that of the tile before, all others far less. */
static void fill_rising_slowly(problem *p, const shape *n)
{
    for (size_t at = 0; at < n->queries * n->features; at++)
        p->q[at] = at % n->features == 0 ? 1 : 0;
    for (size_t j = 0; j < n->keys; j++)
        p->k[j * n->features] = j % 512 == 0 ? (float)(j / 512) * 0.3f : -1000;
}

static void fill(random_source *random, problem *p, family which, const shape *n)
{
    const size_t q = n->queries * n->features, k = n->keys * n->features;
    const double size = which == LARGE || which == CAPPED ? 5 : which == HUGE_SCORES ? 60 : which == TIES ? 3 : 1;
    fill_normal(random, p->q, q, size);
    fill_normal(random, p->k, k, size);
    fill_normal(random, p->v, k, 1);
    if (which == UNIFORM) {
        fill_uniform(random, p->q, q, 0, 1);
        fill_uniform(random, p->k, k, 0, 1);
        fill_uniform(random, p->v, k, 0, 1);
    }
    if (which == MEANS || which == EQUALS) {
        memset(p->q, 0, q * sizeof *p->q);
        fill_uniform(random, p->v, k, 0, 1);
    }
    for (size_t at = n->features; at < k && which == EQUALS; at++)
        p->v[at] = p->v[at - n->features];
    if (which == TIES || which == RISING || which == ALTERNATING)
        fill_alike(random, p, n, which == RISING, which == TIES ? 1e-6 : which == RISING ? 0.01 : 0);
    if (which == TWO_KEYS)
        fill_two_keys(p, n);
    if (which == ONE_PRODUCT || which == TWO_PRODUCTS) {
        fill_one_number(random, p->q, n->queries, n->features, 1, 4);
        fill_one_number(random, p->k, n->keys, n->features, 1, 1.1);
    }
    if (which == TWO_PRODUCTS)
        fill_opposite(p, n);
    if (which == TIED_SCORES || which == LOST_SCORES)
        fill_two_sums(p, which, n);
    if (which == TIED_VALUES || which == LOST_VALUES)
        fill_values(p, which, n);
    if (which == RISING_SLOWLY)
        fill_rising_slowly(p, n);
    if (which == CANCELLING)
        fill_cancelling(random, p, n);
    if (which == BIASED)
        fill_uniform(random, p->bias, n->queries * n->keys, -50, 50);
    for (size_t at = 0; at < k && which == OFFSET_VALUES; at++)
        p->v[at] += 1000;
    for (size_t at = 0; at < k && which == ALTERNATING; at++)
        p->v[at] = at / n->features % 2 == 0 ? fabsf(p->v[at]) : -fabsf(p->v[at - n->features]);
}

/* ---- equation 1 in double ---- */

static double score_of(const problem *p, family which, const shape *n, size_t i, size_t j, double *terms)
{
    double sum = 0, sizes = 0;
    for (size_t f = 0; f < n->features; f++) {
        const double product = (double)p->q[i * n->features + f] * (double)p->k[j * n->features + f];
        sum += product;
        sizes += fabs(product);
    }
    const double scale = 1 / sqrt((double)n->features);
    *terms = scale * sizes;
    sum *= scale;
    if (which == CAPPED)
        sum = 5 * tanh(sum / 5);
    if (which == BIASED) {
        sum += (double)p->bias[i * n->keys + j];
        *terms += fabs((double)p->bias[i * n->keys + j]);
    }
    return sum;
}

static size_t keys_of(family which, const shape *n, size_t i)
{
    return which == CAUSAL ? n->keys - n->queries + i + 1 : n->keys;
}

static void solve_row(problem *p, const shape *n, size_t i, size_t keys)
{
    const double *score = &p->score[i * n->keys];
    double *exact = &p->exact[i * n->features], *size = &p->size[i * n->features], top = -INFINITY, total = 0;
    for (size_t j = 0; j < keys; j++)
        top = fmax(top, score[j]);
    memset(exact, 0, n->features * sizeof *exact);
    memset(size, 0, n->features * sizeof *size);
    for (size_t j = 0; j < keys; j++) {
        const double weight = exp(score[j] - top);
        total += weight;
        for (size_t f = 0; f < n->features && weight > 0; f++) {
            exact[f] += weight * (double)p->v[j * n->features + f];
            size[f] += weight * fabs((double)p->v[j * n->features + f]);
        }
    }
    for (size_t f = 0; f < n->features; f++) {
        exact[f] /= total;
        size[f] /= total;
    }
}

static double count_rises(const double *score, size_t keys)
{
    double rises = -1, top = -INFINITY;
    for (size_t first = 0; first < keys; first += 512) {
        const double before = top;
        for (size_t j = first; j < keys && j < first + 512; j++)
            top = fmax(top, score[j]);
        rises += top > before;
    }
    return fmax(rises, 0);
}

static void solve(problem *p, family which, const shape *n)
{
    p->all_max = 0;
    for (size_t i = 0; i < n->queries; i++) {
        const size_t keys = keys_of(which, n, i);
        p->terms[i] = p->rises[i] = 0;
        for (size_t j = 0; j < keys; j++) {
            double terms;
            p->score[i * n->keys + j] = score_of(p, which, n, i, j, &terms);
            p->all_max = fmax(p->all_max, fabs(p->score[i * n->keys + j]));
            p->terms[i] = fmax(p->terms[i], terms);
        }
        p->rises[i] = count_rises(&p->score[i * n->keys], keys);
        solve_row(p, n, i, keys);
    }
}

/* ---- the core ---- */

static const float *run(problem *p, family which, const shape *n, const attn_kernel *kernel, attn_arena *arena)
{
    attn_tensor query = attn_tensor_view(p->q, ATTN_F32, 2, (size_t[]){n->queries, n->features});
    attn_tensor key = attn_tensor_view(p->k, ATTN_F32, 2, (size_t[]){n->keys, n->features});
    attn_tensor value = attn_tensor_view(p->v, ATTN_F32, 2, (size_t[]){n->keys, n->features});
    attn_tensor bias = attn_tensor_view(p->bias, ATTN_F32, 2, (size_t[]){n->queries, n->keys});
    attn_request request = {.inputs = {.query = &query, .key = &key, .value = &value}};
    request.masks.causal = which == CAUSAL;
    request.masks.bias = which == BIASED ? &bias : NULL;
    request.options.softcap = which == CAPPED ? 5 : 0;
    request.options.want = ATTN_STEP_BIT(ATTN_STEP_OUTPUT);
    request.options.bf16_products = p->is_bf16;
    attn_plan plan;
    attn_result result;
    attn_error err;
    const attn_runtime runtime = attn_runtime_serial(kernel);
    if (attn_plan_make(&request, &plan, &err) != ATTN_OK ||
        attn_plan_run(&plan, NULL, &runtime, arena, &result, &err) != ATTN_OK)
        die(err.message);
    return result.step[ATTN_STEP_OUTPUT].data;
}

/* See write_tail. */
static double bound_of(const problem *p, const shape *n, size_t i)
{
    if (p->is_bf16)
        return bf16_roundoff / roundoff * (4 * p->terms[i] + 2) + 2 * ((double)n->features + 4) * p->terms[i] + 572 +
               7 * p->rises[i];
    return 176 * p->terms[i] + 105 + 7 * p->rises[i];
}

static void compare(const problem *p, const shape *n, const float *out, const worst *place, worst *found)
{
    for (size_t at = 0; at < n->queries * n->features; at++) {
        const size_t i = at / n->features;
        const double size = p->size[at],
                     off = size == 0 && out[at] == 0 ? 0 : fabs((double)out[at] - p->exact[at]) / (roundoff * size);
        if (!(off / bound_of(p, n, i) <= found->of_bound)) { /* NaN is the worst */
            found->of_bound = off / bound_of(p, n, i);
            found->at_shape = place->at_shape;
            found->at_seed = place->at_seed;
            found->at_kernel = place->at_kernel;
        }
        found->error = fmax(found->error, off);
    }
    found->largest_score = fmax(found->largest_score, p->all_max);
    found->outputs += n->queries * n->features;
}

static void measure(problem *p, family which, size_t at_shape, worst *found)
{
    const shape *n = &shapes[at_shape];
    const size_t seeds = which >= TIED_VALUES ? 1 : n->seeds; /* nothing random in these */
    for (size_t seed = 1; seed <= seeds; seed++) {
        random_source random = random_seeded(seed * 1000 + at_shape * 100 + which);
        fill(&random, p, which, n);
        solve(p, which, n);
        const attn_kernel *kernel;
        for (size_t at = 0; (kernel = attn_kernel_at(at)) != NULL; at++) {
            attn_arena *arena = attn_arena_create(ROOM);
            if (arena == NULL)
                die("no memory");
            const worst place = {.at_shape = at_shape, .at_seed = seed, .at_kernel = attn_kernel_name(kernel)};
            compare(p, n, run(p, which, n, kernel, arena), &place, found);
            attn_arena_destroy(arena);
        }
    }
}

/* ---- the table ---- */

static void write_head(FILE *file)
{
    fputs(
        "# Accuracy\n\n"
        "On normal numbers a float32 output differs from the exact one by at most 3e-7 times the weighted mean of "
        "|v|: 5 of the\nunits of the table below. For every input there is a bound, which is larger.\n\n"
        "What `make accuracy` wrote: attention in float32 against equation 1 in double on the same inputs, for every\n"
        "output of every kernel of the machine it ran on (",
        file);
    const attn_kernel *kernel;
    for (size_t at = 0; (kernel = attn_kernel_at(at)) != NULL; at++)
        fprintf(file, "%s%s", at > 0 ? ", " : "", attn_kernel_name(kernel));
    fputs("). Lengths up to 16384 keys and 1024 features; the\n"
          "shapes are those of `tests/unit/core/accuracy.c`.\n\n"
          "    |out - exact| <= u (176 S + 105 + 7 T) sum p |v|\n\n"
          "    u = 2^-24, half an ulp of 1\n"
          "    S = the largest |scale| sum |q k| + |bias| over the keys of the row\n"
          "    T = how often a tile of 512 keys has a score above those of all tiles before it\n\n"
          "This holds for every input up to 1024 features and any number of keys, in first order of u; the derivation "
          "is below.\nErrors are in units of u sum p |v|: 1 is half an ulp of a result without cancelling values. \"Of "
          "the bound\" is the\nlargest error as a part of the bound of its row; 1 would break it, and `make accuracy` "
          "fails.\n\n"
          "| inputs | outputs | largest score | largest error | of the bound | worst at |\n"
          "| --- | --- | --- | --- | --- | --- |\n",
          file);
}

static void write_row(FILE *file, const char *name, const worst *w)
{
    const shape *n = &shapes[w->at_shape];
    fprintf(file, "| %s | %zu | %.3g | %.3g | %.3f | %zu queries, %zu keys, %zu features, seed %zu, %s |\n", name,
            w->outputs, w->largest_score, w->error, w->of_bound, n->queries, n->keys, n->features, w->at_seed,
            w->at_kernel);
}

/* Writes a row for a family; returns the worst of it. Errors of bfloat16 are in its own roundoff. */
static worst write_family(FILE *file, problem *p, family which, bool is_bf16)
{
    worst found = {.of_bound = -1};
    p->is_bf16 = is_bf16;
    for (size_t s = 0; s < SHAPES; s++)
        measure(p, which, s, &found);
    found.error *= is_bf16 ? roundoff / bf16_roundoff : 1;
    write_row(file, families[which], &found);
    printf("accuracy: %5.3f of the bound: %s%s\n", found.of_bound, families[which], is_bf16 ? ", bfloat16" : "");
    fflush(stdout);
    return found;
}

static void write_derivation(FILE *file)
{
    fputs(
        "\nRandom inputs stay far below the bound, because roundings of either sign cancel. The last five families are "
        "made so that\nthey do not.\n\n"
        "## Derivation\n\n"
        "An addition in float32 is off by at most u times its result. A sum of n terms, added one after the other, is "
        "therefore\noff by at most n u times the sum of their sizes, and no less in the worst case: behind one large "
        "term each small one can\nbe half an ulp of it, which the addition loses. Sums of sums keep n small; n counts "
        "the roundings of one term on its way.\n\n"
        "| sum | levels | roundings of a term |\n"
        "| --- | --- | --- |\n"
        "| score, up to 64 features | 64 products, times scale | 64 + 1 |\n"
        "| score, up to 1024 features | 64 products, times scale, 16 sums | 64 + 1 + 15 |\n"
        "| score, few queries | 16 products a lane, 4 additions of lanes, up to 4 runs, up to 15 features that fill no "
        "vector, times scale | 16 + 4 + 3 + 15 + 1 |\n"
        "| values | 64 keys, 8 sums; tiles of 512 are added with what rounding leaves out | 64 + 7 |\n"
        "| weights | up to 16 vectors, 8 runs, the lanes of a vector; tiles as with values | 15 + 7 + 2 |\n\n"
        "The portable kernel of x86-64 rounds a product before it is added: one more of each score and value. Its "
        "vectors are\nshorter: with few queries (8 at most) a score takes 16 + 2 + 15 + 3 + 1 + 1. Sums of values over "
        "few queries are of 16\nkeys and 4 sums alone.\n\n"
        "1. A score is off by at most 81 u S, 82 with the rounding of scale, and 85 u S with two biases, of which that by "
        "distance is\n   rounded by itself. The subtraction of the maximum, and of one maximum from the next, is off by at "
        "most 2 u S in all. exp\n   turns both into a relative error of the weight.\n"
        "2. exp is off by at most 1.07 ulp, 2.14 u (`tests/unit/core/kernel/test_exp.c`).\n"
        "3. A relative error d of every weight, of any sign, moves the mean of the values by at most 2 d sum p |v|: "
        "once in the\n   numerator, once in the denominator. This makes 2 (85 + 2) u S < 176 u S, and 4.28 u of exp.\n"
        "4. The sum of the values is off by at most 72 u, that of the weights by 25 u. Adding what rounding left out, "
        "to both, and the\n   division are 3 u. This makes 72 + 25 + 3 + 4.28 < 105.\n"
        "5. A new maximum multiplies both sums by a power of e: 1 u each, and 2.14 u of exp, twice as in 3. This makes "
        "6.3 < 7.\n"
        "6. Few queries take splits of 2048 keys by themselves: a weight is multiplied up to 3 times for maxima that "
        "rise within its\n   split alone, and once when the split is merged, 25.2 u in all. Their sums of values are "
        "off by 20 u at most: 20 + 25 + 3 + 4.28 + 25.2 < 105.\n\n"
        "## compute: bfloat16\n\n"
        "`compute: \"bfloat16\"` rounds operands to bfloat16, by 2^-8 of a number at most, and sums in float32. S is that "
        "of the\nunrounded operands. Where 2^-8 S is far below 1:\n\n"
        "    |out - exact| <= (2^-8 (4 S + 2) + u (2 (d_k + 4) S + 572 + 7 T)) sum p |v|\n\n"
        "1. Rounding q and k moves a score by at most 2 2^-8 S, which counts twice, as in 3. above.\n"
        "2. Rounding v and the weights that multiply v moves each product by 2^-8 each. The sum of the weights takes "
        "them unrounded.\n"
        "3. A score is one sum of d_k products, off by d_k u S, and a tile is one sum of 512 keys. The other terms are "
        "those of float32.\n\n"
        "Errors are in units of 2^-8 sum p |v|, against equation 1 in double on the unrounded inputs:\n\n"
        "| inputs | outputs | largest score | largest error | of the bound | worst at |\n"
        "| --- | --- | --- | --- | --- | --- |\n",
        file);
}

static void write_tail(FILE *file)
{
    fputs(
        "\n## What it does not cover\n\n"
        "- Subnormal numbers: values, products or weights below 2^-126 have an absolute error, up to 2^-149 each.\n"
        "- Scores that cancel. S is the sum of the sizes: where products or a bias cancel, the bound is in proportion "
        "to them and\n  not to the score. `compute: float64` is the way out.\n"
        "- A softcap, sinks and dropout; the maps, lse and entropy.\n"
        "- A layer around the heads: projections add 256 products in a row, and errors of q, k and v come first.\n"
        "- Gradients: they take weights from a rounded lse, which is another u |lse| in each.\n"
        "- linear and performer, which have a bound of their own (below), and `compute: float64`.\n\n"
        "## linear and performer\n\n"
        "    linear      |out - exact| <= 195 u sum p |v|\n"
        "    performer   |out - exact| <= (265 + 290 S) u sum p |v|\n\n"
        "for heads of up to 256 features; S is the largest sum |P s| + |s|^2 / 2 + |c|. With phi(x) = x, sum p |v| is "
        "the sum of\nthe sizes of all products. `tests/unit/core/attention/test_feature_maps.c` compares every kernel "
        "with sums over pairs in double.\n\n"
        "| sum | levels | roundings of a term |\n"
        "| --- | --- | --- |\n"
        "| features | exp, of a query and of a key | 2.14 + 2.14 |\n"
        "| values over keys | 48 keys, 10 tiles; blocks of 480 keys are added with what rounding leaves out; the last "
        "block | 48 + 9 + 3 + 1 |\n"
        "| over features | 64 features, 4 sums | 64 + 3 |\n"
        "| divisor over keys | up to 12 vectors, the lanes of a vector, 10 tiles; blocks as above | 12 + 2 + 9 + 3 + 1 "
        "|\n"
        "| divisor over features | up to 16 vectors, 4 sums, the lanes of a vector | 16 + 3 + 2 |\n\n"
        "1. Values make 4.3 + 61 + 67 < 133, the divisor 4.3 + 27 + 21 < 57; eps and the division are 2. The portable "
        "kernel of x86-64\n   rounds products before they are added: 2 more.\n"
        "2. Under a causal mask the last keys of a query, up to 96, are taken pair by pair: 67 roundings over features "
        "and 48 + 2 over\n   keys, which is less. So do more of them, with 48 + 3.\n"
        "3. The exponent of performer is off by at most 72 u S, in a query and in a key. A relative error of every "
        "weight counts twice, as\n   in 3 above: 288 u S.\n",
        file);
}

int main(int count, char **arguments)
{
    if (count != 2)
        die("the name of the file to write is missing");
    attn_blas_use_one_thread();
    FILE *file = fopen(arguments[1], "w");
    problem *p = calloc(1, sizeof *p);
    if (file == NULL || p == NULL)
        die("no file or no memory");
    write_head(file);
    bool is_broken = false;
    for (int which = 0; which < FAMILIES; which++) {
        const worst found = write_family(file, p, (family)which, false);
        /* The second is the document's first sentence. */
        is_broken |= !(found.of_bound <= 1) || (which == NORMAL && !(found.error <= 5));
    }
    write_derivation(file);
    for (size_t which = 0; which < BF16_FAMILIES; which++)
        is_broken |= !(write_family(file, p, bf16_families[which], true).of_bound <= 1);
    write_tail(file);
    free(p);
    if (fclose(file) != 0)
        die("the file was not written");
    return is_broken ? 1 : 0;
}
