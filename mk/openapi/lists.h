/*
 * lists.h: the lists of words that the code has, by name.
 */
#ifndef OPENAPI_LISTS_H
#define OPENAPI_LISTS_H

#include <jansson.h>

#include "attn/plan.h"

/* Returns a new array of strings; NULL when there is no list of that name. */
json_t *lists_of(const char *name);
/* "numbers", "scores" or "flags" */
const char *lists_values_of(attn_step step);

#endif
