/*
 * openapi.c: writes the OpenAPI document: a text that people write (server/openapi/), with all that the code knows filled
 * in.
 *
 *     openapi FILE.json… > openapi.json
 *
 * Each file has some members of the document, at their places. Paths and components of all files are put together.
 *
 * The text has what only a person can write: paths, descriptions, defaults, examples, answers. These members of a schema
 * say what to fill in, and are not in the document:
 *
 *   x-request: "layer"          the schema of a request: each object in it gets its members, and each member its types,
 *                               words and limits, from the decoders (forms.h). Forms that the text gives stay.
 *   x-like: "AttentionOptions"  members that are not described here are described there
 *   x-without: ["cache"]        members that the decoder reads, and that are refused here
 *   x-masks: "kept"             of the masks, those that kept layers may have
 *   x-words: ["steps"]          an enum: the words of these lists (lists.h), or of a value in the request of a layer, such
 *                               as "/options/compute"
 *   x-steps: {"numbers": …}     a member for each step, by what its values are: numbers, scores, flags; with "prefixes",
 *                               one for each of them before its name
 *   x-gradients: {…}            a member for each gradient, at its path
 *   x-parameters: true          a member for each parameter of the Open Inference Protocol
 *
 * In a description, {--max-body} is the default of that setting. info.version is that of the program.
 *
 * Nothing is said twice: where the text and the code give the same keyword other values, and where one of them has a
 * member or form that the other lacks, the program names the place and fails, and with it the build.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/gradient.h"
#include "base/array.h"
#include "codec/request/decoder.h"
#include "config/settings.h"
#include "forms.h"
#include "lists.h"

enum { POINTER_MAX = 512, FORMS_MAX = 16, REAL_DIGITS = 15 };

static json_t *root;        /* the document, from the text on */
static json_t *source;      /* the text, as it was */
static json_t *forms;       /* of the request that is being filled */
static const char *current; /* its component */
static unsigned mistakes;

static const char components[] = "#/components/schemas/";

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "openapi: %s: ", current);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    mistakes++;
}

__attribute__((format(printf, 2, 3))) static void write_pointer(char to[POINTER_MAX], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(to, POINTER_MAX, format, arguments) >= POINTER_MAX)
        complain("%s… is too long", to);
    va_end(arguments);
}

static json_t *schemas_of(json_t *document)
{
    return json_object_get(json_object_get(document, "components"), "schemas");
}

static const char *name_of(const json_t *schema)
{
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    return reference != NULL && strncmp(reference, components, strlen(components)) == 0 ? reference + strlen(components)
                                                                                        : NULL;
}

/* The component that a schema refers to, or the schema itself. */
static json_t *resolve(json_t *schema)
{
    const char *name = name_of(schema);
    json_t *component = name != NULL ? json_object_get(schemas_of(root), name) : schema;
    if (component == NULL)
        complain("there is no component %s", name);
    return component != NULL ? component : schema;
}

/* ---- members and forms of requests ---- */

static bool names_word(const json_t *list, const char *word)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
    {
        if (strcmp(json_string_value(item), word) == 0)
            return true;
    }
    return false;
}

static void fill(json_t *schema, const char *pointer);

static bool is_object(const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    return json_object_get(schema, "properties") || json_object_get(schema, "x-like") ||
           (type != NULL && strcmp(type, "object") == 0);
}

/* The alternatives of a schema; NULL: it has none. An object may have anyOf, too, to say which members it needs. */
static json_t *choices_of(const json_t *schema)
{
    json_t *choices = json_object_get(schema, "oneOf");
    if (choices == NULL && !is_object(schema))
        choices = json_object_get(schema, "anyOf");
    return choices;
}

/* Adds the keywords of a form. */
static void merge(json_t *schema, json_t *form, const char *pointer)
{
    const char *key;
    json_t *value;
    json_object_foreach(form, key, value)
    {
        const json_t *own = json_object_get(schema, key);
        if (own != NULL && !json_equal(own, value))
            complain("%s: \"%s\" is not what the decoder says", pointer, key);
        json_object_set(schema, key, value);
    }
}

/* The description of a member that the schema itself does not describe, as a new reference. */
static json_t *described_elsewhere(const json_t *schema, const char *name)
{
    const char *like = json_string_value(json_object_get(schema, "x-like"));
    if (like == NULL)
        return json_object();
    const json_t *other = json_object_get(schemas_of(source), like);
    json_t *member = json_object_get(json_object_get(other, "properties"), name);
    return member != NULL ? json_deep_copy(member) : described_elsewhere(other, name);
}

