/*
 * digest.h: SHA-256 of bytes, as bytes and as 64 hexadecimal digits. Part of the floor; the only user of nettle.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { DIGEST_BYTES = 32, DIGEST_TEXT = 2 * DIGEST_BYTES + 1 };

/* A sum of bytes that come one after another: nettle's, which only digest.c looks into. */
struct digest_sum {
    unsigned char state[128];
};

void digest_begin(struct digest_sum *sum);
void digest_add(struct digest_sum *sum, const void *bytes, size_t length);
/* Once: the sum is then worthless. */
void digest_end(struct digest_sum *sum, uint8_t digest[DIGEST_BYTES]);
void digest_of(const void *bytes, size_t length, uint8_t digest[DIGEST_BYTES]);
/* Terminated, in lower case. Returns text. */
const char *digest_write(const uint8_t digest[DIGEST_BYTES], char text[DIGEST_TEXT]);
/* False unless text is 64 hexadecimal digits, of either case. */
bool digest_read(struct text_span text, uint8_t digest[DIGEST_BYTES]);
/* In a time that does not depend on where the two differ. */
bool digest_equal(const uint8_t a[DIGEST_BYTES], const uint8_t b[DIGEST_BYTES]);

#endif
