/* f16c.h: whether this CPU converts float16 by instructions of x86-64, F16C. */
#ifndef ATTN_BASE_F16C_H
#define ATTN_BASE_F16C_H

#include <stdbool.h>

bool attn_has_f16c(void);

#endif
