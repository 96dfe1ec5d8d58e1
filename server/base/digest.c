/* digest.c: computes SHA-256 by nettle. */
#include "base/digest.h"

#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <string.h>

_Static_assert(sizeof(struct sha256_ctx) <= sizeof(((struct digest_sum *)NULL)->state), "a sum has room for its state");

void digest_begin(struct digest_sum *sum)
{
    struct sha256_ctx context;
    sha256_init(&context);
    memcpy(sum->state, &context, sizeof context);
}

void digest_add(struct digest_sum *sum, const void *bytes, size_t length)
{
    struct sha256_ctx context;
    memcpy(&context, sum->state, sizeof context);
    sha256_update(&context, length, bytes);
    memcpy(sum->state, &context, sizeof context);
}

void digest_end(struct digest_sum *sum, uint8_t digest[DIGEST_BYTES])
{
    struct sha256_ctx context;
    memcpy(&context, sum->state, sizeof context);
    sha256_digest(&context, DIGEST_BYTES, digest);
}

void digest_of(const void *bytes, size_t length, uint8_t digest[DIGEST_BYTES])
{
    struct digest_sum sum;
    digest_begin(&sum);
    digest_add(&sum, bytes, length);
    digest_end(&sum, digest);
}

const char *digest_write(const uint8_t digest[DIGEST_BYTES], char text[DIGEST_TEXT])
{
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        text[2 * i] = text_hex_digit(digest[i] >> 4);
        text[2 * i + 1] = text_hex_digit(digest[i] & 15);
    }
    text[DIGEST_TEXT - 1] = '\0';
    return text;
}

bool digest_read(struct text_span text, uint8_t digest[DIGEST_BYTES])
{
    if (text.length != DIGEST_TEXT - 1)
        return false;
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        const int high = text_hex_value(text.at[2 * i]), low = text_hex_value(text.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        digest[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool digest_equal(const uint8_t a[DIGEST_BYTES], const uint8_t b[DIGEST_BYTES])
{
    return memeql_sec(a, b, DIGEST_BYTES) != 0;
}
