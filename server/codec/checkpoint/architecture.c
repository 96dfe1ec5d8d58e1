/*
 * architecture.c: the table of architectures, and the values of its expressions.
 */
#include "codec/checkpoint/architecture.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/embedded_file.h"
#include "base/text.h"
#include "codec/json/json_tree.h"

EMBEDDED_FILE(architectures, "server/codec/checkpoint/architectures.json");

enum { NAME_MAX_BYTES = 128 };

/* ---- the table ---- */

static json_t *load_table(attn_arena *arena)
{
    json_error_t error;
    return json_tree_load(architectures_begin, (size_t)(architectures_end - architectures_begin), arena, &error);
}

json_t *architecture_modules(const char *model_type, attn_arena *arena)
{
    json_t *table = load_table(arena), *found = NULL, *entry, *type;
    size_t i, j;
    json_array_foreach(json_object_get(table, "architectures"), i, entry)
    {
        json_array_foreach(json_object_get(entry, "model_types"), j, type)
        {
            if (found == NULL && strcmp(json_string_value(type), model_type) == 0)
                found = json_incref(json_object_get(entry, "modules"));
        }
    }
    json_decref(table);
    return found;
}

void architecture_write_types(struct chunks *out)
{
    json_t *table = load_table(out->arena), *entry, *type;
    const char *separator = "";
    size_t i, j;
    json_array_foreach(json_object_get(table, "architectures"), i, entry)
    {
        json_array_foreach(json_object_get(entry, "model_types"), j, type)
        {
            chunks_format(out, "%s%s", separator, json_string_value(type));
            separator = ", ";
        }
    }
    json_decref(table);
}

/* ---- values computed from a configuration ---- */

static bool is_there(const json_t *value)
{
    return value != NULL && !json_is_null(value);
}

/*
 * The number that the configuration has under the first name, or else under the second. Returns otherwise when it has
 * neither.
 */
