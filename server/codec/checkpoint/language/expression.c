/* expression.c: the values of expressions over a configuration. */
#include "codec/checkpoint/language/expression.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { NAME_MAX_BYTES = 128, HEADS_MAX = 1024, LAYERS_MAX = 1 << 16 };

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

json_t *expression_member_at(const json_t *config, const char *name)
{
    struct text_span rest = text_span_of(name), part;
    json_t *value = (json_t *)(uintptr_t)config;
    while (text_next(&rest, '.', &part)) {
        char text[NAME_MAX_BYTES];
        snprintf(text, sizeof text, "%.*s", part.length < sizeof text ? (int)part.length : 0, part.at);
        value = json_object_get(value, text);
    }
    return value;
}

/* The type of layer n in a list of [[types, times], …], as GPT-Neo has it. NULL: the list says nothing of it. */
static const char *repeated_type(const json_t *list, size_t n)
{
    json_t *item;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const json_t *types = json_array_get(item, 0);
        const json_int_t times = json_integer_value(json_array_get(item, 1));
        const size_t size = json_array_size(types);
        if (size == 0 || times <= 0 || (size_t)times > LAYERS_MAX)
            continue;
        if (n < size * (size_t)times)
            return json_tree_word(json_array_get(types, n % size));
        n -= size * (size_t)times;
    }
    return NULL;
}

/* "sliding_attention", "full_attention", "local", or NULL when the configuration does not say. */
static const char *layer_type(const json_t *config, size_t n)
{
    const char *type = json_tree_word(json_array_get(json_object_get(config, "layer_types"), n));
    if (type == NULL)
        type = json_tree_word(json_array_get(json_object_get(config, "attention_layers"), n));
    if (type == NULL)
        type = repeated_type(json_object_get(config, "attention_types"), n);
    const json_int_t pattern = json_integer_value(json_object_get(config, "sliding_window_pattern"));
    if (type != NULL || pattern <= 0)
        return type;
    return (n + 1) % (size_t)pattern == 0 ? "full_attention" : "sliding_attention";
}

/* Whether the layer rotates its queries and keys, as nearly all layers do. */
static bool has_rope(const json_t *config, size_t n)
{
    const json_t *has = json_array_get(json_object_get(config, "no_rope_layers"), n);
    const json_int_t interval = json_integer_value(json_object_get(config, "no_rope_layer_interval"));
    if (json_is_integer(has))
        return json_integer_value(has) != 0;
    return interval <= 0 || (n + 1) % (size_t)interval != 0;
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
    const char *name = json_tree_word(type != NULL ? type : json_object_get(scaling, "type"));
    /* mrope counts height and width of images apart; in text all three counts are the same, which is plain rope */
    if (name == NULL || strcmp(name, "default") == 0 || strcmp(name, "mrope") == 0) {
        json_decref(scaling);
        return NULL;
    }
    if (strcmp(name, "su") == 0) /* the name that longrope had first */
        (void)json_object_set_new(scaling, type != NULL ? "rope_type" : "type", json_string("longrope"));
    static const char *const others[] = {"max_position_embeddings", "original_max_position_embeddings"};
    for (size_t i = 0; i < 2; i++)
        if (!is_there(json_object_get(scaling, others[i])) && json_is_integer(json_object_get(config, others[i])))
            (void)json_object_set(scaling, others[i], json_object_get(config, others[i]));
    return scaling;
}

/*
 * Old configurations keep theta beside the scaling. New ones keep all of rope together, some of them per type of layer.
 */
static json_t *rope_value(const json_t *config, size_t n, const char *layout)
{
    const json_t *given = json_object_get(config, "rope_parameters");
    const char *type = layer_type(config, n);
    if (!has_rope(config, n))
        return NULL;
    const bool is_local = type != NULL && strcmp(type, "sliding_attention") == 0 &&
                          json_is_number(json_object_get(config, "rope_local_base_freq"));
    if (!is_there(given) && !is_local) /* rope_local_base_freq applies without rope_scaling */
        given = json_object_get(config, "rope_scaling");
    if (type != NULL && json_is_object(json_object_get(given, type)))
        given = json_object_get(given, type);
    const double usual = number_or(config, is_local ? "rope_local_base_freq" : "rope_theta", "rotary_emb_base", 10000);
    const double theta = number_or(given, "rope_theta", "rope_theta", usual);
    const double share = number_or(given, "partial_rotary_factor", "partial_rotary_factor",
                                   number_or(config, "partial_rotary_factor", "rotary_pct", 1));
    json_t *rope = json_pack("{s:s, s:f}", "layout", layout, "theta", theta);
    json_t *scaling = is_there(given) ? rope_scaling(config, given) : NULL;
    if (share < 1)
        (void)json_object_set_new(rope, "dim", json_integer((json_int_t)(head_width(config) * share)));
    if (scaling != NULL)
        (void)json_object_set_new(rope, "scaling", scaling);
    return rope;
}

