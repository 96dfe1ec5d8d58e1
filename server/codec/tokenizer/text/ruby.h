/* ruby.h: rewrites a regular expression of Oniguruma's Ruby syntax for PCRE2. */
#ifndef CODEC_TOKENIZER_TEXT_RUBY_H
#define CODEC_TOKENIZER_TEXT_RUBY_H

#include "attn/arena.h"
#include "base/text.h"

/*
 * Writes the expression, NUL-terminated, into arena. Classes within classes are flattened, \uHHHH becomes \x{HHHH}, and
 * {,n} becomes {0,n}. ATTN_ERR_VALUE, with a message that begins with field, for what means something else in PCRE2: \h,
 * \H, {n,m}+, intersections and negated classes within classes, and the options m, a, d, u.
 */
ATTN_MUST_CHECK attn_status ruby_translate(struct text_span regex, const char *field, attn_arena *arena,
                                           struct text_span *translated, attn_error *err);

#endif
