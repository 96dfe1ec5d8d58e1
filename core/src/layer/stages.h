/* stages.h: the state of a run, and its stages beside those of run.c. A stage that fails says so in run->status. */
#ifndef ATTN_LAYER_STAGES_H
#define ATTN_LAYER_STAGES_H

#include "layer/layer.h"
#include "request/request.h"

enum { TOKEN_ROWS = 64 /* token rows per task of a norm, a gate or a sum */ };

struct layer_run {
    const attn_plan *plan;
    const attn_request *request;
    const attn_runtime *runtime;
    attn_arena *arena;
    attn_result *result;
    attn_error *err;
    attn_status status; /* of the first failure, behind which no further stage runs */
    size_t element;     /* bytes of one number */
    /* buffers of tokens: (batch, len, features) */
    const char *x_q, *x_k, *x_v;                     /* the inputs, after a pre-norm */
    char *query_latent, *key_latent, *key_shared;    /* NULL: there is none */
    const char *bare_query_latent, *bare_key_latent; /* the latents before their norm */
    struct attn_operand q, k, v;                     /* of these tokens, before norm, rotation and cache */
    struct attn_operand present_k, present_v;
    char *relative_key, *relative_query; /* tables of relative positions, from the first row in use; NULL: none */
    char *context;                       /* of the heads, in the layout of job.context */
    struct attn_operand concat;          /* (batch, out_heads, q_len, d_v), behind head_scale and differential */
    char *scaled;                        /* its numbers: the context without these two */
    char *gate, *gated;                  /* gated is scaled without a gate */
    char *projected, *summed, *output;
    char *attended;       /* with a feed-forward network: the output before it */
    const char *ff_input; /* what it reads, after a pre-norm */
    char *expanded;       /* its result */
    struct attn_product *products;
    size_t product_count;
    char *product_scratch;
    struct attn_heads_job job;
    char *mean_source;
};

static inline bool layer_goes_on(const struct layer_run *run)
{
    return run->status == ATTN_OK;
}

/* count elements of that size; NULL: the run has failed, or there is no memory, which it remembers. */
static inline void *layer_take_of(struct layer_run *run, size_t count, size_t size)
{
    void *taken = layer_goes_on(run) ? attn_arena_take(run->arena, count, size) : NULL;
    if (taken == NULL && layer_goes_on(run))
        run->status = attn_fail_no_memory(run->err);
    return taken;
}

/* The same for numbers of the compute type. */
static inline char *layer_take(struct layer_run *run, size_t count)
{
    return layer_take_of(run, count, run->element);
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

/* ---- branches.c: norm before, network, residual and norm after ---- */

/* run->x_q = norm(query), or the query itself without a pre-norm. */
void attn_layer_pre_norm(struct layer_run *run);
/*
 * run->summed = query + dropout(projected), run->output = norm(summed), each only if the request asks for it. A result
 * overwrites its input, unless the input is a wanted step or belongs to the steps of the heads.
 */
void attn_layer_finish(struct layer_run *run);
/* Numbers that attn_layer_feed_forward takes from the arena, beyond the steps that request wants. */
size_t attn_feed_forward_numbers(const attn_request *request, const attn_dims *dims);
/* Without a network it does nothing. With one, run->output becomes run->attended, and then the output of the block. */
void attn_layer_feed_forward(struct layer_run *run);

/* ---- experts.c: the mixture of experts of a feed-forward network (plan.h) ---- */

/* The bytes that it takes from the arena; the most numbers of one kind, and its floating-point operations; 0: none. */
size_t attn_experts_bytes(const attn_request *request, const attn_dims *dims);
double attn_experts_numbers(const attn_request *request, const attn_dims *dims);
double attn_experts_flops(const attn_request *request, const attn_dims *dims);
/*
 * run->expanded = what the chosen experts give to run->ff_input, plus what was there before, times its gate, if the
 * tokens share a network. Sets the experts of run->result.
 */
void attn_layer_experts(struct layer_run *run);

/* ---- edits.c: what the caller changes (plan.h) ---- */

bool attn_is_edited(const attn_request *request, attn_edit_place place);
bool attn_edits_check(const attn_request *request, struct attn_check *check);
/* The bytes that they take from the arena. */
size_t attn_edits_bytes(const attn_request *request, const attn_dims *dims);
/* Asks the caller about numbers with so many rows. Returns a flag for each, in the arena; NULL: the run has failed. */
const bool *attn_layer_edit(struct layer_run *run, attn_edit_place place, const attn_tensor *numbers, size_t rows);
/* Asks about weights, whose context it computes again, and about the context. */
void attn_layer_edit_heads(struct layer_run *run);

/* ---- steps.c: what a run keeps ---- */

/* Takes memory for the maps and rows that the heads fill, and turns the selections into slots. */
void attn_layer_take_maps(struct layer_run *run);
/* Computes attention_mean, difference and mask, after the heads. */
void attn_layer_reduce_maps(struct layer_run *run);
/*
 * The cache of the next request. Sets run->present_k and run->present_v, if a wanted step shows them: the new rows where
 * there is no cache; else an array where the caller wants it, or one of its own, with the rows of the cache and the new
 * rows. A cache that lies at the beginning of that array stays there.
 */
void attn_layer_present(struct layer_run *run);
/* Shows the steps in the result, copied to where the plan wants them. */
void attn_layer_hand_over(struct layer_run *run);

/* ---- contribution.c: the norm of what each key adds to the output projection of a query (plan.h) ---- */

/* The bytes that the step takes beside its map, and its floating-point operations; 0: not wanted. */
size_t attn_contribution_bytes(const attn_plan *plan);
double attn_contribution_flops(const attn_plan *plan);
/* After the heads: scales the weights of the selected maps by the norms of the transformed values. */
void attn_layer_contribution(struct layer_run *run);

#endif
