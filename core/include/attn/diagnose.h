/*
 * diagnose.h: findings about a result, for people who debug a model: where attention went, and what went wrong.
 *
 * Findings are read from the maps, the entropy and the output that a run has computed. Nothing is computed again, and no
 * number of the result changes.
 */
#ifndef ATTN_DIAGNOSE_H
#define ATTN_DIAGNOSE_H

#include "attn/multihead.h"

ATTN_BEGIN_C

/*
 * Fills in result->findings; result comes from attn_plan_run with plan and bindings. The time is proportional to the
 * output, plus the map "attention" or the step "entropy" where the request asked for one with all its keys. The threads
 * of the runtime share this work. The inputs are read only when the output is not finite. Memory comes from arena: 40
 * bytes per head and batch item. Returns ATTN_OK, or ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED with findings empty.
 */
ATTN_MUST_CHECK attn_status attn_diagnose(const attn_plan *plan, const attn_bindings *bindings,
                                          const attn_runtime *runtime, attn_arena *arena, attn_result *result,
                                          attn_error *err);

ATTN_END_C

#endif
