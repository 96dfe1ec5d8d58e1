/* base64.h: encodes and decodes base64 with the padded standard alphabet (RFC 4648). */
#ifndef CODEC_BYTES_BASE64_H
#define CODEC_BYTES_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/bytes/pace.h"

/* The number of characters that encode so many bytes, padding included. */
size_t base64_encoded_length(size_t bytes);
/* Writes base64_encoded_length(bytes) characters at to, without a terminator. */
void base64_encode(char *to, const void *from, size_t bytes);
/* Counts the bytes that text encodes. False when its length or padding is wrong. */
bool base64_decoded_length(const char *text, size_t length, size_t *bytes);
/*
 * Decodes into to, which has base64_decoded_length bytes. The decoder is strict: no spaces, no line breaks, unused bits
 * are zero. On failure it returns false, and *bad is the offset of the first wrong character, or of the place where
 * pace stopped it.
 */
bool base64_decode(void *to, const char *text, size_t length, struct pace *pace, size_t *bad);

#endif
