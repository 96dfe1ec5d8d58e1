/*
 * job.h: a request to a whole model while it is planned and run: embeddings, blocks, final norm, head, and what is
 * read from the maps.
 *
 * Each item of the batch runs alone, with its own length, so that no number depends on its neighbours. The outputs have
 * the longest length. The rest of a shorter item is 0, or -1 where numbers are ids or indices.
 */
#ifndef SERVICE_RUN_MODEL_JOB_H
#define SERVICE_RUN_MODEL_JOB_H

#include "attn/analysis.h"
#include "base/progress.h"
#include "codec/bytes/outcome.h"
#include "codec/model/answer.h"
#include "codec/model/request.h"
#include "service/limits.h"
#include "service/run/batch/batch.h"
#include "service/run/work.h"

/* The attention of a stack to itself, or to the encoder. What options.return names is shown once for each part. */
struct model_part {
    const char *prefix; /* of the names of its outputs: "", "encoder_", "decoder_", "cross_" */
    size_t stack;
    bool is_cross;
    const struct model_selections *shown; /* in the answer */
    const size_t *layers;                 /* those that are shown, in the order of the request */
    size_t layer_count;
    size_t longest_queries, longest_keys;                  /* over the batch */
    attn_steps wanted;                                     /* the steps that are shown */
    struct model_output *steps[ATTN_STEP_COUNT], *indices; /* NULL: not wanted; indices: of top_k */
    struct model_output *hidden, *rollout, *head_scores[ATTN_ROLE_COUNT];
    struct model_output *expert_indices, *expert_weights;
    double *flow[2], *flow_work; /* of the item that runs: rollout up to a layer and to the one before */
    bool has_flow;
};

/* The words of each query: of the model's output, and of the output of each layer. NULL: not wanted. */
struct model_words {
    struct model_output *ids, *probabilities;                /* the most probable ones */
    struct model_output *logits, *log_probabilities, *ranks; /* of given words */
};

/* The words that options.words gives. */
struct model_given_words {
    const int64_t *ids; /* count of them; NULL: the next one of each query */
    size_t count;
    struct model_output *perplexity; /* NULL: not wanted */
    double log_sum;                  /* of the item that runs: of the probabilities of all next words so far */
    size_t summed;
};

/* What one block of the item that runs gave to its stream, of the selected tokens, and the factors of its norms. */
struct model_tape {
    char *heads,
        *network; /* (rows, heads * d_v) before the output projection, (rows, d); network NULL: there is none */
    double *branch, *attention, *output; /* of the norm of what the attention adds, and of those behind the residuals */
};

/* What each part adds to the scores of the given words. */
struct model_attribution {
    struct model_output *heads, *cross_heads, *feed_forward, *embedding,
        *bias;           /* NULL: not wanted, or there are none */
    size_t *slots, rows; /* of each token of the item that runs, its row in the tapes, or SIZE_MAX; and their number */
    char *embedded;      /* (rows, d) */
    double *factors;     /* of the final norm */
    struct model_tape *tapes; /* of the layer's attention to its own tokens, and to the encoder, layer by layer */
};

/* An intervention as this model and this batch have it. */
struct model_edit {
    const struct model_intervention *given;
    size_t part;        /* of job->parts; of hidden and the feed-forward network, that of the stack's own attention */
    const bool *layers; /* a flag for each; of hidden one more */
    const bool *heads;  /* NULL: all */
    const bool *items;  /* of the batch */
    size_t from;        /* the item whose numbers replace others; SIZE_MAX: none */
    char *kept;         /* these numbers, (layers, heads, kept_rows, kept_columns) */
    size_t kept_rows, kept_columns;
};

/* What is measured. */
struct model_measured {
    int64_t ids[2]; /* words or classes */
    size_t count;   /* 0: nothing is */
};

/* An intervention at each place in turn. */
struct model_sweep {
    struct model_output *values, *unchanged; /* NULL: not wanted */
    struct model_edit *edit;                 /* of job->edits; NULL: there is none. Its source alone is read at first */
    const bool *items;                       /* that are swept */
    size_t levels, places;                   /* swept layers; the most queries or heads of an item */
    char **states;   /* the residual before each layer, and behind the last, of the item that runs */
    bool is_running; /* the intervention is made */
};

/* What a head of classes gives. */
struct model_classes {
    struct model_output *logits, *probabilities; /* NULL: not wanted, or the head is of spans or of a regression */
    struct model_output *starts, *ends;          /* of a head of spans */
    double *spans;                               /* (batch, longest, 2): all starts and ends */
    size_t longest;
};

/* When tokens are spoken; of the item that runs. */
struct model_times {
    struct model_output *starts, *ends; /* NULL: not wanted */
    size_t first, rows, frames;         /* the first token that has a time, and the map behind the one before it */
    double *sum, *work;                 /* of attn_align_add */
};

/* An item whose last sequence gets new tokens. */
struct model_continuation {
    int64_t *ids;          /* the given ones, and the new ones behind them */
    size_t given, count;   /* count: of all; before the run, as many as there may be */
    const char *ended_by;  /* "end", "stop" or "length" */
    struct text_span text; /* of the new ones; at NULL: there is no tokenizer */
};

struct model_generation {
    struct model_batch *batch;
    size_t stack;                     /* the last one */
    struct model_continuation *items; /* of the batch */
};

