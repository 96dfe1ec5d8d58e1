/* text.h: reads, writes and compares short texts: numbers, sizes, lists, words. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters inside a longer text; no NUL ends them. */
struct text_span {
    const char *at;
    size_t length;
};

/* A name and its value, each ended by a NUL. */
struct text_pair {
    const char *name, *value;
};

struct text_span text_span_of(const char *text);
/* Removes the spaces and tabs at both ends. */
struct text_span text_trim(struct text_span span);
/*
 * Removes the piece before the next separator from the front of *rest and trims the piece. A separator within "double
 * quotes" does not count. False: nothing is left.
 */
bool text_next(struct text_span *rest, char separator, struct text_span *piece);
/*
 * Removes the next entity tag (RFC 9110, section 8.8.3) from the front of a list. *tag keeps its quotes; it may also be
 * a star, or text that is not a tag. *is_weak: "W/" stood before the tag. False: nothing is left.
 */
bool text_next_tag(struct text_span *rest, struct text_span *tag, bool *is_weak);
/*
 * Whether the list of If-None-Match has the tag or a star, by weak comparison (RFC 9110, section 13.1.2). False for a
 * list or tag of NULL.
 */
bool text_names_tag(const char *list, const char *tag);
/* Copies as much of text as fits into to[0 .. size), and a NUL, in a tenth of the time of snprintf("%s"). */
void text_copy(char *to, size_t size, const char *text);
/* Replaces the first from in text[0 .. size) by to. The text stays as it is when the result does not fit. */
void text_replace(char *text, size_t size, const char *from, const char *to);
bool text_equal(struct text_span span, const char *word);
bool text_begins(const char *text, const char *beginning);
bool text_ends(const char *text, const char *ending);
/* Both functions ignore the case of ASCII letters. */
bool text_equal_fold(struct text_span span, const char *word);
bool text_starts_fold(const char *text, const char *prefix);
/*
 * Whether text[0 .. length) is 1 to max ASCII letters, digits, dots, underscores and hyphens, which the names of layers,
 * caches, API keys and requests are.
 */
bool text_is_name(const char *text, size_t length, size_t max);

/* Reads decimal digits alone. False: the text has other characters, or the value does not fit 64 bits. */
bool text_read_count(const char *text, uint64_t *count);
/* The hexadecimal digit of 0 to 15, and the value of a digit of either case; -1 when c is no digit. */
char text_hex_digit(unsigned value);
int text_hex_value(char c);
/* Reads digits with an optional K, M, G or T for powers of 1024: "64M", "67108864". */
bool text_read_bytes(const char *text, uint64_t *bytes);
/* Reads a finite number as strtod does ("1e13"). The number must be the whole text. */
bool text_read_real(const char *text, double *real);
/* Writes "64M" where a suffix is exact, else plain digits. Returns text. */
const char *text_write_bytes(char *text, size_t size, uint64_t bytes);
/*
 * Writes decimal digits, or milliseconds with three digits after the point (up to 1e12), and a NUL. Both return the end
 * of the text. A request writes a few dozen numbers. printf would take much of a small request's time, because the
 * quadruple-precision library that comes with OpenBLAS adds formats to printf, which slow down every call.
 */
enum { TEXT_COUNT_MAX = 21 };
char *text_write_count(char *text, uint64_t count);
enum { TEXT_MS_MAX = 24 };
char *text_write_ms(char *text, double ms);

/* ---- the known name that a mistyped name most probably means ---- */

enum { NEAREST_MAX = 2 }; /* more edits are not a typing error */

/*
 * The number of edits that turn one word into the other: insert, drop, replace, swap neighbours. Only the first 63
 * characters count.
 */
size_t nearest_distance(const char *a, const char *b);

/*
 * Compares candidate with name. If it is fewer than *distance edits away, and few for its length, it becomes *nearest
 * and *distance. Start with *distance = NEAREST_MAX + 1.
 */
void nearest_consider(const char *name, const char *candidate, const char **nearest, size_t *distance);

#endif
