/*
 * pattern.h: literal texts and regular expressions, found in a text one after the other.
 *
 * tokenizer.json has the expressions of Oniguruma in its Ruby syntax. They run here by PCRE2, after what is written
 * differently is rewritten; what PCRE2 cannot express is refused. A search has a limit of steps and of memory, and asks
 * at its steps whether it is cancelled, so no text and no pattern can hang it.
 */
#ifndef CODEC_TOKENIZER_TEXT_PATTERN_H
#define CODEC_TOKENIZER_TEXT_PATTERN_H

#include <stddef.h>

#include "attn/arena.h"
#include "base/text.h"
#include "codec/bytes/pace.h"

struct pattern;

/*
 * Compiles text into arena, which must outlive the pattern. The pattern is constant: any thread may search with it.
 * Fails, with a message that begins with the pointer field.
 */
ATTN_MUST_CHECK attn_status pattern_compile(struct text_span text, bool is_regex, const char *field, attn_arena *arena,
                                            const struct pattern **pattern, attn_error *err);

/* A search through one text after another. Zero-initialise it, with arena set; its memory comes from there. */
struct pattern_search {
    attn_arena *arena;
    void *context, *match; /* of PCRE2; made when they are needed */
    const struct pattern *pattern;
    const char *text;
    size_t length, at;
    size_t last_end; /* of the last match; SIZE_MAX: there was none */
    struct pace pace;
    size_t items, items_max; /* of the pattern that the present search has tried, and may try */
    size_t item_at;          /* where in the text it tried the last one */
    bool is_cancelled;
};

void pattern_begin(struct pattern_search *search, const struct pattern *pattern, const char *text, size_t length);
/*
 * Finds the next match as Oniguruma's iterator does: leftmost, not overlapping; an empty one not right behind another.
 * *found tells whether there was one.
 *   ATTN_ERR_VALUE      the pattern needs too many steps or too much memory for this text
 *   ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 */
ATTN_MUST_CHECK attn_status pattern_next(struct pattern_search *search, size_t *begin, size_t *end, bool *found,
                                         attn_error *err);

#endif
