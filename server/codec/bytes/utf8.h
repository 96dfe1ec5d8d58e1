/* utf8.h: reads and writes characters of UTF-8 (RFC 3629: shortest form, no surrogates, up to U+10FFFF). */
#ifndef CODEC_BYTES_UTF8_H
#define CODEC_BYTES_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_REPLACEMENT = 0xFFFD, UTF8_BYTES_MAX = 4 /* of one character */ };

/* The number of bytes of the character at text, which ends in a NUL. 0 when no character begins there. */
size_t utf8_length(const char *text);
/*
 * Reads the code point at *text and moves *text behind it. A byte that begins no character is skipped alone, and gives
 * U+FFFD.
 */
uint32_t utf8_next(const char **text);
/* Whether text[0 .. length), behind which a NUL stands, consists of characters. It may hold U+0000. */
bool utf8_is_valid(const char *text, size_t length);
/* Whether the byte begins a character: it continues none. */
static inline bool utf8_begins(char byte)
{
    return ((unsigned char)byte & 0xC0) != 0x80;
}
/* How many characters the text has. */
size_t utf8_count(const char *text, size_t length);
/* Writes a code point without a terminator. Returns where it ends. */
char *utf8_write(char *to, uint32_t c);

#endif
