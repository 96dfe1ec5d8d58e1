/* top_words.c: the most probable words of a row of scores (analysis.h). */
#include <math.h>

#include "attn/analysis.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/pace.h"

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

/* Replaces the scores of the best words, the first of which is the largest, by probabilities. */
static void normalize(const void *scores, attn_dtype compute, size_t count, size_t k, double *best,
                      struct attn_pace *pace)
{
    const double largest = k > 0 ? best[0] : 0;
    double sum = 0;
    for (size_t i = 0; i < count && !attn_pace_stops(pace, 1); i++)
        sum += exp(attn_number_get(scores, compute, i) - largest);
    for (size_t i = 0; i < k; i++)
        best[i] = exp(best[i] - largest) / sum;
}

void attn_top_words(const void *scores, attn_dtype compute, size_t count, size_t k, int64_t *words,
                    double *probabilities, const attn_runtime *watch)
{
    const uint64_t mode = attn_float_mode_enter();
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
    attn_float_mode_leave(mode);
}
