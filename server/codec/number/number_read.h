/*
 * number_read.h: decimal text to float32 and float64, rounded once and correctly.
 *
 * Up to 19 digits take one or two multiplications by a power of ten known to 128 bits (Lemire, "Number parsing at a
 * gigabyte per second", 2021); when digits beyond those could decide, strtof and strtod do. Going through double for a
 * float32 would round twice and is wrong for one decimal in two of the hard ones.
 */
#ifndef CODEC_NUMBER_NUMBER_READ_H
#define CODEC_NUMBER_NUMBER_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads one number of the JSON grammar (RFC 8259, section 6) at text, which ends at end, and stores its value. Returns
 * the first byte after it, or NULL when there is no such number there. Too large a value becomes an infinity, too
 * small a one 0 or a subnormal, as IEEE 754 rounds them. The locale plays no role. Safe from any thread.
 */
const char *number_read_f32(const char *text, const char *end, float *value);
const char *number_read_f64(const char *text, const char *end, double *value);
/* Integers only, written in any way: 2, 2.0, 2e0. NULL also for a fraction, or a value beyond int64. */
const char *number_read_i64(const char *text, const char *end, int64_t *value);

/*
 * Whether a number that was written with a point or an exponent is an integer, which is then *value. From 2^53 on a
 * double skips integers, so that it need not be the number that was written: false.
 */
bool number_is_integer(double number, int64_t *value);

#endif
