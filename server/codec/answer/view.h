/*
 * view.h: writes the maps of a layer (forms.h) and of a part of a whole model (codec/model/view.h) as the input of a
 * front-end.
 *
 *   bertviz      https://github.com/jessevig/bertviz: the parameters of its head view and model view
 *   circuitsvis  https://github.com/TransformerLensOrg/CircuitsVis: the parameters of AttentionPatterns
 *   inspectus    https://github.com/labmlai/inspectus: the parameters of its attention chart
 *   rows         an object for each weight
 */
#ifndef CODEC_ANSWER_VIEW_PARTS_H
#define CODEC_ANSWER_VIEW_PARTS_H

#include "attn/plan.h"
#include "codec/answer/token_labels.h"
#include "codec/bytes/chunks.h"

/* "bertviz", "circuitsvis", …, by envelope_view. */
extern const char *const view_names[];

bool view_is_same(const attn_selection *a, const attn_selection *b);

struct view_maps {
    bool is_of_model;
    const char *part;             /* "encoder", …; NULL: there is one part */
    attn_tensor maps;             /* (batch, heads, queries, keys), of a model (layers, heads, …) of one item */
    const attn_plan *plan;        /* of a layer: says which cells are allowed */
    attn_tensor allowed;          /* of a model: the same, of the shape of maps */
    const attn_selection *layers; /* of a model: the numbers of the layers; NULL: 0, 1, 2, … */
    const attn_selection *heads, *queries, *keys; /* those that maps has */
    const struct labels *query_labels, *key_labels;
    int digits; /* tensor/write.h */
    const attn_runtime *runtime;
    struct chunks *out;
};

/* An element of "attention", and what follows the last. layers and heads: so many there are, also those not shown. */
void view_write_bertviz(const struct view_maps *view);
void view_write_bertviz_end(const struct view_maps *view, size_t layers, size_t heads);
/* An object; of a model, one for each layer. */
void view_write_circuitsvis(const struct view_maps *view);
void view_write_inspectus(const struct view_maps *view);
/* The objects, with a comma between them. */
void view_write_rows(const struct view_maps *view);

/* The longest text of a weight of inspectus: 4 bytes take at most 6 characters of base64. */
enum { VIEW_VALUE_BYTES = 6 };
/* The longest text of a cell, without the numbers and the tokens. */
enum {
    VIEW_CELL_BYTES = sizeof "{\"batch\":,\"head\":,\"query\":,\"key\":,\"query_token\":\"\",\"key_token\":\"\","
                             "\"weight\":,\"allowed\":false},\n"
};

#endif
