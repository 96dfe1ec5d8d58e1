/*
 * numbers.c: every finite float32, and many float64, written and read back; too long for the unit tests.
 *
 *     numbers      about a minute on two processors; prints what it did, ends with 1 and the first numbers that fail
 *
 * Negative numbers differ only in their sign, so a sample is enough. One number of each block is checked for the
 * shortest text: neither neighbour with one digit less may read back as the number.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec/number/number.h"

enum { BLOCK = 1024, FAILURES_SHOWN = 10, F64_BLOCKS = 20000, THREADS_MAX = 64 };

static const uint32_t f32_infinity = 0x7F800000;
static atomic_size_t next_f32_block, next_f64_block, failures;

static void fail(const char *text, size_t length, const char *what)
{
    if (atomic_fetch_add(&failures, 1) < FAILURES_SHOWN)
        fprintf(stderr, "%.*s %s\n", (int)length, text, what);
}

/* The digits of a text as an integer, without zeros at its end, and the power of ten that it is to be multiplied by. */
static uint64_t digits_of(const char *text, const char *end, int *exponent)
{
    uint64_t digits = 0;
    bool is_behind_point = false;
    *exponent = 0;
    for (; text < end && *text != 'e'; text++) {
        is_behind_point |= *text == '.';
        if (*text < '0' || *text > '9')
            continue;
        digits = digits * 10 + (uint64_t)(*text - '0');
        *exponent -= is_behind_point;
    }
    if (text < end)
        *exponent += atoi(text + 1);
    for (; digits > 0 && digits % 10 == 0; digits /= 10)
        ++*exponent;
    return digits;
}

static bool reads_as_f32(uint64_t digits, int exponent, float value)
{
    char text[64];
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, exponent);
    return strtof(text, NULL) == value;
}

static void check_shortest_f32(const char *text, const char *end, float value)
{
    int exponent;
    uint64_t digits = digits_of(text, end, &exponent) / 10;
    if (digits > 0 && (reads_as_f32(digits, exponent + 1, value) || reads_as_f32(digits + 1, exponent + 1, value)))
        fail(text, (size_t)(end - text), "could be shorter");
}

static void check_f32_block(uint32_t first, bool is_negative)
{
    char text[BLOCK * NUMBER_TEXT_MAX];
    float values[BLOCK];
    for (uint32_t i = 0; i < BLOCK; i++) {
        uint32_t bits = (first + i) | (uint32_t)is_negative << 31;
        memcpy(&values[i], &bits, sizeof bits);
    }
    const char *end = number_write_f32_run(text, values, BLOCK);
    const char *at = text;
    for (uint32_t i = 0; i < BLOCK; i++) {
        float back = 0;
        const char *start = at;
        at = number_read_f32(start, end, &back);
        if (at == NULL || memcmp(&back, &values[i], sizeof back) != 0) {
            fail(start, strcspn(start, ","), "reads back as another float32");
            return;
        }
        if (i == first / BLOCK % BLOCK)
            check_shortest_f32(start, at, fabsf(values[i]));
        at++;
    }
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void check_f64(uint64_t bits)
{
    char text[NUMBER_TEXT_MAX + 32];
    double value, back = 0;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value))
        return;
    char *end = number_write_f64(text, value);
    memset(end, ',', (size_t)(text + sizeof text - end)); /* as in an array: the reader loads whole words */
    if (number_read_f64(text, text + sizeof text, &back) != end || memcmp(&back, &value, sizeof back) != 0)
        fail(text, (size_t)(end - text), "reads back as another float64");
}

static void *work(void *nothing)
{
    size_t block;
    while ((block = atomic_fetch_add(&next_f32_block, 1)) < f32_infinity / BLOCK) {
        check_f32_block((uint32_t)block * BLOCK, false);
        if (block % 64 == 0)
            check_f32_block((uint32_t)block * BLOCK, true);
    }
    while ((block = atomic_fetch_add(&next_f64_block, 1)) < F64_BLOCKS)
        for (uint64_t i = 0; i < BLOCK; i++)
            check_f64(mix((block * BLOCK + i + 1) * UINT64_C(0x9e3779b97f4a7c15)));
    return nothing;
}

int main(void)
{
    pthread_t thread[THREADS_MAX];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = 0, wanted = processors < 1 ? 1 : processors < THREADS_MAX ? (size_t)processors : THREADS_MAX;
    while (threads < wanted && pthread_create(&thread[threads], NULL, work, NULL) == 0)
        threads++;
    if (threads == 0)
        work(NULL);
    while (threads > 0)
        pthread_join(thread[--threads], NULL);
    printf("%u float32 and about %u float64 written and read back, %zu failures\n", f32_infinity,
           (unsigned)F64_BLOCKS * BLOCK, (size_t)failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
