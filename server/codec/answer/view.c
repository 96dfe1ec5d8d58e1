/* view.c: writes the attention map of a layer as the input of a front-end. */
#include "codec/answer/forms.h"

#include <string.h>

#include "codec/answer/token_labels.h"
#include "codec/answer/view_parts.h"
#include "codec/bytes/bound.h"
#include "codec/number/write.h"
#include "codec/tensor/write.h"

enum { FRAME_BYTES = 4096, INTEGER_BYTES = 21 };

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
                         view_names[view], answer->plan->dims.batch);
    return view == ENVELOPE_VIEW_CIRCUITSVIS ? check_square(answer, err) : ATTN_OK;
}

/* ---- the view ---- */

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
