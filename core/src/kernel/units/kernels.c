/* kernels.c: the table of kernels, and which of them this CPU can run. */
#include "kernel/entries.h"

#include <string.h>

#include "base/number.h"

static bool runs_anywhere(void)
{
    return true;
}

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && attn_has_f16c();
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static bool has_avx512_bf16(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bf16");
}
#endif

/* What a build leaves out (KERNELS of the Makefile) stays in the table without its functions. */
#if defined(WITHOUT_avx2)
#define AVX2 NULL, NULL
#else
#define AVX2 &attn_kernel_avx2_f32, &attn_kernel_avx2_f64
#endif
#if defined(WITHOUT_avx512)
#define AVX512 NULL, NULL
#else
#define AVX512 &attn_kernel_avx512_f32, &attn_kernel_avx512_f64
#endif
#if defined(WITHOUT_avx512_bf16)
#define AVX512_BF16 NULL, NULL, NULL
#else
#define AVX512_BF16 AVX512, attn_attend_avx512_bf16
#endif
#if defined(WITHOUT_neon)
#define NEON NULL, NULL
#else
#define NEON &attn_kernel_neon_f32, &attn_kernel_neon_f64
#endif

/* Slowest first. */
static const attn_kernel kernels[] = {
    {"portable", runs_anywhere, &attn_kernel_portable_f32, &attn_kernel_portable_f64, NULL},
#if defined(__x86_64__)
    {"avx2", has_avx2, AVX2, NULL},
    {"avx512", has_avx512, AVX512, NULL},
    {"avx512_bf16", has_avx512_bf16, AVX512_BF16},
#elif defined(__aarch64__)
    {"neon", runs_anywhere, NEON, NULL}, /* part of every AArch64 CPU */
#endif
};

enum { KERNELS = sizeof kernels / sizeof *kernels };

static bool is_left_out(const attn_kernel *kernel)
{
    return kernel->f32 == NULL;
}

static bool is_usable(const attn_kernel *kernel)
{
    return !is_left_out(kernel) && kernel->can_run();
}

const attn_kernel *attn_kernel_at(size_t i)
{
    for (size_t k = 0; k < KERNELS; k++)
        if (is_usable(&kernels[k]) && i-- == 0)
            return &kernels[k];
    return NULL;
}

const attn_kernel *attn_kernel_best(void)
{
    const attn_kernel *best = NULL;
    for (size_t k = 0; k < KERNELS; k++)
        if (is_usable(&kernels[k]))
            best = &kernels[k];
    return best;
}

/* The row of a name; NULL: there is none. */
static const attn_kernel *find(const char *name)
{
    for (size_t k = 0; k < KERNELS; k++)
        if (strcmp(kernels[k].name, name) == 0)
            return &kernels[k];
    return NULL;
}

const attn_kernel *attn_kernel_by_name(const char *name)
{
    const attn_kernel *kernel = find(name);
    return kernel != NULL && is_usable(kernel) ? kernel : NULL;
}

bool attn_kernel_is_left_out(const char *name)
{
    const attn_kernel *kernel = find(name);
    return kernel != NULL && is_left_out(kernel) && kernel->can_run();
}

const char *attn_kernel_name(const attn_kernel *kernel)
{
    return kernel->name;
}
