/*
 * instantiate.inc.h: one kernel: attend.inc.h in float and in double for the instruction set of the including file, which
 * defines KERNEL (its name), VECTOR_BYTES, REGISTER_ROWS and REGISTER_VECTORS (of a register tile: matmul.inc.h), and
 * when its products are faster than the BLAS's (attn_kernel).
 */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "attn/arena.h"
#include "formulas/philox.h"
#include "kernel/kernel.h"

/* Before a loop over registers: Clang unrolls it in time to keep them only if it is told to unroll all of it. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define JOIN3_(a, b, c) a##_##b##_##c
#define JOIN3(a, b, c) JOIN3_(a, b, c)
#define JOIN2_(a, b) a##_##b
#define JOIN2(a, b) JOIN2_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

#define FN(name) JOIN3(name, KERNEL, f32)
#define REAL float
#define INTEGER int32_t
#define REAL_BITS 32
#define EXPONENT_BIAS 127
#define MANTISSA_BITS 23
#define ROUNDING_SHIFT 12582912.0f /* 1.5 * 2^23 */
#define EXP_LOWEST -104.0f         /* e^-104 rounds to 0 */
#define EXP_HIGHEST 89.0f          /* e^89 is infinite */
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f
#define REAL_LARGEST FLT_MAX
/* Moshier, Cephes, expf: (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2 */
#define EXP_COEFFICIENTS \
    1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f
#include "kernel/attend.inc.h"
#include "kernel/weights.inc.h"
#undef FN
#undef REAL
#undef INTEGER
#undef REAL_BITS
#undef EXPONENT_BIAS
#undef MANTISSA_BITS
#undef ROUNDING_SHIFT
#undef EXP_LOWEST
#undef EXP_HIGHEST
#undef LN2_HIGH
#undef LN2_LOW
#undef REAL_LARGEST
#undef EXP_COEFFICIENTS
#undef vec
#undef ivec
#undef LANES

#define FN(name) JOIN3(name, KERNEL, f64)
#define REAL double
#define INTEGER int64_t
#define REAL_BITS 64
#define EXPONENT_BIAS 1023
#define MANTISSA_BITS 52
#define ROUNDING_SHIFT 6755399441055744.0 /* 1.5 * 2^52 */
#define EXP_LOWEST -746.0
#define EXP_HIGHEST 710.0
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define REAL_LARGEST DBL_MAX
/* The series: 1/13! … 1/2!; the first term left out is below 5e-18. */
#define EXP_COEFFICIENTS                                                                                          \
    1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, \
        1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5
#include "kernel/attend.inc.h"

const attn_kernel JOIN2(attn_kernel, KERNEL) = {
    .name = TEXT(KERNEL),
    .attend_f32 = JOIN3(attend, KERNEL, f32),
    .attend_f64 = JOIN3(attend, KERNEL, f64),
    .merge_f32 = JOIN3(merge, KERNEL, f32),
    .merge_f64 = JOIN3(merge, KERNEL, f64),
    .partials_f32 = JOIN3(partials_bytes, KERNEL, f32),
    .partials_f64 = JOIN3(partials_bytes, KERNEL, f64),
    .scratch_f32 = JOIN3(scratch_bytes, KERNEL, f32),
    .scratch_f64 = JOIN3(scratch_bytes, KERNEL, f64),
    .gradient_f32 = JOIN3(gradient_row, KERNEL, f32),
    .gradient_f64 = JOIN3(gradient_row, KERNEL, f64),
    .weigh_row = JOIN3(weigh_row, KERNEL, f32),
    .multiply_f32 = JOIN3(multiply, KERNEL, f32),
    .multiply_f64 = JOIN3(multiply, KERNEL, f64),
    .pack_f32 = JOIN3(pack_panel, KERNEL, f32),
    .panel_columns = JOIN3(PANEL, KERNEL, f32),
    .multiplies_f32_faster = MULTIPLIES_F32_FASTER,
    .multiplies_f64_faster = MULTIPLIES_F64_FASTER,
    .blas_up_to_rows_out_in = TRANSPOSED_BY_BLAS,
    .exp_f32 = JOIN3(exp_all, KERNEL, f32),
    .exp_f64 = JOIN3(exp_all, KERNEL, f64),
};
