/* text.c: reads and writes short texts. */
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct text_span text_span_of(const char *text)
{
    return (struct text_span){text, strlen(text)};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct text_span text_trim(struct text_span span)
{
    while (span.length > 0 && is_blank(span.at[0])) {
        span.at++;
        span.length--;
    }
    while (span.length > 0 && is_blank(span.at[span.length - 1]))
        span.length--;
    return span;
}

bool text_next(struct text_span *rest, char separator, struct text_span *piece)
{
    if (rest->length == 0)
        return false;
    size_t end = 0;
    bool is_quoted = false;
    while (end < rest->length && (is_quoted || rest->at[end] != separator)) {
        if (rest->at[end] == '\\' && is_quoted && end + 1 < rest->length)
            end++;
        else if (rest->at[end] == '"')
            is_quoted = !is_quoted;
        end++;
    }
    *piece = text_trim((struct text_span){rest->at, end});
    const size_t used = end < rest->length ? end + 1 : end;
    *rest = (struct text_span){rest->at + used, rest->length - used};
    return true;
}

bool text_next_tag(struct text_span *rest, struct text_span *tag, bool *is_weak)
{
    if (!text_next(rest, ',', tag))
        return false;
    *is_weak = tag->length > 2 && tag->at[0] == 'W' && tag->at[1] == '/';
    if (*is_weak)
        *tag = (struct text_span){tag->at + 2, tag->length - 2};
    return true;
}

bool text_names_tag(const char *list, const char *tag)
{
    struct text_span rest = text_span_of(list != NULL ? list : ""), one;
    bool is_weak;
    while (tag != NULL && text_next_tag(&rest, &one, &is_weak))
        if (text_equal(one, tag) || (text_equal(one, "*") && !is_weak))
            return true;
    return false;
}

void text_copy(char *to, size_t size, const char *text)
{
    const size_t length = strnlen(text, size - 1);
    memcpy(to, text, length);
    to[length] = '\0';
}

void text_replace(char *text, size_t size, const char *from, const char *to)
{
    char *at = strstr(text, from);
    const size_t before = strlen(from), after = strlen(to);
    if (at == NULL || strlen(text) + after >= size + before)
        return;
    memmove(at + after, at + before, strlen(at + before) + 1);
    memcpy(at, to, after);
}

bool text_equal(struct text_span span, const char *word)
{
    return strlen(word) == span.length && memcmp(span.at, word, span.length) == 0;
}

bool text_begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

bool text_ends(const char *text, const char *ending)
{
    const size_t length = strlen(text), own = strlen(ending);
    return length >= own && memcmp(text + length - own, ending, own) == 0;
}

bool text_equal_fold(struct text_span span, const char *word)
{
    return strlen(word) == span.length && strncasecmp(span.at, word, span.length) == 0;
}

bool text_starts_fold(const char *text, const char *prefix)
{
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

bool text_is_name(const char *text, size_t length, size_t max)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    for (size_t i = 0; i < length; i++)
        if (memchr(allowed, text[i], sizeof allowed - 1) == NULL)
            return false;
    return length >= 1 && length <= max;
}

/* Reads the digits at the front of *text and moves *text behind them. */
static bool read_digits(const char **text, uint64_t *value)
{
    const char *at = *text;
    *value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value))
            return false;
    const bool has_digits = at != *text;
    *text = at;
    return has_digits;
}

bool text_read_count(const char *text, uint64_t *count)
{
    return read_digits(&text, count) && *text == '\0';
}

static const char size_suffixes[] = "KMGT";

bool text_read_bytes(const char *text, uint64_t *bytes)
{
    if (!read_digits(&text, bytes))
        return false;
    if (*text == '\0')
        return true;
    const char *suffix = strchr(size_suffixes, *text);
    if (suffix == NULL || text[1] != '\0')
        return false;
    return !__builtin_mul_overflow(*bytes, UINT64_C(1) << 10 * (suffix - size_suffixes + 1), bytes);
}

bool text_read_real(const char *text, double *real)
{
    if (*text == '\0' || strspn(text, "0123456789+-.eE") != strlen(text))
        return false;
    char *end = NULL;
    errno = 0;
    *real = strtod(text, &end);
    return *end == '\0' && errno == 0 && isfinite(*real);
}

const char *text_write_bytes(char *text, size_t size, uint64_t bytes)
{
    int suffix = 0;
    while (suffix < 4 && bytes > 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        suffix++;
    }
    snprintf(text, size, "%llu%.1s", (unsigned long long)bytes, suffix > 0 ? &size_suffixes[suffix - 1] : "");
    return text;
}

static const char hex_digits[] = "0123456789abcdef";

char text_hex_digit(unsigned value)
{
    return hex_digits[value];
}

int text_hex_value(char c)
{
    const char folded = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    const char *at = folded != '\0' ? strchr(hex_digits, folded) : NULL;
    return at != NULL ? (int)(at - hex_digits) : -1;
}

char *text_write_count(char *text, uint64_t count)
{
    char digits[TEXT_COUNT_MAX], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + count % 10);
    while ((count /= 10) > 0);
    const size_t length = (size_t)(digits + sizeof digits - at);
    memcpy(text, at, length);
    text[length] = '\0';
    return text + length;
}

char *text_write_ms(char *text, double ms)
{
    static const double MOST = 1e12;
    char digits[TEXT_MS_MAX], *at = digits + sizeof digits;
    uint64_t thousandths = (uint64_t)((ms > 0 ? ms < MOST ? ms : MOST : 0) * 1e3 + 0.5);
    for (int i = 0; thousandths > 0 || i < 5; i++) {
        if (i == 3) {
            *--at = '.';
        } else {
            *--at = (char)('0' + thousandths % 10);
            thousandths /= 10;
        }
    }
    const size_t length = (size_t)(digits + sizeof digits - at);
    memcpy(text, at, length);
    text[length] = '\0';
    return text + length;
}

/* ---- the nearest name: edit distance with swaps (Damerau, restricted), by three rows of the table ---- */

enum {
    WORD_MAX = 63,
    NAME_MAX_LENGTH = 40, /* nobody types longer names by hand */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t nearest_distance(const char *a, const char *b)
{
    const size_t a_length = strnlen(a, WORD_MAX), b_length = strnlen(b, WORD_MAX);
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_length; j++)
        above[j] = j;
    memcpy(before, above, (b_length + 1) * sizeof *before);
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[b_length];
}

void nearest_consider(const char *name, const char *candidate, const char **nearest, size_t *distance)
{
    const size_t candidate_length = strlen(candidate);
    if (strlen(name) > NAME_MAX_LENGTH || candidate_length > NAME_MAX_LENGTH)
        return;
    const size_t edits = nearest_distance(name, candidate);
    if (edits < *distance && 2 * edits < candidate_length) {
        *distance = edits;
        *nearest = candidate;
    }
}
