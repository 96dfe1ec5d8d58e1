/*
 * glyphs.c: makes labels, and turns them into pixels. FreeType draws the characters that a font has; the rest is drawn as dots or
 * boxes.
 */
#include "codec/picture/fonts/fonts.h"

#include <assert.h>
#include <ft2build.h>
#include <string.h>

#include FT_FREETYPE_H
#include FT_MODULE_H
#include FT_OUTLINE_H

#include "base/mapping.h"
#include "codec/bytes/utf8.h"

/* ---- labels ---- */

enum { OPEN_BOX = 0x2423 };

/*
 * Whether c is invisible: a zero-width space or joiner, a directional mark, embedding or isolate, a variation selector,
 * a tag, or a byte order mark.
 */
static bool has_no_picture(uint32_t c)
{
    return c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2060 && c <= 0x206F) || (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF ||
           (c >= 0xE0000 && c <= 0xE0FFF);
}

static uint32_t shown_as(uint32_t c)
{
    if (c == '\n')
        return 0x21B5;
    if (c == '\t')
        return 0x21E5;
    if (c == '\r')
        return 0x21A4;
    if (c < 0x20)
        return 0x2400 + c;
    if (c == 0x7F)
        return 0x2421;
    if (c == 0xA0 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F)
        return ' ';
    bool is_noncharacter = (c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF);
    bool breaks_lines = (c >= 0x80 && c < 0xA0) || c == 0x2028 || c == 0x2029;
    return is_noncharacter || breaks_lines ? UTF8_REPLACEMENT : c;
}

static void write_text(struct label *label)
{
    char *to = label->text;
    for (size_t i = 0; i < label->count; i++)
        to = utf8_write(to, label->character[i]);
    *to = '\0';
}

void picture_text_clean(struct label *label, const char *text)
{
    bool is_blank = true;
    label->count = 0;
    while (*text != '\0' && label->count <= LABEL_CHARACTERS_MAX) {
        uint32_t character = utf8_next(&text);
        if (has_no_picture(character))
            continue;
        character = shown_as(character);
        is_blank = is_blank && character == ' ';
        label->character[label->count++] = character;
    }
    if (label->count > LABEL_CHARACTERS_MAX) {
        picture_text_cut(label, LABEL_CHARACTERS_MAX - 1);
        return;
    }
    for (size_t i = 0; is_blank && i < label->count; i++)
        label->character[i] = OPEN_BOX;
    write_text(label);
}

void picture_text_cut(struct label *label, size_t count)
{
    assert(count < label->count && count <= LABEL_CHARACTERS_MAX - 1);
    while (count > 0 && label->character[count - 1] == ' ')
        count--;
    label->character[count] = LABEL_ELLIPSIS;
    label->count = count + 1;
    write_text(label);
}

/* ---- dots: a font of 5 by 7 dots for printable ASCII, for characters that no font file has ---- */

enum { DOT_FONT_WIDTH = 5, DOT_FONT_HEIGHT = 7, DOT_FONT_FIRST = 0x20, DOT_FONT_LAST = 0x7E };

