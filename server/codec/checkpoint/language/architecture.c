/* architecture.c: the table of architectures, its choices by a configuration, and its patterns of names. */
#include "codec/checkpoint/language/architecture.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/embedded_file.h"
#include "base/text.h"
#include "codec/checkpoint/language/expression.h"

EMBEDDED_FILE(architectures, "server/codec/checkpoint/architectures.json");

enum { NAME_MAX_BYTES = 128 };

/* ---- the table ---- */

static json_t *load_table(attn_arena *arena)
{
    json_error_t error;
    return json_tree_load(architectures_begin, (size_t)(architectures_end - architectures_begin), arena, &error);
}

static bool has_word(const json_t *words, const char *word)
{
    json_t *one;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)words, i, one)
    {
        if (strcmp(json_string_value(one), word) == 0)
            return true;
    }
    return false;
}

/* The entry that has the type among its "model_types". NULL: none has. */
static json_t *find_entry(const json_t *table, const char *model_type)
{
    json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(table, "architectures"), i, entry)
    {
        if (has_word(json_object_get(entry, "model_types"), model_type))
            return entry;
    }
    return NULL;
}

/* Members of the whole that hold for each of its parts. */
static const char *const of_whole[] = {"architectures", "quantization_config"};

/* Replaces the members of config by those of its part. */
static void take_part(json_t *config, json_t *part, const json_t *nested)
{
    json_t *own = json_copy(part);
    for (size_t i = 0; i < ARRAY_LENGTH(of_whole); i++) {
        json_t *value = json_object_get(config, of_whole[i]);
        if (value != NULL)
            (void)json_object_set(own, of_whole[i], value);
    }
    if (json_tree_word(json_object_get(own, "model_type")) == NULL || json_object_get(nested, "always") != NULL)
        (void)json_object_set(own, "model_type", json_object_get(nested, "model_type"));
    (void)json_object_clear(config);
    (void)json_object_update(config, own);
    (void)json_object_update(config, json_object_get(nested, "adds"));
    json_decref(own);
}

struct architecture architecture_open(json_t *config, attn_arena *arena)
{
    struct architecture found = {.table = load_table(arena)};
    const char *type = json_tree_word(json_object_get(config, "model_type"));
    json_t *nested = json_object_get(json_object_get(found.table, "nested"), type != NULL ? type : "");
    attn_error ignored;
    struct outcome outcome = {.arena = arena, .err = &ignored};
    if (nested != NULL && !architecture_resolve(&found, config, 0, nested, &found.nested, &outcome)) {
        json_decref(found.nested);
        found.nested = NULL; /* without memory; the caller will run out of it, too */
    }
    const char *member = json_string_value(json_object_get(found.nested, "config"));
    json_t *part = member != NULL ? json_object_get(config, member) : NULL;
    if (json_is_object(part))
        take_part(config, part, found.nested);
    else if (found.nested != NULL) /* as older files have it: the members of the text's model stand beside the others */
        (void)json_object_set(config, "model_type", json_object_get(found.nested, "model_type"));
    type = json_tree_word(json_object_get(config, "model_type"));
    found.entry = find_entry(found.table, type != NULL ? type : "");
    return found;
}

void architecture_close(struct architecture *architecture)
{
    json_decref(architecture->nested);
    json_decref(architecture->table);
}

const char *architecture_refused(const json_t *table, const char *model_type, const json_t **runs)
{
    const char *what;
    json_t *group;
    json_object_foreach(json_object_get(table, "refused"), what, group)
    {
        *runs = json_object_get(group, "runs");
        if (has_word(json_object_get(group, "types"), model_type))
            return what;
    }
    return NULL;
}

/* ---- the types ---- */

/* Whether a person may write the type, and attnd runs what is asked of it. */
static bool is_offered(const json_t *table, const char *member, const char *type)
{
    const json_t *runs;
    if (has_word(json_object_get(table, "unlisted"), type))
        return false;
    return strcmp(member, "model") != 0 || architecture_refused(table, type, &runs) == NULL;
}