/* A number as bfloat16 holds it. */
static double rounded(double number)
{
    int exponent;
    const double fraction = frexp(number, &exponent);
    return ldexp(nearbyint(ldexp(fraction, 8)), exponent - 8);
}

/* The slopes of Falcon: those of ALiBi rounded to bfloat16, and scaled as the scores are. */
static json_t *scaled_alibi(const json_t *config)
{
    const double heads = number_or(config, "num_attention_heads", "n_head", 0);
    const double powers = heads >= 1 ? exp2(floor(log2(heads))) : 0;
    json_t *slopes = json_array();
    for (double i = 1; i <= heads && heads <= HEADS_MAX; i++) {
        const double exponent = i <= powers ? -8 * i / powers : -8 * (2 * (i - powers) - 1) / (2 * powers);
        (void)json_array_append_new(slopes, json_real(rounded(exp2(exponent)) / sqrt(head_width(config))));
    }
    return slopes;
}

/*
 * The slopes of MPT: those of ALiBi for the next power of two of heads, of which every second comes first.
 */
static json_t *wide_alibi(const json_t *config)
{
    const double heads = number_or(config, "n_heads", "num_attention_heads", 0);
    const double powers = heads >= 1 ? exp2(ceil(log2(heads))) : 0;
    json_t *slopes = json_array();
    for (double i = 1; i <= heads && heads <= HEADS_MAX; i++) {
        const double later = i <= powers / 2 ? 2 * i : 2 * (i - floor(powers / 2)) - 1;
        (void)json_array_append_new(slopes, json_real(exp2(-8 * (heads == powers ? i : later) / powers)));
    }
    return slopes;
}

/* ---- expressions ---- */

/* Whether layer n is the first, or comes so many layers after such a layer. NULL: the configuration has no such number. */
static json_t *is_each(const json_t *config, size_t n, const char *member)
{
    const json_int_t step = json_integer_value(json_object_get(config, member));
    return step > 0 ? json_boolean(n % (size_t)step == 0) : NULL;
}

/* Whether a list has the word, or a text with | between its words, as DeBERTa's pos_att_type. */
static bool holds(const json_t *value, const char *word)
{
    struct text_span rest = text_span_of(json_tree_word(value) != NULL ? json_tree_word(value) : ""), part;
    const json_t *item;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)value, i, item)
    {
        if (json_tree_word(item) != NULL && strcmp(json_tree_word(item), word) == 0)
            return true;
    }
    while (text_next(&rest, '|', &part))
        if (text_equal_fold(text_trim(part), word))
            return true;
    return false;
}

/* The value of "sqrt(hidden_size)". NULL when name is no such call, or the number is missing or not above 0. */
static json_t *call(const json_t *config, size_t n, const char *name)
{
    char function[16], member[NAME_MAX_BYTES], word[NAME_MAX_BYTES] = "";
    if (sscanf(name, "%15[^(](%127[^,)],%127[^)]", function, member, word) < 2)
        return NULL;
    json_t *value = json_object_get(config, member);
    const double number = json_number_value(value);
    if (strcmp(function, "holds") == 0)
        return json_boolean(holds(value, word));
    if (strcmp(function, "each") == 0)
        return is_each(config, n, member);
    if (number <= 0)
        return NULL;
    if (strcmp(function, "positive") == 0)
        return json_incref(value);
    if (strcmp(function, "half") == 0)
        return number < INT32_MAX ? json_integer((json_int_t)floor(number / 2)) : NULL;
    if (strcmp(function, "sqrt") == 0)
        return json_real(sqrt(number));
    if (strcmp(function, "rsqrt") == 0)
        return json_real(1 / sqrt(number));
    return strcmp(function, "inverse") == 0 ? json_real(1 / number) : NULL;
}

