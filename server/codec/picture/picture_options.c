/*
 * picture_options.c: reads the options of a picture from the parameters of a query string.
 */
#include "codec/picture/picture_options.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/picture/fonts/picture_text.h"

/* Reads value into *options. Returns false when value is not what expected says. */
typedef bool parameter_reader(const char *value, struct picture_options *options);

struct parameter {
    const char *name, *expected;
    parameter_reader *read;
};

struct picture_options picture_options_default(void)
{
    return (struct picture_options){.head = PICTURE_ALL, .batch = PICTURE_ALL, .colormap = COLORMAP_VIRIDIS};
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

static const struct parameter known[] = {
    {"head", "the number of a head, from 0, or all", read_head},
    {"batch", "the number of a batch item, from 0, or all", read_batch},
    {"colormap", "viridis, cividis or grey", read_colormap},
    {"scale", "a whole number of pixels from 1 to 4", read_scale},
};

enum { KNOWN = ARRAY_LENGTH(known) };

static size_t find(const char *name)
{
    size_t i = 0;
    while (i < KNOWN && strcmp(known[i].name, name) != 0)
        i++;
    return i;
}

bool picture_options_has(const char *name)
{
    return find(name) < KNOWN;
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

static attn_status fail_name(const char *name, attn_error *err)
{
    char quoted[128];
    attn_fail(err, ATTN_ERR_FIELD, NULL,
              "%s is not a parameter of a picture; there are head, batch, colormap and scale",
              quote(quoted, sizeof quoted, name));
    return attn_expect(err, "\"head, batch, colormap or scale\"", quoted);
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

attn_status picture_options_read(const struct text_pair *parameters, size_t count, struct picture_options *options,
                                 attn_error *err)
{
    bool is_given[KNOWN] = {false};
    *options = picture_options_default();
    for (size_t i = 0; i < count; i++) {
        size_t which = find(parameters[i].name);
        if (which == KNOWN)
            return fail_name(parameters[i].name, err);
        if (is_given[which])
            return fail_twice(&known[which], err);
        is_given[which] = true;
        if (!known[which].read(parameters[i].value, options))
            return fail_value(&known[which], parameters[i].value, err);
    }
    return ATTN_OK;
}
