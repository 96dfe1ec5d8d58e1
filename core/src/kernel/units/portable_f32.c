/* portable_f32.c: the kernel in float for any CPU: the compiler maps 16-byte vectors to what the CPU has. */
#define UNIT              attn_kernel_portable_f32
#define ATTENTION         attn_attention_portable_f32
#define VECTOR_BYTES      16
#define REGISTER_ROWS     6
#define MULTIPLIES_FASTER false
#include "kernel/vector/f32.inc.h"

#include "kernel/units/instantiate.inc.h"
