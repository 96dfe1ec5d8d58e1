/*
 * conditions.h: If-Match and If-None-Match of a request for a layer (RFC 9110, section 13.1), and the digest of a
 * version, which entity tags contain. Failures fill in call->refusal and *call->err.
 */
#ifndef SERVICE_REGISTRY_LAYER_CONDITIONS_H
#define SERVICE_REGISTRY_LAYER_CONDITIONS_H

#include "service/call.h"
#include "service/registry/layer/version.h"

/*
 * Returns the digest of the version; this may have to compute it. NULL: the request was cancelled (ATTN_ERR_CANCELLED).
 */
const char *layer_digest(struct layer_version *version, struct call *call);

/*
 * Whether call's conditions hold for that version. version NULL: there is no layer. The tag of any representation
 * counts as a tag of the version, because a change concerns the version.
 */
ATTN_MUST_CHECK attn_status layer_check_match(struct layer_version *version, struct call *call); /* If-Match alone */
/* Also checks If-None-Match, which forbids a change if the version exists. */
ATTN_MUST_CHECK attn_status layer_check_conditions(struct layer_version *version, struct call *call);
/* Whether the two functions above would compute the digest: it is unknown, and a condition has a tag. */
bool layer_conditions_lack_digest(struct layer_version *version, const struct call *call);

#endif
