/*
 * view.c: writes the attention map as the input of a front-end.
 *
 *   bertviz      https://github.com/jessevig/bertviz: the parameters of its head view and model view
 *   circuitsvis  https://github.com/TransformerLensOrg/CircuitsVis: the parameters of AttentionPatterns
 *   inspectus    https://github.com/labmlai/inspectus: the parameters of its attention chart
 */
#include "codec/answer/forms.h"

#include <string.h>

#include "codec/answer/token_labels.h"
#include "codec/answer/view_parts.h"
#include "codec/bytes/bound.h"
#include "codec/number/number_write.h"
#include "codec/tensor/tensor_write.h"

enum { FRAME_BYTES = 4096, INTEGER_BYTES = 21 };

static const char *const names[] = {"", "bertviz", "circuitsvis", "inspectus", "rows"};

struct view {
    const struct answer *answer;
    const attn_tensor *attention; /* (batch, heads, queries, keys) */
    const attn_selection *heads, *queries, *keys;
    struct labels query_labels, key_labels;
    const attn_runtime *runtime;
    struct chunks *out;
};

/* ---- checks of the dimensions ---- */

static attn_status check_square(const struct answer *answer, attn_error *err)
{
    const attn_dims *dims = &answer->plan->dims;
    const attn_options *options = &answer->envelope->request.options;
    if (dims->q_len != dims->kv_len)
        return attn_fail(err, ATTN_ERR_SHAPE, "/options/view",
                         "circuitsvis has one list of tokens for queries and keys, and there are %zu queries and %zu "
                         "keys: use another view",
                         dims->q_len, dims->kv_len);
    if (!view_is_same(&options->queries, &options->keys))
        return attn_fail(err, ATTN_ERR_SHAPE, "/options/view",
                         "circuitsvis has one list of tokens for queries and keys: select the same of both by "
                         "options.queries and options.keys");
    return ATTN_OK;
}

attn_status answer_check_view(const struct answer *answer, attn_error *err)
{
    envelope_view view = answer->envelope->view;
    if (view == ENVELOPE_VIEW_ROWS)
        return ATTN_OK;
    if (answer->plan->dims.batch > 1)
        return attn_fail(err, ATTN_ERR_SHAPE, "/options/view",
                         "%s shows one batch item, and there are %zu: send one at a time, or use the view \"rows\"",
                         names[view], answer->plan->dims.batch);
    return view == ENVELOPE_VIEW_CIRCUITSVIS ? check_square(answer, err) : ATTN_OK;
}

/* ---- parts that several views share ---- */

static void write_query_labels(const struct view *view)
{
    view_write_labels(view->out, &view->query_labels, view->queries, view->attention->shape[2]);
}

static void write_key_labels(const struct view *view)
{
    view_write_labels(view->out, &view->key_labels, view->keys, view->attention->shape[3]);
}

static void write_tensor(const struct view *view, const attn_tensor *tensor)
{
    const struct tensor_style style = {.form = TENSOR_FORM_NESTED, .digits = view->answer->envelope->digits};
    tensor_write_json(tensor, &style, view->runtime, view->out);
}

/* Views the map of one batch item without the leading dimensions. */
static attn_tensor inner_map(const attn_tensor *attention, int rank, ptrdiff_t offset)
{
    attn_tensor inner = *attention;
    inner.rank = rank;
    inner.data = (char *)attention->data + offset * (ptrdiff_t)attn_dtype_bytes(attention->dtype);
    for (int d = 0; d < rank; d++) {
        inner.shape[d] = attention->shape[ATTN_REQUEST_RANK - rank + d];
        inner.stride[d] = attention->stride[ATTN_REQUEST_RANK - rank + d];
    }
    return inner;
}

/* ---- the views ---- */

/* heads are indices into attn; include_heads are the numbers of the heads in the layer. */
static void write_bertviz(const struct view *view)
{
    struct chunks *out = view->out;
    chunks_text(out, "{\"attention\":[{\"name\":null,\"attn\":");
    write_tensor(view, view->attention); /* the only batch item stands for the only layer */
    chunks_text(out, ",\"left_text\":");
    write_query_labels(view);
    chunks_text(out, ",\"right_text\":");
    write_key_labels(view);
    chunks_text(out, "}],\"default_filter\":\"0\",\"layer\":0");
    view_write_numbers(out, "heads", NULL, view->attention->shape[1]);
    view_write_numbers(out, "include_layers", NULL, 1);
    view_write_numbers(out, "include_heads", view->heads, view->attention->shape[1]);
    chunks_format(out, ",\"total_heads\":%zu,\"display_mode\":\"dark\"}", view->answer->plan->dims.heads);
}

static void write_circuitsvis(const struct view *view)
{
    const attn_tensor heads = inner_map(view->attention, 3, 0);
    chunks_text(view->out, "{\"tokens\":");
    write_query_labels(view);
    chunks_text(view->out, ",\"attention\":");
    write_tensor(view, &heads);
    chunks_text(view->out, "}");
}

