/*
 * block_run.h: one block of a model for one item, while it is planned and run. Private to the job.
 */
#ifndef SERVICE_RUN_MODEL_BLOCK_RUN_H
#define SERVICE_RUN_MODEL_BLOCK_RUN_H

#include "codec/request/envelope.h"
#include "service/run/model/job.h"

/* A selection of the request, without what a shorter item does not have. */
struct model_choice {
    attn_selection selection;
    const size_t *places; /* in the output, of each selected element; NULL: 0, 1, 2 … */
    bool is_empty;        /* the item has none of the selected elements */
};

struct model_block_run {
    struct model_job *job;
    const struct model_block *block;
    struct model_part *part; /* where the block's steps are shown */
    size_t place;            /* of the layer in the part; SIZE_MAX: it is not shown */
    size_t item;
    struct model_choice queries, keys;
    bool is_longest;    /* shapes for the longest item: the request's selections must fit */
    bool selects_later; /* rollout and head scores need whole maps, which are selected after them */
    struct envelope envelope;
    attn_plan plan;  /* of the computation */
    attn_plan shown; /* of the steps that are shown, reduced */
};

#endif
