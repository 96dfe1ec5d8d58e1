/*
 * png.c: a picture as PNG. It is drawn on a canvas, and libpng compresses the canvas. libpng reports errors by longjmp. All
 * memory comes from the arena, so a jump leaks nothing.
 */
#include <png.h>
#include <stdint.h>
#include <string.h>

#include "codec/bytes/pace.h"
#include "codec/picture/drawing.h"

enum { SCALE = 2, CHANNELS = 3 };

/* ---- the file, by libpng ---- */

static png_voidp take_memory(png_structp png, png_alloc_size_t bytes)
{
    return blocks_take(png_get_mem_ptr(png), bytes);
}

static void give_memory(png_structp png, png_voidp block)
{
    blocks_give(png_get_mem_ptr(png), block);
}

struct destination {
    png_sink *sink;
    void *context;
};

static void write_bytes(png_structp png, png_bytep bytes, size_t length)
{
    const struct destination *to = png_get_io_ptr(png);
    if (!to->sink(to->context, bytes, length))
        png_error(png, "refused");
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

/* Replaces libpng's handlers, which print. */
_Noreturn static void fail(png_structp png, png_const_charp message)
{
    (void)message;
    png_longjmp(png, 1);
}

static void warn_nobody(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* Returns false when libpng jumped out. No local variable changes between setjmp and the jump. */
static bool write_image(png_structp png, png_infop info, const struct png_image *image, const attn_runtime *runtime)
{
    enum { DOTS_PER_METRE = 3780, LEVEL = 6 };
    if (setjmp(png_jmpbuf(png)) != 0)
        return false;
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
    if (image->scale > 0)
        png_set_pHYs(png, info, (png_uint_32)(DOTS_PER_METRE * image->scale),
                     (png_uint_32)(DOTS_PER_METRE * image->scale), PNG_RESOLUTION_METER);
    /* Flat areas compress best without a filter. */
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
    png_set_compression_level(png, LEVEL);
    png_write_info(png, info);
    for (size_t y = 0; y < image->height; y++) {
        if (pace_is_cancelled(runtime))
            return false;
        png_write_row(png, image->pixels + y * image->width * 3);
    }
    png_write_end(png, info);
    return true;
}

bool png_write_rgb(const struct png_image *image, const attn_runtime *runtime, struct blocks *blocks, png_sink *sink,
                   void *context)
{
    struct destination to = {sink, context};
    png_structp png =
        png_create_write_struct_2(PNG_LIBPNG_VER_STRING, NULL, fail, warn_nobody, blocks, take_memory, give_memory);
    png_infop info = png == NULL ? NULL : png_create_info_struct(png);
    bool is_written = false;
    if (info != NULL) {
        png_set_write_fn(png, &to, write_bytes, flush_nothing);
        is_written = write_image(png, info, image, runtime);
    }
    png_destroy_write_struct(&png, &info);
    return is_written;
}

size_t png_bytes_bound(size_t width, size_t height)
{
    /*
     * Stored blocks of deflate add at most 5 bytes per 16 KiB. libpng cuts the stream into chunks of 8 KiB and adds 12
     * bytes to each.
     */
    size_t raw = (width * 3 + 1) * height;
    return raw + raw / 256 + 1024;
}

/* ---- the canvas: rows of pixels of three bytes: red, green, blue. Every shape is clipped to it ---- */

struct canvas {
    uint8_t *pixels;
    int width, height;
};

static uint8_t *pixel_at(const struct canvas *canvas, int x, int y)
{
    return canvas->pixels + ((size_t)y * (size_t)canvas->width + (size_t)x) * CHANNELS;
}

static void set_pixel(uint8_t *pixel, uint32_t rgb)
{
    pixel[0] = (uint8_t)(rgb >> 16);
    pixel[1] = (uint8_t)(rgb >> 8);
    pixel[2] = (uint8_t)rgb;
}

/* Takes a white canvas from arena. False without memory. */
static bool canvas_take(struct canvas *canvas, int width, int height, attn_arena *arena)
{
    size_t row_bytes = (size_t)width * CHANNELS;
    *canvas = (struct canvas){attn_arena_take(arena, (size_t)height, row_bytes), width, height};
    if (canvas->pixels != NULL)
        memset(canvas->pixels, 0xFF, (size_t)height * row_bytes);
    return canvas->pixels != NULL;
}

static struct canvas_box clip(const struct canvas *canvas, struct canvas_box box)
{
    int right = box.x + box.width < canvas->width ? box.x + box.width : canvas->width;
    int bottom = box.y + box.height < canvas->height ? box.y + box.height : canvas->height;
    box.x = box.x < 0 ? 0 : box.x;
    box.y = box.y < 0 ? 0 : box.y;
    box.width = right - box.x;
    box.height = bottom - box.y;
    return box;
}

/* Blends ink over the pixel. sRGB values are close enough to linear for dark text on a light ground. */
static void blend(uint8_t *pixel, uint32_t rgb, unsigned ink)
{
    for (int i = 0; i < CHANNELS; i++) {
        unsigned colour = rgb >> (16 - 8 * i) & 0xFF;
        pixel[i] = (uint8_t)((pixel[i] * (255 - ink) + colour * ink + 127) / 255);
    }
}

/* Draws the line of glyphs. The upper left corner of its box is at x, y. A turned line reads upwards. */
static void canvas_ink(struct canvas *canvas, const struct glyph_line *line, int x, int y, bool is_turned, uint32_t rgb)
{
    if (line->ink == NULL)
        return;
    for (int row = 0; row < line->height; row++)
        for (int column = 0; column < line->width; column++) {
            int to_x = is_turned ? x + row : x + column;
            int to_y = is_turned ? y + line->width - 1 - column : y + row;
            unsigned ink = line->ink[(size_t)row * (size_t)line->width + (size_t)column];
            if (ink > 0 && to_x >= 0 && to_x < canvas->width && to_y >= 0 && to_y < canvas->height)
                blend(pixel_at(canvas, to_x, to_y), rgb, ink);
        }
}

/* ---- the pen ---- */

struct png_pen {
    struct pen pen;
    struct canvas canvas;
};

static struct png_pen *png_pen(struct pen *pen)
{
    return (struct png_pen *)pen;
}

static bool begin(struct pen *pen)
{
    return canvas_take(&png_pen(pen)->canvas, pen->layout->width, pen->layout->height, pen->out->arena);
}

static void fill(struct pen *pen, struct canvas_box box, uint32_t rgb)
{
    const struct canvas *canvas = &png_pen(pen)->canvas;
    box = clip(canvas, box);
    for (int y = box.y; y < box.y + box.height; y++)
        for (int x = box.x; x < box.x + box.width; x++)
            set_pixel(pixel_at(canvas, x, y), rgb);
}

/*
 * Draws diagonals that rise to the right. They keep their places on the canvas, so that the diagonals of neighbouring
 * boxes meet.
 */
static void hatch(struct pen *pen, struct canvas_box box)
{
    const struct canvas *canvas = &png_pen(pen)->canvas;
    const int scale = pen->layout->scale;
    box = clip(canvas, box);
    for (int y = box.y; y < box.y + box.height; y++)
        for (int x = box.x; x < box.x + box.width; x++)
            if ((x + y) % (UNIT_HATCH * scale) < scale)
                set_pixel(pixel_at(canvas, x, y), RGB_HATCH);
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
    blocks_give(pen->blocks, line.ink);
}

static bool panel(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells)
{
    const struct picture_layout *layout = pen->layout;
    for (size_t at = 0; at < layout->rows * layout->columns; at++) {
        if (at % layout->columns == 0 && pace_is_cancelled(pen->runtime))
            return false;
        struct canvas_box box = picture_cell_box(pen, panel, cells, at / layout->columns, at % layout->columns);
        fill(pen, box, picture_cell_rgb(pen, cells, at));
        if (cells->kind[at] == CELL_MASKED)
            hatch(pen, box);
    }
    picture_draw_numbers(pen, panel, cells);
    return true;
}

static bool append(void *context, const void *bytes, size_t length)
{
    struct chunks *out = context;
    chunks_bytes(out, bytes, length);
    return out->is_ok;
}

/* Compresses the canvas. */
static bool end(struct pen *pen)
{
    const struct picture_layout *layout = pen->layout;
    const struct png_image image = {png_pen(pen)->canvas.pixels, (size_t)layout->width, (size_t)layout->height,
                                    layout->scale};
    return !pen->blocks->is_short && png_write_rgb(&image, pen->runtime, pen->blocks, append, pen->out);
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
                         PNG_WRITE_MEMORY_BYTES + PICTURE_GLYPHS_BYTES;
    return ATTN_OK;
}

attn_status picture_write_png(const struct picture *picture, const struct font_set *fonts, const attn_runtime *runtime,
                              struct chunks *out, attn_error *err)
{
    struct png_pen self = {.pen = {.begin = begin,
                                   .fill = fill,
                                   .hatch = hatch,
                                   .text = text,
                                   .panel = panel,
                                   .end = end,
                                   .picture = picture,
                                   .runtime = runtime,
                                   .out = out}};
    return picture_draw(&self.pen, scale_of(picture), fonts, err);
}
