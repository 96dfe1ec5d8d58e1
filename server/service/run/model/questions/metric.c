/* metric.c: what is measured of a row of scores, and its slope. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/analysis.h"
#include "service/run/model/item.h"

enum { FIELD_BYTES = 48 };

static const struct model_head *head_of(const struct model_job *job)
{
    return &job->version->model.head;
}

/* ---- the plan ---- */

/* The class of that label, or of that number. */
static bool find_class(struct model_job *job, const struct model_word *word, size_t index, int64_t *id)
{
    const struct model_head *head = head_of(job);
    char field[FIELD_BYTES];
    snprintf(field, sizeof field, "/options/metric/words/%zu", index);
    *id = word->text.at != NULL ? INT64_MAX : word->id;
    for (size_t i = 0; i < head->words && word->text.at != NULL; i++) {
        const char *label = model_label(head, i, job->outcome.arena);
        if (label == NULL)
            return outcome_no_memory(&job->outcome);
        if (strlen(label) == word->text.length && memcmp(label, word->text.at, word->text.length) == 0)
            *id = (int64_t)i;
    }
    return (uint64_t)*id < head->words ||
           outcome_fail(&job->outcome, ATTN_ERR_VALUE, field,
                        "%s is no class of the model: give a label of its id2label, or a number from 0 to %zu", field,
                        head->words - 1);
}

static bool find_query(const struct model_job *job, size_t item, size_t *query)
{
    const int64_t count = (int64_t)job->items[item].of[job->last_stack].count, given = job->request->metric.query;
    *query = model_head_reads_one(job) ? model_head_token(job, item) : (size_t)(given < 0 ? given + count : given);
    return *query < (size_t)count;
}

static bool check_query(struct model_job *job, size_t item)
{
    const size_t count = job->items[item].of[job->last_stack].count;
    size_t query;
    if (find_query(job, item, &query))
        return true;
    if (model_head_reads_one(job))
        return outcome_fail(&job->outcome, ATTN_ERR_VALUE, "/inputs",
                            "item %zu of the inputs has no token that the head of classes reads", item);
    return outcome_fail(&job->outcome, ATTN_ERR_VALUE, "/options/metric/query",
                        "/options/metric/query is %" PRId64 "; item %zu has queries 0 to %zu",
                        job->request->metric.query, item, count - 1);
}

bool model_metric_plan(struct model_job *job)
{
    const struct model_metric *given = &job->request->metric;
    struct model_measured *own = &job->measured;
    if (model_head_reads_one(job) && given->has_query)
        return outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/metric/query",
                            "/options/metric/query has no place here: the head of %.80s reads one token of each item",
                            job->version->model.architecture);
    own->count = given->words.count;
    for (size_t i = 0; i < own->count; i++)
        if (!(head_of(job)->is_of_classes
                  ? find_class(job, &given->words.items[i], i, &own->ids[i])
                  : model_word_find(job, &given->words.items[i], "/options/metric/words", i, &own->ids[i])))
            return false;
    for (size_t item = 0; item < job->request->inputs.batch; item++)
        if (!check_query(job, item))
            return false;
    return true;
}

size_t model_metric_query(const struct model_job *job, size_t item)
{
    size_t query = 0;
    find_query(job, item, &query);
    return query;
}

/* ---- a row of scores ---- */

static double score_of(const attn_tensor *scores, size_t word)
{
    return scores->dtype == ATTN_F32 ? (double)((const float *)scores->data)[word]
                                     : ((const double *)scores->data)[word];
}

static bool is_of(const struct model_job *job, model_problem problem)
{
    return head_of(job)->is_of_classes && head_of(job)->problem == problem;
}

double model_metric_value(const struct model_job *job, const attn_tensor *scores)
{
    const struct model_measured *own = &job->measured;
    const double first = score_of(scores, (size_t)own->ids[0]);
    double log_probability;
    int64_t rank;
    if (own->count == 2)
        return first - score_of(scores, (size_t)own->ids[1]);
    if (is_of(job, MODEL_PROBLEM_REGRESSION))
        return first;
    if (is_of(job, MODEL_PROBLEM_EACH))
        return first < 0 ? first - log1p(exp(first)) : -log1p(exp(-first));
    attn_score_words(scores->data, scores->dtype, scores->shape[1], 1, own->ids, &log_probability, &rank, job->runtime);
    return log_probability;
}

/* dz_a = 1, dz_b = -1; of log p_a by softmax, dz_j = [j = a] - p_j; by sigmoid, dz_a = 1 - p_a. */
void model_metric_slope(const struct model_job *job, const attn_tensor *scores, const attn_tensor *slope)
{
    const struct model_measured *own = &job->measured;
    const size_t words = scores->shape[1], element = attn_dtype_bytes(scores->dtype);
    const bool is_each = is_of(job, MODEL_PROBLEM_EACH);
    memset(slope->data, 0, words * element);
    for (size_t i = 0; i < own->count; i++) {
        const size_t word = (size_t)own->ids[i];
        const double value = is_each && own->count == 1 ? 1 / (1 + exp(score_of(scores, word)))
                                                        : score_of(slope, word) + (i == 0 ? 1 : -1);
        model_put_numbers(&value, 1, slope->dtype, (char *)slope->data + word * element);
    }
    if (own->count == 2 || is_each || is_of(job, MODEL_PROBLEM_REGRESSION))
        return;
    double largest = score_of(scores, 0), sum = 0;
    for (size_t j = 1; j < words; j++)
        largest = score_of(scores, j) > largest ? score_of(scores, j) : largest;
    for (size_t j = 0; j < words; j++)
        sum += exp(score_of(scores, j) - largest);
    for (size_t j = 0; j < words; j++) {
        const double value = score_of(slope, j) - exp(score_of(scores, j) - largest) / sum;
        model_put_numbers(&value, 1, slope->dtype, (char *)slope->data + j * element);
    }
}

/* ---- the answer ---- */

void model_metric_write(const struct model_job *job, struct chunks *out)
{
    const struct model_measured *own = &job->measured;
    for (size_t i = 0; i < own->count; i++)
        chunks_format(out, "%s%" PRId64, i > 0 ? "," : ",\"metric\":{\"words\":[", own->ids[i]);
    if (own->count > 0 && !model_head_reads_one(job))
        chunks_format(out, "],\"query\":%" PRId64 "}", job->request->metric.query);
    else if (own->count > 0)
        chunks_text(out, "]}");
}
