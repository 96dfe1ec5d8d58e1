/* pattern.c: literal texts and regular expressions, by PCRE2. */
#include "codec/tokenizer/text/pattern.h"

#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/utf8.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* ---- rewriting of Oniguruma's Ruby syntax for PCRE2 ---- */

enum { WRITTEN_BYTES_MAX = 480 /* of an escape or a bracket: three times the parts of words, for \b */ };

struct translation {
    const char *at, *end; /* what is left to read; a NUL stands at end */
    char *to;
    unsigned depth;      /* of classes */
    const char *refused; /* what has no counterpart */
};

static void copy(struct translation *t, size_t bytes)
{
    memcpy(t->to, t->at, bytes);
    t->to += bytes;
    t->at += bytes;
}

static void copy_through(struct translation *t, const char *closing)
{
    const char *found = strstr(t->at, closing);
    copy(t, found != NULL ? (size_t)(found - t->at) + strlen(closing) : (size_t)(t->end - t->at));
}

static bool is_hex(const char *text, size_t digits)
{
    for (size_t i = 0; i < digits; i++)
        if (!isxdigit((unsigned char)text[i]))
            return false;
    return true;
}

/* ---- classes ---- */

/*
 * Classes of which PCRE2 has another set: it takes U+180E for a space, and no mark for a part of a word. set and rest,
 * its complement, stand within brackets. They begin with a property and end with a range, so that a hyphen beside them
 * stays what it was. rest NULL: properties cannot say it.
 */
struct class
{
    const char *name, *set, *rest;
};

#define CIRCLED "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
#define WORD    "\\p{L}\\p{M}\\p{Nl}\\p{Nd}\\p{Pc}" CIRCLED
#define VISIBLE "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}"

static const struct class classes[] = {
    {"space", "\\p{Z}\\x85\\t-\\r", VISIBLE "\\p{Cn}\\p{Cs}\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f"},
    {"word", WORD, NULL},
    {"alpha", "\\p{Alphabetic}a-z", "\\P{Alphabetic}!-!"},
    {"alnum", "\\p{Alphabetic}\\p{Nd}0-9", NULL},
    {"upper", "\\p{Uppercase}A-Z", "\\P{Uppercase}a-z"},
    {"lower", "\\p{Lowercase}a-z", "\\P{Lowercase}A-Z"},
    {"punct", "\\p{P}\\p{S}!-/", "\\p{L}\\p{M}\\p{N}\\p{Z}\\p{C}0-9"},
    {"graph", VISIBLE "!-~", "\\p{Z}\\p{Cc}\\p{Cn}\\p{Cs} - "},
    {"print", VISIBLE "\\p{Zs} -~", "\\p{Zl}\\p{Zp}\\p{Cc}\\p{Cn}\\p{Cs}\\x00-\\x1f"},
    {"blank", "\\p{Zs}\\t-\\t", VISIBLE "\\p{Zl}\\p{Zp}\\p{Cn}\\p{Cs}\\x00-\\x08\\x0a-\\x1f\\x7f-\\x9f"},
};

/* Oniguruma takes the fractions and superscripts of Latin-1 for parts of words where \w and \b stand alone. */
static const struct class word_alone = {"word", WORD "\\xb2-\\xb3\\xb9-\\xb9\\xbc-\\xbe", NULL};

/* Symbols are punctuation within [:punct:] only. */
static const struct class punct_property = {"punct", "\\p{P}!-#", "\\P{P}0-9"};

/* NULL: PCRE2 has the same set. */
static const struct class *find_class(struct text_span name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(classes); i++)
        if (text_equal_fold(name, classes[i].name))
            return &classes[i];
    return NULL;
}

static void put(struct translation *t, const char *text)
{
    const size_t length = strlen(text);
    memcpy(t->to, text, length);
    t->to += length;
}

/* Writes the class instead of the next bytes of the pattern. */
static void put_class(struct translation *t, const struct class *class, bool is_negated, size_t bytes)
{
    t->at += bytes;
    if (t->depth == 0) {
        put(t, is_negated ? "[^" : "[");
        put(t, class->set);
        put(t, "]");
    } else if (!is_negated || class->rest != NULL) {
        put(t, is_negated ? class->rest : class->set);
    } else {
        t->refused = "\\W, or the complement of word or alnum, within a class";
    }
}

/* \b and \B: before a part of a word, whether another part is behind, and else the opposite. */
static void put_boundary(struct translation *t, bool is_boundary)
{
    static const char *const parts[2][3] = {{"(?(?=[", "])(?<=[", "])|(?<!["}, {"(?(?=[", "])(?<![", "])|(?<=["}};
    t->at += 2;
    for (size_t i = 0; i < 3; i++) {
        put(t, parts[is_boundary][i]);
        put(t, word_alone.set);
    }
    put(t, "]))");
}

