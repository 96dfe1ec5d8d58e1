/*
 * core_names.c: puts JSON's names in place of C's in what the core says about a request.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "codec/request/envelope.h"

/*
 * Members whose pointer is not their C path with slashes for dots. A row also holds for the members within its member.
 */
static const struct {
    const char *name, *pointer;
} members[] = {
    {"grad_output", "/inputs/grad_output"},
    {"masks.blocks.kv_size", "/masks/blocks/size"},
    {"masks.blocks.prefix", "/masks/blocks/length"},
    {"masks.documents_key", "/masks/documents/key"},
    {"masks.documents_query", "/masks/documents/query"},
    {"masks.offset", "/masks/causal/offset"},
    {"masks.window_left", "/masks/window"},
    {"masks.window_right", "/masks/window"},
    {"of", "/options/return"},
    {"options.alibi_slopes", "/options/alibi"},
    {"options.bf16_products", "/options/compute"},
    {"options.branch_norm_eps", "/options/branch_norm/eps"},
    {"options.dropout", "/options/dropout/p"},
    {"options.dropout_attention", "/options/dropout/where"},
    {"options.dropout_residual", "/options/dropout/where"},
    {"options.feed_forward.norm_eps", "/options/feed_forward/norm/eps"},
    {"options.norm_eps", "/options/norm/eps"},
    {"options.norm_position", "/options/norm/position"},
    {"options.qk_norm_eps", "/options/qk_norm/eps"},
    {"options.rope.key", "/options/rope"},
    {"options.rope.query", "/options/rope"},
    {"options.rope.scaling.keeps_fraction", "/options/rope/scaling/truncate"},
    {"options.want", "/options/return"},
    {"output", "/outputs/output"},
    {"weights.qkv_order", "/weights/qkv/order"},
};

/* Words about other members than the one that the error names. */
static const char *const words[][2] = {
    {"documents_key its own", "{\"query\", \"key\"}"},
    {"dropout_residual is", "\"residual\" is"},
    {"options.dropout above 0 and options.dropout_attention",
     "options.dropout on attention with p above 0, and training: true"},
    {"needs options.residual", "needs options.residual: true"},
    {"others in of", "others in return"},
};

const char *envelope_pointer(const char *name, char pointer[ENVELOPE_POINTER_MAX])
{
    const char *start = "/", *rest = name;
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
        const size_t length = strlen(members[i].name);
        if (strncmp(name, members[i].name, length) != 0 || (name[length] != '\0' && name[length] != '.'))
            continue;
        start = members[i].pointer;
        rest = name + length;
    }
    snprintf(pointer, ENVELOPE_POINTER_MAX, "%s%s", start, rest);
    for (char *dot = strchr(pointer, '.'); dot != NULL; dot = strchr(dot, '.'))
        *dot = '/';
    return pointer;
}

/* One list of documents for queries and keys is one member of JSON, and two members of C. */
static void join_documents(const attn_masks *masks, char *pointer)
{
    static const char joined[] = "/masks/documents";
    if (masks->documents_query == masks->documents_key && strncmp(pointer, joined, strlen(joined)) == 0)
        pointer[strlen(joined)] = '\0';
}

/*
 * A sentence about a member starts with the last name of its path, or has the whole path, which becomes the pointer. A
 * missing member keeps its dots, because a pointer to it would point nowhere.
 */
static void reword(char *message, size_t size, const char *name, const char *pointer)
{
    const char *dot = strrchr(name, '.');
    if (dot != NULL && strncmp(message, dot + 1, strlen(dot + 1)) == 0)
        text_replace(message, size, dot + 1, strrchr(pointer, '/') + 1);
    else if (dot != NULL && strstr(message, " is missing") == NULL)
        text_replace(message, size, name, pointer);
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        text_replace(message, size, words[i][0], words[i][1]);
}

attn_status envelope_translate(const struct envelope *envelope, attn_status status, attn_error *err)
{
    char pointer[ENVELOPE_POINTER_MAX];
    static_assert(sizeof pointer <= sizeof err->field, "a pointer fits the field of an error");
    if (status == ATTN_OK || err == NULL || err->field[0] == '\0')
        return status;
    envelope_pointer(err->field, pointer);
    join_documents(&envelope->request.masks, pointer);
    reword(err->message, sizeof err->message, err->field, pointer);
    memcpy(err->field, pointer, sizeof pointer);
    return status;
}