/* A list of the types that entries with the member have, and those of nested models. */
static json_t *list_types(const json_t *table, const char *member)
{
    json_t *types = json_array(), *entry, *type, *nested;
    const char *name;
    size_t i, j;
    json_array_foreach(json_object_get(table, "architectures"), i, entry)
    {
        json_array_foreach(json_object_get(entry, "model_types"), j, type)
        {
            if (json_object_get(entry, member) != NULL && is_offered(table, member, json_string_value(type)))
                (void)json_array_append(types, type);
        }
    }
    json_object_foreach(json_object_get(table, "nested"), name, nested)
    {
        (void)json_array_append_new(types, json_string(name));
    }
    return types;
}

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Whether both names have a word that says of what family a model is: "gpt" of "openai-gpt" and "gpt2". */
static bool shares_word(const char *wanted, const char *type)
{
    static const char *const of_all[] = {"model", "moe", "text", "vision"};
    for (size_t length; *type != '\0'; type += length > 0 ? length : 1) {
        bool counts = true;
        for (length = 0; is_letter(type[length]);)
            length++;
        for (size_t i = 0; i < ARRAY_LENGTH(of_all); i++)
            counts = counts && !(strlen(of_all[i]) == length && strncmp(of_all[i], type, length) == 0);
        for (const char *at = wanted; counts && length >= 3 && *at != '\0'; at++)
            if ((at == wanted || !is_letter(at[-1])) && strncmp(at, type, length) == 0 && !is_letter(at[length]))
                return true;
    }
    return false;
}

/*
 * Whether one letter is missing, too much, swapped with its neighbour or another one. Another letter makes another name,
 * as blip is no clip, flava no llava and reformer no roformer, unless it stands behind the beginning of a long name.
 */
static bool is_misspelt(const char *wanted, const char *type)
{
    enum { TYPE_LEAST = 4, LONG_LEAST = 6, BEGINNING = 2 };
    const size_t length = strlen(wanted), own = strlen(type);
    size_t same = 0;
    while (same < own && wanted[same] == type[same])
        same++;
    const bool is_other = length == own && same < own && strcmp(wanted + same + 1, type + same + 1) == 0;
    return own >= TYPE_LEAST && nearest_distance(wanted, type) == 1 &&
           (!is_other || (own >= LONG_LEAST && same >= BEGINNING));
}

/*
 * A wanted name is near when it begins or ends with the known one, when it begins the known one, or when both share a word:
 * "bert-japanese" and "jina_bert" are near "bert", "longt5" is near "t5". A misspelt one is near, too.
 */
static bool is_near(const char *wanted, const char *type)
{
    const size_t length = strlen(wanted), own = strlen(type), shorter = length < own ? length : own;
    const bool begins = shorter >= 3 && strncmp(wanted, type, shorter) == 0;
    return begins || text_ends(wanted, type) || shares_word(wanted, type) || is_misspelt(wanted, type);
}

/* Writes the types as far as a message has room for them. */
static void write_list(const json_t *types, struct chunks *out)
{
    enum { ROOM = 400 };
    size_t length = 0, i;
    json_t *type;
    json_array_foreach((json_t *)(uintptr_t)types, i, type)
    {
        length += json_string_length(type) + 2;
        if (length > ROOM)
            continue;
        chunks_format(out, "%s%s", i > 0 ? ", " : "", json_string_value(type));
    }
    if (length > ROOM)
        chunks_text(out, " and others, which docs/models.md lists");
}

