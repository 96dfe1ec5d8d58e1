/* view.c: writes attention maps as the input of a front-end: those of any model, and then the whole view of a layer. */
#include <math.h>
#include <string.h>

#include "codec/answer/forms.h"
#include "codec/bytes/base64.h"
#include "codec/bytes/bound.h"
#include "codec/number/number.h"
#include "codec/tensor/write.h"

const char *const view_names[] = {"", "bertviz", "circuitsvis", "inspectus", "rows"};

bool view_is_same(const attn_selection *a, const attn_selection *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (attn_selected(a, i) != attn_selected(b, i))
            return false;
    }
    return true;
}

/* ---- what several views share ---- */

/* The labels of the first batch item as a list. Without labels, positions are written as text. */
static void write_labels(struct chunks *out, const struct labels *labels, const attn_selection *selection, size_t count)
{
    chunks_text(out, "[");
    for (size_t i = 0; i < count; i++) {
        size_t position = attn_selected(selection, i);
        chunks_text(out, i > 0 ? "," : "");
        if (labels->texts != NULL)
            chunks_json_string(out, labels_at(labels, 0, position));
        else
            chunks_format(out, "\"%zu\"", position);
    }
    chunks_text(out, "]");
}

static void write_query_labels(const struct view_maps *view)
{
    write_labels(view->out, view->query_labels, view->queries, view->maps.shape[2]);
}

static void write_key_labels(const struct view_maps *view)
{
    write_labels(view->out, view->key_labels, view->keys, view->maps.shape[3]);
}

static void write_tensor(const struct view_maps *view, const attn_tensor *tensor)
{
    const struct tensor_style style = {.form = TENSOR_FORM_NESTED, .digits = view->digits};
    tensor_write_json(tensor, &style, view->runtime, view->out);
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

static size_t layer_number(const struct view_maps *view, size_t layer)
{
    return view->layers != NULL ? attn_selected(view->layers, layer) : layer;
}

/* ---- bertviz ---- */

void view_write_bertviz(const struct view_maps *view)
{
    chunks_text(view->out, "{\"name\":");
    if (view->part != NULL)
        chunks_format(view->out, "\"%c%s\"", view->part[0] - 'a' + 'A', view->part + 1);
    else
        chunks_text(view->out, "null");
    chunks_text(view->out, ",\"attn\":");
    write_tensor(view, &view->maps);
    chunks_text(view->out, ",\"left_text\":");
    write_query_labels(view);
    chunks_text(view->out, ",\"right_text\":");
    write_key_labels(view);
    chunks_text(view->out, "}");
}

/* Writes ,"name":[…] with the first count numbers of the selection; NULL: 0, 1, 2, … */
static void write_numbers(struct chunks *out, const char *name, const attn_selection *selection, size_t count)
{
    static const attn_selection all = {.count = 0};
    chunks_format(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        chunks_format(out, "%s%zu", i > 0 ? "," : "", attn_selected(selection != NULL ? selection : &all, i));
    chunks_text(out, "]");
}

/* heads are indices into attn; include_heads are the numbers of the heads in a layer. */
void view_write_bertviz_end(const struct view_maps *view, size_t layers, size_t heads)
{
    const size_t shown = view->maps.shape[1];
    chunks_format(view->out, "],\"default_filter\":\"0\",\"layer\":%zu", layer_number(view, 0));
    write_numbers(view->out, "heads", NULL, shown);
    write_numbers(view->out, "include_layers", view->layers, layers);
    write_numbers(view->out, "include_heads", view->heads, shown);
    chunks_format(view->out, ",\"total_heads\":%zu,\"display_mode\":\"dark\"}", heads);
}

/* ---- circuitsvis ---- */

void view_write_circuitsvis(const struct view_maps *view)
{
    for (size_t l = 0; l < view->maps.shape[0] && view->out->is_ok; l++) {
        const attn_tensor heads = inner(&view->maps, l);
        chunks_text(view->out, l > 0 ? ",{" : "{");
        if (view->is_of_model)
            chunks_format(view->out, "\"layer\":%zu,", layer_number(view, l));
        chunks_text(view->out, "\"tokens\":");
        write_query_labels(view);
        chunks_text(view->out, ",\"attention\":");
        write_tensor(view, &heads);
        chunks_text(view->out, "}");
    }
}

/* ---- inspectus ---- */

/* Little-endian float32 in base64. */
static void write_float32(struct chunks *out, const attn_tensor *map)
{
    enum { BASE64_BLOCK = 3 << 10 /* elements; a multiple of 3 */ };
    size_t total = attn_tensor_count(map);
    for (size_t from = 0; from < total; from += BASE64_BLOCK) {
        double gathered[BASE64_BLOCK];
        float numbers[BASE64_BLOCK];
        size_t count = total - from < BASE64_BLOCK ? total - from : BASE64_BLOCK;
        char *to = chunks_reserve(out, base64_encoded_length(count * sizeof *numbers));
        if (to == NULL)
            return;
        tensor_gather(gathered, map, from, count);
        const attn_status status = attn_convert(numbers, ATTN_F32, gathered, map->dtype, count, NULL);
        out->is_ok = out->is_ok && status == ATTN_OK; /* weights always fit float32 */
        base64_encode(to, numbers, count * sizeof *numbers);
        chunks_commit(out, base64_encoded_length(count * sizeof *numbers));
    }
}

void view_write_inspectus(const struct view_maps *view)
{
    struct chunks *out = view->out;
    const size_t heads = view->maps.shape[1], count = view->maps.shape[0] * heads;
    chunks_text(out, "{\"attention\":[");
    for (size_t n = 0; n < count && out->is_ok; n++) {
        const attn_tensor layer = inner(&view->maps, n / heads), map = inner(&layer, n % heads);
        chunks_text(out, n > 0 ? ",{\"values\":\"" : "{\"values\":\"");
        write_float32(out, &map);
        chunks_format(out, "\",\"info\":{\"layer\":%zu,\"head\":%zu},\"shape\":[%zu,%zu]}",
                      layer_number(view, n / heads), attn_selected(view->heads, n % heads), map.shape[0], map.shape[1]);
    }
    chunks_text(out, "],\"src_tokens\":");
    write_query_labels(view);
    chunks_text(out, ",\"tgt_tokens\":");
    write_key_labels(view);
    chunks_text(out, ",\"chart_types\":[\"attention_matrix\",\"query_token_heatmap\",\"key_token_heatmap\","
                     "\"dimension_heatmap\"],\"dimensions\":[{\"name\":\"layer\"},{\"name\":\"head\"}]}");
}

/* ---- rows ---- */

static void write_weight(const struct view_maps *view, ptrdiff_t place)
{
    char text[NUMBER_TEXT_MAX];
    const bool is_single = view->maps.dtype == ATTN_F32;
    const double value =
        is_single ? (double)((const float *)view->maps.data)[place] : ((const double *)view->maps.data)[place];
    if (!isfinite(value)) {
        answer_write_number(view->out, value);
        return;
    }
    char *end = is_single && view->digits == 0 ? number_write_f32(text, (float)value)
                                               : number_write_digits(text, value, view->digits);
    chunks_bytes(view->out, text, (size_t)(end - text));
}

static void write_token(struct chunks *out, const char *name, const char *token)
{
    if (token == NULL)
        return;
    chunks_format(out, ",\"%s\":", name);
    chunks_json_string(out, token);
}

/* Writes the cell number n of the maps. */
static void write_cell(const struct view_maps *view, size_t n)
{
    struct chunks *out = view->out;
    const size_t *shape = view->maps.shape;
    const size_t at[4] = {n / shape[3] / shape[2] / shape[1], n / shape[3] / shape[2] % shape[1],
                          n / shape[3] % shape[2], n % shape[3]};
    const size_t batch = view->is_of_model ? 0 : at[0], head = attn_selected(view->heads, at[1]);
    const size_t query = attn_selected(view->queries, at[2]), key = attn_selected(view->keys, at[3]);
    ptrdiff_t place = 0, flag = 0;
    for (int d = 0; d < 4; d++) {
        place += (ptrdiff_t)at[d] * view->maps.stride[d];
        flag += (ptrdiff_t)at[d] * view->allowed.stride[d];
    }
    const bool is_allowed = view->is_of_model ? ((const uint8_t *)view->allowed.data)[flag] != 0
                                              : attn_plan_allows(view->plan, batch, head, query, key);
    chunks_text(out, n > 0 ? ",\n{" : "{");
    if (view->part != NULL)
        chunks_format(out, "\"part\":\"%s\",", view->part);
    if (view->is_of_model)
        chunks_format(out, "\"layer\":%zu,", layer_number(view, at[0]));
    chunks_format(out, "\"batch\":%zu,\"head\":%zu,\"query\":%zu,\"key\":%zu", batch, head, query, key);
    write_token(out, "query_token", labels_at(view->query_labels, batch, query));
    write_token(out, "key_token", labels_at(view->key_labels, batch, key));
    chunks_text(out, ",\"weight\":");
    write_weight(view, place);
    chunks_text(out, is_allowed ? ",\"allowed\":true}" : ",\"allowed\":false}");
}

void view_write_rows(const struct view_maps *view)
{
    const size_t count = attn_tensor_count(&view->maps);
    for (size_t n = 0; n < count && view->out->is_ok; n++)
        write_cell(view, n);
}

/* ---- of a layer: checks of the dimensions ---- */

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
                         view_names[view], answer->plan->dims.batch);
    return view == ENVELOPE_VIEW_CIRCUITSVIS ? check_square(answer, err) : ATTN_OK;
}

