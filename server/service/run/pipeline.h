/*
 * pipeline.h: the steps of every computation, from the body of a request to its answer. A layer, gradients, a whole model
 * and the models of the Open Inference Protocol are kinds: each has a function for each step.
 */
#ifndef SERVICE_RUN_PIPELINE_H
#define SERVICE_RUN_PIPELINE_H

#include "service/limits.h"

/* work is the kind's own state of one request. Each step is called after all before it have succeeded. */
struct pipeline {
    attn_status (*decode)(struct call *call, void *work); /* the body becomes a request */
    attn_status (*plan)(struct call *call,
                        void *work); /* shapes, bytes and operations are known; nothing is computed */
    attn_status (*weigh)(struct call *call, void *work, struct weight *weight); /* the cost, for the limits */
    attn_status (*run)(struct call *call, void *work);
    attn_status (*render)(struct call *call, void *work); /* the result becomes the answer */
};

/* Takes the steps in their order, and the time of each. A failed step, or a limit of the call, ends the request. */
ATTN_MUST_CHECK attn_status pipeline_run(const struct pipeline *kind, struct call *call, void *work);

#endif
