/* habit.c: finds the usual mistakes of people who write JSON by hand, and words of other programs. */
#include "codec/json/habit.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "codec/number/number.h"

static const char unquoted[] = "JSON writes names and strings in double quotes";

static const struct {
    const char *start, *sentence;
} habits[] = {
    {"'", unquoted},
    {"\u201C", unquoted},
    {"\u201D", unquoted},
    {"True", "JSON writes true in small letters"},
    {"False", "JSON writes false in small letters"},
    {"TRUE", "JSON writes true in small letters"},
    {"FALSE", "JSON writes false in small letters"},
    {"NULL", "JSON writes null in small letters"},
    {"Null", "JSON writes null in small letters"},
    {"None", "JSON writes null where Python has None"},
    {"nil", "JSON writes null where others have nil"},
    {"undefined", "JSON writes null, or leaves the member out"},
    {"//", "JSON has no comments"},
    {"/*", "JSON has no comments"},
    {"#", "JSON has no comments"},
};

/* The last byte before at that is no white space; 0 when there is none among the last few bytes. */
static char byte_before(const char *begin, const char *at)
{
    enum { LOOK_BYTES = 256 };
    const char *first = at - begin > LOOK_BYTES ? at - LOOK_BYTES : begin;
    while (at > first && strchr(" \t\r\n", at[-1]) != NULL)
        at--;
    return at > first ? at[-1] : '\0';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_in_number(char c)
{
    return is_digit(c) || is_letter(c) || c == '.' || c == '+' || c == '-';
}

/* The first byte of the number, or of what was meant as one, that at is in. */
static const char *number_begin(const char *begin, const char *at)
{
    enum { LOOK_BYTES = 64 };
    const char *first = at - begin > LOOK_BYTES ? at - LOOK_BYTES : begin;
    while (at > first && is_in_number(at[-1]))
        at--;
    return at;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && is_digit(*at))
        at++;
    return at;
}

static char byte_at(const char *at, const char *end)
{
    return at < end ? *at : '\0';
}

/* What is wrong behind the whole part of a number. NULL: nothing of the usual. */
static const char *find_after_digits(const char *at, const char *end)
{
    if (byte_at(at, end) == '.') {
        const char *after = skip_digits(at + 1, end);
        if (after == at + 1)
            return "a number needs a digit behind its point: 1.0, or 1 without a point";
        at = after;
    }
    if (byte_at(at, end) == 'e' || byte_at(at, end) == 'E') {
        at += byte_at(at + 1, end) == '+' || byte_at(at + 1, end) == '-' ? 2 : 1;
        if (!is_digit(byte_at(at, end)))
            return "a number needs a digit in its exponent: 1e5";
        at = skip_digits(at, end);
    }
    const char next = byte_at(at, end);
    return next == '_'       ? "JSON writes numbers without _"
           : next == '.'     ? "a number has one point at most"
           : is_letter(next) ? "a number has no letters behind it"
           : next == '/'     ? "JSON computes no fractions: write 0.5 for 1/2"
                             : NULL;
}

/* What is wrong with a number that begins at at. NULL: it is none, or nothing of the usual is wrong. */
static const char *find_in_number(const char *at, const char *end)
{
    if (byte_at(at, end) == '+')
        return "JSON writes numbers without +";
    const bool is_negative = byte_at(at, end) == '-';
    at += is_negative;
    if (byte_at(at, end) == '.')
        return "a number needs a digit before its point: 0.5";
    if (!is_digit(byte_at(at, end)))
        return is_negative ? "a number needs a digit behind its -" : NULL;
    const char next = byte_at(at + 1, end);
    if (*at == '0' && is_digit(next))
        return "a number does not begin with 0, unless a point follows";
    if (*at == '0' && next != '\0' && strchr("xXbBoO", next) != NULL)
        return "JSON writes decimal numbers alone";
    return find_after_digits(skip_digits(at, end), end);
}

/* Whether the text begins as a form does: a name and '='. */
static bool is_form(const char *at, const char *end)
{
    while (at < end && (is_in_number(*at) || *at == '%'))
        at++;
    return byte_at(at, end) == '=';
}

/* What is wrong where a value or a name was expected, told by the byte before it. */
static const char *find_by_neighbour(char before, const char *at, const char *end)
{
    const bool begins_value = is_digit(*at) || is_letter(*at) || strchr("-[{\"", *at) != NULL;
    if (before == '\0')
        return is_form(at, end) ? "it is a form, name=value; a body is an object, which begins with {"
                                : "a body is an object, which begins with {";
    if ((*at == '}' || *at == ']') && before == ',')
        return "JSON has no comma before a closing bracket";
    if (is_letter(*at) && strchr("{[,:", before) != NULL)
        return unquoted;
    if (is_digit(*at) && before == ',')
        return "JSON writes 0.5, with a point, for 0,5";
    if (begins_value && (is_digit(before) || is_letter(before) || strchr("]}\"", before) != NULL))
        return "a comma is missing between two values";
    return NULL;
}

const char *habit_find(const char *begin, const char *at, const char *end)
{
    if (at >= end)
        return NULL;
    if (number_word_is_bare(at, end))
        return "JSON has no such number: in tensors, write \"NaN\", \"Infinity\", \"-Infinity\" in quotes";
    for (size_t i = 0; i < ARRAY_LENGTH(habits); i++) {
        const size_t length = strlen(habits[i].start);
        if ((size_t)(end - at) >= length && memcmp(at, habits[i].start, length) == 0)
            return habits[i].sentence;
    }
    const char before = byte_before(begin, at);
    const char *number = before != '\0' ? find_in_number(number_begin(begin, at), end) : NULL;
    return number != NULL ? number : find_by_neighbour(before, at, end);
}

/* ---- words of other programs ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t joint_length(struct text_span word)
{
    size_t length = 0;
    while (length < word.length && (word.at[length] == '_' || word.at[length] == '-'))
        length++;
    return length;
}

static bool is_same(struct text_span a, struct text_span b)
{
    for (;;) {
        const size_t skip_a = joint_length(a), skip_b = joint_length(b);
        a = (struct text_span){a.at + skip_a, a.length - skip_a};
        b = (struct text_span){b.at + skip_b, b.length - skip_b};
        if (a.length == 0 || b.length == 0)
            return a.length == b.length;
        if (lower(*a.at++) != lower(*b.at++))
            return false;
        a.length--;
        b.length--;
    }
}

/* The module in the name of a tensor: "q_proj" of "layers.0.q_proj.weight". */
static struct text_span last_part(const char *name)
{
    static const char *const ends[] = {".weight", ".bias"};
    struct text_span part = text_span_of(name);
    for (size_t i = 0; i < 2; i++) {
        const size_t length = strlen(ends[i]);
        if (part.length > length && memcmp(part.at + part.length - length, ends[i], length) == 0)
            part.length -= length;
    }
    const char *dot = memrchr(part.at, '.', part.length);
    return dot == NULL ? part : (struct text_span){dot + 1, part.length - (size_t)(dot + 1 - part.at)};
}

bool foreign_has(const char *list, const char *word)
{
    const struct text_span wanted = last_part(word);
    struct text_span rest = text_span_of(list), each;
    while (text_next(&rest, ' ', &each))
        if (is_same(each, wanted))
            return true;
    return false;
}
