/* kernels.c: the table of kernels, and which of them this CPU can run. */
#include "kernel/kernel.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static bool runs_anywhere(void)
{
    return true;
}

#if defined(__x86_64__)
/*
 * F16C has the loads of float16. clang 14 does not know its name, so CPUID is asked, once: that takes a virtual machine
 * microseconds.
 */
static bool has_f16c;

__attribute__((constructor)) static void ask_for_f16c(void)
{
    unsigned eax, ebx, ecx, edx;
    has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c;
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

/* Slowest first. */
static const attn_kernel kernels[] = {
    {"portable", runs_anywhere, &attn_kernel_portable_f32, &attn_kernel_portable_f64, NULL},
#if defined(__x86_64__)
    {"avx2", has_avx2, &attn_kernel_avx2_f32, &attn_kernel_avx2_f64, NULL},
    {"avx512", has_avx512, &attn_kernel_avx512_f32, &attn_kernel_avx512_f64, NULL},
    {"avx512_bf16", has_avx512_bf16, &attn_kernel_avx512_f32, &attn_kernel_avx512_f64, attn_attend_avx512_bf16},
#elif defined(__aarch64__)
    {"neon", runs_anywhere, &attn_kernel_neon_f32, &attn_kernel_neon_f64, NULL}, /* part of every AArch64 CPU */
#endif
};

enum { KERNELS = sizeof kernels / sizeof *kernels };

const attn_kernel *attn_kernel_at(size_t i)
{
    for (size_t k = 0; k < KERNELS; k++)
        if (kernels[k].can_run() && i-- == 0)
            return &kernels[k];
    return NULL;
}

const attn_kernel *attn_kernel_best(void)
{
    const attn_kernel *best = NULL;
    for (size_t k = 0; k < KERNELS; k++)
        if (kernels[k].can_run())
            best = &kernels[k];
    return best;
}

const attn_kernel *attn_kernel_by_name(const char *name)
{
    for (size_t k = 0; k < KERNELS; k++)
        if (strcmp(kernels[k].name, name) == 0 && kernels[k].can_run())
            return &kernels[k];
    return NULL;
}

const char *attn_kernel_name(const attn_kernel *kernel)
{
    return kernel->name;
}
