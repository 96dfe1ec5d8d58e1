/*
 * picture_stage.h: a small map, and pictures of it that are read back, for the test programs of
 * server/codec/picture/image.h.
 */
#ifndef TESTS_UNIT_SERVER_CODEC_PICTURE_PICTURE_STAGE_H
#define TESTS_UNIT_SERVER_CODEC_PICTURE_PICTURE_STAGE_H

#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "codec/picture/drawing.h"
#include "codec/picture/image.h"
#include "words.h"

enum { ROWS = 3, COLUMNS = 5, HEADS = 2 };

static attn_arena *arena;
static struct font_set fonts;
static attn_runtime runtime;
static attn_error error;

static inline void set_up(void)
{
    char message[256];
    arena = attn_arena_create((size_t)256 << 20);
    runtime = attn_runtime_serial(NULL);
    ck_assert_msg(font_set_open(&fonts, "auto", message, sizeof message), "%s", message);
    ck_assert_uint_eq(fonts.count, 2);
}

static inline void tear_down(void)
{
    attn_arena_destroy(arena);
    font_set_close(&fonts);
}

/* A map of two heads, 3 x 5, all of whose weights differ, with masked cells in each. */
/* The pixels of a picture, three bytes each. */
struct canvas {
    uint8_t *pixels;
    int width, height;
};

struct scenario {
    float weight[HEADS * ROWS * COLUMNS];
    uint8_t allowed[HEADS * ROWS * COLUMNS];
    attn_tensor weights_view, allowed_view;
    struct picture picture;
};

static inline void make_scenario(struct scenario *s)
{
    for (int i = 0; i < HEADS * ROWS * COLUMNS; i++) {
        s->weight[i] = (float)((i * 7) % 30) / 29;
        s->allowed[i] = i % 11 != 3;
    }
    s->weights_view = attn_tensor_view(s->weight, ATTN_F32, 4, (size_t[]){1, HEADS, ROWS, COLUMNS});
    s->allowed_view = attn_tensor_view(s->allowed, ATTN_BOOL, 4, (size_t[]){1, HEADS, ROWS, COLUMNS});
    s->picture = (struct picture){
        .weights = &s->weights_view, .allowed = &s->allowed_view, .options = picture_options_default(PICTURE_OF_LAYER)};
}

struct bytes {
    unsigned char *data;
    size_t length;
};

static inline struct bytes join(const struct chunks *chunks)
{
    struct bytes all = {attn_arena_take(arena, 1, chunks->total_bytes + 1), 0};
    ck_assert_ptr_nonnull(all.data);
    for (const struct chunk *chunk = chunks->first; chunk != NULL; chunk = chunk->next) {
        memcpy(all.data + all.length, chunk->data, chunk->length);
        all.length += chunk->length;
    }
    all.data[all.length] = '\0';
    return all;
}

typedef attn_status picture_writer(const struct picture *, const struct font_set *, const attn_runtime *,
                                   struct chunks *, attn_error *);
typedef attn_status picture_pricer(const struct picture *, struct picture_cost *, attn_error *);

static inline struct bytes write_by(picture_writer *write, picture_pricer *price, const struct picture *picture)
{
    struct picture_cost cost;
    ck_assert_int_eq(price(picture, &cost, &error), ATTN_OK);
    attn_arena *own = attn_arena_create((size_t)256 << 20);
    struct chunks out = chunks_begin(own);
    ck_assert_msg(write(picture, &fonts, &runtime, &out, &error) == ATTN_OK, "%s", error.message);
    ck_assert(out.is_ok);
    ck_assert_uint_le(out.total_bytes, cost.bytes);
    ck_assert_uint_le(attn_arena_peak_bytes(own), cost.bytes + cost.memory_bytes);
    struct bytes all = join(&out);
    attn_arena_destroy(own);
    return all;
}

static inline struct bytes svg_of(const struct picture *picture)
{
    return write_by(picture_write_svg, picture_svg_cost, picture);
}

/* The PNG, read back by libpng. */
static inline struct canvas png_of(const struct picture *picture)
{
    struct bytes file = write_by(picture_write_png, picture_png_cost, picture);
    png_image image = {.version = PNG_IMAGE_VERSION};
    ck_assert_msg(png_image_begin_read_from_memory(&image, file.data, file.length), "%s", image.message);
    ck_assert_uint_eq(image.format, PNG_FORMAT_RGB);
    struct canvas canvas = {attn_arena_take(arena, image.height, (size_t)image.width * 3), (int)image.width,
                            (int)image.height};
    ck_assert(png_image_finish_read(&image, NULL, canvas.pixels, 0, NULL));
    return canvas;
}

static inline struct picture_layout layout_of(const struct picture *picture, int scale)
{
    struct blocks blocks = blocks_begin(arena);
    struct glyphs *glyphs = glyphs_open(&fonts, &blocks);
    struct picture_layout layout;
    ck_assert_int_eq(picture_layout_make(picture, scale, glyphs, &layout, &error), ATTN_OK);
    glyphs_close(glyphs);
    return layout;
}

static inline uint32_t pixel(const struct canvas *canvas, int x, int y)
{
    ck_assert(x >= 0 && x < canvas->width && y >= 0 && y < canvas->height);
    const uint8_t *at = canvas->pixels + ((size_t)y * (size_t)canvas->width + (size_t)x) * 3;
    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

/* Of a cell near its corner, where no number is written. */
static inline uint32_t corner(const struct canvas *canvas, const struct picture_layout *layout, size_t panel, int row,
                              int column)
{
    struct picture_panel at = picture_layout_panel(layout, panel);
    return pixel(canvas, at.x + column * layout->cell_width + 2, at.y + row * layout->cell_height + 2);
}

#endif
