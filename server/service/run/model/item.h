/*
 * item.h: what runs for one item of the batch: embeddings, blocks, what is read from maps, the head, and the copies into
 * the outputs. Private to the job.
 */
#ifndef SERVICE_RUN_MODEL_ITEM_H
#define SERVICE_RUN_MODEL_ITEM_H

#include "attn/model.h"
#include "attn/multihead.h"
#include "codec/bytes/pace.h"
#include "codec/model/forms.h"
#include "codec/request/envelope.h"
#include "service/run/model/job.h"

/* Each function here that returns bool and takes a job returns false behind a failure, which job->outcome remembers. */

static inline bool model_job_fail_cancelled(struct model_job *job)
{
    return outcome_fail(&job->outcome, ATTN_ERR_CANCELLED, NULL, "stopped before the end");
}

/* False, a failure: the request is cancelled. */
static inline bool model_job_goes_on(struct model_job *job)
{
    return !pace_is_cancelled(job->runtime) || model_job_fail_cancelled(job);
}

static inline bool model_job_wants(const struct model_job *job, model_result_kind kind)
{
    return job->request->results >> kind & 1;
}

static inline attn_dtype model_job_compute(const struct model_job *job)
{
    return job->request->common.request.options.compute;
}

/* ---- the parts of a job, and what all results of the head need (plan.c) ---- */

/* Chooses the layers and the selections of each part. */
bool model_parts_make(struct model_job *job);
/* Fails: what comes from the head is not there, by the name that the member at that pointer gives it. */
bool model_fail_headless(struct model_job *job, const char *pointer, const char *name);

/* ---- embeddings, and the final norm (embedding.c) ---- */

/*
 * *hidden becomes (count, width), in the arena, without the rows before first, which is 0 for all but tokens. Errors name
 * the input ("/inputs/ids").
 */
bool model_embed(struct model_job *job, size_t stack, size_t item, size_t first, attn_tensor *hidden);
/* *vectors become the rows of the words, patches or frames, (count, d), before positions, in the arena. */
bool model_embed_vectors(struct model_job *job, size_t stack, size_t item, attn_tensor *vectors);
/* model_embed of such vectors; and its gradient: *before by them, from behind, that by hidden. */
bool model_embed_from(struct model_job *job, size_t stack, size_t item, const attn_tensor *vectors,
                      attn_tensor *hidden);
bool model_embed_back(struct model_job *job, size_t stack, size_t item, const attn_tensor *vectors,
                      const attn_tensor *behind, attn_tensor *before);
/* The width of the stack's embeddings. */
size_t model_width(const struct model_stack *stack);
/* The bytes of model_embed for so many tokens. */
double model_embed_bytes(const struct model_job *job, const struct model_stack *stack, size_t count);
/* Its operations, as far as they are products. */
double model_embed_flops(const struct model_job *job, const struct model_stack *stack, size_t count);

/* *normed = norm(hidden) by the stack's final norm, in the arena; hidden itself without such a norm. */
bool model_norm(struct model_job *job, const struct model_stack *stack, const attn_tensor *hidden, attn_tensor *normed);

/* The norm with its weights in the compute type. */
bool model_convert_norm(struct model_job *job, const struct model_norm *norm, attn_token_norm *converted);
/* Products of float32 read matrices of 16 bits as they are. Gradients of layers do not. */
bool model_reads_as_it_is(const attn_tensor *tensor, attn_dtype compute);
/* The weight and the bias in the compute type, or as they are read: themselves, or converted into the arena. */
bool model_convert_affine(struct model_job *job, const attn_tensor *weight, const attn_tensor *bias,
                          attn_affine *affine);

/* Scratch of all threads for a product of so many features outside of the blocks. */
double model_product_bytes(const struct model_job *job, double features);

/* ---- a block (block.c) ---- */

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
    attn_edits edits; /* of the envelope's request */
    attn_plan plan;   /* of the computation */
    attn_plan shown;  /* of the steps that are shown, reduced */
};

/* Weights of a block that a run converts, if they are not prepared; kind: ENVELOPE_LAYER or ENVELOPE_LAYER_GRADIENTS. */
double model_converted_bytes(const struct model_job *job, const struct envelope_source *source, envelope_kind kind);

