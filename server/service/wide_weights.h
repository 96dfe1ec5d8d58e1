/*
 * wide_weights.h: weights that layers keep in 16 bits, as float32 in memory.
 *
 * Widening the weights of a layer takes longer than computing with a few tokens, and every request would do it anew. So
 * those of the layers that were used last stay, within a bound. float32 holds every float16 and bfloat16 exactly: no
 * number of an answer depends on it, whatever it computes with.
 *
 * All functions are safe from several threads.
 */
#ifndef SERVICE_WIDE_WEIGHTS_H
#define SERVICE_WIDE_WEIGHTS_H

#include "attn/runtime.h"
#include "codec/envelope.h"

struct layer_version;
struct wide_store;
struct wide_weights;

/* NULL without memory. */
struct wide_store *wide_store_create(size_t max_bytes);
/* After all versions. NULL is fine. */
void wide_store_destroy(struct wide_store *store);
size_t wide_store_bytes(struct wide_store *store);

/*
 * Exchanges the 16-bit weights of base, which is what the version's file holds, for wide ones, which are made if they
 * are not there; the list of base is then in arena. NULL: base is as it was, since it has none, or there is no room, or
 * another request is making them. The version outlives what is taken.
 */
struct wide_weights *wide_weights_take(struct wide_store *store, struct layer_version *version,
                                       const attn_runtime *runtime, attn_arena *arena, struct envelope_base *base);
/* When base is not used any more. NULL is fine. */
void wide_weights_release(struct wide_weights *weights);
/* The version is at its end: nobody uses what there may be of it. */
void wide_weights_drop(struct layer_version *version);

#endif
