/* pre_tokenizers.c: pre-tokenizers, which split the text into the pieces that the model then takes one by one. */
#include "base/array.h"
#include "codec/bytes/utf8.h"
#include "codec/tokenizer/model/kinds.h"
#include "codec/tokenizer/text/unicode.h"

/* ---- by the class of a character ---- */

typedef bool class_function(uint32_t c);

/* Finds characters of the class; is_in NULL: that character. */
static void find_class(struct draft *draft, const struct piece *piece, class_function *is_in, uint32_t wanted)
{
    size_t begin = piece->begin;
    for (size_t at = piece->begin; at < piece->end && !draft_stops(draft, 1);) {
        const size_t here = at;
        const uint32_t c = draft_next(draft, &at);
        if (is_in != NULL ? !is_in(c) : c != wanted)
            continue;
        if (here > begin)
            draft_add_span(draft, begin, here, false);
        draft_add_span(draft, here, at, true);
        begin = at;
    }
    if (begin < piece->end)
        draft_add_span(draft, begin, piece->end, false);
}

#define FIND_OF_CLASS(name, class)                                                                                     \
    static void name(struct draft *draft, const struct piece *piece, const void *options)                              \
    {                                                                                                                  \
        (void)options;                                                                                                 \
        find_class(draft, piece, class, 0);                                                                            \
    }

FIND_OF_CLASS(find_spaces, unicode_is_space)
FIND_OF_CLASS(find_punctuation, unicode_is_punctuation)
FIND_OF_CLASS(find_digits, unicode_is_numeric)

static void split_bert(struct draft *draft, const void *options)
{
    draft_split(draft, find_spaces, options, DRAFT_REMOVED);
    draft_split(draft, find_punctuation, options, DRAFT_ISOLATED);
}

enum word_class { CLASS_SPACE, CLASS_WORD, CLASS_OTHER };

static enum word_class word_class(uint32_t c)
{
    return unicode_is_word(c) ? CLASS_WORD : unicode_is_space(c) ? CLASS_SPACE : CLASS_OTHER;
}

/* \w+|[^\w\s]+ */
static void find_words(struct draft *draft, const struct piece *piece, const void *options)
{
    (void)options;
    size_t begin = piece->begin;
    enum word_class class = CLASS_SPACE;
    for (size_t at = piece->begin; at < piece->end && !draft_stops(draft, 1);) {
        const size_t here = at;
        const enum word_class next = word_class(draft_next(draft, &at));
        if (next == class)
            continue;
        draft_add_span(draft, begin, here, class == CLASS_SPACE);
        class = next;
        begin = here;
    }
    draft_add_span(draft, begin, piece->end, class == CLASS_SPACE);
}

struct punctuation {
    enum draft_behavior behavior;
};

static attn_status settle_punctuation(struct loading *loading, const struct node *node, void *options)
{
    (void)loading;
    if (node_find(node->json, "behavior") == NULL)
        ((struct punctuation *)options)->behavior = DRAFT_ISOLATED;
    return ATTN_OK;
}

static void split_punctuation(struct draft *draft, const void *options)
{
    const struct punctuation *punctuation = options;
    draft_split(draft, find_punctuation, options, punctuation->behavior);
}

struct digits {
    bool individual_digits;
};

static void split_digits(struct draft *draft, const void *options)
{
    const struct digits *digits = options;
    draft_split(draft, find_digits, options, digits->individual_digits ? DRAFT_ISOLATED : DRAFT_CONTIGUOUS);
}

/* ---- by a pattern ---- */

struct split {
    const struct pattern *pattern;
    enum draft_behavior behavior;
    bool invert;
};

static void find_matches(struct draft *draft, const struct piece *piece, const void *options)
{
    const struct split *split = options;
    draft_add_matches(draft, piece, split->pattern, split->invert);
}

static void split_by_pattern(struct draft *draft, const void *options)
{
    draft_split(draft, find_matches, options, ((const struct split *)options)->behavior);
}

static attn_status settle_split(struct loading *loading, const struct node *node, void *options)
{
    const bool is_there = ((struct split *)options)->pattern != NULL && node_find(node->json, "behavior") != NULL;
    return step_needs(loading, node, is_there, "\"pattern\" and \"behavior\"");
}

/* ---- ByteLevel ---- */

struct byte_level {
    bool add_prefix_space, trim_offsets, use_regex;
    struct split split;
};

