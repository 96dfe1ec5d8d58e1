/*
 * view.h: writes the attention maps of a whole model in the form that another program reads (options.view).
 *
 *   bertviz      the parameters of head_view.js and model_view.js, with all layers. A model with an encoder and a decoder
 *                has an entry of "attention" for each part.
 *   circuitsvis  a list with the parameters of AttentionPatterns (and of AttentionHeads) for each layer, and its number.
 *   inspectus    the parameters of the attention chart, with the maps of all layers. A model with an encoder and a
 *                decoder has an object with a chart for each part.
 *   rows         an object for each weight.
 *
 * The forms are those of codec/answer/forms.h.
 */
#ifndef CODEC_MODEL_VIEW_H
#define CODEC_MODEL_VIEW_H

#include "codec/answer/token_labels.h"
#include "codec/model/answer.h"
#include "codec/model/request.h"

/*
 * Call this before planning. It asks for the steps that the view needs.
 *   ATTN_ERR_SHAPE  the view cannot show this request: it has several batch items, or circuitsvis, which has one list of
 *                   tokens, would show cross-attention or different queries and keys
 */
ATTN_MUST_CHECK attn_status model_view_prepare(struct model_request *request, bool has_cross, attn_error *err);

struct model_view {
    const struct model_request *request;
    const struct model_answer *answer;
    struct labels labels[2]; /* of the tokens of each stack, [1] of the decoder; texts NULL: positions are written */
    size_t heads;            /* of a layer, also those that the request leaves out */
};

/* The longest text, in bytes, from the shapes of the outputs; SIZE_MAX when that exceeds size_t. */
size_t model_view_bound(const struct model_view *view);
/* Appends the text. Without memory out->is_ok becomes false. */
void model_view_write(const struct model_view *view, const attn_runtime *runtime, struct chunks *out);

#endif
