/*
 * svg.c: a picture as SVG 1.1. Texts stay texts. A few cells are rectangles with tooltips; many cells are an
 * image.
 *
 * The file has no identifiers, so that several pictures fit into one page. It has no scripts, styles or links.
 */
#include <string.h>

#include "codec/bytes/base64.h"
#include "codec/picture/drawing.h"

enum {
    TOOLTIP_CELLS_MAX = 16384, /* cells of a picture */
    TOOLTIP_SIDE_MAX = 64,     /* rows or columns of a map */
    HEAD_BYTES = 1024,
    TEXT_BYTES = 160, /* a text element without its label, or a rectangle */
    LABEL_BYTES = 6 * LABEL_CHARACTERS_MAX,
    HATCH_BYTES = 32, /* one diagonal */
    BAR_BYTES = COLORMAP_LEVELS * TEXT_BYTES
};

struct svg_pen {
    struct pen pen;
    uint8_t *pixels; /* the cells of a panel as an image; NULL: as rectangles */
};

static struct svg_pen *svg_pen(struct pen *pen)
{
    return (struct svg_pen *)pen;
}

/* Writes text as character data of XML. text comes from a label, so XML allows every character of it. */
static void escape(struct chunks *out, const char *text)
{
    for (const char *run = text;; text++) {
        const char *instead = *text == '&'   ? "&amp;"
                              : *text == '<' ? "&lt;"
                              : *text == '>' ? "&gt;"
                              : *text == '"' ? "&quot;"
                                             : NULL;
        if (instead == NULL && *text != '\0')
            continue;
        chunks_bytes(out, run, (size_t)(text - run));
        if (*text == '\0')
            return;
        chunks_text(out, instead);
        run = text + 1;
    }
}

static void fill(struct pen *pen, struct canvas_box box, uint32_t rgb)
{
    chunks_format(pen->out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"/>\n", box.x, box.y,
                  box.width, box.height, (unsigned)rgb);
}

/* Draws the parts of the diagonals x + y = s that lie inside box. */
static void hatch_lines(struct chunks *out, struct canvas_box box)
{
    int right = box.x + box.width, bottom = box.y + box.height;
    for (int s = (box.x + box.y) / UNIT_HATCH * UNIT_HATCH + UNIT_HATCH; s < right + bottom; s += UNIT_HATCH) {
        int x0 = s - bottom > box.x ? s - bottom : box.x, x1 = s - box.y < right ? s - box.y : right;
        if (x0 < x1)
            chunks_format(out, "M%d %dL%d %d", x0, s - x0, x1, s - x1);
    }
}

static void begin_hatch(struct chunks *out)
{
    chunks_text(out, "<path d=\"");
}

static void end_hatch(struct chunks *out)
{
    chunks_format(out, "\" stroke=\"#%06x\" fill=\"none\" pointer-events=\"none\"/>\n", RGB_HATCH);
}

static void hatch(struct pen *pen, struct canvas_box box)
{
    struct chunks *out = pen->out;
    begin_hatch(out);
    hatch_lines(out, box);
    end_hatch(out);
}

static void text(struct pen *pen, const struct pen_text *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    struct chunks *out = pen->out;
    chunks_format(out, "<text x=\"%d\" y=\"%d\" font-size=\"%d\" fill=\"#%06x\"", text->x, text->y, text->size,
                  (unsigned)text->rgb);
    if (text->anchor != ANCHOR_START)
        chunks_format(out, " text-anchor=\"%s\"", anchors[text->anchor]);
    if (text->is_turned)
        chunks_format(out, " transform=\"rotate(-90 %d %d)\"", text->x, text->y);
    chunks_text(out, ">");
    escape(out, text->label->text);
    chunks_text(out, "</text>\n");
}

static void write_label(struct pen *pen, const struct picture_axis *axis, size_t item, size_t i)
{
    struct label label;
    picture_layout_label(pen->layout, axis, item, i, pen->glyphs, &label);
    escape(pen->out, label.text);
}

/* Writes a tooltip such as "Ben → okula: 0.25", or of a sweep "layer 3, head 1: -2.8". */
static void write_tooltip(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells,
                          size_t at)
{
    struct chunks *out = pen->out;
    char number[PICTURE_NUMBER_BYTES];
    chunks_text(out, "<title>");
    write_label(pen, &pen->picture->queries, panel->item, at / pen->layout->columns);
    chunks_text(out, pen->picture->sweep != NULL ? ", " : " \xE2\x86\x92 ");
    write_label(pen, &pen->picture->keys, panel->item, at % pen->layout->columns);
    if (cells->kind[at] == CELL_NUMBER)
        chunks_format(out, ": %s</title>",
                      picture_write_number(number, 1 + picture_range_digits(&pen->range), cells->value[at]));
    else
        chunks_text(out, cells->kind[at] == CELL_NAN ? ": NaN</title>" : ": masked</title>");
}

