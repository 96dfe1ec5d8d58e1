/* cells.h: the cells of a panel, which show one head of a map. */
#ifndef CODEC_PICTURE_CELLS_H
#define CODEC_PICTURE_CELLS_H

#include "attn/runtime.h"
#include "codec/picture/layout.h"

typedef enum { CELL_MASKED, CELL_NUMBER, CELL_NAN } cell_kind;

/*
 * A layout has rows * columns cells. A pooled cell is the maximum of its weights: NaN if any is NaN, masked if all are
 * masked.
 */
struct picture_cells {
    double *value;
    uint8_t *kind; /* a cell_kind per cell */
};

static inline bool picture_is_cancelled(const attn_runtime *runtime)
{
    return runtime->is_cancelled != NULL && runtime->is_cancelled(runtime->cancel_context);
}

/* The range of the colours, and which special cells occur in the picture. */
struct picture_range {
    double low, high;
    bool has_masked, has_nan;
};

/* Returns false without memory. */
bool picture_cells_take(struct picture_cells *cells, const struct picture_layout *layout, attn_arena *arena);
/*
 * Reads the cells of a head. Returns false when runtime says stop. runtime is asked every few milliseconds, because a
 * head may have any number of weights.
 */
bool picture_cells_read(const struct picture *picture, const struct picture_layout *layout, size_t item, size_t head,
                        const attn_runtime *runtime, struct picture_cells *cells);
/* Widens the range by these cells. A range starts at 0. */
void picture_range_add(struct picture_range *range, const struct picture_layout *layout,
                       const struct picture_cells *cells);
/* Ensures that low < high. */
void picture_range_finish(struct picture_range *range);

#endif
