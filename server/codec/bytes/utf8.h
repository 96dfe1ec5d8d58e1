/*
 * utf8.h: characters of UTF-8 (RFC 3629: shortest form, no surrogates, up to U+10FFFF).
 */
#ifndef CODEC_BYTES_UTF8_H
#define CODEC_BYTES_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { UTF8_REPLACEMENT = 0xFFFD, UTF8_BYTES_MAX = 4 /* of one character */ };

/* Bytes of the character at text, which is terminated; 0 when none begins there. */
size_t utf8_length(const char *text);
/* The code point at *text, which moves behind it. A byte that begins no character is skipped alone, as U+FFFD. */
uint32_t utf8_next(const char **text);
/* Writes a code point without a terminator. Returns where it ends. */
char *utf8_write(char *to, uint32_t c);

#endif
