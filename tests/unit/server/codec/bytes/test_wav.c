/* test_wav.c: tests server/codec/bytes/wav.c. */
#include "codec/bytes/wav.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"

static attn_arena *arena;
static attn_error err;

static void begin(void)
{
    arena = attn_arena_create(1 << 20);
}

static void end(void)
{
    attn_arena_destroy(arena);
}

#define RIFF         "RIFF\0\0\0\0WAVE"
#define INTEGERS     "fmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0"
#define FLOATS       "fmt \x10\0\0\0\x03\0\x01\0\x80\x3e\0\0\0\xfa\0\0\x04\0\x20\0"
#define EXTENDED     "fmt \x1a\0\0\0\xfe\xff\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0\x16\0\x10\0\x04\0\0\0\x01\0"
#define STEREO       "fmt \x10\0\0\0\x01\0\x02\0\x44\xac\0\0\0\x7d\0\0\x04\0\x10\0"
#define BITS_24      "fmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x03\0\x18\0"
#define LIST         "LIST\x03\0\0\0abc\0"
#define TWO          "\0\x40\0\x80"
#define FILE_OF(...) __VA_ARGS__, sizeof(__VA_ARGS__) - 1

/* The file is copied, so that a sanitizer sees a byte behind its end. */
static attn_status read_copy(const char *bytes, size_t length, attn_dtype dtype, attn_tensor *samples)
{
    char *copy = malloc(length + 1);
    ck_assert_ptr_nonnull(copy);
    char *at = copy + 1; /* at an odd address */
    memcpy(at, bytes, length);
    const attn_status status = wav_read(at, length, dtype, arena, samples, &err);
    free(copy);
    return status;
}

static const struct {
    const char *bytes;
    size_t length, count;
    double first, last;
} files[] = {
    {FILE_OF(RIFF INTEGERS "data\4\0\0\0" TWO), 2, 0.5, -1},
    {FILE_OF(RIFF LIST EXTENDED LIST "data\4\0\0\0" TWO "more"), 2, 0.5, -1},
    {FILE_OF(RIFF FLOATS "data\4\0\0\0\0\0\x20\xbf"), 1, -0.625, -0.625},
    {FILE_OF(RIFF INTEGERS "data\xff\xff\xff\xff" TWO "\1"), 2, 0.5,
     -1}, /* written into a pipe; an odd end is left out */
    {FILE_OF(RIFF INTEGERS "data\0\0\0\0"), 0, 0, 0},
};

START_TEST(samples_become_numbers_from_minus_one_to_one)
{
    attn_tensor samples, wide;
    ck_assert_int_eq(read_copy(files[_i].bytes, files[_i].length, ATTN_F32, &samples), ATTN_OK);
    ck_assert_int_eq(read_copy(files[_i].bytes, files[_i].length, ATTN_F64, &wide), ATTN_OK);
    ck_assert_uint_eq(samples.shape[0], files[_i].count);
    ck_assert_uint_eq(wide.shape[0], files[_i].count);
    if (files[_i].count == 0)
        return;
    ck_assert_double_eq((double)((const float *)samples.data)[0], files[_i].first);
    ck_assert_double_eq(((const double *)wide.data)[files[_i].count - 1], files[_i].last);
}
END_TEST

static const struct {
    const char *bytes;
    size_t length;
    const char *part;
} refusals[] = {
    {FILE_OF(""), "no WAV file: ffmpeg"},
    {FILE_OF("RIFF\0\0\0\0WAV"), "no WAV file"},
    {FILE_OF("RIFX\0\0\0\0WAVE" INTEGERS), "no WAV file"},
    {FILE_OF(RIFF), "without data"},
    {FILE_OF(RIFF INTEGERS "dat"), "without data"},
    {FILE_OF(RIFF INTEGERS "LIST\xff\xff\xff\xff"), "without data"},
    {FILE_OF(RIFF "data\4\0\0\0" TWO), "without a fmt chunk"},
    {FILE_OF(RIFF "fmt \x10\0\0\0\1\0\1\0"), "fmt chunk is cut off"},
    {FILE_OF(RIFF "fmt \4\0\0\0\1\0\1\0"
                  "data\4\0\0\0" TWO),
     "fmt chunk is cut off"},
    {FILE_OF(RIFF STEREO), "44100 samples a second in 2 channels; the model takes 16000 in one: ffmpeg -i FILE -ac 1"},
    {FILE_OF(RIFF BITS_24), "samples of 24 bits of the format 1"},
    {FILE_OF(RIFF INTEGERS "data\5\0\0\0" TWO), "5 bytes of data follow, and has 4"},
};

START_TEST(another_file_is_refused_with_a_command_that_helps)
{
    attn_tensor samples;
    ck_assert_int_eq(read_copy(refusals[_i].bytes, refusals[_i].length, ATTN_F32, &samples), ATTN_ERR_VALUE);
    ck_assert_msg(strstr(err.message, refusals[_i].part) != NULL, "%s", err.message);
}
END_TEST

CHECK_MAIN("wav")
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, samples_become_numbers_from_minus_one_to_one, 0, COUNT(files));
    tcase_add_loop_test(tests, another_file_is_refused_with_a_command_that_helps, 0, COUNT(refusals));
}
