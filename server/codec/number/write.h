/*
 * write.h: float32 and float64 to the shortest decimal text that reads back to the same value.
 *
 * The text is JSON: no leading '+', no bare point, and "-0" for minus zero. Numbers from 0.00001 to below 1e16 are
 * plain. Other numbers have an exponent, as in "1e-7" and "1.5e21". NaN and infinities are not allowed here; the caller
 * writes them.
 */
#ifndef CODEC_NUMBER_WRITE_H
#define CODEC_NUMBER_WRITE_H

#include <stddef.h>

enum { NUMBER_TEXT_MAX = 32 }; /* The most bytes that one number takes. No function here writes a terminator. */

/* Each function writes a finite value at to and returns the end of the text. */
char *number_write_f32(char *to, float value);
/* Writes count values with commas between them. */
char *number_write_f32_run(char *to, const float *values, size_t count);
char *number_write_f64(char *to, double value);
/* Rounds correctly to digits significant digits (1 … 17), and drops trailing zeros. */
char *number_write_digits(char *to, double value, int digits);

#endif
