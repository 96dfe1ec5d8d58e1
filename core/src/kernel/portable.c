/* portable.c: the kernel for any CPU: 16-byte vectors, which every 64-bit machine has. */
#define KERNEL portable
#define VECTOR_BYTES 16
#if defined(__aarch64__)
#define REGISTER_ROWS 8 /* 32 vector registers */
#else
#define REGISTER_ROWS 6
#endif
#include "kernel/instantiate.inc.h"