static bool is_left_out(const json_t *schema, const char *name)
{
    return names_word(json_object_get(schema, "x-without"), name) ||
           (json_object_get(schema, "x-masks") && !mask_has_place(name, MASK_IN_LAYERS));
}

/* Gives an object its members, in the order of the decoder. pointer is that of the members. */
static void fill_members(json_t *schema, const json_t *form, const char *pointer)
{
    json_t *written = json_object_get(schema, "properties"), *properties = json_object(), *unused;
    const json_t *tag = json_object_get(form, "tag"), *name_node;
    const bool was_filled = json_object_get(schema, "x-filled");
    const char *name;
    size_t i;
    json_array_foreach(json_object_get(form, "members"), i, name_node)
    {
        char deeper[POINTER_MAX];
        name = json_string_value(name_node);
        if (is_left_out(schema, name))
            continue;
        json_t *member = json_incref(json_object_get(written, name));
        if (member == NULL && was_filled)
            complain("%s/%s: the same schema stands where there is no such member", pointer, name);
        if (member == NULL)
            member = described_elsewhere(schema, name);
        write_pointer(deeper, "%s/%s", pointer, name);
        if (json_object_get(tag, name)) {
            json_object_set_new(member, "type", json_string("string"));
            json_object_set(member, "const", json_object_get(tag, name));
        } else {
            fill(member, deeper);
        }
        json_object_set_new(properties, name, member);
    }
    json_object_foreach(written, name, unused)
    {
        if (!json_object_get(properties, name))
            complain("%s/%s is described, and no decoder reads it", pointer, name);
    }
    json_object_set_new(schema, "type", json_string("object"));
    json_object_set_new(schema, "properties", properties);
    json_object_set_new(schema, "additionalProperties", json_false());
    json_object_set_new(schema, "x-filled", json_true());
}

/* The form of an object that a schema describes: the one whose tag its properties have, else the one without a tag. */
static bool is_of(const json_t *form, const json_t *schema)
{
    json_t *properties = json_object_get(schema, "properties"), *tag = json_object_get(form, "tag");
    const char *name = json_object_iter_key(json_object_iter(tag));
    json_t *value;
    if (name != NULL)
        return json_equal(json_object_get(json_object_get(properties, name), "const"), json_object_get(tag, name));
    json_object_foreach(properties, name, value)
    {
        if (json_object_get(value, "const"))
            return false;
    }
    return true;
}

static void fill_object(json_t *schema, json_t *form, const char *pointer)
{
    char tagged[POINTER_MAX];
    const char *word = json_string_value(json_object_iter_value(json_object_iter(json_object_get(form, "tag"))));
    write_pointer(tagged, "%s%s%s", pointer, word != NULL ? "=" : "", word != NULL ? word : "");
    fill_members(schema, form, tagged);
}

static void fill_alternative(json_t *alternative, json_t *known, bool covered[], const char *pointer);

/* Elements that the text describes get no further forms: it may tell [number, number] from [[number, number]]. */
static void fill_elements(json_t *schema, const char *pointer)
{
    char deeper[POINTER_MAX];
    bool covered[FORMS_MAX];
    write_pointer(deeper, "%s/*", pointer);
    json_t *known = json_object_get(forms, deeper), *items = json_object_get(schema, "items");
    if (known != NULL && items != NULL) {
        fill_alternative(items, known, covered, deeper);
    } else if (known != NULL) {
        json_object_set_new(schema, "items", items = json_object());
        fill(items, deeper);
    }
}

/* Fills in what the forms know about one alternative of the text, and marks the forms that it covers. */
static void fill_alternative(json_t *alternative, json_t *known, bool covered[], const char *pointer)
{
    size_t i;
    json_t *form, *inner, *schema = resolve(alternative);
    json_t *choices = choices_of(schema);
    json_array_foreach(known, i, form)
    {
        const char *wanted = name_of(form), *given = name_of(alternative);
        if (wanted != NULL && given != NULL && strcmp(wanted, given) == 0) {
            covered[i] = true;
            return;
        }
    }
    json_array_foreach(choices, i, inner) fill_alternative(inner, known, covered, pointer);
    if (choices != NULL)
        return;
    bool is_read = json_object_get(schema, "const");
    json_array_foreach(known, i, form)
    {
        const char *of_form = json_string_value(json_object_get(form, "type"));
        const char *type = json_string_value(json_object_get(schema, "type")); /* merge replaces it */
        const bool is_list = type != NULL && strcmp(type, "array") == 0;
        if (of_form == NULL)
            continue;
        if (is_object(schema) && strcmp(of_form, "object") == 0 && is_of(form, schema)) {
            fill_object(schema, form, pointer);
            covered[i] = is_read = true;
        } else if (!is_object(schema) && type != NULL && strcmp(of_form, type) == 0) {
            merge(schema, form, pointer);
            covered[i] = is_read = true;
            if (is_list)
                fill_elements(schema, pointer);
        }
    }
    if (!is_read && strchr(pointer, '*') == NULL) /* of the forms of elements, probes find only some */
        complain("%s may be \"%s\" by the text, and by no decoder", pointer,
                 name_of(alternative) ? name_of(alternative) : json_string_value(json_object_get(schema, "type")));
}

