/* conditions.c: checks If-Match and If-None-Match of a request, and computes the digest that they need. */
#include "service/registry/layer/version.h"

#include <string.h>

const char *layer_digest(struct layer_version *version, struct call *call)
{
    const char *digest = layer_version_digest(version, call->in.runtime);
    if (digest == NULL)
        (void)attn_fail(call->err, ATTN_ERR_CANCELLED, NULL, "the digest of the layer was not finished");
    return digest;
}

/* ---- conditions (RFC 9110, sections 8.8.3 and 13.1) ---- */

/* Whether the tag belongs to the version: "DIGEST", or "DIGEST-…" with a representation after the hyphen. */
static bool is_tag_of(struct text_span tag, const char *digest)
{
    enum { END = DIGEST_TEXT }; /* offset of the character after quote and digest */
    if (tag.length <= END || tag.at[0] != '"' || memcmp(tag.at + 1, digest, END - 1) != 0)
        return false;
    return tag.at[END] == '-' ? tag.at[tag.length - 1] == '"' : tag.at[END] == '"' && tag.length == END + 1;
}

/* Whether a list of entity tags contains the version of that digest. A weak tag counts only if weak_is_fine. */
static bool list_names(const char *list, const char *digest, bool weak_is_fine)
{
    struct text_span rest = text_span_of(list), tag;
    bool is_weak;
    while (digest != NULL && text_next_tag(&rest, &tag, &is_weak))
        if ((!is_weak && text_equal(tag, "*")) || ((!is_weak || weak_is_fine) && is_tag_of(tag, digest)))
            return true;
    return false;
}

/* Whether the list has "*". It matches every version, so no digest is needed. */
static bool names_any(const char *list)
{
    struct text_span rest = text_span_of(list), tag;
    bool is_weak;
    while (text_next_tag(&rest, &tag, &is_weak))
        if (!is_weak && text_equal(tag, "*"))
            return true;
    return false;
}

/* The digest to compare with a list. "" when it is unknown and not needed. NULL: cancelled. */
static const char *digest_for(const char *list, struct layer_version *version, struct call *call,
                              char known[DIGEST_TEXT])
{
    return names_any(list) ? layer_version_known_digest(version, known) : layer_digest(version, call);
}

bool layer_conditions_lack_digest(struct layer_version *version, const struct call *call)
{
    char known[DIGEST_TEXT];
    const bool names_a_tag = (call->in.if_match != NULL && !names_any(call->in.if_match)) ||
                             (call->in.if_none_match != NULL && !names_any(call->in.if_none_match));
    return names_a_tag && version != NULL && layer_version_known_digest(version, known)[0] == '\0';
}

attn_status layer_check_match(struct layer_version *version, struct call *call)
{
    char known[DIGEST_TEXT];
    if (call->in.if_match == NULL)
        return ATTN_OK;
    const char *digest = version != NULL ? digest_for(call->in.if_match, version, call, known) : NULL;
    if (version != NULL && digest == NULL)
        return ATTN_ERR_CANCELLED;
    if (list_names(call->in.if_match, digest, false))
        return ATTN_OK;
    return call_refuse(call, CALL_PRECONDITION, "If-Match asks for another version: %s%s",
                       digest != NULL ? "the layer is now " : "there is no such layer", digest != NULL ? digest : "");
}

attn_status layer_check_conditions(struct layer_version *version, struct call *call)
{
    char known[DIGEST_TEXT];
    attn_status status = layer_check_match(version, call);
    if (status != ATTN_OK || call->in.if_none_match == NULL || version == NULL)
        return status;
    const char *digest = digest_for(call->in.if_none_match, version, call, known);
    if (digest == NULL)
        return ATTN_ERR_CANCELLED;
    if (list_names(call->in.if_none_match, digest, true))
        return call_refuse(call, CALL_PRECONDITION, "If-None-Match excludes it: the layer is there%s%s",
                           digest[0] != '\0' ? ", as " : "", digest);
    return ATTN_OK;
}
