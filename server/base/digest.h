/* digest.h: computes SHA-256, and writes it as 64 hexadecimal digits. Only digest.c includes nettle. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { DIGEST_BYTES = 32, DIGEST_TEXT = 2 * DIGEST_BYTES + 1 };

/* The digest of bytes that arrive in several pieces. state is nettle's own; only digest.c uses it. */
struct digest_sum {
    unsigned char state[128];
};

void digest_begin(struct digest_sum *sum);
void digest_add(struct digest_sum *sum, const void *bytes, size_t length);
/* Finishes the digest. sum must not be used again. */
void digest_end(struct digest_sum *sum, uint8_t digest[DIGEST_BYTES]);
void digest_of(const void *bytes, size_t length, uint8_t digest[DIGEST_BYTES]);
/* Writes 64 digits in lower case and a NUL. Returns text. */
const char *digest_write(const uint8_t digest[DIGEST_BYTES], char text[DIGEST_TEXT]);
/* Reads 64 hexadecimal digits of either case. False: text is something else. */
bool digest_read(struct text_span text, uint8_t digest[DIGEST_BYTES]);
/* Compares in constant time: the time does not depend on where the two differ. */
bool digest_equal(const uint8_t a[DIGEST_BYTES], const uint8_t b[DIGEST_BYTES]);

#endif
