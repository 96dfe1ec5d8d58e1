/*
 * number_write.c: numbers to decimal text.
 *
 * The shortest digits come from Schubfach (Raffaello Giulietti, "The Schubfach way to render doubles", 2020): of all
 * decimals in the interval that rounds to the value it finds one with the fewest digits, and of those the closest. It
 * takes three multiplications by a power of ten; the C form follows that of Alexander Bolz (Drachennest, 2020).
 */
#include "codec/number_write.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "codec/powers_of_ten.h"

enum {
    DIGITS_MAX = 17,
    PLAIN_EXPONENT_MIN = -5,      /* 0.00001 and */
    PLAIN_EXPONENT_MAX = 15,      /* 9007199254740992 are written without an exponent */
    PADDED = 2 * (DIGITS_MAX - 1) /* room for copies of fixed length that start behind any digit */
};

/* digits * 10^exponent, with at most 17 digits. */
struct decimal {
    uint64_t digits;
    int exponent;
};

static const uint64_t POWERS[] = {1,
                                  10,
                                  100,
                                  1000,
                                  10000,
                                  100000,
                                  1000000,
                                  10000000,
                                  100000000,
                                  1000000000,
                                  10000000000,
                                  100000000000,
                                  1000000000000,
                                  10000000000000,
                                  100000000000000,
                                  1000000000000000,
                                  10000000000000000,
                                  100000000000000000};

/* Digits of value, 0 < value < 10^17. */
static int count_digits(uint64_t value)
{
    int bits = 64 - __builtin_clzll(value);
    int guess = (bits * 1233) >> 12; /* log10(2) = 0.30103; right, or one too small */
    return guess + (value >= POWERS[guess]);
}

/* The eight digits of value < 10^8 as numbers in the bytes of a word, the first one lowest. */
static uint64_t spread_eight(uint32_t value)
{
    uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = ((fours * 10486) >> 20) & 0x0000007F0000007F;
    uint64_t pairs = hundreds | (fours - hundreds * 100) << 16;
    uint64_t tens = ((pairs * 103) >> 10) & 0x000F000F000F000F;
    return tens | (pairs - tens * 10) << 8;
}

static void store_eight(char *to, uint64_t digits)
{
    digits |= UINT64_C(0x3030303030303030);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    digits = __builtin_bswap64(digits);
#endif
    memcpy(to, &digits, sizeof digits);
}

/* Zeros at the end of eight digits of which one at least is not zero. */
static int trailing_zeros(uint64_t digits)
{
    return __builtin_clzll(digits) / 8;
}

/* Writes value, which has 9 or 17 digits, as text without trailing zeros but padded with them; returns their count. */
static int spread_digits(char *to, uint64_t value, int width)
{
    memset(to, '0', PADDED);
    uint32_t low = (uint32_t)(value % 100000000);
    value /= 100000000;
    uint64_t last = spread_eight(low);
    store_eight(to + width - 8, last);
    if (width > 9) {
        low = (uint32_t)(value % 100000000);
        value /= 100000000;
        uint64_t middle = spread_eight(low);
        store_eight(to + 1, middle);
        if (last == 0) {
            last = middle;
            width = 9;
        }
    }
    to[0] = (char)('0' + value);
    return last == 0 ? 1 : width - trailing_zeros(last);
}

static char *put_exponent(char *to, int exponent)
{
    *to++ = 'e';
    if (exponent < 0)
        *to++ = '-';
    unsigned magnitude = (unsigned)(exponent < 0 ? -exponent : exponent);
    if (magnitude >= 100)
        *to++ = (char)('0' + magnitude / 100);
    if (magnitude >= 10)
        *to++ = (char)('0' + magnitude / 10 % 10);
    *to++ = (char)('0' + magnitude % 10);
    return to;
}

/*
 * The text of decimal, which is not 0. Copies have a fixed length, which is faster than the exact one; what they write
 * too much lies within NUMBER_TEXT_MAX.
 */
