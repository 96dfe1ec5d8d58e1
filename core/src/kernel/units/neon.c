/* neon.c: the kernel for AArch64, with NEON. */
#if defined(__aarch64__)
#define KERNEL            neon
#define VECTOR_BYTES      16
#define REGISTER_ROWS     8 /* of 32 registers: 16 sums, 2 vectors of keys, a query */
#define MULTIPLIES_FASTER false

#include "kernel/units/instantiate.inc.h"
#else
typedef int attn_kernel_neon_is_for_aarch64;
#endif
