/*
 * attention.h: attention over all batch items and heads: the operands, biases by distance, and four ways to run a job: by
 * tiles, by feature maps, by recurrence, and from given scores or weights.
 */
#ifndef ATTN_ATTENTION_ATTENTION_H
#define ATTN_ATTENTION_ATTENTION_H

#include "attn/arena.h"
#include "attn/multihead.h"
#include "kernel/features/job.h"
#include "kernel/job.h"

/* The arena bytes of a run: scratch for each thread, enough for every kernel, and what all threads share. */
struct attn_bytes {
    size_t scratch, shared;
};

/* ---- operands: where the rows of queries, keys and values are ---- */

/* (batch, len, heads, d): the heads of a token are contiguous. */
static inline struct attn_operand attn_operand_by_tokens(const void *data, attn_dtype dtype, size_t heads, size_t len,
                                                         size_t d)
{
    return (struct attn_operand){.data = data,
                                 .dtype = dtype,
                                 .batch_stride = (ptrdiff_t)(len * heads * d),
                                 .head_stride = (ptrdiff_t)d,
                                 .row_stride = (ptrdiff_t)(heads * d)};
}

/* (batch, heads, len, d) */
static inline struct attn_operand attn_operand_by_heads(const void *data, attn_dtype dtype, size_t heads, size_t len,
                                                        size_t d)
{
    return (struct attn_operand){.data = data,
                                 .dtype = dtype,
                                 .batch_stride = (ptrdiff_t)(heads * len * d),
                                 .head_stride = (ptrdiff_t)(len * d),
                                 .row_stride = (ptrdiff_t)d};
}

/* Tokens (len, heads * d) or (batch, len, heads * d), or (batch, heads, len, d), where their strides say. */
static inline struct attn_operand attn_operand_of(const attn_tensor *tensor, size_t d)
{
    return (struct attn_operand){.data = tensor->data,
                                 .dtype = tensor->dtype,
                                 .batch_stride = tensor->rank > 2 ? tensor->stride[0] : 0,
                                 .head_stride = tensor->rank == 4 ? tensor->stride[1] : (ptrdiff_t)d,
                                 .row_stride = tensor->stride[tensor->rank - 2]};
}

/* A (batch, heads, len, d) view of an operand, in that shape. */
static inline attn_tensor attn_operand_view(const struct attn_operand *operand, const attn_tensor *shape)
{
    attn_tensor view = *shape;
    view.data = (void *)(uintptr_t)operand->data;
    view.dtype = operand->dtype;
    view.stride[0] = operand->batch_stride;
    view.stride[1] = operand->head_stride;
    view.stride[2] = operand->row_stride;
    view.stride[3] = 1;
    return view;
}

/* A cache (batch, heads, len, d), or (heads, len, d) for one item, where its strides say. */
static inline struct attn_operand attn_operand_of_past(const attn_tensor *tensor)
{
    return (struct attn_operand){.data = tensor->data,
                                 .dtype = tensor->dtype,
                                 .batch_stride = tensor->rank == 4 ? tensor->stride[0] : 0,
                                 .head_stride = tensor->stride[tensor->rank - 3],
                                 .row_stride = tensor->stride[tensor->rank - 2]};
}

/*
 * ---- distance_bias.c: the numbers that are added to a row of scaled scores: biases by distance, and masks.bias ----
 *
 * A bias by distance (ALiBi, relative) is constant along every diagonal, so one number per diagonal is enough. Each head
 * (and each batch item, when items have offsets of their own) has a vector of q_len + kv_len - 1 numbers. The row of a
 * query is a contiguous slice of it. The tile kernel adds that slice. attn_bias_row is a slow and simple form for one
 * row. attn_mask_row (mask/resolved.h) decides whether a query may attend to a key.
 */

bool attn_has_distance_bias(const attn_options *options);
/* Elements that attn_distance_bias_make writes, including the slack; 0 when there is no such bias. */
size_t attn_distance_bias_count(const attn_options *options, const attn_mask *mask);
/* Computes the vectors into data, which has room for that many elements, and describes their layout. */
struct attn_distance_bias attn_distance_bias_make(const attn_options *options, const attn_mask *mask, void *data,
                                                  const attn_runtime *runtime);

