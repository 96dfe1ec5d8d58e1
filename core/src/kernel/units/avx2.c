/* avx2.c: the kernel for x86-64 with AVX2, FMA and F16C. */
#if defined(__x86_64__)
#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "compile this file with -mavx2 -mfma -mf16c"
#endif
#define KERNEL            avx2
#define VECTOR_BYTES      32
#define REGISTER_ROWS     6 /* of 16 registers: 12 sums, 2 vectors of keys, a query */
#define MULTIPLIES_FASTER (REAL_BITS == 32)

#include "kernel/units/instantiate.inc.h"
#else
typedef int attn_kernel_avx2_is_for_x86;
#endif
