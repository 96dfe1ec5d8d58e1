/* normalizers.c: normalizers, which change the text before it is split. */
#include <string.h>

#include "base/array.h"
#include "codec/tokenizer/parts.h"
#include "codec/tokenizer/text/unicode.h"

static struct origin origin_at(const struct draft *draft, size_t at)
{
    return draft->text.origins[at];
}

/* ---- character by character ---- */

#define DROPPED UINT32_MAX

/* What becomes of a character; it may be DROPPED. */
typedef uint32_t map_function(uint32_t c);

static void map_piece(struct draft *draft, const struct piece *piece, map_function *map)
{
    for (size_t at = piece->begin; at < piece->end && !draft_has_failed(draft);) {
        const struct origin origin = origin_at(draft, at);
        const uint32_t c = map(draft_next(draft, &at));
        if (c != DROPPED)
            draft_put(draft, c, origin);
    }
}

static uint32_t drop_mark(uint32_t c)
{
    return unicode_is_mark(c) ? DROPPED : c;
}

static uint32_t drop_combining(uint32_t c)
{
    return unicode_combining_class(c) != 0 ? DROPPED : c;
}

static uint32_t drop_nonspacing(uint32_t c)
{
    return unicode_is_nonspacing(c) ? DROPPED : c;
}

static uint32_t clean(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r')
        return ' ';
    if (c == 0xFFFD || unicode_is_control(c))
        return DROPPED;
    return unicode_is_space(c) ? ' ' : c;
}