/* One byte per column of a character; the lowest bit is the top row. Three characters a line. */
/* clang-format off */
static const uint8_t dot_columns[DOT_FONT_LAST - DOT_FONT_FIRST + 1][DOT_FONT_WIDTH] = {
    {0, 0, 0, 0, 0}, {0, 0, 0x5F, 0, 0}, {0, 7, 0, 7, 0},
    {0x14, 0x7F, 0x14, 0x7F, 0x14}, {0x24, 0x2A, 0x7F, 0x2A, 0x12}, {0x23, 0x13, 8, 0x64, 0x62},
    {0x36, 0x49, 0x56, 0x20, 0x50}, {0, 8, 7, 3, 0}, {0, 0x1C, 0x22, 0x41, 0},
    {0, 0x41, 0x22, 0x1C, 0}, {0x2A, 0x1C, 0x7F, 0x1C, 0x2A}, {8, 8, 0x3E, 8, 8},
    {0, 0x50, 0x30, 0, 0}, {8, 8, 8, 8, 8}, {0, 0x60, 0x60, 0, 0},
    {0x20, 0x10, 8, 4, 2}, {0x3E, 0x51, 0x49, 0x45, 0x3E}, {0, 0x42, 0x7F, 0x40, 0},
    {0x42, 0x61, 0x51, 0x49, 0x46}, {0x21, 0x41, 0x45, 0x4B, 0x31}, {0x18, 0x14, 0x12, 0x7F, 0x10},
    {0x27, 0x45, 0x45, 0x45, 0x39}, {0x3C, 0x4A, 0x49, 0x49, 0x30}, {1, 0x71, 9, 5, 3},
    {0x36, 0x49, 0x49, 0x49, 0x36}, {6, 0x49, 0x49, 0x29, 0x1E}, {0, 0x36, 0x36, 0, 0},
    {0, 0x56, 0x36, 0, 0}, {8, 0x14, 0x22, 0x41, 0}, {0x14, 0x14, 0x14, 0x14, 0x14},
    {0, 0x41, 0x22, 0x14, 8}, {2, 1, 0x51, 9, 6}, {0x32, 0x49, 0x79, 0x41, 0x3E},
    {0x7E, 0x11, 0x11, 0x11, 0x7E}, {0x7F, 0x49, 0x49, 0x49, 0x36}, {0x3E, 0x41, 0x41, 0x41, 0x22},
    {0x7F, 0x41, 0x41, 0x22, 0x1C}, {0x7F, 0x49, 0x49, 0x49, 0x41}, {0x7F, 9, 9, 9, 1},
    {0x3E, 0x41, 0x49, 0x49, 0x7A}, {0x7F, 8, 8, 8, 0x7F}, {0, 0x41, 0x7F, 0x41, 0},
    {0x20, 0x40, 0x41, 0x3F, 1}, {0x7F, 8, 0x14, 0x22, 0x41}, {0x7F, 0x40, 0x40, 0x40, 0x40},
    {0x7F, 2, 0x0C, 2, 0x7F}, {0x7F, 4, 8, 0x10, 0x7F}, {0x3E, 0x41, 0x41, 0x41, 0x3E},
    {0x7F, 9, 9, 9, 6}, {0x3E, 0x41, 0x51, 0x21, 0x5E}, {0x7F, 9, 0x19, 0x29, 0x46},
    {0x46, 0x49, 0x49, 0x49, 0x31}, {1, 1, 0x7F, 1, 1}, {0x3F, 0x40, 0x40, 0x40, 0x3F},
    {0x1F, 0x20, 0x40, 0x20, 0x1F}, {0x3F, 0x40, 0x38, 0x40, 0x3F}, {0x63, 0x14, 8, 0x14, 0x63},
    {7, 8, 0x70, 8, 7}, {0x61, 0x51, 0x49, 0x45, 0x43}, {0, 0x7F, 0x41, 0x41, 0},
    {2, 4, 8, 0x10, 0x20}, {0, 0x41, 0x41, 0x7F, 0}, {4, 2, 1, 2, 4},
    {0x40, 0x40, 0x40, 0x40, 0x40}, {0, 1, 2, 4, 0}, {0x20, 0x54, 0x54, 0x54, 0x78},
    {0x7F, 0x48, 0x44, 0x44, 0x38}, {0x38, 0x44, 0x44, 0x44, 0x20}, {0x38, 0x44, 0x44, 0x48, 0x7F},
    {0x38, 0x54, 0x54, 0x54, 0x18}, {8, 0x7E, 9, 1, 2}, {0x0C, 0x52, 0x52, 0x52, 0x3E},
    {0x7F, 8, 4, 4, 0x78}, {0, 0x44, 0x7D, 0x40, 0}, {0x20, 0x40, 0x44, 0x3D, 0},
    {0x7F, 0x10, 0x28, 0x44, 0}, {0, 0x41, 0x7F, 0x40, 0}, {0x7C, 4, 0x18, 4, 0x78},
    {0x7C, 8, 4, 4, 0x78}, {0x38, 0x44, 0x44, 0x44, 0x38}, {0x7C, 0x14, 0x14, 0x14, 8},
    {8, 0x14, 0x14, 0x18, 0x7C}, {0x7C, 8, 4, 4, 8}, {0x48, 0x54, 0x54, 0x54, 0x20},
    {4, 0x3F, 0x44, 0x40, 0x20}, {0x3C, 0x40, 0x40, 0x20, 0x7C}, {0x1C, 0x20, 0x40, 0x20, 0x1C},
    {0x3C, 0x40, 0x30, 0x40, 0x3C}, {0x44, 0x28, 0x10, 0x28, 0x44}, {0x0C, 0x50, 0x50, 0x50, 0x3C},
    {0x44, 0x64, 0x54, 0x4C, 0x44}, {0, 8, 0x36, 0x41, 0}, {0, 0, 0x7F, 0, 0},
    {0, 0x41, 0x36, 8, 0}, {8, 4, 8, 0x10, 8},
};
/* clang-format on */

