/* part.c: finds the outputs of a part of a model. */
#include "codec/model/part.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *prefix, *name;
} parts[] = {
#define MODEL_PART_ROW(code, prefix, name) {prefix, name},
    MODEL_PART_LIST(MODEL_PART_ROW)
#undef MODEL_PART_ROW
};

const char *model_part_name(model_part_kind kind)
{
    return parts[kind].name;
}

const attn_tensor *model_part_output(const struct model_answer *answer, model_part_kind kind, const char *name)
{
    const size_t length = strlen(parts[kind].prefix);
    for (size_t i = 0; i < answer->output_count; i++) {
        const struct model_output *output = &answer->outputs[i];
        if (strncmp(output->name, parts[kind].prefix, length) == 0 && strcmp(output->name + length, name) == 0)
            return &output->tensor;
    }
    return NULL;
}

size_t model_part_query_stack(model_part_kind kind)
{
    return kind == MODEL_PART_DECODER || kind == MODEL_PART_CROSS ? 1 : 0;
}

size_t model_part_key_stack(model_part_kind kind)
{
    return kind == MODEL_PART_DECODER ? 1 : 0;
}

const struct model_selections *model_part_shown(const struct model_answer *answer, model_part_kind kind)
{
    return &answer->shown[model_part_query_stack(kind) + (kind == MODEL_PART_CROSS ? 1 : 0)];
}

attn_tensor model_part_first_item(const attn_tensor *output)
{
    assert(output->rank == 5);
    attn_tensor item = *output;
    item.rank = 4;
    for (int d = 1; d < 4; d++) {
        item.shape[d] = output->shape[d + 1];
        item.stride[d] = output->stride[d + 1];
    }
    return item;
}
