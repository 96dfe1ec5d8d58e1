/* align.c: when tokens are spoken, from maps of tokens to frames (analysis.h). */
#include <math.h>

#include "attn/analysis.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/parallel.h"

enum { SIDE = 3, WINDOW = 2 * SIDE + 1 };

static double weight_at(const attn_tensor *map, size_t i, size_t t)
{
    return attn_number_get(map->data, map->dtype, i * (size_t)map->stride[0] + t * (size_t)map->stride[1]);
}

/* ---- one head ---- */

struct add_run {
    const attn_tensor *map;
    double *sum, *means, *factors, *rows; /* factors: 1 / sd; rows: one for each thread */
};

static void measure_frame(void *argument, size_t t, size_t worker)
{
    (void)worker;
    const struct add_run *run = argument;
    const size_t tokens = run->map->shape[0];
    double mean = 0, variance = 0;
    for (size_t i = 0; i < tokens; i++)
        mean += weight_at(run->map, i, t) / (double)tokens;
    for (size_t i = 0; i < tokens; i++)
        variance += pow(weight_at(run->map, i, t) - mean, 2) / (double)tokens;
    run->means[t] = mean;
    run->factors[t] = variance > 0 ? 1 / sqrt(variance) : 0;
}

/* The median of the WINDOW numbers around place t of the row. */
static double median_at(const double *row, size_t count, size_t t)
{
    double sorted[WINDOW];
    for (size_t u = 0; u < WINDOW; u++) {
        const size_t left = t + u; /* SIDE more than the place */
        const size_t place = left < SIDE           ? SIDE - left
                             : left - SIDE < count ? left - SIDE
                                                   : 2 * (count - 1) - (left - SIDE);
        size_t at = u;
        for (; at > 0 && sorted[at - 1] > row[place]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = row[place];
    }
    return sorted[SIDE];
}

static void add_token(void *argument, size_t i, size_t worker)
{
    const struct add_run *run = argument;
    const size_t frames = run->map->shape[1];
    double *row = run->rows + worker * frames, *to = run->sum + i * frames;
    for (size_t t = 0; t < frames; t++)
        row[t] = (weight_at(run->map, i, t) - run->means[t]) * run->factors[t];
    for (size_t t = 0; t < frames; t++)
        to[t] += frames > SIDE ? median_at(row, frames, t) : row[t];
}

size_t attn_align_work(size_t frames, size_t threads)
{
    return (2 + threads) * frames;
}

void attn_align_add(const attn_tensor *map, double *sum, double *work, const attn_runtime *runtime)
{
    const size_t frames = map->shape[1];
    struct add_run run = {map, sum, work, work + frames, work + 2 * frames};
    ATTN_FLOAT_MODE;
    attn_spread(runtime, frames, measure_frame, &run);
    attn_spread(runtime, map->shape[0], add_token, &run);
}

/* ---- the path ---- */

enum { BOTH, TOKEN, FRAME };

/* The cheapest step to a place, by the costs of the places before it. */
static uint8_t choose(double both, double token, double frame)
{
    if (both < token && both < frame)
        return BOTH;
    return token < both && token < frame ? TOKEN : FRAME;
}

/* Costs are those of two tokens, from a place before the first frame on. The cost of a place is -M. */
static void find_steps(const double *sum, size_t tokens, size_t frames, uint8_t *steps, double *costs)
{
    double *before = costs, *here = costs + frames + 1;
    for (size_t t = 0; t <= frames; t++)
        before[t] = t == 0 ? 0 : HUGE_VAL;
    for (size_t i = 0; i < tokens; i++) {
        here[0] = HUGE_VAL;
        for (size_t t = 0; t < frames; t++) {
            const double options[] = {[BOTH] = before[t], [TOKEN] = before[t + 1], [FRAME] = here[t]};
            const uint8_t step = choose(options[BOTH], options[TOKEN], options[FRAME]);
            steps[i * frames + t] = step;
            here[t + 1] = options[step] - sum[i * frames + t];
        }
        double *const next = before;
        before = here;
        here = next;
    }
}

void attn_align_path(const double *sum, size_t tokens, size_t frames, uint8_t *steps, double *costs, size_t *begins)
{
    find_steps(sum, tokens, frames, steps, costs);
    size_t i = tokens - 1, t = frames - 1;
    for (;;) {
        const uint8_t step = steps[i * frames + t];
        begins[i] = t;
        if (i == 0 && t == 0)
            return;
        const bool moves_token = i > 0 && (step != FRAME || t == 0), moves_frame = t > 0 && (step != TOKEN || i == 0);
        i -= moves_token;
        t -= moves_frame;
    }
}
