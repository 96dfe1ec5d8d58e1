/* avx2_f32.c: attention in float for x86-64 with AVX2, FMA and F16C. */
#if defined(__x86_64__)
#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "compile this file with -mavx2 -mfma -mf16c"
#endif
#define UNIT          attn_attention_avx2_f32
#define VECTOR_BYTES  32
#define REGISTER_ROWS 6 /* of 16 registers: 12 sums, 2 vectors of keys, a query */
#include "kernel/vector/f32.inc.h"

#include "kernel/units/attention/instantiate.inc.h"
#else
typedef int attn_attention_avx2_f32_is_for_x86;
#endif
