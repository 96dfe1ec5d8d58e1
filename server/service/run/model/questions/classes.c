/* classes.c: the outputs of a head of classes, the answer to a question, and one vector for each item. */
#include <math.h>
#include <string.h>

#include "attn/model.h"
#include "codec/bytes/utf8.h"
#include "codec/number/number.h"
#include "service/run/model/item.h"

/* ---- outputs ---- */

static bool fail_classless(struct model_job *job)
{
    const struct checkpoint_model *model = &job->version->model;
    if (model->has_head && model->head.is_of_classes)
        return outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/return",
                            "\"classes\" comes from the decoder: give inputs.text or inputs.ids, or a target");
    return outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/return",
                        "\"classes\" needs a head of classes, and %.80s %s%.120s",
                        model->architecture[0] != '\0' ? model->architecture : "this model",
                        model->has_unknown_classes ? "has one that attnd cannot run"
                                                   : "has none: \"architectures\" of its configuration names the head",
                        model->has_unknown_classes ? model->head.lacks : "");
}

/* A model of an encoder and a decoder reads its classes at the place of the last end token of its input. */
static void check_ends(struct model_job *job)
{
    for (size_t i = 0; i < job->request->inputs.batch; i++)
        if (model_head_token(job, i) == SIZE_MAX)
            outcome_fail(&job->outcome, ATTN_ERR_VALUE, "/inputs",
                         "item %zu of the inputs has no end token (id %lld) at a place that its decoder has, and the "
                         "head of classes reads that place",
                         i, (long long)job->version->model.end_id);
}

static void add_classes(struct model_job *job)
{
    const struct model_head *head = &job->version->model.head;
    const attn_dtype compute = model_job_compute(job);
    const size_t longest = job->parts[job->last_stack].longest_queries;
    const int rank = model_head_reads_one(job) ? 2 : 3;
    const size_t rows = model_head_rows(job, longest);
    const size_t shape[] = {job->request->inputs.batch, rank == 2 && !head->is_of_spans ? head->words : rows,
                            head->words};
    struct model_classes *classes = &job->classes;
    if (head->is_of_spans) {
        classes->longest = longest;
        model_add_output(job, &classes->starts, compute, 2, shape, "classes.start");
        model_add_output(job, &classes->ends, compute, 2, shape, "classes.end");
        return;
    }
    model_add_output(job, &classes->logits, compute, rank, shape, "classes.logits");
    if (head->problem != MODEL_PROBLEM_REGRESSION)
        model_add_output(job, &classes->probabilities, compute, rank, shape, "classes.probabilities");
}

static void add_embedding(struct model_job *job)
{
    const struct checkpoint_model *model = &job->version->model;
    const size_t shape[] = {job->request->inputs.batch, model_width(&model->stacks[job->last_stack])};
    const struct model_pooling *pooling = &job->version->pooling;
    if (!pooling->is_there)
        outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/return",
                     "\"embedding\" needs the pooling of sentence-transformers: %s",
                     pooling->reason[0] != '\0' ? pooling->reason
                                                : "the folder of this model has no 1_Pooling/config.json");
    model_add_output(job, &job->embedding, model_job_compute(job), 2, shape, "embedding");
}

bool model_classes_plan(struct model_job *job)
{
    const struct checkpoint_model *model = &job->version->model;
    const bool reads_end = model->has_head && model->head.reads == MODEL_READS_END;
    const bool is_run = model->has_head && job->last_stack + 1 == model->stack_count;
    if (model_job_wants(job, MODEL_CLASSES) && (!is_run || !model->head.is_of_classes))
        return fail_classless(job);
    if (reads_end && (model_job_wants(job, MODEL_CLASSES) || job->logits != NULL))
        check_ends(job);
    if (model_job_wants(job, MODEL_CLASSES))
        add_classes(job);
    if (model_job_wants(job, MODEL_EMBEDDING))
        add_embedding(job);
    return !outcome_has_failed(&job->outcome);
}

/* All starts and ends, and a copy of those of each item with a flag for each token while answers are written. */
double model_classes_bytes(const struct model_job *job)
{
    const double tokens = (double)job->classes.longest * (double)job->request->inputs.batch;
    return job->classes.starts != NULL
               ? tokens * (4 * sizeof(double) + sizeof(bool)) + 3 * ATTN_ALIGNMENT * (double)job->request->inputs.batch
               : 0;
}

bool model_classes_begin(struct model_job *job)
{
    struct model_classes *classes = &job->classes;
    if (classes->starts == NULL)
        return true;
    classes->spans =
        outcome_take_zeroed(&job->outcome, 2 * classes->longest * job->request->inputs.batch, sizeof *classes->spans);
    return classes->spans != NULL;
}