/* Whether the text itself says what a value may be. */
static bool has_form(const json_t *schema)
{
    static const char *const keywords[] = {"$ref", "type", "properties", "const", "x-like", "x-words"};
    for (size_t i = 0; i < ARRAY_LENGTH(keywords); i++)
        if (json_object_get(schema, keywords[i]))
            return true;
    return false;
}

/* Makes a list of alternatives of a schema that is itself one of them. Its description stays where it is. */
static json_t *alternatives_of(json_t *schema)
{
    static const char *const about[] = {"description", "default", "title"};
    json_t *list = json_array(), *alone = json_copy(schema);
    for (size_t i = 0; i < ARRAY_LENGTH(about); i++)
        (void)json_object_del(alone, about[i]);
    const char *key;
    json_t *value;
    json_object_foreach(alone, key, value)
    {
        (void)json_object_del(schema, key);
    }
    if (json_object_size(alone) > 0)
        json_array_append(list, alone);
    json_decref(alone);
    json_object_set_new(schema, "oneOf", list);
    return list;
}

static void add_form(json_t *schema, json_t *form, const char *pointer)
{
    const char *type = json_string_value(json_object_get(form, "type"));
    if (type != NULL && strcmp(type, "object") == 0) {
        complain("%s: the decoder reads an object with \"%s\", which is not described", pointer,
                 json_string_value(json_array_get(json_object_get(form, "members"), 0)));
        return;
    }
    merge(schema, form, pointer);
    if (type != NULL && strcmp(type, "array") == 0)
        fill_elements(schema, pointer);
}

static void fill(json_t *schema, const char *pointer)
{
    json_t *known = json_object_get(forms, pointer), *form;
    json_t *choices = choices_of(schema);
    bool covered[FORMS_MAX] = {false};
    size_t i, missing = 0;
    if (known == NULL || json_array_size(known) > FORMS_MAX) {
        complain("%s: the decoder takes no form", pointer);
        return;
    }
    if (choices != NULL || has_form(schema))
        fill_alternative(schema, known, covered, pointer);
    for (i = 0; i < json_array_size(known); i++)
        missing += !covered[i];
    if (missing == 0)
        return;
    if (missing == 1 && choices == NULL && !has_form(schema)) {
        for (i = 0; covered[i]; i++)
            continue;
        add_form(schema, json_array_get(known, i), pointer);
        return;
    }
    if (choices == NULL)
        choices = alternatives_of(schema);
    json_t *ours = json_array();
    json_array_foreach(known, i, form)
    {
        if (covered[i])
            continue;
        json_t *alternative = json_object();
        add_form(alternative, form, pointer);
        json_array_append_new(ours, alternative);
    }
    json_array_extend(ours, choices);
    json_array_clear(choices);
    json_array_extend(choices, ours);
    json_decref(ours);
}

static void fill_requests(void)
{
    const char *name;
    json_t *schema;
    json_object_foreach(schemas_of(root), name, schema)
    {
        const char *request = json_string_value(json_object_get(schema, "x-request"));
        if (request == NULL)
            continue;
        current = name;
        forms = forms_of(request);
        if (forms == NULL)
            complain("there is no request \"%s\"", request);
        else
            fill(schema, "");
        json_decref(forms);
    }
}

/* ---- lists ---- */

/* The words that a value of a layer's request may be, as a new reference. */
static json_t *words_at(const char *pointer)
{
    json_t *all = forms_of("layer"), *form, *words = NULL;
    size_t i;
    json_array_foreach(json_object_get(all, pointer), i, form)
    {
        if (words == NULL)
            words = json_incref(json_object_get(form, "enum"));
    }
    json_decref(all);
    return words;
}

