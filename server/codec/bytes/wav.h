/* wav.h: reads the samples of a WAV file, the RIFF format of Microsoft and IBM (1991). */
#ifndef CODEC_BYTES_WAV_H
#define CODEC_BYTES_WAV_H

#include "attn/arena.h"
#include "attn/tensor.h"

/*
 * *samples becomes (count) in arena, of that float type, with 16 bits as -1 to 1. The file has one channel of 16-bit
 * integers or 32-bit floats at the rate that models of audio read. Programs that write into a pipe do not know the length
 * of the data, and set one of 2^31 - 4096 bytes or more: all that follows is data then.
 *   ATTN_ERR_VALUE      the file is no such file; the message says what it is, and how to convert it
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status wav_read(const void *bytes, size_t length, attn_dtype dtype, attn_arena *arena,
                                     attn_tensor *samples, attn_error *err);

/* The same of count samples of 16 bits without a file around them, little-endian. Only memory can fail. */
ATTN_MUST_CHECK attn_status wav_samples(const void *bytes, size_t count, attn_dtype dtype, attn_arena *arena,
                                        attn_tensor *samples, attn_error *err);

#endif
