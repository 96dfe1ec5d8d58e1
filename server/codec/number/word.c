/* word.c: reads the words for numbers that JSON cannot write. */
#include "codec/number/word.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

static const struct word {
    const char *text;
    double value;
} words[] = {
    {"\"-Infinity\"", -(double)INFINITY}, {"\"Infinity\"", (double)INFINITY}, {"\"NaN\"", (double)NAN},
    {"\"-inf\"", -(double)INFINITY},      {"\"inf\"", (double)INFINITY},      {"\"nan\"", (double)NAN},
};

enum { BARE_WORDS = 3 }; /* the first of them */

static const char *take(const char *text, const char *end, const char *word, size_t length)
{
    return (size_t)(end - text) >= length && memcmp(text, word, length) == 0 ? text + length : NULL;
}

const char *number_word_read(const char *text, const char *end, double *value)
{
    const char *after = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(words) && after == NULL; i++) {
        after = take(text, end, words[i].text, strlen(words[i].text));
        *value = words[i].value;
    }
    return after;
}

const char *number_word_read_bare(const char *text, const char *end, double *value)
{
    const char *after = NULL;
    for (size_t i = 0; i < BARE_WORDS && after == NULL; i++) {
        after = take(text, end, words[i].text + 1, strlen(words[i].text) - 2);
        *value = words[i].value;
    }
    return after;
}

bool number_word_is_number(const char *text, size_t length)
{
    bool has_digit = false;
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (length == strlen(words[i].text) - 2 && memcmp(text, words[i].text + 1, length) == 0)
            return true;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\0' || strchr("0123456789+-.,eE_ ", text[i]) == NULL)
            return false;
        has_digit = has_digit || (text[i] >= '0' && text[i] <= '9');
    }
    return has_digit;
}

bool number_word_is_bare(const char *text, const char *end)
{
    text += text < end && *text == '-';
    return end - text >= 3 && (strncasecmp(text, "nan", 3) == 0 || strncasecmp(text, "inf", 3) == 0);
}
