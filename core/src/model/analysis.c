/* analysis.c: findings about the maps and scores of a model: rollout, the roles of heads, the most probable words. */
#include "attn/analysis.h"

#include <math.h>

#include "base/float_mode.h"
#include "base/number.h"
#include "base/parallel.h"

/* ---- rollout, layer by layer ---- */

struct rollout_run {
    const attn_tensor *maps;
    const double *before;
    double *work, *after;
    size_t n;
    const attn_runtime *watch;
};

/* Row i of A/2 + I/2 into work, and its product with the rows of the layer before. */
static void rollout_row(void *argument, size_t i, size_t worker)
{
    const struct rollout_run *run = argument;
    const size_t n = run->n, heads = run->maps->shape[0];
    double *mixed = run->work + i * n, *after = run->after + i * n;
    struct attn_pace pace = attn_pace_begin(run->watch);
    (void)worker;
    for (size_t j = 0; j < n && !attn_pace_stops(&pace, heads); j++) {
        double sum = 0;
        for (size_t h = 0; h < heads; h++)
            sum += attn_number_get(run->maps->data, run->maps->dtype, (h * n + i) * n + j);
        mixed[j] = 0.5 * sum / (double)heads + (i == j ? 0.5 : 0);
        after[j] = run->before == NULL ? mixed[j] : 0;
    }
    for (size_t k = 0; k < n && run->before != NULL && !attn_pace_stops(&pace, n); k++)
        for (size_t j = 0; j < n; j++)
            after[j] += mixed[k] * run->before[k * n + j];
}

void attn_rollout_layer(const attn_tensor *maps, const double *before, double *work, double *after,
                        const attn_runtime *runtime)
{
    struct rollout_run run = {maps, before, work, after, maps->shape[1], runtime};
    ATTN_FLOAT_MODE;
    attn_spread(runtime, run.n, rollout_row, &run);
}

/* ---- roles: how much of a head's attention has a simple rule ---- */

const char *attn_head_role_name(attn_head_role role)
{
    static const char *const names[] = {"previous_token", "first_token", "same_token", "induction", "entropy"};
    return names[role];
}

/* What the rows of one map add up to. */
struct role_sums {
    double sum[ATTN_ROLE_COUNT];
    size_t rows[ATTN_ROLE_COUNT];
};

static void add_share(struct role_sums *sums, attn_head_role role, double share)
{
    sums->sum[role] += share;
    sums->rows[role]++;
}

/* Weights of row i on keys with the id of token i, and on the keys behind earlier ones of them. */
static void add_repeats(struct role_sums *sums, const attn_tensor *map, size_t row, const int64_t *ids, size_t i,
                        size_t n)
{
    double same = 0, induction = 0;
    bool has_same = false, has_earlier = false;
    for (size_t j = 0; j < n; j++) {
        if (j == i || ids[j] != ids[i])
            continue;
        has_same = true;
        same += attn_number_get(map->data, map->dtype, row + j);
        if (j < i) {
            has_earlier = true;
            induction += attn_number_get(map->data, map->dtype, row + j + 1);
        }
    }
    if (has_same)
        add_share(sums, ATTN_ROLE_SAME_TOKEN, same);
    if (has_earlier)
        add_share(sums, ATTN_ROLE_INDUCTION, induction);
}

static double entropy_of(const attn_tensor *map, size_t row, size_t n)
{
    double entropy = 0;
    for (size_t j = 0; j < n; j++) {
        const double p = attn_number_get(map->data, map->dtype, row + j);
        entropy -= p > 0 ? p * log(p) : 0;
    }
    return entropy;
}

void attn_head_roles(const attn_tensor *map, const int64_t *ids, double *score, const attn_runtime *watch)
{
    const size_t heads = map->shape[0], n = map->shape[1];
    ATTN_FLOAT_MODE;
    struct attn_pace pace = attn_pace_begin(watch);
    for (size_t h = 0; h < heads; h++) {
        struct role_sums sums = {.rows = {0}};
        for (size_t i = 0; i < n && !attn_pace_stops(&pace, 2 * n); i++) { /* a logarithm for each number */
            const size_t row = (h * n + i) * n;
            if (i > 0)
                add_share(&sums, ATTN_ROLE_PREVIOUS_TOKEN, attn_number_get(map->data, map->dtype, row + i - 1));
            add_share(&sums, ATTN_ROLE_FIRST_TOKEN, attn_number_get(map->data, map->dtype, row));
            add_share(&sums, ATTN_ROLE_ENTROPY, entropy_of(map, row, n));
            if (ids != NULL)
                add_repeats(&sums, map, row, ids, i, n);
        }
        for (size_t role = 0; role < ATTN_ROLE_COUNT; role++)
            score[h * ATTN_ROLE_COUNT + role] =
                sums.rows[role] > 0 ? sums.sum[role] / (double)sums.rows[role] : (double)NAN;
    }
}

