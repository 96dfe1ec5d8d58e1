/* error.c: writes an error as the JSON text of an answer. */
#include "codec/answer/forms.h"

#include <stdio.h>

static void write_fragment(struct chunks *out, const char *name, const char *fragment)
{
    if (!fragment[0])
        return;
    chunks_format(out, ",\"%s\":", name);
    chunks_text(out, fragment);
}

static void write_detail(struct chunks *out, const attn_error *error)
{
    char detail[sizeof error->message + 80];
    if (error->line > 0)
        snprintf(detail, sizeof detail, "%s (line %zu, column %zu)", error->message, error->line, error->column);
    else
        snprintf(detail, sizeof detail, "%s", error->message);
    chunks_json_string(out, detail);
}

void answer_write_error(const attn_error *error, const char *type, const char *title, int http_status,
                        const char *request_id, struct chunks *out)
{
    char type_path[64];
    snprintf(type_path, sizeof type_path, "/problems/%s", type);
    chunks_text(out, "{\"error\":");
    chunks_json_string(out, error->message);
    chunks_text(out, ",\"type\":");
    chunks_json_string(out, type_path);
    chunks_text(out, ",\"title\":");
    chunks_json_string(out, title);
    chunks_format(out, ",\"status\":%d,\"detail\":", http_status);
    write_detail(out, error);
    if (error->field[0]) {
        chunks_text(out, ",\"pointer\":");
        chunks_json_string(out, error->field);
    }
    write_fragment(out, "expected", error->expected);
    write_fragment(out, "received", error->received);
    if (error->line > 0)
        chunks_format(out, ",\"line\":%zu,\"column\":%zu", error->line, error->column);
    chunks_text(out, ",\"request_id\":");
    chunks_json_string(out, request_id);
    chunks_text(out, "}");
}
