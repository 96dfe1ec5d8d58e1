/* backward.h: the backward pass of a layer: what is wanted, the state of a run, and its stages beside run.c. */
#ifndef ATTN_BACKWARD_BACKWARD_H
#define ATTN_BACKWARD_BACKWARD_H

#include <assert.h>

#include "attn/gradient.h"
#include "base/size.h"
#include "layer/layer.h"

enum { ROLES = 3 }; /* PROJECT_Q, _K, _V; inputs are numbered alike */

/* ---- the job of the heads, which tiles read ---- */

struct attn_gradient_heads {
    /* Dimensions, operands (including the context), mask, selections and dropout of the forward pass. */
    struct attn_heads_job job;
    struct attn_operand grad_context;
    const void *lse;                            /* (batch, heads, q_len) */
    struct attn_operand grad_q, grad_k, grad_v; /* written; data NULL: not wanted. For keys and values: the new rows, */
    struct attn_operand grad_past_k, grad_past_v; /* and the cached rows before them */
    size_t past_len;                              /* the keys of job.kv_len that are cached */
    void *grad_scores, *grad_attention;           /* maps, by the selections of job; NULL: not wanted */
    void *grad_bias;                              /* in the shape of the given bias, row-major; NULL: not wanted */
    size_t bias_size[4], bias_step[4]; /* its shape with 1 in front; elements between neighbours, 0: broadcast */
    double
        *grad_distance; /* (batch, heads, q_len + kv_len), in the order of attn_distance_bias_make; NULL: not wanted */
    void *grad_sinks;   /* (heads), of the compute type; NULL: not wanted */
    const void *lse_keys; /* where there are sinks: (batch, heads, q_len), -infinity for rows without keys */
    double *grad_scale;   /* NULL: not wanted */
    void *grad_decay, *grad_beta, *grad_past_state; /* of a recurrence, in the shapes of the inputs; NULL: not wanted */
    /* Filled in by attn_gradient_heads_run. */
    void *delta;               /* (batch, heads, q_len) */
    size_t splits, split_keys; /* of the keys of a head */
    char *parts;               /* of dq: (split, batch, heads, q_len, d_k in whole vectors) */
    double *distance_parts;    /* of grad_distance: (split, batch, heads, q_len + kv_len) */
    double *scale_parts;       /* one for each task that sums the parts */
};

/* ---- plan.c: the decisions and sizes that a plan and its runs must agree on ---- */

static inline bool attn_gradient_is_wanted(const attn_gradient_plan *plan, attn_gradient gradient)
{
    return (plan->of >> gradient & 1) != 0;
}

/* The input that a role reads; key and value may default to another input. */
attn_role attn_gradient_owner(const attn_request *request, attn_role role);
/* The weight of a role; the fused one if it has none of its own. */
attn_gradient attn_gradient_weight_of(const attn_request *request, attn_role role);

/* The bias beside a weight, or the shift beside a gain: they stand side by side in ATTN_AFFINE_LIST. */
static inline attn_gradient attn_gradient_bias_beside(attn_gradient weight)
{
    return (attn_gradient)(weight + 1);
}

/* Which parts of the backward pass run, and the number of elements of each intermediate buffer; 0: no buffer. */
struct attn_gradient_needs {
    bool role[ROLES];                                 /* the gradient of q, k, v */
    bool input[ROLES];                                /* of the inputs of the projections */
    bool heads;                                       /* of q, k, v or anything else within the heads */
    bool concat;                                      /* of concat, for the heads or their factors */
    size_t grad_gate;                                 /* of the gate before its sigmoid */
    size_t summed;                                    /* the input of a post-norm, if it is not a step */
    size_t grad_summed, grad_projected, grad_context; /* projected: before dropout, or the norm of the branch */
    size_t grad_role[ROLES];                          /* where it is not the gradient of an input */
    size_t grad_input[ROLES];                         /* the same */
    size_t distance_bias;                             /* the biases by distance, computed again */
    size_t grad_distance;                             /* doubles of their gradient */
    size_t live;                                      /* bytes of flags */
    size_t partials;                                  /* doubles of a norm */
    size_t latents;                                   /* of latents, and of keys in parts */
};

struct attn_gradient_needs attn_gradient_needs_of(const attn_gradient_plan *plan);
/* The job of the heads. Where a gradient is wanted, its pointer is not NULL, but points to no memory. */
struct attn_gradient_heads attn_gradient_describe_heads(const attn_gradient_plan *plan);

/* The rows that qk_norm normalises in the tokens of PROJECT_Q or _K: rows of d numbers, with gains in turn. */
struct attn_gradient_norm attn_gradient_describe_qk_norm(const attn_gradient_plan *plan, attn_role role);

/* ---- run.c ---- */