/*
 * Decodes the block and plans it for queries of q_len and keys of kv_len tokens. With shapes_only, the weights are not
 * read: the plan then has shapes, bytes and operations, and cannot run. What the block needs lives in the arena.
 */
bool model_block_plan(struct model_block_run *run, size_t q_len, size_t kv_len, bool shapes_only);
/*
 * Plans the first block of the part for its longest item, shapes only. Fails where the request selects heads, queries or
 * keys beyond it: plans of single items leave out what is beyond them.
 */
bool model_part_plan(struct model_job *job, struct model_part *part, struct model_block_run *run);
/*
 * hidden is (q_len, d); encoded is the encoder's output, NULL without one. The wanted steps are written to the outputs.
 * next receives the block's output, q_len * d numbers. Everything that the run takes from the arena is given back.
 */
bool model_block_run(struct model_job *job, const struct model_block *block, struct model_part *part, size_t item,
                     const attn_tensor *hidden, const attn_tensor *encoded, void *next);

/* ---- rollout and the roles of heads, from the whole maps of a layer (maps.c) ---- */

/* Reads the maps (1, heads, n, n) of a block, and writes rollout and head scores to the outputs. */
bool model_maps_read(struct model_block_run *run, const attn_tensor *maps);
/* Replaces the whole maps of the result by those that the request selects. */
bool model_maps_select(struct model_block_run *run, attn_result *result);

/* ---- the head and its predictions (head.c) ---- */

double model_head_bytes(const struct model_job *job, size_t count, double times); /* times: it scores or goes back */
double model_head_flops(const struct model_job *job, size_t count);
/* The head for attn_predict; *prepared, NULL before, becomes the weights to release when it is no longer used. */
bool model_head_take(struct model_job *job, attn_prediction_head *made, struct prepared_weights **prepared);
/*
 * Scores normed token vectors (count, d), and writes the words that are wanted, at [layer][item] or [item]; with
 * job->predictions as words, the logits and classes too.
 */
bool model_predict(struct model_job *job, const attn_tensor *normed, size_t layer, size_t item,
                   const struct model_words *words);

/* The vector that the head reads for a query, of normed token vectors (count, d): (1, d), or (1, 2 d) of MODEL_READS_BOTH. */
bool model_head_row(struct model_job *job, const attn_tensor *normed, size_t query, attn_tensor *row);
/* The metric of each of such vectors, at most HEAD_ROWS. */
bool model_measure(struct model_job *job, const attn_tensor *rows, double *metrics);

/* A block of tokens that the head has scored, and where they go. */
enum { HEAD_ROWS = 64 /* tokens that are scored at once */ };
struct head_block {
    struct model_job *job;
    const struct model_words *words;
    size_t layer, item, first; /* first: of the item's tokens */
    const attn_tensor *scores; /* (tokens, words) */
    size_t count, rows[HEAD_ROWS],
        places[HEAD_ROWS]; /* the selected tokens of the block, and their rows in an output */
};

static inline const char *head_row(const struct head_block *block, size_t row)
{
    const attn_tensor *scores = block->scores;
    return (const char *)scores->data + row * scores->shape[1] * attn_dtype_bytes(scores->dtype);
}

/* The place of selected row i in an output. */
char *head_place(const struct head_block *block, const struct model_output *output, size_t i);

/* ---- given words (questions/words.c) ---- */

/*
 * Finds the ids of options.words, and adds the outputs of "word_scores"; and those of "logit_lens", with as many layers.
 *   ATTN_ERR_FIELD   a text, and the model has no tokenizer; "next", and the inputs have no ids
 *   ATTN_ERR_VALUE   a text that is not one token; an id that has no score
 */
bool model_words_plan(struct model_job *job);
double model_words_bytes(const struct model_job *job);
double model_words_flops(const struct model_job *job);
/* The id of a word that the head scores; list is its place in the request, as "/options/words". */
bool model_word_find(struct model_job *job, const struct model_word *word, const char *list, size_t index, int64_t *id);
/* The ids of the words of a row of the block: one that is -1 is absent. next lends room for one. */
const int64_t *model_words_of(const struct head_block *block, size_t row, int64_t *next);
/* Writes numbers in the compute type. Those beyond the range of float become infinite. */
void model_put_numbers(const double *from, size_t count, attn_dtype dtype, void *to);
/* Writes what the block says of the given words. */
bool model_words_put(const struct head_block *block);

