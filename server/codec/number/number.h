/* number.h: decimal text to and from numbers. */
#ifndef CODEC_NUMBER_NUMBER_H
#define CODEC_NUMBER_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * ---- read.c ----
 *
 * Decimal text to float32 and float64, rounded once and correctly; and the words for NaN and the infinities,
 * which JSON cannot write.
 *
 * Up to 19 digits take one or two multiplications by a power of ten that is known to 128 bits (Lemire, "Number parsing
 * at a gigabyte per second", 2021). strtof and strtod take over when digits beyond the 19th could decide the result. A
 * float32 is never read by way of a double, because two roundings give a wrong result for half of the hard decimals.
 */

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

/* Loads eight bytes as a word. The first byte is the lowest. */
static inline uint64_t number_load_word(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/*
 * ---- write.c ----
 *
 * Float32 and float64 to the shortest decimal text that reads back to the same value.
 *
 * The text is JSON: no leading '+', no bare point, and "-0" for minus zero. Numbers from 0.00001 to below 1e16 are
 * plain. Other numbers have an exponent, as in "1e-7" and "1.5e21". NaN and infinities are not allowed here; the caller
 * writes them.
 */

enum { NUMBER_TEXT_MAX = 32 }; /* The most bytes that one number takes. No function here writes a terminator. */

/* Each function writes a finite value at to and returns the end of the text. */
char *number_write_f32(char *to, float value);
/* Writes count values with commas between them. */
char *number_write_f32_run(char *to, const float *values, size_t count);
char *number_write_f64(char *to, double value);
/* Rounds correctly to digits significant digits (1 … 17), and drops trailing zeros. 0 digits: as number_write_f64. */
char *number_write_digits(char *to, double value, int digits);

/*
 * ---- 10^k to 128 bits, for reading and for writing ----
 *
 * For -342 <= k <= 324, high and low are the halves of the g with (g - 1) 2^e < 10^k <= g 2^e and 2^127 <= g < 2^128,
 * where e = power_of_ten_log2(k) - 127. So g is 10^k / 2^e, rounded up. It is exact for 0 <= k <= 55. low is 0 only for
 * 0 <= k <= 27, where high alone is exact.
 */

enum { POWER_OF_TEN_MIN = -342, POWER_OF_TEN_MAX = 324 };

struct power_of_ten {
    uint64_t high, low;
};

/* The index is k - POWER_OF_TEN_MIN. */
extern const struct power_of_ten POWERS_OF_TEN[POWER_OF_TEN_MAX - POWER_OF_TEN_MIN + 1];

/* floor(log2(10^k)). Correct for |k| <= 1233. */
static inline int power_of_ten_log2(int k)
{
    return (k * 1741647) >> 19;
}

__extension__ typedef unsigned __int128 wide_product;

/* The full 128-bit product of two 64-bit numbers. */
static inline wide_product multiply_wide(uint64_t a, uint64_t b)
{
    return (wide_product)a * b;
}

#endif
