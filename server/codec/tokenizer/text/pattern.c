/* pattern.c: literal texts and regular expressions, by PCRE2. */
#include "codec/tokenizer/text/pattern.h"

#include <stdint.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "codec/tokenizer/text/ruby.h"

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
    struct text_span regex;
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
    while (search->at + bytes < search->length && ((unsigned char)search->text[search->at + bytes] & 0xC0) == 0x80)
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
