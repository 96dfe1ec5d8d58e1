/*
 * weigh.h: the decisions and sizes that plan.c and run.c must agree on.
 */
#ifndef ATTN_LAYER_WEIGH_H
#define ATTN_LAYER_WEIGH_H

#include "attention/heads.h"

/* Whether one product by a fused weight gives queries, keys and values. */
bool attn_projects_at_once(const attn_request *request, const attn_dims *dims);
/* The most products that run together: the slices of three projections, or the output projection. */
size_t attn_product_slots(const attn_request *request, const attn_dims *dims);
/* The scratch bytes of a thread for the products of a layer; kernel NULL: by any kernel. */
size_t attn_layer_products_scratch_bytes(const attn_kernel *kernel, const attn_request *request);
/* Whether attention_mean needs a map of its own, and its elements. */
bool attn_needs_mean_source(const attn_request *request);
size_t attn_mean_source_count(const attn_plan *plan);
/* The same as a double, which cannot overflow. For a plan whose size is not checked yet. */
double attn_mean_source_numbers(const attn_plan *plan);
/* The job of the heads for the kernels, without operands and memory. */
struct attn_heads_job attn_describe_job(const attn_plan *plan, const attn_request *request);
/* Fills in working_bytes and scratch_bytes: the memory of attn_plan_run beyond the result. */
void attn_multihead_weigh(attn_plan *plan, const attn_request *request);

/*
 * Takes memory for the places of the selected heads, queries and keys of a job. ATTN_ERR_CANCELLED if the watch says so;
 * NULL: never.
 */
ATTN_MUST_CHECK attn_status attn_invert_selections(const attn_options *options, const attn_dims *d,
                                                   const attn_runtime *watch, attn_arena *arena,
                                                   struct attn_heads_job *job, attn_error *err);

#endif