/*
 * to[n] = the sum of all biases of query i and key from + n, for from <= key < to_key; -infinity where masks.bias is
 * -infinity. Keys that the mask hides get a number, too.
 */
void attn_bias_row(const struct attn_distance_bias *distance, const attn_mask *mask, attn_dtype compute, size_t b,
                   size_t h, size_t i, size_t from, size_t to_key, double *to);

/*
 * grad (batch, heads, q_len + kv_len) has the gradient of each distance, in the order of attn_distance_bias_make. slopes
 * (heads) and table (buckets, heads), of the compute type, are written; NULL: not wanted.
 */
void attn_gradient_of_distances(const attn_options *options, const attn_mask *mask, const double *grad, void *slopes,
                                void *table);

/*
 * ---- relative.c: the terms of relative positions (attn_relative_position) ----
 *
 * All queries of a head are multiplied by the rows of the table that distances of the request reach, and all keys
 * likewise. Their size grows with the length, and not with its square; the tile kernel picks a number for each pair.
 */

/* The rows of the tables that distances reach; count 0: none. */
struct attn_relative_rows {
    size_t first, count;
};
struct attn_relative_rows attn_relative_rows_of(const attn_request *request, const attn_mask *mask);
/* The numbers of the terms, as a double, so that it cannot overflow; and what attn_relative_run takes. */
double attn_relative_numbers(const attn_plan *plan);
struct attn_bytes attn_relative_bytes(const attn_plan *plan);
/*
 * Fills in job->relative. The tables begin at their first row in use; one that the request does not have is NULL. job has
 * its queries and keys. ATTN_OK or ATTN_ERR_NO_MEMORY.
 */
ATTN_MUST_CHECK attn_status attn_relative_run(const attn_plan *plan, const char *key_table, const char *query_table,
                                              const attn_runtime *runtime, attn_arena *arena,
                                              struct attn_heads_job *job, attn_error *err);

/* ---- heads.c: divides the work into tasks, gives them scratch, and merges their diagnostics ---- */

struct attn_bytes attn_heads_bytes(const struct attn_heads_job *job);
/*
 * Runs the job. The caller has filled in its operands, maps and mask. Records empty rows and the largest score in
 * *result. Returns ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_heads_run(struct attn_heads_job *job, const attn_runtime *runtime, attn_arena *arena,
                                           attn_result *result, attn_error *err);

/*
 * Writes x (kv_len) into a map that keeps the row of query i, and -infinity for the keys that visible (NULL: all) leaves
 * out.
 */
void attn_map_keep_row(const struct attn_heads_job *job, int which, size_t b, size_t h, size_t i, const double *x,
                       const uint8_t *visible);

/*
 * Counts job->row_is_empty into *result and lists the first of them there. ATTN_OK or ATTN_ERR_NO_MEMORY. Ends early
 * when runtime is cancelled.
 */
ATTN_MUST_CHECK attn_status attn_heads_list_empty(const struct attn_heads_job *job, const attn_runtime *runtime,
                                                  attn_arena *arena, attn_result *result, attn_error *err);
/* Takes memory for what that many tasks count of their scores, from 0 on. */
bool attn_heads_take_counts(struct attn_heads_job *job, size_t tasks, attn_arena *arena);
/* attn_heads_list_empty, and before it the sums of these counts. */
ATTN_MUST_CHECK attn_status attn_heads_gather(const struct attn_heads_job *job, size_t tasks,
                                              const attn_runtime *runtime, attn_arena *arena, attn_result *result,
                                              attn_error *err);

/*
 * Which keys some query of their head may attend to, and which queries may attend to some key: the steps scores and scaled
 * show these alone. Arena bytes; 0 when the job keeps neither of the two steps.
 */
