/*
 * prepared_weights.h: the weights of kept layers in the form that kernels need: 16-bit weights as float32, and matrices
 * packed for the kernel (attn/panels.h).
 *
 * Without this, every request would widen and pack the weights again, and for a few tokens that takes longer than the
 * computation. So the prepared weights of the layers that were used last stay, within a limit. float32 holds every
 * float16 and bfloat16 exactly, and panels change no bit, so the answers are the same with and without.
 *
 * All functions are safe from several threads.
 */
#ifndef SERVICE_LAYERS_PREPARED_WEIGHTS_H
#define SERVICE_LAYERS_PREPARED_WEIGHTS_H

#include "attn/runtime.h"
#include "codec/request/kept_layer.h"

struct prepared_store;
struct prepared_weights;

/* Each version of a layer has one, all zero at first. Only prepared_weights.c reads its members. */
struct prepared_slot {
    struct prepared_store *store; /* NULL: nothing was ever prepared */
    struct prepared_weights *weights;
    bool is_preparing;
};

/* NULL without memory. */
struct prepared_store *prepared_store_create(size_t max_bytes);
/* After all versions are gone. NULL is fine. */
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
/* Call it when base is no longer used. NULL is fine. */
void prepared_weights_release(struct prepared_weights *weights);
/* At the end of the version, when no request uses it. */
void prepared_slot_clear(struct prepared_slot *slot);

#endif