/* ---- the most probable words of a row of scores ---- */

/* The best words so far, as a heap: the worst of them is first. */
struct best {
    int64_t *words;
    double *scores;
    size_t count;
};

/* Of words with equal scores, the later one is worse. */
static bool is_worse(const struct best *best, size_t a, int64_t word, double score)
{
    return best->scores[a] < score || (best->scores[a] == score && best->words[a] > word);
}

static void put(struct best *best, size_t at, int64_t word, double score)
{
    best->words[at] = word;
    best->scores[at] = score;
}

static void add(struct best *best, int64_t word, double score)
{
    size_t at = best->count++;
    for (; at > 0 && !is_worse(best, (at - 1) / 2, word, score); at = (at - 1) / 2)
        put(best, at, best->words[(at - 1) / 2], best->scores[(at - 1) / 2]);
    put(best, at, word, score);
}

/* Removes the worst word, and puts another one into the heap of what is left. */
static void replace_worst(struct best *best, int64_t word, double score)
{
    size_t at = 0;
    for (size_t child = 1; child < best->count; child = 2 * at + 1) {
        if (child + 1 < best->count && is_worse(best, child + 1, best->words[child], best->scores[child]))
            child++;
        if (!is_worse(best, child, word, score))
            break;
        put(best, at, best->words[child], best->scores[child]);
        at = child;
    }
    put(best, at, word, score);
}

/* Takes the worst word again and again, so that the best one is first in the end. */
static void sort(struct best *best)
{
    while (best->count > 1) {
        const int64_t worst = best->words[0];
        const double score = best->scores[0];
        const size_t last = --best->count;
        replace_worst(best, best->words[last], best->scores[last]);
        put(best, last, worst, score);
    }
}

/* The sum of exp(z_i - largest). */
static double sum_of_exponentials(const void *scores, attn_dtype compute, size_t count, double largest,
                                  struct attn_pace *pace)
{
    double sum = 0;
    for (size_t i = 0; i < count && !attn_pace_stops(pace, 1); i++)
        sum += exp(attn_number_get(scores, compute, i) - largest);
    return sum;
}

/* Replaces the scores of the best words, the first of which is the largest, by probabilities. */
static void normalize(const void *scores, attn_dtype compute, size_t count, size_t k, double *best,
                      struct attn_pace *pace)
{
    const double largest = k > 0 ? best[0] : 0, sum = sum_of_exponentials(scores, compute, count, largest, pace);
    for (size_t i = 0; i < k; i++)
        best[i] = exp(best[i] - largest) / sum;
}

void attn_top_words(const void *scores, attn_dtype compute, size_t count, size_t k, int64_t *words,
                    double *probabilities, const attn_runtime *watch)
{
    ATTN_FLOAT_MODE;
    struct best best = {words, probabilities, 0};
    struct attn_pace pace = attn_pace_begin(watch);
    for (size_t i = 0; i < count && k > 0 && !attn_pace_stops(&pace, 1); i++) {
        const double score = attn_number_get(scores, compute, i);
        if (best.count < k)
            add(&best, (int64_t)i, score);
        else if (score > probabilities[0])
            replace_worst(&best, (int64_t)i, score);
    }
    const size_t kept = best.count;
    sort(&best);
    normalize(scores, compute, count, kept, probabilities, &pace);
}

/* ---- given words ---- */

static double largest_of(const void *scores, attn_dtype compute, size_t count, struct attn_pace *pace)
{
    double largest = -(double)INFINITY;
    for (size_t i = 0; i < count && !attn_pace_stops(pace, 1); i++)
        largest = fmax(largest, attn_number_get(scores, compute, i));
    return largest;
}

static int64_t rank_of(const void *scores, attn_dtype compute, size_t count, size_t word, struct attn_pace *pace)
{
    const double own = attn_number_get(scores, compute, word);
    int64_t rank = 1;
    for (size_t i = 0; i < count && !attn_pace_stops(pace, 1); i++) {
        const double score = attn_number_get(scores, compute, i);
        rank += score > own || (score == own && i < word);
    }
    return rank;
}

void attn_score_words(const void *scores, attn_dtype compute, size_t count, size_t n, const int64_t *words,
                      double *log_probabilities, int64_t *ranks, const attn_runtime *watch)
{
    ATTN_FLOAT_MODE;
    struct attn_pace pace = attn_pace_begin(watch);
    const double largest = largest_of(scores, compute, count, &pace);
    const double log_sum = log(sum_of_exponentials(scores, compute, count, largest, &pace));
    for (size_t i = 0; i < n; i++) {
        const size_t word = (size_t)words[i];
        log_probabilities[i] = attn_number_get(scores, compute, word) - largest - log_sum;
        ranks[i] = rank_of(scores, compute, count, word, &pace);
    }
}
