/*
 * masks.h: the table of masks. It says for each mask where it may stand, beside "masks" of a request.
 *
 * A new mask is one row of MASK_LIST in masks.c, and its equation in attn/mask.h. The places in the row decide whether
 * layers may keep the mask, and whether the Open Inference Protocol takes it.
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

/* Returns the rows in the order of the table, and NULL after the last one. */
const struct mask_row *mask_row_at(size_t index);
/* Whether a mask of that name exists and may stand in that place. */
bool mask_has_place(const char *name, enum mask_place place);

enum { MASK_NAMES_MAX = 256 };
/*
 * Writes the names of all masks that may stand there, as they are spelt there: "causal, window", for a message. Returns
 * names.
 */
const char *mask_names(enum mask_place place, char names[MASK_NAMES_MAX]);

#endif