/* ---- what each part of a model adds to the scores of given words (questions/attribution.c) ---- */

/* Adds the outputs of "attribution". ATTN_ERR_FIELD: the head is not one of words for each token. */
bool model_attribution_plan(struct model_job *job);
double model_attribution_bytes(const struct model_job *job);
double model_attribution_flops(const struct model_job *job);
/* Whether the block is part of the sum; the steps that are then needed, of a decoded block. */
bool model_attribution_reads(const struct model_block_run *run);
attn_steps model_attribution_steps(const struct model_block_run *run);
/* Keep, in this order, what the sum needs: the embeddings, of each block its network and its steps, the last output. */
bool model_attribution_begin(struct model_job *job, size_t stack, size_t item, const attn_tensor *hidden);
void model_attribution_keep_network(const struct model_block_run *run, const attn_tensor *added);
bool model_attribution_keep(const struct model_block_run *run, const attn_result *result);
bool model_attribution_end(struct model_job *job, size_t stack, const attn_tensor *hidden);
/* Writes the parts of the tokens of the block; rows is what the head read, (tokens, d). */
bool model_attribution_put(const struct head_block *block, const attn_prediction_head *head, const attn_tensor *rows);

/* ---- interventions (questions/interventions.c, questions/edit.c) ---- */

/*
 * Settles options.interventions and options.ablate, and the order of the items. The parts of the job are known.
 *   ATTN_ERR_FIELD, ATTN_ERR_VALUE, ATTN_ERR_SHAPE  a layer, head, item, query or key that is not there, a vector of another
 *                                                   width, items that have numbers from each other
 */
bool model_edits_plan(struct model_job *job);
double model_edits_bytes(const struct model_job *job);
/* Takes memory for numbers of other items. */
bool model_edits_begin(struct model_job *job);
/* Appends ,"interventions":[…], expanded; nothing without any. */
void model_edits_write(const struct model_job *job, struct chunks *out);
void model_edit_write(const struct model_job *job, const struct model_edit *edit, struct chunks *out);
/* The queries of an item that an edit changes, or those of its source; of a row, the numbers. In the arena. */
bool model_edit_rows(struct model_job *job, const struct model_edit *edit, size_t item, bool of_source,
                     attn_selection *rows);
bool model_edit_columns(struct model_job *job, const struct model_edit *edit, size_t width, attn_selection *columns);
/* Edits the residual before a layer: (len, d). */
bool model_edit_hidden(struct model_job *job, size_t stack, size_t layer, size_t item, const attn_tensor *hidden);
/* Sets the edits and the mask of a block's request. */
bool model_edit_block(struct model_block_run *run, size_t q_len, size_t kv_len);

/* ---- what is measured (questions/metric.c) ---- */

/*
 * Finds the ids of options.metric, and checks that each item has its query. A word of a head of classes is a label.
 *   ATTN_ERR_FIELD, ATTN_ERR_VALUE  a word, a label or a query that is not there; a query, and the head reads one token
 */
bool model_metric_plan(struct model_job *job);
/* The query of an item that is measured: the token that the head reads, if it reads one. */
size_t model_metric_query(const struct model_job *job, size_t item);
/*
 * The metric of one row of scores, (1, words): z_a - z_b of two words; log p_a of one, by the softmax over all words; of a
 * head where each class is right or not by its own sigmoid, and of one of numbers z_a.
 */
double model_metric_value(const struct model_job *job, const attn_tensor *scores);
/* Its gradient by the scores, likewise (1, words). */
void model_metric_slope(const struct model_job *job, const attn_tensor *scores, const attn_tensor *slope);
/* Appends ,"metric":{…}, expanded. */
void model_metric_write(const struct model_job *job, struct chunks *out);

/* ---- an intervention at each place in turn (questions/sweep.c) ---- */

/*
 * Adds the outputs of "sweep"; its intervention is in job->edits. ATTN_ERR_FIELD, ATTN_ERR_VALUE: the head is not one of
 * words for each token, a word or a query that is not there.
 */
