/* avx512.c: the kernel for x86-64 with AVX-512 F, BW, DQ and VL. */
#if defined(__x86_64__)
#if !defined(__AVX512F__) || !defined(__AVX512VL__)
#error "compile this file with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma"
#endif
#define KERNEL            avx512
#define VECTOR_BYTES      64
#define REGISTER_ROWS     12 /* of 32 registers: 24 sums, 2 vectors of keys, a query */
#define MULTIPLIES_FASTER true

#include "kernel/units/instantiate.inc.h"
#else
typedef int attn_kernel_avx512_is_for_x86;
#endif
