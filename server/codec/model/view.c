/* view.c: writes the attention maps of a whole model as the input of a front-end. */
#include "codec/model/view.h"

#include <string.h>

#include "codec/answer/view_parts.h"
#include "codec/bytes/bound.h"
#include "codec/number/number_write.h"
#include "codec/tensor/tensor_write.h"

enum { FRAME_BYTES = 4096, MAP_BYTES = 128, INTEGER_BYTES = 21, ESCAPED_BYTES = 6 /* of one byte of a word */ };

static const char *const names[] = {"", "bertviz", "circuitsvis", "inspectus", "rows"};

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
                         "%s shows one batch item of a model, and there are %zu: send one at a time", names[view],
                         request->inputs.batch);
    if (view == ENVELOPE_VIEW_ROWS)
        request->common.request.options.want |= ATTN_STEP_BIT(ATTN_STEP_MASK);
    return view == ENVELOPE_VIEW_CIRCUITSVIS ? check_square(request, has_cross, err) : ATTN_OK;
}

/* ---- the maps of one part ---- */

struct part {
    const struct model_view *view;
    model_part_kind kind;
    const struct model_selections *shown;
    attn_tensor maps;    /* (layers, heads, queries, keys) */
    attn_tensor allowed; /* of the same shape; data NULL: unknown */
    const struct labels *query_labels, *key_labels;
    const attn_runtime *runtime;
    struct chunks *out;
};

/* False: the answer has no such part. */
static bool find_part(const struct model_view *view, model_part_kind kind, struct part *part)
{
    const attn_tensor *attention = model_part_output(view->answer, kind, "attention");
    const attn_tensor *mask = model_part_output(view->answer, kind, "mask");
    if (attention == NULL)
        return false;
    *part = (struct part){.view = view,
                          .kind = kind,
                          .shown = model_part_shown(view->answer, kind),
                          .maps = model_part_first_item(attention),
                          .query_labels = &view->labels[model_part_query_stack(kind)],
                          .key_labels = &view->labels[model_part_key_stack(kind)]};
    if (mask != NULL)
        part->allowed = model_part_first_item(mask);
    return true;
}

static size_t layer_number(const struct part *part, size_t layer)
{
    return attn_selected(&part->shown->layers, layer);
}

static void write_query_labels(const struct part *part)
{
    view_write_labels(part->out, part->query_labels, &part->shown->queries, part->maps.shape[2]);
}

static void write_key_labels(const struct part *part)
{
    view_write_labels(part->out, part->key_labels, &part->shown->keys, part->maps.shape[3]);
}

static void write_tensor(const struct part *part, const attn_tensor *tensor)
{
    const struct tensor_style style = {.form = TENSOR_FORM_NESTED, .digits = part->view->request->common.digits};
    tensor_write_json(tensor, &style, part->runtime, part->out);
}

/* The maps without their first axis, at that index. */
static attn_tensor inner(const attn_tensor *maps, size_t index)
{
    attn_tensor inside = *maps;
    inside.rank = maps->rank - 1;
    inside.data = (char *)maps->data + (ptrdiff_t)index * maps->stride[0] * (ptrdiff_t)attn_dtype_bytes(maps->dtype);
    for (int d = 0; d < inside.rank; d++) {
        inside.shape[d] = maps->shape[d + 1];
        inside.stride[d] = maps->stride[d + 1];
    }
    return inside;
}

/* ---- the views: each writes one part, and what stands around the parts ---- */

static void write_bertviz_part(const struct part *part)
{
    static const char *const titles[] = {[MODEL_PART_ONLY] = "null",
                                         [MODEL_PART_ENCODER] = "\"Encoder\"",
                                         [MODEL_PART_DECODER] = "\"Decoder\"",
                                         [MODEL_PART_CROSS] = "\"Cross\""};
    chunks_format(part->out, "{\"name\":%s,\"attn\":", titles[part->kind]);
    write_tensor(part, &part->maps);
    chunks_text(part->out, ",\"left_text\":");
    write_query_labels(part);
    chunks_text(part->out, ",\"right_text\":");
    write_key_labels(part);
    chunks_text(part->out, "}");
}

/* heads are indices into attn; include_heads are the numbers of the heads in a layer. */
static void write_bertviz_end(const struct part *part, size_t layers)
{
    const size_t heads = part->maps.shape[1];
    chunks_format(part->out, "],\"default_filter\":\"0\",\"layer\":%zu", layer_number(part, 0));
    view_write_numbers(part->out, "heads", NULL, heads);
    view_write_numbers(part->out, "include_layers", &part->shown->layers, layers);
    view_write_numbers(part->out, "include_heads", &part->shown->heads, heads);
    chunks_format(part->out, ",\"total_heads\":%zu,\"display_mode\":\"dark\"}", part->view->heads);
}

