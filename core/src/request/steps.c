/* steps.c: the table of steps. */
#include "request/steps.h"

#include <string.h>

static const struct {
    const char *name;
    attn_axes axes;
    attn_values values;
} steps[] = {
#define STEP_ROW(code, name, axes, values) {name, axes, values},
    ATTN_STEP_LIST(STEP_ROW)
#undef STEP_ROW
};

const char *attn_step_name(attn_step step)
{
    return steps[step].name;
}

attn_step attn_step_from_name(const char *name)
{
    int step = 0;
    while (step < ATTN_STEP_COUNT && strcmp(steps[step].name, name) != 0)
        step++;
    return (attn_step)step;
}

attn_axes attn_step_axes(attn_step step)
{
    return steps[step].axes;
}

attn_values attn_step_values(attn_step step)
{
    return steps[step].values;
}

bool attn_step_is_map(attn_step step)
{
    return steps[step].axes == ATTN_AXES_MAP;
}

bool attn_step_has_keys(attn_step step)
{
    return steps[step].axes == ATTN_AXES_MAP || steps[step].axes == ATTN_AXES_MEAN;
}
