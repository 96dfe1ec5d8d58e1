/*
 * caches.h: options.cache of a request, and /v1/caches: keys and values of a sequence that the server keeps.
 *
 * Every function sees the caches of call->in.key alone: another key's cache is not found, as if it did not exist.
 */
#ifndef SERVICE_CACHE_CACHES_H
#define SERVICE_CACHE_CACHES_H

#include "attn/multihead.h"
#include "codec/request/envelope.h"
#include "service/cache/cache_store.h"
#include "service/call.h"

service_function caches_list, caches_get, caches_remove;

/* The use that one request makes of a cache. */
struct cache_step {
    struct cache_loan loan; /* entry NULL: the request has none */
    attn_tensor key, value; /* that inputs.past_key and past_value point to */
    const char *name;
};

/*
 * After the envelope is decoded: its past becomes that of the cache, and present_key and present_value are computed,
 * whether the answer shows them or not. layer: the number of its version, so that no other
 * one goes on with the cache. After success, caches_end must follow. Failures as of services: 410 gone, 409 in use or
 * of another layer, 507 no room.
 */
ATTN_MUST_CHECK attn_status caches_begin(struct call *call, struct envelope *envelope, uint64_t layer,
                                         struct cache_step *step);
/* After the plan, which returned status: takes the room. A failure of shapes is told in words of the cache. */
ATTN_MUST_CHECK attn_status caches_reserve(struct call *call, const struct cache_step *step, const attn_plan *plan,
                                           attn_status status);
/* After the run: appends when status is ATTN_OK, else leaves the cache as it was. Returns status or its own failure. */
ATTN_MUST_CHECK attn_status caches_end(struct call *call, struct cache_step *step, const attn_result *result,
                                       attn_status status);

#endif