struct model_job {
    const struct model_version *version;
    const struct model_request *request;
    struct prepared_store *prepared;
    const attn_runtime *runtime;
    struct progress *progress; /* NULL: nobody follows it */
    struct outcome outcome;
    const struct model_item *items;      /* of the batch */
    struct model_generation *generation; /* what comes before the run; NULL: nothing */
    bool is_binary;                      /* the answer has tensors as bytes */
    struct model_answer *answer;         /* model_job_plan adds outputs with shapes; model_job_run fills them in */
    /* by model_job_plan: */
    struct model_part parts[MODEL_PARTS_MAX];
    size_t part_count;
    size_t last_stack;                               /* the last stack that runs */
    struct model_output *output, *logits, *features; /* features: of audio */
    struct model_words predictions, lens;
    struct model_given_words given;
    struct model_attribution attribution;
    struct model_edit *edits; /* in the order in which they are made */
    size_t edit_count;
    struct model_measured measured;
    struct model_sweep sweep;
    const size_t *order; /* in which the items run */
    struct model_classes classes;
    struct model_times times;
    struct model_output *embedding;
    double time_flops, run_bytes; /* of the run; the bytes include the outputs */
};

/*
 * Chooses the layers, checks the request against the model, lays out the outputs, and computes bytes and operations. No
 * weight is read. Errors name the member of the request.
 */
ATTN_MUST_CHECK attn_status model_job_plan(struct model_job *job);
/* Runs the model, item by item. Failures are those of attn_plan_run. */
ATTN_MUST_CHECK attn_status model_job_run(struct model_job *job);

/*
 * ---- new tokens (generate.c) ----
 *
 * Each is the most probable token behind those before it, of equal ones the one with the lowest id. model_job_generate
 * appends them one by one: a step runs one row through the blocks, with the keys and values of all rows before it. Its sums
 * have another order than those of a run of the whole sequence, so two tokens whose scores agree in all but the last bits
 * may change places. Results are those of model_job_run behind it, with the ids that were found.
 */

/*
 * Call this before the batch is made. A decoder behind an encoder gets decoder_start_token_id, unless the request has a
 * target. ATTN_ERR_FIELD: the model or the request cannot have new tokens, and the message says why.
 */
ATTN_MUST_CHECK bool model_generation_check(const struct model_version *version, struct model_request *request,
                                            struct outcome *outcome);
/*
 * Makes room behind each item for all new tokens. Until the run, the batch has the lengths that it may get.
 * ATTN_ERR_VALUE: the model does not take so many tokens.
 */
ATTN_MUST_CHECK bool model_generation_begin(struct model_generation *generation, struct model_batch *batch,
                                            const struct model_request *request, struct outcome *outcome);
/* Adds bytes and operations to the job. */
bool model_generation_weigh(struct model_job *job);
/*
 * Of a planned job; afterwards the batch has the new tokens, and the job must be planned again without generation before it
 * runs. Failures are those of model_job_run.
 */
ATTN_MUST_CHECK attn_status model_job_generate(struct model_job *job);
/* Appends {"ids", "text", "ended_by"}, each a list of one element for each item. */
void model_generation_write(const struct model_generation *generation, struct chunks *out);
/* The most bytes that the new tokens add to an answer. */
size_t model_generation_bound(const struct model_version *version, const struct model_request *request);

/* ---- what services of models share (attend.c) ---- */

/* The caller sets call, version and request. */
struct model_work {
    struct call *call;
    struct model_version *version;
    struct model_request request;
    struct model_batch batch;
    struct model_generation generation;
    attn_arena_mark planned; /* from here on, the arena has what the first plan of new tokens takes */
    bool is_binary;
    struct model_answer answer;
    struct model_job job;
};

/*
 * model_work_plan makes the batch and adds the outputs to work->answer; is_binary: the answer has tensors as bytes. Then
 * model_work_weigh gives the cost, and model_job_run runs. batch.h and job.h list the failures.
 */
bool model_work_plan(struct model_work *work, bool is_binary, struct outcome *outcome);
/* Its beginning: makes the batch and the job, which is not planned. */
bool model_work_open(struct model_work *work, bool is_binary, struct outcome *outcome);
/* Adds layers, lengths, effective, diagnostics and tokens to a planned answer. */
bool model_work_add_facts(struct model_work *work, struct outcome *outcome);
/* Decodes a body of JSON or safetensors. */
bool model_work_decode(struct model_work *work, model_request_kind kind, struct outcome *outcome);
/* Generates, and plans again with the ids that were found: facts and forms of the answer must be made again, too. */
bool model_work_generate(struct model_work *work, struct outcome *outcome);
pipeline_step model_work_run; /* of a kind whose own state begins with struct model_work */
/* Adds labels and answers to the outputs of classes; work must outlive the answer. */
void model_classes_name(struct model_work *work);
/* Adds the words to the times of tokens, likewise. */
void model_times_name(struct model_work *work);
struct weight model_work_weigh(const struct model_work *work, size_t answer_bytes);
/* Call this with the outcome: confirms it (registry/version.h), counts the request, and explains a failure. */
ATTN_MUST_CHECK attn_status model_work_end(struct model_work *work, attn_status status);

#endif
