/*
 * work.h: the steps of every computation, from the body of a request to its answer, and what kinds with one layer share.
 *
 * A layer, gradients, a whole model and the models of the Open Inference Protocol are kinds: each has a function for each
 * step.
 */
#ifndef SERVICE_RUN_WORK_H
#define SERVICE_RUN_WORK_H

#include "attn/multihead.h"
#include "codec/bytes/outcome.h"
#include "codec/picture/image.h"
#include "codec/request/envelope.h"
#include "codec/request/kept_layer.h"
#include "service/limits.h"

/* ---- every kind (pipeline.c) ---- */

/*
 * work is the kind's own state of one request. Each step is called after all before it have succeeded, with the outcome
 * of the request, and returns whether it has succeeded, too.
 */
typedef bool pipeline_step(struct call *call, void *work, struct outcome *outcome);
struct pipeline {
    pipeline_step *decode; /* the body becomes a request */
    pipeline_step *plan;   /* shapes, bytes and operations are known; nothing is computed */
    bool (*weigh)(struct call *call, void *work, struct outcome *outcome, struct weight *weight); /* for the limits */
    pipeline_step *run;
    pipeline_step *render; /* the result becomes the answer */
};

/* Takes the steps in their order, and the time of each. A failed step, or a limit of the call, ends the request. */
ATTN_MUST_CHECK attn_status pipeline_run(const struct pipeline *kind, struct call *call, void *work);

/* ---- kinds with one layer, kept or of the request (work.c) ---- */

/* envelope.request.options.want has the steps to compute. A cache needs steps that the answer may not show. */
struct work {
    struct envelope envelope;
    attn_steps shown_steps; /* the computed steps that the answer shows */
    attn_plan plan;         /* of the computation */
    attn_plan shown;        /* of the answer (reduce.h) */
    attn_result result;     /* in the form of the answer */
};

/* Decodes the body, over the layer if it is not NULL. Failures are those of envelope.h. */
bool work_decode(const struct call *call, envelope_kind kind, const struct kept_layer *layer, struct outcome *outcome,
                 struct envelope *envelope);
/*
 * Call these in this order, after the envelope is decoded and shown_steps is set. They make both plans; give the cost
 * once the largest size of the answer is known; and run. The kind's own state begins with struct work. plan.h and
 * multihead.h list the failures.
 */
pipeline_step work_plan;
struct weight work_weigh(const struct call *call, const struct work *work, size_t answer_bytes);
pipeline_step work_run;

/*
 * Plans by make, whose plan has the dimensions dims. Selections that count from the end are settled by these, and make
 * plans again. Then there must be as many labels as positions.
 */
bool work_plan_by(struct call *call, struct envelope *envelope, const attn_dims *dims, pipeline_step *make, void *work,
                  struct outcome *outcome);

/*
 * Computes with the layer (NULL: the request has its own weights), sets call->batch, and confirms the outcome
 * (registry/version.h).
 */
typedef attn_status work_function(struct call *call, envelope_kind kind, const struct kept_layer *layer);

/*
 * Calls compute with the prepared weights of call->version, a layer (NULL: the built-in model), and counts the request.
 */
ATTN_MUST_CHECK attn_status work_compute(struct call *call, envelope_kind kind, work_function *compute);
/* The same with the layer of the path, if the request's conditions hold for it. */
ATTN_MUST_CHECK attn_status work_compute_kept(struct call *call, envelope_kind kind, work_function *compute);

/* ---- pictures: pipeline.c ---- */

/*
 * What the pictures of layers and of models share: the parameters of the query, which only pictures have; the most bytes
 * that the picture and its writing take; and the writing.
 */
bool rendering_read_options(struct call *call, picture_kind kind, struct outcome *outcome,
                            struct picture_options *options);
bool rendering_weigh_picture(struct call *call, const struct picture *picture, struct outcome *outcome, size_t *bytes);
bool rendering_write_picture(struct call *call, const struct picture *picture, struct outcome *outcome);

#endif
