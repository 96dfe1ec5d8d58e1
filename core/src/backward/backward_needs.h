/*
 * backward_needs.h: the decisions and sizes that backward_plan.c and backward.c must agree on.
 */
#ifndef ATTN_BACKWARD_BACKWARD_NEEDS_H
#define ATTN_BACKWARD_BACKWARD_NEEDS_H

#include "attn/gradient.h"
#include "backward/backward_heads.h"
#include "backward/backward_norm.h"
#include "layer/projection.h"

enum { ROLES = 3 }; /* PROJECT_Q, _K, _V; inputs are numbered alike */

static inline bool attn_gradient_is_wanted(const attn_gradient_plan *plan, attn_gradient gradient)
{
    return (plan->of >> gradient & 1) != 0;
}

/* The tensor that a gradient is of; NULL when it was not given, or is no tensor. */
const attn_tensor *attn_gradient_subject(const attn_request *request, attn_gradient gradient);
/* The input that a role reads: key and value may default to another. */
attn_role attn_gradient_owner(const attn_request *request, attn_role role);
/* Weight and bias of a role, the fused ones when it has no own: *bias is ATTN_GRADIENT_COUNT or a gradient. */
attn_gradient attn_gradient_weight_of(const attn_request *request, attn_role role);
attn_gradient attn_gradient_bias_of(const attn_request *request, attn_role role);
/* How qk_norm sees the projected tokens of PROJECT_Q or _K: rows of d numbers, gains of them one after the other. */
struct attn_gradient_norm attn_gradient_describe_qk_norm(const attn_gradient_plan *plan, const attn_request *request,
                                                         attn_role role);

/* Which parts of the backward pass run, and the numbers in each buffer between them; 0: there is none. */
struct attn_gradient_needs {
    bool role[ROLES];  /* the gradient of q, k, v */
    bool input[ROLES]; /* of what enters the projections */
    bool heads;        /* of anything within the heads */
    bool output;       /* of the output projection */
    size_t grad_gate;  /* of the gate before its sigmoid */
    size_t summed;     /* what a post-norm saw, where no step has it */
    size_t grad_summed, grad_projected, grad_context;
    size_t grad_role[ROLES];  /* where it is not the gradient of an input already */
    size_t grad_input[ROLES]; /* the same */
    size_t distance_bias;     /* the biases by distance once more */
    size_t grad_distance;     /* doubles of their gradient */
    size_t live;              /* bytes of flags */
    size_t partials;          /* doubles of a norm */
};

struct attn_gradient_needs attn_gradient_needs_of(const attn_gradient_plan *plan, const attn_request *request);
/*
 * The heads as the backward pass will see them. Pointers are not NULL where a gradient is wanted, but point to nothing.
 */
struct attn_gradient_heads attn_gradient_describe_heads(const attn_gradient_plan *plan, const attn_request *request);
/* Fills in result_bytes, working_bytes, scratch_bytes. */
void attn_gradient_weigh(attn_gradient_plan *plan, const attn_request *request);

#endif
