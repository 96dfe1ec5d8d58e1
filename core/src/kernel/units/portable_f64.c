/* portable_f64.c: the kernel in double for any CPU: the compiler maps 16-byte vectors to what the CPU has. */
#define UNIT              attn_kernel_portable_f64
#define ATTENTION         attn_attention_portable_f64
#define VECTOR_BYTES      16
#define REGISTER_ROWS     6
#define MULTIPLIES_FASTER false
#include "kernel/vector/f64.inc.h"

#include "kernel/units/instantiate.inc.h"
