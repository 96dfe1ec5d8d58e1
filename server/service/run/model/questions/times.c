/* times.c: when tokens and words are spoken, from the maps of the decoder to the sound (attn_align_path). */
#include <string.h>

#include "attn/analysis.h"
#include "attn/model.h"
#include "codec/number/number.h"
#include "service/run/model/item.h"

static const double FRAME_SECONDS = 2.0 * ATTN_AUDIO_HOP / ATTN_AUDIO_RATE; /* of a token of the encoder */

/* ---- what is aligned ---- */

/* Ids from the end token on are marks. */
static bool is_mark(const struct model_job *job, int64_t id)
{
    return job->version->model.end_id >= 0 && id >= job->version->model.end_id;
}

/* The first token of the text: behind the start token, of several the last, and the marks that follow it. */
static size_t first_word(const struct model_job *job, const struct model_sequence *sequence)
{
    size_t first = 0;
    for (size_t i = 1; i < sequence->count; i++)
        if (sequence->ids[i] == job->version->model.decoder_start_id)
            first = i;
    do
        first++;
    while (first < sequence->count && is_mark(job, sequence->ids[first]));
    return first;
}

/* Tokens of the encoder that are sound, and not the silence behind it. */
static size_t sound_frames(const struct model_sequence *sound)
{
    const size_t frames = (sound->audio.shape[0] + ATTN_AUDIO_HOP - 1) / ATTN_AUDIO_HOP / 2;
    if (sound->audio.data == NULL)
        return sound->count;
    return frames > 0 ? frames : 1;
}

/* Row i is the query that predicts token first + i, the last row the one behind the last token. */
static void measure(const struct model_job *job, size_t item, struct model_times *times)
{
    const struct model_item *of = &job->items[item];
    times->first = first_word(job, &of->of[1]);
    times->rows = of->of[1].count + 1 - times->first;
    times->frames = sound_frames(&of->of[0]);
}

/* ---- plan and run ---- */

bool model_times_plan(struct model_job *job)
{
    struct model_times *times = &job->times;
    const attn_dtype compute = model_job_compute(job);
    if (!(model_job_wants(job, MODEL_WORD_TIMES)))
        return true;
    if (job->version->alignment.reason[0] != '\0')
        return outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/return",
                            "\"word_times\" needs heads that align words with a sound: %s",
                            job->version->alignment.reason);
    if (job->last_stack == 0)
        return outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/return",
                            "\"word_times\" are those of the decoder: give inputs.target or inputs.target_ids");
    const size_t shape[] = {job->request->inputs.batch, job->parts[1].longest_queries};
    return model_add_output(job, &times->starts, compute, 2, shape, "word_times.start") &&
           model_add_output(job, &times->ends, compute, 2, shape, "word_times.end");
}

double model_times_bytes(const struct model_job *job)
{
    const double rows = (double)job->parts[1].longest_queries, frames = (double)job->parts[0].longest_queries;
    if (job->times.starts == NULL)
        return 0;
    return rows * frames * (sizeof(double) + 1) + (4 + (double)job->runtime->threads) * (frames + 1) * sizeof(double) +
           rows * sizeof(size_t) + 6 * ATTN_ALIGNMENT;
}

bool model_times_reads(const struct model_block_run *run)
{
    const struct model_alignment *alignment = &run->job->version->alignment;
    bool reads = false;
    for (size_t i = 0; run->part->is_cross && run->job->times.starts != NULL && i < alignment->count; i++)
        reads = reads || alignment->heads[i].layer == run->block->layer;
    return reads;
}

bool model_times_begin(struct model_job *job, size_t item)
{
    struct model_times *times = &job->times;
    if (times->starts == NULL)
        return true;
    measure(job, item, times);
    times->sum = outcome_take_zeroed(&job->outcome, times->rows * times->frames, sizeof *times->sum);
    times->work =
        outcome_take(&job->outcome, attn_align_work(times->frames, job->runtime->threads), sizeof *times->work);
    return !outcome_has_failed(&job->outcome);
}

/* maps is (heads, queries, keys). */
bool model_times_read(struct model_block_run *run, const attn_tensor *maps)
{
    struct model_job *job = run->job;
    const struct model_times *times = &job->times;
    const struct model_alignment *alignment = &job->version->alignment;
    if (!model_times_reads(run))
        return true;
    for (size_t i = 0; i < alignment->count; i++) {
        const size_t first = alignment->heads[i].head * maps->shape[1] + times->first - 1;
        attn_tensor map = attn_tensor_view((char *)maps->data + first * maps->shape[2] * attn_dtype_bytes(maps->dtype),
                                           maps->dtype, 2, (const size_t[]){times->rows, times->frames});
        map.stride[0] = (ptrdiff_t)maps->shape[2];
        if (alignment->heads[i].layer == run->block->layer)
            attn_align_add(&map, times->sum, times->work, job->runtime);
    }
    return model_job_goes_on(job);
}

