/* prepared.c: prepares the weights of kept layers for the kernels. */
#include "service/registry/prepared.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "attn/panels.h"
#include "base/clock.h"
#include "codec/bytes/pace.h"
#include "codec/tensor/mxfp4.h"

enum { BLOCK = 1 << 16 }; /* elements that one task widens */

struct prepared_weights {
    struct prepared_store *store;
    struct prepared_slot *slot;
    attn_arena *memory;
    char *data; /* the prepared tensors in the order of the file: wide numbers or panels; each is aligned */
    size_t bytes;
    size_t users;                           /* the lock of the store guards this and what follows */
    struct prepared_weights *older, *newer; /* neighbours in the order of last use */
};

struct prepared_store {
    size_t max_bytes;
    pthread_mutex_t lock; /* guards what follows, and weights and is_preparing of slots */
    struct prepared_weights *oldest, *newest;
    size_t bytes; /* includes weights that are being prepared */
};

struct prepared_store *prepared_store_create(size_t max_bytes)
{
    struct prepared_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->max_bytes = max_bytes;
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

void prepared_store_destroy(struct prepared_store *store)
{
    if (store == NULL)
        return;
    assert(store->newest == NULL);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

size_t prepared_store_limit_bytes(const struct prepared_store *store)
{
    return store->max_bytes;
}

size_t prepared_store_bytes(struct prepared_store *store)
{
    pthread_mutex_lock(&store->lock);
    const size_t bytes = store->bytes;
    pthread_mutex_unlock(&store->lock);
    return bytes;
}

/* ---- tensors ---- */

/* The conditions for which the weights of one layer are prepared. */
struct preparing {
    const struct envelope_source *base;
    const attn_runtime *runtime;
    attn_layout layout, expert_layout;
    bool packs; /* the layer computes in float32, so matrices are packed for the kernel of runtime */
    bool keeps_halves;
    char *data;
    attn_arena *arena; /* of the request, for what follows */
    size_t *blocks;    /* that end with each tensor, and with those before it */
    size_t *places;    /* in data, of each tensor */
};

static bool is_narrow(const struct envelope_attachment *attachment)
{
    const attn_dtype dtype = attachment->tensor.dtype;
    return (dtype == ATTN_F16 || dtype == ATTN_BF16) && text_begins(attachment->path, "weights.");
}

/* Whether the tensor is the blocks of a weight of 4 bits (mxfp4.h), whose scales are the next tensor. */
static bool is_packed(const struct envelope_source *base, size_t i)
{
    const struct envelope_attachment *attachment = &base->attachments[i];
    return text_ends(attachment->path, ".blocks") && attachment->tensor.rank == 3 && i + 1 < base->count &&
           text_ends(attachment[1].path, ".scales");
}

/* The numbers of a weight of 4 bits. Its layer was checked, so the blocks are whole. */
static size_t packed_numbers(const struct envelope_attachment *attachment)
{
    return attn_tensor_count(&attachment->tensor) / MXFP4_BYTES * MXFP4_NUMBERS;
}

/* Whether there are weights that would be converted in each request. */
static bool is_any_converted(const struct envelope_source *base)
{
    for (size_t i = 0; i < base->count; i++)
        if (is_narrow(&base->attachments[i]) || is_packed(base, i))
            return true;
    return false;
}

/* The matrices of the weights: not the gain of a norm, which may have two dimensions, too. */
static bool is_matrix(const char *path)
{
    return text_begins(path, "weights.") && text_ends(path, ".weight") && strstr(path, "norm.weight") == NULL;
}

static attn_layout layout_of(const struct preparing *preparing, const struct envelope_attachment *attachment)
{
    static const char experts[] = "weights.feed_forward.experts.each.";
    return text_begins(attachment->path, experts) ? preparing->expert_layout : preparing->layout;
}

static size_t aligned(size_t bytes)
{
    return (bytes + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
}

/* The bytes of the panels that the kernel could have of the tensor, in its own type. 0: it has none. */
static size_t possible_bytes(const struct preparing *preparing, const struct envelope_attachment *attachment)
{
    const attn_tensor *tensor = &attachment->tensor;
    if (!preparing->packs || !is_matrix(attachment->path) ||
        (uintptr_t)tensor->data % attn_dtype_bytes(tensor->dtype) != 0)
        return 0;
    return aligned(attn_panels_bytes(preparing->runtime->kernel, layout_of(preparing, attachment), tensor));
}

/* The kernels read matrices of 16 bits, but no biases and norms, and the BLAS reads no numbers of 16 bits at all. */
static bool is_widened(const struct preparing *preparing, const struct envelope_attachment *attachment)
{
    return is_narrow(attachment) && possible_bytes(preparing, attachment) == 0;
}

/* 0: the tensor is not packed. */
static size_t panels_bytes(const struct preparing *preparing, const struct envelope_attachment *attachment)
{
    return preparing->keeps_halves && is_narrow(attachment) ? 0 : possible_bytes(preparing, attachment);
}

/* The tensor for the core: in place in the file, or float32 at data. */
static attn_tensor prepared_view(const struct preparing *preparing, const struct envelope_attachment *attachment,
                                 char *data)
{
    const attn_tensor *tensor = &attachment->tensor;
    return is_widened(preparing, attachment) ? attn_tensor_view(data, ATTN_F32, tensor->rank, tensor->shape) : *tensor;
}

/* An earlier tensor with the same numbers, whose prepared form serves both: DeBERTa shares weights. Else i itself. */
static size_t twin_of(const struct envelope_source *base, size_t i)
{
    static const char may_share[] = "weights.relative_";
    const struct envelope_attachment *own = &base->attachments[i];
    for (size_t k = 0; k < i && text_begins(own->path, may_share); k++)
        if (base->attachments[k].tensor.data == own->tensor.data && is_matrix(base->attachments[k].path) &&
            is_matrix(own->path))
            return k;
    return i;
}

/*
 * The bytes of the tensor as float32, of its panels, or of a packed weight as bfloat16. The sizes of a file that was read
 * cannot overflow.
 */
static size_t bytes_of(const struct preparing *preparing, size_t i)
{
    const struct envelope_attachment *attachment = &preparing->base->attachments[i];
    if (twin_of(preparing->base, i) != i)
        return 0;
    if (is_packed(preparing->base, i))
        return aligned(packed_numbers(attachment) * sizeof(uint16_t));
    return is_widened(preparing, attachment) ? aligned(attn_tensor_count(&attachment->tensor) * sizeof(float))
                                             : panels_bytes(preparing, attachment);
}

static size_t bytes_of_all(const struct preparing *preparing)
{
    size_t bytes = 0;
    for (size_t i = 0; i < preparing->base->count; i++)
        bytes += bytes_of(preparing, i);
    return bytes;
}

static size_t blocks_of(const struct preparing *preparing, size_t i)
{
    const struct envelope_attachment *attachment = &preparing->base->attachments[i];
    if (twin_of(preparing->base, i) != i)
        return 0;
    if (is_packed(preparing->base, i))
        return (packed_numbers(attachment) + BLOCK - 1) / BLOCK;
    return is_widened(preparing, attachment) ? (attn_tensor_count(&attachment->tensor) + BLOCK - 1) / BLOCK : 0;
}

/* Widens count numbers of a packed weight from number first on, which begins a block. */
static void widen_packed(const struct envelope_attachment *attachment, size_t first, size_t count, char *to)
{
    const size_t block = first / MXFP4_NUMBERS;
    const uint8_t *blocks = attachment[0].tensor.data, *scales = attachment[1].tensor.data;
    mxfp4_widen(blocks + block * MXFP4_BYTES, scales + block, count / MXFP4_NUMBERS, ATTN_BF16,
                to + first * sizeof(uint16_t));
}

/* The tensor that the block belongs to: the first one with which more blocks end. */
static size_t tensor_of_block(const struct preparing *preparing, size_t block)
{
    size_t low = 0, high = preparing->base->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (preparing->blocks[middle] > block)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Widens the block of that index, unless the request is cancelled. Blocks are counted through all tensors. */
static void widen_block(void *argument, size_t index, size_t worker)
{
    const struct preparing *preparing = argument;
    (void)worker;
    if (pace_is_cancelled(preparing->runtime))
        return;
    const size_t i = tensor_of_block(preparing, index),
                 first = BLOCK * (index - (i > 0 ? preparing->blocks[i - 1] : 0));
    const struct envelope_attachment *attachment = &preparing->base->attachments[i];
    const attn_tensor *from = &attachment->tensor;
    char *to = preparing->data + preparing->places[i];
    const bool packed = is_packed(preparing->base, i);
    const size_t left = (packed ? packed_numbers(attachment) : attn_tensor_count(from)) - first;
    const size_t count = left < BLOCK ? left : BLOCK;
    if (packed) {
        widen_packed(attachment, first, count, to);
        return;
    }
    const attn_status status =
        attn_convert(to + first * sizeof(float), ATTN_F32,
                     (const char *)from->data + first * attn_dtype_bytes(from->dtype), from->dtype, count, NULL);
    assert(status == ATTN_OK); /* float32 holds every narrower number */
}

/* False without memory. */
static bool widen(struct preparing *preparing)
{
    const attn_runtime *runtime = preparing->runtime;
    const attn_arena_mark mark = attn_arena_mark_here(preparing->arena);
    const size_t count = preparing->base->count;
    size_t blocks = 0, place = 0;
    preparing->blocks = attn_arena_take(preparing->arena, count, sizeof *preparing->blocks);
    preparing->places = attn_arena_take(preparing->arena, count, sizeof *preparing->places);
    const bool has_memory = preparing->blocks != NULL && preparing->places != NULL;
    for (size_t i = 0; i < count && has_memory; i++) {
        preparing->blocks[i] = blocks += blocks_of(preparing, i);
        preparing->places[i] = place;
        place += bytes_of(preparing, i);
    }
    if (blocks > 0)
        runtime->run(runtime->context, blocks, widen_block, preparing);
    attn_arena_release(preparing->arena, mark);
    return has_memory;
}

static void pack(const struct preparing *preparing)
{
    char *data = preparing->data;
    for (size_t i = 0; i < preparing->base->count; i++) {
        const struct envelope_attachment *attachment = &preparing->base->attachments[i];
        if (panels_bytes(preparing, attachment) > 0 && twin_of(preparing->base, i) == i)
            attn_panels_write(preparing->runtime, layout_of(preparing, attachment), &attachment->tensor, data);
        data += bytes_of(preparing, i);
    }
}

/* The weight that was widened from blocks and scales, whose path ends in ".weight". Its path is NULL without memory. */
static struct envelope_attachment widened_weight(const struct envelope_attachment *blocks, char *data,
                                                 attn_arena *arena)
{
    const size_t length = strlen(blocks->path) - strlen("blocks");
    const size_t shape[2] = {blocks->tensor.shape[0], blocks->tensor.shape[1] * MXFP4_NUMBERS};
    char *path = attn_arena_take(arena, length + sizeof "weight", 1);
    if (path != NULL) {
        memcpy(path, blocks->path, length);
        memcpy(path + length, "weight", sizeof "weight");
    }
    return (struct envelope_attachment){path, attn_tensor_view(data, ATTN_BF16, 2, shape)};
}

/* Where the prepared form of the tensor is, which begins at data unless it has a twin. */
static char *place_of(const struct preparing *preparing, size_t i, char *first, char *data)
{
    const size_t twin = twin_of(preparing->base, i);
    for (size_t k = 0; k < twin && twin != i; k++)
        first += bytes_of(preparing, k);
    return twin != i ? first : data;
}

/* Returns false without memory; base is then unchanged. */
static bool exchange(const struct preparing *preparing, char *data, attn_arena *arena, struct envelope_source *base)
{
    struct envelope_attachment *prepared = attn_arena_take(arena, base->count, sizeof *prepared);
    struct attn_panels *panels = attn_arena_take(arena, base->count, sizeof *panels);
    char *const first = data;
    size_t count = 0;
    if (prepared == NULL || panels == NULL)
        return false;
    for (size_t i = 0; i < base->count; i++) {
        const struct envelope_attachment *attachment = &base->attachments[i];
        struct envelope_attachment *own = &prepared[count++];
        if (is_packed(base, i)) {
            *own = widened_weight(attachment, data, arena);
            if (own->path == NULL)
                return false;
            data += bytes_of(preparing, i++); /* the scales are done, too */
            continue;
        }
        *own = *attachment;
        char *place = place_of(preparing, i, first, data);
        own->tensor = prepared_view(preparing, attachment, place);
        panels[i] = (struct attn_panels){preparing->runtime->kernel, layout_of(preparing, attachment), place};
        if (panels_bytes(preparing, attachment) > 0)
            own->tensor.panels = &panels[i];
        data += bytes_of(preparing, i);
    }
    base->attachments = prepared;
    base->count = count;
    return true;
}

/* ---- the list; the lock is held ---- */

static void link_newest(struct prepared_store *store, struct prepared_weights *weights)
{
    weights->newer = NULL;
    weights->older = store->newest;
    *(store->newest != NULL ? &store->newest->newer : &store->oldest) = weights;
    store->newest = weights;
}

static void unlink_weights(struct prepared_store *store, struct prepared_weights *weights)
{
    *(weights->older != NULL ? &weights->older->newer : &store->oldest) = weights->newer;
    *(weights->newer != NULL ? &weights->newer->older : &store->newest) = weights->older;
}

static void forget(struct prepared_store *store, struct prepared_weights *weights)
{
    unlink_weights(store, weights);
    weights->slot->weights = NULL;
    store->bytes -= weights->bytes;
}

/*
 * Evicts weights that no request uses, the least recently used first, if that makes enough room. They are moved to the
 * list *gone, linked by newer. A layer that only needs panels evicts nothing: layers used in turn would each be packed
 * for one request.
 */
static bool make_room(struct prepared_store *store, size_t bytes, bool others_give_way, struct prepared_weights **gone)
{
    size_t idle = 0;
    for (const struct prepared_weights *at = store->oldest; at != NULL && others_give_way; at = at->newer)
        idle += at->users == 0 ? at->bytes : 0;
    if (bytes > store->max_bytes || store->bytes - idle > store->max_bytes - bytes)
        return false;
    for (struct prepared_weights *at = store->oldest, *next; at != NULL && store->bytes > store->max_bytes - bytes;
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

static void destroy_all(struct prepared_weights *gone)
{
    while (gone != NULL) {
        struct prepared_weights *next = gone->newer;
        attn_arena_destroy(gone->memory);
        free(gone);
        gone = next;
    }
}

static struct prepared_weights *create(struct prepared_store *store, struct prepared_slot *slot, size_t bytes)
{
    enum { OVERHEAD = 64 << 10 };
    struct prepared_weights *weights = calloc(1, sizeof *weights);
    if (weights == NULL)
        return NULL;
    *weights = (struct prepared_weights){.store = store, .slot = slot, .bytes = bytes, .users = 1};
    weights->memory = attn_arena_create(bytes + OVERHEAD);
    if (weights->memory != NULL)
        weights->data = attn_arena_take(weights->memory, 1, bytes);
    if (weights->data != NULL)
        return weights;
    destroy_all(weights);
    return NULL;
}

/* Prepares the weights. Returns NULL without memory, and when the request is cancelled. */
static struct prepared_weights *create_prepared(struct prepared_store *store, struct prepared_slot *slot, size_t bytes,
                                                struct preparing *preparing)
{
    struct prepared_weights *weights = create(store, slot, bytes);
    if (weights == NULL)
        return NULL;
    preparing->data = weights->data;
    const bool is_wide = widen(preparing);
    pack(preparing);
    if (is_wide && !pace_is_cancelled(preparing->runtime))
        return weights;
    destroy_all(weights); /* it is in no list yet */
    return NULL;
}

/* Prepares the weights for the slot. The caller has reserved the room, which is given back if there are none. */
static struct prepared_weights *make(struct prepared_store *store, struct prepared_slot *slot, size_t bytes,
                                     struct preparing *preparing)
{
    double since_ms = clock_now_ms();
    struct prepared_weights *weights = create_prepared(store, slot, bytes, preparing);
    pthread_mutex_lock(&store->lock);
    slot->is_preparing = false;
    slot->weights = weights;
    slot->made_ms = clock_lap_ms(&since_ms);
    if (weights != NULL)
        link_newest(store, weights);
    else
        store->bytes -= bytes;
    pthread_mutex_unlock(&store->lock);
    return weights;
}

struct prepared_weights *prepared_weights_take(struct prepared_store *store, struct prepared_slot *slot,
                                               const struct kept_layer_facts *facts, const attn_runtime *runtime,
                                               attn_arena *arena, struct envelope_source *base)
{
    struct preparing preparing = {.base = base,
                                  .runtime = runtime,
                                  .layout = facts->layout,
                                  .expert_layout = facts->expert_layout,
                                  .packs = facts->compute == ATTN_F32,
                                  .keeps_halves = slot->keeps_halves,
                                  .arena = arena};
    const size_t bytes = bytes_of_all(&preparing);
    struct prepared_weights *gone = NULL;
    if (bytes == 0)
        return NULL;
    pthread_mutex_lock(&store->lock);
    struct prepared_weights *weights = slot->weights;
    const bool makes = weights == NULL && !slot->is_preparing && make_room(store, bytes, is_any_converted(base), &gone);
    if (makes) {
        slot->store = store;
        slot->is_preparing = true;
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
        weights = make(store, slot, bytes, &preparing);
    if (weights == NULL || exchange(&preparing, weights->data, arena, base))
        return weights;
    prepared_weights_release(weights);
    return NULL;
}

void prepared_weights_release(struct prepared_weights *weights)
{
    if (weights == NULL)
        return;
    pthread_mutex_lock(&weights->store->lock);
    weights->users--;
    pthread_mutex_unlock(&weights->store->lock);
}

void prepared_slot_add(const struct prepared_slot *slot, struct prepared_sum *sum)
{
    if (slot->store == NULL)
        return;
    pthread_mutex_lock(&slot->store->lock);
    if (slot->weights != NULL) {
        sum->bytes += slot->weights->bytes;
        sum->ms += slot->made_ms;
    }
    pthread_mutex_unlock(&slot->store->lock);
}

void prepared_slot_clear(struct prepared_slot *slot)
{
    struct prepared_store *store = slot->store;
    if (store == NULL)
        return;
    pthread_mutex_lock(&store->lock);
    struct prepared_weights *weights = slot->weights;
    if (weights != NULL) {
        assert(weights->users == 0);
        forget(store, weights);
        weights->newer = NULL;
    }
    pthread_mutex_unlock(&store->lock);
    destroy_all(weights);
}
