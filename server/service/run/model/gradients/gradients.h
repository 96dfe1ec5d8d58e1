/*
 * gradients.h: the gradients of a metric by the maps and the vectors of a model, while they are planned and run.
 *
 * An item runs forward block by block, and the input of each block is kept. From the metric the gradient goes back through
 * the head, the final norm, each block (attn_gradient_run, which runs the block's forward pass again) and the embedding. The
 * gradient of a decoder's blocks by the encoder's output is summed, and goes back through the encoder.
 */
#ifndef SERVICE_RUN_MODEL_GRADIENTS_H
#define SERVICE_RUN_MODEL_GRADIENTS_H

#include "attn/gradient.h"
#include "service/run/model/item.h"

/* Of a part of the job; NULL: not wanted. */
struct gradient_outputs {
    struct model_output *attention, *attention_gradient; /* of its maps */
    struct model_output *embedding, *integrated;         /* of its vectors; cross-attention has none */
};

struct model_gradients {
    struct model_job *job;
    struct gradient_outputs of[MODEL_PARTS_MAX];
    struct model_output *metric, *error; /* error: of integrated, NULL: not wanted */
};

/*
 * Checks the request against the model, adds the outputs to the answer, and computes bytes and operations; no weight is
 * read. The caller sets job, which is not planned. ATTN_ERR_FIELD and ATTN_ERR_VALUE: the model has no such head, word,
 * query or baseline, or a part without a gradient.
 */
bool model_gradients_plan(struct model_gradients *own);
/* Runs it item by item. Failures are those of attn_gradient_run. */
bool model_gradients_run(struct model_gradients *own);

/* ---- one item (pass.c) ---- */

/* An item, forward from the vectors of its words and back to them. */
struct gradient_pass {
    struct model_gradients *own;
    struct model_job *job;
    size_t item;
    bool shows; /* the maps of this pass */
    /* Of each stack, all (count, …) and in the arena: */
    attn_tensor vectors[2], gradient[2]; /* of the words, and the gradient by them */
    char **states[2];                    /* the input of each block, and the output of the last one */
    attn_tensor grad_hidden[2];          /* by the residual, where the pass back is */
    attn_tensor encoded, grad_encoded;   /* the output of the encoder; of two stacks */
    double metric;
};

/* Takes the memory of a pass, and makes the vectors of the item. */
bool gradient_pass_begin(struct gradient_pass *pass);
/* Runs the item forward, and with goes_back back: pass->metric, pass->gradient. */
bool gradient_pass_run(struct gradient_pass *pass, bool goes_back);
/* The sequences of a pass: one stack, or two. */
static inline size_t gradient_stacks(const struct model_job *job)
{
    return job->last_stack + 1;
}

/* ---- one block (block.c) ---- */

struct gradient_block {
    struct model_gradients *own;
    const struct model_block *block;
    struct model_part *part;
    size_t q_len, kv_len;
    bool shows;
    struct envelope envelope;
    attn_tensor query, key, grad_output; /* without data */
    attn_gradient_request wanted;
    attn_gradient_plan plan;
};

/*
 * Decodes the block and plans its gradients; the caller sets all members before envelope. *block refers to itself. With shapes_only
 * no weight is read, and the plan cannot run. ATTN_ERR_FIELD: the block has no gradient, and the message says why.
 */
bool gradient_block_plan(struct gradient_block *block, bool shapes_only);
/* Arena bytes of a run, without the weights. */
double gradient_block_bytes(const struct gradient_block *block);
/*
 * Takes pass->grad_hidden of its stack from behind the block to before it, adds to pass->grad_encoded, and shows the maps.
 * hidden is the input of the block. What the run takes from the arena is given back.
 */
bool gradient_block_run(struct gradient_pass *pass, const struct model_block *block, struct model_part *part,
                        const void *hidden);

/* ---- integrated gradients (integrate.c) ---- */

/* The bytes of a run beside those of its passes; how many passes there are. */
double gradients_integrated_bytes(const struct model_gradients *own);
double gradients_integrated_passes(const struct model_gradients *own);
/* Checks the baseline. */
bool gradients_integrated_check(struct model_gradients *own);
/* Integrates from the baseline to the vectors of the pass, whose metric is known. The pass changes. */
bool gradients_integrate(struct gradient_pass *pass);

#endif
