/*
 * multihead_job.h: what plan.c and multihead.c share: which steps are wanted, and what a run will take from the arena.
 */
#ifndef ATTN_MULTIHEAD_JOB_H
#define ATTN_MULTIHEAD_JOB_H

#include "attn/plan.h"

static inline bool attn_wants(const attn_options *options, attn_step step)
{
    return (options->want >> step & 1) != 0;
}

/* Fills in working_bytes and scratch_bytes: what attn_plan_run will take beyond the result. */
void attn_multihead_weigh(attn_plan *plan, const attn_request *request);

#endif
