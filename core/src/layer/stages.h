/*
 * stages.h: the state that run.c, maps.c, residual.c and feed_forward.c share during a run.
 */
#ifndef ATTN_LAYER_STAGES_H
#define ATTN_LAYER_STAGES_H

#include "attn/arena.h"
#include "attn/multihead.h"
#include "gemm/gemm.h"
#include "kernel/entries.h"
#include "request/request.h"

enum { TOKEN_ROWS = 64 /* token rows per task of a norm, a gate or a sum */ };

struct layer_run {
    const attn_plan *plan;
    const attn_request *request;
    const attn_runtime *runtime;
    attn_arena *arena;
    attn_result *result;
    attn_error *err;
    size_t element; /* bytes of one number */
    /* buffers of tokens: (batch, len, features) */
    const char *x_q, *x_k, *x_v; /* the inputs, after a pre-norm */
    struct attn_operand q, k, v; /* of these tokens, before norm, rotation and cache */
    struct attn_operand present_k, present_v;
    char *context;      /* of the heads, in the layout of context_operand */
    char *scaled;       /* context times head_scale, in the same layout; context without head_scale */
    char *gate, *gated; /* gated is scaled without a gate */
    char *projected, *summed, *output;
    char *attended;             /* with a feed-forward network: the output before it */
    char *ff_normed, *expanded; /* its input after a pre-norm, and its result */
    const char *ff_input;       /* its input */
    struct attn_product *products;
    size_t product_count;
    char *product_scratch;
    struct attn_heads_job job;
    char *mean_source;
    char *normed; /* the queries after a pre-norm */
};

/* count numbers of the compute type. */
static inline char *layer_take(struct layer_run *run, size_t count)
{
    return attn_arena_take(run->arena, count, run->element);
}

static inline bool layer_wants(const struct layer_run *run, attn_step step)
{
    return attn_wants(&run->request->options, step);
}

static inline const struct attn_kernel_type *layer_kernel(const struct layer_run *run)
{
    return attn_kernel_of(run->runtime->kernel, run->plan->compute);
}

static inline size_t layer_query_tokens(const struct layer_run *run)
{
    return run->plan->dims.batch * run->plan->dims.q_len;
}

/* maps.c: the maps, their mean over heads, the mask, and rows with one number per query. */

/* Takes memory for the maps and rows that the heads fill, and turns the selections into slots. */
ATTN_MUST_CHECK attn_status attn_layer_take_maps(struct layer_run *run);
/* Computes attention_mean and mask, after the heads. */
ATTN_MUST_CHECK attn_status attn_layer_reduce_maps(struct layer_run *run);

/* present.c: the cache of the next request: the rows of the cache and the new rows in one array. */

/*
 * Sets run->present_k and run->present_v, if a wanted step shows them: the new rows where there is no cache; else an
 * array where the caller wants it, or one of its own. A cache that lies at the beginning of that array stays there.
 * ATTN_OK or ATTN_ERR_NO_MEMORY.
 */
ATTN_MUST_CHECK attn_status attn_layer_present(struct layer_run *run);

#endif
