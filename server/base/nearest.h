/* nearest.h: finds the known name that a mistyped name most probably means. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

enum { NEAREST_MAX = 2 }; /* more edits are not a typing error */

/*
 * The number of edits that turn one word into the other: insert, drop, replace, swap neighbours. Only the first 63
 * characters count.
 */
size_t nearest_distance(const char *a, const char *b);

/*
 * Compares candidate with name. If it is fewer than *distance edits away, and few for its length, it becomes *nearest
 * and *distance. Start with *distance = NEAREST_MAX + 1.
 */
void nearest_consider(const char *name, const char *candidate, const char **nearest, size_t *distance);

#endif
