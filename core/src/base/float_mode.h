/*
 * float_mode.h: the floating-point mode of a thread: rounding, and whether subnormal numbers are kept.
 *
 * A caller may have set flush-to-zero (FTZ), denormals-are-zero (DAZ), another rounding or trapping. PyTorch's
 * set_flush_denormal does so for all threads, and so does a library that was built with -ffast-math. Results would
 * depend on that mode. A run therefore enters the default mode of the C standard, and restores the caller's at its end.
 */
#ifndef ATTN_BASE_FLOAT_MODE_H
#define ATTN_BASE_FLOAT_MODE_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Sets the default mode: rounds to nearest, keeps subnormal numbers, traps nothing. Returns the previous mode. */
static inline uint64_t attn_float_mode_enter(void)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x1F80);
    return before;
}

/* The default mode, but subnormal results become 0. The compiler does not know: call no arithmetic inline in it. */
static inline uint64_t attn_float_mode_flush(void)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x9F80);
    return before;
}

static inline void attn_float_mode_leave(uint64_t before)
{
    _mm_setcsr((unsigned)before);
}
#elif defined(__aarch64__)
static inline void attn_float_mode_leave(uint64_t before)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(before) : "memory");
}

static inline uint64_t attn_float_mode_enter(void)
{
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    attn_float_mode_leave(0);
    return before;
}
#else
static inline uint64_t attn_float_mode_enter(void)
{
    return 0;
}

static inline void attn_float_mode_leave(uint64_t before)
{
    (void)before;
}
#endif

#if !defined(__x86_64__)
/* Only x86-64 flushes as its instruction for bfloat16 does; other kernels flush in the source. */
static inline uint64_t attn_float_mode_flush(void)
{
    return attn_float_mode_enter();
}
#endif

static inline void attn_float_mode_leave_at(const uint64_t *before)
{
    attn_float_mode_leave(*before);
}

/* A declaration: from here to the end of the block, however it ends, the thread is in the default mode. */
#define ATTN_FLOAT_MODE                                                                                                \
    const uint64_t float_mode __attribute__((cleanup(attn_float_mode_leave_at), unused)) = attn_float_mode_enter()

#endif