static char *put_decimal(char *to, struct decimal decimal)
{
    char digits[PADDED];
    int written = count_digits(decimal.digits);
    int width = written <= 9 ? 9 : DIGITS_MAX;
    int count = spread_digits(digits, decimal.digits * POWERS[width - written], width);
    int exponent = decimal.exponent + written - 1; /* of the first digit */
    if (exponent < PLAIN_EXPONENT_MIN || exponent > PLAIN_EXPONENT_MAX) {
        to[0] = digits[0];
        to[1] = '.';
        memcpy(to + 2, digits + 1, DIGITS_MAX);
        return put_exponent(count == 1 ? to + 1 : to + count + 1, exponent);
    }
    if (exponent < 0) {
        memcpy(to, "0.0000", 6);
        memcpy(to + 1 - exponent, digits, DIGITS_MAX);
        return to + 1 - exponent + count;
    }
    memcpy(to, digits, DIGITS_MAX);
    if (count <= exponent + 1)
        return to + exponent + 1;
    to[exponent + 1] = '.';
    memcpy(to + exponent + 2, digits + exponent + 1, DIGITS_MAX - 1);
    return to + count + 1;
}

/* A finite number as significand * 2^exponent. */
struct binary {
    uint64_t significand;
    int exponent;
    bool is_power_of_two; /* the next smaller number is only half as far as the next larger one */
};

