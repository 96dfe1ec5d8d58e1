/*
 * wide_weights.c: weights that layers keep in 16 bits, as float32 in memory.
 */
#include "service/wide_weights.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "service/layer_store.h"

enum { BLOCK = 1 << 16 }; /* elements that a task widens */

struct wide_weights {
    struct wide_store *store;
    struct layer_version *version;
    attn_arena *memory;
    char *data; /* one tensor after another, in the order of the file, each aligned */
    size_t bytes;
    size_t users;                       /* this and what follows is guarded by the lock of the store */
    struct wide_weights *older, *newer; /* by their last use */
};

struct wide_store {
    size_t max_bytes;
    pthread_mutex_t lock; /* guards what follows, and wide and is_widening of versions */
    struct wide_weights *oldest, *newest;
    size_t bytes; /* those that are being made, too */
};

struct wide_store *wide_store_create(size_t max_bytes)
{
    struct wide_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->max_bytes = max_bytes;
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

void wide_store_destroy(struct wide_store *store)
{
    if (store == NULL)
        return;
    assert(store->newest == NULL);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

size_t wide_store_bytes(struct wide_store *store)
{
    pthread_mutex_lock(&store->lock);
    const size_t bytes = store->bytes;
    pthread_mutex_unlock(&store->lock);
    return bytes;
}

/* ---- tensors ---- */

static bool is_narrow(const struct envelope_attachment *attachment)
{
    const attn_dtype dtype = attachment->tensor.dtype;
    return (dtype == ATTN_F16 || dtype == ATTN_BF16) && strncmp(attachment->path, "weights.", strlen("weights.")) == 0;
}

/* Of a tensor as float32: sizes of a file that was read do not overflow. */
static size_t bytes_of(const attn_tensor *tensor)
{
    const size_t bytes = attn_tensor_count(tensor) * sizeof(float);
    return (bytes + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
}

static size_t bytes_of_all(const struct envelope_base *base)
{
    size_t bytes = 0;
    for (size_t i = 0; i < base->count; i++)
        bytes += is_narrow(&base->attachments[i]) ? bytes_of(&base->attachments[i].tensor) : 0;
    return bytes;
}

static size_t blocks_of(const struct envelope_attachment *attachment)
{
    return is_narrow(attachment) ? (attn_tensor_count(&attachment->tensor) + BLOCK - 1) / BLOCK : 0;
}

struct widening {
    const struct envelope_base *base;
    char *data;
};

/* The block of that index, counted through all tensors. */
static void widen_block(void *argument, size_t index, size_t worker)
{
    const struct widening *widening = argument;
    const struct envelope_attachment *attachment = widening->base->attachments;
    char *to = widening->data;
    (void)worker;
    for (; index >= blocks_of(attachment); attachment++) {
        index -= blocks_of(attachment);
        to += is_narrow(attachment) ? bytes_of(&attachment->tensor) : 0;
    }
    const attn_tensor *from = &attachment->tensor;
    const size_t first = index * BLOCK, left = attn_tensor_count(from) - first;
    const attn_status status = attn_convert(to + first * sizeof(float), ATTN_F32,
                                            (const char *)from->data + first * attn_dtype_bytes(from->dtype),
                                            from->dtype, left < BLOCK ? left : BLOCK, NULL);
    assert(status == ATTN_OK); /* nothing is too large for float32 */
}

static void widen(const struct envelope_base *base, const attn_runtime *runtime, char *data)
{
    struct widening widening = {base, data};
    size_t blocks = 0;
    for (size_t i = 0; i < base->count; i++)
        blocks += blocks_of(&base->attachments[i]);
    runtime->run(runtime->context, blocks, widen_block, &widening);
}

/* False without memory, and base is as it was. */
static bool exchange(const struct wide_weights *weights, attn_arena *arena, struct envelope_base *base)
{
    struct envelope_attachment *wide = attn_arena_take(arena, base->count, sizeof *wide);
    char *data = weights->data;
    if (wide == NULL)
        return false;
    for (size_t i = 0; i < base->count; i++) {
        wide[i] = base->attachments[i];
        if (!is_narrow(&wide[i]))
            continue;
        wide[i].tensor = attn_tensor_view(data, ATTN_F32, wide[i].tensor.rank, wide[i].tensor.shape);
        data += bytes_of(&wide[i].tensor);
    }
    base->attachments = wide;
    return true;
}

/* ---- the list; the lock is held ---- */

static void link_newest(struct wide_store *store, struct wide_weights *weights)
{
    weights->newer = NULL;
    weights->older = store->newest;
    *(store->newest != NULL ? &store->newest->newer : &store->oldest) = weights;
    store->newest = weights;
}

static void unlink_weights(struct wide_store *store, struct wide_weights *weights)
{
    *(weights->older != NULL ? &weights->older->newer : &store->oldest) = weights->newer;
    *(weights->newer != NULL ? &weights->newer->older : &store->newest) = weights->older;
}

static void forget(struct wide_store *store, struct wide_weights *weights)
{
    unlink_weights(store, weights);
    weights->version->wide = NULL;
    store->bytes -= weights->bytes;
}

/* What nobody uses gives way, the oldest first, if that makes room; it goes to *gone, by its newer. */
static bool make_room(struct wide_store *store, size_t bytes, struct wide_weights **gone)
{
    size_t idle = 0;
    for (const struct wide_weights *at = store->oldest; at != NULL; at = at->newer)
        idle += at->users == 0 ? at->bytes : 0;
    if (bytes > store->max_bytes || store->bytes - idle > store->max_bytes - bytes)
        return false;
    for (struct wide_weights *at = store->oldest, *next; at != NULL && store->bytes > store->max_bytes - bytes;
         at = next) {
        next = at->newer;
        if (at->users > 0)
            continue;
        forget(store, at);
        at->newer = *gone;
        *gone = at;
    }
    return true;
}

/* ---- taking ---- */

static void destroy_all(struct wide_weights *gone)
{
    while (gone != NULL) {
        struct wide_weights *next = gone->newer;
        attn_arena_destroy(gone->memory);
        free(gone);
        gone = next;
    }
}

static struct wide_weights *create(struct wide_store *store, struct layer_version *version, size_t bytes)
{
    enum { OVERHEAD = 64 << 10 };
    struct wide_weights *weights = calloc(1, sizeof *weights);
    if (weights == NULL)
        return NULL;
    *weights = (struct wide_weights){.store = store, .version = version, .bytes = bytes, .users = 1};
    weights->memory = attn_arena_create(bytes + OVERHEAD);
    if (weights->memory != NULL)
        weights->data = attn_arena_take(weights->memory, 1, bytes);
    if (weights->data != NULL)
        return weights;
    destroy_all(weights);
    return NULL;
}

/* The room for them is taken already, and given back when there is no memory. */
static struct wide_weights *make(struct wide_store *store, struct layer_version *version, size_t bytes,
                                 const attn_runtime *runtime, const struct envelope_base *base)
{
    struct wide_weights *weights = create(store, version, bytes);
    if (weights != NULL)
        widen(base, runtime, weights->data);
    pthread_mutex_lock(&store->lock);
    version->is_widening = false;
    version->wide = weights;
    if (weights != NULL)
        link_newest(store, weights);
    else
        store->bytes -= bytes;
    pthread_mutex_unlock(&store->lock);
    return weights;
}

struct wide_weights *wide_weights_take(struct wide_store *store, struct layer_version *version,
                                       const attn_runtime *runtime, attn_arena *arena, struct envelope_base *base)
{
    const size_t bytes = bytes_of_all(base);
    struct wide_weights *gone = NULL;
    if (bytes == 0)
        return NULL;
    pthread_mutex_lock(&store->lock);
    struct wide_weights *weights = version->wide;
    const bool makes = weights == NULL && !version->is_widening && make_room(store, bytes, &gone);
    if (makes) {
        version->wide_store = store;
        version->is_widening = true;
        store->bytes += bytes;
    }
    if (weights != NULL) {
        weights->users++;
        unlink_weights(store, weights);
        link_newest(store, weights);
    }
    pthread_mutex_unlock(&store->lock);
    destroy_all(gone);
    if (makes)
        weights = make(store, version, bytes, runtime, base);
    if (weights == NULL || exchange(weights, arena, base))
        return weights;
    wide_weights_release(weights);
    return NULL;
}

void wide_weights_release(struct wide_weights *weights)
{
    if (weights == NULL)
        return;
    pthread_mutex_lock(&weights->store->lock);
    weights->users--;
    pthread_mutex_unlock(&weights->store->lock);
}

void wide_weights_drop(struct layer_version *version)
{
    struct wide_store *store = version->wide_store;
    if (store == NULL)
        return;
    pthread_mutex_lock(&store->lock);
    struct wide_weights *weights = version->wide;
    if (weights != NULL) {
        assert(weights->users == 0);
        forget(store, weights);
        weights->newer = NULL;
    }
    pthread_mutex_unlock(&store->lock);
    destroy_all(weights);
}
