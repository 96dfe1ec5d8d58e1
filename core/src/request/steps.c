/* steps.c: the names of steps, and which of them are maps. */
#include "request/steps.h"

#include <string.h>

static const char *const names[] = {
#define STEP_NAME(code, name) name,
    ATTN_STEP_LIST(STEP_NAME)
#undef STEP_NAME
};

const char *attn_step_name(attn_step step)
{
    return names[step];
}

attn_step attn_step_from_name(const char *name)
{
    int step = 0;
    while (step < ATTN_STEP_COUNT && strcmp(names[step], name) != 0)
        step++;
    return (attn_step)step;
}

bool attn_step_is_map(attn_step step)
{
    return (step >= ATTN_STEP_SCORES && step <= ATTN_STEP_DROPPED) || step == ATTN_STEP_MASK;
}