/* PCRE2's \p{Han} has the characters that Han shares with other scripts; Oniguruma's has those of the script alone. */
static bool is_script(struct text_span name)
{
    static const char *const scripts[] = {"Arabic",   "Armenian", "Bengali",   "Bopomofo",  "Cyrillic", "Devanagari",
                                          "Ethiopic", "Georgian", "Greek",     "Gujarati",  "Gurmukhi", "Han",
                                          "Hangul",   "Hebrew",   "Hiragana",  "Kannada",   "Katakana", "Khmer",
                                          "Lao",      "Latin",    "Malayalam", "Mongolian", "Myanmar",  "Sinhala",
                                          "Tamil",    "Telugu",   "Thai",      "Tibetan"};
    for (size_t i = 0; i < ARRAY_LENGTH(scripts); i++)
        if (text_equal_fold(name, scripts[i]))
            return true;
    return false;
}

/* \p{…} and \P{…} */
static void translate_property(struct translation *t)
{
    const char *close = strchr(t->at, '}');
    const bool has_hat = t->at[3] == '^';
    const char *begin = t->at + 3 + has_hat;
    const struct text_span name = {begin, close != NULL ? (size_t)(close - begin) : 0};
    const struct class *class = text_equal_fold(name, punct_property.name) ? &punct_property : find_class(name);
    if (class != NULL) {
        put_class(t, class, has_hat != (t->at[1] == 'P'), (size_t)(close + 1 - t->at));
        return;
    }
    copy(t, (size_t)(begin - t->at));
    if (is_script(name))
        put(t, "sc:");
}

/* [:name:] and [:^name:] within a class */
static void translate_posix(struct translation *t)
{
    const char *close = strstr(t->at, ":]");
    const bool has_hat = t->at[2] == '^';
    const char *begin = t->at + 2 + has_hat;
    const struct class *class =
        close != NULL && close > begin ? find_class((struct text_span){begin, (size_t)(close - begin)}) : NULL;
    if (class != NULL)
        put_class(t, class, has_hat, (size_t)(close + 2 - t->at));
    else
        copy_through(t, ":]");
}

static void translate_escape(struct translation *t)
{
    const char c = t->at[1];
    if (c == 'h' || c == 'H') {
        t->refused = "\\h";
    } else if (c == 's' || c == 'S') {
        put_class(t, &classes[0], c == 'S', 2);
    } else if (c == 'w' || c == 'W') {
        put_class(t, t->depth == 0 ? &word_alone : &classes[1], c == 'W', 2);
    } else if ((c == 'b' || c == 'B') && t->depth == 0) {
        put_boundary(t, c == 'b');
    } else if (c == 'u' && t->end - t->at >= 6 && is_hex(t->at + 2, 4)) {
        memcpy(t->to, "\\x{", 3);
        memcpy(t->to + 3, t->at + 2, 4);
        t->to[7] = '}';
        t->to += 8;
        t->at += 6;
    } else if ((c == 'p' || c == 'P') && t->at[2] == '{') {
        translate_property(t);
    } else if (c != '\0' && strchr("xokg", c) != NULL && t->at[2] == '{') {
        copy_through(t, "}");
    } else {
        copy(t, c != '\0' ? 2 : 1);
    }
}

/* ---- the rest ---- */

static void translate_in_class(struct translation *t)
{
    if (*t->at == '\\') {
        translate_escape(t);
    } else if (t->at[0] == '[' && t->at[1] == ':') {
        translate_posix(t);
    } else if (t->at[0] == '[' && t->at[1] == '^') {
        t->refused = "a negated class within a class";
    } else if (t->at[0] == '&' && t->at[1] == '&') {
        t->refused = "&& within a class";
    } else if (*t->at == '[') {
        t->depth++;
        t->at++;
    } else if (*t->at == ']' && --t->depth > 0) {
        t->at++;
    } else {
        copy(t, 1);
    }
}

/* "{2,}" and the like; other braces are characters. */
static void translate_brace(struct translation *t)
{
    const char *close = t->at + 1 + strspn(t->at + 1, "0123456789,");
    if (*close == '}' && close[1] == '+') {
        t->refused = "{n,m}+";
        return;
    }
    copy(t, 1);
    if (*t->at == ',' && *close == '}')
        *t->to++ = '0';
}

