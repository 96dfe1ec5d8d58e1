/* gradients.c: writes gradients as an answer: JSON text, or a safetensors file. */
#include "codec/answer/forms.h"

#include <stdio.h>
#include <string.h>

#include "codec/bytes/bound.h"
#include "codec/tensor/write.h"

enum { SHAPE_BYTES = 160, NAME_BYTES = 96 };

struct gradients {
    const struct envelope *envelope;
    const attn_gradient_plan *plan;
    const attn_gradient_result *result;
    const attn_runtime *runtime;
};

static bool is_wanted(const attn_gradient_plan *plan, int gradient)
{
    return plan->of >> gradient & 1;
}

static struct tensor_style style_of(const struct envelope *envelope)
{
    return (struct tensor_style){.form = envelope->form, .digits = envelope->digits};
}

static void write_tensor(const struct gradients *gradients, int gradient, struct chunks *out)
{
    const struct tensor_style style = style_of(gradients->envelope);
    tensor_write_json(&gradients->result->gradient[gradient], &style, gradients->runtime, out);
}

static void write_shape(const struct gradients *gradients, int gradient, struct chunks *out)
{
    const attn_tensor *tensor = &gradients->plan->gradient[gradient];
    answer_write_sizes(out, tensor->shape, (size_t)tensor->rank);
}

/* ---- nested objects from paths with dots ---- */

/* The length of the path of objects that both paths share, with its last dot. */
static size_t shared_length(const char *a, const char *b)
{
    size_t shared = 0;
    for (size_t i = 0; a[i] != '\0' && a[i] == b[i]; i++)
        if (a[i] == '.')
            shared = i + 1;
    return shared;
}

static size_t count_dots(const char *path)
{
    size_t dots = 0;
    for (; *path != '\0'; path++)
        dots += *path == '.';
    return dots;
}

/* Opens every object on the rest of a path, and writes the name of the last member. */
static void open_path(const char *rest, bool is_first, struct chunks *out)
{
    chunks_text(out, is_first ? "" : ",");
    for (const char *dot; (dot = strchr(rest, '.')) != NULL; rest = dot + 1)
        chunks_format(out, "\"%.*s\":{", (int)(dot - rest), rest);
    chunks_format(out, "\"%s\":", rest);
}

static void close_objects(size_t count, struct chunks *out)
{
    while (count-- > 0)
        chunks_text(out, "}");
}

/* Writes {"inputs": {"query": …}, …}. The list must keep the paths of an object together. */
static void write_nested(const struct gradients *gradients,
                         void (*write)(const struct gradients *gradients, int gradient, struct chunks *out),
                         struct chunks *out)
{
    const char *before = "";
    chunks_text(out, "{");
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++) {
        if (!is_wanted(gradients->plan, gradient) || attn_gradient_is_map((attn_gradient)gradient))
            continue;
        const char *path = attn_gradient_name((attn_gradient)gradient);
        const size_t shared = shared_length(before, path);
        close_objects(count_dots(before + shared), out);
        open_path(path + shared, before[0] == '\0', out);
        write(gradients, gradient, out);
        before = path;
    }
    close_objects(count_dots(before), out);
    chunks_text(out, "}");
}

/* ---- the answer ---- */

/* Maps stand beside the steps. */
static void write_maps(const struct gradients *gradients,
                       void (*write)(const struct gradients *gradients, int gradient, struct chunks *out),
                       bool *is_first, struct chunks *out)
{
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++)
        if (is_wanted(gradients->plan, gradient) && attn_gradient_is_map((attn_gradient)gradient)) {
            answer_begin_member(out, is_first, attn_gradient_name((attn_gradient)gradient));
            write(gradients, gradient, out);
        }
}

static void write_more_outputs(const void *context, bool *is_first, struct chunks *out)
{
    write_maps(context, write_tensor, is_first, out);
}

static void write_more_shapes(const void *context, bool *is_first, struct chunks *out)
{
    const struct gradients *gradients = context;
    write_maps(gradients, write_shape, is_first, out);
    answer_begin_member(out, is_first, "gradients");
    write_nested(gradients, write_shape, out);
}

/* The plan with only the steps that the request asked for. The backward pass needs more steps. */
static attn_plan plan_as_asked(const attn_gradient_plan *plan)
{
    attn_plan forward = plan->forward;
    forward.want = plan->want;
    return forward;
}

static void write_json(const struct envelope *envelope, const attn_gradient_plan *plan,
                       const attn_gradient_result *result, const attn_runtime *runtime, struct chunks *out)
{
    const struct gradients gradients = {envelope, plan, result, runtime};
    const struct answer_more more = {write_more_outputs, write_more_shapes, &gradients};
    const attn_plan forward = plan_as_asked(plan);
    answer_write_outputs(envelope, &forward, &result->forward, &more, runtime, out);
    chunks_text(out, ",\"gradients\":");
    write_nested(&gradients, write_tensor, out);
    answer_write_facts(envelope, &forward, &result->forward, runtime, out);
}

static size_t json_bound(const struct envelope *envelope, const attn_gradient_plan *plan)
{
    const attn_plan forward = plan_as_asked(plan);
    const struct tensor_style style = style_of(envelope);
    size_t bound = answer_bytes_bound(envelope, &forward);
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++) {
        if (!is_wanted(plan, gradient))
            continue;
        bound = bound_add(bound, 1, tensor_write_bound(&plan->gradient[gradient], &style));
        bound = bound_add(bound, 1, SHAPE_BYTES);
    }
    return bound;
}

/* ---- a safetensors file ---- */

struct gradient_entries {
    struct safetensors_entry list[ATTN_GRADIENT_COUNT];
    size_t count;
    char names[ATTN_GRADIENT_COUNT][NAME_BYTES];
};

/* The gradients as they are in the plan, or in a result. */
static void list_gradients(const attn_gradient_plan *plan, const attn_tensor *tensors, struct gradient_entries *entries)
{
    entries->count = 0;
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++) {
        if (!is_wanted(plan, gradient))
            continue;
        char *name = entries->names[gradient];
        snprintf(name, NAME_BYTES, "%s%s", attn_gradient_is_map((attn_gradient)gradient) ? "" : "gradients.",
                 attn_gradient_name((attn_gradient)gradient));
        entries->list[entries->count++] = (struct safetensors_entry){name, tensors[gradient]};
    }
}

/* ---- of a media type ---- */

void answer_write_gradients(const struct envelope *envelope, const attn_gradient_plan *plan,
                            const attn_gradient_result *result, enum media media, const attn_runtime *runtime,
                            struct chunks *out)
{
    struct gradient_entries entries;
    if (media != MEDIA_SAFETENSORS) {
        write_json(envelope, plan, result, runtime, out);
        return;
    }
    const attn_plan forward = plan_as_asked(plan);
    list_gradients(plan, result->gradient, &entries);
    answer_write_safetensors(&(struct answer){envelope, &forward, &result->forward},
                             (struct answer_tensors){entries.list, entries.count}, runtime, out);
}

size_t answer_gradients_bound(const struct envelope *envelope, const attn_gradient_plan *plan, enum media media)
{
    struct gradient_entries entries;
    if (media != MEDIA_SAFETENSORS)
        return json_bound(envelope, plan);
    const attn_plan forward = plan_as_asked(plan);
    list_gradients(plan, plan->gradient, &entries);
    return answer_safetensors_bound(&(struct answer){envelope, &forward, NULL},
                                    (struct answer_tensors){entries.list, entries.count});
}
