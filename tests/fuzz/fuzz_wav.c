/* fuzz_wav.c: bytes to the reader of WAV files. The first byte chooses the type of the samples. */
#include "codec/bytes/wav.h"
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_input input = fuzz_read(data, size, 'R');
    attn_arena *arena = attn_arena_create(1 << 20);
    attn_error err = {.status = ATTN_OK};
    attn_tensor samples = {.rank = 0};
    const attn_status status =
        wav_read(input.text, input.length, input.choice % 2 == 0 ? ATTN_F32 : ATTN_F64, arena, &samples, &err);
    fuzz_claim_told(status, &err);
    fuzz_claim(status != ATTN_OK || (samples.rank == 1 && 2 * samples.shape[0] <= input.length),
               "a sample takes bytes");
    double sum = 0; /* reads each sample */
    for (size_t i = 0; status == ATTN_OK && i < samples.shape[0]; i++)
        sum += samples.dtype == ATTN_F32 ? (double)((const float *)samples.data)[i] : ((const double *)samples.data)[i];
    fuzz_claim(sum != 0.123456789, "no sum is that number");
    attn_arena_destroy(arena);
    return 0;
}