static void translate_group(struct translation *t)
{
    const size_t options = t->at[1] == '?' ? strspn(t->at + 2, "abcdefghijklmnopqrstuvwxyz-") : 0;
    const bool are_options = options > 0 && (t->at[2 + options] == ':' || t->at[2 + options] == ')');
    for (size_t i = 0; are_options && i < options; i++)
        if (strchr("madu", t->at[2 + i]) != NULL)
            t->refused = "an option of (?m), (?a), (?d), (?u)";
    copy(t, 1);
}

static void translate_outside(struct translation *t)
{
    if (*t->at == '\\') {
        translate_escape(t);
    } else if (*t->at == '{') {
        translate_brace(t);
    } else if (*t->at == '(') {
        translate_group(t);
    } else {
        const bool opens = *t->at == '[';
        copy(t, opens && t->at[1] == '^' ? 2 : 1);
        t->depth += opens;
    }
}

/*
 * Writes the expression, NUL-terminated, into arena. Classes within classes are flattened, \uHHHH becomes \x{HHHH}, and
 * {,n} becomes {0,n}. ATTN_ERR_VALUE, with a message that begins with field, for what means something else in PCRE2: \h,
 * \H, {n,m}+, intersections and negated classes within classes, and the options m, a, d, u.
 */
static attn_status ruby_translate(struct text_span regex, const char *field, attn_arena *arena,
                                  struct text_span *translated, attn_error *err)
{
    size_t room = 2 * regex.length + 1;
    for (size_t i = 0; i < regex.length; i++)
        room += regex.at[i] == '\\' || regex.at[i] == '[' ? WRITTEN_BYTES_MAX : 0;
    char *text = attn_arena_take(arena, room, 1);
    if (text == NULL)
        return attn_fail_no_memory(err);
    struct translation t = {.at = regex.at, .end = regex.at + regex.length, .to = text};
    while (t.at < t.end && t.refused == NULL) {
        if (t.depth > 0)
            translate_in_class(&t);
        else
            translate_outside(&t);
    }
    if (t.refused != NULL)
        return attn_fail(err, ATTN_ERR_VALUE, field, "%s has %s, which is not supported in patterns: \"%.200s\"", field,
                         t.refused, regex.at);
    assert((size_t)(t.to - text) < room);
    *t.to = '\0';
    *translated = (struct text_span){text, (size_t)(t.to - text)};
    return ATTN_OK;
}

/* ---- compiling ---- */

enum {
    STEPS_MIN = 1 << 20,       /* of one search from one place; besides, STEPS_PER_BYTE of the text */
    STEPS_PER_BYTE = 4,        /* two alternatives that each read a run of spaces twice */
    ITEMS_PER_BYTE = 256,      /* of one search from all places: a pattern of 256 items that matches nowhere */
    ITEM_COST_BYTES = 1 << 11, /* an item may read 64 KiB and fail, which takes a tenth of a millisecond */
    HEAP_KIBIBYTES = 32 << 10,
};

/* With the callouts, PCRE2 calls look before it tries an item of the pattern. */
#define OPTIONS (PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_AUTO_CALLOUT)

struct pattern {
    const pcre2_code *code; /* NULL: the text is literal */
    struct text_span literal;
};

static void *take(size_t bytes, void *arena)
{
    return attn_arena_take(arena, 1, bytes);
}

/* The arena takes all back. */
static void give(void *block, void *arena)
{
    (void)block, (void)arena;
}

static attn_status compile(struct text_span text, const char *field, attn_arena *arena, struct pattern *pattern,
                           attn_error *err)
{
    struct text_span regex = {NULL, 0};
    attn_status status = ruby_translate(text, field, arena, &regex, err);
    if (status != ATTN_OK)
        return status;
    pcre2_general_context *memory = pcre2_general_context_create(take, give, arena);
    pcre2_compile_context *context = memory != NULL ? pcre2_compile_context_create(memory) : NULL;
    if (context == NULL)
        return attn_fail_no_memory(err);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    int error;
    PCRE2_SIZE at;
    pattern->code = pcre2_compile((PCRE2_SPTR)regex.at, regex.length, OPTIONS, &error, &at, context);
    if (pattern->code != NULL)
        return ATTN_OK;
    PCRE2_UCHAR message[160] = "";
    pcre2_get_error_message(error, message, sizeof message);
    return attn_fail(err, ATTN_ERR_VALUE, field, "%s cannot be used as a pattern: %s, at byte %zu of \"%.200s\"", field,
                     (char *)message, (size_t)at, regex.at);
}

attn_status pattern_compile(struct text_span text, bool is_regex, const char *field, attn_arena *arena,
                            const struct pattern **pattern, attn_error *err)
{
    if (text.length == 0)
        return attn_fail(err, ATTN_ERR_VALUE, field, "%s is an empty pattern", field);
    struct pattern *made = attn_arena_take_zeroed(arena, 1, sizeof *made);
    if (made == NULL)
        return attn_fail_no_memory(err);
    made->literal = text;
    *pattern = made;
    return is_regex ? compile(text, field, arena, made, err) : ATTN_OK;
}