struct backward_run {
    const attn_gradient_plan *plan;
    const attn_request *request; /* of the forward pass, with the steps that the backward pass needs */
    const attn_runtime *runtime;
    attn_arena *arena;
    attn_gradient_result *result;
    attn_error *err;
    attn_status status; /* of the first failure, behind which no further stage runs */
    struct attn_gradient_needs needs;
    attn_dtype compute;
    size_t element;
    struct attn_multihead_kept kept; /* of the forward pass */
    uint8_t *is_live;                /* scratch of attn_gradient_of_affine */
    double *partials;                /* scratch of attn_gradient_norm_run */
    char *affine_scratch;
    const char *x[ROLES];       /* the input of the projection of each role */
    const char *grad_output;    /* (batch, q_len, d_out); heads first for a query of rank 4 */
    const char *grad_summed;    /* before the post-norm */
    const char *grad_projected; /* before dropout and residual */
    const char *grad_gated;     /* before the output projection */
    const char *grad_concat;    /* before the gate */
    const char *grad_context;   /* before head_scale */
    char *context_memory;       /* memory of the last three; NULL: none is needed */
    const char *grad_query;  /* of a parallel network: of the query if it has a norm, else of what projections read */
    char *grad_gate;         /* NULL: not wanted */
    char *grad_role[ROLES];  /* of q, k and v; NULL: not wanted */
    char *grad_input[ROLES]; /* of x; NULL: not wanted */
    const char *drop_from;   /* of drop_task */
    char *drop_to;
};

/* Where a gradient of the result is written; NULL: not wanted. */
static inline void *backward_gradient(const struct backward_run *run, attn_gradient gradient)
{
    return run->result->gradient[gradient].data;
}

/* A step of the forward pass. */
static inline const attn_tensor *backward_step(const struct backward_run *run, attn_step step)
{
    return &run->result->forward.step[step];
}

static inline bool backward_goes_on(const struct backward_run *run)
{
    return run->status == ATTN_OK;
}

/* count elements of that size; NULL: the run has failed, or there is no memory, which it remembers. */
static inline void *backward_take(struct backward_run *run, size_t count, size_t size)
{
    void *taken = backward_goes_on(run) ? attn_arena_take(run->arena, count, size) : NULL;
    if (taken == NULL && backward_goes_on(run))
        run->status = attn_fail_no_memory(run->err);
    return taken;
}

static inline size_t backward_query_tokens(const struct backward_run *run)
{
    return run->plan->forward.dims.batch * run->plan->forward.dims.q_len;
}

static inline const struct attn_kernel_type *backward_kernel(const struct backward_run *run)
{
    return attn_kernel_of(run->runtime->kernel, run->compute);
}

/* ---- norm.c: the normalisation of token vectors (attn_norm_row_back in kernel/entries.h) ---- */

struct attn_gradient_norm {
    attn_norm_type type;
    double eps;
    size_t rows, d;
    size_t gains;            /* rows use that many gains and shifts in turn: 1, or the heads of a token */
    const attn_tensor *gain; /* NULL: 1 */
    const void *x, *grad_y;
    void *grad_x; /* may be grad_y; NULL: not wanted */
};

/* Doubles of run->partials, beside a factor 2 gains d. */
size_t attn_gradient_norm_partials(size_t rows);
/*
 * Writes grad_x and the gradients of the gain and the shift, of gains * d numbers each, if they are wanted. A row of
 * grad_y that is all 0 gives 0 and adds nothing, even if its x is NaN. gain ATTN_GRADIENT_COUNT: of neither.
 */
void attn_gradient_norm_run(const struct backward_run *run, const struct attn_gradient_norm *norm, attn_gradient gain);

/*
 * ---- projection.c: y = x W + b, for separate, per-head and fused weights ----
 *
 *     dx = dy W^T        dW = x^T dy        db = the sum of dy over all tokens
 */

/* One projection, with its input and the gradient of its output. */
struct attn_gradient_projection {
    attn_projection slices;
    size_t len;
    const char *x;      /* (batch, len, slices.inner) */
    const char *grad_y; /* (batch, len, slices.slices * slices.columns) */
};

/* The bytes per thread of run->affine_scratch. */
size_t attn_gradient_projection_scratch_bytes(attn_dtype compute);
/* grad_x (batch, len, inner) = the sum over count projections of the same tokens. May be called with count 0. */
void attn_gradient_of_input(const struct backward_run *run, const struct attn_gradient_projection *projections,
                            size_t count, size_t len, size_t inner, char *grad_x);
/*
 * The parts of the gradients of a weight and its bias (with their whole shape) that belong to the slices, if they are
 * wanted. A token whose grad_y is all 0 adds nothing to the weight, even if its x is NaN.
 */
