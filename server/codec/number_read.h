/*
 * number_read.h: decimal text to float32 and float64, rounded once and correctly.
 *
 * A mantissa below 2^53 (2^24 for float32) and a power of ten that the type holds exactly make the result exact in one
 * multiplication or division (Clinger, "How to read floating point numbers accurately", 1990); the rest goes to
 * strtof and strtod. Going through double for a float32 would round twice and is wrong for one decimal in two of
 * the hard ones.
 */
#ifndef CODEC_NUMBER_READ_H
#define CODEC_NUMBER_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads one number of the JSON grammar (RFC 8259, section 6) at text, which ends at end, and stores its value. Returns
 * the first byte after it, or NULL when there is no such number there. Too large a value becomes an infinity, too
 * small a one 0 or a subnormal, as IEEE 754 rounds them. The C locale is assumed. Safe from any thread.
 */
const char *number_read_f32(const char *text, const char *end, float *value);
const char *number_read_f64(const char *text, const char *end, double *value);
/* Integers only: NULL also for a fraction, an exponent, or a value beyond int64. */
const char *number_read_i64(const char *text, const char *end, int64_t *value);

#endif