static double number_or(const json_t *config, const char *first, const char *second, double otherwise)
{
    const json_t *value = json_object_get(config, first);
    if (!json_is_number(value))
        value = json_object_get(config, second);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static double head_width(const json_t *config)
{
    const double heads = number_or(config, "num_attention_heads", "n_head", 0);
    const double width = number_or(config, "hidden_size", "n_embd", 0);
    return number_or(config, "head_dim", "head_dim", heads > 0 ? width / heads : 0);
}

static const char *layer_type(const json_t *config, size_t n)
{
    return json_string_value(json_array_get(json_object_get(config, "layer_types"), n));
}

/* The number of keys that a query sees at most, itself included. NULL when the layer has no window. */
static json_t *window_value(const json_t *config, size_t n, bool in_even_layers)
{
    const json_t *window = json_object_get(config, "sliding_window"),
                 *first = json_object_get(config, "max_window_layers");
    const char *type = layer_type(config, n);
    bool slides = json_is_integer(window) && !json_is_false(json_object_get(config, "use_sliding_window"));
    if (slides && type != NULL)
        slides = strcmp(type, "sliding_attention") == 0;
    else if (slides && json_is_integer(first))
        slides = (json_int_t)n >= json_integer_value(first);
    else if (slides && in_even_layers)
        slides = n % 2 == 0;
    return slides ? json_integer(json_integer_value(window)) : NULL;
}

/* The scale. NULL when it is 1 / sqrt(head width). */
static json_t *scale_value(const json_t *config, size_t n)
{
    const double pre = number_or(config, "query_pre_attn_scalar", "query_pre_attn_scalar", 0);
    const bool is_plain = json_is_false(json_object_get(config, "scale_attn_weights"));
    const bool by_layer = json_is_true(json_object_get(config, "scale_attn_by_inverse_layer_idx"));
    if (pre > 0)
        return json_real(1 / sqrt(pre));
    if (!is_plain && !by_layer)
        return NULL;
    const double scale = is_plain ? 1 : 1 / sqrt(head_width(config));
    return json_real(by_layer ? scale / (double)(n + 1) : scale);
}

/*
 * The rope scaling in one spelling, as a new reference. Lengths that the scaling lacks are taken from the
 * configuration. NULL when there is no scaling.
 */
static json_t *rope_scaling(const json_t *config, const json_t *given)
{
    json_t *scaling = json_copy((json_t *)(uintptr_t)given);
    if (is_there(json_object_get(scaling, "rope_type")))
        (void)json_object_del(scaling, "type");
    (void)json_object_del(scaling, "rope_theta");
    (void)json_object_del(scaling, "partial_rotary_factor");
    const json_t *type = json_object_get(scaling, "rope_type");
    const char *name = json_string_value(type != NULL ? type : json_object_get(scaling, "type"));
    if (name == NULL || strcmp(name, "default") == 0) {
        json_decref(scaling);
        return NULL;
    }
    static const char *const others[] = {"max_position_embeddings", "original_max_position_embeddings"};
    for (size_t i = 0; i < 2; i++)
        if (!is_there(json_object_get(scaling, others[i])) && json_is_integer(json_object_get(config, others[i])))
            (void)json_object_set(scaling, others[i], json_object_get(config, others[i]));
    return scaling;
}

/*
 * Old configurations keep theta beside the scaling. New ones keep all of rope together, some of them per type of layer.
 */
static json_t *rope_value(const json_t *config, size_t n)
{
    const json_t *given = json_object_get(config, "rope_parameters");
    const char *type = layer_type(config, n);
    if (!is_there(given))
        given = json_object_get(config, "rope_scaling");
    if (type != NULL && json_is_object(json_object_get(given, type)))
        given = json_object_get(given, type);
    const double theta =
        number_or(given, "rope_theta", "rope_theta", number_or(config, "rope_theta", "rotary_emb_base", 10000));
    const double share = number_or(given, "partial_rotary_factor", "partial_rotary_factor",
                                   number_or(config, "partial_rotary_factor", "rotary_pct", 1));
    json_t *rope = json_pack("{s:s, s:f}", "layout", "half", "theta", theta);
    json_t *scaling = is_there(given) ? rope_scaling(config, given) : NULL;
    if (share < 1)
        (void)json_object_set_new(rope, "dim", json_integer((json_int_t)(head_width(config) * share)));
    if (scaling != NULL)
        (void)json_object_set_new(rope, "scaling", scaling);
    return rope;
}

/* ---- expressions ---- */

static json_t *value_of(const json_t *config, size_t n, const char *name)
{
    json_error_t error;
    if (strcmp(name, "rope") == 0)
        return rope_value(config, n);
    if (strcmp(name, "window") == 0 || strcmp(name, "even_window") == 0)
        return window_value(config, n, name[0] == 'e');
    if (strcmp(name, "scale") == 0)
        return scale_value(config, n);
    if (isdigit((unsigned char)name[0]) || name[0] == '-')
        return json_loads(name, JSON_DECODE_ANY, &error);
    json_t *value = json_object_get(config, name);
    return is_there(value) ? json_incref(value) : NULL;
}

json_t *architecture_value(const json_t *config, size_t n, const char *expression)
{
    struct text_span rest = text_span_of(expression), name;
    json_t *value = NULL;
    while (value == NULL && text_next(&rest, '|', &name)) {
        char text[NAME_MAX_BYTES];
        snprintf(text, sizeof text, "%.*s", name.length < sizeof text ? (int)name.length : 0, name.at);
        value = value_of(config, n, text);
    }
    return value;
}

/* ---- patterns ---- */

/* Whether the whole of name fits the whole of pattern. */
static bool fits_whole(const char *name, const char *pattern, size_t *number)
{
    bool has_number = false;
    while (*pattern != '\0') {
        if (*pattern != '{') {
            if (*name++ != *pattern++)
                return false;
            continue;
        }
        const size_t digits = strspn(name, "0123456789"), word = strcspn(pattern, "}");
        if (digits == 0 || digits > 9 || pattern[word] == '\0')
            return false;
        uint64_t value = 0;
        for (size_t i = 0; i < digits; i++)
            value = 10 * value + (uint64_t)(name[i] - '0');
        if (!has_number)
            *number = (size_t)value;
        has_number = true;
        name += digits;
        pattern += word + 1;
    }
    return *name == '\0';
}

bool architecture_fits(const char *name, const char *pattern, size_t *start, size_t *number)
{
    const char *at = name;
    *number = 0;
    while (at != NULL) {
        if (fits_whole(at, pattern, number)) {
            *start = (size_t)(at - name);
            return true;
        }
        at = strchr(at, '.');
        at = at != NULL ? at + 1 : NULL;
    }
    return false;
}
