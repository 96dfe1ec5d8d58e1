/* words.c: what the scores of the head say of the words that a request gives. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/analysis.h"
#include "service/run/model/item.h"

enum { FIELD_BYTES = 48, TOLD_BYTES = 200, NAME_BYTES = 64 };

/* ---- ids ---- */

/* Quotes as many of the tokens as fit. */
static void tell_tokens(const struct tokenizer_output *tokens, char told[TOLD_BYTES])
{
    static const char quotes[] = ", \"\"", rest[] = ", …";
    size_t used = 0;
    told[0] = '\0';
    for (size_t i = 0; i < tokens->count; i++) {
        const struct text_span text = tokens->tokens[i].text;
        const bool fits = used + sizeof quotes + text.length + sizeof rest <= TOLD_BYTES;
        used += (size_t)snprintf(told + used, TOLD_BYTES - used, fits ? "%s\"%.*s\"" : "%s…", i > 0 ? ", " : "",
                                 (int)text.length, text.at);
        if (!fits)
            return;
    }
}

static bool encode_word(struct model_job *job, struct text_span text, const char *field, int64_t *id)
{
    const struct model_version *version = job->version;
    const struct tokenizer_input input = {.text = text};
    struct tokenizer_output output;
    char told[TOLD_BYTES];
    if (version->tokenizer == NULL)
        return outcome_fail(&job->outcome, ATTN_ERR_FIELD, field,
                            "%s is a text, and the model \"%s\" has no tokenizer that can be used: give ids", field,
                            version->common.name);
    if (version->lacks_target && version->model.stack_count == 2)
        return outcome_fail(
            &job->outcome, ATTN_ERR_FIELD, field,
            "%s is a text, which target.spm cuts, and the folder of the model \"%s\" lacks it: download "
            "it beside source.spm, or give ids",
            field, version->common.name);
    const struct tokenizer *tokenizer = model_version_tokenizer(version, version->model.stack_count - 1);
    const attn_status status =
        tokenizer_encode(tokenizer, &input, job->outcome.arena, job->outcome.arena, &output, job->outcome.err);
    if (status == ATTN_ERR_NO_MEMORY || status == ATTN_ERR_CANCELLED)
        return outcome_note(&job->outcome, status);
    if (status != ATTN_OK)
        return outcome_fail(&job->outcome, ATTN_ERR_VALUE, field, "%s: %s", field, job->outcome.err->message);
    if (output.count == 1) {
        *id = output.tokens[0].id;
        return true;
    }
    tell_tokens(&output, told);
    return outcome_fail(&job->outcome, ATTN_ERR_VALUE, field, "%s is %zu tokens%s%s: give texts of one token, or an id",
                        field, output.count, output.count > 0 ? ", " : "", told);
}

bool model_word_find(struct model_job *job, const struct model_word *word, const char *list, size_t index, int64_t *id)
{
    const size_t words = job->version->model.head.words;
    char field[FIELD_BYTES];
    snprintf(field, sizeof field, "%s/%zu", list, index);
    *id = word->id;
    if (word->text.at != NULL && !encode_word(job, word->text, field, id))
        return false;
    if ((uint64_t)*id >= words)
        return outcome_fail(&job->outcome, ATTN_ERR_VALUE, field, "%s has the id %" PRId64 "; the head scores 0 to %zu",
                            field, *id, words - 1);
    return true;
}

/* Each query has its next word, which ids alone tell. */
static bool take_next(struct model_job *job)
{
    job->given = (struct model_given_words){.count = 1};
    if (job->items[0].of[job->last_stack].ids != NULL)
        return true;
    return outcome_fail(
        &job->outcome, ATTN_ERR_FIELD, "/options/words",
        "options.words is \"next\", and the inputs are no tokens: give inputs.text or inputs.ids, or words");
}

static bool take_words(struct model_job *job)
{
    const size_t count = job->request->words.count;
    int64_t *ids = outcome_take(&job->outcome, count, sizeof *ids);
    bool is_ok = ids != NULL;
    for (size_t i = 0; i < count && is_ok; i++)
        is_ok = model_word_find(job, &job->request->words.items[i], "/options/words", i, &ids[i]);
    job->given = (struct model_given_words){.ids = ids, .count = count};
    return is_ok;
}

/* ---- outputs ---- */

/* Logits, log-probabilities and ranks, (…, queries, words). layers 0: without that axis. */
static void add_scores(struct model_job *job, const char *name, size_t layers, struct model_words *words)
{
    const attn_dtype compute = model_job_compute(job);
    const size_t shape[] = {layers, job->request->inputs.batch,
                            model_head_rows(job, job->parts[job->last_stack].longest_queries), job->given.count};
    const int skip = layers == 0 ? 1 : 0, rank = 4 - skip;
    model_add_output(job, &words->logits, compute, rank, shape + skip, "%s.logits", name);
    model_add_output(job, &words->log_probabilities, compute, rank, shape + skip, "%s.log_probabilities", name);
    model_add_output(job, &words->ranks, ATTN_I64, rank, shape + skip, "%s.ranks", name);
}

bool model_words_plan(struct model_job *job)
{
    const struct model_request *request = job->request;
    const bool is_next = request->words.is_next;
    if (request->words.items == NULL && !is_next)
        return true;
    if (!(is_next ? take_next(job) : take_words(job)))
        return false;
    if (model_job_wants(job, MODEL_LOGIT_LENS))
        add_scores(job, "logit_lens", job->parts[job->last_stack].layer_count, &job->lens);
    if (model_job_wants(job, MODEL_WORD_SCORES))
        add_scores(job, "word_scores", 0, &job->predictions);
    if (model_job_wants(job, MODEL_WORD_SCORES) && is_next)
        model_add_output(job, &job->given.perplexity, model_job_compute(job), 1, &request->inputs.batch,
                         "word_scores.perplexity");
    return !outcome_has_failed(&job->outcome);
}

