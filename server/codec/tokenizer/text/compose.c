/*
 * compose.c: the normal forms of Unicode.
 *
 * The text is read in runs: a starter and the marks behind it, decomposed and in canonical order. Composition looks at
 * one run after another. A run of a million marks takes linear time: sorting counts classes.
 */
#include "codec/tokenizer/text/compose.h"

#include <string.h>

#include "codec/tokenizer/text/unicode.h"

enum { CLASSES = 256, PART_COST_BYTES = 16 /* a part is decomposed, sorted and composed */ };

struct part {
    uint32_t c;
    uint32_t class;
    int64_t change; /* as draft_transform_put takes it */
};

struct part_list {
    struct part *items;
    size_t count, capacity;
};

struct composer {
    struct draft_transform transform;
    bool composes;
    struct part_list run, sorted; /* a starter, if the piece does not begin with marks, and marks */
    struct part_list held;        /* marks behind the composee that did not compose */
    struct part composee;
    bool has_composee;
    int last_class; /* of the last held mark; -1: none */
};

static bool append(struct composer *composer, struct part_list *list, struct part part)
{
    struct draft *draft = composer->transform.draft;
    void *items = list->items;
    if (draft_stops(draft, PART_COST_BYTES) ||
        !draft_grow(draft, &items, &list->capacity, list->count + 1, sizeof part))
        return false;
    list->items = items;
    list->items[list->count++] = part;
    return true;
}

static void put(struct composer *composer, struct part part)
{
    draft_transform_put(&composer->transform, part.c, part.change);
}

static void put_held(struct composer *composer)
{
    for (size_t i = 0; i < composer->held.count; i++)
        put(composer, composer->held.items[i]);
    composer->held.count = 0;
    composer->last_class = -1;
}

/* Tries to compose the part with the composee. */
static bool compose(struct composer *composer, struct part part)
{
    if (!unicode_compose(composer->composee.c, part.c, &composer->composee.c))
        return false;
    composer->composee.change += part.change - 1;
    return true;
}

static void take_part(struct composer *composer, struct part part)
{
    if (!composer->composes || (!composer->has_composee && part.class != 0)) {
        put(composer, part);
        return;
    }
    const bool is_blocked = composer->last_class >= (int)part.class;
    if (composer->has_composee && !is_blocked && compose(composer, part))
        return;
    if (part.class == 0) {
        if (composer->has_composee)
            put(composer, composer->composee);
        put_held(composer);
        composer->composee = part;
        composer->has_composee = true;
    } else if (append(composer, &composer->held, part)) {
        composer->last_class = (int)part.class;
    }
}

static bool is_sorted(const struct part_list *run)
{
    for (size_t i = 1; i < run->count; i++)
        if (run->items[i - 1].class > run->items[i].class)
            return false;
    return true;
}

/* Sorts the run by class; parts of one class stay in order. */
static void sort(struct composer *composer)
{
    size_t places[CLASSES] = {0}, next = 0;
    const struct part_list *run = &composer->run;
    void *items = composer->sorted.items;
    if (!draft_grow(composer->transform.draft, &items, &composer->sorted.capacity, run->count, sizeof *run->items))
        return;
    composer->sorted.items = items;
    composer->sorted.count = run->count;
    for (size_t i = 0; i < run->count; i++)
        places[run->items[i].class]++;
    for (size_t class = 0; class < CLASSES; class ++) {
        const size_t count = places[class];
        places[class] = next;
        next += count;
    }
    for (size_t i = 0; i < run->count; i++)
        composer->sorted.items[places[run->items[i].class]++] = run->items[i];
    const struct part_list unsorted = composer->run;
    composer->run = composer->sorted;
    composer->sorted = unsorted;
}

static void end_run(struct composer *composer)
{
    if (!is_sorted(&composer->run))
        sort(composer);
    for (size_t i = 0; i < composer->run.count; i++)
        take_part(composer, composer->run.items[i]);
    composer->run.count = 0;
}

static void take_character(struct composer *composer, uint32_t c, bool is_compatible)
{
    uint32_t parts[UNICODE_PARTS_MAX];
    const size_t count = unicode_decompose(c, is_compatible, parts);
    for (size_t i = 0; i < count; i++) {
        const uint32_t class = unicode_combining_class(parts[i]) % CLASSES;
        if (class == 0)
            end_run(composer);
        append(composer, &composer->run, (struct part){parts[i], class, i > 0});
    }
}

static void compose_piece(struct draft *draft, const struct piece *piece, const void *options)
{
    const enum compose_form form = *(const enum compose_form *)options;
    struct composer composer = {.transform = draft_transform_begin(draft, piece), .last_class = -1};
    composer.composes = form == COMPOSE_NFC || form == COMPOSE_NFKC;
    for (size_t at = piece->begin; at < piece->end && !draft_has_failed(draft);)
        take_character(&composer, draft_next(draft, &at), form == COMPOSE_NFKC || form == COMPOSE_NFKD);
    end_run(&composer);
    if (composer.has_composee)
        put(&composer, composer.composee);
    put_held(&composer);
}

void compose_edit(struct draft *draft, enum compose_form form)
{
    draft_rewrite(draft, compose_piece, &form);
}
