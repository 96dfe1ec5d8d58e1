/*
 * png_write.h: rows of pixels as a PNG file (ISO/IEC 15948), by libpng.
 */
#ifndef CODEC_PICTURE_PNG_WRITE_H
#define CODEC_PICTURE_PNG_WRITE_H

#include <stdint.h>

#include "attn/runtime.h"
#include "codec/picture/fonts/arena_blocks.h"

/* Takes the next bytes of the file; false ends the writing. */
typedef bool png_sink(void *context, const void *bytes, size_t length);

struct png_image {
    const uint8_t *pixels; /* three bytes each, red first; rows without gaps */
    size_t width, height;
    int scale; /* written as the density, 96 dots an inch times it; 0: none is */
};

/*
 * Gives the file of an image to sink; libpng's memory comes from blocks. False without memory, when sink says so, and
 * when runtime does, which is asked between rows.
 */
bool png_write_rgb(const struct png_image *image, const attn_runtime *runtime, struct blocks *blocks, png_sink *sink,
                   void *context);
/* The longest file in bytes, and the bytes that are taken from the arena meanwhile. */
size_t png_bytes_bound(size_t width, size_t height);
enum { PNG_WRITE_MEMORY_BYTES = 1 << 20 };

#endif
