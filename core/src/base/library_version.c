/* library_version.c: the version of the library. */
#include "attn/version.h"

int attn_version(void)
{
    return ATTN_VERSION_NUMBER;
}