/* floor(log10(2^e)), or floor(log10(3/4 2^e)); right for |e| <= 1500. */
static int floor_log10(int e, bool three_quarters)
{
    return (e * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

/* The result of a scaling: its integer part, made odd when anything was cut off, so that comparisons stay right. */
static uint64_t scale_f32(const struct power_of_ten *ten, uint64_t value)
{
    uint64_t rounded_up = ten->high + (ten->low != 0);
    wide_product product = multiply_wide(rounded_up, value);
    return (uint64_t)(product >> 64) | ((uint32_t)(product >> 32) > 1);
}

static uint64_t scale_f64(const struct power_of_ten *ten, uint64_t value)
{
    wide_product low = multiply_wide(ten->low, value);
    wide_product product = multiply_wide(ten->high, value) + (low >> 64);
    return (uint64_t)(product >> 64) | ((uint64_t)product > 1);
}

typedef uint64_t scale_function(const struct power_of_ten *ten, uint64_t value);

/* Of the two decimals around four_value / 4 the one in the interval, or the nearer one when both or none are. */
static inline bool takes_upper(uint64_t four_value, uint64_t candidate, bool lower_inside, bool upper_inside)
{
    if (lower_inside != upper_inside)
        return upper_inside;
    uint64_t middle = 4 * candidate + 2;
    return four_value > middle || (four_value == middle && (candidate & 1) != 0);
}

/* Sections 9.2 to 9.8 of the paper. All of the interval is scaled by 4 * 10^-k, so that its ends are integers. */
static inline struct decimal find_shortest(struct binary value, scale_function *scale)
{
    int k = floor_log10(value.exponent, value.is_power_of_two);
    const struct power_of_ten *ten = &POWERS_OF_TEN[-k - POWER_OF_TEN_MIN];
    int shift = value.exponent + power_of_ten_log2(-k) + 1;
    uint64_t four = 4 * value.significand;
    uint64_t is_open = value.significand & 1; /* the ends round to even, so away from an odd significand */
    uint64_t lower = scale(ten, (four - 2 + value.is_power_of_two) << shift) + is_open;
    uint64_t middle = scale(ten, four << shift);
    uint64_t upper = scale(ten, (four + 2) << shift) - is_open;
    uint64_t candidate = middle / 4;
    if (candidate >= 10) {
        uint64_t shorter = candidate / 10;
        bool lower_inside = lower <= 40 * shorter;
        bool upper_inside = 40 * shorter + 40 <= upper;
        if (lower_inside != upper_inside)
            return (struct decimal){shorter + upper_inside, k + 1};
    }
    bool lower_inside = lower <= 4 * candidate;
    bool upper_inside = 4 * candidate + 4 <= upper;
    return (struct decimal){candidate + takes_upper(middle, candidate, lower_inside, upper_inside), k};
}

char *number_write_f32(char *to, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    *to = '-';
    to += bits >> 31;
    uint32_t exponent = bits >> 23 & 0xFF, fraction = bits & 0x7FFFFF;
    if (exponent == 0 && fraction == 0) {
        *to = '0';
        return to + 1;
    }
    struct binary binary = {fraction, 1 - 150, false};
    if (exponent != 0)
        binary = (struct binary){fraction | 1u << 23, (int)exponent - 150, fraction == 0 && exponent > 1};
    return put_decimal(to, find_shortest(binary, scale_f32));
}

static struct binary split_f64(uint64_t bits)
{
    uint64_t exponent = bits >> 52 & 0x7FF, fraction = bits & 0xFFFFFFFFFFFFF;
    if (exponent == 0)
        return (struct binary){fraction, 1 - 1075, false};
    return (struct binary){fraction | UINT64_C(1) << 52, (int)exponent - 1075, fraction == 0 && exponent > 1};
}

char *number_write_f64(char *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    *to = '-';
    to += bits >> 63;
    struct binary binary = split_f64(bits);
    if (binary.significand == 0) {
        *to = '0';
        return to + 1;
    }
    return put_decimal(to, find_shortest(binary, scale_f64));
}

/* value * 10^power rounded to an integer; false when 128 bits do not tell, as for a value just in the middle of two. */
static bool round_scaled(struct binary value, int power, uint64_t *rounded)
{
    if (power > POWER_OF_TEN_MAX)
        return false;
    const struct power_of_ten *ten = &POWERS_OF_TEN[power - POWER_OF_TEN_MIN];
    int zeros = __builtin_clzll(value.significand);
    uint64_t significand = value.significand << zeros;
    wide_product product = multiply_wide(significand, ten->high) + (multiply_wide(significand, ten->low) >> 64);
    /* The true one lies less than 2 from product: ten is at most 1 too large, and the low half has been cut off. */
    int fraction_bits = 63 + zeros - value.exponent - power_of_ten_log2(power);
    if (fraction_bits > 127)
        return false; /* below 1: only a 9.6 that one digit makes 10 comes here, as 0.96 */
    wide_product half = (wide_product)1 << (fraction_bits - 1);
    wide_product fraction = product & (2 * half - 1);
    wide_product distance = fraction > half ? fraction - half : half - fraction;
    *rounded = (uint64_t)(product >> fraction_bits) + (fraction > half);
    return distance > 2;
}

/* The C library rounds correctly however long that takes; its decimal point, whichever it is, is skipped. */
static struct decimal round_slowly(double magnitude, int digits)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", digits - 1, magnitude);
    struct decimal decimal = {0, 1 - digits};
    const char *at = text;
    for (; *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9')
            decimal.digits = decimal.digits * 10 + (uint64_t)(*at - '0');
    }
    bool is_negative = at[1] == '-';
    int exponent = 0;
    for (at += 2; *at != '\0'; at++)
        exponent = exponent * 10 + (*at - '0');
    decimal.exponent += is_negative ? -exponent : exponent;
    return decimal;
}

static struct decimal round_to_digits(double magnitude, struct binary value, int digits)
{
    /* Of 2^e <= value the decimal exponent is known; that of value is the same or one more. */
    int exponent = floor_log10(value.exponent + 63 - __builtin_clzll(value.significand), false);
    for (int power = digits - 1 - exponent; power >= digits - 2 - exponent; power--) {
        uint64_t rounded;
        if (!round_scaled(value, power, &rounded))
            break;
        if (rounded < POWERS[digits])
            return (struct decimal){rounded, -power};
    }
    return round_slowly(magnitude, digits);
}

char *number_write_digits(char *to, double value, int digits)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    *to = '-';
    to += bits >> 63;
    struct binary binary = split_f64(bits);
    if (binary.significand == 0) {
        *to = '0';
        return to + 1;
    }
    return put_decimal(to, round_to_digits(fabs(value), binary, digits));
}
