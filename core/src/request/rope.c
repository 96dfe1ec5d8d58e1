/* rope.c: options.rope against the dimensions. */
#include <math.h>
#include <stdio.h>

#include "base/parallel.h"
#include "request/request.h"

#define SCALING "options.rope.scaling"

/* Angles are computed in double, which holds these positions exactly. */
static const int64_t POSITION_MAX = (int64_t)1 << 53;

/* ---- scaling: numbers ---- */

enum { DEF = 1 << ATTN_ROPE_DEFAULT, LIN = 1 << ATTN_ROPE_LINEAR, DYN = 1 << ATTN_ROPE_DYNAMIC };
enum { YAR = 1 << ATTN_ROPE_YARN, LON = 1 << ATTN_ROPE_LONGROPE, LLA = 1 << ATTN_ROPE_LLAMA3 };
enum { PRO = 1 << ATTN_ROPE_PROPORTIONAL, ALL = 127 };

/* In this range, no frequency, ramp or attention factor can become infinite or NaN. */
static bool is_in_range(double number)
{
    return number >= 1e-30 && number <= 1e30;
}

/* A number of the scaling, and the types that use it. */
struct number {
    const char *field;
    double value;
    unsigned users;
};

static bool check_number(const struct number *number, attn_rope_type type, struct attn_check *check)
{
    if (number->value == 0)
        return true;
    if (!is_in_range(number->value))
        return attn_refuse(check, ATTN_ERR_VALUE, number->field, "~ must be a number from 1e-30 to 1e30");
    if (!(number->users >> type & 1))
        return attn_refuse(check, ATTN_ERR_FIELD, number->field, "~ has no meaning for scaling %s",
                           attn_rope_type_name(type));
    return true;
}

static bool check_numbers(const attn_rope_scaling *s, struct attn_check *check)
{
    const struct number numbers[] = {
        {SCALING ".factor", s->factor, (unsigned)ALL & ~(unsigned)DEF},
        {SCALING ".original_max_position_embeddings", s->original_max_position_embeddings, ALL},
        {SCALING ".max_position_embeddings", s->max_position_embeddings, ALL},
        {SCALING ".attention_factor", s->attention_factor, YAR | LON},
        {SCALING ".beta_fast", s->beta_fast, YAR},
        {SCALING ".beta_slow", s->beta_slow, YAR},
        {SCALING ".mscale", s->mscale, YAR},
        {SCALING ".mscale_all_dim", s->mscale_all_dim, YAR},
        {SCALING ".low_freq_factor", s->low_freq_factor, LLA},
        {SCALING ".high_freq_factor", s->high_freq_factor, LLA},
        {SCALING ".partial_rotary_factor", s->partial_rotary_factor, ALL},
    };
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
        if (!check_number(&numbers[n], s->type, check))
            return false;
    if (s->partial_rotary_factor > 1)
        return attn_refuse(check, ATTN_ERR_VALUE, SCALING ".partial_rotary_factor",
                           "partial_rotary_factor must be at most 1");
    if (s->keeps_fraction && s->type != ATTN_ROPE_YARN)
        return attn_refuse(check, ATTN_ERR_FIELD, SCALING ".keeps_fraction", "~ has no meaning for scaling %s",
                           attn_rope_type_name(s->type));
    return true;
}

static bool fail_missing(const attn_rope_scaling *s, const char *field, struct attn_check *check)
{
    return attn_refuse(check, ATTN_ERR_FIELD, field, "scaling %s needs ~", attn_rope_type_name(s->type));
}

/* The factor may be missing for yarn and longrope, which compute it from the two lengths. */
static bool check_factor(const attn_rope_scaling *s, struct attn_check *check)
{
    const bool has_both = s->original_max_position_embeddings != 0 && s->max_position_embeddings != 0;
    const bool may_miss = s->type == ATTN_ROPE_DEFAULT || s->type == ATTN_ROPE_PROPORTIONAL ||
                          ((s->type == ATTN_ROPE_YARN || s->type == ATTN_ROPE_LONGROPE) && has_both) ||
                          (s->type == ATTN_ROPE_LONGROPE && s->attention_factor != 0);
    return s->factor != 0 || may_miss ? true : fail_missing(s, SCALING ".factor", check);
}

