/*
 * avx512_bf16.c: attention by products in bfloat16, for x86-64 with AVX-512 F, BW, DQ, VL and BF16. All else of the
 * kernel is that of avx512.c.
 */
#if defined(__x86_64__)
#if !defined(__AVX512BF16__)
#error "compile this file with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mfma"
#endif
#define VECTOR_BYTES  64
#define REGISTER_ROWS 12 /* as in avx512.c, whose scratch_bytes counts the memory of this unit */
#define ONLY_BF16_PRODUCTS
#include "kernel/vector/real.inc.h"

#include "kernel/attend.inc.h"
#include "kernel/entries.h"

void attn_attend_avx512_bf16(const struct attn_heads_job *job, size_t t, void *scratch)
{
    attend(job, t, scratch);
}
#else
typedef int attn_attend_avx512_bf16_is_for_x86;
#endif
