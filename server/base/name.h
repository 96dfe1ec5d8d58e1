/* name.h: checks the names that users give to layers, caches, API keys and requests. */
#ifndef BASE_NAME_H
#define BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Whether text[0 .. length) is 1 to max ASCII letters, digits, dots, underscores and hyphens. */
bool name_is_valid(const char *text, size_t length, size_t max);

#endif
