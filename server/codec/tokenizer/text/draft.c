/*
 * draft.c: a text while it is changed. There are two versions of text and pieces: a step reads one and appends to the
 * other.
 */
#include "codec/tokenizer/text/draft.h"

#include <string.h>

#include "codec/bytes/utf8.h"
#include "codec/tokenizer/text/unicode.h"

enum { SEARCHES_PER_CHECK = 64 /* of the deadline, which a long search checks itself */ };

bool draft_stops(struct draft *draft, size_t bytes)
{
    if (!draft_has_failed(draft) && pace_stops(&draft->pace, bytes))
        outcome_fail(&draft->outcome, ATTN_ERR_CANCELLED, NULL, "cancelled while the text was tokenized");
    return draft_has_failed(draft);
}

/* The smallest spare block with that many bytes, which is then no longer spare; else a new one. */
static void *take_block(struct draft *draft, size_t count, size_t item_bytes, size_t *bytes)
{
    struct draft_spare *best = NULL;
    for (size_t i = 0; i < DRAFT_SPARES; i++) {
        struct draft_spare *spare = &draft->spares[i];
        if (spare->bytes / item_bytes >= count && (best == NULL || spare->bytes < best->bytes))
            best = spare;
    }
    if (best == NULL) {
        *bytes = count * item_bytes;
        return attn_arena_take(draft->outcome.arena, count, item_bytes);
    }
    const struct draft_spare taken = *best;
    *best = (struct draft_spare){0};
    *bytes = taken.bytes;
    return taken.at;
}

/* Keeps a block instead of the smallest spare one. */
static void spare_block(struct draft *draft, void *at, size_t bytes)
{
    struct draft_spare *least = &draft->spares[0];
    for (size_t i = 1; i < DRAFT_SPARES; i++)
        least = draft->spares[i].bytes < least->bytes ? &draft->spares[i] : least;
    if (bytes > least->bytes)
        *least = (struct draft_spare){at, bytes};
}

/* Copies to memory that does not overlap. False: the work must stop. */
static bool copy(struct draft *draft, void *to, const void *from, size_t bytes)
{
    for (size_t at = 0, some; at < bytes; at += some) {
        some = bytes - at < PACE_BYTES ? bytes - at : PACE_BYTES;
        if (draft_stops(draft, some))
            return false;
        memcpy((char *)to + at, (const char *)from + at, some);
    }
    return true;
}

bool draft_grow(struct draft *draft, void **items, size_t *capacity, size_t wanted, size_t item_bytes)
{
    if (draft_has_failed(draft))
        return false;
    if (wanted <= *capacity)
        return true;
    size_t room = *capacity < 32 ? 64 : *capacity + *capacity / 2, bytes = 0;
    room = room < wanted ? wanted : room;
    void *larger = take_block(draft, room, item_bytes, &bytes);
    if (larger == NULL)
        return outcome_no_memory(&draft->outcome);
    if (*capacity > 0) {
        if (!copy(draft, larger, *items, *capacity * item_bytes))
            return false;
        spare_block(draft, *items, *capacity * item_bytes);
    }
    *items = larger;
    *capacity = bytes / item_bytes;
    return true;
}

/* Room for so many bytes more, and the NUL. */
static bool grow_text(struct draft *draft, struct draft_text *text, size_t more)
{
    const size_t wanted = text->length + more + 1;
    if (wanted <= text->capacity && wanted <= text->origin_capacity && !draft_has_failed(draft))
        return true;
    if (wanted > DRAFT_BYTES_MAX)
        return outcome_fail(&draft->outcome, ATTN_ERR_TOO_LARGE, NULL, "the text is too long for a tokenizer");
    void *bytes = text->bytes, *origins = text->origins;
    if (!draft_grow(draft, &bytes, &text->capacity, wanted, 1))
        return false;
    text->bytes = bytes;
    if (!draft_grow(draft, &origins, &text->origin_capacity, wanted, sizeof *text->origins))
        return false;
    text->origins = origins;
    return true;
}

static bool add_piece(struct draft *draft, struct draft_pieces *pieces, struct piece piece)
{
    void *items = pieces->items;
    if (!draft_grow(draft, &items, &pieces->capacity, pieces->count + 1, sizeof piece))
        return false;
    pieces->items = items;
    pieces->items[pieces->count++] = piece;
    return true;
}

/* ---- begin ---- */

