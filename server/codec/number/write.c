/*
 * write.c: numbers to decimal text.
 *
 * The shortest digits come from Schubfach (Raffaello Giulietti, "The Schubfach way to render doubles", 2020). Many
 * decimals round to one value. Schubfach finds those with the fewest digits, and takes the closest of them. It needs
 * three multiplications by a power of ten. The C form follows that of Alexander Bolz (Drachennest, 2020).
 */
#include "codec/number/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    DIGITS_MAX = 17,
    PLAIN_EXPONENT_MIN = -5, /* 0.00001 */
    PLAIN_EXPONENT_MAX = 15, /* 9007199254740992 is below 1e16; the exponents from MIN to MAX are written without "e" */
};

/* The number digits * 10^exponent, with at most 17 digits. */
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

/* Counts the decimal digits of value, 0 < value < 10^17. */
static int count_digits(uint64_t value)
{
    int bits = 64 - __builtin_clzll(value);
    int guess = (bits * 1233) >> 12; /* log10(2) = 0.30103; the guess is right, or 1 too small */
    return guess + (value >= POWERS[guess]);
}

/* Spreads a value below 10^8 over the bytes of a word: eight digits from 0 to 9, the first one in the lowest byte. */
static uint64_t spread_eight(uint32_t value)
{
    uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = ((fours * 10486) >> 20) & 0x0000007F0000007F;
    uint64_t pairs = hundreds | (fours - hundreds * 100) << 16;
    uint64_t tens = ((pairs * 103) >> 10) & 0x000F000F000F000F;
    return tens | (pairs - tens * 10) << 8;
}

/* Digits in the order of the text: the first one, and 16 more in the bytes of a word, from the lowest byte up. */
struct digits {
    char first;
    wide_product rest;
    int count; /* how many digits remain without the zeros at the end */
};

/* Spreads a value of 9 or 17 digits. */
static inline struct digits spread_digits(uint64_t value, bool has_17)
{
    uint64_t last = 0, middle;
    if (has_17) {
        last = spread_eight((uint32_t)(value % 100000000));
        value /= 100000000;
    }
    middle = spread_eight((uint32_t)(value % 100000000));
    struct digits digits = {.first = (char)('0' + value / 100000000), .count = 1};
    if (last != 0)
        digits.count = 17 - __builtin_clzll(last) / 8;
    else if (middle != 0)
        digits.count = 9 - __builtin_clzll(middle) / 8;
    const uint64_t zeros = UINT64_C(0x3030303030303030);
    digits.rest = (wide_product)(last | zeros) << 64 | middle | zeros;
    return digits;
}

static inline void store_word(char *to, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(to, &word, sizeof word);
}