static void write_circuitsvis_part(const struct part *part)
{
    for (size_t l = 0; l < part->maps.shape[0] && part->out->is_ok; l++) {
        const attn_tensor heads = inner(&part->maps, l);
        chunks_format(part->out, "%s{\"layer\":%zu,\"tokens\":", l > 0 ? "," : "", layer_number(part, l));
        write_query_labels(part);
        chunks_text(part->out, ",\"attention\":");
        write_tensor(part, &heads);
        chunks_text(part->out, "}");
    }
}

static void write_inspectus_part(const struct part *part)
{
    struct chunks *out = part->out;
    const size_t heads = part->maps.shape[1], count = part->maps.shape[0] * heads;
    if (part->kind != MODEL_PART_ONLY)
        chunks_format(out, "\"%s\":", model_part_name(part->kind));
    chunks_text(out, "{\"attention\":[");
    for (size_t n = 0; n < count && out->is_ok; n++) {
        const attn_tensor layer = inner(&part->maps, n / heads), map = inner(&layer, n % heads);
        chunks_text(out, n > 0 ? "," : "");
        view_write_values(out, &map, layer_number(part, n / heads), attn_selected(&part->shown->heads, n % heads));
    }
    chunks_text(out, "],\"src_tokens\":");
    write_query_labels(part);
    chunks_text(out, ",\"tgt_tokens\":");
    write_key_labels(part);
    view_write_charts(out);
}

/* Writes the cell number n of the maps. */
static void write_row(const struct part *part, size_t n)
{
    const size_t *shape = part->maps.shape;
    const size_t at[4] = {n / shape[3] / shape[2] / shape[1], n / shape[3] / shape[2] % shape[1],
                          n / shape[3] % shape[2], n % shape[3]};
    struct view_cell cell = {.head = attn_selected(&part->shown->heads, at[1]),
                             .query = attn_selected(&part->shown->queries, at[2]),
                             .key = attn_selected(&part->shown->keys, at[3]),
                             .digits = part->view->request->common.digits};
    cell.query_token = labels_at(part->query_labels, 0, cell.query);
    cell.key_token = labels_at(part->key_labels, 0, cell.key);
    ptrdiff_t flag = 0;
    for (int d = 0; d < 4; d++) {
        cell.place += (ptrdiff_t)at[d] * part->maps.stride[d];
        flag += (ptrdiff_t)at[d] * part->allowed.stride[d];
    }
    cell.is_allowed = ((const uint8_t *)part->allowed.data)[flag] != 0;
    chunks_text(part->out, "{");
    if (part->kind != MODEL_PART_ONLY)
        chunks_format(part->out, "\"part\":\"%s\",", model_part_name(part->kind));
    chunks_format(part->out, "\"layer\":%zu,", layer_number(part, at[0]));
    view_write_cell(part->out, &cell, &part->maps);
}

static void write_rows_part(const struct part *part)
{
    const size_t count = attn_tensor_count(&part->maps);
    for (size_t n = 0; n < count && part->out->is_ok; n++) {
        chunks_text(part->out, n > 0 ? ",\n" : "");
        write_row(part, n);
    }
}

/* ---- the whole ---- */

typedef void part_writer(const struct part *part);

/* Writes the parts with a comma between them. *last is the last one. Returns the most layers that one has. */
static size_t write_parts(const struct model_view *view, part_writer *write, const attn_runtime *runtime,
                          struct chunks *out, struct part *last)
{
    size_t layers = 0;
    for (model_part_kind kind = MODEL_PART_ONLY; kind < MODEL_PART_COUNT; kind++) {
        struct part part;
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
    struct part last = {0};
    const bool has_one = model_part_output(view->answer, MODEL_PART_ONLY, "attention") != NULL;
    if (view->request->common.view == ENVELOPE_VIEW_BERTVIZ) {
        chunks_text(out, "{\"attention\":[");
        const size_t layers = write_parts(view, write_bertviz_part, runtime, out, &last);
        write_bertviz_end(&last, layers);
    } else if (view->request->common.view == ENVELOPE_VIEW_INSPECTUS) {
        chunks_text(out, has_one ? "" : "{");
        write_parts(view, write_inspectus_part, runtime, out, &last);
        chunks_text(out, has_one ? "" : "}");
    } else {
        const bool is_rows = view->request->common.view == ENVELOPE_VIEW_ROWS;
        chunks_text(out, "[");
        write_parts(view, is_rows ? write_rows_part : write_circuitsvis_part, runtime, out, &last);
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

static size_t part_bound(const struct part *part)
{
    const struct tensor_style style = {.form = TENSOR_FORM_NESTED, .digits = part->view->request->common.digits};
    const size_t *shape = part->maps.shape, cells = attn_tensor_count(&part->maps);
    const envelope_view view = part->view->request->common.view;
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
        struct part part;
        if (find_part(view, kind, &part))
            bound = bound_add(bound, 1, part_bound(&part));
    }
    return bound;
}
