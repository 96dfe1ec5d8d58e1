/*
 * json_bench.c: nanoseconds a number for reading and writing JSON arrays, by this project's codec and by jansson.
 *
 *     json_bench make KIND FILE   512 rows of 512 float32: uniform in [0, 1), softmax weights, normal, or nine,
 *                               which is uniform with nine digits behind the point
 *     json_bench run FILE         one line each: contender, read or write, ns a number, MB/s
 *
 * One thread. Each figure is the best of some rounds, since whatever disturbs a round makes it slower. json_text.py
 * runs this beside other programs on the same files.
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/json/skim.h"
#include "codec/tensor/scan.h"
#include "codec/tensor/write.h"

enum { COLUMNS = 512, ROWS = 512, COUNT = ROWS * COLUMNS, ROUNDS = 7, BELL = 12 };

static const size_t ARENA_BYTES = (size_t)256 << 20;

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* ---- files ---- */

static double next_uniform(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-53;
}

/* About normal, with variance 1. */
static double next_normal(uint64_t *state)
{
    double sum = -BELL / 2.0;
    for (int i = 0; i < BELL; i++)
        sum += next_uniform(state);
    return sum;
}

static void make_row(const char *kind, float *row, uint64_t *state)
{
    double sum = 0, weights[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++) {
        weights[i] = exp(3 * next_normal(state));
        sum += weights[i];
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        if (strcmp(kind, "softmax") == 0)
            row[i] = (float)(weights[i] / sum);
        else
            row[i] = (float)(strcmp(kind, "normal") == 0 ? next_normal(state) : next_uniform(state));
    }
}

static int make_file(const char *kind, const char *path)
{
    const bool is_nine = strcmp(kind, "nine") == 0;
    uint64_t state = 88172645463325252u;
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return EXIT_FAILURE;
    for (size_t i = 0; i < ROWS; i++) {
        float row[COLUMNS];
        make_row(kind, row, &state);
        fputs(i > 0 ? "],[" : "[[", file);
        for (size_t j = 0; j < COLUMNS; j++)
            fprintf(file, is_nine ? "%s%.9f" : "%s%.9g", j > 0 ? "," : "", (double)row[j]);
    }
    fputs("]]", file);
    return fclose(file) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "r");
    char *text = malloc((size_t)64 << 20);
    if (file == NULL || text == NULL)
        exit(EXIT_FAILURE);
    *length = fread(text, 1, ((size_t)64 << 20) - 1, file);
    text[*length] = '\0';
    fclose(file);
    return text;
}

/* ---- contenders ---- */

struct bench {
    const char *text;
    size_t length;
    attn_arena *arena;
    attn_tensor tensor; /* as it was read */
    json_t *tree;
};

/* Both passes: the end of the array, then its numbers. */
static size_t attnd_read(struct bench *bench)
{
    struct lifted_text text = {.text = bench->text};
    attn_error err;
    size_t at = 0;
    attn_arena_reset(bench->arena);
    text.length =
        (size_t)(array_end_find(bench->text, bench->text + bench->length, &(struct pace){.bytes = 0}, &text.commas) -
                 bench->text);
    if (tensor_scan(&text, ATTN_F32, &(struct tensor_rules){0}, "", bench->arena, &bench->tensor, &at, &err) != ATTN_OK)
        exit(EXIT_FAILURE);
    return bench->length;
}

static size_t attnd_write(struct bench *bench)
{
    const struct tensor_style style = {.form = TENSOR_FORM_NESTED};
    const attn_runtime runtime = attn_runtime_serial(NULL);
    const attn_arena_mark mark = attn_arena_mark_here(bench->arena);
    struct chunks out = chunks_begin(bench->arena);
    tensor_write_json(&bench->tensor, &style, &runtime, &out);
    attn_arena_release(bench->arena, mark);
    return out.total_bytes;
}

static size_t jansson_read(struct bench *bench)
{
    json_decref(bench->tree);
    bench->tree = json_loadb(bench->text, bench->length, 0, NULL);
    return bench->length;
}

static size_t jansson_write(struct bench *bench)
{
    char *text = json_dumps(bench->tree, JSON_COMPACT);
    const size_t length = text != NULL ? strlen(text) : 0;
    free(text);
    return length;
}

static void measure(const char *name, const char *what, struct bench *bench, size_t (*run)(struct bench *bench))
{
    double best = 1e300;
    size_t bytes = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const double start = now_ns();
        bytes = run(bench);
        const double took = now_ns() - start;
        best = took < best ? took : best;
    }
    printf("%s %s %.2f %.1f\n", name, what, best / COUNT, (double)bytes * 1e3 / best);
}

static int run_file(const char *path)
{
    struct bench bench = {.arena = attn_arena_create(ARENA_BYTES)};
    bench.text = read_file(path, &bench.length);
    measure("attnd", "read", &bench, attnd_read);
    measure("attnd", "write", &bench, attnd_write);
    measure("jansson", "read", &bench, jansson_read);
    measure("jansson", "write", &bench, jansson_write);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0)
        return make_file(argv[2], argv[3]);
    if (argc == 3 && strcmp(argv[1], "run") == 0)
        return run_file(argv[2]);
    fprintf(stderr, "usage: json_bench make uniform|softmax|normal|nine FILE, or json_bench run FILE\n");
    return EXIT_FAILURE;
}
