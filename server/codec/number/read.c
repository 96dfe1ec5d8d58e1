/*
 * read.c: decimal text to float32, float64 and int64.
 *
 * One scan turns the text into mantissa * 10^exponent with a mantissa of at most 19 digits. The conversion then takes
 * one or two multiplications (Lemire, "Number parsing at a gigabyte per second", 2021). An exact mantissa never needs a
 * slow path (Mushtak and Lemire, "Fast number parsing without fallback", 2023). Each type is rounded once, from the
 * decimal itself. strtof and strtod take over when digits beyond the 19th could decide the result.
 */
#include "codec/number/number.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

const struct power_of_ten POWERS_OF_TEN[] = {
#include "codec/number/powers_of_ten.inc"
};

enum {
    MANTISSA_DIGITS = 19, /* 19 digits always fit 64 bits, and so does their successor */
    STRTOD_DIGITS = 800   /* halfway points between two doubles have at most 767 digits */
};
/* No text is long enough for its digits to outweigh such an exponent. */
static const int64_t EXPONENT_STOP = INT64_C(100000000000000);

struct decimal {
    const char *digits, *digits_end; /* integer, point and fraction as written */
    uint64_t mantissa;
    int64_t exponent; /* the power of ten of the mantissa's last digit */
    int64_t dropped;  /* how many digits at the end are missing from the mantissa */
    bool is_negative;
};

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/*
 * The value of eight digits, the first one in the lowest byte. Digits are joined to pairs, pairs to fours, fours to
 * eight.
 */
static uint64_t eight_digits(uint64_t digits)
{
    digits = digits * 10 + (digits >> 8);
    uint64_t first = (digits & 0x000000FF000000FF) * (100 + (UINT64_C(1000000) << 32));
    uint64_t second = ((digits >> 16) & 0x000000FF000000FF) * (1 + (UINT64_C(10000) << 32));
    return (first + second) >> 32;
}

