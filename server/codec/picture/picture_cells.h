/*
 * picture_cells.h: one head of a map as the cells of a panel.
 */
#ifndef CODEC_PICTURE_PICTURE_CELLS_H
#define CODEC_PICTURE_PICTURE_CELLS_H

#include "attn/runtime.h"
#include "codec/picture/picture_layout.h"

typedef enum { CELL_MASKED, CELL_NUMBER, CELL_NAN } cell_kind;

/* rows * columns of a layout. A pooled cell is its largest number; NaN if any is, and masked if all are. */
struct picture_cells {
    double *value;
    uint8_t *kind; /* a cell_kind each */
};

static inline bool picture_is_cancelled(const attn_runtime *runtime)
{
    return runtime->is_cancelled != NULL && runtime->is_cancelled(runtime->cancel_context);
}

/* The range of the colours, and which special cells the picture has. */
struct picture_range {
    double low, high;
    bool has_masked, has_nan;
};

/* False without memory. */
bool picture_cells_take(struct picture_cells *cells, const struct picture_layout *layout, attn_arena *arena);
/* False when runtime says stop. It is asked every few milliseconds: a head may have any number of weights. */
bool picture_cells_read(const struct picture *picture, const struct picture_layout *layout, size_t item, size_t head,
                        const attn_runtime *runtime, struct picture_cells *cells);
/* Widens the range, which begins at 0, by these cells. */
void picture_range_add(struct picture_range *range, const struct picture_layout *layout,
                       const struct picture_cells *cells);
/* Makes sure that low < high. */
void picture_range_finish(struct picture_range *range);

#endif
