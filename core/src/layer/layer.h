/*
 * layer.h: a layer, for its own files and for the backward pass: decisions and sizes that a plan and its runs must agree
 * on, the run, and the stages that go both ways.
 */
#ifndef ATTN_LAYER_LAYER_H
#define ATTN_LAYER_LAYER_H

#include <assert.h>

#include "attention/attention.h"
#include "gemm/gemm.h"

/*
 * ---- projection.c ----
 *
 * The weights of a layer as slices of columns, which turn tokens into queries, keys, values and gates.
 *
 * Separate, per-head and fused weights all become a few slices: columns of a weight matrix that give neighbouring
 * columns of the projected tokens. plan.c checks the shapes, run.c multiplies.
 */

typedef enum { PROJECT_Q, PROJECT_K, PROJECT_V, PROJECT_GATE, PROJECT_RELATIVE_KEY, PROJECT_RELATIVE_QUERY } attn_role;

/*
 * The slices of a role. Each has the same number of columns; slice s gives columns s * columns … of the projected
 * tokens. It starts at element first + s * step of the weight, and at element bias_first + s * bias_step of the bias.
 * Rows (in_out) or columns (out_in) of the weight are w_stride apart.
 */
typedef struct {
    const attn_affine *affine;
    size_t slices, columns;
    size_t inner; /* features of one token of the input */
    size_t first, step, w_stride;
    size_t bias_first, bias_step;
} attn_projection;

/* The slices of a role, from weights that the plan has checked against dims. */
attn_projection attn_projection_of(const attn_weights *weights, const attn_dims *dims, attn_role role);

/* All columns of the fused weight, in their order, as one slice. */
attn_projection attn_projection_of_fused(const attn_weights *weights, const attn_dims *dims);

/* The distance in columns from one head, which has d columns, to the next; 0: heads are not evenly spaced. */
size_t attn_projection_head_step(const attn_projection *projection, size_t d);

/* A weight of rank 2 that turns tokens of inner features into columns features, as one slice. */
attn_projection attn_projection_of_matrix(const attn_affine *affine, attn_layout layout, size_t inner, size_t columns);

/* The output projection: one slice for rank 2 and for rank 3. */
attn_projection attn_projection_of_output(const attn_weights *weights, const attn_dims *dims);

/* The largest attn_narrow_inner of all weights of a layer and its feed-forward network. */
size_t attn_projection_narrow_inner(const attn_weights *weights, attn_dtype compute);

/*
 * Turns the slices into products; a number of tokens and biases has element bytes. tokens has x, y, batch and rows; a row of y has the
 * slices one after the other. The products use the panels of kernel if the weight has them. kernel NULL: no panels.
 */
void attn_projection_products(const attn_projection *projection, attn_layout layout, size_t element,
                              const attn_kernel *kernel, const struct attn_product *tokens,
                              struct attn_product *products);

/* ---- plan.c ---- */

/* Whether one product by a fused weight gives queries, keys and values. */
bool attn_projects_at_once(const attn_request *request, const attn_dims *dims);
/* The most products that run together: the slices of three projections, or the output projection. */
size_t attn_product_slots(const attn_request *request, const attn_dims *dims);
/* The scratch bytes of a thread for the products of a layer; kernel NULL: by any kernel. */
size_t attn_layer_products_scratch_bytes(const attn_kernel *kernel, const attn_request *request);
/* Whether attention_mean needs a map of its own, and its elements. */
bool attn_needs_mean_source(const attn_request *request);
size_t attn_mean_source_count(const attn_plan *plan);
/* The step that a map of the job shows: both are numbered alike. */
static_assert(ATTN_STEP_DROPPED - ATTN_STEP_SCORES == (int)MAP_DROPPED - (int)MAP_SCORES, "a map for each step");
static inline attn_step attn_step_of_map(int which)
{
    return (attn_step)((int)ATTN_STEP_SCORES + which - (int)MAP_SCORES);
}

/* The job of the heads for the kernels, without operands and memory. */
struct attn_heads_job attn_describe_job(const attn_plan *plan);

/* ---- run.c ---- */

/* Intermediate results that the backward pass reads besides the steps. They stay in the arena. */
struct attn_multihead_kept {
    const char *query;                     /* the queries, after a pre-norm: (batch, q_len, d_query) */
    const char *gate;                      /* before its sigmoid: (batch, q_len, heads * d_gate) */
    const char *query_latent, *key_latent; /* before their norm */
    const char *ff_input;                  /* what enters the feed-forward network */
    char *product_scratch;                 /* of attn_products_run */
};