void architecture_write_types(const json_t *table, const char *member, const char *model_type, const char *before,
                              struct chunks *out)
{
    json_t *types = list_types(table, member), *type;
    const char *nearest = NULL;
    char wanted[NAME_MAX_BYTES];
    size_t distance = SIZE_MAX, i;
    text_copy(wanted, sizeof wanted, model_type);
    for (char *at = wanted; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    json_array_foreach(types, i, type)
    {
        const size_t edits = nearest_distance(wanted, json_string_value(type));
        if (edits < distance && is_near(wanted, json_string_value(type))) {
            nearest = json_string_value(type);
            distance = edits;
        }
    }
    if (nearest != NULL)
        chunks_format(out, "the nearest name that attnd has is %s; ", nearest);
    chunks_text(out, before);
    write_list(types, out);
    json_decref(types);
}

bool architecture_check_type(const json_t *config, struct outcome *outcome)
{
    return json_tree_word(json_object_get(config, "model_type")) != NULL ||
           outcome_fail(
               outcome, ATTN_ERR_VALUE, NULL,
               "config.json has no model_type, the text that names the kind of the model, such as \"bert\"; take "
               "config.json as transformers saves it");
}

/* ---- choices ---- */

/* The text of a value, as a case is named: gelu, true, 12. */
static const char *case_name(const json_t *value, char text[NAME_MAX_BYTES])
{
    if (json_is_string(value))
        snprintf(text, NAME_MAX_BYTES, "%s", json_tree_word(value));
    else if (json_is_integer(value))
        snprintf(text, NAME_MAX_BYTES, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, NAME_MAX_BYTES, "%.17g", json_real_value(value));
    else
        snprintf(text, NAME_MAX_BYTES, "%s", json_is_true(value) ? "true" : json_is_false(value) ? "false" : "absent");
    return text;
}

/* As JSON. json_dumpb leaves parts out that do not fit. */
static const char *dump(const json_t *value, char *text, size_t size)
{
    const size_t length = json_dumpb(value, text, size - 1, JSON_ENCODE_ANY | JSON_COMPACT);
    if (length < size)
        text[length] = '\0';
    else
        snprintf(text, size, "a value of %zu bytes", length);
    return text;
}

/* "gelu, relu, silu", as far as there is room. */
static void list_cases(json_t *cases, char *text, size_t size)
{
    const char *name;
    json_t *ignored;
    size_t length = 0;
    text[0] = '\0';
    json_object_foreach(cases, name, ignored)
    {
        if (name[0] != '$' && length < size)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", name);
    }
}

static bool fail_choice(const json_t *config, const char *expression, json_t *cases, struct outcome *outcome)
{
    char name[NAME_MAX_BYTES], is[100], known[200];
    const json_t *member = expression_member(config, expression, name, sizeof name);
    list_cases(cases, known, sizeof known);
    if (member == NULL)
        return outcome_fail(outcome, ATTN_ERR_VALUE, NULL, "config.json has no %.60s; attnd has %s", name, known);
    return outcome_fail(outcome, ATTN_ERR_VALUE, NULL, "config.json: %.60s is %s; attnd has %s", name,
                        dump(member, is, sizeof is), known);
}

static bool choose(const struct architecture *architecture, const json_t *config, size_t n, json_t *choice,
                   json_t **chosen, struct outcome *outcome)
{
    char text[NAME_MAX_BYTES];
    const char *expression = json_string_value(json_object_get(choice, "$by")),
               *shared = json_string_value(json_object_get(choice, "$cases"));
    json_t *cases = shared != NULL ? json_object_get(json_object_get(architecture->table, "cases"), shared) : choice;
    json_t *value = expression_value(config, n, expression != NULL ? expression : "");
    json_t *found = json_object_get(cases, case_name(value, text));
    json_decref(value);
    if (found == NULL)
        found = json_object_get(choice, "otherwise");
    if (found != NULL)
        return architecture_resolve(architecture, config, n, found, chosen, outcome);
    return fail_choice(config, expression != NULL ? expression : "", cases, outcome);
}

/* Sets the member, or drops a value that is null. */
static void set_member(json_t *to, const char *name, json_t *value)
{
    if (value == NULL || json_is_null(value))
        json_decref(value);
    else if (name != NULL)
        (void)json_object_set_new(to, name, value);
    else
        (void)json_array_append_new(to, value);
}

/* Recursion is safe, because templates are plain data of little depth. */
bool architecture_resolve(const struct architecture *architecture, const json_t *config, size_t n, json_t *template,
                          json_t **resolved, struct outcome *outcome)
{
    bool ok = true;
    const char *name;
    json_t *member, *value;
    size_t i;
    if (json_object_get(template, "$by") != NULL)
        return choose(architecture, config, n, template, resolved, outcome);
    if (!json_is_object(template) && !json_is_array(template)) {
        *resolved = json_incref(template);
        return true;
    }
    *resolved = json_is_object(template) ? json_object() : json_array();
    json_object_foreach(template, name, member)
    {
        value = NULL;
        ok = ok && architecture_resolve(architecture, config, n, member, &value, outcome);
        set_member(*resolved, name, value);
    }
    json_array_foreach(template, i, member)
    {
        value = NULL;
        ok = ok && architecture_resolve(architecture, config, n, member, &value, outcome);
        set_member(*resolved, NULL, value);
    }
    return ok && (!json_tree_is_starved() || outcome_no_memory(outcome)); /* a member may be missing */
}

/* ---- what a configuration may ask for ---- */

bool architecture_complete(const struct architecture *architecture, json_t *config, struct outcome *outcome)
{
    json_t *defaults = NULL;
    bool ok = architecture_resolve(architecture, config, 0, json_object_get(architecture->entry, "defaults"), &defaults,
                                   outcome);
    if (ok && defaults != NULL)
        (void)json_object_update_missing(config, defaults);
    json_decref(defaults);
    return ok;
}

/*
 * Whether the value is the needed one, or one of the list; or an object whose members are those of a needed object, or
 * others. A member that is absent asks for nothing.
 */
static bool is_met(const json_t *config, const json_t *value, const json_t *needed)
{
    const json_t *one;
    size_t i;
    const char *text = json_string_value(needed), *name;
    if (value == NULL || json_is_null(value))
        return true;
    if (json_is_object(value) && json_object_size(needed) > 0) {
        bool is = true;
        json_t *member;
        json_object_foreach((json_t *)(uintptr_t)needed, name, member)
        {
            is = is && is_met(config, json_object_get(value, name), member);
        }
        return is;
    }
    json_array_foreach((json_t *)(uintptr_t)needed, i, one)
    {
        if (is_met(config, value, one))
            return true;
    }
    if (text == NULL || text[0] != '$')
        return json_equal((json_t *)(uintptr_t)value, (json_t *)(uintptr_t)needed) != 0;
    json_t *other = expression_value(config, 0, text + 1);
    const bool is_equal = json_equal((json_t *)(uintptr_t)value, other) != 0;
    json_decref(other);
    return is_equal;
}

bool architecture_check(const struct architecture *architecture, const json_t *config, struct outcome *outcome)
{
    const json_t *const lists[] = {json_object_get(architecture->table, "requires"),
                                   json_object_get(architecture->entry, "requires")};
    char is[100], wanted[100];
    for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
        const char *name;
        json_t *needed;
        json_object_foreach((json_t *)(uintptr_t)lists[i], name, needed)
        {
            const json_t *value = expression_member_at(config, name);
            const bool is_replaced = i == 0 && json_object_get(lists[1], name) != NULL;
            if (is_replaced || is_met(config, value, needed))
                continue;
            const char *help = json_string_value(json_object_get(json_object_get(architecture->table, "helps"), name));
            const char *between = help != NULL ? "; " : "";
            help = help != NULL ? help : "";
            if (json_is_null(needed))
                return outcome_fail(outcome, ATTN_ERR_VALUE, NULL,
                                    "config.json has %s; attnd runs only models without it%s%s", name, between, help);
            return outcome_fail(outcome, ATTN_ERR_VALUE, NULL,
                                "config.json: %s is %s; attnd runs a model of this kind only if it is %s%s%s%s", name,
                                dump(value, is, sizeof is), json_is_array(needed) ? "one of " : "",
                                dump(needed, wanted, sizeof wanted), between, help);
        }
    }
    return true;
}

/* ---- patterns ---- */

/* Whether the whole of name fits the whole of pattern. */
static bool fits_whole(const char *name, const char *pattern, size_t *number)
{
    bool has_number = false;
    while (*pattern != '\0') {
        if (strcmp(pattern, "*") == 0)
            return *name != '\0';
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

bool architecture_is_within(const struct architecture *architecture, const char *name, size_t length)
{
    const char *within = json_string_value(json_object_get(architecture->nested, "within"));
    const size_t size = within != NULL ? strlen(within) : 0;
    if (within == NULL)
        return true;
    for (size_t at = 0; at + size < length; at++)
        if ((at == 0 || name[at - 1] == '.') && strncmp(name + at, within, size) == 0 && name[at + size] == '.')
            return true;
    return false;
}