/* Whether the character has dots of its own. */
static bool dot_font_has(uint32_t character)
{
    return character >= DOT_FONT_FIRST && character <= DOT_FONT_LAST;
}

/* Whether the dot in column x (from the left) and row y (from the top) is set; the character has dots. */
static bool dot_font_at(uint32_t character, int x, int y)
{
    assert(dot_font_has(character) && x >= 0 && x < DOT_FONT_WIDTH && y >= 0 && y < DOT_FONT_HEIGHT);
    return dot_columns[character - DOT_FONT_FIRST][x] >> y & 1;
}

/* ---- faces and lines ---- */

struct face {
    FT_Face face; /* NULL: not opened yet, or failed to open */
    bool is_tried;
    int size; /* pixels per em that are set; 0: none yet */
};

struct glyphs {
    struct blocks *blocks;
    const struct font_set *fonts;
    struct FT_MemoryRec_ memory;
    FT_Library library; /* NULL: FreeType did not start */
    struct face face[FONT_SET_MAX];
};

/* The place of one character of a line. Lengths are in 1/64 pixel, as in FreeType. */
struct placed {
    FT_Face face; /* NULL: drawn as dots or as a box */
    FT_UInt glyph;
    uint32_t character;
    FT_Pos x, y;
};

struct placed_line {
    struct placed at[LABEL_CHARACTERS_MAX];
    size_t count;
    FT_Pos width;
};

static void *take_memory(FT_Memory memory, long bytes)
{
    return blocks_take(memory->user, (size_t)bytes);
}

static void give_memory(FT_Memory memory, void *block)
{
    blocks_give(memory->user, block);
}

static void *resize_memory(FT_Memory memory, long has, long bytes, void *block)
{
    (void)has;
    return blocks_resize(memory->user, block, (size_t)bytes);
}

struct glyphs *glyphs_open(const struct font_set *fonts, struct blocks *blocks)
{
    struct glyphs *glyphs = blocks_take(blocks, sizeof *glyphs);
    if (glyphs == NULL)
        return NULL;
    *glyphs =
        (struct glyphs){.blocks = blocks, .fonts = fonts, .memory = {blocks, take_memory, give_memory, resize_memory}};
    if (FT_New_Library(&glyphs->memory, &glyphs->library) != 0)
        glyphs->library = NULL;
    else
        FT_Add_Default_Modules(glyphs->library);
    return glyphs;
}

void glyphs_close(struct glyphs *glyphs)
{
    if (glyphs->library != NULL)
        FT_Done_Library(glyphs->library);
    blocks_give(glyphs->blocks, glyphs);
}

/* Opens font i and sets its size. NULL when the font cannot be used. */
static FT_Face open_face(struct glyphs *glyphs, size_t i, int size)
{
    struct face *face = &glyphs->face[i];
    const struct font_file *file = &glyphs->fonts->file[i];
    if (!face->is_tried) {
        face->is_tried = true;
        if (glyphs->library == NULL || mapping_is_torn(file->mapping) ||
            FT_New_Memory_Face(glyphs->library, file->data, (FT_Long)file->bytes, 0, &face->face) != 0)
            face->face = NULL;
    }
    if (face->face == NULL || (face->size != size && FT_Set_Pixel_Sizes(face->face, 0, (FT_UInt)size) != 0))
        return NULL;
    face->size = size;
    return face->face;
}

/* Finds the first font that has the character. NULL when none has it. */
static FT_Face find_face(struct glyphs *glyphs, uint32_t character, int size, FT_UInt *glyph)
{
    for (size_t i = 0; i < glyphs->fonts->count; i++) {
        FT_Face face = open_face(glyphs, i, size);
        *glyph = face == NULL ? 0 : FT_Get_Char_Index(face, character);
        if (*glyph != 0)
            return face;
    }
    return NULL;
}

