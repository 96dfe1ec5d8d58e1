/* neon_f64.c: the kernel in double for AArch64, with NEON. */
#if defined(__aarch64__)
#define UNIT              attn_kernel_neon_f64
#define ATTENTION         attn_attention_neon_f64
#define VECTOR_BYTES      16
#define REGISTER_ROWS     8 /* of 32 registers: 16 sums, 2 vectors of keys, a query */
#define MULTIPLIES_FASTER false
#include "kernel/vector/f64.inc.h"

#include "kernel/units/instantiate.inc.h"
#else
typedef int attn_kernel_neon_f64_is_for_aarch64;
#endif
