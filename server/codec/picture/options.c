/* options.c: reads the options of a picture from the parameters of a query string. */
#include "codec/picture/options.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/picture/fonts/glyphs.h"

/* Reads value into *options. Returns false when value is not what expected says. */
typedef bool parameter_reader(const char *value, struct picture_options *options);

/*
 * ---- colour maps ----
 *
 *   viridis  S. van der Walt, N. Smith (2015), for matplotlib; public domain by CC0. The 256 colours of matplotlib's
 *            _cm_listed.py, rounded to eight bits.
 *   cividis  J. Nuñez, C. Anderton, R. Renslow, "Optimizing colormaps with consideration for color vision deficiency",
 *            PLOS ONE 13(7), 2018; from the same file, CC0.
 *   grey     CIE 1976 L* falling evenly from 100 to 0, as sRGB (IEC 61966-2-1).
 */

static const uint32_t COLOURS[COLORMAP_COUNT][COLORMAP_LEVELS] = {
#include "codec/picture/colormap.inc"
};

uint32_t colormap_rgb(colormap map, uint8_t level)
{
    assert(map < COLORMAP_COUNT);
    return COLOURS[map][level];
}

uint8_t colormap_level(double value, double low, double high)
{
    assert(low < high);
    if (value <= low)
        return 0;
    if (value >= high)
        return COLORMAP_LEVELS - 1;
    return (uint8_t)((value - low) / (high - low) * (COLORMAP_LEVELS - 1) + 0.5);
}

/* Returns COLORMAP_COUNT when no map has that name. */
static colormap colormap_from_name(const char *name)
{
#define COLORMAP_NAME(code, name) name,
    static const char *const names[COLORMAP_COUNT] = {COLORMAP_LIST(COLORMAP_NAME)};
#undef COLORMAP_NAME
    int map = 0;
    while (map < COLORMAP_COUNT && strcmp(names[map], name) != 0)
        map++;
    return (colormap)map;
}

/* ---- parameters ---- */

struct parameter {
    const char *name, *expected;
    parameter_reader *read;
};

struct picture_options picture_options_default(picture_kind kind)
{
    return (struct picture_options){.kind = kind,
                                    .head = PICTURE_ALL,
                                    .batch = kind == PICTURE_OF_MODEL ? 0 : PICTURE_ALL,
                                    .layer = PICTURE_ALL,
                                    .colormap = COLORMAP_VIRIDIS};
}

/* Reads up to nine digits. */
static bool read_number(const char *value, size_t *number)
{
    size_t length = strspn(value, "0123456789");
    if (length == 0 || length > 9 || value[length] != '\0')
        return false;
    *number = 0;
    for (; *value != '\0'; value++)
        *number = *number * 10 + (size_t)(*value - '0');
    return true;
}

static bool read_number_or_all(const char *value, size_t *number)
{
    if (strcmp(value, "all") != 0)
        return read_number(value, number);
    *number = PICTURE_ALL;
    return true;
}

static bool read_head(const char *value, struct picture_options *options)
{
    return read_number_or_all(value, &options->head);
}

static bool read_batch(const char *value, struct picture_options *options)
{
    return read_number_or_all(value, &options->batch);
}

static bool read_one_batch(const char *value, struct picture_options *options)
{
    return read_number(value, &options->batch);
}

static bool read_layer(const char *value, struct picture_options *options)
{
    return read_number_or_all(value, &options->layer);
}

static bool read_part(const char *value, struct picture_options *options)
{
    static const char *const words[] = {
        [PICTURE_PART_ENCODER] = "encoder", [PICTURE_PART_DECODER] = "decoder", [PICTURE_PART_CROSS] = "cross"};
    for (picture_part part = PICTURE_PART_ENCODER; part <= PICTURE_PART_CROSS; part++)
        if (strcmp(value, words[part]) == 0) {
            options->part = part;
            return true;
        }
    return false;
}

static bool read_colormap(const char *value, struct picture_options *options)
{
    options->colormap = colormap_from_name(value);
    return options->colormap != COLORMAP_COUNT;
}

static bool read_scale(const char *value, struct picture_options *options)
{
    size_t scale = 0;
    if (!read_number(value, &scale) || scale < 1 || scale > PICTURE_SCALE_MAX)
        return false;
    options->scale = (int)scale;
    return true;
}

#define HEAD                                                                                                           \
    {                                                                                                                  \
        "head", "the number of a head, from 0, or all", read_head                                                      \
    }