static bool is_combining(uint32_t c)
{
    return (c >= 0x300 && c <= 0x36F) || (c >= 0x483 && c <= 0x489) || (c >= 0x1AB0 && c <= 0x1AFF) ||
           (c >= 0x1DC0 && c <= 0x1DFF) || (c >= 0x20D0 && c <= 0x20FF) || c == 0x3099 || c == 0x309A ||
           (c >= 0xFE20 && c <= 0xFE2F);
}

static int dot_pixels(int size)
{
    return size < 16 ? 1 : size / 8;
}

/* The box of a code point has two rows of two or three digits each. */
static int box_digits(uint32_t character)
{
    return character > 0xFFFF ? 3 : 2;
}

static FT_Pos dots_advance(uint32_t character, int size)
{
    int pixel = size < 16 ? 1 : size / 16;
    int dots = dot_font_has(character) ? dot_pixels(size) * (DOT_FONT_WIDTH + 1)
                                       : pixel * ((DOT_FONT_WIDTH + 1) * box_digits(character) + 4);
    return (FT_Pos)dots * 64;
}

/* Centres the mark over [start, end) of its base. A mark that would overlap a tall letter is lifted. */
static void place_mark(struct placed *mark, const FT_GlyphSlot slot, FT_Pos start, FT_Pos end, FT_Pos base_top)
{
    const FT_Glyph_Metrics *metrics = &slot->metrics;
    FT_Pos bottom = metrics->horiBearingY - metrics->height;
    mark->x = start + (end - start - metrics->width) / 2 - metrics->horiBearingX;
    mark->y = bottom > 0 && bottom < base_top + 32 ? base_top + 32 - bottom : 0;
}

static FT_Pos kerning(const struct placed *left, FT_Face face, FT_UInt glyph)
{
    FT_Vector kern = {0, 0};
    if (left == NULL || left->face != face || !FT_HAS_KERNING(face) ||
        FT_Get_Kerning(face, left->glyph, glyph, FT_KERNING_UNFITTED, &kern) != 0)
        return 0;
    return kern.x;
}

static void lay_out(struct glyphs *glyphs, const struct label *label, int size, struct placed_line *line)
{
    FT_Pos x = 0, base_x = 0, base_top = 0;
    line->count = 0;
    for (size_t i = 0; i < label->count; i++) {
        struct placed *placed = &line->at[line->count];
        *placed = (struct placed){.character = label->character[i], .x = x};
        placed->face = find_face(glyphs, placed->character, size, &placed->glyph);
        if (placed->face != NULL && FT_Load_Glyph(placed->face, placed->glyph, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP))
            placed->face = NULL;
        bool is_mark = is_combining(placed->character) && line->count > 0;
        if (placed->face == NULL) {
            x += dots_advance(placed->character, size);
        } else if (is_mark) {
            place_mark(placed, placed->face->glyph, base_x, x, base_top);
            if (placed->y > 0)
                base_top += placed->face->glyph->metrics.height + 64;
        } else {
            x += kerning(i > 0 ? placed - 1 : NULL, placed->face, placed->glyph);
            base_x = placed->x = x;
            base_top = placed->face->glyph->metrics.horiBearingY;
            x += placed->face->glyph->advance.x;
        }
        line->count++;
    }
    line->width = x;
}

static int whole_pixels(FT_Pos length)
{
    return (int)((length + 63) / 64);
}

int glyphs_width(struct glyphs *glyphs, const struct label *label, int size)
{
    struct placed_line line;
    lay_out(glyphs, label, size, &line);
    return whole_pixels(line.width);
}

void glyphs_fit(struct glyphs *glyphs, struct label *label, int size, int width)
{
    struct placed_line line;
    lay_out(glyphs, label, size, &line);
    if (whole_pixels(line.width) <= width)
        return;
    assert(line.count > 0); /* an empty line has no width, so it always fits */
    const struct label ellipsis = {.character = {LABEL_ELLIPSIS}, .count = 1};
    FT_Pos room = (FT_Pos)width * 64 - (FT_Pos)glyphs_width(glyphs, &ellipsis, size) * 64;
    size_t keep = line.count - 1;
    while (keep > 0 && (line.at[keep].x > room || is_combining(line.at[keep].character)))
        keep--;
    picture_text_cut(label, keep);
    /* Kerning and rounding may add a pixel. */
    while (label->count > 1 && glyphs_width(glyphs, label, size) > width)
        picture_text_cut(label, label->count - 2);
}

