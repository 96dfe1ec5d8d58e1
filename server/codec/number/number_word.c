/*
 * number_word.c: reads the words for numbers that JSON cannot write.
 */
#include "codec/number/number_word.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

const char *number_word_read(const char *text, const char *end, double *value)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {
        {"\"-Infinity\"", -(double)INFINITY}, {"\"Infinity\"", (double)INFINITY}, {"\"NaN\"", (double)NAN},
        {"\"-inf\"", -(double)INFINITY},      {"\"inf\"", (double)INFINITY},      {"\"nan\"", (double)NAN},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        const size_t length = strlen(words[i].word);
        if ((size_t)(end - text) >= length && memcmp(text, words[i].word, length) == 0) {
            *value = words[i].value;
            return text + length;
        }
    }
    return NULL;
}

bool number_word_is_bare(const char *text, const char *end)
{
    text += text < end && *text == '-';
    return end - text >= 3 && (strncasecmp(text, "nan", 3) == 0 || strncasecmp(text, "inf", 3) == 0);
}
