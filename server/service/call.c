/* call.c: ends a service with an answer or with a refusal. */
#include "service/call.h"

#include <stdarg.h>
#include <stdio.h>

attn_status call_finish(struct call *call)
{
    return call->out->is_ok ? ATTN_OK : attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the answer");
}

attn_status call_refuse(struct call *call, enum call_refusal refusal, const char *format, ...)
{
    char text[sizeof call->err->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    call->refusal = refusal;
    return attn_fail(call->err, ATTN_ERR_VALUE, NULL, "%s", text);
}