double model_words_bytes(const struct model_job *job)
{
    return HEAD_ROWS * ((double)job->given.count * (sizeof(int64_t) + sizeof(double)) + 2 * ATTN_ALIGNMENT);
}

/* A rank compares one score after the other with that of the word. A core multiplies 32 pairs in this time. */
double model_words_flops(const struct model_job *job)
{
    return (double)job->given.count * 32 * (double)job->version->model.head.words;
}

/* ---- scores ---- */

/* What a block of tokens says of words. */
struct scoring {
    const struct head_block *block;
    bool are_all;              /* tokens, or those that the request selects */
    double *log_probabilities; /* (tokens, words) */
    int64_t *ranks;
};

/* The token behind that of the row; of an encoder, its own. -1: there is none, or the head has no score of it. */
static int64_t next_word(const struct head_block *block, size_t row)
{
    const struct model_job *job = block->job;
    const struct model_sequence *sequence = &job->items[block->item].of[job->last_stack];
    const size_t at = block->first + row + (job->version->model.stacks[job->last_stack].is_causal ? 1 : 0);
    const int64_t last = sequence->has_label ? sequence->label : -1;
    const int64_t id = at < sequence->count ? sequence->ids[at] : last;
    return id < (int64_t)block->scores->shape[1] ? id : -1;
}

/* The ids of the words of a row. */
const int64_t *model_words_of(const struct head_block *block, size_t row, int64_t *next)
{
    const int64_t *ids = block->job->given.ids;
    *next = ids == NULL ? next_word(block, row) : 0;
    return ids != NULL ? ids : next;
}

static void score_row(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct scoring *scoring = argument;
    const struct head_block *block = scoring->block;
    const attn_runtime *runtime = block->job->runtime;
    const size_t n = block->job->given.count, row = scoring->are_all ? index : block->rows[index];
    int64_t next;
    const int64_t *words = model_words_of(block, row, &next);
    scoring->log_probabilities[row * n] = (double)NAN;
    scoring->ranks[row * n] = -1;
    if (words[0] >= 0 && !pace_is_cancelled(runtime))
        attn_score_words(head_row(block, row), block->scores->dtype, block->scores->shape[1], n, words,
                         scoring->log_probabilities + row * n, scoring->ranks + row * n, runtime);
}

/* The logits of the words of a row; NaN where there is no next word. */
static void put_logits(const struct head_block *block, size_t row, void *to)
{
    const size_t element = attn_dtype_bytes(block->scores->dtype);
    const float none = NAN;
    const double none_of_double = (double)NAN;
    int64_t next;
    const int64_t *words = model_words_of(block, row, &next);
    const void *absent = block->scores->dtype == ATTN_F32 ? (const void *)&none : (const void *)&none_of_double;
    for (size_t i = 0; i < block->job->given.count; i++)
        memcpy((char *)to + i * element, words[i] < 0 ? absent : head_row(block, row) + (size_t)words[i] * element,
               element);
}

/* Numbers beyond the range of float become infinite. */
void model_put_numbers(const double *from, size_t count, attn_dtype dtype, void *to)
{
    for (size_t i = 0; i < count && dtype == ATTN_F32; i++)
        ((float *)to)[i] =
            fabs(from[i]) > (double)FLT_MAX ? copysignf(INFINITY, (float)copysign(1, from[i])) : (float)from[i];
    if (dtype != ATTN_F32)
        memcpy(to, from, count * sizeof *from);
}

static void put_row(const struct scoring *scoring, size_t i)
{
    const struct head_block *block = scoring->block;
    const struct model_words *words = block->words;
    const size_t n = block->job->given.count, row = block->rows[i];
    put_logits(block, row, head_place(block, words->logits, i));
    memcpy(head_place(block, words->ranks, i), scoring->ranks + row * n, n * sizeof *scoring->ranks);
    model_put_numbers(scoring->log_probabilities + row * n, n, block->scores->dtype,
                      head_place(block, words->log_probabilities, i));
}

/* exp of minus the mean log-probability of all next words of the item, whatever the request selects. */
static void put_perplexity(const struct scoring *scoring)
{
    const struct head_block *block = scoring->block;
    struct model_given_words *given = &block->job->given;
    const attn_tensor *to = &given->perplexity->tensor;
    if (block->first == 0)
        given->log_sum = 0, given->summed = 0;
    for (size_t row = 0; row < block->scores->shape[0]; row++)
        if (scoring->ranks[row] >= 0) {
            given->log_sum += scoring->log_probabilities[row];
            given->summed++;
        }
    const double perplexity = given->summed > 0 ? exp(-given->log_sum / (double)given->summed) : (double)NAN;
    model_put_numbers(&perplexity, 1, to->dtype, (char *)to->data + block->item * attn_dtype_bytes(to->dtype));
}

bool model_words_put(const struct head_block *block)
{
    struct model_job *job = block->job;
    const size_t rows = block->scores->shape[0], n = job->given.count;
    const bool is_summed = block->words == &job->predictions && job->given.perplexity != NULL;
    struct scoring scoring = {block, is_summed, outcome_take(&job->outcome, rows * n, sizeof(double)),
                              outcome_take(&job->outcome, rows * n, sizeof(int64_t))};
    if (outcome_has_failed(&job->outcome))
        return false;
    job->runtime->run(job->runtime->context, is_summed ? rows : block->count, score_row, &scoring);
    if (!model_job_goes_on(job)) /* words of rows may be missing */
        return false;
    for (size_t i = 0; i < block->count; i++)
        put_row(&scoring, i);
    if (is_summed)
        put_perplexity(&scoring);
    return true;
}