/* ---- searching ---- */

void pattern_begin(struct pattern_search *search, const struct pattern *pattern, const char *text, size_t length)
{
    search->pattern = pattern;
    search->text = text;
    search->length = length;
    search->at = 0;
    search->last_end = SIZE_MAX;
    search->pace = pace_begin(search->arena);
}

/* Counts an item and the text that was read since the last one. Not 0: PCRE2 ends the search with this error. */
static int look(pcre2_callout_block *block, void *of_search)
{
    struct pattern_search *search = of_search;
    const size_t at = block->current_position, last = search->item_at;
    search->item_at = at;
    search->is_cancelled = pace_stops(&search->pace, ITEM_COST_BYTES + (at > last ? at - last : last - at));
    if (search->is_cancelled)
        return PCRE2_ERROR_CALLOUT;
    return ++search->items > search->items_max ? PCRE2_ERROR_MATCHLIMIT : 0;
}

static bool prepare(struct pattern_search *search)
{
    if (search->match == NULL) {
        pcre2_general_context *memory = pcre2_general_context_create(take, give, search->arena);
        search->context = memory != NULL ? pcre2_match_context_create(memory) : NULL;
        search->match = search->context != NULL ? pcre2_match_data_create(1, memory) : NULL;
        if (search->match != NULL)
            pcre2_set_heap_limit(search->context, HEAP_KIBIBYTES);
    }
    return search->match != NULL;
}

static void set_limits(struct pattern_search *search, size_t steps)
{
    search->items = 0;
    search->items_max = STEPS_MIN + ITEMS_PER_BYTE * search->length;
    search->item_at = search->at;
    pcre2_set_match_limit(search->context, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    pcre2_set_callout(search->context, look, search);
}

static attn_status fail_search(const struct pattern_search *search, size_t steps, attn_error *err)
{
    if (search->is_cancelled)
        return attn_fail(err, ATTN_ERR_CANCELLED, NULL, "cancelled while a pattern was searched for");
    return attn_fail(err, ATTN_ERR_VALUE, NULL,
                     "the text takes too long to split: the pattern \"%.120s\" of the tokenizer needs more than %zu "
                     "steps or %d KiB for it",
                     search->pattern->literal.at, search->items > search->items_max ? search->items_max : steps,
                     HEAP_KIBIBYTES);
}

static attn_status find_literal(struct pattern_search *search, size_t *begin, size_t *end, bool *found)
{
    const struct text_span literal = search->pattern->literal;
    const char *at = memmem(search->text + search->at, search->length - search->at, literal.at, literal.length);
    *found = at != NULL;
    if (at != NULL) {
        *begin = (size_t)(at - search->text);
        *end = *begin + literal.length;
    }
    return ATTN_OK;
}

static attn_status find_regex(struct pattern_search *search, size_t *begin, size_t *end, bool *found, attn_error *err)
{
    if (!prepare(search))
        return attn_fail_no_memory(err);
    const size_t steps = STEPS_MIN + STEPS_PER_BYTE * search->length;
    set_limits(search, steps);
    const int count = pcre2_match(search->pattern->code, (PCRE2_SPTR)search->text, search->length, search->at,
                                  PCRE2_NO_UTF_CHECK, search->match, search->context);
    *found = count >= 0;
    if (*found) {
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(search->match);
        *begin = ends[0] < ends[1] ? ends[0] : ends[1]; /* \K within an assertion can turn them around */
        *end = ends[1];
    }
    if (*found || count == PCRE2_ERROR_NOMATCH)
        return ATTN_OK;
    return count == PCRE2_ERROR_NOMEMORY ? attn_fail_no_memory(err) : fail_search(search, steps, err);
}

static size_t character_bytes(const struct pattern_search *search)
{
    size_t bytes = 1;
    while (search->at + bytes < search->length && !utf8_begins(search->text[search->at + bytes]))
        bytes++;
    return bytes;
}

attn_status pattern_next(struct pattern_search *search, size_t *begin, size_t *end, bool *found, attn_error *err)
{
    *found = false;
    while (search->at <= search->length) {
        attn_status status = search->pattern->code == NULL ? find_literal(search, begin, end, found)
                                                           : find_regex(search, begin, end, found, err);
        if (status != ATTN_OK || !*found)
            return status;
        if (*begin < *end || *end != search->last_end) {
            search->at = search->last_end = *end;
            return ATTN_OK;
        }
        search->at += character_bytes(search);
        *found = false;
    }
    return ATTN_OK;
}