void attn_gradient_of_affine(const struct backward_run *run, const struct attn_gradient_projection *projection,
                             attn_gradient weight);
/* to = a + b for count numbers, b NULL: 0; to may be a or b. */
void attn_gradient_add(const struct backward_run *run, size_t count, const void *a, const void *b, void *to);
/*
 * From the sum residual + residual_scale * branch_norm(x) back to x: to = the gradient by x, (tokens, d). norm has the gain of
 * branch_norm, whose own gradient nobody asks for.
 */
void attn_gradient_of_branch(const struct backward_run *run, const attn_affine *norm, size_t d, const void *x,
                             const void *grad_sum, void *to);

/*
 * ---- latents.c: what stands before the weights of queries, keys and values (attn_weights) ----
 *
 *     dc = dq W_query^T,  or dk W_key^T + dv W_value^T;  then back through the norm of the latent
 *     d(x W_key_shared) = the sum over the key heads of the last features of dk
 */

enum { READ_SHARED = PROJECT_GATE + 1, READERS };

/* The numbers that the next two functions take from the arena. */
size_t attn_gradient_latents_numbers(const attn_dims *dims, const struct attn_gradient_needs *needs);
/* Cuts the gradient of keys into those of readers[PROJECT_K] and [READ_SHARED], if there is one and heads share features. */
void attn_gradient_cut_keys(struct backward_run *run, struct attn_gradient_projection readers[]);
/*
 * Replaces readers of latents, by PROJECT_Q and PROJECT_K, by those of inputs that make them, and adds the gradients of
 * the weights and norms of latents. A reader whose grad_y is NULL reads nothing.
 */
void attn_gradient_latents_run(struct backward_run *run, struct attn_gradient_projection readers[]);

/*
 * ---- heads.c: attention over all batch items and heads ----
 *
 * A task owns the keys of one split of one key head. It sums their dk and dv over all queries of the group, and the
 * part of dq that comes from its keys. The parts of dq are added in the order of the splits. Only the shape determines
 * the splits, so the number of threads changes no bit.
 */

/* The bytes of attn_gradient_heads_run, which only depend on whether pointers of operands are NULL. */
struct attn_bytes attn_gradient_heads_bytes(const struct attn_gradient_heads *heads);

/* ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED. */
ATTN_MUST_CHECK attn_status attn_gradient_heads_run(struct attn_gradient_heads *heads, const attn_runtime *runtime,
                                                    attn_arena *arena, attn_error *err);

/*
 * ---- features.c: the heads of linear and performer ----
 *
 *     w_ij = phi(q_i) phi(k_j)      S_i = sum_j w_ij (v_j, 1) = (N_i, D_i)      out_i = N_i / D_i
 *     dS_i = (dO_i / D_i, -dO_i N_i / D_i^2), or (dO_i, 0) without a denominator
 *     dphi(q_i) = sum_j phi(k_j) (v_j, 1) dS_i            dphi(k_j) = R_j (v_j, 1)         dv_j = R_j^T phi(k_j)
 *     R_j = sum over the queries that see key j of phi(q_i) dS_i^T
 *
 * As in the forward pass, sums over keys are running sums where the mask allows it; R is summed from the last query
 * back. Performer subtracts the largest P s from its exponents. With eps above 0 that changes the result, so the
 * largest P s is differentiated, too. The projection of performer is a constant.
 */

struct attn_bytes attn_gradient_features_bytes(const attn_plan *plan);
double attn_gradient_features_flops(const attn_plan *plan);

/*
 * The counterpart of attn_gradient_heads_run for these mechanisms. Reads job, grad_context and past_len of heads, and
 * writes the gradients of q, k, v, the cache and the scale; these mechanisms have no others. Returns ATTN_OK,
 * ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_gradient_features_run(const attn_plan *plan, const struct attn_gradient_heads *heads,
                                                       const attn_runtime *runtime, attn_arena *arena, attn_error *err);

/*
 * ---- recurrence.c: the heads of linear with an update rule (attn/mechanism.h) ----
 *
 * From the last position back, with the gradient dS of the state behind it, S' the state after it has forgotten, and
 * r = v - S'^T k, or v without beta:
 *
 *     dq = scale S dO               dS += scale q dO^T               du = dS^T k
 *     dv = beta du                  dbeta = du r                     dk = beta (dS r - S' du)    without beta: dS r
 *     dS' = dS - beta k du^T        ddecay_f = e^g_f sum_c dS'_fc S_fc                           without beta: dS
 *
 * and then dS = diag(e^g) dS'. The states are computed again, from some that are kept. In double, for both types.
 */

