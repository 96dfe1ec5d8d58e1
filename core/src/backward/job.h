/*
 * job.h: the job of the backward pass of attention over all batch items and heads, which its tiles read.
 */
#ifndef ATTN_BACKWARD_JOB_H
#define ATTN_BACKWARD_JOB_H

#include "kernel/job.h"

struct attn_gradient_heads {
    /* Dimensions, operands (including the context), mask, selections and dropout of the forward pass. */
    struct attn_heads_job job;
    struct attn_operand grad_context;
    const void *lse;                            /* (batch, heads, q_len) */
    struct attn_operand grad_q, grad_k, grad_v; /* written; data NULL: not wanted. For keys and values: the new rows, */
    struct attn_operand grad_past_k, grad_past_v; /* and the cached rows before them */
    size_t past_len;                              /* the keys of job.kv_len that are cached */
    void *grad_scores;                            /* a map, by the selections of job; NULL: not wanted */
    void *grad_bias;                              /* in the shape of the given bias, row-major; NULL: not wanted */
    size_t bias_size[4], bias_step[4]; /* its shape with 1 in front; elements between neighbours, 0: broadcast */
    /* (batch, heads, q_len + kv_len): of biases by distance, in the order of attn_distance_bias_make, a vector per item and
     * head; NULL: not wanted */
    double *grad_distance;
    void *grad_sinks;     /* (heads), of the compute type; NULL: not wanted */
    const void *lse_keys; /* where there are sinks: (batch, heads, q_len), -infinity for rows without keys */
    double *grad_scale;   /* NULL: not wanted */
    /* Filled in by attn_gradient_heads_run. */
    void *delta;               /* (batch, heads, q_len) */
    size_t splits, split_keys; /* of the keys of a head */
    char *parts;               /* of dq: (split, batch, heads, q_len, d_k in whole vectors) */
    double *distance_parts;    /* of grad_distance: (split, batch, heads, q_len + kv_len) */
    double *scale_parts;       /* one for each task that sums the parts */
};

#endif
