/* nearest.c: edit distance with swaps (Damerau, restricted), by three rows of the table. */
#include "base/nearest.h"

#include <string.h>

enum {
    WORD_MAX = 63,
    NAME_MAX_LENGTH = 40, /* nobody types longer names by hand */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t nearest_distance(const char *a, const char *b)
{
    const size_t a_length = strnlen(a, WORD_MAX), b_length = strnlen(b, WORD_MAX);
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_length; j++)
        above[j] = j;
    memcpy(before, above, (b_length + 1) * sizeof *before);
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[b_length];
}

void nearest_consider(const char *name, const char *candidate, const char **nearest, size_t *distance)
{
    const size_t candidate_length = strlen(candidate);
    if (strlen(name) > NAME_MAX_LENGTH || candidate_length > NAME_MAX_LENGTH)
        return;
    const size_t edits = nearest_distance(name, candidate);
    if (edits < *distance && 2 * edits < candidate_length) {
        *distance = edits;
        *nearest = candidate;
    }
}