#define COLORMAP                                                                                                       \
    {                                                                                                                  \
        "colormap", "viridis, cividis or grey", read_colormap                                                          \
    }
#define SCALE                                                                                                          \
    {                                                                                                                  \
        "scale", "a whole number of pixels from 1 to 4", read_scale                                                    \
    }

static const struct parameter of_layer[] = {
    HEAD,
    {"batch", "the number of a batch item, from 0, or all", read_batch},
    COLORMAP,
    SCALE,
};

static const struct parameter of_model[] = {
    {"layer", "the number of a layer, from 0, or all", read_layer},
    HEAD,
    {"batch", "the number of a batch item, from 0", read_one_batch},
    {"part", "encoder, decoder or cross", read_part},
    COLORMAP,
    SCALE,
};

enum { KNOWN_MAX = ARRAY_LENGTH(of_model) };

static const struct {
    const struct parameter *known;
    size_t count;
    const char *names, *any_name;
} tables[] = {
    [PICTURE_OF_LAYER] = {of_layer, ARRAY_LENGTH(of_layer), "head, batch, colormap and scale",
                          "\"head, batch, colormap or scale\""},
    [PICTURE_OF_MODEL] = {of_model, ARRAY_LENGTH(of_model), "layer, head, batch, part, colormap and scale",
                          "\"layer, head, batch, part, colormap or scale\""},
};

/* The place in the table of that kind, or its count. */
static size_t find(picture_kind kind, const char *name)
{
    size_t i = 0;
    while (i < tables[kind].count && strcmp(tables[kind].known[i].name, name) != 0)
        i++;
    return i;
}

bool picture_options_has(picture_kind kind, const char *name)
{
    return find(kind, name) < tables[kind].count;
}

/* Quotes text as a short JSON string. text may hold any bytes. */
static const char *quote(char *quoted, size_t size, const char *text)
{
    struct label label;
    picture_text_clean(&label, text);
    if (label.count > 24)
        picture_text_cut(&label, 24);
    size_t used = 0;
    quoted[used++] = '"';
    for (const char *at = label.text; *at != '\0' && used + 3 < size; at++) {
        if (*at == '"' || *at == '\\')
            quoted[used++] = '\\';
        quoted[used++] = *at;
    }
    quoted[used++] = '"';
    quoted[used] = '\0';
    return quoted;
}

static attn_status fail_name(picture_kind kind, const char *name, attn_error *err)
{
    char quoted[128];
    attn_fail(err, ATTN_ERR_FIELD, NULL, "%s is not a parameter of a picture; there are %s",
              quote(quoted, sizeof quoted, name), tables[kind].names);
    return attn_expect(err, tables[kind].any_name, quoted);
}

static attn_status fail_value(const struct parameter *parameter, const char *value, attn_error *err)
{
    char field[32], expected[96], quoted[128];
    snprintf(field, sizeof field, "?%s", parameter->name);
    snprintf(expected, sizeof expected, "\"%s\"", parameter->expected);
    attn_fail(err, ATTN_ERR_VALUE, field, "%s is %s; expected %s", parameter->name, quote(quoted, sizeof quoted, value),
              parameter->expected);
    return attn_expect(err, expected, quoted);
}

static attn_status fail_twice(const struct parameter *parameter, attn_error *err)
{
    char field[32];
    snprintf(field, sizeof field, "?%s", parameter->name);
    return attn_fail(err, ATTN_ERR_FIELD, field, "%s comes twice; expected once", parameter->name);
}

attn_status picture_options_read(picture_kind kind, const struct text_pair *parameters, size_t count,
                                 struct picture_options *options, attn_error *err)
{
    const struct parameter *known = tables[kind].known;
    bool is_given[KNOWN_MAX] = {false};
    *options = picture_options_default(kind);
    for (size_t i = 0; i < count; i++) {
        size_t which = find(kind, parameters[i].name);
        if (which == tables[kind].count)
            return fail_name(kind, parameters[i].name, err);
        if (is_given[which])
            return fail_twice(&known[which], err);
        is_given[which] = true;
        if (!known[which].read(parameters[i].value, options))
            return fail_value(&known[which], parameters[i].value, err);
    }
    return ATTN_OK;
}

attn_status picture_options_fail_number(const char *name, size_t number, const char *expected, attn_error *err)
{
    char field[16], received[32];
    snprintf(field, sizeof field, "?%s", name);
    snprintf(received, sizeof received, "%zu", number);
    attn_fail(err, ATTN_ERR_VALUE, field, "%s is %zu; expected %s", name, number, expected);
    return attn_expect(err, NULL, received);
}