static bool check_length(const attn_rope_scaling *s, struct attn_check *check)
{
    const double length =
        s->original_max_position_embeddings != 0 ? s->original_max_position_embeddings : s->max_position_embeddings;
    if (s->type == ATTN_ROPE_DEFAULT || s->type == ATTN_ROPE_LINEAR || s->type == ATTN_ROPE_PROPORTIONAL)
        return true;
    if (length == 0)
        return fail_missing(s,
                            s->type == ATTN_ROPE_DYNAMIC ? SCALING ".max_position_embeddings"
                                                         : SCALING ".original_max_position_embeddings",
                            check);
    if (s->type == ATTN_ROPE_LONGROPE && length <= 1)
        return attn_refuse(check, ATTN_ERR_VALUE, SCALING ".original_max_position_embeddings",
                           "scaling longrope needs an original length above 1");
    return true;
}

static bool check_llama3(const attn_rope_scaling *s, struct attn_check *check)
{
    if (s->type != ATTN_ROPE_LLAMA3)
        return true;
    if (s->low_freq_factor == 0)
        return fail_missing(s, SCALING ".low_freq_factor", check);
    if (s->high_freq_factor == 0)
        return fail_missing(s, SCALING ".high_freq_factor", check);
    if (!(s->high_freq_factor > s->low_freq_factor))
        return attn_refuse(check, ATTN_ERR_VALUE, SCALING ".high_freq_factor",
                           "high_freq_factor must be above low_freq_factor");
    return true;
}

/* One of the two lists of longrope. */
static bool check_list(const attn_rope_scaling *s, const attn_tensor *list, const char *field, size_t pairs,
                       struct attn_pace *pace, struct attn_check *check)
{
    char expected[32];
    if (list == NULL)
        return s->type == ATTN_ROPE_LONGROPE ? fail_missing(s, field, check) : true;
    if (s->type != ATTN_ROPE_LONGROPE)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "~ has no meaning for scaling %s",
                           attn_rope_type_name(s->type));
    if (list->dtype != ATTN_F64 || !attn_tensor_is_contiguous(list))
        return attn_refuse(check, ATTN_ERR_FIELD, field, "~ must be float64 without gaps");
    if (list->rank != 1 || list->shape[0] != pairs) {
        snprintf(expected, sizeof expected, "[%zu]", pairs);
        return attn_refuse_shape(check, field, list, expected, "~ must have a number for each of the %zu pairs", pairs);
    }
    for (size_t i = 0; i < pairs; i++) {
        if (attn_pace_stops(pace, 1))
            return attn_refuse_stopped(check);
        if (!is_in_range(((const double *)list->data)[i]))
            return attn_refuse(check, ATTN_ERR_VALUE, field, "~ must hold numbers from 1e-30 to 1e30");
    }
    return true;
}

static bool check_scaling(const attn_rope *rope, size_t dim, struct attn_pace *pace, struct attn_check *check)
{
    const attn_rope_scaling *s = &rope->scaling;
    if (rope->theta != 0 && !(rope->theta > 1 && isfinite(rope->theta)))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.rope.theta", "~ must be a finite number above 1");
    if (!check_numbers(s, check) || !check_factor(s, check) || !check_length(s, check) || !check_llama3(s, check) ||
        !check_list(s, s->short_factor, SCALING ".short_factor", dim / 2, pace, check) ||
        !check_list(s, s->long_factor, SCALING ".long_factor", dim / 2, pace, check))
        return false;
    if (s->type == ATTN_ROPE_DYNAMIC && dim == 2)
        return attn_refuse(check, ATTN_ERR_VALUE, SCALING ".type",
                           "scaling dynamic needs more than 2 features to turn");
    return true;
}

