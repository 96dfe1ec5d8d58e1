/* neon_f64.c: attention in double for AArch64, with NEON. */
#if defined(__aarch64__)
#define UNIT          attn_attention_neon_f64
#define VECTOR_BYTES  16
#define REGISTER_ROWS 8 /* of 32 registers: 16 sums, 2 vectors of keys, a query */
#include "kernel/vector/f64.inc.h"

#include "kernel/units/attention/instantiate.inc.h"
#else
typedef int attn_attention_neon_f64_is_for_aarch64;
#endif
