/* labels.c: the labels of the classes of a head. */
#include <stdio.h>
#include <string.h>

#include "codec/bytes/bound.h"
#include "codec/checkpoint/description.h"

const char *model_label(const struct model_head *head, size_t class, attn_arena *arena)
{
    char text[32];
    if (head->labels[class] != NULL)
        return head->labels[class];
    return attn_arena_copy_text(arena, text, (size_t)snprintf(text, sizeof text, "LABEL_%zu", class));
}

void model_write_labels(const struct model_head *head, struct chunks *out)
{
    for (size_t i = 0; i < head->words && out->is_ok; i++) {
        chunks_text(out, i > 0 ? "," : "[");
        if (head->labels[i] != NULL)
            chunks_json_string(out, head->labels[i]);
        else
            chunks_format(out, "\"LABEL_%zu\"", i);
    }
    chunks_text(out, "]");
}

size_t model_labels_bound(const struct model_head *head)
{
    enum { FRAME_BYTES = 32, BYTE_BYTES = 6 /* \u001f */ };
    size_t bound = 2;
    for (size_t i = 0; i < head->words; i++)
        bound = bound_add(bound + FRAME_BYTES, head->labels[i] != NULL ? strlen(head->labels[i]) : 0, BYTE_BYTES);
    return bound;
}