size_t attn_seen_bytes(const struct attn_heads_job *job);
/*
 * Fills in job->key_is_seen and job->query_sees, one task per head, if the job keeps scores or scaled. ATTN_OK or
 * ATTN_ERR_NO_MEMORY, without a message. When the runtime is cancelled, the flags are of no use.
 */
ATTN_MUST_CHECK attn_status attn_seen_find(struct attn_heads_job *job, const attn_runtime *runtime, attn_arena *arena);

/*
 * ---- starts.c: attention that starts in the middle: from given scores, or from given weights ----
 *
 * attn_inputs in attn/plan.h has the equations. Row by row and in double, because nothing is multiplied before the weights.
 */

struct attn_bytes attn_starts_bytes(const struct attn_heads_job *job);
/* Its cost, as attn_plan counts it. */
double attn_starts_flops(const attn_plan *plan);
double attn_starts_time_flops(const attn_plan *plan);

/*
 * The counterpart of attn_heads_run for such a request: fills the maps, rows and context of the job, and records empty
 * rows and the largest score in *result. A row is computed by itself, so threads and neighbours change no bit. Each
 * score is rounded to the compute type after scale and cap, and after its biases: the steps show the numbers that
 * the next step reads. Returns ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_starts_run(const attn_request *request, struct attn_heads_job *job,
                                            const attn_runtime *runtime, attn_arena *arena, attn_result *result,
                                            attn_error *err);

/* ---- recurrence.c: linear with an update rule (attn/mechanism.h) ---- */

struct attn_bytes attn_recurrence_bytes(const attn_plan *plan);
/* Its cost, as attn_plan counts it; the second is what its time has beyond the first. */
double attn_recurrence_flops(const attn_plan *plan);
double attn_recurrence_time_flops(const attn_plan *plan);
/*
 * The counterpart of attn_heads_run for a recurrence: fills job->context, job->present_state and the attention map, and
 * records rows without keys: those of queries that no key and no past_state come before. Every number has sums of its
 * own, so threads and other steps change no bit. Returns ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_recurrence_run(const attn_plan *plan, struct attn_heads_job *job,
                                                const attn_runtime *runtime, attn_arena *arena, attn_result *result,
                                                attn_error *err);

/* What both passes of a recurrence read at a position of a key head. */
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

/* ---- feature_maps.c: linear and performer instead of softmax (attn/mechanism.h has the equations) ---- */

/*
 * *is_running: the mask is a range from key 0 for every query, and padding. Only then are there running sums.
 * *is_prefix: besides, the ranges of an item end at different keys. watch as in attn_mask_pairs.
 */
void attn_find_running_sums(const attn_mask *mask, const attn_runtime *watch, bool *is_running, bool *is_prefix);
struct attn_bytes attn_feature_maps_bytes(const attn_plan *plan);
double attn_feature_maps_flops(const attn_plan *plan);
/* An upper bound of the elements of any array of a run or a backward pass, as a double, so that it cannot overflow. */
double attn_feature_maps_numbers(const attn_plan *plan);

/*
 * What the stages of the forward and of the backward pass read: sizes and counts, then the items, the projection, and
 * which keys are seen at all. finds_seen: also where a mask is looked up for each head, which takes time. It takes at
 * most attn_feature_prepared_bytes. Returns ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED, without a message.
 */
struct attn_feature_job attn_feature_describe(const attn_plan *plan);
ATTN_MUST_CHECK attn_status attn_feature_prepare(struct attn_feature_job *job, const attn_plan *plan,
                                                 const struct attn_heads_job *heads, bool finds_seen,
                                                 const attn_runtime *runtime, attn_arena *arena);
size_t attn_feature_prepared_bytes(const attn_plan *plan);

/*
 * The counterpart of attn_heads_run for these mechanisms: fills job->context and the attention map, and records empty
 * rows. Results depend only on the request, because keys are summed in blocks that start at fixed keys.
 * Returns ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_feature_maps_run(const attn_plan *plan, struct attn_heads_job *job,
                                                  const attn_runtime *runtime, attn_arena *arena, attn_result *result,
                                                  attn_error *err);

#endif