/* Checks draft->text and fills in its origins. */
static void align(struct draft *draft, const char *name)
{
    struct draft_text *text = &draft->text;
    uint32_t character = 0;
    for (size_t at = 0; at < text->length; character++) {
        const size_t bytes = utf8_length(text->bytes + at);
        if (bytes == 0)
            outcome_fail(&draft->outcome, ATTN_ERR_SYNTAX, NULL, "%s is not UTF-8: byte %zu begins no character", name,
                         at);
        else if (text->bytes[at] == '\0')
            outcome_fail(&draft->outcome, ATTN_ERR_VALUE, NULL,
                         "%s holds U+0000, as character %u; a tokenizer takes all other characters", name,
                         (unsigned)character);
        if (draft_stops(draft, bytes))
            return;
        for (size_t i = 0; i < bytes; i++)
            text->origins[at++] = (struct origin){character, character + 1};
    }
}

attn_status draft_begin(struct draft *draft, const char *name, const char *text, size_t length, attn_arena *arena,
                        attn_error *err)
{
    *draft = (struct draft){.outcome = {.arena = arena, .err = err}, .pace = pace_begin(arena), .search.arena = arena};
    if (!grow_text(draft, &draft->text, length) || !copy(draft, draft->text.bytes, text, length))
        return draft->outcome.status;
    draft->text.bytes[length] = '\0';
    draft->text.length = length;
    align(draft, name);
    if (length > 0)
        add_piece(draft, &draft->pieces, (struct piece){.end = (uint32_t)length, .id = PIECE_IS_TEXT});
    return draft->outcome.status;
}

/* ---- reading ---- */

uint32_t draft_next(const struct draft *draft, size_t *at)
{
    const char *from = draft->text.bytes + *at;
    if ((unsigned char)*from < 0x80) {
        ++*at;
        return (unsigned char)*from;
    }
    const uint32_t c = utf8_next(&from);
    *at = (size_t)(from - draft->text.bytes);
    return c;
}

size_t draft_before(const struct draft *draft, size_t at)
{
    do
        at--;
    while (at > 0 && !utf8_begins(draft->text.bytes[at]));
    return at;
}

/* ---- rewriting ---- */

void draft_put_text(struct draft *draft, const char *text, size_t length, struct origin origin)
{
    struct draft_text *to = &draft->next_text;
    if (draft_stops(draft, length) || !grow_text(draft, to, length))
        return;
    memcpy(to->bytes + to->length, text, length);
    for (size_t i = 0; i < length; i++)
        to->origins[to->length + i] = origin;
    to->length += length;
}

void draft_put(struct draft *draft, uint32_t c, struct origin origin)
{
    struct draft_text *to = &draft->next_text;
    if (draft_stops(draft, 1) || !grow_text(draft, to, UTF8_BYTES_MAX))
        return;
    const char *end = utf8_write(to->bytes + to->length, c);
    for (const size_t next = (size_t)(end - to->bytes); to->length < next; to->length++)
        to->origins[to->length] = origin;
}

void draft_spell_bytes(struct draft *draft, const struct piece *piece, const void *options)
{
    (void)options;
    for (size_t at = piece->begin; at < piece->end && !draft_has_failed(draft); at++)
        draft_put(draft, unicode_of_byte((unsigned char)draft->text.bytes[at]), draft->text.origins[at]);
}

void draft_put_old(struct draft *draft, size_t begin, size_t end)
{
    struct draft_text *to = &draft->next_text;
    const size_t length = end - begin;
    if (length > 0 && grow_text(draft, to, length) &&
        copy(draft, to->bytes + to->length, draft->text.bytes + begin, length) &&
        copy(draft, to->origins + to->length, draft->text.origins + begin, length * sizeof *to->origins))
        to->length += length;
}

void draft_rewrite(struct draft *draft, draft_edit *edit, const void *options)
{
    draft->next_text.length = 0;
    draft->next_pieces.count = 0;
    for (size_t i = 0; i < draft->pieces.count && !draft_stops(draft, 1); i++) {
        struct piece piece = draft->pieces.items[i];
        const size_t begin = draft->next_text.length;
        if (piece.id == PIECE_IS_TEXT)
            edit(draft, &piece, options);
        else
            draft_put_old(draft, piece.begin, piece.end);
        piece.begin = (uint32_t)begin;
        piece.end = (uint32_t)draft->next_text.length;
        if (piece.end > piece.begin)
            add_piece(draft, &draft->next_pieces, piece);
    }
    if (!grow_text(draft, &draft->next_text, 0))
        return;
    draft->next_text.bytes[draft->next_text.length] = '\0';
    const struct draft_text text = draft->text;
    const struct draft_pieces pieces = draft->pieces;
    draft->text = draft->next_text;
    draft->next_text = text;
    draft->pieces = draft->next_pieces;
    draft->next_pieces = pieces;
}

struct draft_transform draft_transform_begin(struct draft *draft, const struct piece *piece)
{
    return (struct draft_transform){.draft = draft, .piece = piece, .at = piece->begin};
}

static void skip_characters(struct draft_transform *transform, int64_t count)
{
    while (count-- > 0 && transform->at < transform->piece->end)
        (void)draft_next(transform->draft, &transform->at);
}

