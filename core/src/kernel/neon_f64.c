/* neon_f64.c: the kernel in double for AArch64, with NEON. */
#if defined(__aarch64__)
#define UNIT                   attn_kernel_neon_f64
#define VECTOR_BYTES           16
#define REGISTER_ROWS          8
#define REGISTER_VECTORS       2 /* of 32 registers: 16 sums, 2 vectors of keys, a query */
#define MULTIPLIES_FASTER      false
#define BLAS_UP_TO_ROWS_OUT_IN 0
#include "kernel/f64.inc.h"

#include "kernel/instantiate.inc.h"
#else
typedef int attn_kernel_neon_f64_is_for_aarch64;
#endif
