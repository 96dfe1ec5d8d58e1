/*
 * shared.h: test data that is not part of the repository, in the folder that ATTN_SHARED names.
 */
#ifndef TESTS_SHARED_H
#define TESTS_SHARED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SHARED_PATH_MAX = 4096 };

/* Whether the file or folder is there. If not, a line says so, and tests/support/run_units.py counts the check as skipped. */
static inline bool shared_has(char path[SHARED_PATH_MAX], const char *name)
{
    const char *shared = getenv("ATTN_SHARED");
    const int length = snprintf(path, SHARED_PATH_MAX, "%s/%s", shared == NULL ? "../shared" : shared, name);
    if (length < SHARED_PATH_MAX && access(path, R_OK) == 0)
        return true;
    printf("skipped: no %s (ATTN_SHARED names the folder that has it)\n", name);
    return false;
}

#endif
