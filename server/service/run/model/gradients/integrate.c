/* integrate.c: the gradients of the vectors on the straight way from a baseline to them. */
#include <assert.h>
#include <string.h>

#include "service/run/model/gradients/gradients.h"

static bool is_wanted(const struct model_gradients *own)
{
    return model_job_wants(own->job, MODEL_INTEGRATED);
}

double gradients_integrated_passes(const struct model_gradients *own)
{
    return is_wanted(own) ? (double)own->job->request->steps + 1 : 0;
}

/* The baseline, the difference, and the sums of the gradients. */
double gradients_integrated_bytes(const struct model_gradients *own)
{
    const struct model_job *job = own->job;
    double numbers = 0;
    for (size_t stack = 0; stack < gradient_stacks(job) && is_wanted(own); stack++)
        numbers += (double)job->parts[stack].longest_queries * (double)own->of[stack].integrated->tensor.shape[2];
    return 3 * sizeof(double) * numbers + 16 * ATTN_ALIGNMENT;
}

bool gradients_integrated_check(struct model_gradients *own)
{
    struct model_job *job = own->job;
    const struct checkpoint_model *model = &job->version->model;
    if (!is_wanted(own) || job->request->baseline != MODEL_BASELINE_PAD)
        return true;
    for (size_t stack = 0; stack < gradient_stacks(job); stack++) {
        const attn_tensor *words = &model->stacks[stack].embedding.words;
        if (words->data == NULL || model->pad_id < 0 || (uint64_t)model->pad_id >= words->shape[0])
            return outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/baseline",
                                "options.baseline is \"pad\", and the %s: take \"zero\"",
                                words->data == NULL ? "model has no words" : "model has no padding token");
    }
    return true;
}

/* What is integrated: vectors = from + share * way. All are (count, d) of a stack. */
struct way {
    struct gradient_pass *pass;
    double *from[2], *way[2], *sums[2];
};

static double number_of(const attn_tensor *tensor, size_t at)
{
    return tensor->dtype == ATTN_F32 ? (double)((const float *)tensor->data)[at] : ((const double *)tensor->data)[at];
}

/* The rows of the padding token, in place of vectors of 0. */
static bool read_padding(struct way *way, size_t stack)
{
    struct gradient_pass *pass = way->pass;
    struct model_job *job = pass->job;
    const struct model_embedding *embedding = &job->version->model.stacks[stack].embedding;
    const attn_embedding core = {
        .compute = model_job_compute(job), .words = embedding->words, .scale = embedding->scale};
    const attn_embedding_input input = {.count = 1, .ids = &job->version->model.pad_id};
    attn_tensor row;
    if (job->request->baseline != MODEL_BASELINE_PAD)
        return true;
    if (!outcome_note(&job->outcome,
                      attn_embed(&core, &input, job->runtime, job->outcome.arena, &row, job->outcome.err)))
        return false;
    for (size_t at = 0; at < attn_tensor_count(&pass->vectors[stack]); at++)
        way->from[stack][at] = number_of(&row, at % row.shape[1]);
    return true;
}

static bool begin(struct way *way, size_t stack)
{
    struct outcome *outcome = &way->pass->job->outcome;
    const attn_tensor *vectors = &way->pass->vectors[stack];
    const size_t count = attn_tensor_count(vectors);
    double **const each[] = {&way->from[stack], &way->way[stack], &way->sums[stack]};
    for (size_t i = 0; i < 3; i++)
        *each[i] = outcome_take_zeroed(outcome, count, sizeof(double));
    if (outcome_has_failed(outcome) || !read_padding(way, stack))
        return false;
    for (size_t at = 0; at < count; at++)
        way->way[stack][at] = number_of(vectors, at) - way->from[stack][at];
    return true;
}

/* Runs the pass at that share of the way, and adds its gradient. */
static bool step(struct way *way, double share, bool goes_back)
{
    struct gradient_pass *pass = way->pass;
    const size_t stacks = gradient_stacks(pass->job);
    for (size_t stack = 0; stack < stacks; stack++) {
        const attn_tensor *vectors = &pass->vectors[stack];
        assert(way->from[stack] != NULL && way->way[stack] != NULL && way->sums[stack] != NULL);
        for (size_t at = 0; at < attn_tensor_count(vectors); at++) {
            const double number = way->from[stack][at] + share * way->way[stack][at];
            model_put_numbers(&number, 1, vectors->dtype,
                              (char *)vectors->data + at * attn_dtype_bytes(vectors->dtype));
        }
    }
    if (!gradient_pass_run(pass, goes_back))
        return false;
    for (size_t stack = 0; stack < stacks && goes_back; stack++)
        for (size_t at = 0; at < attn_tensor_count(&pass->gradient[stack]); at++)
            way->sums[stack][at] += number_of(&pass->gradient[stack], at);
    return true;
}

/* Writes the integrals; returns their sum. */
static double put(const struct way *way, size_t stack, double steps)
{
    const struct gradient_pass *pass = way->pass;
    const attn_tensor *to = &pass->own->of[stack].integrated->tensor;
    char *at = model_copy_place(to, pass->item, 0);
    double sum = 0;
    for (size_t i = 0; i < attn_tensor_count(&pass->vectors[stack]); i++, at += attn_dtype_bytes(to->dtype)) {
        const double integral = way->way[stack][i] * way->sums[stack][i] / steps;
        model_put_numbers(&integral, 1, to->dtype, at);
        sum += integral;
    }
    return sum;
}

bool gradients_integrate(struct gradient_pass *pass)
{
    struct model_job *job = pass->job;
    const attn_tensor *error = &pass->own->error->tensor;
    const size_t stacks = gradient_stacks(job), steps = job->request->steps;
    const double metric = pass->metric;
    struct way way = {.pass = pass};
    bool goes_on = true;
    pass->shows = false;
    for (size_t stack = 0; stack < stacks && goes_on; stack++)
        goes_on = begin(&way, stack);
    for (size_t k = 0; k < steps && goes_on; k++)
        goes_on = step(&way, ((double)k + 0.5) / (double)steps, true);
    if (!goes_on || !step(&way, 0, false))
        return false;
    double sum = pass->metric - metric;
    for (size_t stack = 0; stack < stacks; stack++)
        sum += put(&way, stack, (double)steps);
    model_put_numbers(&sum, 1, error->dtype, (char *)error->data + pass->item * attn_dtype_bytes(error->dtype));
    return true;
}
