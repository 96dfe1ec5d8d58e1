/*
 * layer_refusal.c: why something about a layer is refused, when it is not the request's own fault.
 */
#include "service/layer_refusal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

attn_status layer_refuse(struct call *call, enum call_refusal refusal, const char *format, ...)
{
    char text[sizeof call->err->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    call->refusal = refusal;
    return attn_fail(call->err, ATTN_ERR_VALUE, NULL, "%s", text);
}

attn_status layer_refuse_errno(struct call *call, int error)
{
    char text[128];
    const char *why = strerror_r(error, text, sizeof text);
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return layer_refuse(call, CALL_STORE_FULL, "the directory of layers has no room left: %s", why);
    case EROFS:
    case EACCES:
    case EPERM:
        return layer_refuse(call, CALL_READ_ONLY, "the directory of layers cannot be written to: %s", why);
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "no memory to keep the layer: %s", why);
    default:
        return layer_refuse(call, CALL_STORE_FAILED, "the directory of layers failed: %s", why);
    }
}

/* ---- conditions (RFC 9110, sections 8.8.3 and 13.1) ---- */

/* Whether a list of entity tags names the digest; a weak tag does only where weakness is fine. */
static bool list_names(const char *list, const char *digest, bool weak_is_fine)
{
    struct text_span rest = text_span_of(list), tag;
    while (text_next(&rest, ',', &tag)) {
        if (text_equal(tag, "*"))
            return digest != NULL;
        const bool is_weak = tag.length > 2 && tag.at[0] == 'W' && tag.at[1] == '/';
        if (is_weak)
            tag = (struct text_span){tag.at + 2, tag.length - 2};
        if ((is_weak && !weak_is_fine) || tag.length < 2 || tag.at[0] != '"' || tag.at[tag.length - 1] != '"')
            continue;
        if (digest != NULL && text_equal((struct text_span){tag.at + 1, tag.length - 2}, digest))
            return true;
    }
    return false;
}

attn_status layer_check_conditions(struct layer_version *version, struct call *call)
{
    if (call->if_match == NULL && call->if_none_match == NULL)
        return ATTN_OK;
    const char *digest = version != NULL ? layer_version_digest(version) : NULL;
    if (call->if_match != NULL && !list_names(call->if_match, digest, false))
        return layer_refuse(call, CALL_PRECONDITION, "If-Match asks for another version: %s%s",
                            digest != NULL ? "the layer is now " : "there is no such layer",
                            digest != NULL ? digest : "");
    if (call->if_match == NULL && call->if_none_match != NULL && list_names(call->if_none_match, digest, true))
        return layer_refuse(call, CALL_PRECONDITION, "If-None-Match excludes it: the layer is there, as %s",
                            digest != NULL ? digest : "");
    return ATTN_OK;
}
