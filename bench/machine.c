/* machine.c: the roofline: loops that do nothing but multiply-adds, and nothing but reading. */
#include "machine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attn/runtime.h"

enum {
    CHAINS = 12, /* independent sums: enough to hide the latency of a multiply-add on two ports */
    THREADS_MAX = 64,
    FMA_ROUNDS = 1 << 22,
    READ_BYTES = 1 << 28, /* each thread reads at least so much, buffer after buffer */
    LINE = 64,
    SUMS = 8 /* of a reading thread: with four, it reads a third less from the second cache */
};

static volatile double sink; /* what is computed must be used */

/* Returns FLOPs done. The inner loop is unrolled, so that sum lives in registers. */
#define DEFINE_MULTIPLY_ADDS(name, target, real, vector_bytes)                                                         \
    target static double name(size_t rounds)                                                                           \
    {                                                                                                                  \
        typedef real vec __attribute__((vector_size(vector_bytes)));                                                   \
        volatile real half = (real)0.5;                                                                                \
        const vec factor = (vec){0} + half, addend = factor;                                                           \
        vec sum[CHAINS], total = {0};                                                                                  \
        for (int i = 0; i < CHAINS; i++)                                                                               \
            sum[i] = factor + (real)i;                                                                                 \
        for (size_t round = 0; round < rounds; round++)                                                                \
            for (int i = 0; i < CHAINS; i++)                                                                           \
                sum[i] = sum[i] * factor + addend;                                                                     \
        for (int i = 0; i < CHAINS; i++)                                                                               \
            total += sum[i];                                                                                           \
        sink = (double)total[0];                                                                                       \
        enum { LANES = vector_bytes / sizeof(real) };                                                                  \
        return 2.0 * CHAINS * LANES * (double)rounds;                                                                  \
    }

/* Adds up count lines of 64 bytes, eight sums at a time; count is a multiple of 8. */
#define DEFINE_READ(name, target, vector_bytes)                                                                        \
    target static void name(const char *from, size_t count)                                                            \
    {                                                                                                                  \
        typedef uint64_t vec __attribute__((vector_size(vector_bytes)));                                               \
        const vec *x = (const vec *)(const void *)from;                                                                \
        vec sum[SUMS] = {{0}}, total = {0};                                                                            \
        for (size_t block = 0; block < count * (LINE / vector_bytes) / SUMS; block++)                                  \
            for (int i = 0; i < SUMS; i++)                                                                             \
                sum[i] += x[block * SUMS + (size_t)i];                                                                 \
        for (int i = 0; i < SUMS; i++)                                                                                 \
            total += sum[i];                                                                                           \
        sink = (double)total[0];                                                                                       \
    }

#define ANY_CPU
DEFINE_MULTIPLY_ADDS(multiply_adds_f32_portable, ANY_CPU, float, 16)
DEFINE_MULTIPLY_ADDS(multiply_adds_f64_portable, ANY_CPU, double, 16)
DEFINE_READ(read_portable, ANY_CPU, 16)
#if defined(__x86_64__)
#define AVX2   __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))
DEFINE_MULTIPLY_ADDS(multiply_adds_f32_avx2, AVX2, float, 32)
DEFINE_MULTIPLY_ADDS(multiply_adds_f64_avx2, AVX2, double, 32)
DEFINE_READ(read_avx2, AVX2, 32)
DEFINE_MULTIPLY_ADDS(multiply_adds_f32_avx512, AVX512, float, 64)
DEFINE_MULTIPLY_ADDS(multiply_adds_f64_avx512, AVX512, double, 64)
DEFINE_READ(read_avx512, AVX512, 64)
#endif

struct vectors {
    const char *name;
    double (*multiply_adds_f32)(size_t rounds), (*multiply_adds_f64)(size_t rounds);
    void (*read)(const char *from, size_t count);
};

/* By name, or the best for an empty name; without functions if the CPU has none of that name. */
static struct vectors find_vectors(const char *name)
{
    const bool is_any = *name == '\0';
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && (is_any || strcmp(name, "avx512") == 0))
        return (struct vectors){"avx512", multiply_adds_f32_avx512, multiply_adds_f64_avx512, read_avx512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && (is_any || strcmp(name, "avx2") == 0))
        return (struct vectors){"avx2", multiply_adds_f32_avx2, multiply_adds_f64_avx2, read_avx2};
#endif
    if (is_any || strcmp(name, "portable") == 0)
        return (struct vectors){"portable", multiply_adds_f32_portable, multiply_adds_f64_portable, read_portable};
    return (struct vectors){0};
}

const char *machine_vectors(void)
{
    return find_vectors("").name;
}

/* ---- threads ---- */

struct load {
    struct vectors vectors;
    attn_dtype dtype;
    const char *from; /* what a thread reads; NULL: it multiplies */
    size_t lines, passes;
    double amount; /* FLOPs or bytes */
};

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void carry(void *argument)
{
    struct load *load = argument;
    const struct vectors *vectors = &load->vectors;
    if (load->from == NULL) {
        load->amount =
            load->dtype == ATTN_F32 ? vectors->multiply_adds_f32(FMA_ROUNDS) : vectors->multiply_adds_f64(FMA_ROUNDS);
        return;
    }
    for (size_t pass = 0; pass < load->passes; pass++)
        vectors->read(load->from, load->lines);
    load->amount = (double)load->lines * LINE * (double)load->passes;
}

/*
 * All loads at once; the amount of all a second, in units of 10^9. Waking threads is little beside the loads. The pool
 * binds them to their processors: under a real-time policy two new threads often shared one.
 */
static double carry_all(struct load *load, size_t threads)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = threads, .pin = true}, NULL);
    if (pool == NULL)
        return 0;
    bool is_whole = true;
    double amount = 0, start = now_s();
    for (size_t t = 0; t < threads; t++)
        is_whole = attn_pool_submit(pool, carry, &load[t]) && is_whole;
    attn_pool_destroy(pool); /* after the last load */
    const double took = now_s() - start;
    for (size_t t = 0; t < threads; t++)
        amount += load[t].amount;
    return is_whole ? amount / took * 1e-9 : 0;
}

double machine_peak_gflops(attn_dtype dtype, size_t threads, const char *name)
{
    struct load load[THREADS_MAX];
    const struct vectors vectors = find_vectors(name);
    if (vectors.name == NULL)
        return 0;
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    for (size_t t = 0; t < threads; t++)
        load[t] = (struct load){.vectors = vectors, .dtype = dtype};
    return carry_all(load, threads);
}

double machine_read_gbs(size_t bytes, size_t threads)
{
    static char *buffer; /* kept for the next call: clearing it anew would take longer than reading it */
    static size_t buffer_bytes;
    struct load load[THREADS_MAX];
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    const size_t lines = (bytes / threads / LINE + SUMS) / SUMS * SUMS, each = lines * LINE;
    if (buffer_bytes != each * threads) {
        free(buffer);
        buffer = aligned_alloc(LINE, each * threads);
        buffer_bytes = buffer == NULL ? 0 : each * threads;
        if (buffer == NULL)
            return 0;
        memset(buffer, 1, buffer_bytes);
    }
    for (size_t t = 0; t < threads; t++)
        load[t] = (struct load){
            .vectors = find_vectors(""), .from = buffer + t * each, .lines = lines, .passes = READ_BYTES / each + 1};
    return carry_all(load, threads);
}
