/*
 * refusal.h: why something about a layer is refused, when it is not the request's own fault: call->refusal and
 * *call->err are filled in.
 */
#ifndef SERVICE_REFUSAL_H
#define SERVICE_REFUSAL_H

#include "service/call.h"
#include "service/layers/store.h"

attn_status layer_refuse(struct call *call, enum call_refusal refusal, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What the directory refused. */
attn_status layer_refuse_errno(struct call *call, int error);

/* The digest of the version, which may have to be computed. NULL: the request was cancelled (ATTN_ERR_CANCELLED). */
const char *layer_digest(struct layer_version *version, struct call *call);

/*
 * Whether call's conditions hold for that version; NULL: none is there. A tag of any of its representations is one of
 * the version, since it is the version that a change is about.
 */
ATTN_MUST_CHECK attn_status layer_check_match(struct layer_version *version, struct call *call); /* If-Match alone */
/* And If-None-Match, as requests that do something mean it: not if it is there. */
ATTN_MUST_CHECK attn_status layer_check_conditions(struct layer_version *version, struct call *call);
/* Whether these two compute the digest of that version first: it is not known, and a condition names a tag. */
bool layer_conditions_lack_digest(struct layer_version *version, const struct call *call);

#endif
