/* wav.c: reads the samples of a WAV file. */
#include "codec/bytes/wav.h"

#include <string.h>

#include "attn/model.h"

enum { HEAD = 12 /* RIFF, the length, WAVE */, CHUNK = 8 /* name, length */, FORMAT = 16, EXTENDED = 26 };
enum { INTEGERS = 1, FLOATS = 3, EXTENSIBLE = 0xfffe };
static const size_t UNKNOWN_LENGTH = 0x7ffff000;
static const char CONVERT[] =
    "ffmpeg -i FILE -ac 1 -ar 16000 -c:a pcm_s16le OUT.wav, or sox FILE -c 1 -r 16000 -b 16 OUT.wav";

struct wav {
    size_t kind, channels, rate, bits; /* kind 0: the file has not said it yet */
    const unsigned char *data;
    size_t bytes;
};

static size_t number_at(const unsigned char *at, size_t bytes)
{
    size_t number = 0;
    while (bytes > 0)
        number = number << 8 | at[--bytes];
    return number;
}

static attn_status fail(attn_error *err, const char *what)
{
    return attn_fail(err, ATTN_ERR_VALUE, NULL, "%s: %s", what, CONVERT);
}

static attn_status read_format(const unsigned char *at, size_t bytes, struct wav *wav, attn_error *err)
{
    if (bytes < FORMAT)
        return fail(err, "is a WAV file whose fmt chunk is cut off");
    *wav = (struct wav){.kind = number_at(at, 2),
                        .channels = number_at(at + 2, 2),
                        .rate = number_at(at + 4, 4),
                        .bits = number_at(at + 14, 2)};
    if (wav->kind == EXTENSIBLE && bytes >= EXTENDED)
        wav->kind = number_at(at + 24, 2);
    if (wav->channels != 1 || wav->rate != ATTN_AUDIO_RATE)
        return attn_fail(err, ATTN_ERR_VALUE, NULL,
                         "has %zu samples a second in %zu channels; the model takes %d in one: %s", wav->rate,
                         wav->channels, ATTN_AUDIO_RATE, CONVERT);
    if (!(wav->kind == INTEGERS && wav->bits == 16) && !(wav->kind == FLOATS && wav->bits == 32))
        return attn_fail(
            err, ATTN_ERR_VALUE, NULL,
            "has samples of %zu bits of the format %zu; attnd reads integers of 16 bits (1) and floats of 32 "
            "(3): %s",
            wav->bits, wav->kind, CONVERT);
    return ATTN_OK;
}

static attn_status set_data(const unsigned char *at, size_t bytes, size_t left, struct wav *wav, attn_error *err)
{
    if (wav->kind == 0)
        return fail(err, "is a WAV file without a fmt chunk before its data");
    if (bytes > left && bytes < UNKNOWN_LENGTH)
        return attn_fail(err, ATTN_ERR_VALUE, NULL, "says that %zu bytes of data follow, and has %zu: it is cut off",
                         bytes, left);
    wav->data = at;
    wav->bytes = bytes < left ? bytes : left;
    return ATTN_OK;
}

/* Goes from chunk to chunk up to the data. */
static attn_status find_data(const unsigned char *file, size_t length, struct wav *wav, attn_error *err)
{
    attn_status status = ATTN_OK;
    if (length < HEAD || memcmp(file, "RIFF", 4) != 0 || memcmp(file + 8, "WAVE", 4) != 0)
        return fail(err, "is no WAV file");
    for (size_t at = HEAD; status == ATTN_OK && wav->data == NULL && length - at >= CHUNK;) {
        const unsigned char *chunk = file + at;
        const size_t bytes = number_at(chunk + 4, 4), left = length - at - CHUNK;
        if (memcmp(chunk, "fmt ", 4) == 0)
            status = read_format(chunk + CHUNK, bytes < left ? bytes : left, wav, err);
        else if (memcmp(chunk, "data", 4) == 0)
            status = set_data(chunk + CHUNK, bytes, left, wav, err);
        if (bytes + bytes % 2 > left) /* a chunk has an even length */
            break;
        at += CHUNK + bytes + bytes % 2;
    }
    return status == ATTN_OK && wav->data == NULL ? fail(err, "is a WAV file without data") : status;
}

static attn_status convert(const struct wav *wav, attn_dtype dtype, attn_arena *arena, attn_tensor *samples,
                           attn_error *err)
{
    const size_t count = wav->bytes / (wav->bits / 8);
    float *numbers = attn_arena_take(arena, count, sizeof *numbers);
    void *to = dtype == ATTN_F32 ? numbers : attn_arena_take(arena, count, attn_dtype_bytes(dtype));
    if (numbers == NULL || to == NULL)
        return attn_fail_no_memory(err);
    for (size_t i = 0; i < count && wav->kind == INTEGERS; i++)
        numbers[i] = (float)(int16_t)number_at(wav->data + 2 * i, 2) / 32768;
    if (wav->kind == FLOATS && count > 0)
        memcpy(numbers, wav->data, count * sizeof *numbers);
    *samples = attn_tensor_view(to, dtype, 1, &count);
    return to == numbers ? ATTN_OK : attn_convert(to, dtype, numbers, ATTN_F32, count, err);
}

attn_status wav_read(const void *bytes, size_t length, attn_dtype dtype, attn_arena *arena, attn_tensor *samples,
                     attn_error *err)
{
    struct wav wav = {.kind = 0};
    const attn_status status = find_data(bytes, length, &wav, err);
    return status == ATTN_OK ? convert(&wav, dtype, arena, samples, err) : status;
}

attn_status wav_samples(const void *bytes, size_t count, attn_dtype dtype, attn_arena *arena, attn_tensor *samples,
                        attn_error *err)
{
    const struct wav wav = {.kind = INTEGERS, .bits = 16, .data = bytes, .bytes = 2 * count};
    return convert(&wav, dtype, arena, samples, err);
}
