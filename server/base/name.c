/* name.c: checks the characters of names. */
#include "base/name.h"

#include <string.h>

bool name_is_valid(const char *text, size_t length, size_t max)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    for (size_t i = 0; i < length; i++)
        if (memchr(allowed, text[i], sizeof allowed - 1) == NULL)
            return false;
    return length >= 1 && length <= max;
}