/* ---- of a layer: the view ---- */

void answer_write_view(const struct answer *answer, const attn_runtime *runtime, struct chunks *out)
{
    const struct envelope *envelope = answer->envelope;
    const attn_options *options = &envelope->request.options;
    struct labels query_labels, key_labels;
    if (labels_read(&envelope->query_tokens, out->arena, &query_labels, NULL) != ATTN_OK ||
        labels_read(&envelope->key_tokens, out->arena, &key_labels, NULL) != ATTN_OK) {
        out->is_ok = false;
        return;
    }
    const struct view_maps view = {.maps = answer->result->step[ATTN_STEP_ATTENTION],
                                   .plan = answer->plan,
                                   .heads = &options->heads,
                                   .queries = &options->queries,
                                   .keys = &options->keys,
                                   .query_labels = &query_labels,
                                   .key_labels = &key_labels,
                                   .digits = envelope->digits,
                                   .runtime = runtime,
                                   .out = out};
    if (envelope->view == ENVELOPE_VIEW_BERTVIZ) { /* the only batch item stands for the only layer */
        chunks_text(out, "{\"attention\":[");
        view_write_bertviz(&view);
        view_write_bertviz_end(&view, 1, answer->plan->dims.heads);
    } else if (envelope->view == ENVELOPE_VIEW_CIRCUITSVIS) {
        view_write_circuitsvis(&view);
    } else if (envelope->view == ENVELOPE_VIEW_INSPECTUS) {
        view_write_inspectus(&view);
    } else {
        chunks_text(out, "[");
        view_write_rows(&view);
        chunks_text(out, "]");
    }
}

/* ---- of a layer: the length of the text ---- */

enum { FRAME_BYTES = 4096, INTEGER_BYTES = 21 };

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