void draft_transform_put(struct draft_transform *transform, uint32_t c, int64_t change)
{
    const struct piece *piece = transform->piece;
    const bool is_new = change > 0 || transform->at >= piece->end;
    struct origin origin = {piece->first, piece->first};
    if (!is_new)
        origin = transform->draft->text.origins[transform->at];
    else if (transform->at > piece->begin)
        origin = transform->draft->text.origins[transform->at - 1];
    if (change <= 0)
        skip_characters(transform, 1 - change);
    draft_put(transform->draft, c, origin);
}

/* ---- splitting ---- */

static void append_span(struct draft *draft, struct draft_span span)
{
    void *spans = draft->spans;
    if (!draft_grow(draft, &spans, &draft->span_capacity, draft->span_count + 1, sizeof span))
        return;
    draft->spans = spans;
    draft->spans[draft->span_count++] = span;
}

void draft_add_span(struct draft *draft, size_t begin, size_t end, bool is_match)
{
    append_span(draft, (struct draft_span){(uint32_t)begin, (uint32_t)end, is_match, PIECE_IS_TEXT});
}

void draft_add_token(struct draft *draft, size_t begin, size_t end, uint32_t id)
{
    append_span(draft, (struct draft_span){(uint32_t)begin, (uint32_t)end, true, id});
}

void draft_add_matches(struct draft *draft, const struct piece *piece, const struct pattern *pattern, bool inverted)
{
    size_t last = piece->begin, begin = 0, end = 0;
    bool found = true;
    pattern_begin(&draft->search, pattern, draft->text.bytes + piece->begin, piece->end - piece->begin);
    while (!draft_stops(draft, PACE_BYTES / SEARCHES_PER_CHECK)) {
        if (!outcome_note(&draft->outcome, pattern_next(&draft->search, &begin, &end, &found, draft->outcome.err)) ||
            !found)
            break;
        if (piece->begin + begin > last)
            draft_add_span(draft, last, piece->begin + begin, inverted);
        draft_add_span(draft, piece->begin + begin, piece->begin + end, !inverted);
        last = piece->begin + end;
    }
    if (last < piece->end)
        draft_add_span(draft, last, piece->end, inverted);
}

/* Whether a part belongs to the one before it, as the behavior says. */
static bool is_merged(enum draft_behavior behavior, const struct draft_span *before, const struct draft_span *span)
{
    switch (behavior) {
    case DRAFT_MERGED_WITH_PREVIOUS: /* a match behind a match stays */
        return span->is_match && !before->is_match;
    case DRAFT_MERGED_WITH_NEXT:
        return before->is_match && !span->is_match;
    case DRAFT_CONTIGUOUS:
        return before->is_match == span->is_match;
    case DRAFT_REMOVED:
    case DRAFT_ISOLATED:
        break;
    }
    return false;
}

/* Merges parts of a piece with the ones before them. */
static void merge_parts(struct draft *draft, enum draft_behavior behavior)
{
    struct draft_span *spans = draft->spans, before = {0};
    size_t kept = 0;
    for (size_t i = 0; i < draft->span_count && !draft_stops(draft, sizeof *spans); i++) {
        const struct draft_span span = spans[i];
        if (i > 0 && is_merged(behavior, &before, &span))
            spans[kept - 1].end = span.end;
        else
            spans[kept++] = span;
        before = span;
    }
    draft->span_count = kept;
}

static void add_parts(struct draft *draft, enum draft_behavior behavior)
{
    if (behavior != DRAFT_ISOLATED && behavior != DRAFT_REMOVED)
        merge_parts(draft, behavior);
    for (size_t i = 0; i < draft->span_count && !draft_stops(draft, sizeof(struct piece)); i++) {
        const struct draft_span *span = &draft->spans[i];
        if (span->begin == span->end || (behavior == DRAFT_REMOVED && span->is_match))
            continue;
        const uint32_t first = draft->text.origins[span->begin].begin;
        if (!add_piece(draft, &draft->next_pieces, (struct piece){span->begin, span->end, first, span->id}))
            return;
    }
}

void draft_split(struct draft *draft, draft_find *find, const void *options, enum draft_behavior behavior)
{
    draft->next_pieces.count = 0;
    for (size_t i = 0; i < draft->pieces.count && !draft_stops(draft, 1); i++) {
        const struct piece *piece = &draft->pieces.items[i];
        if (piece->id != PIECE_IS_TEXT) {
            add_piece(draft, &draft->next_pieces, *piece);
            continue;
        }
        draft->span_count = 0;
        find(draft, piece, options);
        if (!draft_has_failed(draft))
            add_parts(draft, behavior);
    }
    const struct draft_pieces pieces = draft->pieces;
    draft->pieces = draft->next_pieces;
    draft->next_pieces = pieces;
}
