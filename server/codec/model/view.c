/* view.c: writes the attention maps of a whole model as the input of a front-end. */
#include "codec/model/forms.h"

#include <string.h>

#include "codec/answer/forms.h"
#include "codec/bytes/bound.h"
#include "codec/number/number.h"
#include "codec/tensor/write.h"

enum { FRAME_BYTES = 4096, MAP_BYTES = 128, INTEGER_BYTES = 21, ESCAPED_BYTES = 6 /* of one byte of a word */ };

/* ---- what a view can show ---- */

/* Before the plan, a list that counts from the end is the same as its own spelling alone. */
static bool selects_the_same(const struct envelope *common)
{
    const struct index_list *queries = &common->lists.queries, *keys = &common->lists.keys;
    if (!queries->counts_from_end && !keys->counts_from_end)
        return view_is_same(&common->request.options.queries, &common->request.options.keys);
    bool is_same = queries->count == keys->count;
    for (size_t i = 0; i < queries->count && is_same; i++)
        is_same = queries->ranges[i].from == keys->ranges[i].from && queries->ranges[i].to == keys->ranges[i].to;
    return is_same;
}

static attn_status check_square(const struct model_request *request, bool has_cross, attn_error *err)
{
    if (has_cross)
        return attn_fail(err, ATTN_ERR_SHAPE, "/options/view",
                         "circuitsvis has one list of tokens for queries and keys, and cross-attention has two: leave "
                         "out the target, or use another view");
    if (!selects_the_same(&request->common))
        return attn_fail(err, ATTN_ERR_SHAPE, "/options/view",
                         "circuitsvis has one list of tokens for queries and keys: select the same of both by "
                         "options.queries and options.keys");
    return ATTN_OK;
}

attn_status model_view_prepare(struct model_request *request, bool has_cross, attn_error *err)
{
    const envelope_view view = request->common.view;
    if (request->inputs.batch > 1)
        return attn_fail(err, ATTN_ERR_SHAPE, "/options/view",
                         "%s shows one batch item of a model, and there are %zu: send one at a time", view_names[view],
                         request->inputs.batch);
    if (view == ENVELOPE_VIEW_ROWS)
        request->common.request.options.want |= ATTN_STEP_BIT(ATTN_STEP_MASK);
    return view == ENVELOPE_VIEW_CIRCUITSVIS ? check_square(request, has_cross, err) : ATTN_OK;
}

/* ---- the parts ---- */

/* False: the answer has no such part. */
static bool find_part(const struct model_view *view, model_part_kind kind, struct view_maps *part)
{
    const attn_tensor *attention = model_part_output(view->answer, kind, "attention");
    const attn_tensor *mask = model_part_output(view->answer, kind, "mask");
    const struct model_selections *shown = model_part_shown(view->answer, kind);
    if (attention == NULL)
        return false;
    *part = (struct view_maps){.is_of_model = true,
                               .part = model_part_name(kind),
                               .maps = model_part_first_item(attention),
                               .layers = &shown->layers,
                               .heads = &shown->heads,
                               .queries = &shown->queries,
                               .keys = &shown->keys,
                               .query_labels = &view->labels[model_part_query_stack(kind)],
                               .key_labels = &view->labels[model_part_key_stack(kind)],
                               .digits = view->request->common.digits};
    if (mask != NULL)
        part->allowed = model_part_first_item(mask);
    return true;
}

static void write_inspectus(const struct view_maps *part)
{
    if (part->part != NULL)
        chunks_format(part->out, "\"%s\":", part->part);
    view_write_inspectus(part);
}

typedef void part_writer(const struct view_maps *part);

/* Writes the parts with a comma between them. *last is the last one. Returns the most layers that one has. */
static size_t write_parts(const struct model_view *view, part_writer *write, const attn_runtime *runtime,
                          struct chunks *out, struct view_maps *last)
{
    size_t layers = 0;
    for (model_part_kind kind = MODEL_PART_ONLY; kind < MODEL_PART_COUNT; kind++) {
        struct view_maps part;
        if (!find_part(view, kind, &part))
            continue;
        part.runtime = runtime;
        part.out = out;
        chunks_text(out, layers > 0 ? "," : "");
        write(&part);
        layers = part.maps.shape[0] > layers ? part.maps.shape[0] : layers;
        *last = part;
    }
    return layers;
}

void model_view_write(const struct model_view *view, const attn_runtime *runtime, struct chunks *out)
{
    struct view_maps last = {.is_of_model = true};
    const bool has_one = model_part_output(view->answer, MODEL_PART_ONLY, "attention") != NULL;
    if (view->request->common.view == ENVELOPE_VIEW_BERTVIZ) {
        chunks_text(out, "{\"attention\":[");
        const size_t layers = write_parts(view, view_write_bertviz, runtime, out, &last);
        view_write_bertviz_end(&last, layers, view->heads);
    } else if (view->request->common.view == ENVELOPE_VIEW_INSPECTUS) {
        chunks_text(out, has_one ? "" : "{");
        write_parts(view, write_inspectus, runtime, out, &last);
        chunks_text(out, has_one ? "" : "}");
    } else {
        const bool is_rows = view->request->common.view == ENVELOPE_VIEW_ROWS;
        chunks_text(out, "[");
        write_parts(view, is_rows ? view_write_rows : view_write_circuitsvis, runtime, out, &last);
        chunks_text(out, "]");
    }
}

/* ---- the length of the text ---- */

static size_t longest_label(const struct labels *labels)
{
    size_t longest = 0;
    for (size_t i = 0; labels->texts != NULL && i < labels->count; i++)
        longest = strlen(labels->texts[i]) > longest ? strlen(labels->texts[i]) : longest;
    return longest;
}

static size_t list_bound(const struct labels *labels, size_t count)
{
    return bound_add(0, count, ESCAPED_BYTES * longest_label(labels) + INTEGER_BYTES + 2);
}

static size_t part_bound(envelope_view view, const struct view_maps *part)
{
    const struct tensor_style style = {.form = TENSOR_FORM_NESTED, .digits = part->digits};
    const size_t *shape = part->maps.shape, cells = attn_tensor_count(&part->maps);
    const size_t words = ESCAPED_BYTES * (longest_label(part->query_labels) + longest_label(part->key_labels));
    if (view == ENVELOPE_VIEW_ROWS)
        return bound_add(0, cells, VIEW_CELL_BYTES + MAP_BYTES + words + NUMBER_TEXT_MAX);
    const size_t lists = bound_add(list_bound(part->query_labels, shape[2]), 1, list_bound(part->key_labels, shape[3]));
    size_t bound = bound_add(FRAME_BYTES, view == ENVELOPE_VIEW_CIRCUITSVIS ? shape[0] : 1, lists);
    bound = bound_add(bound, shape[0] * (shape[1] + 1), MAP_BYTES);
    return view == ENVELOPE_VIEW_INSPECTUS ? bound_add(bound, cells, VIEW_VALUE_BYTES)
                                           : bound_add(bound, 1, tensor_write_bound(&part->maps, &style));
}

size_t model_view_bound(const struct model_view *view)
{
    size_t bound = FRAME_BYTES;
    for (model_part_kind kind = MODEL_PART_ONLY; kind < MODEL_PART_COUNT; kind++) {
        struct view_maps part;
        if (find_part(view, kind, &part))
            bound = bound_add(bound, 1, part_bound(view->request->common.view, &part));
    }
    return bound;
}
