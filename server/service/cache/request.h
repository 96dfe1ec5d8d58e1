/*
 * request.h: options.cache of a request, and /v1/caches: the server keeps keys and values of a sequence.
 *
 * Every function sees only the caches of call->in.key. The cache of another key is not found, as if it did not exist.
 */
#ifndef SERVICE_CACHE_REQUEST_H
#define SERVICE_CACHE_REQUEST_H

#include "attn/multihead.h"
#include "codec/request/envelope.h"
#include "service/cache/cache.h"
#include "service/call.h"

/* The use that one request makes of a cache. */
struct cache_step {
    struct cache_loan loan; /* entry NULL: the request has no cache */
    attn_tensor key, value; /* inputs.past_key and past_value point here */
    const char *name;
    bool is_shown; /* the answer shows the kept keys or values, so the run makes an array of its own for them */
};

/*
 * Call this after the envelope is decoded. The past becomes that of the cache. present_key and present_value are
 * computed even if the answer does not show them. layer is the number of the layer's version; another version cannot
 * continue the cache. After success, caches_end must follow. Failures are those of services: 410 evicted, 409 in use or
 * begun with another layer, 507 no room.
 */
ATTN_MUST_CHECK attn_status caches_begin(struct call *call, struct envelope *envelope, uint64_t layer,
                                         struct cache_step *step);
/*
 * Call this after the plan, which returned status. Reserves the room, and takes what is written there off the bytes of
 * the plan. shown are the steps that the answer shows. A failure of shapes is reworded in terms of the cache.
 */
ATTN_MUST_CHECK attn_status caches_reserve(struct call *call, struct cache_step *step, attn_plan *plan,
                                           attn_steps shown, attn_status status);
/*
 * Call this right before the run. Grows the cache into the reserved room, and lets the run write its new rows there. The
 * past may move.
 */
ATTN_MUST_CHECK attn_status caches_grow(struct call *call, struct cache_step *step, attn_plan *plan);
/* Call this after the run and the answer. Keeps the new rows when status is ATTN_OK, else leaves the cache unchanged. */
void caches_end(struct call *call, struct cache_step *step, const attn_result *result, attn_status status);

#endif
