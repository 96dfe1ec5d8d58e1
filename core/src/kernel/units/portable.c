/* portable.c: the kernel for any CPU: the compiler maps 16-byte vectors to what the CPU has. */
#define KERNEL            portable
#define VECTOR_BYTES      16
#define REGISTER_ROWS     6
#define MULTIPLIES_FASTER false

#include "kernel/units/instantiate.inc.h"
