/*
 * prepared.h: prepares the weights of kept layers for the kernels: packs matrices into panels (attn/panels.h),
 * which stay in 16 bits if the weights are, and widens other 16-bit weights to float32. Those are biases and norms, and
 * matrices where the BLAS multiplies. Weights of 4 bits (codec/tensor/mxfp4.h) become bfloat16. Weights of a slot that
 * keeps its halves stay as they are where the kernel multiplies: they are in memory already, and would be there twice.
 *
 * Without this, every request would pack or widen the weights again. For a few tokens, that takes longer than the
 * computation. So the prepared weights of the most recently used layers stay in memory, within a limit. float32 holds
 * every float16 and bfloat16 exactly, and panels change no bit, so prepared weights do not change the answers.
 *
 * All functions are safe from several threads.
 */
#ifndef SERVICE_REGISTRY_PREPARED_H
#define SERVICE_REGISTRY_PREPARED_H

#include "attn/runtime.h"
#include "codec/request/kept_layer.h"

struct prepared_store;
struct prepared_weights;

/* Each version of a layer has a slot, all zero at first but for keeps_halves. Only prepared.c reads its members. */
struct prepared_slot {
    bool keeps_halves;
    struct prepared_store *store; /* NULL: nothing was prepared yet */
    struct prepared_weights *weights;
    bool is_preparing;
    double made_ms; /* that the last preparation took */
};

/* What the weights of slots take, and took. */
struct prepared_sum {
    size_t bytes;
    double ms;
};

/* Returns NULL without memory. */
struct prepared_store *prepared_store_create(size_t max_bytes);
/* Call this after all versions are gone. store may be NULL. */
void prepared_store_destroy(struct prepared_store *store);
size_t prepared_store_bytes(struct prepared_store *store);
size_t prepared_store_limit_bytes(const struct prepared_store *store);

/*
 * Replaces the weights of base, which are those of the file, by prepared ones. They are made if slot has none; the list
 * of base is then in arena. Returns NULL and leaves base unchanged when nothing in it can be prepared, when there is no
 * room, while another request prepares it, and when runtime says that the request is cancelled, which it is asked before
 * each block and panel. slot and facts belong to one version, which must outlive the prepared
 * weights.
 */
struct prepared_weights *prepared_weights_take(struct prepared_store *store, struct prepared_slot *slot,
                                               const struct kept_layer_facts *facts, const attn_runtime *runtime,
                                               attn_arena *arena, struct envelope_source *base);
/* Call this when base is no longer used. weights may be NULL. */
void prepared_weights_release(struct prepared_weights *weights);
/* Adds the weights of the slot, if it has any. */
void prepared_slot_add(const struct prepared_slot *slot, struct prepared_sum *sum);
/* Call this at the end of the version, when no request uses it. */
void prepared_slot_clear(struct prepared_slot *slot);

#endif
