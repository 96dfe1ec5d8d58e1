/*
 * multihead.h: runs a plan: projections, heads, output projection, residual, norm.
 *
 *     MultiHead(Q, K, V) = Concat(head_1 … head_h) W^O,   head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)
 *
 * Vaswani et al., "Attention Is All You Need" (2017), section 3.2.2.
 */
#ifndef ATTN_MULTIHEAD_H
#define ATTN_MULTIHEAD_H

#include "attn/arena.h"
#include "attn/plan.h"
#include "attn/runtime.h"

ATTN_BEGIN_C

/* A query whose keys are all hidden: its weights and context are 0, its lse is -infinity. */
typedef struct {
    size_t b, h, i;
} attn_row;

typedef struct {
    const char *field; /* path of the tensor in attn_request: "inputs.key"; or "output" */
    size_t count;
} attn_field_count;

enum { ATTN_FINDINGS_FIELDS = 40 };

/* What attn_diagnose (diagnose.h) finds; all zero before. A row is one query of one head. */
typedef struct {
    size_t heads;                  /* of the two lists; 0: neither the weights nor the entropy were asked for */
    const double *entropy;         /* nats: per head, the mean over batch and rows with keys; NaN when all
                                    * rows of the head are left out because they are not finite */
    const double *first_key_share; /* the weight of key 0, likewise; NULL: the weights were not asked for */
    size_t rows_not_finite;        /* left out of both means */
    bool has_rows;                 /* whether the next two were counted, which needs the weights, too */
    size_t rows_on_one_key;        /* several weights above 0, the largest over 0.99 */
    size_t rows_underflowing;      /* some key that the mask allows has weight 0 */
    attn_field_count not_finite[ATTN_FINDINGS_FIELDS]; /* the output, then the inputs when it or a row is not finite */
    size_t not_finite_fields;
} attn_findings;

/*
 * The result of a run. Tensors live in the arena of the run; several may be views of the same memory, and some are not
 * contiguous. masked is -infinity wherever the mask hides the key. scores and scaled are computed before the mask, for
 * every key that some query of the head may attend to, and every query that has a key. Keys that are hidden from all
 * queries, and queries without keys, are -infinity there.
 */
typedef struct {
    attn_tensor step[ATTN_STEP_COUNT]; /* valid where plan.want has the bit */
    /*
     * Of a mixture of experts: (batch, q_len, per_token), the chosen ones of each token from the largest logit down, and
     * their weights p. Indices are ATTN_I64. data NULL: the block has no experts.
     */
    attn_tensor expert_indices, expert_weights;
    size_t rows_without_keys;               /* how many */
    const attn_row *empty_rows;             /* the first of them, in order */
    size_t empty_rows_listed;               /* at most ATTN_EMPTY_ROWS_LISTED */
    size_t capped_scores, saturated_scores; /* of c tanh(s / c): scores that are not hidden, and of them |s| >= 3 c */
    attn_findings findings;                 /* of attn_diagnose */
    double max_abs_score;                   /* largest finite |score| of the step scaled that is not hidden */
} attn_result;

enum { ATTN_EMPTY_ROWS_LISTED = 4096 };

/*
 * Executes plan, on the data of its request or of bindings (NULL: none). All memory comes from arena, and the result
 * stays in the arena. Safe from several threads with one plan, each with its own arena, as long as the plan does not name
 * memory for results.
 *
 * On one kind of processor, with one build of the library and of the libraries below it (the BLAS, libm), every runtime
 * with the same kernel gives the same bytes, whichever other steps the request asks for. OpenBLAS and libm choose their
 * code by the processor, so another kind may give other last bits. The rounding mode, FTZ and DAZ of the calling thread
 * and of a pool's threads change nothing. A caller with its own runtime must set these modes in its own threads.
 *
 * ATTN_OK, or, with *result undefined,
 *   ATTN_ERR_NO_MEMORY  the arena is full
 *   ATTN_ERR_CANCELLED  runtime->is_cancelled returned true
 *   ATTN_ERR_FIELD      bindings has data for an input that the request does not have, or an input has no data
 */
ATTN_MUST_CHECK attn_status attn_plan_run(const attn_plan *plan, const attn_bindings *bindings,
                                          const attn_runtime *runtime, attn_arena *arena, attn_result *result,
                                          attn_error *err);

ATTN_END_C

#endif
