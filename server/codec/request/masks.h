/*
 * masks.h: the table of masks: which there are, and where else than in "masks" of a request each may stand.
 *
 * A new mask is one row of MASK_LIST in masks.c, beside its equation in attn/mask.h. What layers keep, and what the
 * Open Inference Protocol takes, follows from the row's places.
 */
#ifndef CODEC_REQUEST_MASKS_H
#define CODEC_REQUEST_MASKS_H

#include <stdbool.h>
#include <stddef.h>

enum mask_place {
    MASK_IN_LAYERS = 1,    /* it fits sequences of any length, so a kept layer may have it */
    MASK_AS_PARAMETER = 2, /* a parameter of the Open Inference Protocol, under its own name */
    MASK_AS_TENSOR = 4,    /* an input of that protocol, under its name in capitals */
};

struct mask_row {
    const char *name;
    const char *path; /* of the member: "masks.causal" */
    unsigned places;
};

/* The rows in the order of the table; NULL behind the last. */
const struct mask_row *mask_row_at(size_t index);
/* Whether there is a mask of that name and it may stand there. */
bool mask_has_place(const char *name, enum mask_place place);

enum { MASK_NAMES_MAX = 256 };
/*
 * Writes the names of all masks that may stand there, as they are spelt there: "causal, window", for a message. Returns
 * names.
 */
const char *mask_names(enum mask_place place, char names[MASK_NAMES_MAX]);

#endif
