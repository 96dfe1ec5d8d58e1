/* kernels.c: the table of kernels, and which of them this CPU can run. */
#include "kernel/kernel.h"

#include <string.h>

static bool runs_anywhere(void)
{
    return true;
}

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

/* Slowest first. */
static const struct {
    const attn_kernel *kernel;
    bool (*can_run)(void);
} kernels[] = {
    {&attn_kernel_portable, runs_anywhere},
#if defined(__x86_64__)
    {&attn_kernel_avx2, has_avx2},
    {&attn_kernel_avx512, has_avx512},
#elif defined(__aarch64__)
    {&attn_kernel_neon, runs_anywhere}, /* part of every AArch64 CPU */
#endif
};

enum { KERNELS = sizeof kernels / sizeof *kernels };

const attn_kernel *attn_kernel_at(size_t i)
{
    for (size_t k = 0; k < KERNELS; k++)
        if (kernels[k].can_run() && i-- == 0)
            return kernels[k].kernel;
    return NULL;
}

const attn_kernel *attn_kernel_best(void)
{
    const attn_kernel *best = NULL;
    for (size_t k = 0; k < KERNELS; k++)
        if (kernels[k].can_run())
            best = kernels[k].kernel;
    return best;
}

const attn_kernel *attn_kernel_by_name(const char *name)
{
    for (size_t k = 0; k < KERNELS; k++)
        if (strcmp(kernels[k].kernel->name, name) == 0 && kernels[k].can_run())
            return kernels[k].kernel;
    return NULL;
}

const char *attn_kernel_name(const attn_kernel *kernel)
{
    return kernel->name;
}
