/*
 * accuracy.c: how far attention in float32 is from the same in double, over random and adversarial inputs.
 *
 *     accuracy FILE      about half a minute, alone on the machine; writes a table as Markdown, ends with 1 when the
 * bound was broken
 *
 * Every output is compared, of every kernel of this machine, with equation 1 in double on the same float32 inputs:
 *
 *     |out - exact| <= 8 u (1 + max_j |s_j|) sum_j p_j |v_j|,      u = 2^-24, s_j the scores of the row after scale
 *
 * A score is a sum of products, whose rounding errors are in proportion to scale sum |q k|. Where that is far above
 * |s|, because the products cancel each other, no sum in float32 keeps to the bound: those inputs are held to the
 * second bound, which has max_j scale sum |q k| in place of max_j |s_j|.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/multihead.h"
#include "random.h"

enum { KEYS_MAX = 16384, QUERIES_MAX = 48, FEATURES_MAX = 1024, ROOM = 1 << 28 };

static const double roundoff = 0x1p-24;

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
};

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
    double error, of_row, of_all,
        of_terms; /* in u sum p |v|; of the bounds with max |s| of the row, of all, of terms */
    double largest_score;
    size_t outputs, at_shape, at_seed;
    const char *at_kernel;
} worst;

typedef struct {
    float q[QUERIES_MAX * FEATURES_MAX], k[KEYS_MAX * FEATURES_MAX], v[KEYS_MAX * FEATURES_MAX];
    float bias[QUERIES_MAX * KEYS_MAX];
    double score[QUERIES_MAX * KEYS_MAX], terms[QUERIES_MAX]; /* exact; the largest scale sum |q k| of each row */
    double exact[QUERIES_MAX * FEATURES_MAX], size[QUERIES_MAX * FEATURES_MAX]; /* sum p v, sum p |v| */
    double row_max[QUERIES_MAX], all_max;
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

static void solve(problem *p, family which, const shape *n)
{
    p->all_max = 0;
    for (size_t i = 0; i < n->queries; i++) {
        const size_t keys = keys_of(which, n, i);
        p->terms[i] = p->row_max[i] = 0;
        for (size_t j = 0; j < keys; j++) {
            double terms;
            p->score[i * n->keys + j] = score_of(p, which, n, i, j, &terms);
            p->row_max[i] = fmax(p->row_max[i], fabs(p->score[i * n->keys + j]));
            p->terms[i] = fmax(p->terms[i], terms);
        }
        p->all_max = fmax(p->all_max, p->row_max[i]);
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
    request.options.want = (uint32_t)1 << ATTN_STEP_OUTPUT;
    attn_plan plan;
    attn_result result;
    attn_error err;
    const attn_runtime runtime = attn_runtime_serial(kernel);
    if (attn_plan_make(&request, &plan, &err) != ATTN_OK ||
        attn_plan_run(&plan, &request, &runtime, arena, &result, &err) != ATTN_OK)
        die(err.message);
    return result.step[ATTN_STEP_OUTPUT].data;
}

static void compare(const problem *p, const shape *n, const float *out, const worst *place, worst *found)
{
    for (size_t at = 0; at < n->queries * n->features; at++) {
        const size_t i = at / n->features;
        const double off = fabs((double)out[at] - p->exact[at]) / (roundoff * p->size[at]);
        const double of_row = off / (8 * (1 + p->row_max[i]));
        if (!(of_row <= found->of_row)) { /* NaN is the worst */
            found->of_row = of_row;
            found->at_shape = place->at_shape;
            found->at_seed = place->at_seed;
            found->at_kernel = place->at_kernel;
        }
        found->error = fmax(found->error, off);
        found->of_all = fmax(found->of_all, off / (8 * (1 + p->all_max)));
        found->of_terms = fmax(found->of_terms, off / (8 * (1 + p->terms[i])));
    }
    found->largest_score = fmax(found->largest_score, p->all_max);
    found->outputs += n->queries * n->features;
}

static void measure(problem *p, family which, size_t at_shape, worst *found)
{
    const shape *n = &shapes[at_shape];
    for (size_t seed = 1; seed <= n->seeds; seed++) {
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
        "What `make accuracy` wrote: attention in float32 against equation 1 in double on the same inputs, for every\n"
        "output of every kernel of the machine it ran on (",
        file);
    const attn_kernel *kernel;
    for (size_t at = 0; (kernel = attn_kernel_at(at)) != NULL; at++)
        fprintf(file, "%s%s", at > 0 ? ", " : "", attn_kernel_name(kernel));
    fputs(
        "). Lengths up to 16384 keys and 1024 features; the\n"
        "shapes are those of `tests/long/accuracy.c`.\n\n"
        "    |out - exact| <= 8 u (1 + max |s|) sum p |v|        u = 2^-24, s the scores after scale\n\n"
        "Errors are in units of u sum p |v|: 1 is half an ulp of a result without cancelling values. \"Of the bound\" "
        "is the\nlargest error as a part of the bound, with max |s| over the keys of the row alone (the strictest "
        "reading), and over\nall rows of the head; 1 would break it. \"With sum |q k|\" has scale sum |q k| in place "
        "of |s|.\n\n"
        "| inputs | outputs | largest score | largest error | of the bound, by row | of the bound, by head | with sum "
        "\\|q k\\| | worst at |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
        file);
}

static void write_row(FILE *file, const char *name, const worst *w)
{
    const shape *n = &shapes[w->at_shape];
    fprintf(file,
            "| %s | %zu | %.3g | %.3g | %.3f | %.3f | %.3f | %zu queries, %zu keys, %zu features, seed %zu, %s |\n",
            name, w->outputs, w->largest_score, w->error, w->of_row, w->of_all, w->of_terms, n->queries, n->keys,
            n->features, w->at_seed, w->at_kernel);
}

static void write_tail(FILE *file)
{
    fputs(
        "\n`make accuracy` fails where the bound is broken. The hardest inputs are those that add one number again and "
        "again: it is\nrounded the same way at every step, so that n steps cost up to n / 4 u. Sums over keys are "
        "therefore sums of 16 keys, of\n64, of 512, and of all with what rounding leaves out; scores are sums of 32 "
        "features, of 16 in heads of more than 64,\nand, in heads of more than 256, sums of those of 256.\n\n"
        "One kind of inputs stands apart: scores that cancel. Rounding is in proportion to the products and not to "
        "their sum, so\nthat with larger products yet no sum in float32 keeps to the bound with |s|. The bound with "
        "sum |q k| holds for them,\nand is what the unit tests hold every kernel to; `compute: float64` is the way "
        "out.\n",
        file);
}

static bool is_broken_by(family which, const worst *found)
{
    return !((which == CANCELLING ? found->of_terms : found->of_row) <= 1);
}

int main(int count, char **arguments)
{
    if (count != 2)
        die("the name of the file to write is missing");
    attn_blas_prepare();
    FILE *file = fopen(arguments[1], "w");
    problem *p = calloc(1, sizeof *p);
    if (file == NULL || p == NULL)
        die("no file or no memory");
    write_head(file);
    bool is_broken = false;
    for (int which = 0; which < FAMILIES; which++) {
        worst found = {.of_row = -1};
        for (size_t s = 0; s < SHAPES; s++)
            measure(p, (family)which, s, &found);
        write_row(file, families[which], &found);
        printf("accuracy: %5.3f of the bound by row, %5.3f with sum |q k|: %s\n", found.of_row, found.of_terms,
               families[which]);
        fflush(stdout);
        is_broken |= is_broken_by((family)which, &found);
    }
    write_tail(file);
    free(p);
    if (fclose(file) != 0)
        die("the file was not written");
    return is_broken ? 1 : 0;
}
