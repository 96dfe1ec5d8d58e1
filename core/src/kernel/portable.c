/* portable.c: the kernel for any CPU: 16-byte vectors, which the compiler makes of whatever the CPU has. */
#define KERNEL            portable
#define VECTOR_BYTES      16
#define REGISTER_ROWS     6
#define REGISTER_VECTORS  2
#define MULTIPLIES_FASTER false
#include "kernel/instantiate.inc.h"
