/*
 * layer_weigh.h: the decisions and sizes that plan.c and layer.c must agree on.
 */
#ifndef ATTN_LAYER_LAYER_WEIGH_H
#define ATTN_LAYER_LAYER_WEIGH_H

#include "attention/heads.h"

/* Whether queries, keys and values are one product, by a fused weight. */
bool attn_projects_at_once(const attn_request *request, const attn_dims *dims);
/* Products of a layer at a time: the slices of three projections, or the output projection. */
size_t attn_product_slots(const attn_request *request, const attn_dims *dims);
/* ATTN_OK, or ATTN_ERR_SHAPE where the request has other dimensions or another type than what plan was made from. */
ATTN_MUST_CHECK attn_status attn_plan_check_request(const attn_plan *plan, const attn_request *request,
                                                    attn_error *err);
/* Whether attention_mean needs a map of its own, and its elements. */
bool attn_needs_mean_source(const attn_request *request);
size_t attn_mean_source_count(const attn_plan *plan);
/* The same as a double, which cannot overflow, for a plan whose size is not checked yet. */
double attn_mean_source_numbers(const attn_plan *plan);
/* The heads as the kernels will see them, but for operands and memory. */
struct attn_heads_job attn_describe_job(const attn_plan *plan, const attn_request *request);
/* Fills in working_bytes and scratch_bytes: what attn_plan_run will take beyond the result. */
void attn_multihead_weigh(attn_plan *plan, const attn_request *request);

/* (*slots)[item] = its place in the selection, SIZE_MAX where it is not selected; NULL when all are. false: no memory.
 */
bool attn_invert_selection(const attn_selection *selection, size_t dimension, attn_arena *arena, const size_t **slots);

#endif