static bool put_time(struct model_job *job, const struct model_output *output, size_t item, size_t token, size_t frame)
{
    const double seconds = FRAME_SECONDS * (double)frame;
    const attn_tensor *to = &output->tensor;
    return outcome_note(&job->outcome, attn_convert(model_copy_place(to, item, token), to->dtype, &seconds, ATTN_F64, 1,
                                                    job->outcome.err));
}

bool model_times_put(struct model_job *job, size_t item)
{
    const struct model_times *times = &job->times;
    if (times->starts == NULL)
        return true;
    uint8_t *steps = outcome_take(&job->outcome, times->rows * times->frames, sizeof *steps);
    double *costs = outcome_take(&job->outcome, 2 * (times->frames + 1), sizeof *costs);
    size_t *begins = outcome_take(&job->outcome, times->rows, sizeof *begins);
    if (outcome_has_failed(&job->outcome))
        return false;
    attn_align_path(times->sum, times->rows, times->frames, steps, costs, begins);
    bool is_ok = true;
    for (size_t i = 0; i + 1 < times->rows && is_ok; i++)
        is_ok = put_time(job, times->starts, item, times->first + i, begins[i]) &&
                put_time(job, times->ends, item, times->first + i, begins[i + 1]);
    return is_ok;
}

/* ---- words ---- */

/* The tokens first .. end of an item are a word. */
struct word {
    size_t first, end;
};

/* The next word from token *at on. A word ends before a space, as byte-level BPE spells it, and before a mark. */
static bool next_word(const struct model_work *work, size_t item, size_t *at, struct word *word)
{
    static const char space[] = "\xC4\xA0";
    const struct model_sequence *sequence = &work->batch.items[item].of[1];
    while (*at < sequence->count && is_mark(&work->job, sequence->ids[*at]))
        ++*at;
    word->first = *at;
    while (*at < sequence->count && !is_mark(&work->job, sequence->ids[*at])) {
        const struct text_span spelling = model_batch_word(&work->batch, 1, item, *at);
        const bool begins = spelling.length >= 2 && memcmp(spelling.at, space, 2) == 0;
        if (begins && *at > word->first)
            break;
        ++*at;
    }
    word->end = *at;
    return word->end > word->first;
}

static void write_seconds(const struct model_output *output, size_t item, size_t i, struct chunks *out)
{
    const attn_tensor *tensor = &output->tensor;
    char number[NUMBER_TEXT_MAX];
    double seconds = 0;
    if (attn_convert(&seconds, ATTN_F64, model_copy_place(tensor, item, i), tensor->dtype, 1, NULL) == ATTN_OK)
        chunks_bytes(out, number, (size_t)(number_write_digits(number, seconds, 6) - number));
}

static void write_word(const struct model_work *work, size_t item, const struct word *word, struct chunks *out)
{
    const int64_t *ids = work->batch.items[item].of[1].ids;
    const size_t count = word->end - word->first;
    struct text_span text = {NULL, 0};
    uint32_t *own = attn_arena_take(out->arena, count, sizeof *own);
    for (size_t i = 0; own != NULL && i < count; i++)
        own[i] = (uint32_t)ids[word->first + i];
    if (own == NULL ||
        tokenizer_decode(work->version->tokenizer, own, count, false, out->arena, out->arena, &text, NULL) != ATTN_OK) {
        out->is_ok = false;
        return;
    }
    const size_t skipped = text.length > 0 && text.at[0] == ' ';
    chunks_text(out, "{\"text\":");
    chunks_json_span(out, (struct text_span){text.at + skipped, text.length - skipped});
    chunks_format(out, ",\"tokens\":[%zu,%zu],\"start\":", word->first, word->end - 1);
    write_seconds(work->job.times.starts, item, word->first, out);
    chunks_text(out, ",\"end\":");
    write_seconds(work->job.times.ends, item, word->end - 1, out);
    chunks_text(out, "}");
}

static void write_words(void *context, struct chunks *out)
{
    const struct model_work *work = context;
    for (size_t item = 0; item < work->request.inputs.batch && out->is_ok; item++) {
        size_t at = first_word(&work->job, &work->batch.items[item].of[1]), count = 0;
        struct word word;
        chunks_text(out, item > 0 ? ",[" : "[[");
        while (out->is_ok && next_word(work, item, &at, &word)) {
            chunks_text(out, count++ > 0 ? "," : "");
            write_word(work, item, &word, out);
        }
        chunks_text(out, "]");
    }
    chunks_text(out, "]");
}

static size_t words_bound(const struct model_work *work)
{
    enum { FRAME_BYTES = 128, BYTE_BYTES = 6 /* \u001f */ };
    size_t bound = FRAME_BYTES;
    for (size_t item = 0; item < work->request.inputs.batch; item++) {
        const struct model_sequence *sequence = &work->batch.items[item].of[1];
        for (size_t i = 0; i < sequence->count; i++)
            bound += FRAME_BYTES + BYTE_BYTES * model_batch_word(&work->batch, 1, item, i).length;
    }
    return bound;
}

void model_times_name(struct model_work *work)
{
    if (work->job.times.ends != NULL && work->version->tokenizer != NULL)
        work->job.times.ends->beside = (struct model_beside){"word_times.words", write_words, work, words_bound(work)};
}
