/* canvas.c: draws boxes, diagonals and glyphs into pixels. */
#include "codec/picture/canvas.h"

#include <string.h>

enum { CHANNELS = 3 };

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

bool canvas_take(struct canvas *canvas, int width, int height, attn_arena *arena)
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

void canvas_fill(struct canvas *canvas, struct canvas_box box, uint32_t rgb)
{
    box = clip(canvas, box);
    for (int y = box.y; y < box.y + box.height; y++)
        for (int x = box.x; x < box.x + box.width; x++)
            set_pixel(pixel_at(canvas, x, y), rgb);
}

void canvas_hatch(struct canvas *canvas, struct canvas_box box, int period, int thickness, uint32_t rgb)
{
    box = clip(canvas, box);
    for (int y = box.y; y < box.y + box.height; y++)
        for (int x = box.x; x < box.x + box.width; x++)
            if ((x + y) % period < thickness)
                set_pixel(pixel_at(canvas, x, y), rgb);
}

/* Blends ink over the pixel. sRGB values are close enough to linear for dark text on a light ground. */
static void blend(uint8_t *pixel, uint32_t rgb, unsigned ink)
{
    for (int i = 0; i < CHANNELS; i++) {
        unsigned colour = rgb >> (16 - 8 * i) & 0xFF;
        pixel[i] = (uint8_t)((pixel[i] * (255 - ink) + colour * ink + 127) / 255);
    }
}

void canvas_ink(struct canvas *canvas, const struct glyph_line *line, int x, int y, bool is_turned, uint32_t rgb)
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