static void write_inspectus(const struct view *view)
{
    struct chunks *out = view->out;
    const attn_tensor *attention = view->attention;
    chunks_text(out, "{\"attention\":[");
    for (size_t h = 0; h < attention->shape[1] && out->is_ok; h++) {
        const attn_tensor map = inner_map(attention, 2, (ptrdiff_t)h * attention->stride[1]);
        chunks_text(out, h > 0 ? "," : "");
        view_write_values(out, &map, 0, attn_selected(view->heads, h));
    }
    chunks_text(out, "],\"src_tokens\":");
    write_query_labels(view);
    chunks_text(out, ",\"tgt_tokens\":");
    write_key_labels(view);
    view_write_charts(out);
}

/* Writes one cell. at: the batch item, and the indices of head, query and key in the map. */
static void write_cell(const struct view *view, const size_t at[4])
{
    const attn_plan *plan = view->answer->plan;
    const ptrdiff_t *stride = view->attention->stride;
    struct view_cell cell = {.batch = at[0],
                             .head = attn_selected(view->heads, at[1]),
                             .query = attn_selected(view->queries, at[2]),
                             .key = attn_selected(view->keys, at[3]),
                             .digits = view->answer->envelope->digits};
    cell.query_token = labels_at(&view->query_labels, at[0], cell.query);
    cell.key_token = labels_at(&view->key_labels, at[0], cell.key);
    cell.is_allowed = attn_plan_allows(plan, at[0], cell.head, cell.query, cell.key);
    for (int d = 0; d < 4; d++)
        cell.place += (ptrdiff_t)at[d] * stride[d];
    chunks_text(view->out, "{");
    view_write_cell(view->out, &cell, view->attention);
}

static void write_rows(const struct view *view)
{
    const size_t *shape = view->attention->shape;
    size_t count = attn_tensor_count(view->attention);
    chunks_text(view->out, "[");
    for (size_t n = 0; n < count && view->out->is_ok; n++) {
        const size_t at[4] = {n / shape[3] / shape[2] / shape[1], n / shape[3] / shape[2] % shape[1],
                              n / shape[3] % shape[2], n % shape[3]};
        chunks_text(view->out, n > 0 ? ",\n" : "");
        write_cell(view, at);
    }
    chunks_text(view->out, "]");
}

void answer_write_view(const struct answer *answer, const attn_runtime *runtime, struct chunks *out)
{
    const struct envelope *envelope = answer->envelope;
    const attn_options *options = &envelope->request.options;
    struct view view = {.answer = answer,
                        .attention = &answer->result->step[ATTN_STEP_ATTENTION],
                        .heads = &options->heads,
                        .queries = &options->queries,
                        .keys = &options->keys,
                        .runtime = runtime,
                        .out = out};
    if (labels_read(&envelope->query_tokens, out->arena, &view.query_labels, NULL) != ATTN_OK ||
        labels_read(&envelope->key_tokens, out->arena, &view.key_labels, NULL) != ATTN_OK) {
        out->is_ok = false;
        return;
    }
    if (envelope->view == ENVELOPE_VIEW_BERTVIZ)
        write_bertviz(&view);
    else if (envelope->view == ENVELOPE_VIEW_CIRCUITSVIS)
        write_circuitsvis(&view);
    else if (envelope->view == ENVELOPE_VIEW_INSPECTUS)
        write_inspectus(&view);
    else
        write_rows(&view);
}

/* ---- the length of the text ---- */

static size_t text_length(const char *text)
{
    return text != NULL ? strlen(text) : 0;
}

/* A character that the request wrote as \b becomes \u0008 here, which is three times as long. */
static size_t rows_bound(const struct answer *answer, const attn_tensor *attention)
{
    const attn_dims *dims = &answer->plan->dims;
    size_t labels =
        3 * (labels_longest(&answer->envelope->query_tokens) + labels_longest(&answer->envelope->key_tokens));
    size_t numbers =
        bound_digits(dims->batch) + bound_digits(dims->heads) + bound_digits(dims->q_len) + bound_digits(dims->kv_len);
    return bound_add(FRAME_BYTES, attn_tensor_count(attention), VIEW_CELL_BYTES + numbers + labels + NUMBER_TEXT_MAX);
}

size_t answer_view_bound(const struct answer *answer)
{
    const struct envelope *envelope = answer->envelope;
    const attn_tensor *attention = &answer->plan->step[ATTN_STEP_ATTENTION];
    const struct tensor_style style = {.form = TENSOR_FORM_NESTED, .digits = envelope->digits};
    if (envelope->view == ENVELOPE_VIEW_ROWS)
        return rows_bound(answer, attention);
    size_t bound = bound_add(FRAME_BYTES, attention->shape[1], 128);
    bound = bound_add(bound, attention->shape[2] + attention->shape[3], INTEGER_BYTES + 2);
    bound = bound_add(bound, 3, text_length(envelope->query_tokens.json));
    bound = bound_add(bound, 3, text_length(envelope->key_tokens.json));
    if (envelope->view == ENVELOPE_VIEW_INSPECTUS)
        return bound_add(bound, attn_tensor_count(attention), VIEW_VALUE_BYTES);
    return bound_add(bound, 1, tensor_write_bound(attention, &style));
}
