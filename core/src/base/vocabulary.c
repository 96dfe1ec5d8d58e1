/* vocabulary.c: the tables of what a request names: tensors, their gradients, steps and activations. */
#include "base/check.h"

#include <stddef.h>
#include <string.h>

#define DIFFERS(code, member, name) {offsetof(attn_request, member), #member, code},
#define CONSTANT(member)            {offsetof(attn_request, member), #member, ATTN_GRADIENT_COUNT},
#define OTHER(code, name)
static const struct attn_tensor_row rows[] = {ATTN_TENSOR_LIST(DIFFERS, CONSTANT, OTHER)};
#undef DIFFERS
#undef CONSTANT
#undef OTHER

#define DIFFERS(code, member, name) name,
#define CONSTANT(member)
#define OTHER(code, name) name,
static const char *const gradients[] = {ATTN_TENSOR_LIST(DIFFERS, CONSTANT, OTHER)};
#undef DIFFERS
#undef CONSTANT
#undef OTHER

const struct attn_tensor_row *attn_tensor_row_at(size_t index)
{
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

const attn_tensor *attn_tensor_of(const attn_request *request, const struct attn_tensor_row *row)
{
    const attn_tensor *tensor;
    memcpy(&tensor, (const char *)request + row->at, sizeof tensor);
    return tensor;
}

const attn_tensor *attn_gradient_subject(const attn_request *request, attn_gradient gradient)
{
    const struct attn_tensor_row *row;
    for (size_t n = 0; (row = attn_tensor_row_at(n)) != NULL; n++)
        if (row->gradient == gradient)
            return attn_tensor_of(request, row);
    return NULL;
}

const char *attn_gradient_name(attn_gradient gradient)
{
    return gradients[gradient];
}

attn_gradient attn_gradient_from_name(const char *name)
{
    int gradient = 0;
    while (gradient < ATTN_GRADIENT_COUNT && strcmp(gradients[gradient], name) != 0)
        gradient++;
    return (attn_gradient)gradient;
}

/* ---- steps ---- */

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
    const attn_axes axes = steps[step].axes;
    return axes == ATTN_AXES_MAP || axes == ATTN_AXES_MEAN || axes == ATTN_AXES_PAIRS;
}

/* ---- activations ---- */

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