static inline void store_rest(char *to, wide_product rest)
{
    store_word(to, (uint64_t)rest);
    store_word(to + 8, (uint64_t)(rest >> 64));
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

/* Writes a decimal that is not 0. All 17 digits are always stored; the returned end says how many of them count. */
static inline char *put_decimal(char *to, struct decimal decimal)
{
    int written = count_digits(decimal.digits);
    bool has_17 = written > 9;
    struct digits digits = spread_digits(decimal.digits * POWERS[(has_17 ? 17 : 9) - written], has_17);
    int exponent = decimal.exponent + written - 1; /* the power of ten of the first digit */
    if (exponent < 0 && exponent >= PLAIN_EXPONENT_MIN) {
        memcpy(to, "0.0000", 6);
        to += 1 - exponent;
        to[0] = digits.first;
        store_rest(to + 1, digits.rest);
        return to + digits.count;
    }
    bool is_plain = exponent >= 0 && exponent <= PLAIN_EXPONENT_MAX;
    int point = is_plain ? exponent : 0; /* how many digits of rest stand before the point */
    wide_product before = ((wide_product)1 << 8 * point) - 1;
    to[0] = digits.first;
    store_rest(to + 1, (digits.rest & before) | (wide_product)'.' << 8 * point | (digits.rest & ~before) << 8);
    to[17] = (char)(digits.rest >> 120);
    to += digits.count > point + 1 ? digits.count + 1 : point + 1;
    return is_plain ? to : put_exponent(to, exponent);
}

/* A finite number as significand * 2^exponent. */
struct binary {
    uint64_t significand;
    int exponent;
    bool is_power_of_two; /* then the next smaller number is half as far away as the next larger one */
};

/* floor(log10(2^e)), or floor(log10(3/4 2^e)). Correct for |e| <= 1500. */
static int floor_log10(int e, bool three_quarters)
{
    return (e * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

/* The integer part of a scaled number. It is made odd when a fraction was cut off, so that comparisons stay correct. */
static inline uint64_t odd_when_cut(wide_product product)
{
    return (uint64_t)(product >> 64) | ((uint64_t)product > UINT64_C(0x1FFFFFFFF));
}

static uint64_t scale_f32(const struct power_of_ten *ten, uint64_t value)
{
    uint64_t rounded_up = ten->high + (ten->low != 0);
    return odd_when_cut(multiply_wide(rounded_up, value));
}

static uint64_t scale_f64(const struct power_of_ten *ten, uint64_t value)
{
    wide_product low = multiply_wide(ten->low, value);
    wide_product product = multiply_wide(ten->high, value) + (low >> 64);
    return (uint64_t)(product >> 64) | ((uint64_t)product > 1);
}

typedef uint64_t scale_function(const struct power_of_ten *ten, uint64_t value);

/* Sections 9.2 to 9.8 of the paper. The interval is scaled by 4 * 10^-k, so that its ends are integers. */
static inline struct decimal find_shortest(struct binary value, scale_function *scale)
{
    int k = floor_log10(value.exponent, value.is_power_of_two);
    const struct power_of_ten *ten = &POWERS_OF_TEN[-k - POWER_OF_TEN_MIN];
    int shift = value.exponent + power_of_ten_log2(-k) + 1;
    uint64_t four = 4 * value.significand;
    /* The interval includes its ends only for an even significand, because ties round to even. */
    uint64_t is_open = value.significand & 1;
    uint64_t lower = scale(ten, (four - 2 + value.is_power_of_two) << shift) + is_open;
    uint64_t middle = scale(ten, four << shift);
    uint64_t upper = scale(ten, (four + 2) << shift) - is_open;
    /*
     * Branch prediction cannot learn these choices, because they are as good as random. So all candidates are computed,
     * without branches.
     */
    uint64_t candidate = middle / 4, shorter = middle / 40;
    bool lower_inside = lower <= 4 * candidate, upper_inside = 4 * candidate + 4 <= upper;
    bool is_nearer = (middle > 4 * candidate + 2) | ((middle == 4 * candidate + 2) & (candidate & 1));
    bool is_one_inside = lower_inside ^ upper_inside;
    candidate += (upper_inside & is_one_inside) | (is_nearer & !is_one_inside);
    bool shorter_inside = lower <= 40 * shorter, shorter_next_inside = 40 * shorter + 40 <= upper;
    bool is_shorter = (shorter_inside ^ shorter_next_inside) & (shorter > 0);
    uint64_t change = shorter + shorter_next_inside - candidate;
    return (struct decimal){candidate + (change & (0 - (uint64_t)is_shorter)), k + is_shorter};
}

/*
 * Writes the float32 that the fast path leaves out: zero, subnormal numbers, and powers of two, whose interval is
 * lopsided.
 */
static __attribute__((noinline)) char *put_uncommon_f32(char *to, uint32_t bits)
{
    uint32_t exponent = bits >> 23 & 0xFF, fraction = bits & 0x7FFFFF;
    struct binary binary = {fraction, 1 - 150, false};
    if (exponent != 0)
        binary = (struct binary){fraction | 1u << 23, (int)exponent - 150, fraction == 0 && exponent > 1};
    return put_decimal(to, find_shortest(binary, scale_f32));
}

/*
 * The same as find_shortest for a common float32, with one product. middle is four times the number and half is half of
 * its interval, both as fractions over 2^32. The ends of the interval count as exact up to SLACK. The nearest integer
 * always lies inside. The result is always at the scale of 10^k, where it has 7 to 9 digits; a shorter result ends in a
 * zero.
 */
static inline struct decimal find_shortest_f32(uint32_t exponent, uint32_t fraction)
{
    enum { SLACK = 2, POINT = 34 };
    int e = (int)exponent - 150, k = floor_log10(e, false);
    const struct power_of_ten *ten = &POWERS_OF_TEN[-k - POWER_OF_TEN_MIN];
    int shift = e + power_of_ten_log2(-k) + 1;
    uint64_t rounded_up = ten->high + (ten->low != 0);
    uint64_t middle = (uint64_t)(multiply_wide(rounded_up, (uint64_t)(fraction | 1u << 23) << (shift + 34)) >> 64);
    uint64_t half = rounded_up >> (31 - shift);
    /* The interval includes its ends only for an even significand, because ties round to even. */
    uint64_t slack = (fraction & 1) * SLACK;
    uint64_t lower = middle - half + slack, upper = middle + half - slack;
    uint64_t is_odd = middle >> POINT & 1;
    uint64_t nearest = (middle + (UINT64_C(1) << (POINT - 1)) - SLACK + SLACK * is_odd) >> POINT;
    uint64_t tens = (middle >> POINT) / 10 * 10;
    uint64_t tens_inside = lower <= (tens << POINT) + 1, next_inside = upper + 1 >= (tens + 10) << POINT;
    uint64_t change = tens + 10 * next_inside - nearest;
    return (struct decimal){nearest + (change & (0 - (tens_inside ^ next_inside))), k};
}

/* How to lay out a number whose first digit counts 10^exponent. */
struct layout {
    char suffix[4];
    uint8_t suffix_length;
    uint8_t lead;  /* characters of "0.000" before the first digit */
    uint8_t point; /* how many digits stand between the first digit and the point */
    uint8_t gap;   /* 1: a point stands among the digits */
};

#define SMALL_1(e) [45 - (e)] = {"e-" #e, 3, 0, 0, 1}
#define SMALL_2(e) [45 - (e)] = {{'e', '-', '0' + (e) / 10, '0' + (e) % 10}, 4, 0, 0, 1}
#define LEADING(e) [45 - (e)] = {"", 0, 1 + (e), 0, 0}
#define PLAIN(e)   [45 + (e)] = {"", 0, 0, (e), 1}
#define SMALL_10(e)                                                                                                    \
    SMALL_2(e), SMALL_2((e) + 1), SMALL_2((e) + 2), SMALL_2((e) + 3), SMALL_2((e) + 4), SMALL_2((e) + 5),              \
        SMALL_2((e) + 6), SMALL_2((e) + 7), SMALL_2((e) + 8), SMALL_2((e) + 9)

enum { LAYOUT_EXPONENT_MIN = -45, LAYOUT_EXPONENT_MAX = 7 };

static const struct layout LAYOUTS[LAYOUT_EXPONENT_MAX - LAYOUT_EXPONENT_MIN + 1] = {
    SMALL_10(36), SMALL_10(26), SMALL_10(16), SMALL_2(10), SMALL_2(11), SMALL_2(12), SMALL_2(13),
    SMALL_2(14),  SMALL_2(15),  SMALL_1(9),   SMALL_1(8),  SMALL_1(7),  SMALL_1(6),  LEADING(5),
    LEADING(4),   LEADING(3),   LEADING(2),   LEADING(1),  PLAIN(0),    PLAIN(1),    PLAIN(2),
    PLAIN(3),     PLAIN(4),     PLAIN(5),     PLAIN(6),    PLAIN(7),
};

#undef SMALL_1
#undef SMALL_2
#undef SMALL_10
#undef LEADING
#undef PLAIN

/*
 * A block of numbers on their way to text. Each step runs over the whole block. A step is so short that the processor
 * works on several numbers at once, and the compiler vectorises the simple steps.
 */
enum { F32_BLOCK = 128 };

struct f32_block {
    uint32_t nine[F32_BLOCK];   /* the digits, padded with zeros to nine */
    int8_t exponent[F32_BLOCK]; /* of the first digit; LAYOUT_NONE: put_uncommon_f32 writes this number */
    char first[F32_BLOCK];      /* the first digit */
    /* The other eight digits, split into fours, pairs and single digits. */
    uint16_t fours[F32_BLOCK][2], pairs[F32_BLOCK][4], rest[F32_BLOCK][4];
};

enum { LAYOUT_NONE = LAYOUT_EXPONENT_MAX + 1 };

static void find_digits(struct f32_block *block, const uint32_t *bits, size_t count)
{
    static const uint32_t to_nine[] = {100, 10, 1};
    for (size_t i = 0; i < count; i++) {
        uint32_t exponent = bits[i] >> 23 & 0xFF, fraction = bits[i] & 0x7FFFFF;
        block->nine[i] = 0;
        block->exponent[i] = LAYOUT_NONE;
        if (exponent == 0 || fraction == 0)
            continue;
        struct decimal decimal = find_shortest_f32(exponent, fraction);
        uint32_t digits = (uint32_t)decimal.digits;
        int more_than_7 = (digits >= 10000000) + (digits >= 100000000);
        int first_exponent = decimal.exponent + 6 + more_than_7;
        block->nine[i] = digits * to_nine[more_than_7];
        block->exponent[i] = (int8_t)(first_exponent <= LAYOUT_EXPONENT_MAX ? first_exponent : LAYOUT_NONE);
    }
}

static void split_digits(struct f32_block *block, size_t count)
{
    uint16_t *fours = block->fours[0], *pairs = block->pairs[0], *rest = block->rest[0];
    for (size_t i = 0; i < count; i++) {
        uint32_t first = block->nine[i] / 100000000, eight = block->nine[i] - first * 100000000;
        block->first[i] = (char)('0' + first);
        fours[2 * i] = (uint16_t)(eight / 10000);
        fours[2 * i + 1] = (uint16_t)(eight - eight / 10000 * 10000);
    }
    for (size_t i = 0; i < 2 * count; i++) {
        uint16_t hundreds = (uint16_t)((uint16_t)(fours[i] * 5243u >> 16) >> 3);
        pairs[2 * i] = hundreds;
        pairs[2 * i + 1] = (uint16_t)(fours[i] - hundreds * 100);
    }
    for (size_t i = 0; i < 4 * count; i++) {
        uint16_t tens = (uint16_t)((uint16_t)(pairs[i] * 103) >> 10);
        rest[i] = (uint16_t)(tens | (uint16_t)((uint16_t)(pairs[i] - tens * 10) << 8));
    }
}

/* Joins the four pairs to one word, the first digit in the lowest byte. */
static inline uint64_t join_pairs(const uint16_t pairs[4])
{
    return pairs[0] | (uint64_t)pairs[1] << 16 | (uint64_t)pairs[2] << 32 | (uint64_t)pairs[3] << 48;
}

/*
 * Writes without branches on the number: every part is stored at full length, and the next part overwrites its excess.
 */
static inline char *put_laid_out(char *to, int exponent, char first, uint64_t rest)
{
    const struct layout *layout = &LAYOUTS[exponent - LAYOUT_EXPONENT_MIN];
    /* The number of digits after the first, without the zeros at the end. */
    size_t count = rest == 0 ? 0 : 8 - (size_t)__builtin_ctzll(__builtin_bswap64(rest)) / 8;
    rest |= UINT64_C(0x3030303030303030);
    memcpy(to, "0.000000", 8);
    to += layout->lead;
    *to++ = first;
    store_word(to, rest);
    to[layout->point] = '.';
    store_word(to + layout->point + layout->gap, rest >> 8 * layout->point);
    to += count > layout->point ? count + layout->gap : layout->point;
    memcpy(to, layout->suffix, sizeof layout->suffix);
    return to + layout->suffix_length;
}

static char *put_f32_block(char *to, const uint32_t *bits, size_t count)
{
    struct f32_block block;
    find_digits(&block, bits, count);
    split_digits(&block, count);
    for (size_t i = 0; i < count; i++) {
        *to = ',';
        to += i > 0;
        *to = '-';
        to += bits[i] >> 31;
        if (bits[i] << 1 == 0)
            *to++ = '0';
        else if (block.exponent[i] == LAYOUT_NONE)
            to = put_uncommon_f32(to, bits[i]);
        else
            to = put_laid_out(to, block.exponent[i], block.first[i], join_pairs(block.rest[i]));
    }
    return to;
}

char *number_write_f32_run(char *to, const float *values, size_t count)
{
    for (size_t from = 0; from < count; from += F32_BLOCK) {
        uint32_t bits[F32_BLOCK];
        size_t length = count - from < F32_BLOCK ? count - from : F32_BLOCK;
        memcpy(bits, values + from, length * sizeof bits[0]);
        *to = ',';
        to = put_f32_block(to + (from > 0), bits, length);
    }
    return to;
}

char *number_write_f32(char *to, float value)
{
    return number_write_f32_run(to, &value, 1);
}

static struct binary split_f64(uint64_t bits)
{
    uint64_t exponent = bits >> 52 & 0x7FF, fraction = bits & 0xFFFFFFFFFFFFF;
    if (exponent == 0)
        return (struct binary){fraction, 1 - 1075, false};
    return (struct binary){fraction | UINT64_C(1) << 52, (int)exponent - 1075, fraction == 0 && exponent > 1};
}

/* floor(log10(value)). normal is the significand with its top bit set; exponent is the power of two of that bit. */
static int decimal_exponent(uint64_t normal, int exponent)
{
    int guess = floor_log10(exponent, false); /* exact for 2^exponent; value may need 1 more */
    const struct power_of_ten *next = &POWERS_OF_TEN[guess + 1 - POWER_OF_TEN_MIN];
    bool is_less = normal < next->high || (normal == next->high && next->low > 0);
    return guess + (power_of_ten_log2(guess + 1) == exponent && !is_less);
}

/* Rounds normal * 2^(exponent - 63) * 10^power. False when 128 bits cannot decide, for example exactly halfway. */
static bool round_scaled(uint64_t normal, int exponent, int power, uint64_t *rounded)
{
    if (power > POWER_OF_TEN_MAX)
        return false;
    const struct power_of_ten *ten = &POWERS_OF_TEN[power - POWER_OF_TEN_MIN];
    wide_product product = multiply_wide(normal, ten->high) + (multiply_wide(normal, ten->low) >> 64);
    /*
     * The result is between 1 and 10^17. So the binary point lies within the high half, and at least 4 bits lie above
     * it.
     */
    int shift = 62 - exponent - power_of_ten_log2(power);
    uint64_t high = (uint64_t)(product >> 64);
    wide_product half = (wide_product)(UINT64_C(1) << (shift - 1)) << 64;
    wide_product fraction = (wide_product)(high & ((UINT64_C(1) << shift) - 1)) << 64 | (uint64_t)product;
    wide_product distance = fraction > half ? fraction - half : half - fraction;
    *rounded = (high >> shift) + (fraction > half);
    /*
     * The true product differs from ours by less than 2: ten is at most 1 too large, and the low half has been cut off.
     */
    return distance > 2;
}

/* The C library always rounds correctly, but slowly. Its decimal point is skipped, because the locale chooses it. */
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
    int zeros = __builtin_clzll(value.significand);
    uint64_t normal = value.significand << zeros;
    int exponent = value.exponent + 63 - zeros;
    int power = digits - 1 - decimal_exponent(normal, exponent);
    uint64_t rounded;
    if (!round_scaled(normal, exponent, power, &rounded))
        return round_slowly(magnitude, digits);
    if (rounded == POWERS[digits]) /* 9.96 rounded to two digits is 10.0: one digit too many */
        return (struct decimal){1, digits - power};
    return (struct decimal){rounded, -power};
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
    return put_decimal(to,
                       digits == 0 ? find_shortest(binary, scale_f64) : round_to_digits(fabs(value), binary, digits));
}

char *number_write_f64(char *to, double value)
{
    return number_write_digits(to, value, 0);
}