/* ---- the sides ---- */

/* The queries or the keys, and their name in messages. */
struct side {
    const attn_rope_side *given;
    const char *name;                  /* "query" */
    const char *positions, *cos, *sin; /* their paths */
    size_t len;
    struct attn_pace *pace; /* of both sides */
};

/* also: the other shape that is accepted, in words. */
static bool fail_side(const struct side *side, const char *field, const attn_tensor *got, const char *expected,
                      const char *also, struct attn_check *check)
{
    char received[64];
    attn_shape_text(received, sizeof received, got->rank, got->shape);
    return attn_refuse_shape(check, field, got, expected, "~ has shape %s, expected %s%s for %zu %s tokens", received,
                             expected, also, side->len, side->name);
}

/* (len, …) or (1 or batch, len, …), with more further dimensions. */
static bool fits(const attn_tensor *tensor, int more, size_t batch, size_t len)
{
    if (tensor->rank == 1 + more)
        return tensor->shape[0] == len;
    return tensor->rank == 2 + more && (tensor->shape[0] == 1 || tensor->shape[0] == batch) && tensor->shape[1] == len;
}

static bool check_positions(const struct side *side, size_t batch, double *length, struct attn_check *check)
{
    const attn_tensor *positions = side->given->positions;
    char expected[32];
    if (positions == NULL)
        return true;
    if (positions->dtype != ATTN_I64 || !attn_tensor_is_contiguous(positions))
        return attn_refuse(check, ATTN_ERR_FIELD, side->positions, "positions must be int64 without gaps");
    snprintf(expected, sizeof expected, "[%zu]", side->len);
    if (!fits(positions, 0, batch, side->len))
        return fail_side(side, side->positions, positions, expected, " (or with the batch before it)", check);
    const int64_t *p = positions->data;
    const size_t count = attn_tensor_count(positions);
    for (size_t n = 0; n < count; n++) {
        if (attn_pace_stops(side->pace, 1))
            return attn_refuse_stopped(check);
        if (p[n] > POSITION_MAX || p[n] < -POSITION_MAX)
            return attn_refuse(check, ATTN_ERR_VALUE, side->positions, "position %lld is beyond 2^53", (long long)p[n]);
        *length = (double)p[n] + 1 > *length ? (double)p[n] + 1 : *length;
    }
    return true;
}

static bool check_rows(const struct side *side, size_t rows, struct attn_check *check)
{
    const attn_tensor *positions = side->given->positions;
    const int64_t *p = positions->data;
    const size_t count = attn_tensor_count(positions);
    for (size_t n = 0; n < count; n++) {
        if (attn_pace_stops(side->pace, 1))
            return attn_refuse_stopped(check);
        if (p[n] < 0 || (uint64_t)p[n] >= rows)
            return attn_refuse(check, ATTN_ERR_VALUE, side->positions,
                               "position %lld is not among the %zu rows of cos and sin", (long long)p[n], rows);
    }
    return true;
}

/* cos or sin of a side: the shape by its positions. */
static bool check_given(const struct side *side, const char *field, const attn_tensor *tensor, const attn_plan *plan,
                        struct attn_check *check)
{
    char expected[64];
    const size_t pairs = plan->rope_dim / 2;
    if (tensor->dtype != plan->compute || !attn_tensor_is_contiguous(tensor))
        return attn_refuse(check, ATTN_ERR_FIELD, field, "~ must be %s without gaps", attn_dtype_name(plan->compute));
    const bool has_pairs = tensor->rank > 1 && tensor->shape[tensor->rank - 1] == pairs;
    if (side->given->positions != NULL) {
        snprintf(expected, sizeof expected, "[\"rows\",%zu]", pairs);
        return has_pairs && tensor->rank == 2 ? check_rows(side, tensor->shape[0], check)
                                              : fail_side(side, field, tensor, expected, "", check);
    }
    snprintf(expected, sizeof expected, "[%zu,%zu]", side->len, pairs);
    return has_pairs && fits(tensor, 1, plan->dims.batch, side->len)
               ? true
               : fail_side(side, field, tensor, expected, " (or with the batch before it)", check);
}

