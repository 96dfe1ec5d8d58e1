/* png_write.h: writes rows of pixels as a PNG file (ISO/IEC 15948), by libpng. */
#ifndef CODEC_PICTURE_PNG_WRITE_H
#define CODEC_PICTURE_PNG_WRITE_H

#include <stdint.h>

#include "attn/runtime.h"
#include "codec/picture/fonts/arena_blocks.h"

/* Receives the next bytes of the file. Returning false ends the writing. */
typedef bool png_sink(void *context, const void *bytes, size_t length);

struct png_image {
    const uint8_t *pixels; /* three bytes per pixel, red first; no gaps between rows */
    size_t width, height;
    int scale; /* the density in the file is 96 dots per inch times scale; 0: none is written */
};

/*
 * Writes the file of an image to sink. libpng's memory comes from blocks. Returns false without memory, when sink
 * returns false, and when runtime says stop; runtime is asked between rows.
 */
bool png_write_rgb(const struct png_image *image, const attn_runtime *runtime, struct blocks *blocks, png_sink *sink,
                   void *context);
/* The longest file in bytes, and the bytes that are taken from the arena meanwhile. */
size_t png_bytes_bound(size_t width, size_t height);
enum { PNG_WRITE_MEMORY_BYTES = 1 << 20 };

#endif
