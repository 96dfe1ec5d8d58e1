/* options.c: reads the options of a picture from the parameters of a query string. */
#include "codec/picture/image.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/picture/fonts/fonts.h"

/*
 * ---- colour maps ----
 *
 *   viridis  S. van der Walt, N. Smith (2015), for matplotlib; public domain by CC0. The 256 colours of matplotlib's
 *            _cm_listed.py, rounded to eight bits.
 *   cividis  J. Nuñez, C. Anderton, R. Renslow, "Optimizing colormaps with consideration for color vision deficiency",
 *            PLOS ONE 13(7), 2018; from the same file, CC0.
 *   grey     CIE 1976 L* falling evenly from 100 to 0, as sRGB (IEC 61966-2-1).
 *   signed   that of the page (web/maps/colour.js): straight lines in sRGB between seven colours.
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

struct picture_options picture_options_default(picture_kind kind)
{
    return (struct picture_options){.kind = kind,
                                    .head = PICTURE_ALL,
                                    .batch = kind == PICTURE_OF_MODEL ? 0 : PICTURE_ALL,
                                    .layer = PICTURE_ALL,
                                    .colormap = COLORMAP_COUNT};
}

/* Reads up to nine digits. */
static bool read_number(const char *value, void *to)
{
    size_t *number = to, length = strspn(value, "0123456789");
    if (length == 0 || length > 9 || value[length] != '\0')
        return false;
    *number = 0;
    for (; *value != '\0'; value++)
        *number = *number * 10 + (size_t)(*value - '0');
    return true;
}

static bool read_number_or_all(const char *value, void *to)
{
    if (strcmp(value, "all") != 0)
        return read_number(value, to);
    *(size_t *)to = PICTURE_ALL;
    return true;
}

static bool read_part(const char *value, void *to)
{
    static const char *const words[] = {
        [PICTURE_PART_ENCODER] = "encoder", [PICTURE_PART_DECODER] = "decoder", [PICTURE_PART_CROSS] = "cross"};
    for (picture_part part = PICTURE_PART_ENCODER; part <= PICTURE_PART_CROSS; part++)
        if (strcmp(value, words[part]) == 0) {
            *(picture_part *)to = part;
            return true;
        }
    return false;
}

static bool read_colormap(const char *value, void *to)
{
    *(colormap *)to = colormap_from_name(value);
    return *(colormap *)to != COLORMAP_COUNT;
}

static bool read_scale(const char *value, void *to)
{
    size_t scale = 0;
    if (!read_number(value, &scale) || scale < 1 || scale > PICTURE_SCALE_MAX)
        return false;
    *(int *)to = (int)scale;
    return true;
}

enum { OF_LAYER = 1 << PICTURE_OF_LAYER, OF_MODEL = 1 << PICTURE_OF_MODEL };

static const struct parameter {
    unsigned kinds; /* of pictures that have it */
    const char *name, *expected;
    bool (*read)(const char *value, void *to); /* false: the value is not what expected says */
    size_t offset;                             /* of *to in struct picture_options */
} known[] = {
#define ROW(kinds, name, expected, read)                                                                               \
    {                                                                                                                  \
        kinds, #name, expected, read, offsetof(struct picture_options, name)                                           \
    }
    ROW(OF_MODEL, layer, "the number of a layer, from 0, or all", read_number_or_all),
    ROW(OF_LAYER | OF_MODEL, head, "the number of a head, from 0, or all", read_number_or_all),
    ROW(OF_LAYER, batch, "the number of a batch item, from 0, or all", read_number_or_all),
    ROW(OF_MODEL, batch, "the number of a batch item, from 0", read_number),
    ROW(OF_MODEL, part, "encoder, decoder or cross", read_part),
    ROW(OF_LAYER | OF_MODEL, colormap, "viridis, cividis, grey or signed", read_colormap),
    ROW(OF_LAYER | OF_MODEL, scale, "a whole number of pixels from 1 to 4", read_scale),
#undef ROW
};

static const struct {
    const char *all, *any;
} names[] = {
    [PICTURE_OF_LAYER] = {"head, batch, colormap and scale", "\"head, batch, colormap or scale\""},
    [PICTURE_OF_MODEL] = {"layer, head, batch, part, colormap and scale",
                          "\"layer, head, batch, part, colormap or scale\""},
};

/* The place in the table, or its length. */
static size_t find(picture_kind kind, const char *name)
{
    size_t i = 0;
    while (i < ARRAY_LENGTH(known) && !(known[i].kinds >> kind & 1 && strcmp(known[i].name, name) == 0))
        i++;
    return i;
}

bool picture_options_has(picture_kind kind, const char *name)
{
    return find(kind, name) < ARRAY_LENGTH(known);
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
              quote(quoted, sizeof quoted, name), names[kind].all);
    return attn_expect(err, names[kind].any, quoted);
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
    bool is_given[ARRAY_LENGTH(known)] = {false};
    *options = picture_options_default(kind);
    for (size_t i = 0; i < count; i++) {
        size_t which = find(kind, parameters[i].name);
        if (which == ARRAY_LENGTH(known))
            return fail_name(kind, parameters[i].name, err);
        if (is_given[which])
            return fail_twice(&known[which], err);
        is_given[which] = true;
        if (!known[which].read(parameters[i].value, (char *)options + known[which].offset))
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
