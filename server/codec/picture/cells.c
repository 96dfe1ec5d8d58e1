/* cells.c: pools weights into cells by their maximum. */
#include "codec/picture/cells.h"

#include <assert.h>
#include <float.h>
#include <math.h>

bool picture_cells_take(struct picture_cells *cells, const struct picture_layout *layout, attn_arena *arena)
{
    size_t count = layout->rows * layout->columns;
    cells->value = attn_arena_take(arena, count, sizeof *cells->value);
    cells->kind = attn_arena_take(arena, count, sizeof *cells->kind);
    return cells->value != NULL && cells->kind != NULL;
}

static ptrdiff_t offset_of(const attn_tensor *map, size_t item, size_t head, size_t row)
{
    return (ptrdiff_t)item * map->stride[0] + (ptrdiff_t)head * map->stride[1] + (ptrdiff_t)row * map->stride[2];
}

static double weight_at(const attn_tensor *weights, ptrdiff_t offset)
{
    return weights->dtype == ATTN_F64 ? ((const double *)weights->data)[offset]
                                      : (double)((const float *)weights->data)[offset];
}

static void merge(struct picture_cells *cells, size_t at, double value)
{
    if (isnan(value)) {
        cells->kind[at] = CELL_NAN;
    } else if (cells->kind[at] == CELL_MASKED || (cells->kind[at] == CELL_NUMBER && value > cells->value[at])) {
        cells->kind[at] = CELL_NUMBER;
        cells->value[at] = fmax(-DBL_MAX, fmin(DBL_MAX, value));
    }
}

/* Counts the weights read since runtime was last asked. */
struct reading {
    const attn_runtime *runtime;
    size_t weights;
};

static bool goes_on(struct reading *reading, size_t weights)
{
    enum { WEIGHTS_AT_ONCE = 1 << 18 };
    reading->weights += weights;
    if (reading->weights < WEIGHTS_AT_ONCE)
        return true;
    reading->weights = 0;
    return !picture_is_cancelled(reading->runtime);
}

static bool read_row(const struct picture *picture, const struct picture_layout *layout, size_t item, size_t head,
                     size_t row, struct reading *reading, struct picture_cells *cells)
{
    const attn_tensor *weights = picture->weights, *allowed = picture->allowed;
    ptrdiff_t weight = offset_of(weights, item, head, row);
    ptrdiff_t flag = allowed == NULL ? 0 : offset_of(allowed, item, head, row);
    size_t at = row / layout->pool_rows * layout->columns, columns = weights->shape[3];
    for (size_t from = 0; from < columns; from += layout->pool_columns, at++) {
        size_t to = columns - from < layout->pool_columns ? columns : from + layout->pool_columns;
        for (size_t j = from; j < to; j++)
            if (allowed == NULL || ((const uint8_t *)allowed->data)[flag + (ptrdiff_t)j * allowed->stride[3]] != 0)
                merge(cells, at, weight_at(weights, weight + (ptrdiff_t)j * weights->stride[3]));
        if (!goes_on(reading, to - from))
            return false;
    }
    return true;
}

bool picture_cells_read(const struct picture *picture, const struct picture_layout *layout, size_t item, size_t head,
                        const attn_runtime *runtime, struct picture_cells *cells)
{
    struct reading reading = {.runtime = runtime};
    assert(picture->weights->dtype == ATTN_F32 || picture->weights->dtype == ATTN_F64);
    for (size_t i = 0; i < layout->rows * layout->columns; i++) {
        cells->kind[i] = CELL_MASKED;
        cells->value[i] = 0;
    }
    for (size_t row = 0; row < picture->weights->shape[2]; row++)
        if (!read_row(picture, layout, item, head, row, &reading, cells))
            return false;
    return true;
}

void picture_range_add(struct picture_range *range, const struct picture_layout *layout,
                       const struct picture_cells *cells)
{
    for (size_t i = 0; i < layout->rows * layout->columns; i++) {
        range->has_masked = range->has_masked || cells->kind[i] == CELL_MASKED;
        range->has_nan = range->has_nan || cells->kind[i] == CELL_NAN;
        if (cells->kind[i] != CELL_NUMBER)
            continue;
        range->low = fmin(range->low, cells->value[i]);
        range->high = fmax(range->high, cells->value[i]);
    }
}

/* Both ends are halved, so that the difference of the largest numbers stays finite. */
void picture_range_finish(struct picture_range *range)
{
    range->low = fmax(range->low, -DBL_MAX / 4);
    range->high = fmin(range->high, DBL_MAX / 4);
    if (range->low == range->high)
        range->high = 1;
}