static void add_ink(struct glyph_line *line, int x, int y, unsigned ink)
{
    if (x < 0 || x >= line->width || y < 0 || y >= line->height)
        return;
    uint8_t *pixel = &line->ink[(size_t)y * (size_t)line->width + (size_t)x];
    *pixel = (uint8_t)(*pixel + ink > 255 ? 255 : *pixel + ink);
}

static void draw_outline(const struct placed *placed, struct glyph_line *line, int left)
{
    FT_GlyphSlot slot = placed->face->glyph;
    const bool is_outline = FT_Load_Glyph(placed->face, placed->glyph, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP) == 0 &&
                            slot->format == FT_GLYPH_FORMAT_OUTLINE;
    if (is_outline)
        FT_Outline_Translate(&slot->outline, placed->x & 63, 0);
    if (!is_outline || FT_Render_Glyph(slot, FT_RENDER_MODE_NORMAL) != 0)
        return;
    const FT_Bitmap *bitmap = &slot->bitmap;
    int x0 = left + (int)(placed->x >> 6) + slot->bitmap_left;
    int y0 = line->baseline - slot->bitmap_top - (int)(placed->y / 64);
    for (int y = 0; y < (int)bitmap->rows; y++)
        for (int x = 0; x < (int)bitmap->width; x++)
            add_ink(line, x0 + x, y0 + y, bitmap->buffer[y * bitmap->pitch + x]);
}

static void draw_dots(uint32_t character, struct glyph_line *line, int left, int top, int pixel)
{
    for (int y = 0; y < DOT_FONT_HEIGHT * pixel; y++)
        for (int x = 0; x < DOT_FONT_WIDTH * pixel; x++)
            if (dot_font_at(character, x / pixel, y / pixel))
                add_ink(line, left + x, top + y, 255);
}

/* Draws the box for a character that no font has. The box holds the code point when there is room for digits. */
static void draw_box(uint32_t character, struct glyph_line *line, int left, int size)
{
    static const char digits[] = "0123456789ABCDEF";
    int pixel = size < 16 ? 1 : size / 16, columns = box_digits(character);
    int width = (int)(dots_advance(character, size) / 64) - 2 * pixel, top = 0, bottom = line->baseline + size / 8;
    for (int y = top; y < bottom; y++)
        for (int x = 0; x < width; x++)
            if (x < pixel || x >= width - pixel || y < top + pixel || y >= bottom - pixel)
                add_ink(line, left + x, y, 255);
    if (bottom - top < pixel * (2 * DOT_FONT_HEIGHT + 5))
        return;
    for (int i = 0; i < 2 * columns; i++) {
        uint32_t digit = character >> (4 * (2 * columns - 1 - i)) & 15;
        int x = left + pixel * (2 + (i % columns) * (DOT_FONT_WIDTH + 1));
        int y = (bottom + top) / 2 + pixel * (i < columns ? -DOT_FONT_HEIGHT : 1);
        draw_dots((uint32_t)digits[digit], line, x, y, pixel);
    }
}

static void draw_placed(const struct placed *placed, struct glyph_line *line, int left, int size)
{
    int x = left + (int)(placed->x / 64);
    if (placed->face != NULL)
        draw_outline(placed, line, left);
    else if (dot_font_has(placed->character))
        draw_dots(placed->character, line, x, line->baseline - DOT_FONT_HEIGHT * dot_pixels(size), dot_pixels(size));
    else
        draw_box(placed->character, line, x, size);
}

struct glyph_line glyphs_line(struct glyphs *glyphs, const struct label *label, int size)
{
    struct placed_line placed;
    struct glyph_line line = {.height = size + size / 2, .baseline = size + size / 8};
    if (label->count == 0)
        return line;
    lay_out(glyphs, label, size, &placed);
    line.width = whole_pixels(placed.width);
    size_t pixels = (size_t)line.width * (size_t)line.height;
    line.ink = pixels == 0 ? NULL : blocks_take(glyphs->blocks, pixels);
    if (line.ink == NULL)
        return line;
    memset(line.ink, 0, pixels);
    for (size_t i = 0; i < placed.count; i++)
        draw_placed(&placed.at[i], &line, 0, size);
    return line;
}
