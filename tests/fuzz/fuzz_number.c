/*
 * fuzz_number.c: numbers read as strtof and strtod read them, and written so that they read back.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/number/number.h"
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}

static size_t digits_at(const char *text, size_t at)
{
    return strspn(text + at, "0123456789");
}

/* RFC 8259, section 6, once more: how long the longest number at the start of text is. */
static size_t number_length(const char *text)
{
    size_t at = text[0] == '-', digits = digits_at(text, at);
    if (digits == 0)
        return 0;
    at += text[at] == '0' ? 1 : digits;
    if (text[at] == '.' && digits_at(text, at + 1) > 0)
        at += 1 + digits_at(text, at + 1);
    if (text[at] == 'e' || text[at] == 'E') {
        const size_t sign = text[at + 1] == '+' || text[at + 1] == '-';
        digits = digits_at(text, at + 1 + sign);
        at += digits > 0 ? 1 + sign + digits : 0;
    }
    return at;
}

static bool is_whole(const char *text, size_t length)
{
    return memchr(text, '.', length) == NULL && memchr(text, 'e', length) == NULL && memchr(text, 'E', length) == NULL;
}

/* The integer that the text stands for, by the C library; false when there is none within reach. */
static bool integer_of(const char *text, size_t length, int64_t *integer)
{
    char *copy = strndup(text, length);
    const double real = strtod(copy, NULL);
    errno = 0;
    *integer = is_whole(copy, length) ? strtoll(copy, NULL, 10) : fabs(real) < 0x1p53 ? (int64_t)real : 0;
    const bool is_whole_number = errno == 0 && (is_whole(copy, length) || (fabs(real) < 0x1p53 && real == trunc(real)));
    free(copy);
    return is_whole_number;
}

static void read_integer(const char *text, const char *end, size_t length)
{
    int64_t integer, expected;
    const bool is_one = integer_of(text, length, &expected);
    const char *to = number_read_i64(text, end, &integer);
    if (to != NULL)
        fuzz_claim(is_one && integer == expected && to == text + length,
                   "an integer is read as the C library reads it");
    else if (length == strlen(text) && length > 0)
        fuzz_claim(!is_one, "every integer that fits is read");
}

/* text is terminated, for the references; end says where the readers have to stop. */
static void read_text(const char *text, const char *end)
{
    float narrow;
    double wide;
    const size_t length = number_length(text);
    const char *to = number_read_f32(text, end, &narrow);
    fuzz_claim(to == number_read_f64(text, end, &wide), "both types are read to the same place");
    if (to == NULL) {
        fuzz_claim(length == 0 || text + length < end, "every number of JSON is read");
        return;
    }
    fuzz_claim(to == text + length, "what is read is a number of JSON, to its end");
    char *copy = strndup(text, length);
    const float as_float = strtof(copy, NULL);
    const double as_double = strtod(copy, NULL);
    fuzz_claim(memcmp(&as_float, &narrow, sizeof narrow) == 0, "a float32 is rounded once and correctly");
    fuzz_claim(memcmp(&as_double, &wide, sizeof wide) == 0, "a float64 is rounded once and correctly");
    free(copy);
    read_integer(text, end, length);
}

/* Digits without leading and trailing zeros. */
static int significant(const char *text)
{
    int digits = 0, zeros = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (digits == 0 && *text == '0'))
            continue;
        digits++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return digits - zeros;
}

static void write_float(float value)
{
    char text[NUMBER_TEXT_MAX + 1], shorter[64];
    float back = 0;
    char *end = number_write_f32(text, value);
    *end = '\0';
    fuzz_claim(number_length(text) == (size_t)(end - text), "a float32 is written as JSON has numbers");
    fuzz_claim(number_read_f32(text, end, &back) == end && memcmp(&back, &value, sizeof value) == 0,
               "a float32 reads back as it was");
    const int digits = significant(text);
    if (digits < 2)
        return;
    snprintf(shorter, sizeof shorter, "%.*e", digits - 2, (double)value);
    fuzz_claim(strtof(shorter, NULL) != value, "no shorter text reads back to the same float32");
}

static void write_double(double value, unsigned choice)
{
    char text[NUMBER_TEXT_MAX + 1], printed[64];
    double back = 0;
    char *end = number_write_f64(text, value);
    *end = '\0';
    fuzz_claim(number_length(text) == (size_t)(end - text), "a float64 is written as JSON has numbers");
    fuzz_claim(number_read_f64(text, end, &back) == end && memcmp(&back, &value, sizeof value) == 0,
               "a float64 reads back as it was");
    const int digits = 1 + (int)(choice % 17);
    *number_write_digits(text, value, digits) = '\0';
    snprintf(printed, sizeof printed, "%.*e", digits - 1, value);
    fuzz_claim(strtod(text, NULL) == strtod(printed, NULL), "digits are rounded as printf rounds them");
    fuzz_claim(significant(text) <= digits, "no more digits are written than were asked for");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_claim(text != NULL, "the fuzzer has memory");
    memcpy(text, data, size);
    text[size] = '\0';
    read_text(text, text + size);
    free(text);
    float narrow;
    double wide;
    if (size >= sizeof narrow && (memcpy(&narrow, data, sizeof narrow), isfinite(narrow)))
        write_float(narrow);
    if (size >= sizeof wide && (memcpy(&wide, data, sizeof wide), isfinite(wide)))
        write_double(wide, data[size - 1]);
    return 0;
}
