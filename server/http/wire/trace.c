/* trace.c: reads and writes the place of a request in a distributed trace. */
#include "http/wire/wire.h"

#include <stdio.h>
#include <string.h>

enum { FIELD_LENGTH = TRACE_PARENT_TEXT - 1, ID_AT = 3, SPAN_AT = 36, FLAGS_AT = 53 };

static bool is_hex(const char *text, size_t length)
{
    return strspn(text, "0123456789abcdef") >= length;
}

static bool is_zero(const char *text, size_t length)
{
    return strspn(text, "0") >= length;
}

/* A later version may have more after the fields of version 00. */
static bool is_valid(const char *field)
{
    const size_t length = strlen(field);
    if (length < FIELD_LENGTH || !is_hex(field, 2) || strncmp(field, "ff", 2) == 0)
        return false;
    if (length > FIELD_LENGTH && (strncmp(field, "00", 2) == 0 || field[FIELD_LENGTH] != '-'))
        return false;
    return field[2] == '-' && is_hex(field + ID_AT, TRACE_ID_DIGITS) && !is_zero(field + ID_AT, TRACE_ID_DIGITS) &&
           field[SPAN_AT - 1] == '-' && is_hex(field + SPAN_AT, TRACE_SPAN_DIGITS) &&
           !is_zero(field + SPAN_AT, TRACE_SPAN_DIGITS) && field[FLAGS_AT - 1] == '-' && is_hex(field + FLAGS_AT, 2);
}

bool trace_begin(struct trace *trace, const char *field, uint64_t random)
{
    *trace = (struct trace){.id = ""};
    if (field == NULL || !is_valid(field))
        return false;
    snprintf(trace->id, sizeof trace->id, "%.*s", TRACE_ID_DIGITS, field + ID_AT);
    snprintf(trace->parent, sizeof trace->parent, "%.*s", TRACE_SPAN_DIGITS, field + SPAN_AT);
    snprintf(trace->flags, sizeof trace->flags, "%.2s", field + FLAGS_AT);
    snprintf(trace->span, sizeof trace->span, "%016llx", (unsigned long long)(random != 0 ? random : 1));
    return true;
}

const char *trace_write(const struct trace *trace, char text[TRACE_PARENT_TEXT])
{
    snprintf(text, TRACE_PARENT_TEXT, "00-%s-%s-%s", trace->id, trace->span, trace->flags);
    return text;
}

void trace_log(const struct trace *trace, struct log_line *line)
{
    if (trace->id[0] == '\0')
        return;
    log_text(line, "trace_id", trace->id);
    log_text(line, "span_id", trace->span);
    log_text(line, "parent_id", trace->parent);
    log_text(line, "trace_flags", trace->flags);
}
