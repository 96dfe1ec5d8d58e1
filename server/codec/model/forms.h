/*
 * forms.h: the attention maps of a whole model, or a sweep, as a picture, and maps in the form that another program reads.
 *
 * A picture has layers down and heads across. It shows one batch item, and one part of a model with an encoder and a decoder. Several maps are pooled by
 * their maximum to at most MODEL_PICTURE_SIDE cells a side. One map alone is shown whole. The labels of pooled rows and
 * columns are positions: of the first row or column that the cell shows.
 *
 * The calls, in this order: model_picture_choose_part, model_picture_prepare, planning, model_picture_make, the cost,
 * the run, model_picture_fill, the writing. The picture of a sweep has the same; model_sweep_picture and
 * model_sweep_picture_fill (service/run/model/item.h) make and fill it.
 */
#ifndef CODEC_MODEL_FORMS_H
#define CODEC_MODEL_FORMS_H

#include "codec/answer/forms.h"
#include "codec/model/answer.h"
#include "codec/model/request.h"
#include "codec/picture/image.h"

enum { MODEL_PICTURE_SIDE = 64 };

/*
 * The part that ?part names. The default is the cross-attention when the request has a target, or else the encoder's.
 *   ATTN_ERR_VALUE  the model has no such part, or has it only with a target (field "?part")
 */
ATTN_MUST_CHECK attn_status model_picture_choose_part(const struct picture_options *options, bool has_decoder,
                                                      bool has_target, model_part_kind *part, attn_error *err);

/*
 * Narrows the request to what the picture shows: to one batch item, to the layer and the head that the options name, to
 * the steps that a picture needs, and to pooled maps when there are several. layers and heads are those of the part.
 * Call it before the request is tokenized: items of the batch that the picture does not show then cost nothing. If
 * options.return names the sweep, the picture shows it, and the batch stays, because a sweep has numbers of other items.
 *   ATTN_ERR_FIELD      the request asks for another form of the maps (pool, top_k, dtype, view), or the options choose a
 *                       layer or a head of a sweep
 *   ATTN_ERR_VALUE      the options name a layer, head or batch item that does not exist, or that the request leaves out
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status model_picture_prepare(const struct picture_options *options, size_t layers, size_t heads,
                                                  struct model_request *request, attn_arena *arena, attn_error *err);

/* It refers to itself, and so must not be moved. */
struct model_picture {
    struct picture picture;
    attn_tensor weights, allowed;
    const attn_tensor *attention, *mask; /* the outputs of the part */
    struct picture_sweep sweep;
};

/*
 * Makes the picture from a planned answer, for cost and writing by image.h. labels are those of the item's tokens in
 * each stack, labels[1] those of the decoder; with texts NULL, positions are shown. A text may be empty. The request,
 * the answer and the labels must outlive the picture. ATTN_ERR_NO_MEMORY.
 */
ATTN_MUST_CHECK attn_status model_picture_make(const struct picture_options *options, model_part_kind part,
                                               const struct model_answer *answer, const struct labels labels[2],
                                               attn_arena *arena, struct model_picture *picture, attn_error *err);
/* Adds the numbers of the run. */
void model_picture_fill(struct model_picture *picture);

/*
 * ---- view.c: writes the attention maps of a whole model in the form that another program reads (options.view).
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
