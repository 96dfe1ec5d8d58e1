/*
 * number_write.h: float32 and float64 to the shortest decimal text that reads back to the same value.
 *
 * Text is JSON: no leading '+', no bare point, "-0" for minus zero; plain from 0.00001 to below 1e16, outside with an
 * exponent as in "1e-7" and "1.5e21".
 * Not for NaN and infinities: the caller says how those are written.
 */
#ifndef CODEC_NUMBER_NUMBER_WRITE_H
#define CODEC_NUMBER_NUMBER_WRITE_H

#include <stddef.h>

enum { NUMBER_TEXT_MAX = 32 }; /* bytes that any of these may write; nothing is terminated */

/* Each writes value (finite) at to and returns the end of the text. */
char *number_write_f32(char *to, float value);
/* The same for count values, with commas between them. */
char *number_write_f32_run(char *to, const float *values, size_t count);
char *number_write_f64(char *to, double value);
/* Rounded to digits significant digits (1 … 17), correctly, trailing zeros dropped. */
char *number_write_digits(char *to, double value, int digits);

#endif
