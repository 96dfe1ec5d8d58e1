/*
 * prepared_weights.h: the weights of kept layers as computing wants them: those of 16 bits as float32, and matrices
 * packed for the kernel (attn/panels.h).
 *
 * Widening the weights of a layer takes longer than computing with a few tokens, and packing them a good part of it;
 * every request would do both anew. So those of the layers that were used last stay, within a bound. float32 holds
 * every float16 and bfloat16 exactly, and panels change no bit: no number of an answer depends on what is prepared.
 *
 * All functions are safe from several threads.
 */
#ifndef SERVICE_LAYERS_PREPARED_WEIGHTS_H
#define SERVICE_LAYERS_PREPARED_WEIGHTS_H

#include "attn/runtime.h"
#include "codec/request/kept_layer.h"

struct prepared_store;
struct prepared_weights;

/* What a version of a layer owns of it; all zero at first. Its members are prepared_weights.c's own. */
struct prepared_slot {
    struct prepared_store *store; /* NULL: nothing was ever prepared */
    struct prepared_weights *weights;
    bool is_preparing;
};

/* NULL without memory. */
struct prepared_store *prepared_store_create(size_t max_bytes);
/* After all versions. NULL is fine. */
void prepared_store_destroy(struct prepared_store *store);
size_t prepared_store_bytes(struct prepared_store *store);

/*
 * Exchanges the weights of base, which are those of the file, for prepared ones, which are made if slot has none; the
 * list of base is then in arena. NULL: base is as it was, because nothing in it can be prepared, or there is no room,
 * or another request is preparing it. slot and facts are of one version, which outlives what is taken.
 */
struct prepared_weights *prepared_weights_take(struct prepared_store *store, struct prepared_slot *slot,
                                               const struct kept_layer_facts *facts, const attn_runtime *runtime,
                                               attn_arena *arena, struct envelope_source *base);
/* When base is not used any more. NULL is fine. */
void prepared_weights_release(struct prepared_weights *weights);
/* At the end of the version: nobody uses what the slot has. */
void prepared_slot_clear(struct prepared_slot *slot);

#endif