static bool check_side(const struct side *side, const attn_plan *plan, struct attn_check *check)
{
    const attn_rope_side *given = side->given;
    if ((given->cos == NULL) != (given->sin == NULL))
        return attn_refuse(check, ATTN_ERR_FIELD, given->cos == NULL ? side->cos : side->sin,
                           "cos and sin of %s go together", side->name);
    if (given->cos == NULL)
        return true;
    return check_given(side, side->cos, given->cos, plan, check) &&
           check_given(side, side->sin, given->sin, plan, check);
}

/* ---- all of it ---- */

/* The number of features to rotate: the first that is given of dim, cos, partial_rotary_factor and all. */
static size_t find_dim(const attn_rope *rope, size_t all)
{
    const attn_tensor *cos = rope->query.cos != NULL ? rope->query.cos : rope->key.cos;
    const attn_rope_scaling *s = &rope->scaling;
    if (rope->dim != 0)
        return rope->dim;
    if (cos != NULL && cos->rank > 0 && cos->shape[cos->rank - 1] <= all)
        return 2 * cos->shape[cos->rank - 1];
    if (s->partial_rotary_factor > 0 && s->partial_rotary_factor <= 1 && s->type != ATTN_ROPE_PROPORTIONAL)
        return (size_t)((double)all * s->partial_rotary_factor);
    return all;
}

static bool check_dim(const attn_rope *rope, size_t dim, size_t most, bool is_shared, struct attn_check *check)
{
    if (dim == 0 || dim % 2 != 0)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.rope.dim",
                           "~ is %zu; features are turned in pairs, so it must be even and at least 2%s", dim,
                           rope->dim != 0 ? ""
                           : is_shared    ? " (by default it is that of key_shared)"
                                          : " (by default it is d_k)");
    if (dim > most)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.rope.dim", "~ is %zu, but %s %zu features", dim,
                           is_shared ? "weights.key_shared gives" : "a head has", most);
    return true;
}

bool attn_rope_check(const attn_request *request, attn_plan *plan, struct attn_check *check)
{
    const attn_rope *rope = &request->options.rope;
    const attn_dims *d = &plan->dims;
    if (rope->layout == ATTN_ROPE_NONE)
        return true;
    struct attn_pace pace = attn_pace_begin(request->watch);
    const struct side sides[] = {{&rope->query, "query", "options.rope.query.positions", "options.rope.query.cos",
                                  "options.rope.query.sin", d->q_len, &pace},
                                 {&rope->key, "key", "options.rope.key.positions", "options.rope.key.cos",
                                  "options.rope.key.sin", attn_new_len(d), &pace}};
    const size_t turnable = d->d_shared > 0 ? d->d_shared : d->d_k;
    plan->rope_dim = find_dim(rope, turnable);
    if (!check_dim(rope, plan->rope_dim, turnable, d->d_shared > 0, check))
        return false;
    for (int side = 0; side < 2; side++) {
        if (sides[side].given->positions == NULL && plan->rope_length < (double)(d->past_len + sides[side].len))
            plan->rope_length = (double)(d->past_len + sides[side].len);
        if (!check_positions(&sides[side], d->batch, &plan->rope_length, check) ||
            !check_side(&sides[side], plan, check))
            return false;
    }
    const bool is_given = rope->query.cos != NULL && rope->key.cos != NULL;
    const attn_rope_scaling *s = &rope->scaling;
    if (is_given && (rope->theta != 0 || s->type != ATTN_ROPE_DEFAULT))
        return attn_refuse(check, ATTN_ERR_FIELD, rope->theta != 0 ? "options.rope.theta" : SCALING,
                           "cos and sin leave nothing for theta and scaling to decide");
    return is_given || check_scaling(rope, plan->rope_dim, &pace, check);
}
