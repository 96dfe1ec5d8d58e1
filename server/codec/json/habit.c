/*
 * habit.c: finds the usual mistakes of people who write JSON by hand.
 */
#include "codec/json/habit.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "codec/number/number_word.h"

static const char unquoted[] = "JSON writes names and strings in double quotes";

static const struct {
    const char *start, *sentence;
} habits[] = {
    {"'", unquoted},
    {"\u201C", unquoted},
    {"\u201D", unquoted},
    {"True", "JSON writes true in small letters"},
    {"False", "JSON writes false in small letters"},
    {"None", "JSON writes null where Python has None"},
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
    if ((*at == '}' || *at == ']') && before == ',')
        return "JSON has no comma before a closing bracket";
    if (is_letter(*at) && (before == '{' || before == ','))
        return unquoted;
    return NULL;
}
