/*
 * nearest.h: the known name that a mistyped one is most likely meant to be.
 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

enum { NEAREST_MAX = 2 }; /* edits that still count as a slip */

/* How many edits turn one word into the other: insert, drop, replace, swap neighbours. Only 63 characters count. */
size_t nearest_distance(const char *a, const char *b);

/*
 * If candidate is fewer than *distance edits away from name, and few for its length, it becomes *nearest and *distance.
 * Start with *distance = NEAREST_MAX + 1.
 */
void nearest_consider(const char *name, const char *candidate, const char **nearest, size_t *distance);

#endif