struct attn_bytes attn_gradient_recurrence_bytes(const attn_plan *plan);
/* The numbers that a thread works with, as a double, so that it cannot overflow. */
double attn_gradient_recurrence_numbers(const attn_plan *plan);
double attn_gradient_recurrence_flops(const attn_plan *plan);
/* The counterpart of attn_gradient_heads_run: writes the gradients of q, k, v, scale, decay, beta and past_state. */
ATTN_MUST_CHECK attn_status attn_gradient_recurrence_run(const attn_plan *plan, const struct attn_gradient_heads *heads,
                                                         const attn_runtime *runtime, attn_arena *arena,
                                                         attn_error *err);

/*
 * ---- feed_forward.c: the feed-forward network of a block, with its norm and residual ----
 *
 *     h = act(up)            dup = dh act'(up)
 *     h = act(gate) * up     dup = dh act(gate)      dgate = dh up act'(gate)
 *
 * up and gate are computed again from the input of the network.
 */

/* Numbers that the stage takes from the arena. */
size_t attn_gradient_feed_forward_numbers(const attn_request *request, const attn_dims *dims);
/* From the output of a block back to that of its attention: run->grad_output, and run->grad_query. */
void attn_gradient_feed_forward_run(struct backward_run *run);

/*
 * ---- tile.c ----
 *
 * One tile of the backward pass: some queries of a head by some keys.
 *
 * The kernel computes the products, and the rows between them. In the products, a row of q, k, v or dO with a number
 * that is not finite is replaced by zeros, because 0 times that number would be NaN in other rows, too. Its contribution
 * to the pairs that the mask allows is added pair by pair.
 */

enum {
    /* Queries and keys per tile. Sums are taken per tile, so the bits of a result depend on these sizes. */
    GRADIENT_ROWS = 96,
    GRADIENT_KEYS = 192,
    /* Queries, or keys, that share the range of what they see: whole register tiles. */
    GRADIENT_GROUP = 2 * BACKWARD_ROW_UNIT,
    GRADIENT_STRIDE = GRADIENT_KEYS + 16, /* of tile rows: not a power of two, to avoid cache aliasing */
};
static_assert(GRADIENT_ROWS % BACKWARD_ROW_UNIT == 0 && GRADIENT_ROWS % BACKWARD_COLUMN_UNIT == 0 &&
                  GRADIENT_KEYS % BACKWARD_ROW_UNIT == 0 && GRADIENT_KEYS % BACKWARD_COLUMN_UNIT == 0,
              "a tile is whole units");

struct gradient_tile {
    const struct attn_gradient_heads *heads;
    const struct attn_kernel_type *kernel;
    size_t b, h, kv_head;
    size_t row0, rows, key0, keys;
    struct attn_backward_rows q, k, v, o; /* o: of the gradient of the context */
    attn_span span[GRADIENT_ROWS];        /* the tile's columns that each row may see; allow tells more */
    bool is_whole;                        /* every row sees every column */
    const uint8_t *allow;                 /* (rows, GRADIENT_STRIDE); NULL: what the spans allow */
    /* scratch */
    char *x, *g, *masked;              /* (rows, GRADIENT_STRIDE); masked NULL: the same as g */
    char *weights;                     /* likewise; NULL: not wanted */
    char *k_transposed, *v_transposed; /* (features, GRADIENT_STRIDE) */
    char *grad_k, *grad_v;             /* of the tile's keys, with the strides of k and v */
    char *added;
    uint8_t *allow_copy, *keep;
};

/* The features of a row, in whole vectors. */
static inline size_t gradient_columns(size_t features)
{
    return attn_round_up(features, BACKWARD_COLUMN_UNIT);
}

/* Between rows of numbers that products read or write, and of which features count: not a power of two. */
static inline size_t gradient_stride(size_t features)
{
    return gradient_columns(features) + BACKWARD_COLUMN_UNIT;
}

/* Divides the scratch memory; with memory NULL it only measures. Returns the bytes. */
size_t gradient_tile_lay_out(const struct attn_gradient_heads *heads, const attn_kernel *kernel,
                             struct gradient_tile *tile, char *memory);
/* Loads the tile's keys: key0 … of a key head. */
void gradient_tile_set_keys(struct gradient_tile *tile, size_t b, size_t kv_head, size_t key0);
/* Loads the tile's queries. false: no pair is allowed, so there is nothing to compute. */
bool gradient_tile_set_rows(struct gradient_tile *tile, size_t h, size_t row0);
/* x: the weights after dropout; g: the gradient of scale q·k; masked, weights: those of the masked score and the weight. */
void gradient_tile_score(struct gradient_tile *tile);
/*
 * Adds the results of the tile to grad_k and grad_v, and to part, the tile's rows of dq, which are gradient_columns
 * apart. part NULL: not wanted. is_first: part is written, not added to.
 */
void gradient_tile_multiply(const struct gradient_tile *tile, char *part, bool is_first);

#endif
