/* neon.c: the kernel for AArch64, whose 32 vector registers hold a larger register tile. */
#if defined(__aarch64__)
#define KERNEL            neon
#define VECTOR_BYTES      16
#define REGISTER_ROWS     8 /* 16 sums, 2 vectors of keys and a query of 32 registers */
#define REGISTER_VECTORS  2
#define MULTIPLIES_FASTER false
#include "kernel/instantiate.inc.h"
#else
typedef int attn_kernel_neon_is_for_aarch64;
#endif
