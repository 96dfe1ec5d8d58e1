/* activation.c: the names of the activations of a feed-forward network. */
#include <string.h>

#include "attn/plan.h"

#define ACTIVATION_NAME(code, name) [code] = name,
static const char *const NAMES[] = {ATTN_ACTIVATION_LIST(ACTIVATION_NAME)};
#undef ACTIVATION_NAME

const char *attn_activation_name(attn_activation activation)
{
    return NAMES[activation];
}

attn_activation attn_activation_from_name(const char *name)
{
    size_t activation = sizeof NAMES / sizeof NAMES[0] - 1;
    while (activation > ATTN_ACTIVATION_NONE && strcmp(name, NAMES[activation]) != 0)
        activation--;
    return (attn_activation)activation;
}
