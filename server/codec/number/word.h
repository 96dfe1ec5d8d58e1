/*
 * word.h: the words for numbers that JSON cannot write: NaN and the infinities.
 *
 * An answer has "NaN", "Infinity" and "-Infinity", in quotes. A request may also have "nan", "inf" and "-inf", which
 * Python prints.
 */
#ifndef CODEC_NUMBER_WORD_H
#define CODEC_NUMBER_WORD_H

#include <stdbool.h>
#include <stddef.h>

/* Reads one of the six words in its quotes. Returns the byte after it, or NULL when no word begins at text. */
const char *number_word_read(const char *text, const char *end, double *value);
/* Likewise for the words that Python and Triton write without quotes: NaN, Infinity and -Infinity. */
const char *number_word_read_bare(const char *text, const char *end, double *value);
/* Whether a text in quotes was meant as a number: it has only digits and their signs, or it is one of the words. */
bool number_word_is_number(const char *text, size_t length);
/* Whether the text begins with such a word without quotes, in letters of any case: "-inf", "NaN". */
bool number_word_is_bare(const char *text, const char *end);

#endif
