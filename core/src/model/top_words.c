/* top_words.c: the most probable words of a row of scores (analysis.h). */
#include <math.h>

#include "attn/analysis.h"
#include "base/float_mode.h"
#include "base/number.h"

/* Puts word into the list of the best so far, which has kept of them, best first. */
static void keep(int64_t *words, double *scores, size_t kept, size_t k, int64_t word, double score)
{
    size_t at = kept < k ? kept : k - 1;
    for (; at > 0 && scores[at - 1] < score; at--) {
        words[at] = words[at - 1];
        scores[at] = scores[at - 1];
    }
    words[at] = word;
    scores[at] = score;
}

void attn_top_words(const void *scores, attn_dtype compute, size_t count, size_t k, int64_t *words,
                    double *probabilities)
{
    const uint64_t mode = attn_float_mode_enter();
    size_t kept = 0;
    for (size_t i = 0; i < count && k > 0; i++) {
        const double score = attn_number_get(scores, compute, i);
        if (kept == k && !(score > probabilities[k - 1]))
            continue;
        keep(words, probabilities, kept, k, (int64_t)i, score);
        kept += kept < k;
    }
    double sum = 0;
    const double largest = kept > 0 ? probabilities[0] : 0;
    for (size_t i = 0; i < count; i++)
        sum += exp(attn_number_get(scores, compute, i) - largest);
    for (size_t i = 0; i < kept; i++)
        probabilities[i] = exp(probabilities[i] - largest) / sum;
    attn_float_mode_leave(mode);
}