static void fill_words(json_t *schema, const json_t *names)
{
    json_t *words = json_array(), *word;
    const json_t *name;
    size_t i, w;
    json_array_foreach(names, i, name)
    {
        json_t *list =
            json_string_value(name)[0] == '/' ? words_at(json_string_value(name)) : lists_of(json_string_value(name));
        if (list == NULL)
            complain("there is no list \"%s\"", json_string_value(name));
        json_array_foreach(list, w, word)
        {
            if (!names_word(words, json_string_value(word)))
                json_array_append(words, word);
        }
        json_decref(list);
    }
    json_object_set_new(schema, "type", json_string("string"));
    json_object_set_new(schema, "enum", words);
}

static void fill_all_words(json_t *node)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_object_get(node, "x-words"))
        fill_words(node, json_object_get(node, "x-words"));
    json_object_foreach(node, key, value)
    {
        if (strcmp(key, "examples") != 0)
            fill_all_words(value);
    }
    json_array_foreach(node, i, value) fill_all_words(value);
}

/* Adds a member for each step, of the form that by_values has for its values. */
static void add_steps(json_t *schema, json_t *properties, const json_t *by_values, const char *prefix)
{
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        char name[POINTER_MAX];
        write_pointer(name, "%s%s", prefix, attn_step_name((attn_step)step));
        json_t *member = json_incref(json_object_get(json_object_get(schema, "properties"), name));
        if (member == NULL)
            member = described_elsewhere(schema, name);
        if (!has_form(member) && !choices_of(member))
            merge(member, json_object_get(by_values, lists_values_of((attn_step)step)), name);
        json_object_set_new(properties, name, member);
    }
}

static void fill_steps(json_t *schema, const json_t *by_values)
{
    json_t *prefixes = json_object_get(by_values, "prefixes"), *properties = json_object(), *prefix;
    size_t i;
    if (prefixes == NULL)
        add_steps(schema, properties, by_values, "");
    json_array_foreach(prefixes, i, prefix) add_steps(schema, properties, by_values, json_string_value(prefix));
    json_object_update_missing(properties, json_object_get(schema, "properties"));
    json_object_set_new(schema, "properties", properties);
}

/* The member of an object, which is made when there is none. path is the way to it, and describes it. */
static json_t *enter(json_t *schema, const char *name, const char *path)
{
    json_t *properties = json_object_get(schema, "properties");
    if (properties == NULL)
        json_object_set_new(schema, "properties", properties = json_object());
    json_t *member = json_object_get(properties, name);
    if (member == NULL)
        json_object_set_new(properties, name, member = json_object());
    if (!json_object_get(member, "description"))
        json_object_set_new(member, "description", json_sprintf("Of %s.", path));
    json_object_set_new(schema, "type", json_string("object"));
    json_object_set_new(schema, "additionalProperties", json_false());
    return member;
}

/* An object within an object for each dot of a gradient's path. */
static void fill_gradients(json_t *schema, json_t *form)
{
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++) {
        const char *path = attn_gradient_name((attn_gradient)gradient);
        json_t *node = schema;
        if (!strchr(path, '.')) /* of a step, and sent among the outputs */
            continue;
        for (const char *name = path; *name != '\0';) {
            char part[POINTER_MAX], whole[POINTER_MAX];
            const char *end = name + strcspn(name, ".");
            write_pointer(part, "%.*s", (int)(end - name), name);
            write_pointer(whole, "%.*s", (int)(end - path), path);
            node = enter(node, part, whole);
            name = *end == '.' ? end + 1 : end;
        }
        if (!has_form(node) && !json_object_get(node, "anyOf"))
            merge(node, form, path);
    }
}

/* The parameters of an inference: options and masks, which are described where they stand. */
static void fill_parameters(json_t *schema)
{
    static const char *const owners[] = {"AttentionOptions", "ModelOptions", "Masks"};
    json_t *written = json_object_get(schema, "properties"), *names = lists_of("inference parameters"), *item;
    size_t i;
    json_array_foreach(names, i, item)
    {
        const char *name = json_string_value(item);
        json_t *own = json_object_get(written, name), *member = NULL;
        for (size_t o = 0; o < ARRAY_LENGTH(owners) && member == NULL; o++)
            member = json_object_get(json_object_get(json_object_get(schemas_of(root), owners[o]), "properties"), name);
        if (member == NULL || (own != NULL && has_form(own)))
            continue;
        member = json_deep_copy(member);
        json_object_update(member, own);
        json_object_set_new(written, name, member);
    }
    const char *name;
    json_object_foreach(written, name, item)
    {
        if (!names_word(names, name))
            complain("/%s is described, and is no parameter", name);
    }
    json_decref(names);
}

