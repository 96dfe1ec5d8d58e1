/* unknown.c: describes a checkpoint that no architecture fits, to help a user write a mapping. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/checkpoint/find.h"

enum { NAME_MAX_BYTES = 512 };

/* Copies the name and replaces each number between dots by "{n}", so that the tensors of all layers share a name. */
static void fold_numbers(const char *name, char *folded, size_t size)
{
    size_t length = 0;
    while (*name != '\0' && length + 4 < size) {
        const bool begins = length == 0 || folded[length - 1] == '.';
        const size_t digits = begins ? strspn(name, "0123456789") : 0;
        if (digits > 0 && (name[digits] == '.' || name[digits] == '\0')) {
            memcpy(folded + length, "{n}", 3);
            length += 3;
            name += digits;
        } else {
            folded[length++] = *name++;
        }
    }
    folded[length] = '\0';
}

/* The tensors that share a folded name. */
struct group {
    char *name;
    size_t count;
    const struct safetensors_tensor *first;
};

static int compare_groups(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    return strcmp(a->name, b->name);
}

/* Groups the tensors by folded name. NULL without memory. */
static struct group *make_groups(const struct checkpoint *checkpoint, attn_arena *arena, size_t *count)
{
    struct group *groups = attn_arena_take(arena, checkpoint->tensor_count, sizeof *groups);
    *count = 0;
    for (size_t i = 0; groups != NULL && i < checkpoint->tensor_count; i++) {
        char name[NAME_MAX_BYTES];
        fold_numbers(checkpoint->tensors[i].name, name, sizeof name);
        char *copy = attn_arena_copy_text(arena, name, strlen(name));
        if (copy == NULL)
            return NULL;
        groups[i] = (struct group){copy, 1, &checkpoint->tensors[i]};
    }
    if (groups == NULL || checkpoint->tensor_count == 0)
        return groups;
    qsort(groups, checkpoint->tensor_count, sizeof *groups, compare_groups);
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        if (*count > 0 && strcmp(groups[*count - 1].name, groups[i].name) == 0)
            groups[*count - 1].count++;
        else
            groups[(*count)++] = groups[i];
    }
    return groups;
}

static void write_group(const struct group *group, struct chunks *out)
{
    chunks_format(out, "  %s  %s [", group->name, group->first->type);
    for (size_t axis = 0; axis < group->first->rank; axis++)
        chunks_format(out, "%s%zu", axis > 0 ? "," : "", group->first->shape[axis]);
    chunks_format(out, group->count > 1 ? "]  %zu times\n" : "]\n", group->count);
}

/* ---- the beginning of a mapping ---- */

/*
 * The length of the path of an attention module at the beginning of name: up to the end of the first part with "att" in
 * it. 0 when no part has it.
 */
static size_t module_length(const char *name)
{
    size_t length = 0;
    for (const char *at = name; *at != '\0'; at++)
        if ((at == name || at[-1] == '.') && strchr(at, '.') != NULL) {
            const size_t part = strcspn(at, ".");
            for (size_t i = 0; i + 3 <= part; i++)
                if (tolower((unsigned char)at[i]) == 'a' && at[i + 1] == 't' && at[i + 2] == 't')
                    length = length > 0 ? length : (size_t)(at - name) + part;
        }
    return length;
}

static void write_module(const char *path, size_t length, const struct group *groups, size_t count, struct chunks *out)
{
    const char *separator = "";
    chunks_format(out, "    {\n      \"path\": \"%.*s\",\n      \"tensors_found\": [", (int)length, path);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(groups[i].name, path, length) != 0 || groups[i].name[length] != '.')
            continue;
        chunks_text(out, separator);
        chunks_json_string(out, groups[i].name + length + 1);
        separator = ", ";
    }
    chunks_text(out, "],\n      \"weights\": {\"layout\": \"out_in\", \"query\": \"\", \"key\": \"\", \"value\": \"\", "
                     "\"output\": \"\"},\n      \"options\": {\"num_heads\": \"$num_attention_heads\"},\n"
                     "      \"masks\": {\"causal\": false}\n    }");
}

static void write_mapping(const struct group *groups, size_t count, struct chunks *out)
{
    const char *before = "", *separator = "\n";
    size_t before_length = 0;
    chunks_text(out, "{\n  \"modules\": [");
    for (size_t i = 0; i < count; i++) {
        const size_t length = module_length(groups[i].name);
        if (length == 0 || (length == before_length && strncmp(groups[i].name, before, length) == 0))
            continue;
        chunks_text(out, separator);
        write_module(groups[i].name, length, groups, count, out);
        before = groups[i].name;
        before_length = length;
        separator = ",\n";
    }
    if (before_length == 0) {
        chunks_text(out, separator);
        write_module("layers.{n}.attention", strlen("layers.{n}.attention"), groups, 0, out);
    }
    chunks_text(out, "\n  ]\n}\n");
}

void checkpoint_describe(const struct checkpoint *checkpoint, struct chunks *out, struct chunks *mapping)
{
    size_t count;
    const struct group *groups = make_groups(checkpoint, out->arena, &count);
    if (groups == NULL) {
        out->is_ok = false;
        return;
    }
    for (size_t i = 0; i < count; i++)
        write_group(&groups[i], out);
    write_mapping(groups, count, mapping);
}
