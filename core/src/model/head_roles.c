/* head_roles.c: how much of a head's attention has a simple rule (analysis.h). */
#include <math.h>

#include "attn/analysis.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/pace.h"

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

static void add(struct role_sums *sums, attn_head_role role, double share)
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
        add(sums, ATTN_ROLE_SAME_TOKEN, same);
    if (has_earlier)
        add(sums, ATTN_ROLE_INDUCTION, induction);
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
    const uint64_t mode = attn_float_mode_enter();
    struct attn_pace pace = attn_pace_begin(watch);
    for (size_t h = 0; h < heads; h++) {
        struct role_sums sums = {.rows = {0}};
        for (size_t i = 0; i < n && !attn_pace_stops(&pace, 2 * n); i++) { /* a logarithm for each number */
            const size_t row = (h * n + i) * n;
            if (i > 0)
                add(&sums, ATTN_ROLE_PREVIOUS_TOKEN, attn_number_get(map->data, map->dtype, row + i - 1));
            add(&sums, ATTN_ROLE_FIRST_TOKEN, attn_number_get(map->data, map->dtype, row));
            add(&sums, ATTN_ROLE_ENTROPY, entropy_of(map, row, n));
            if (ids != NULL)
                add_repeats(&sums, map, row, ids, i, n);
        }
        for (size_t role = 0; role < ATTN_ROLE_COUNT; role++)
            score[h * ATTN_ROLE_COUNT + role] =
                sums.rows[role] > 0 ? sums.sum[role] / (double)sums.rows[role] : (double)NAN;
    }
    attn_float_mode_leave(mode);
}
