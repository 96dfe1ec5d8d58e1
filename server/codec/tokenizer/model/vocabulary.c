/* vocabulary.c: the tokens of a tokenizer, in a hash table with open addressing. */
#include "codec/tokenizer/model/vocabulary.h"

#include <string.h>

#include "codec/tokenizer/model/slots.h"

static uint32_t hash(const char *text, size_t length)
{
    uint64_t sum = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)text[i]) * UINT64_C(0x100000001B3);
    return slots_hash(sum); /* the last bytes of a text reach few of the high bits of sum */
}

size_t vocabulary_bytes(size_t count, size_t size)
{
    return size * sizeof(struct text_span) + slots_for(count) * sizeof(struct vocabulary_slot);
}

attn_status vocabulary_create(struct vocabulary *vocabulary, size_t count, size_t size, attn_arena *arena,
                              attn_error *err)
{
    const size_t slots = slots_for(count);
    *vocabulary = (struct vocabulary){.size = (uint32_t)size, .slot_count = (uint32_t)slots};
    vocabulary->texts = attn_arena_take_zeroed(arena, size, sizeof *vocabulary->texts);
    vocabulary->slots = attn_arena_take(arena, slots, sizeof *vocabulary->slots);
    if (vocabulary->texts == NULL || vocabulary->slots == NULL)
        return attn_fail_no_memory(err);
    memset(vocabulary->slots, 0xFF, slots * sizeof *vocabulary->slots);
    return ATTN_OK;
}

/* The slot of that text, or the empty one where it belongs. */
static struct vocabulary_slot *find(const struct vocabulary *vocabulary, uint32_t sum, const char *text, size_t length)
{
    for (uint32_t i = slots_first(sum, vocabulary->slot_count);; i = slots_next(i, vocabulary->slot_count)) {
        struct vocabulary_slot *slot = &vocabulary->slots[i];
        if (slot->id == VOCABULARY_NONE)
            return slot;
        const struct text_span known = vocabulary->texts[slot->id];
        if (slot->hash == sum && known.length == length && memcmp(known.at, text, length) == 0)
            return slot;
    }
}

attn_status vocabulary_add(struct vocabulary *vocabulary, struct text_span text, uint32_t id, attn_error *err)
{
    if (vocabulary->texts[id].at != NULL)
        return attn_fail(err, ATTN_ERR_VALUE, "/model/vocab", "the tokens \"%.80s\" and \"%.80s\" have the same id %u",
                         vocabulary->texts[id].at, text.at, (unsigned)id);
    const uint32_t sum = hash(text.at, text.length);
    struct vocabulary_slot *slot = find(vocabulary, sum, text.at, text.length);
    vocabulary->model_tokens += slot->id == VOCABULARY_NONE;
    *slot = (struct vocabulary_slot){sum, id};
    vocabulary->texts[id] = text;
    vocabulary->longest = text.length > vocabulary->longest ? text.length : vocabulary->longest;
    return ATTN_OK;
}

uint32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t length)
{
    if (length > vocabulary->longest) /* a long text is not read for nothing */
        return VOCABULARY_NONE;
    return find(vocabulary, hash(text, length), text, length)->id;
}

struct text_span vocabulary_text(const struct vocabulary *vocabulary, uint32_t id)
{
    return id < vocabulary->size ? vocabulary->texts[id] : (struct text_span){NULL, 0};
}
