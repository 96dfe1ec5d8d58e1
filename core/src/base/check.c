/* check.c: refuses a request, with the names that its caller gives to members. */
#include "base/check.h"

#include <stdio.h>
#include <string.h>

struct text {
    char *bytes;
    size_t size, length; /* length stays below size, for the NUL */
};

static void append(struct text *text, const char *bytes, size_t count)
{
    const size_t room = text->size - text->length - 1, n = count < room ? count : room;
    memcpy(text->bytes + text->length, bytes, n);
    text->length += n;
    text->bytes[text->length] = '\0';
}

static void put_name(const struct attn_check *check, const char *path, char name[static sizeof check->err->field])
{
    if (check->names != NULL)
        check->names(check->request, path, name, sizeof check->err->field);
    else
        snprintf(name, sizeof check->err->field, "%s", path);
}

/* Copies message and puts a name in place of each mark. */
static void put_names(const struct attn_check *check, const char *field, const char *message, struct text *to)
{
    char path[sizeof check->err->field], name[sizeof check->err->field];
    for (size_t plain = strcspn(message, "@~"); message[plain] != '\0'; plain = strcspn(message, "@~")) {
        const char *mark = message + plain;
        size_t length = strspn(mark + 1, "abcdefghijklmnopqrstuvwxyz0123456789_.");
        length -= length > 0 && mark[length] == '.'; /* the end of a sentence */
        append(to, message, plain);
        snprintf(path, sizeof path, "%.*s", (int)length, mark + 1);
        put_name(check, length > 0 ? path : field, name);
        const char *last = name + strlen(name);
        while (*mark == '~' && last > name && last[-1] != '.' && last[-1] != '/')
            last--;
        append(to, *mark == '~' ? last : name, strlen(*mark == '~' ? last : name));
        message = mark + 1 + length;
    }
    append(to, message, strlen(message));
}

__attribute__((format(printf, 4, 0))) static bool refuse(struct attn_check *check, attn_status status,
                                                         const char *field, const char *format, va_list arguments)
{
    char marked[sizeof check->err->message], message[sizeof check->err->message] = "";
    char name[sizeof check->err->field] = "";
    if (check->status != ATTN_OK)
        return false;
    check->status = status;
    if (check->err == NULL)
        return false;
    vsnprintf(marked, sizeof marked, format, arguments);
    put_names(check, field, marked, &(struct text){message, sizeof message, 0});
    if (field != NULL)
        put_name(check, field, name);
    attn_fail(check->err, status, name, "%s", message);
    return false;
}

bool attn_refuse(struct attn_check *check, attn_status status, const char *field, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refuse(check, status, field, format, arguments);
    va_end(arguments);
    return false;
}

bool attn_refuse_shape(struct attn_check *check, const char *field, const attn_tensor *received, const char *expected,
                       const char *format, ...)
{
    const bool is_first = check->status == ATTN_OK;
    char shape[64];
    va_list arguments;
    va_start(arguments, format);
    refuse(check, ATTN_ERR_SHAPE, field, format, arguments);
    va_end(arguments);
    if (is_first && check->err != NULL)
        attn_expect(check->err, expected, attn_shape_text(shape, sizeof shape, received->rank, received->shape));
    return false;
}

bool attn_refuse_stopped(struct attn_check *check)
{
    return attn_refuse(check, ATTN_ERR_CANCELLED, NULL, "stopped before the end");
}

bool attn_refuse_no_memory(struct attn_check *check)
{
    if (check->status == ATTN_OK)
        check->status = attn_fail_no_memory(check->err);
    return false;
}
