/*
 * gradient.h: the gradients of attention, or of a whole layer.
 *
 * Given dO, the gradient of a number L with respect to the output, a run computes the gradients of L with respect to the
 * inputs, weights, bias mask, scale, slopes of ALiBi, table of relative biases, sinks and factors of heads and of pairs. For one
 * head, with P the weights and S the masked scores:
 *
 *     dV = P^T dO        dP = dO V^T        dS = P * (dP - delta)        delta_i = sum_d dO_id O_id
 *     dQ = scale dX K    dK = scale dX^T Q  dX = dS * (1 - tanh^2(x / c)) of c tanh(x / c), else dS
 *
 * Dao, "FlashAttention-2" (2023), section 3.1.2: P is computed again, tile by tile, from the log-sum-exp of the forward
 * pass, so nothing of size q_len x kv_len exists unless a map is asked for. Under dropout, dS uses P before dropout; dV
 * and dP use the decisions of the forward pass, which the seed determines. The gradients of a group of query heads are
 * summed in their key head. The gradients of linear and performer (mechanism.h) differentiate their sums, and take
 * linear time where the forward pass does; the projection of performer is a constant. Around the heads: dW = x^T dy, db
 * = sum of dy, dx = dy W^T; LayerNorm and RMSNorm after Ba et al. (2016) and Zhang and Sennrich (2019).
 *
 * Hidden positions contribute exactly 0: hidden keys and values have no influence, and their gradients are 0. The
 * gradients of queries without keys are 0, too. A token whose gradient is 0 adds nothing to the gradient of a weight or
 * of a norm, whatever numbers (NaN too) the token holds.
 */
#ifndef ATTN_GRADIENT_H
#define ATTN_GRADIENT_H

#include "attn/arena.h"
#include "attn/multihead.h"
#include "attn/plan.h"
#include "attn/runtime.h"

ATTN_BEGIN_C

/*
 * The tensors and numbers that have a gradient; ATTN_TENSOR_LIST (plan.h) has them with their members and names. Each
 * gradient has the shape of its tensor, which the request must give. When key defaults to query, or value to key, the
 * gradient is added to that of the tensor that stands in.
 */
typedef enum {
#define ATTN_GRADIENT_OF_TENSOR(code, member, name) code,
#define ATTN_GRADIENT_NONE(member)
#define ATTN_GRADIENT_OTHER(code, name) code,
    ATTN_TENSOR_LIST(ATTN_GRADIENT_OF_TENSOR, ATTN_GRADIENT_NONE, ATTN_GRADIENT_OTHER)
#undef ATTN_GRADIENT_OF_TENSOR
#undef ATTN_GRADIENT_NONE
#undef ATTN_GRADIENT_OTHER
        ATTN_GRADIENT_COUNT
} attn_gradient;

/* "inputs.query", "options.alibi" for the slopes of ALiBi: its path in a request, dots between members. */
const char *attn_gradient_name(attn_gradient gradient);
/* Whether it is a map: of the selected heads, queries and keys. */
static inline bool attn_gradient_is_map(attn_gradient gradient)
{
    return gradient == ATTN_GRADIENT_SCORES || gradient == ATTN_GRADIENT_ATTENTION;
}
/* ATTN_GRADIENT_COUNT when none has that name. */
attn_gradient attn_gradient_from_name(const char *name);

/* Zero-initialise it and fill it in. The core only reads it; the caller keeps ownership of everything. */
typedef struct {
    const attn_request *request;    /* options.want: steps of the forward pass to give back as well, may be 0 */
    const attn_tensor *grad_output; /* of the compute type, with the shape of the output */
    uint64_t of; /* bit 1 << attn_gradient for each wanted; 0: all inputs, weights, bias and scale that are given */
} attn_gradient_request;

typedef struct {
    attn_plan forward; /* dimensions and masks; want, bytes and FLOPs are those of the forward pass that will run */
    attn_steps want;   /* the steps that the request asked for */
    uint64_t of;       /* what is computed; never 0 */
    attn_tensor gradient[ATTN_GRADIENT_COUNT]; /* shape and dtype of each; data NULL */
    size_t gradient_bytes[ATTN_GRADIENT_COUNT];
    size_t result_bytes;            /* all gradients and the wanted steps */
    size_t working_bytes;           /* further arena bytes per run, not per thread; includes the forward pass */
    size_t scratch_bytes;           /* arena bytes per thread */
    attn_flops flops;               /* of forward and backward pass */
    double total_flops, time_flops; /* as in attn_plan */
    const attn_tensor *grad_output; /* of the request; it must live as long as what forward.request points to */
} attn_gradient_plan;

/*
 * Checks the whole request and fills *plan. Allocates nothing. Returns the errors of attn_plan_make, and also the
 * following. The fields "grad_output" and "of" are members of attn_gradient_request; all other paths are of attn_request.
 *
 *   ATTN_ERR_FIELD   grad_output is missing or of another type ("grad_output"); a wanted gradient is of
 *                    something that was not given, or that the mechanism does not have: under linear and performer
 *                    grad_scores, under a linear that is normalised the scale ("of")
 *   ATTN_ERR_VALUE   the gradient of the scale is wanted of performer with scale 0 ("options.scale")
 *   ATTN_ERR_SHAPE   grad_output does not have the shape of the output
 */
ATTN_MUST_CHECK attn_status attn_gradient_plan_make(const attn_gradient_request *request, attn_gradient_plan *plan,
                                                    attn_error *err);
/* The same with errors that name members as names says (plan.h), "grad_output" and "of" too. */
ATTN_MUST_CHECK attn_status attn_gradient_plan_make_named(const attn_gradient_request *request, attn_namer *names,
                                                          attn_gradient_plan *plan, attn_error *err);

/* Arena bytes for a run with that many threads, the result included: an arena with this ceiling is enough. */
size_t attn_gradient_plan_bytes(const attn_gradient_plan *plan, size_t threads);

typedef struct {
    attn_result forward;                       /* steps are valid where plan.want has the bit */
    attn_tensor gradient[ATTN_GRADIENT_COUNT]; /* valid where plan.of has the bit; row-major, in the arena of the run */
} attn_gradient_result;

/*
 * Executes plan, forward and backward, on the data of its request or of bindings (NULL: none). All memory comes from
 * arena, and the result stays in the arena. For threads, determinism and errors, the contract of attn_plan_run holds.
 */
ATTN_MUST_CHECK attn_status attn_gradient_run(const attn_gradient_plan *plan, const attn_bindings *bindings,
                                              const attn_runtime *runtime, attn_arena *arena,
                                              attn_gradient_result *result, attn_error *err);

ATTN_END_C

#endif
