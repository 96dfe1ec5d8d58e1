/* fail_shape.c: the error about a tensor whose shape does not fit. */
#include "base/fail_shape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

attn_status attn_fail_shape(attn_error *err, const char *field, const attn_tensor *received, const char *expected,
                            const char *format, ...)
{
    char message[sizeof err->message], shape[64];
    va_list arguments;
    if (err == NULL)
        return ATTN_ERR_SHAPE;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    attn_fail(err, ATTN_ERR_SHAPE, field, "%s", message);
    return attn_expect(err, expected, attn_shape_text(shape, sizeof shape, received->rank, received->shape));
}

const char *attn_last_name(const char *field)
{
    const char *dot = strrchr(field, '.');
    return dot == NULL ? field : dot + 1;
}