/* Writes the text with the defaults of settings in the places of {--flag}. */
static json_t *with_settings(const char *text)
{
    char *filled = NULL;
    size_t size;
    FILE *to = open_memstream(&filled, &size);
    for (const char *end; *text != '\0'; text = end) {
        end = strstr(text, "{--");
        if (end == NULL)
            end = text + strlen(text);
        fwrite(text, 1, (size_t)(end - text), to);
        if (*end == '\0')
            break;
        const size_t length = strcspn(end + 3, "}");
        const struct setting *setting = setting_by_flag((struct text_span){end + 3, length});
        if (setting == NULL)
            complain("there is no setting --%.*s", (int)length, end + 3);
        else
            fputs(setting->usual, to);
        end += 3 + length + (end[3 + length] == '}');
    }
    fclose(to);
    json_t *string = json_string(filled);
    free(filled);
    return string;
}

static void fill_lists(json_t *node)
{
    static const char *const ours[] = {"x-request", "x-like",      "x-without",    "x-masks", "x-words",
                                       "x-steps",   "x-gradients", "x-parameters", "x-filled"};
    const char *key;
    json_t *value;
    size_t i;
    if (json_object_get(node, "x-steps"))
        fill_steps(node, json_object_get(node, "x-steps"));
    if (json_object_get(node, "x-gradients"))
        fill_gradients(node, json_object_get(node, "x-gradients"));
    if (json_object_get(node, "x-parameters"))
        fill_parameters(node);
    for (i = 0; i < ARRAY_LENGTH(ours); i++)
        (void)json_object_del(node, ours[i]);
    json_object_foreach(node, key, value)
    {
        if (strcmp(key, "description") == 0 && json_is_string(value) && strstr(json_string_value(value), "{--"))
            json_object_set_new(node, key, with_settings(json_string_value(value)));
        else if (strcmp(key, "examples") != 0)
            fill_lists(value);
    }
    json_array_foreach(node, i, value) fill_lists(value);
}

/* Every component has a title: its name in words. */
static void add_titles(void)
{
    const char *name;
    json_t *schema;
    json_object_foreach(schemas_of(root), name, schema)
    {
        char title[128];
        size_t length = 0;
        for (const char *at = name; *at != '\0' && length + 2 < sizeof title; at++) {
            const bool begins = at > name && isupper((unsigned char)*at);
            if (begins)
                title[length++] = ' ';
            title[length++] = begins ? (char)tolower((unsigned char)*at) : *at;
        }
        if (!json_object_get(schema, "title"))
            json_object_set_new(schema, "title", json_stringn(title, length));
    }
}

/* Adds the members of a file to those of the files before it. depth: how many names deep several files may have a part. */
static void add_part(json_t *whole, json_t *part, unsigned depth)
{
    const char *name;
    json_t *value;
    json_object_foreach(part, name, value)
    {
        json_t *before = json_object_get(whole, name);
        if (before == NULL)
            json_object_set(whole, name, value);
        else if (depth > 0)
            add_part(before, value, depth - 1);
        else
            complain("another file has \"%s\", too", name);
    }
}

/* The text, of all files. */
static json_t *read_source(size_t count, char **paths)
{
    enum { SHARED_DEPTH = 2 }; /* paths; components, and each kind of them */
    json_t *whole = json_object();
    for (size_t i = 0; i < count; i++) {
        json_error_t error;
        current = paths[i];
        json_t *part = json_load_file(paths[i], JSON_REJECT_DUPLICATES, &error);
        if (part == NULL)
            complain("%s, line %d", error.text, error.line);
        add_part(whole, part, SHARED_DEPTH);
        json_decref(part);
    }
    return whole;
}

int main(int count, char **arguments)
{
    current = "usage: openapi FILE.json…";
    source = count > 1 ? read_source((size_t)count - 1, arguments + 1) : NULL;
    if (source == NULL)
        complain("no file");
    if (mistakes > 0)
        return EXIT_FAILURE;
    root = json_deep_copy(source);
    json_object_set_new(json_object_get(root, "info"), "version", json_string(ATTN_VERSION));
    fill_all_words(root);
    fill_requests();
    current = "components";
    fill_lists(root);
    add_titles();
    if (mistakes == 0)
        json_dumpf(root, stdout, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS));
    json_decref(root);
    json_decref(source);
    return mistakes == 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
