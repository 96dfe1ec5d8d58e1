/* origin.c: what a member of a block's request is made of, so that messages name what is in the files. */
#include "codec/checkpoint/reader.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "codec/checkpoint/language/expression.h"

enum { NAME_MAX_BYTES = 100, FIELD_MAX = 160 };

/* The member of config.json that an expression names. The value of some follows from several members. */
static void name_member(const json_t *config, const char *expression, char *name, size_t size)
{
    static const struct {
        const char *value, *members;
    } computed[] = {{"rope", "rope_theta or rope_scaling"},
                    {"interleaved_rope", "rope_theta or rope_scaling"},
                    {"window", "sliding_window"},
                    {"even_window", "sliding_window"}};
    (void)expression_member(config, expression, name, size);
    for (size_t i = 0; i < ARRAY_LENGTH(computed); i++)
        if (strcmp(name, computed[i].value) == 0)
            text_copy(name, size, computed[i].members);
}

/* The expression that makes the member, or the object around it. NULL: a number of the template makes it. */
static const char *expression_at(const json_t *template, const char *field)
{
    struct text_span rest = text_span_of(field), part;
    const json_t *at = template;
    while (json_is_object(at) && text_next(&rest, '.', &part)) {
        char name[FIELD_MAX];
        snprintf(name, sizeof name, "%.*s", (int)part.length, part.at);
        at = json_object_get(at, name);
    }
    const char *text = json_string_value(at);
    return text != NULL && text[0] == '$' ? text + 1 : NULL;
}

/* The tensor of the file whose bytes the entry shows, a part of them, or none after a change of its numbers. */
static const char *tensor_of(const struct tensor_table *table, const attn_tensor *entry)
{
    for (size_t i = 0; i < table->count; i++) {
        const char *begin = table->tensors[i].data, *data = entry->data;
        if (data >= begin && data < begin + table->tensors[i].bytes)
            return table->tensors[i].name;
    }
    return NULL;
}

/* The first entry whose name is the field, or begins with it and a dot. */
static const char *tensor_at(const struct module *module, const char *field)
{
    const size_t length = strlen(field);
    for (size_t i = 0; i < module->count; i++) {
        const char *name = module->entries[i].name;
        if (strncmp(name, field, length) == 0 && (name[length] == '.' || name[length] == '\0'))
            return tensor_of(module->table, &module->entries[i].tensor);
    }
    return NULL;
}

bool origin_find(const struct module *module, const json_t *const templates[2], const char *field, char *words,
                 size_t size)
{
    char path[FIELD_MAX], name[NAME_MAX_BYTES];
    text_copy(path, sizeof path, field[0] == '/' ? field + 1 : field);
    for (char *at = path; *at != '\0'; at++)
        *at = *at == '/' ? '.' : *at;
    const char *tensor = tensor_at(module, path);
    if (tensor != NULL)
        return snprintf(words, size, "%.150s", tensor) > 0;
    for (size_t i = 0; i < 2; i++) {
        const char *expression = expression_at(templates[i], path);
        if (expression == NULL)
            continue;
        name_member(module->config, expression, name, sizeof name);
        return snprintf(words, size, "%.80s in config.json", name) > 0;
    }
    return false;
}