/* attn_plan_run on the data of the request, which also fills in *kept. */
ATTN_MUST_CHECK attn_status attn_multihead_run(const attn_plan *plan, const attn_runtime *runtime, attn_arena *arena,
                                               attn_result *result, struct attn_multihead_kept *kept, attn_error *err);

/* ---- steps.c ---- */

/* Takes memory for the places of selected heads, queries and keys. ATTN_ERR_CANCELLED if watch says so; NULL: never. */
ATTN_MUST_CHECK attn_status attn_invert_selections(const attn_options *options, const attn_dims *d,
                                                   const attn_runtime *watch, attn_arena *arena,
                                                   struct attn_heads_job *job, attn_error *err);

/* ---- queries_keys.c: between projection and heads ---- */

/* The arena bytes of attn_qk_run, in total and per thread; its floating-point operations. */
size_t attn_qk_bytes(const attn_plan *plan);
size_t attn_qk_scratch_bytes(const attn_plan *plan);
double attn_qk_flops(const attn_plan *plan);
/*
 * Normalises and rotates queries and keys. On entry, job->q and job->k.added are the new tokens, projected or given.
 * Without a norm and a rotation they stay the same views, but queries of 16 bits are widened. Returns ATTN_OK or
 * ATTN_ERR_NO_MEMORY.
 */
ATTN_MUST_CHECK attn_status attn_qk_run(const attn_plan *plan, const attn_runtime *runtime, attn_arena *arena,
                                        struct attn_heads_job *job, attn_error *err);
/*
 * The backward pass of the rotation: rotates the rows of grad_q and grad_k, of the new tokens, back in place. data
 * NULL: not wanted. Takes up to attn_qk_bytes in total, and its own scratch per thread.
 */
ATTN_MUST_CHECK attn_status attn_qk_turn_back(const attn_plan *plan, const attn_runtime *runtime, attn_arena *arena,
                                              const struct attn_operand *grad_q, const struct attn_operand *grad_k,
                                              attn_error *err);
size_t attn_qk_turn_back_scratch_bytes(const attn_plan *plan);

/*
 * ---- head_scale.c: a factor for each head, and the difference of each pair of heads, between the heads and the gate ----
 *
 *     concat = s_h * context of head h                                                 s: head_scale, or 1
 *     concat = s_2p * context of head 2p - differential[p] s_2p+1 * context of head 2p+1      for each pair p
 *
 * Michel, Levy, Neubig, "Are Sixteen Heads Really Better than One?" (2019), section 2.1, where the factors are 0 or 1.
 */

/* Without pairs, concat may be the context. A factor 0 gives 0, even for NaN. The request has one of the two options. */
void attn_head_scale_run(const attn_plan *plan, const struct attn_operand *context, const struct attn_operand *concat,
                         const attn_runtime *runtime);
/*
 * The backward pass. With c_h the factor of head h in concat, grad_context = c_h * grad, and the gradient of c_h is the sum
 * of grad * context over the head h; grad_factors is that of head_scale. Where grad is 0 nothing is added, even if context
 * is NaN. Without pairs, grad_context may be grad. Memory that is NULL is not wanted.
 */
void attn_head_scale_back(const attn_plan *plan, const struct attn_operand *context, const struct attn_operand *grad,
                          const struct attn_operand *grad_context, void *grad_factors, void *grad_differential,
                          const attn_runtime *runtime);

/* ---- branches.c: norms by tasks, activations (activation.c), and the feed-forward network without its surroundings ---- */

/* y = norm(x) for rows of norm->d numbers of the compute type; y may be x. */
void attn_rows_norm(const struct attn_row_norm *norm, attn_dtype compute, size_t rows, const void *x, void *y,
                    const attn_runtime *runtime);
/* y = act(x), or act(x) * times where times is not NULL, for count numbers; y may be x or times. */
void attn_numbers_activate(attn_activation activation, attn_dtype compute, size_t count, const void *x,
                           const void *times, void *y, const attn_runtime *runtime);

/*
 * It reads x, (tokens, d_in). up, gate and hidden are (tokens, d_ff); gate is NULL for a network without a gate. hidden
 * may be up or gate. scratch is that of attn_products_run.
 */
struct attn_feed_forward {
    const attn_request *request;
    const attn_dims *dims;
    const attn_runtime *runtime;
    char *scratch;
    const char *x;
    char *up, *gate, *hidden;
};

enum attn_feed_forward_role { FEED_FORWARD_UP, FEED_FORWARD_GATE, FEED_FORWARD_DOWN };

/* The weight of a role as one slice. */
attn_projection attn_feed_forward_slice(const attn_request *request, const attn_dims *dims,
                                        enum attn_feed_forward_role role);
/* up and gate from x; then hidden = act(up), or act(gate) * up. */
void attn_feed_forward_expand(const struct attn_feed_forward *network);

#endif
