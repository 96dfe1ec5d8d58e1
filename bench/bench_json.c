/*
 * bench_json.c: nanoseconds a number for reading and writing, beside the C library and jansson.
 *
 *     cc -O3 -D_GNU_SOURCE -Iserver bench/bench_json.c server/codec/number_*.c server/codec/powers_of_ten.c \
 *         $(pkg-config --cflags --libs jansson) -o bench_json && ./bench_json
 */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/number_read.h"
#include "codec/number_write.h"

enum { COUNT = 1 << 17, ROUNDS = 7 };

static double values[COUNT];
static char text[COUNT * 32];

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* How a run is measured: the best of some rounds, since whatever disturbs a round makes it slower. */
static void measure(const char *name, size_t (*run)(void))
{
    double best = 1e300;
    size_t bytes = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_ns();
        bytes = run();
        double took = now_ns() - start;
        best = took < best ? took : best;
    }
    printf("%-28s %7.1f ns a number %7.0f MB/s\n", name, best / COUNT, (double)bytes * 1e3 / best);
}

static size_t print_all(const char *format)
{
    char *to = text;
    *to++ = '[';
    for (int i = 0; i < COUNT; i++) {
        to += sprintf(to, format, values[i]);
        *to++ = i == COUNT - 1 ? ']' : ',';
    }
    *to = '\0';
    return (size_t)(to - text);
}

static volatile double sink;

#define READ_LOOP(type, call)                                                                                          \
    size_t length = strlen(text);                                                                                      \
    const char *end = text + length;                                                                                   \
    type sum = 0;                                                                                                      \
    for (const char *at = text; at < end && *at != ']';) {                                                             \
        type value = 0;                                                                                                \
        at++;                                                                                                          \
        call;                                                                                                          \
        sum += value;                                                                                                  \
    }                                                                                                                  \
    sink = (double)sum;                                                                                                \
    return length

static size_t read_f32(void)
{
    READ_LOOP(float, at = number_read_f32(at, end, &value));
}

static size_t read_f64(void)
{
    READ_LOOP(double, at = number_read_f64(at, end, &value));
}

static size_t read_strtof(void)
{
    READ_LOOP(float, char *stop; value = strtof(at, &stop); at = stop);
}

static size_t read_strtod(void)
{
    READ_LOOP(double, char *stop; value = strtod(at, &stop); at = stop);
}

static size_t read_jansson(void)
{
    json_t *root = json_loads(text, 0, NULL);
    sink = json_number_value(json_array_get(root, 0));
    json_decref(root);
    return strlen(text);
}

#define WRITE_LOOP(call)                                                                                               \
    char *to = text;                                                                                                   \
    for (int i = 0; i < COUNT; i++) {                                                                                  \
        to = (call);                                                                                                   \
        *to++ = ',';                                                                                                   \
    }                                                                                                                  \
    return (size_t)(to - text)

static size_t write_f32(void)
{
    WRITE_LOOP(number_write_f32(to, (float)values[i]));
}

static size_t write_f64(void)
{
    WRITE_LOOP(number_write_f64(to, values[i]));
}

static size_t write_6_digits(void)
{
    WRITE_LOOP(number_write_digits(to, values[i], 6));
}

static size_t write_printf_9(void)
{
    WRITE_LOOP(to + sprintf(to, "%.9g", values[i]));
}

static size_t write_printf_17(void)
{
    WRITE_LOOP(to + sprintf(to, "%.17g", values[i]));
}

static size_t write_jansson(void)
{
    json_t *root = json_array();
    for (int i = 0; i < COUNT; i++)
        json_array_append_new(root, json_real(values[i]));
    char *dump = json_dumps(root, JSON_COMPACT);
    size_t length = strlen(dump);
    free(dump);
    json_decref(root);
    return length;
}

static void measure_reading(const char *format)
{
    print_all(format);
    printf("reading %s, as %.24s...\n", format, text);
    measure("  number_read_f32", read_f32);
    measure("  number_read_f64", read_f64);
    measure("  strtof", read_strtof);
    measure("  strtod", read_strtod);
    measure("  jansson", read_jansson);
}

int main(void)
{
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < COUNT; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values[i] = (double)(state >> 11) * 0x1p-53;
    }
    measure_reading("%.9f");
    measure_reading("%.9g");
    measure_reading("%.17g");
    printf("writing numbers of [0, 1)\n");
    measure("  number_write_f32", write_f32);
    measure("  number_write_f64", write_f64);
    measure("  number_write_digits 6", write_6_digits);
    measure("  printf %.9g", write_printf_9);
    measure("  printf %.17g", write_printf_17);
    measure("  jansson", write_jansson);
    return 0;
}