bool model_sweep_plan(struct model_job *job);
/* How often the blocks of a layer of that stack run again, for each item. */
double model_sweep_times(const struct model_job *job, size_t stack, size_t layer);
double model_sweep_bytes(const struct model_job *job);
bool model_sweep_begin(struct model_job *job);
/* Keeps the residual before a layer, or behind the last, before it is edited; of the swept stack alone. */
void model_sweep_keep(const struct model_job *job, size_t stack, size_t layer, const attn_tensor *hidden);
/* *hidden becomes a copy of it, (count, d), in the arena. */
bool model_sweep_restore(struct model_job *job, size_t layer, size_t item, attn_tensor *hidden);
/* What a sweep calls: model_measure, and what runs the item again. */
struct model_sweep_calls {
    /* Runs the item from the kept residual before a layer on; SIZE_MAX: it has run. row receives that query of the output. */
    bool (*run_from)(void *context, size_t layer, size_t query, void *row);
    void *context;
    bool (*measure)(struct model_job *job, const attn_tensor *rows, double *metrics);
};
bool model_sweep_run(struct model_job *job, size_t item, const struct model_sweep_calls *calls);
/*
 * The picture of a planned sweep, as model_picture_make does it (codec/model/forms.h); labels are those of each stack, of
 * the item that the options name. ATTN_ERR_VALUE: it is not swept.
 */
bool model_sweep_picture(struct model_job *job, const struct picture_options *options, const struct labels labels[2],
                         struct model_picture *made);
/* Adds the numbers of the run. */
void model_sweep_picture_fill(const struct model_job *job, struct model_picture *made);
/* Appends ,"sweep":{…}, expanded; nothing without a sweep. */
void model_sweep_write(const struct model_job *job, struct chunks *out);

/* ---- classes, and one vector for each item (classes.c) ---- */

/* Adds the outputs of classes and the embedding, as far as they are wanted. */
bool model_classes_plan(struct model_job *job);
double model_classes_bytes(const struct model_job *job);
/* Takes what the run needs beside the outputs. */
bool model_classes_begin(struct model_job *job);
/* Pools the output of the item, (count, d). */
void model_embedding_put(const struct model_job *job, size_t item, const attn_tensor *output);

/* ---- when words are spoken (times.c) ---- */

bool model_times_plan(struct model_job *job);
double model_times_bytes(const struct model_job *job);
/* Whether the maps of the block tell times. */
bool model_times_reads(const struct model_block_run *run);
bool model_times_begin(struct model_job *job, size_t item);
bool model_times_read(struct model_block_run *run, const attn_tensor *maps);
bool model_times_put(struct model_job *job, size_t item);

/* ---- an output of the answer (output.c) ---- */

/* Adds an output of that shape; format makes its name. */
__attribute__((format(printf, 6, 7))) bool model_add_output(struct model_job *job, struct model_output **output,
                                                            attn_dtype dtype, int rank, const size_t *shape,
                                                            const char *format, ...);
/* Adds the bytes of all outputs to those of the run (plan.c). */
void model_outputs_weigh(struct model_job *job);
/* Takes memory for all outputs, and fills them with what shorter items lack: 0, or -1 where numbers are ids (stacks.c). */
bool model_outputs_take(struct model_job *job);
/* The place of a layer among those that the part shows; SIZE_MAX: it is not shown. */
size_t model_part_place(const struct model_part *part, size_t layer);
/* Whether the head reads one token of each item. */
bool model_head_reads_one(const struct model_job *job);
/* That token. SIZE_MAX: the item has none, because it lacks the end token or its decoder is shorter. */
size_t model_head_token(const struct model_job *job, size_t item);
/* The rows that logits and predictions of an item have: the selected queries, or one. */
size_t model_head_rows(const struct model_job *job, size_t count);
/* The place of [layer][item][row] in an output of rank 4, [item][row] of rank 3, [item] of rank 2. */
char *model_head_place(const struct model_output *output, size_t layer, size_t item, size_t row);

struct model_copy {
    size_t layer, item;
    const size_t *query_places, *key_places; /* of the last two axes; NULL: 0, 1, 2 … */
    struct pace *pace;                       /* asked before each row */
};

/*
 * from is (1, …), of any strides, and goes to the corner of to[layer][item], of the same type; to is contiguous. False:
 * the work was stopped before the end.
 */
bool model_copy_step(const struct model_copy *copy, const attn_tensor *from, const attn_tensor *to);

/* The address of to[first][second]. */
void *model_copy_place(const attn_tensor *to, size_t first, size_t second);

#endif
