/*
 * fuzz.h: what the fuzz targets share. A target (fuzz_*.c) is one function on bytes that anybody could send; it aborts
 * when a promise is broken. libFuzzer feeds it ever new ones (`make fuzz-targets`), replay.c those that are kept in
 * corpus/ (`make replay`), which any compiler can.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>

#include "attn/arena.h"

/* In text whose first byte is neither: a number that the target chooses by. */
struct fuzz_input {
    unsigned choice;
    const char *text; /* not terminated */
    size_t length;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Takes a first byte that is not opening off the front as the choice, which is 0 without one. */
struct fuzz_input fuzz_read(const uint8_t *data, size_t size, char opening);
/* Aborts, saying the claim, unless it holds. */
void fuzz_claim(bool holds, const char *claim);
/* A failure says why, and names itself as it returns. */
void fuzz_claim_told(attn_status status, const attn_error *err);

#endif