static const uint64_t SCALE[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/*
 * Eight bytes of text. digits: each byte minus '0'. others: the high bit of each byte that is not a digit. others is
 * exact only up to the first such byte.
 */
struct eight_bytes {
    uint64_t digits, others;
};

static inline struct eight_bytes read_eight(const char *text)
{
    uint64_t digits = number_load_word(text) ^ UINT64_C(0x3030303030303030);
    /* The high bit of a byte is set when the byte is above 9. No carry reaches the bytes below the first such byte. */
    return (struct eight_bytes){digits,
                                (digits | (digits + UINT64_C(0x7676767676767676))) & UINT64_C(0x8080808080808080)};
}

/*
 * For eight bytes that are not all digits: appends the digits before the first other byte to mantissa, and counts them.
 */
static inline uint64_t append_some(uint64_t mantissa, struct eight_bytes bytes, int *count)
{
    *count = __builtin_ctzll(bytes.others) / 8;
    /* The digits move up, and zeros come in before them. There are two shifts, because one shift by 64 is undefined. */
    return mantissa * SCALE[*count] + eight_digits(bytes.digits << (56 - 8 * *count) << 8);
}

/*
 * Appends the digits at text to *mantissa, modulo 2^64. Returns where the digits end. The loop takes eight digits at a
 * time, because most fractions are long.
 */
static const char *read_digits(const char *text, const char *end, uint64_t *mantissa)
{
    for (; end - text >= 8; text += 8) {
        const struct eight_bytes bytes = read_eight(text);
        if (bytes.others != 0) {
            int count;
            *mantissa = append_some(*mantissa, bytes, &count);
            return text + count;
        }
        *mantissa = *mantissa * SCALE[8] + eight_digits(bytes.digits);
    }
    for (; text < end && is_digit(*text); text++)
        *mantissa = *mantissa * 10 + (uint64_t)(*text - '0');
    return text;
}

/* Reads the exponent behind 'e'. Returns its end, or NULL when it has no digits. */
static const char *scan_exponent(const char *text, const char *end, int64_t *exponent)
{
    bool is_negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+'))
        text++;
    if (text == end || !is_digit(*text))
        return NULL;
    int64_t value = 0;
    for (; text < end && is_digit(*text); text++) {
        if (value < EXPONENT_STOP)
            value = value * 10 + (*text - '0');
    }
    *exponent += is_negative ? -value : value;
    return text;
}

/*
 * The fast path for most numbers of a large body: one digit, a point, at most 18 digits, and more text behind them.
 * Returns where the number ends, or NULL for any other number, which scan_number then reads. This path is faster
 * because all its values stay in registers.
 */
static inline const char *scan_short(const char *text, const char *end, uint64_t *mantissa, int64_t *exponent)
{
    enum { PLACES_MAX = 18, BYTES = 2 + 3 * 8 };
    if (end - text < BYTES || !is_digit(text[0]) || text[1] != '.')
        return NULL;
    const char *const fraction = text + 2;
    uint64_t all = (uint64_t)(text[0] - '0');
    struct eight_bytes bytes = read_eight(fraction);
    int count;
    for (text = fraction; bytes.others == 0; bytes = read_eight(text)) {
        all = all * SCALE[8] + eight_digits(bytes.digits);
        text += 8;
        if (text - fraction > PLACES_MAX)
            return NULL;
    }
    *mantissa = append_some(all, bytes, &count);
    text += count;
    *exponent = fraction - text;
    if (*exponent == 0 || *exponent < -PLACES_MAX)
        return NULL;
    if ((*text | 0x20) != 'e')
        return text;
    int64_t with_power = *exponent;
    text = scan_exponent(text + 1, end, &with_power);
    *exponent = with_power;
    return text;
}

/* Reads the mantissa again: skips leading zeros and stops after MANTISSA_DIGITS. */
static void shorten_mantissa(struct decimal *decimal)
{
    const char *at = decimal->digits;
    while (at < decimal->digits_end && (*at == '0' || *at == '.'))
        at++;
    int kept = 0;
    decimal->mantissa = 0;
    for (; at < decimal->digits_end && kept < MANTISSA_DIGITS; at++) {
        if (*at != '.') {
            decimal->mantissa = decimal->mantissa * 10 + (uint64_t)(*at - '0');
            kept++;
        }
    }
    decimal->dropped = decimal->digits_end - at;
    if (decimal->dropped > 0 && memchr(at, '.', (size_t)decimal->dropped) != NULL)
        decimal->dropped--;
    decimal->exponent += decimal->dropped;
}

/* Scans '-'? ('0' | [1-9][0-9]*). Returns its end, or NULL. */
static const char *scan_integer(const char *text, const char *end, struct decimal *decimal)
{
    decimal->is_negative = text < end && *text == '-';
    text += decimal->is_negative;
    decimal->digits = text;
    decimal->mantissa = 0;
    if (text == end || !is_digit(*text))
        return NULL;
    bool starts_with_zero = *text == '0';
    for (; text < end && is_digit(*text); text++)
        decimal->mantissa = decimal->mantissa * 10 + (uint64_t)(*text - '0');
    decimal->digits_end = text;
    return starts_with_zero && text - decimal->digits > 1 ? NULL : text;
}

/* Scans a number by the JSON grammar. Returns its end, or NULL. */
static const char *scan_number(const char *text, const char *end, struct decimal *decimal)
{
    text = scan_integer(text, end, decimal);
    if (text == NULL)
        return NULL;
    int64_t digits = text - decimal->digits;
    decimal->exponent = 0;
    decimal->dropped = 0;
    if (text < end && *text == '.') {
        const char *fraction = text + 1;
        text = read_digits(fraction, end, &decimal->mantissa);
        if (text == fraction)
            return NULL;
        decimal->exponent = fraction - text;
        decimal->digits_end = text;
        digits += text - fraction;
    }
    if (text < end && (*text == 'e' || *text == 'E'))
        text = scan_exponent(text + 1, end, &decimal->exponent);
    if (digits > MANTISSA_DIGITS)
        shorten_mantissa(decimal);
    return text;
}

/* A binary format. The tie powers say which powers of ten can give a decimal exactly halfway between two numbers. */
struct binary_format {
    int mantissa_bits; /* without the hidden bit */
    int bias;
    int exponent_all_ones;
    int power_min, power_max;         /* any mantissa gives 0 below power_min, and infinity above power_max */
    int tie_power_min, tie_power_max; /* the powers at which a decimal can lie exactly halfway */
};
static const struct binary_format FLOAT32 = {23, 127, 0xFF, -64, 38, -17, 10};
static const struct binary_format FLOAT64 = {52, 1023, 0x7FF, -342, 308, -4, 23};

/* The upper 128 bits of mantissa * 10^power, as exact as mantissa_bits need. The top bit of mantissa must be set. */
static inline wide_product scale_mantissa(uint64_t mantissa, int power, int mantissa_bits)
{
    const struct power_of_ten *ten = &POWERS_OF_TEN[power - POWER_OF_TEN_MIN];
    /*
     * The proof needs powers that are cut off, except for small negative ones. The table has powers that are rounded
     * up.
     */
    uint64_t is_above = power < -27 || power > 55;
    wide_product product = multiply_wide(mantissa, ten->high);
    uint64_t undecided = UINT64_MAX >> (mantissa_bits + 3);
    if (((uint64_t)(product >> 64) & undecided) == undecided)
        product += multiply_wide(mantissa, ten->low - is_above) >> 64;
    return product;
}

/* The bits of mantissa * 10^power, rounded to nearest even, without a sign. */
static inline uint64_t round_decimal(uint64_t mantissa, int64_t power, const struct binary_format *format)
{
    if (mantissa == 0 || power < format->power_min)
        return 0;
    uint64_t infinity = (uint64_t)format->exponent_all_ones << format->mantissa_bits;
    if (power > format->power_max)
        return infinity;
    int zeros = __builtin_clzll(mantissa);
    wide_product product = scale_mantissa(mantissa << zeros, (int)power, format->mantissa_bits);
    uint64_t high = (uint64_t)(product >> 64);
    int top = (int)(high >> 63);
    int shift = top + 64 - format->mantissa_bits - 3;
    uint64_t result = high >> shift; /* has one bit more than the format */
    int exponent = power_of_ten_log2((int)power) + 63 + top - zeros + format->bias;
    if (exponent <= 0) {
        /* Subnormal. A carry into the place of the hidden bit gives the smallest normal number, which is correct. */
        result = exponent < -62 ? 0 : result >> (1 - exponent);
        return (result + (result & 1)) >> 1;
    }
    bool may_tie = (uint64_t)product <= 1 && power >= format->tie_power_min && power <= format->tie_power_max;
    if (may_tie && (result & 3) == 1 && result << shift == high)
        result--;
    result = (result + (result & 1)) >> 1;
    /* The hidden bit adds 1 to the exponent. A mantissa that rounds up to the next power of two adds 1 more. */
    uint64_t bits = ((uint64_t)(exponent - 1) << format->mantissa_bits) + result;
    return bits < infinity ? bits : infinity;
}

/*
 * Writes all digits that can matter as text for strtod. The text is an integer with an exponent, so that the locale's
 * decimal point plays no role. A last digit 1 stands for all digits that are left out, because only whether they are
 * more than zero matters.
 */
static void print_for_strtod(char *to, size_t size, const struct decimal *decimal, int64_t exponent)
{
    size_t used = 0;
    bool is_more = false;
    int64_t left_out = 0;
    const char *at = decimal->digits;
    while (*at == '0' || *at == '.')
        at++;
    for (; at < decimal->digits_end; at++) {
        if (*at == '.')
            continue;
        if (used < STRTOD_DIGITS) {
            to[used++] = *at;
        } else {
            is_more = is_more || *at != '0';
            left_out++;
        }
    }
    exponent += left_out - 1;
    to[used++] = is_more ? '1' : '0';
    snprintf(to + used, size - used, "e%" PRId64, exponent);
}

enum { STRTOD_TEXT = STRTOD_DIGITS + 1 + sizeof "e-9223372036854775808" };

/* Converts to *bits. Returns whether the dropped digits cannot change the result. */
static inline bool convert(const struct decimal *decimal, const struct binary_format *format, uint64_t *bits)
{
    *bits = round_decimal(decimal->mantissa, decimal->exponent, format);
    return decimal->dropped == 0 || *bits == round_decimal(decimal->mantissa + 1, decimal->exponent, format);
}

static const char *read_any_f32(const char *text, const char *end, float *value)
{
    struct decimal decimal;
    text = scan_number(text, end, &decimal);
    if (text == NULL)
        return NULL;
    uint64_t bits;
    if (!convert(&decimal, &FLOAT32, &bits)) {
        char copy[STRTOD_TEXT];
        print_for_strtod(copy, sizeof copy, &decimal, decimal.exponent - decimal.dropped);
        *value = strtof(copy, NULL);
        *value = decimal.is_negative ? -*value : *value;
        return text;
    }
    uint32_t word = (uint32_t)bits | (uint32_t)decimal.is_negative << 31;
    memcpy(value, &word, sizeof word);
    return text;
}

const char *number_read_f32(const char *text, const char *end, float *value)
{
    const bool is_negative = text < end && *text == '-';
    uint64_t mantissa;
    int64_t exponent;
    const char *after = scan_short(text + is_negative, end, &mantissa, &exponent);
    if (after == NULL)
        return read_any_f32(text, end, value);
    uint32_t word = (uint32_t)round_decimal(mantissa, exponent, &FLOAT32) | (uint32_t)is_negative << 31;
    memcpy(value, &word, sizeof word);
    return after;
}

static const char *read_any_f64(const char *text, const char *end, double *value)
{
    struct decimal decimal;
    text = scan_number(text, end, &decimal);
    if (text == NULL)
        return NULL;
    uint64_t bits;
    if (!convert(&decimal, &FLOAT64, &bits)) {
        char copy[STRTOD_TEXT];
        print_for_strtod(copy, sizeof copy, &decimal, decimal.exponent - decimal.dropped);
        *value = strtod(copy, NULL);
        *value = decimal.is_negative ? -*value : *value;
        return text;
    }
    bits |= (uint64_t)decimal.is_negative << 63;
    memcpy(value, &bits, sizeof bits);
    return text;
}

const char *number_read_f64(const char *text, const char *end, double *value)
{
    const bool is_negative = text < end && *text == '-';
    uint64_t mantissa;
    int64_t exponent;
    const char *after = scan_short(text + is_negative, end, &mantissa, &exponent);
    if (after == NULL)
        return read_any_f64(text, end, value);
    uint64_t bits = round_decimal(mantissa, exponent, &FLOAT64) | (uint64_t)is_negative << 63;
    memcpy(value, &bits, sizeof bits);
    return after;
}

bool number_is_integer(double number, int64_t *value)
{
    static const double least_inexact = 0x1p53;
    if (!(number > -least_inexact && number < least_inexact))
        return false;
    const int64_t integer = (int64_t)number;
    if ((double)integer != number)
        return false;
    *value = integer;
    return true;
}

/* Reads a number with a point or an exponent whose value is an integer. */
static const char *read_integral_real(const char *text, const char *end, int64_t *value)
{
    double number;
    const char *after = number_read_f64(text, end, &number);
    return after != NULL && number_is_integer(number, value) ? after : NULL;
}

const char *number_read_i64(const char *text, const char *end, int64_t *value)
{
    const char *begin = text;
    struct decimal decimal;
    text = scan_integer(text, end, &decimal);
    if (text != NULL && text < end && (*text == '.' || *text == 'e' || *text == 'E'))
        return read_integral_real(begin, end, value);
    if (text == NULL || text - decimal.digits > MANTISSA_DIGITS)
        return NULL;
    if (decimal.mantissa > (uint64_t)INT64_MAX + decimal.is_negative)
        return NULL;
    *value = (int64_t)(decimal.is_negative ? 0 - decimal.mantissa : decimal.mantissa);
    return text;
}

/* ---- words for numbers that JSON cannot write ---- */

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
