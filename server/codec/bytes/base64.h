/*
 * base64.h: RFC 4648 base64, the padded standard alphabet, in and out.
 */
#ifndef CODEC_BYTES_BASE64_H
#define CODEC_BYTES_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/bytes/pace.h"

/* Characters that bytes become, padding included. */
size_t base64_encoded_length(size_t bytes);
/* Writes base64_encoded_length(bytes) characters at to, no terminator. */
void base64_encode(char *to, const void *from, size_t bytes);
/* Bytes that text stands for; false when its length or padding is wrong. */
bool base64_decoded_length(const char *text, size_t length, size_t *bytes);
/*
 * Decodes into to, which has base64_decoded_length bytes. Strict: no spaces, no line breaks, unused bits zero. On
 * failure false, and *bad is the offset of the first character that is wrong, or where pace stopped it.
 */
bool base64_decode(void *to, const char *text, size_t length, struct pace *pace, size_t *bad);

#endif
