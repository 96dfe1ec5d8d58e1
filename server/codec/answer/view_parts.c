/* view_parts.c: writes what the views of a layer and of a whole model share. */
#include "codec/answer/view_parts.h"

#include <math.h>

#include "codec/answer/forms.h"
#include "codec/bytes/base64.h"
#include "codec/number/number_write.h"
#include "codec/tensor/tensor_gather.h"

enum { BASE64_BLOCK = 3 << 10 /* elements; a multiple of 3 */ };

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

void view_write_labels(struct chunks *out, const struct labels *labels, const attn_selection *selection, size_t count)
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

void view_write_numbers(struct chunks *out, const char *name, const attn_selection *selection, size_t count)
{
    static const attn_selection all = {.count = 0};
    chunks_format(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        chunks_format(out, "%s%zu", i > 0 ? "," : "", attn_selected(selection != NULL ? selection : &all, i));
    chunks_text(out, "]");
}

static void write_float32(struct chunks *out, const attn_tensor *map)
{
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

void view_write_values(struct chunks *out, const attn_tensor *map, size_t layer, size_t head)
{
    chunks_text(out, "{\"values\":\"");
    write_float32(out, map);
    chunks_format(out, "\",\"info\":{\"layer\":%zu,\"head\":%zu},\"shape\":[%zu,%zu]}", layer, head, map->shape[0],
                  map->shape[1]);
}

void view_write_charts(struct chunks *out)
{
    chunks_text(out, ",\"chart_types\":[\"attention_matrix\",\"query_token_heatmap\",\"key_token_heatmap\","
                     "\"dimension_heatmap\"],\"dimensions\":[{\"name\":\"layer\"},{\"name\":\"head\"}]}");
}

static void write_weight(struct chunks *out, const struct view_cell *cell, const attn_tensor *attention)
{
    char text[NUMBER_TEXT_MAX];
    bool is_single = attention->dtype == ATTN_F32;
    double value = is_single ? (double)((const float *)attention->data)[cell->place]
                             : ((const double *)attention->data)[cell->place];
    if (!isfinite(value)) {
        answer_write_number(out, value);
        return;
    }
    char *end = cell->digits > 0 ? number_write_digits(text, value, cell->digits)
                : is_single      ? number_write_f32(text, (float)value)
                                 : number_write_f64(text, value);
    chunks_bytes(out, text, (size_t)(end - text));
}

static void write_token(struct chunks *out, const char *name, const char *token)
{
    if (token == NULL)
        return;
    chunks_format(out, ",\"%s\":", name);
    chunks_json_string(out, token);
}

void view_write_cell(struct chunks *out, const struct view_cell *cell, const attn_tensor *attention)
{
    chunks_format(out, "\"batch\":%zu,\"head\":%zu,\"query\":%zu,\"key\":%zu", cell->batch, cell->head, cell->query,
                  cell->key);
    write_token(out, "query_token", cell->query_token);
    write_token(out, "key_token", cell->key_token);
    chunks_text(out, ",\"weight\":");
    write_weight(out, cell, attention);
    chunks_format(out, ",\"allowed\":%s}", cell->is_allowed ? "true" : "false");
}
