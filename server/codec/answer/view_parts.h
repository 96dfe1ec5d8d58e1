/*
 * view_parts.h: the parts that the views of a layer (view.h) and of a whole model share.
 */
#ifndef CODEC_ANSWER_VIEW_PARTS_H
#define CODEC_ANSWER_VIEW_PARTS_H

#include "attn/plan.h"
#include "codec/answer/token_labels.h"
#include "codec/bytes/chunks.h"

bool view_is_same(const attn_selection *a, const attn_selection *b);

/* Writes the labels of the first batch item as a list. Without labels, positions are written as text. */
void view_write_labels(struct chunks *out, const struct labels *labels, const attn_selection *selection, size_t count);

/* Writes ,"name":[…] with the first count numbers of the selection; NULL: 0, 1, 2, … */
void view_write_numbers(struct chunks *out, const char *name, const attn_selection *selection, size_t count);

/* Writes the map (queries, keys) of one head as Inspectus reads it: little-endian float32 in base64. */
void view_write_values(struct chunks *out, const attn_tensor *map, size_t layer, size_t head);
enum { VIEW_VALUE_BYTES = 6 /* 4 bytes take at most 6 characters of base64 text */ };

/* Writes the end of the parameters of Inspectus: the charts and the dimensions of the maps. */
void view_write_charts(struct chunks *out);

/* One weight of the view "rows". Numbers are those of the whole layer. */
struct view_cell {
    size_t batch, head, query, key;
    const char *query_token, *key_token; /* UTF-8; NULL: none */
    ptrdiff_t place;                     /* of the weight, in elements from the first of attention */
    int digits;                          /* tensor_write.h */
    bool is_allowed;
};

/* Writes the members of a cell and the closing brace. The caller writes the opening brace, and members of its own. */
void view_write_cell(struct chunks *out, const struct view_cell *cell, const attn_tensor *attention);
/* The longest text of a cell, without the numbers and the tokens. */
enum {
    VIEW_CELL_BYTES = sizeof "{\"batch\":,\"head\":,\"query\":,\"key\":,\"query_token\":\"\",\"key_token\":\"\","
                             "\"weight\":,\"allowed\":false},\n"
};

#endif