static attn_status settle_byte_level(struct loading *loading, const struct node *node, void *options)
{
    static const char regex[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    struct byte_level *byte_level = options;
    byte_level->split.behavior = DRAFT_ISOLATED;
    if (node_find(node->json, "use_regex") == NULL)
        byte_level->use_regex = true;
    if (!byte_level->use_regex)
        return ATTN_OK;
    return pattern_compile(text_span_of(regex), true, "use_regex", loading->reading.arena, &byte_level->split.pattern,
                           loading->reading.err);
}

/* Begins with the character, unless the piece does already. */
static void prefix(struct draft *draft, const struct piece *piece, uint32_t character)
{
    size_t at = piece->begin;
    if (draft_next(draft, &at) != character)
        draft_put(draft, character, draft->text.origins[piece->begin]);
}

static void add_space(struct draft *draft, const struct piece *piece, const void *options)
{
    (void)options;
    prefix(draft, piece, ' ');
    draft_put_old(draft, piece->begin, piece->end);
}

static void split_byte_level(struct draft *draft, const void *options)
{
    const struct byte_level *byte_level = options;
    if (byte_level->add_prefix_space)
        draft_rewrite(draft, add_space, NULL);
    if (byte_level->use_regex)
        split_by_pattern(draft, &byte_level->split);
    draft_rewrite(draft, draft_spell_bytes, NULL);
}

/* ---- Metaspace ---- */

enum scheme { SCHEME_ALWAYS, SCHEME_FIRST, SCHEME_NEVER };

struct metaspace {
    uint32_t replacement;
    enum scheme prepend_scheme;
    bool split, add_prefix_space;
};

static attn_status decode_scheme(struct reading *reading, const struct node *node, void *to)
{
    static const char *const words[] = {"always", "first", "never"};
    size_t index = 0;
    attn_status status = node_decode_word(reading, node, words, ARRAY_LENGTH(words), &index);
    *(enum scheme *)to = (enum scheme)index;
    return status;
}

static attn_status settle_metaspace(struct loading *loading, const struct node *node, void *options)
{
    struct metaspace *metaspace = options;
    const bool is_old = node_find(node->json, "add_prefix_space") != NULL;
    if (is_old && !metaspace->add_prefix_space)
        metaspace->prepend_scheme = SCHEME_NEVER;
    if (node_find(node->json, "split") == NULL)
        metaspace->split = true;
    return step_needs(loading, node, metaspace->replacement != 0, "\"replacement\"");
}

static void replace_spaces(struct draft *draft, const struct piece *piece, const void *options)
{
    const struct metaspace *metaspace = options;
    const enum scheme scheme = metaspace->prepend_scheme;
    size_t begin = piece->begin;
    if (draft->text.bytes[begin] != ' ' && (scheme == SCHEME_ALWAYS || (scheme == SCHEME_FIRST && piece->first == 0)))
        prefix(draft, piece, metaspace->replacement);
    for (size_t at = begin; at < piece->end && !draft_stops(draft, 1); at++) {
        if (draft->text.bytes[at] != ' ')
            continue;
        draft_put_old(draft, begin, at);
        draft_put(draft, metaspace->replacement, draft->text.origins[at]);
        begin = at + 1;
    }
    draft_put_old(draft, begin, piece->end);
}

static void find_replacement(struct draft *draft, const struct piece *piece, const void *options)
{
    find_class(draft, piece, NULL, ((const struct metaspace *)options)->replacement);
}

static void split_metaspace(struct draft *draft, const void *options)
{
    const struct metaspace *metaspace = options;
    draft_rewrite(draft, replace_spaces, options);
    if (metaspace->split)
        draft_split(draft, find_replacement, options, DRAFT_MERGED_WITH_NEXT);
}

/* ---- the table ---- */

static const struct member punctuation_members[] = {STEP_OPTION(punctuation, behavior, step_behavior)};
static const struct member digits_members[] = {STEP_OPTION(digits, individual_digits, node_decode_bool)};
static const struct member split_members[] = {STEP_OPTION(split, pattern, step_pattern),
                                              STEP_OPTION(split, behavior, step_behavior),
                                              STEP_OPTION(split, invert, node_decode_bool)};
static const struct member byte_level_members[] = {STEP_OPTION(byte_level, add_prefix_space, node_decode_bool),
                                                   STEP_OPTION(byte_level, trim_offsets, node_decode_bool),
                                                   STEP_OPTION(byte_level, use_regex, node_decode_bool)};
static const struct member metaspace_members[] = {STEP_OPTION(metaspace, replacement, step_character),
                                                  STEP_OPTION(metaspace, prepend_scheme, decode_scheme),
                                                  STEP_OPTION(metaspace, split, node_decode_bool),
                                                  STEP_OPTION(metaspace, add_prefix_space, node_decode_bool),
                                                  {"str_rep", step_ignored, 0, MEMBER_ALWAYS}};

static const struct step_kind kinds[] = {
    {"BertPreTokenizer", .edit = split_bert},
    {"Whitespace", .remove = find_words},
    {"WhitespaceSplit", .remove = find_spaces},
    {"Punctuation", STEP_OPTIONS(punctuation), .settle = settle_punctuation, .edit = split_punctuation},
    {"Digits", STEP_OPTIONS(digits), .edit = split_digits},
    {"Split", STEP_OPTIONS(split), .settle = settle_split, .edit = split_by_pattern},
    {"ByteLevel", STEP_OPTIONS(byte_level), .settle = settle_byte_level, .edit = split_byte_level},
    {"Metaspace", STEP_OPTIONS(metaspace), .settle = settle_metaspace, .edit = split_metaspace},
};

const struct step_table pre_tokenizer_table = {kinds, ARRAY_LENGTH(kinds), "pre-tokenizer", "pretokenizers"};