static json_t *text_value(const char *text)
{
    return text != NULL ? json_string(text) : NULL;
}

/* A value that is computed from the configuration has a name of its own. *is_known false: name is none of these. */
static json_t *computed_value(const json_t *config, size_t n, const char *name, bool *is_known)
{
    *is_known = true;
    const char *layout = json_tree_word(json_object_get(config, "rope_layout")); /* of a GGUF file */
    if (strcmp(name, "rope") == 0)
        return rope_value(config, n, layout != NULL ? layout : "half");
    if (strcmp(name, "interleaved_rope") == 0)
        return rope_value(config, n, "interleaved");
    if (strcmp(name, "window") == 0 || strcmp(name, "even_window") == 0)
        return window_value(config, n, name[0] == 'e');
    if (strcmp(name, "scale") == 0)
        return scale_value(config, n);
    if (strcmp(name, "scaled_alibi") == 0)
        return scaled_alibi(config);
    if (strcmp(name, "wide_alibi") == 0)
        return wide_alibi(config);
    if (strcmp(name, "layer") == 0)
        return json_integer((json_int_t)n);
    if (strcmp(name, "layer_type") == 0)
        return text_value(layer_type(config, n));
    if (strcmp(name, "architecture") == 0)
        return text_value(json_tree_word(json_array_get(json_object_get(config, "architectures"), 0)));
    *is_known = false;
    return NULL;
}

static json_t *value_of(const json_t *config, size_t n, const char *name);

/* The value of "scale_depth/sqrt(num_hidden_layers)". NULL when a part has no value, or the second is 0. */
static json_t *quotient(const json_t *config, size_t n, const char *name)
{
    const size_t length = strcspn(name, "/");
    char first[NAME_MAX_BYTES];
    snprintf(first, sizeof first, "%.*s", (int)length, name);
    json_t *over = value_of(config, n, first), *under = value_of(config, n, name + length + 1), *value = NULL;
    if (json_is_number(over) && json_is_number(under) && fabs(json_number_value(under)) > 0)
        value = json_real(json_number_value(over) / json_number_value(under));
    json_decref(over);
    json_decref(under);
    return value;
}

static json_t *value_of(const json_t *config, size_t n, const char *name)
{
    json_error_t error;
    bool is_known;
    json_t *computed = computed_value(config, n, name, &is_known);
    if (is_known)
        return computed;
    if (name[0] == '\'')
        return json_stringn(name + 1, strcspn(name + 1, "'"));
    if (isdigit((unsigned char)name[0]) || name[0] == '-' || strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
        return json_loads(name, JSON_DECODE_ANY, &error);
    if (strchr(name, '/') != NULL)
        return quotient(config, n, name);
    if (strchr(name, '(') != NULL)
        return call(config, n, name);
    json_t *value = expression_member_at(config, name);
    return is_there(value) ? json_incref(value) : NULL;
}

json_t *expression_value(const json_t *config, size_t n, const char *expression)
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

json_t *expression_fill(const json_t *config, size_t n, const json_t *template)
{
    const char *text = json_string_value(template);
    return text != NULL && text[0] == '$' ? expression_value(config, n, text + 1)
                                          : json_incref((json_t *)(uintptr_t) template);
}

/* The name in the brackets of a call, else the whole text. */
static void copy_name(struct text_span text, char *name, size_t size)
{
    const char *bracket = memchr(text.at, '(', text.length);
    const char *from = bracket != NULL ? bracket + 1 : text.at;
    const int length = (int)(text.at + text.length - from) - (bracket != NULL ? 1 : 0);
    snprintf(name, size, "%.*s", length, from);
    name[strcspn(name, ",")] = '\0';
}

const json_t *expression_member(const json_t *config, const char *expression, char *name, size_t size)
{
    struct text_span rest = text_span_of(expression), each;
    name[0] = '\0';
    while (text_next(&rest, '|', &each)) {
        copy_name(each, name, size);
        const json_t *member = expression_member_at(config, name);
        if (is_there(member))
            return member;
    }
    each = text_span_of(expression);
    each.length = strcspn(expression, "|");
    copy_name(each, name, size);
    return NULL;
}
