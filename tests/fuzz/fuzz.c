/*
 * fuzz.c: what the fuzz targets share.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fuzz_input fuzz_read(const uint8_t *data, size_t size, char opening)
{
    const char *text = (const char *)data;
    if (size == 0 || text[0] == opening)
        return (struct fuzz_input){0, text, size};
    return (struct fuzz_input){data[0], text + 1, size - 1};
}

void fuzz_claim(bool holds, const char *claim)
{
    if (holds)
        return;
    fprintf(stderr, "broken promise: %s\n", claim);
    abort();
}

static bool is_terminated(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

void fuzz_claim_told(attn_status status, const attn_error *err)
{
    if (status == ATTN_OK)
        return;
    fuzz_claim(err->status == status, "the error has the status that was returned");
    fuzz_claim(err->message[0] != '\0', "a failure has a message");
    fuzz_claim(is_terminated(err->message, sizeof err->message) && is_terminated(err->field, sizeof err->field) &&
                   is_terminated(err->expected, sizeof err->expected) &&
                   is_terminated(err->received, sizeof err->received),
               "texts of an error end");
}
