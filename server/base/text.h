/*
 * text.h: small readings of text that several folders need: whole numbers, sizes, words.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A run of characters inside some longer text, not terminated. */
struct text_span {
    const char *at;
    size_t length;
};

/* A name and its value, both terminated. */
struct text_pair {
    const char *name, *value;
};

struct text_span text_span_of(const char *text);
/* Without the spaces and tabs at both ends. */
struct text_span text_trim(struct text_span span);
/*
 * Cuts the piece before the next separator off the front of *rest and trims it; false when nothing is left. A separator
 * within "double quotes" does not count.
 */
bool text_next(struct text_span *rest, char separator, struct text_span *piece);
/*
 * Cuts the next entity tag (RFC 9110, section 8.8.3) off the front of a list; *tag has its quotes, or is a star, or
 * what stands there instead. *is_weak: "W/" was before it. False when none is left.
 */
bool text_next_tag(struct text_span *rest, struct text_span *tag, bool *is_weak);
/* Whether If-None-Match names the tag, or any: by weak comparison (RFC 9110, section 13.1.2). NULL: no list, no tag. */
bool text_names_tag(const char *list, const char *tag);
/* As much of text as fits into to[0 .. size), terminated; what printf("%s") would do, at a tenth of its time. */
void text_copy(char *to, size_t size, const char *text);
bool text_equal(struct text_span span, const char *word);
/* ASCII letters compare without case; so does text_starts_fold. */
bool text_equal_fold(struct text_span span, const char *word);
bool text_starts_fold(const char *text, const char *prefix);

/* Decimal digits and nothing else; false also for a value beyond 64 bits. */
bool text_read_count(const char *text, uint64_t *count);
/* A digit of base 16, for 0 to 15; and back, from either case: -1 when c is none. */
char text_hex_digit(unsigned value);
int text_hex_value(char c);
/* Digits with an optional K, M, G or T (times 1024, 1024² …); "64M", "67108864". */
bool text_read_bytes(const char *text, uint64_t *bytes);
/* A finite number as strtod reads it ("1e13"), with nothing behind it. */
bool text_read_real(const char *text, double *real);
/* "64M" where a suffix is exact, else the digits. Returns text. */
const char *text_write_bytes(char *text, size_t size, uint64_t bytes);
/*
 * Decimal digits, and milliseconds with three digits behind the point, up to 1e12; terminated. Both return where they
 * end, for what follows. Every request writes a few dozen, which printf would make a good part of a small one's time:
 * the library of wide floats that comes with OpenBLAS teaches it formats of its own, and slows it down for all.
 */
enum { TEXT_COUNT_MAX = 21 };
char *text_write_count(char *text, uint64_t count);
enum { TEXT_MS_MAX = 24 };
char *text_write_ms(char *text, double ms);

#endif
