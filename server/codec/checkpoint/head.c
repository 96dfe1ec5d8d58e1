/* head.c: reads the prediction head of a model by its template. */
#include "codec/checkpoint/parts.h"

#include <string.h>

static bool add(struct model_reader *reader, struct envelope_attachment *attachments, size_t *count, const char *path,
                const attn_tensor *tensor)
{
    if (tensor->data == NULL)
        return true;
    attachments[(*count)++] = (struct envelope_attachment){path, *tensor};
    return tensor_align(&reader->table, &attachments[*count - 1].tensor, reader->outcome);
}

/* The matrix to the words: the embedding's when both are tied, else its own. Without data: there is no head. */
static bool take_output(struct model_reader *reader, const json_t *template, const attn_tensor *words,
                        attn_tensor *output)
{
    bool found;
    if (model_is_true(reader, template, "tied")) {
        *output = *words;
        return true;
    }
    return model_take(reader, json_object_get(template, "output"), "", NULL, output, &found);
}

/* Whether the names say that there may be no such part. */
static bool may_lack(const json_t *names)
{
    const char *last = json_string_value(json_array_get(names, json_array_size(names) - 1));
    return last != NULL && last[0] == '\0';
}

struct tensors {
    attn_tensor dense, dense_bias, output, output_bias;
    struct model_norm norm;
};

static bool take_head(struct model_reader *reader, const json_t *template, const attn_tensor *words,
                      struct tensors *head)
{
    json_t *dense = json_object_get(template, "dense"), *bias = json_object_get(template, "bias");
    bool found;
    *head = (struct tensors){.norm.type = ATTN_NORM_NONE};
    bool ok = dense != NULL ? model_take_pair(reader, dense, &head->dense, &head->dense_bias) : true;
    if (!ok || (dense != NULL && head->dense.data == NULL && !may_lack(dense)))
        return ok;
    ok = take_output(reader, template, words, &head->output);
    if (ok && head->output.data != NULL)
        ok = model_read_norm(reader, json_object_get(template, "norm"), &head->norm);
    return ok && (bias == NULL || model_take(reader, bias, "", NULL, &head->output_bias, &found));
}

/* Whether the tensors lead from tokens of that width to words. */
static bool fits(const struct tensors *tensors, size_t width)
{
    const attn_tensor *dense = &tensors->dense, *output = &tensors->output;
    if (dense->data != NULL) {
        if (dense->rank != 2 || dense->dtype > ATTN_BF16 || dense->shape[1] != width ||
            !model_is_vector(&tensors->dense_bias) ||
            (tensors->dense_bias.data != NULL && tensors->dense_bias.shape[0] != dense->shape[0]))
            return false;
        width = dense->shape[0];
    }
    return output->rank == 2 && output->dtype <= ATTN_BF16 && output->shape[0] > 0 && output->shape[1] == width &&
           (tensors->norm.weight.data == NULL || tensors->norm.weight.shape[0] == width) &&
           (tensors->norm.bias.data == NULL || tensors->norm.bias.shape[0] == width) &&
           (tensors->output_bias.data == NULL ||
            (tensors->output_bias.dtype <= ATTN_BF16 && attn_tensor_count(&tensors->output_bias) == output->shape[0]));
}

bool model_read_head(struct model_reader *reader, const json_t *template, const attn_tensor *words, size_t width,
                     struct model_head *head, bool *has_head)
{
    enum { PARTS = 6 };
    struct tensors tensors = {.output.data = NULL};
    struct envelope_attachment *parts = attn_arena_take_zeroed(reader->arena, PARTS, sizeof *parts);
    const char *activation = json_string_value(json_object_get(template, "activation"));
    size_t count = 0;
    *has_head = false;
    if (template == NULL)
        return true;
    bool ok = parts != NULL ? take_head(reader, template, words, &tensors) : outcome_no_memory(reader->outcome);
    if (!ok || tensors.output.data == NULL)
        return ok;
    const attn_tensor *output = &tensors.output;
    if (!fits(&tensors, width))
        return model_fail_shape(reader, json_object_get(template, "output"), output);
    if (tensors.output_bias.data != NULL) /* BART has (1, words) */
        tensors.output_bias = attn_tensor_view(tensors.output_bias.data, tensors.output_bias.dtype, 1,
                                               (size_t[]){attn_tensor_count(&tensors.output_bias)});
    const struct envelope_attachment all[PARTS] = {
        {"weights.dense.weight", tensors.dense},      {"weights.dense.bias", tensors.dense_bias},
        {"weights.norm.weight", tensors.norm.weight}, {"weights.norm.bias", tensors.norm.bias},
        {"weights.output.weight", *output},           {"weights.output.bias", tensors.output_bias}};
    for (size_t i = 0; i < PARTS && ok; i++)
        ok = add(reader, parts, &count, all[i].path, &all[i].tensor);
    *head = (struct model_head){
        .source = {.text = "", .attachments = parts, .count = count},
        .facts = {.layout = ATTN_LAYOUT_OUT_IN, .compute = ATTN_F32, .dtype = output->dtype},
        .activation = activation != NULL ? attn_arena_copy_text(reader->arena, activation, strlen(activation)) : NULL,
        .norm = tensors.norm.type,
        .norm_eps = tensors.norm.eps,
        .scale = model_number(reader, template, "scale", 1),
        .softcap = model_number(reader, template, "softcap", 0),
        .is_of_first = json_is_true(json_object_get(template, "of_first")),
        .words = output->shape[0],
    };
    *has_head = true;
    return ok;
}
