/* recurrence.h: what both passes of a recurrence read at a position of a key head. */
#ifndef ATTN_ATTENTION_RECURRENCE_H
#define ATTN_ATTENTION_RECURRENCE_H

#include "attention/attention.h"

struct attn_recurrence {
    const attn_plan *plan;
    const struct attn_heads_job *job;
    struct attn_vector decay, beta, past_state; /* data NULL: none */
    size_t beta_heads;                          /* kv_heads, or 1: all heads share it */
    size_t gate_width;                          /* gates of a position of a head: d_k, 1, or 0 without decay */
    double *gates;                              /* (batch, kv_heads, len, gate_width): e^decay */
};

/* The bytes that the gates take. */
size_t attn_recurrence_gates_bytes(const attn_plan *plan);
/* Describes the inputs, and computes the gates. False: no memory. When runtime is cancelled, they are of no use. */
ATTN_MUST_CHECK bool attn_recurrence_begin(struct attn_recurrence *run, const attn_plan *plan,
                                           const struct attn_heads_job *job, const attn_runtime *runtime,
                                           attn_arena *arena);

static inline size_t attn_recurrence_position(const struct attn_recurrence *run, size_t b, size_t kv_head, size_t t)
{
    return (b * run->job->kv_heads + kv_head) * run->job->kv_len + t;
}

/* Where the numbers of a head are in tokens (…, len, heads * width), or (batch, heads, len, width) of rank 4. */
static inline size_t attn_recurrence_token(const struct attn_recurrence *run, size_t heads, size_t width, size_t b,
                                           size_t head, size_t t)
{
    const size_t len = run->job->kv_len;
    return run->plan->dims.query_rank == 4 ? ((b * heads + head) * len + t) * width
                                           : ((b * len + t) * heads + head) * width;
}

/* Gates of all features, in gate where they are one number; without decay NULL. */
static inline const double *attn_recurrence_gates(const struct attn_recurrence *run, size_t b, size_t kv_head, size_t t,
                                                  double *gate)
{
    const size_t d_k = run->job->d_k;
    if (run->gate_width == 0)
        return NULL;
    const double *own = run->gates + attn_recurrence_position(run, b, kv_head, t) * run->gate_width;
    if (run->gate_width == d_k)
        return own;
    for (size_t f = 0; f < d_k; f++)
        gate[f] = *own;
    return gate;
}

/* 1 without beta. */
static inline double attn_recurrence_beta(const struct attn_recurrence *run, size_t b, size_t kv_head, size_t t)
{
    if (run->beta.data == NULL)
        return 1;
    const size_t head = run->beta_heads == 1 ? 0 : kv_head;
    return attn_number_get(run->beta.data, run->beta.dtype, attn_recurrence_token(run, run->beta_heads, 1, b, head, t));
}

/* Padding and key_lengths hide keys; what is hidden is not read. */
static inline bool attn_recurrence_sees(const struct attn_recurrence *run, size_t b, size_t t)
{
    return attn_mask_allows(run->job->mask, run->job->compute, b, 0, t, t);
}

static inline void attn_recurrence_read(struct attn_vector from, size_t first, size_t count, double *to)
{
    for (size_t n = 0; n < count; n++)
        to[n] = attn_number_get(from.data, from.dtype, first + n);
}

#endif