void model_embedding_put(const struct model_job *job, size_t item, const attn_tensor *output)
{
    const struct model_pooling *pooling = &job->version->pooling;
    void *to = model_copy_place(&job->embedding->tensor, item, 0);
    attn_pool_tokens(pooling->pool, output, to);
    if (pooling->normalizes)
        attn_normalize_vector(output->dtype, output->shape[1], to);
}

/* ---- labels ---- */

static void write_labels(void *context, struct chunks *out)
{
    const struct model_work *work = context;
    model_write_labels(&work->version->model.head, out);
}

/* ---- answers ---- */

/* Tokens of the pair are the text that is asked about. Without a pair, all tokens of the text are. */
static bool *choose_tokens(const struct model_work *work, size_t item, size_t count)
{
    const struct tokenizer_token *tokens = work->batch.tokens[0][item];
    const unsigned segment = work->request.inputs.pair != NULL ? 1 : 0;
    bool *may = attn_arena_take(work->call->out->arena, count, sizeof *may);
    for (size_t i = 0; may != NULL && i < count; i++)
        may[i] = tokens == NULL || (!tokens[i].is_special && tokens[i].segment == segment);
    return may;
}

/* The characters of the text from begin to end, counted in code points. */
static struct text_span cut(struct text_span text, size_t begin, size_t end)
{
    const char *at = text.at, *const stop = text.at + text.length, *first;
    size_t i = 0;
    while (i < begin && at < stop) {
        utf8_next(&at);
        i++;
    }
    for (first = at; i < end && at < stop; i++)
        utf8_next(&at);
    return (struct text_span){first, (size_t)((at < stop ? at : stop) - first)};
}

static void write_span(const struct model_work *work, size_t item, const attn_answer *span, struct chunks *out)
{
    const struct tokenizer_token *tokens = work->batch.tokens[0][item];
    const struct model_inputs *inputs = &work->request.inputs;
    char number[NUMBER_TEXT_MAX];
    chunks_format(out, "{\"tokens\":[%zu,%zu],\"probability\":", span->first, span->last);
    if (isfinite(span->probability))
        chunks_bytes(out, number, (size_t)(number_write_digits(number, span->probability, 9) - number));
    else
        chunks_text(out, "null");
    if (tokens != NULL) {
        const struct text_span text = inputs->pair != NULL ? inputs->pair[item] : inputs->text[item];
        const size_t begin = tokens[span->first].begin, end = tokens[span->last].end;
        chunks_format(out, ",\"offsets\":[%zu,%zu],\"text\":", begin, end);
        chunks_json_span(out, cut(text, begin, end));
    }
    chunks_text(out, "}");
}

/* A decoder of another length than the input says nothing about the tokens of the input. */
static void write_answer(const struct model_work *work, size_t item, struct chunks *out)
{
    const struct model_job *job = &work->job;
    const struct model_item *of = &work->batch.items[item];
    const size_t count = of->of[job->last_stack].count;
    const double *spans = job->classes.spans + 2 * item * job->classes.longest;
    attn_arena *arena = out->arena;
    double *starts = attn_arena_take(arena, count, sizeof *starts), *ends = attn_arena_take(arena, count, sizeof *ends);
    const bool *may = choose_tokens(work, item, count);
    attn_answer span;
    if (starts == NULL || ends == NULL || may == NULL) {
        out->is_ok = false;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        starts[i] = spans[2 * i];
        ends[i] = spans[2 * i + 1];
    }
    if (count == of->of[0].count && attn_best_span(count, starts, ends, may, &span))
        write_span(work, item, &span, out);
    else
        chunks_text(out, "null");
}

static void write_answers(void *context, struct chunks *out)
{
    const struct model_work *work = context;
    for (size_t item = 0; item < work->request.inputs.batch && out->is_ok; item++) {
        chunks_text(out, item > 0 ? "," : "[");
        write_answer(work, item, out);
    }
    chunks_text(out, "]");
}

static size_t answers_bound(const struct model_work *work)
{
    enum { FRAME_BYTES = 192, BYTE_BYTES = 6 /* \u001f */ };
    const struct model_inputs *inputs = &work->request.inputs;
    size_t bound = 2;
    for (size_t item = 0; item < inputs->batch; item++) {
        const struct text_span *texts = inputs->pair != NULL ? inputs->pair : inputs->text;
        bound += FRAME_BYTES + (texts != NULL ? BYTE_BYTES * texts[item].length : 0);
    }
    return bound;
}

void model_classes_name(struct model_work *work)
{
    struct model_classes *classes = &work->job.classes;
    if (classes->logits != NULL)
        classes->logits->beside =
            (struct model_beside){"classes.labels", write_labels, work, model_labels_bound(&work->version->model.head)};
    if (classes->ends != NULL)
        classes->ends->beside = (struct model_beside){"classes.answer", write_answers, work, answers_bound(work)};
}