static void draw_rectangles(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells)
{
    struct chunks *out = pen->out;
    for (size_t at = 0; at < pen->layout->rows * pen->layout->columns && out->is_ok; at++) {
        struct canvas_box box =
            picture_cell_box(pen, panel, cells, at / pen->layout->columns, at % pen->layout->columns);
        chunks_format(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\">", box.x, box.y,
                      box.width, box.height, (unsigned)picture_cell_rgb(pen, cells, at));
        write_tooltip(pen, panel, cells, at);
        chunks_text(out, "</rect>\n");
    }
}

/* Bytes on their way to base64, which encodes three bytes at a time. */
struct encoder {
    struct chunks *out;
    unsigned char rest[3];
    size_t rest_length;
};

static bool encode(void *context, const void *bytes, size_t length)
{
    struct encoder *encoder = context;
    const unsigned char *from = bytes;
    for (; length > 0 && encoder->rest_length > 0 && encoder->rest_length < 3; length--)
        encoder->rest[encoder->rest_length++] = *from++;
    size_t whole = length - length % 3, rest_whole = encoder->rest_length == 3 ? 3 : 0;
    char *to = chunks_reserve(encoder->out, base64_encoded_length(rest_whole + whole) + 1);
    if (to == NULL)
        return false;
    base64_encode(to, encoder->rest, rest_whole);
    base64_encode(to + base64_encoded_length(rest_whole), from, whole);
    chunks_commit(encoder->out, base64_encoded_length(rest_whole + whole));
    if (rest_whole == 3)
        encoder->rest_length = 0;
    if (whole < length) {
        encoder->rest_length = length - whole;
        memcpy(encoder->rest, from + whole, encoder->rest_length);
    }
    return true;
}

static bool finish_encoding(struct encoder *encoder)
{
    char text[4];
    base64_encode(text, encoder->rest, encoder->rest_length);
    chunks_bytes(encoder->out, text, base64_encoded_length(encoder->rest_length));
    return encoder->out->is_ok;
}

/* Draws one pixel per cell. The viewer enlarges the pixels without smoothing. */
static bool draw_image(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells)
{
    struct svg_pen *self = svg_pen(pen);
    const struct picture_layout *layout = pen->layout;
    struct encoder encoder = {.out = pen->out};
    const struct png_image image = {self->pixels, layout->columns, layout->rows, 0};
    for (size_t at = 0; at < layout->rows * layout->columns; at++) {
        uint32_t rgb = picture_cell_rgb(pen, cells, at);
        for (int i = 0; i < 3; i++)
            self->pixels[3 * at + (size_t)i] = (uint8_t)(rgb >> (16 - 8 * i));
    }
    chunks_format(pen->out,
                  "<image x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" preserveAspectRatio=\"none\" "
                  "image-rendering=\"pixelated\" href=\"data:image/png;base64,",
                  panel->x, panel->y, layout->panel_width, layout->panel_height);
    bool is_written = png_write_rgb(&image, pen->runtime, pen->blocks, encode, &encoder) && finish_encoding(&encoder);
    chunks_text(pen->out, "\"/>\n");
    return is_written;
}

/* Finds the box of masked cells from column on that reach equally far down. *end is the first column after the box. */
static struct canvas_box masked_run(struct pen *pen, const struct picture_panel *panel,
                                    const struct picture_cells *cells, size_t row, size_t column, size_t *end)
{
    struct canvas_box run = picture_cell_box(pen, panel, cells, row, column);
    for (*end = column + 1; *end < pen->layout->columns; ++*end) {
        struct canvas_box next = picture_cell_box(pen, panel, cells, row, *end);
        if (cells->kind[row * pen->layout->columns + *end] != CELL_MASKED || next.height != run.height)
            break;
        run.width = next.x + next.width - run.x;
    }
    return run;
}

static void draw_hatches(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells)
{
    struct chunks *out = pen->out;
    bool is_begun = false;
    for (size_t row = 0; row < pen->layout->rows; row++)
        for (size_t j = 0, end = 0; j < pen->layout->columns; j = end) {
            end = j + 1;
            if (cells->kind[row * pen->layout->columns + j] != CELL_MASKED)
                continue;
            if (!is_begun)
                begin_hatch(out);
            is_begun = true;
            hatch_lines(out, masked_run(pen, panel, cells, row, j, &end));
        }
    if (is_begun)
        end_hatch(out);
}

static bool panel(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells)
{
    struct svg_pen *self = svg_pen(pen);
    if (self->pixels == NULL)
        draw_rectangles(pen, panel, cells);
    else if (!draw_image(pen, panel, cells))
        return false;
    draw_hatches(pen, panel, cells);
    chunks_text(pen->out, "<g pointer-events=\"none\">\n");
    picture_draw_numbers(pen, panel, cells);
    chunks_text(pen->out, "</g>\n");
    return true;
}

static bool has_tooltips(const struct picture_layout *layout)
{
    return layout->rows <= TOOLTIP_SIDE_MAX && layout->columns <= TOOLTIP_SIDE_MAX && layout->pool_rows == 1 &&
           layout->pool_columns == 1 &&
           layout->rows * layout->columns * layout->items * layout->heads <= TOOLTIP_CELLS_MAX;
}

static int scale_of(const struct picture *picture)
{
    return picture->options.scale > 0 ? picture->options.scale : 1;
}

