/* png.c: a picture as PNG. It is drawn on a canvas, and libpng compresses the canvas. */
#include "codec/picture/canvas.h"
#include "codec/picture/draw.h"
#include "codec/picture/png_write.h"

enum { SCALE = 2, GLYPHS_MEMORY_BYTES = 4 << 20 };

struct png_pen {
    struct pen pen;
    struct picture_range range; /* pen.range points to this */
    struct canvas canvas;
    struct blocks *blocks;
};

static struct png_pen *png_pen(struct pen *pen)
{
    return (struct png_pen *)pen;
}

static void fill(struct pen *pen, struct canvas_box box, uint32_t rgb)
{
    canvas_fill(&png_pen(pen)->canvas, box, rgb);
}

static void hatch(struct pen *pen, struct canvas_box box)
{
    int scale = pen->layout->scale;
    canvas_hatch(&png_pen(pen)->canvas, box, UNIT_HATCH * scale, scale, RGB_HATCH);
}

static void text(struct pen *pen, const struct pen_text *text)
{
    struct png_pen *self = png_pen(pen);
    struct glyph_line line = glyphs_line(pen->glyphs, text->label, text->size);
    int back = text->anchor == ANCHOR_START ? 0 : text->anchor == ANCHOR_MIDDLE ? line.width / 2 : line.width;
    if (text->is_turned)
        canvas_ink(&self->canvas, &line, text->x - line.baseline, text->y + back - line.width, true, text->rgb);
    else
        canvas_ink(&self->canvas, &line, text->x - back, text->y - line.baseline, false, text->rgb);
    blocks_give(self->blocks, line.ink);
}

static bool panel(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells)
{
    const struct picture_layout *layout = pen->layout;
    for (size_t at = 0; at < layout->rows * layout->columns; at++) {
        if (at % layout->columns == 0 && picture_is_cancelled(pen->runtime))
            return false;
        struct canvas_box box = picture_cell_box(pen, panel, cells, at / layout->columns, at % layout->columns);
        fill(pen, box, picture_cell_rgb(pen, cells, at));
        if (cells->kind[at] == CELL_MASKED)
            hatch(pen, box);
    }
    picture_draw_numbers(pen, panel, cells);
    return true;
}

static int scale_of(const struct picture *picture)
{
    struct picture_layout layout;
    attn_error ignored;
    if (picture->options.scale > 0)
        return picture->options.scale;
    return picture_layout_make(picture, SCALE, NULL, &layout, &ignored) == ATTN_ERR_TOO_LARGE ? 1 : SCALE;
}

attn_status picture_png_cost(const struct picture *picture, struct picture_cost *cost, attn_error *err)
{
    struct picture_layout layout;
    attn_status status = picture_layout_make(picture, scale_of(picture), NULL, &layout, err);
    if (status != ATTN_OK)
        return status;
    size_t width = (size_t)layout.width, height = (size_t)layout.height;
    cost->bytes = png_bytes_bound(width, height);
    cost->memory_bytes = width * height * 3 + layout.rows * layout.columns * (sizeof(double) + 1) +
                         PNG_WRITE_MEMORY_BYTES + GLYPHS_MEMORY_BYTES;
    return ATTN_OK;
}

static bool append(void *context, const void *bytes, size_t length)
{
    struct chunks *out = context;
    chunks_bytes(out, bytes, length);
    return out->is_ok;
}

/*
 * Draws on the canvas, then compresses the canvas by libpng. When memory is short, blocks->is_short is set or a
 * function returns false.
 */
static attn_status draw_and_pack(struct png_pen *self, const attn_runtime *runtime, struct chunks *out, attn_error *err)
{
    const struct picture_layout *layout = self->pen.layout;
    struct picture_cells cells;
    if (!picture_cells_take(&cells, layout, out->arena) ||
        !canvas_take(&self->canvas, layout->width, layout->height, out->arena))
        return attn_fail_no_memory(err);
    self->pen.range = &self->range;
    if (!picture_find_range(self->pen.picture, layout, runtime, &cells, &self->range))
        return picture_fail_stopped(runtime, err);
    attn_status status = picture_draw(&self->pen, &cells, err);
    if (status != ATTN_OK)
        return status;
    const struct png_image image = {self->canvas.pixels, (size_t)layout->width, (size_t)layout->height, layout->scale};
    if (self->blocks->is_short || !png_write_rgb(&image, runtime, self->blocks, append, out))
        return picture_fail_stopped(runtime, err);
    return ATTN_OK;
}

attn_status picture_write_png(const struct picture *picture, const struct font_set *fonts, const attn_runtime *runtime,
                              struct chunks *out, attn_error *err)
{
    struct blocks blocks = blocks_begin(out->arena);
    struct picture_layout layout;
    struct glyphs *glyphs = glyphs_open(fonts, &blocks);
    if (glyphs == NULL)
        return attn_fail_no_memory(err);
    attn_status status = picture_layout_make(picture, scale_of(picture), glyphs, &layout, err);
    struct png_pen self = {.pen = {fill, hatch, text, panel, picture, &layout, NULL, glyphs, runtime},
                           .blocks = &blocks};
    if (status == ATTN_OK)
        status = draw_and_pack(&self, runtime, out, err);
    glyphs_close(glyphs);
    return status;
}
