/* avx512_bf16.c: the kernel in float for x86-64 with AVX-512 F, BW, DQ, VL and BF16. */
#if defined(__x86_64__)
#if !defined(__AVX512BF16__)
#error "compile this file with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mfma"
#endif
#define UNIT              attn_kernel_avx512_bf16
#define VECTOR_BYTES      64
#define REGISTER_ROWS     6 /* as in avx512_f32.c */
#define MULTIPLIES_FASTER true
#include "kernel/f32.inc.h"

#include "kernel/units/instantiate.inc.h"
#else
typedef int attn_kernel_avx512_bf16_is_for_x86;
#endif
