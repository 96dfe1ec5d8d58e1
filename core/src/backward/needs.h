/*
 * needs.h: the decisions and sizes that plan.c and run.c must agree on.
 */
#ifndef ATTN_BACKWARD_NEEDS_H
#define ATTN_BACKWARD_NEEDS_H

#include "attn/gradient.h"
#include "backward/heads.h"
#include "backward/norm.h"
#include "layer/projection.h"

enum { ROLES = 3 }; /* PROJECT_Q, _K, _V; inputs are numbered alike */

static inline bool attn_gradient_is_wanted(const attn_gradient_plan *plan, attn_gradient gradient)
{
    return (plan->of >> gradient & 1) != 0;
}

/* The tensor of a gradient; NULL when it was not given, or is not a tensor. */
const attn_tensor *attn_gradient_subject(const attn_request *request, attn_gradient gradient);
/* The input that a role reads; key and value may default to another input. */
attn_role attn_gradient_owner(const attn_request *request, attn_role role);
/* Weight and bias of a role; the fused ones if it has none of its own. *bias is a gradient, or ATTN_GRADIENT_COUNT. */
attn_gradient attn_gradient_weight_of(const attn_request *request, attn_role role);
attn_gradient attn_gradient_bias_of(const attn_request *request, attn_role role);
/*
 * The rows that qk_norm normalises in the projected tokens of PROJECT_Q or _K: rows of d numbers, with gains in turn.
 */
struct attn_gradient_norm attn_gradient_describe_qk_norm(const attn_gradient_plan *plan, attn_role role);

/* Which parts of the backward pass run, and the number of elements of each intermediate buffer; 0: no buffer. */
struct attn_gradient_needs {
    bool role[ROLES];  /* the gradient of q, k, v */
    bool input[ROLES]; /* of the inputs of the projections */
    bool heads;        /* of q, k, v or anything else within the heads */
    bool concat;       /* of concat, for the heads or their factors */
    bool output;       /* of the output projection */
    size_t grad_gate;  /* of the gate before its sigmoid */
    size_t summed;     /* the input of a post-norm, if it is not a step */
    size_t grad_summed, grad_projected, grad_context;
    size_t grad_role[ROLES];  /* where it is not the gradient of an input */
    size_t grad_input[ROLES]; /* the same */
    size_t distance_bias;     /* the biases by distance, computed again */
    size_t grad_distance;     /* doubles of their gradient */
    size_t live;              /* bytes of flags */
    size_t partials;          /* doubles of a norm */
};

struct attn_gradient_needs attn_gradient_needs_of(const attn_gradient_plan *plan);
/*
 * The job of the heads for the backward pass. Where a gradient is wanted, its pointer is not NULL, but points to no
 * memory.
 */
struct attn_gradient_heads attn_gradient_describe_heads(const attn_gradient_plan *plan);
/* Fills in result_bytes, working_bytes, scratch_bytes. */
void attn_gradient_weigh(attn_gradient_plan *plan);

#endif