static uint32_t nmt(uint32_t c)
{
    if ((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
        return DROPPED;
    const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                          (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                          c == 0xFFFD;
    return is_space ? ' ' : c;
}

#define REWRITE_BY_MAP(name, map)                                                                                      \
    static void name(struct draft *draft, const struct piece *piece, const void *options)                              \
    {                                                                                                                  \
        (void)options;                                                                                                 \
        map_piece(draft, piece, map);                                                                                  \
    }

REWRITE_BY_MAP(strip_accents, drop_mark)
REWRITE_BY_MAP(strip_combining, drop_combining)
REWRITE_BY_MAP(strip_nonspacing, drop_nonspacing)
REWRITE_BY_MAP(clean_text, clean)
REWRITE_BY_MAP(normalize_nmt, nmt)

static void lower_piece(struct draft *draft, const struct piece *piece, const void *options)
{
    (void)options;
    for (size_t at = piece->begin; at < piece->end && !draft_has_failed(draft);) {
        const struct origin origin = origin_at(draft, at);
        uint32_t lower[UNICODE_LOWER_MAX];
        const size_t count = unicode_lower(draft_next(draft, &at), lower);
        for (size_t i = 0; i < count; i++)
            draft_put(draft, lower[i], origin);
    }
}

/*
 * ---- the normal forms of Unicode (UAX 15) ----
 *
 * The text is read in runs: a starter and the marks behind it, decomposed and in canonical order. Composition looks at
 * one run after another. A run of a million marks takes linear time: sorting counts classes. Origins are those that
 * unicode-normalization-alignments gives: a composed character has the origin of its first part, the parts of a
 * character have its origin.
 */

enum compose_form { COMPOSE_NFC, COMPOSE_NFD, COMPOSE_NFKC, COMPOSE_NFKD };

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

static void compose_edit(struct draft *draft, enum compose_form form)
{
    draft_rewrite(draft, compose_piece, &form);
}

#define EDIT_BY_FORM(name, form)                                                                                       \
    static void name(struct draft *draft, const void *options)                                                         \
    {                                                                                                                  \
        (void)options;                                                                                                 \
        compose_edit(draft, form);                                                                                     \
    }

EDIT_BY_FORM(nfc, COMPOSE_NFC)
EDIT_BY_FORM(nfd, COMPOSE_NFD)
EDIT_BY_FORM(nfkc, COMPOSE_NFKC)
EDIT_BY_FORM(nfkd, COMPOSE_NFKD)

/* ---- BERT ---- */

struct bert {
    bool clean_text, handle_chinese_chars, strip_accents, lowercase;
    bool strips_given;
};

static bool is_chinese(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static void space_chinese(struct draft *draft, const struct piece *piece, const void *options)
{
    (void)options;
    for (size_t at = piece->begin; at < piece->end && !draft_has_failed(draft);) {
        const size_t begin = at;
        const bool is_apart = is_chinese(draft_next(draft, &at));
        const struct origin origin = origin_at(draft, begin);
        if (is_apart)
            draft_put(draft, ' ', origin);
        draft_put_old(draft, begin, at);
        if (is_apart)
            draft_put(draft, ' ', origin);
    }
}

static void normalize_bert(struct draft *draft, const void *options)
{
    const struct bert *bert = options;
    if (bert->clean_text)
        draft_rewrite(draft, clean_text, NULL);
    if (bert->handle_chinese_chars)
        draft_rewrite(draft, space_chinese, NULL);
    if (bert->strips_given ? bert->strip_accents : bert->lowercase) {
        compose_edit(draft, COMPOSE_NFD);
        draft_rewrite(draft, strip_nonspacing, NULL);
    }
    if (bert->lowercase)
        draft_rewrite(draft, lower_piece, NULL);
}

static attn_status settle_bert(struct loading *loading, const struct node *node, void *options)
{
    (void)loading;
    ((struct bert *)options)->strips_given = node_find(node->json, "strip_accents") != NULL;
    return ATTN_OK;
}

/* ---- strip, prepend, replace ---- */

struct strip {
    bool strip_left, strip_right;
};

static void strip_piece(struct draft *draft, const struct piece *piece, const void *options)
{
    const struct strip *strip = options;
    size_t begin = piece->begin, end = piece->end;
    for (size_t next = begin; strip->strip_left && begin < end && unicode_is_space(draft_next(draft, &next));)
        begin = next;
    while (strip->strip_right && begin < end && !draft_stops(draft, 1)) {
        const size_t last = draft_before(draft, end);
        size_t at = last;
        if (!unicode_is_space(draft_next(draft, &at)))
            break;
        end = last;
    }
    draft_put_old(draft, begin, end);
}

struct prepend {
    struct text_span prepend;
    bool first; /* where the text begins with the piece, alone */
};

static void prepend_piece(struct draft *draft, const struct piece *piece, const void *options)
{
    const struct prepend *prepend = options;
    if (!prepend->first || piece->first == 0)
        draft_put_text(draft, prepend->prepend.at, prepend->prepend.length, origin_at(draft, piece->begin));
    draft_put_old(draft, piece->begin, piece->end);
}

static void replace_piece(struct draft *draft, const struct piece *piece, const void *options)
{
    const struct step_replace *replace = options;
    draft->span_count = 0;
    draft_add_matches(draft, piece, replace->pattern, false);
    for (size_t i = 0; i < draft->span_count && !draft_has_failed(draft); i++) {
        const struct draft_span *span = &draft->spans[i];
        const struct origin nowhere = {piece->first, piece->first};
        if (span->is_match)
            draft_put_text(draft, replace->content.at, replace->content.length,
                           span->end > piece->begin ? origin_at(draft, span->end - 1) : nowhere);
        else
            draft_put_old(draft, span->begin, span->end);
    }
}

static attn_status settle_prepend(struct loading *loading, const struct node *node, void *options)
{
    return step_needs(loading, node, ((struct prepend *)options)->prepend.at != NULL, "\"prepend\"");
}

/* ---- the table ---- */

static const struct member bert_members[] = {
    STEP_OPTION(bert, clean_text, node_decode_bool), STEP_OPTION(bert, handle_chinese_chars, node_decode_bool),
    STEP_OPTION(bert, strip_accents, node_decode_bool), STEP_OPTION(bert, lowercase, node_decode_bool)};
static const struct member strip_members[] = {STEP_OPTION(strip, strip_left, node_decode_bool),
                                              STEP_OPTION(strip, strip_right, node_decode_bool)};
static const struct member prepend_members[] = {STEP_OPTION(prepend, prepend, step_text),
                                                STEP_OPTION_OF(prepend, first, node_decode_bool, STEP_OF_SLOW)};
static const struct member charsmap_option_members[] = {
    {"precompiled_charsmap", charsmap_decode, offsetof(struct charsmap_option, map), MEMBER_ALWAYS},
    STEP_OPTION_OF(charsmap_option, longest, node_decode_bool, STEP_OF_SLOW)};

static const struct step_kind kinds[] = {
    {"BertNormalizer", STEP_OPTIONS(bert), .settle = settle_bert, .edit = normalize_bert},
    {"NFC", .edit = nfc},
    {"NFD", .edit = nfd},
    {"NFKC", .edit = nfkc},
    {"NFKD", .edit = nfkd},
    {"Lowercase", .rewrite = lower_piece},
    {"Strip", STEP_OPTIONS(strip), .rewrite = strip_piece},
    {"StripAccents", .rewrite = strip_accents},
    {"StripCombining", .rewrite = strip_combining, .scope = STEP_OF_SLOW}, /* vowel signs stay */
    {"Replace", STEP_OPTIONS(step_replace), .settle = step_settle_replace, .rewrite = replace_piece},
    {"Prepend", STEP_OPTIONS(prepend), .settle = settle_prepend, .rewrite = prepend_piece},
    {"Nmt", .rewrite = normalize_nmt},
    {"Precompiled", STEP_OPTIONS(charsmap_option), .edit = charsmap_edit},
    {"ByteLevel", .rewrite = draft_spell_bytes},
};

const struct step_table normalizer_table = {kinds, ARRAY_LENGTH(kinds), "normalizer", "normalizers"};
