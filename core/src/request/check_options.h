/*
 * check_options.h: options checked: numbers on their own, then against the dimensions and the rest of the request.
 */
#ifndef ATTN_REQUEST_CHECK_OPTIONS_H
#define ATTN_REQUEST_CHECK_OPTIONS_H

#include "attn/plan.h"

ATTN_MUST_CHECK attn_status attn_options_check_numbers(const attn_options *options, attn_error *err);

/* After plan->dims is known; counts what the selections of maps keep into *plan. */
ATTN_MUST_CHECK attn_status attn_options_check(const attn_request *request, attn_plan *plan, attn_error *err);

#endif
