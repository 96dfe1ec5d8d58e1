/*
 * f16c.c: asks the CPU for F16C. clang 14 does not know its name, so CPUID is asked, once: that takes a virtual machine
 * microseconds.
 */
#include "base/number.h"

static bool has_f16c;

bool attn_has_f16c(void)
{
    return has_f16c;
}

#if defined(__x86_64__)
#include <cpuid.h>

__attribute__((constructor)) static void ask_for_f16c(void)
{
    unsigned eax, ebx, ecx, edx;
    __builtin_cpu_init(); /* other constructors may not have run */
    has_f16c = __builtin_cpu_supports("avx") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif
