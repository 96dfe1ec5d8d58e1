/*
 * png_write.c: PNG by libpng. libpng reports errors by longjmp. All memory comes from the arena, so a jump leaks
 * nothing.
 */
#include "codec/picture/png_write.h"

#include <png.h>
#include <stdint.h>

#include "codec/bytes/pace.h"

static png_voidp take_memory(png_structp png, png_alloc_size_t bytes)
{
    return blocks_take(png_get_mem_ptr(png), bytes);
}

static void give_memory(png_structp png, png_voidp block)
{
    blocks_give(png_get_mem_ptr(png), block);
}

struct destination {
    png_sink *sink;
    void *context;
};

static void write_bytes(png_structp png, png_bytep bytes, size_t length)
{
    const struct destination *to = png_get_io_ptr(png);
    if (!to->sink(to->context, bytes, length))
        png_error(png, "refused");
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

/* Replaces libpng's handlers, which print. */
_Noreturn static void fail(png_structp png, png_const_charp message)
{
    (void)message;
    png_longjmp(png, 1);
}

static void warn_nobody(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* Returns false when libpng jumped out. No local variable changes between setjmp and the jump. */
static bool write_image(png_structp png, png_infop info, const struct png_image *image, const attn_runtime *runtime)
{
    enum { DOTS_PER_METRE = 3780, LEVEL = 6 };
    if (setjmp(png_jmpbuf(png)) != 0)
        return false;
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
    if (image->scale > 0)
        png_set_pHYs(png, info, (png_uint_32)(DOTS_PER_METRE * image->scale),
                     (png_uint_32)(DOTS_PER_METRE * image->scale), PNG_RESOLUTION_METER);
    /* Flat areas compress best without a filter. */
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
    png_set_compression_level(png, LEVEL);
    png_write_info(png, info);
    for (size_t y = 0; y < image->height; y++) {
        if (pace_is_cancelled(runtime))
            return false;
        png_write_row(png, image->pixels + y * image->width * 3);
    }
    png_write_end(png, info);
    return true;
}

bool png_write_rgb(const struct png_image *image, const attn_runtime *runtime, struct blocks *blocks, png_sink *sink,
                   void *context)
{
    struct destination to = {sink, context};
    png_structp png =
        png_create_write_struct_2(PNG_LIBPNG_VER_STRING, NULL, fail, warn_nobody, blocks, take_memory, give_memory);
    png_infop info = png == NULL ? NULL : png_create_info_struct(png);
    bool is_written = false;
    if (info != NULL) {
        png_set_write_fn(png, &to, write_bytes, flush_nothing);
        is_written = write_image(png, info, image, runtime);
    }
    png_destroy_write_struct(&png, &info);
    return is_written;
}

size_t png_bytes_bound(size_t width, size_t height)
{
    /*
     * Stored blocks of deflate add at most 5 bytes per 16 KiB. libpng cuts the stream into chunks of 8 KiB and adds 12
     * bytes to each.
     */
    size_t raw = (width * 3 + 1) * height;
    return raw + raw / 256 + 1024;
}
