/* array.h: the number of elements of an array. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/* The argument must be an array, never a pointer or a parameter. */
#define ARRAY_LENGTH(array) (sizeof(array) / sizeof(array)[0])

#endif
