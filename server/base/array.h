/*
 * array.h: how many elements an array has.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/* Of an array, never of a pointer or a parameter. */
#define ARRAY_LENGTH(array) (sizeof(array) / sizeof(array)[0])

#endif
