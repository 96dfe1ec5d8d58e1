/*
 * read.h: decimal text to float32 and float64, rounded once and correctly; and the words for NaN and the infinities,
 * which JSON cannot write.
 *
 * Up to 19 digits take one or two multiplications by a power of ten that is known to 128 bits (Lemire, "Number parsing
 * at a gigabyte per second", 2021). strtof and strtod take over when digits beyond the 19th could decide the result. A
 * float32 is never read by way of a double, because two roundings give a wrong result for half of the hard decimals.
 */
#ifndef CODEC_NUMBER_READ_H
#define CODEC_NUMBER_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads one number of the JSON grammar (RFC 8259, section 6) from text[0 .. end - text) and stores its value. Returns
 * the first byte after the number, or NULL when no number begins at text. A value that is too large becomes an
 * infinity; one that is too small becomes 0 or a subnormal, as IEEE 754 rounds them. The locale plays no role. Safe
 * from any thread.
 */
const char *number_read_f32(const char *text, const char *end, float *value);
const char *number_read_f64(const char *text, const char *end, double *value);
/* Reads an integer in any notation: 2, 2.0, 2e0. Returns NULL for a fraction and for a value beyond int64, too. */
const char *number_read_i64(const char *text, const char *end, int64_t *value);

/*
 * Whether a number with a point or an exponent is an integer. If so, *value is that integer. The result is false from
 * 2^53 on, because doubles skip integers there: the double may differ from the number in the text.
 */
bool number_is_integer(double number, int64_t *value);

/*
 * An answer has "NaN", "Infinity" and "-Infinity", in quotes. A request may also have "nan", "inf" and "-inf", which
 * Python prints.
 */
/* Reads one of the six words in its quotes. Returns the byte after it, or NULL when no word begins at text. */
const char *number_word_read(const char *text, const char *end, double *value);
/* Likewise for the words that Python and Triton write without quotes: NaN, Infinity and -Infinity. */
const char *number_word_read_bare(const char *text, const char *end, double *value);
/* Whether a text in quotes was meant as a number: it has only digits and their signs, or it is one of the words. */
bool number_word_is_number(const char *text, size_t length);
/* Whether the text begins with such a word without quotes, in letters of any case: "-inf", "NaN". */
bool number_word_is_bare(const char *text, const char *end);

#endif