/* The most diagonals possible: every masked cell is a box of its own. */
static size_t hatch_bound(const struct picture_layout *layout)
{
    size_t cell = (size_t)(layout->cell_width + layout->cell_height) / UNIT_HATCH + 2;
    size_t row = (size_t)(layout->panel_width + layout->cell_height) / UNIT_HATCH + 2 * layout->columns;
    size_t whole = layout->cell_width + layout->cell_height > 4 * UNIT_HATCH ? layout->columns * cell : row;
    return layout->rows * whole * HATCH_BYTES;
}

/* The most bytes of a panel. layout is drawn at one pixel per unit. */
static size_t panel_bound(const struct picture_layout *layout)
{
    size_t cells = layout->rows * layout->columns;
    size_t labels = layout->rows + layout->columns + 4;
    size_t cell = has_tooltips(layout) ? 2 * (TEXT_BYTES + 2 * LABEL_BYTES) : 0;
    size_t image =
        has_tooltips(layout) ? 0 : base64_encoded_length(png_bytes_bound(layout->columns, layout->rows)) + 512;
    return cells * cell + image + hatch_bound(layout) + labels * (2 * TEXT_BYTES + LABEL_BYTES) + 8 * TEXT_BYTES;
}

attn_status picture_svg_cost(const struct picture *picture, struct picture_cost *cost, attn_error *err)
{
    struct picture_layout layout;
    attn_status status = picture_layout_make(picture, 1, NULL, &layout, err);
    if (status != ATTN_OK)
        return status;
    size_t panels = layout.items * layout.heads, cells = layout.rows * layout.columns;
    cost->bytes = HEAD_BYTES + BAR_BYTES + 64 * TEXT_BYTES + panels * panel_bound(&layout);
    cost->memory_bytes = cells * (sizeof(double) + 1 + 3) + PNG_WRITE_MEMORY_BYTES + PICTURE_GLYPHS_BYTES;
    return ATTN_OK;
}

/* The whole metric, which the title of the panel may cut. */
static void write_sweep(const struct pen *pen, const struct picture_sweep *sweep)
{
    struct label metric;
    char numbers[3][PICTURE_NUMBER_BYTES];
    const int digits = picture_range_digits(&pen->range);
    picture_text_clean(&metric, sweep->metric);
    chunks_text(pen->out, "<title>");
    escape(pen->out, metric.text);
    chunks_format(pen->out,
                  "</title>\n<desc>A sweep: %s at each place. Layers run down, %s across; the unchanged run has %s, "
                  "colours run from %s to %s.</desc>\n",
                  sweep->act, sweep->columns, picture_write_number(numbers[0], 1 + digits, sweep->unchanged),
                  picture_write_number(numbers[1], digits, pen->range.low),
                  picture_write_number(numbers[2], digits, pen->range.high));
}

static void write_head(const struct pen *pen)
{
    const struct picture *picture = pen->picture;
    const struct picture_layout *layout = pen->layout;
    int scale = scale_of(picture);
    char shape[96];
    chunks_format(pen->out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                  "role=\"img\" font-family=\"Helvetica, Arial, 'Liberation Sans', 'Noto Sans', 'DejaVu Sans', "
                  "'Noto Sans CJK SC', sans-serif\">\n",
                  layout->width * scale, layout->height * scale, layout->width, layout->height);
    if (picture->sweep != NULL)
        write_sweep(pen, picture->sweep);
    else
        chunks_format(pen->out,
                      "<title>Attention weights</title>\n"
                      "<desc>Heat maps of attention weights, %zu of a map of shape %s (%s, heads, queries, keys). "
                      "Queries run down, keys across; colours run from %.3g to %.3g.</desc>\n",
                      layout->items * layout->heads, attn_shape_text(shape, sizeof shape, 4, picture->weights->shape),
                      picture->options.kind == PICTURE_OF_MODEL ? "layers" : "batch", pen->range.low, pen->range.high);
    chunks_format(pen->out,
                  "<g shape-rendering=\"crispEdges\">\n"
                  "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                  layout->width, layout->height);
}

static bool begin(struct pen *pen)
{
    const struct picture_layout *layout = pen->layout;
    if (!has_tooltips(layout)) {
        svg_pen(pen)->pixels = attn_arena_take(pen->out->arena, layout->rows * layout->columns, 3);
        if (svg_pen(pen)->pixels == NULL)
            return false;
    }
    write_head(pen);
    return true;
}

static bool end(struct pen *pen)
{
    chunks_text(pen->out, "</g>\n</svg>\n");
    return pen->out->is_ok && !pen->blocks->is_short;
}

attn_status picture_write_svg(const struct picture *picture, const struct font_set *fonts, const attn_runtime *runtime,
                              struct chunks *out, attn_error *err)
{
    struct svg_pen self = {.pen = {.begin = begin,
                                   .fill = fill,
                                   .hatch = hatch,
                                   .text = text,
                                   .panel = panel,
                                   .end = end,
                                   .picture = picture,
                                   .runtime = runtime,
                                   .out = out}};
    return picture_draw(&self.pen, 1, fonts, err);
}
