/* whole.c: inference with a whole model (service/run/model) under the Open Inference Protocol. */
#include "service/infer/model.h"

#include <string.h>

#include "codec/oip/oip.h"
#include "service/run/model/job.h"
#include "service/run/work.h"

/* One request while it is answered. */
struct whole {
    struct model_work work;
    struct oip_request request;
    struct oip_sent sent[ATTN_STEP_COUNT];
};

/* ---- request ---- */

/* Rows of one length: the protocol has no others. */
static bool give_ids(const struct oip_model_inputs *whole, struct outcome *outcome, struct model_inputs *inputs)
{
    struct model_ids *rows = outcome_take(outcome, whole->batch, sizeof *rows);
    for (size_t i = 0; rows != NULL && i < whole->batch; i++)
        rows[i] = (struct model_ids){whole->ids + i * whole->length, whole->length};
    inputs->ids = rows;
    return rows != NULL;
}

/* The protocol's inputs are texts and ids. */
static bool check_reads_words(const struct model_work *work, struct outcome *outcome)
{
    const struct model_embedding *embedding = &work->version->model.stacks[0].embedding;
    const bool is_audio = embedding->second_kernel.data != NULL;
    if (embedding->words.data != NULL)
        return true;
    return outcome_fail(outcome, ATTN_ERR_VALUE, "/inputs",
                        "the model \"%s\" reads %s, and has no input under /v2: POST /v1/models/%s/attention takes "
                        "inputs.%s",
                        work->version->common.name, is_audio ? "audio" : "images", work->version->common.name,
                        is_audio ? "audio" : "pixels");
}

/* The outputs that the model has besides its maps. */
static unsigned outputs_of(const struct model_version *version)
{
    const bool has_classes = version->model.has_head && version->model.head.is_of_classes;
    return (version->tokenizer != NULL ? OIP_HAS_TOKENS : 0) | (has_classes ? OIP_HAS_CLASSES : 0) |
           (version->pooling.is_there ? OIP_HAS_EMBEDDING : 0);
}

static bool decode(struct call *call, void *context, struct outcome *outcome)
{
    struct whole *whole = context;
    struct model_work *work = &whole->work;
    struct oip_request *request = &whole->request;
    const struct oip_model_inputs *given = &request->whole;
    if (!check_reads_words(work, outcome) ||
        !outcome_note(outcome, oip_decode_whole(call->in.body, call->in.body_bytes,
                                                call->in.has_json_bytes ? call->in.json_bytes : OIP_ALL_JSON,
                                                outputs_of(work->version), outcome->arena, request, outcome->err)) ||
        !outcome_note(outcome, model_accept(call, request)))
        return false;
    struct model_inputs inputs = {.batch = given->batch, .text = given->texts};
    if ((given->texts == NULL && !give_ids(given, outcome, &inputs)) ||
        !outcome_note(outcome, model_request_decode_options(given->options, given->options_bytes, &inputs,
                                                            outcome->arena, &work->request, outcome->err)))
        return false;
    return work->request.new_tokens == 0 ||
           outcome_fail(outcome, ATTN_ERR_FIELD, "/options/new_tokens",
                        "options.new_tokens is not for /v2: POST /v1/models/%s/attention takes it",
                        work->version->common.name);
}

static bool plan(struct call *call, void *context, struct outcome *outcome)
{
    struct whole *whole = context;
    (void)call;
    return model_work_plan(&whole->work, false, outcome);
}

/* ---- answer ---- */

/* The words of all items, (batch, longest); the rest of a shorter item is empty. */
static void gather_words(const struct model_work *work, struct outcome *outcome, struct oip_sent *sent)
{
    const size_t shape[] = {work->request.inputs.batch, work->job.parts[0].longest_queries};
    struct text_span *words = outcome_take(outcome, shape[0] * shape[1], sizeof *words);
    for (size_t at = 0; words != NULL && at < shape[0] * shape[1]; at++) {
        const size_t item = at / shape[1], i = at % shape[1];
        const bool is_real = i < work->batch.items[item].of[0].count;
        words[at] = is_real ? model_batch_word(&work->batch, 0, item, i) : (struct text_span){NULL, 0};
        if (words[at].at == NULL)
            words[at] = (struct text_span){"", 0};
    }
    *sent = (struct oip_sent){.tensor = attn_tensor_view(NULL, ATTN_U8, 2, shape), .texts = words};
}

static void gather_labels(const struct model_work *work, struct outcome *outcome, struct oip_sent *sent)
{
    const struct model_head *head = &work->version->model.head;
    struct text_span *labels = outcome_take(outcome, head->words, sizeof *labels);
    for (size_t i = 0; labels != NULL && i < head->words; i++) {
        const char *label = model_label(head, i, outcome->arena);
        labels[i] = (struct text_span){label, label != NULL ? strlen(label) : 0};
        if (label == NULL)
            outcome_no_memory(outcome);
    }
    *sent = (struct oip_sent){.tensor = attn_tensor_view(NULL, ATTN_U8, 1, &head->words), .texts = labels};
}

static const struct model_output *output_of(const struct model_job *job, attn_step step)
{
    if (step == OIP_CLASSES)
        return job->classes.probabilities != NULL ? job->classes.probabilities : job->logits;
    if (step == OIP_EMBEDDING)
        return job->embedding;
    return step == ATTN_STEP_OUTPUT ? job->output : job->parts[0].steps[step];
}

/* The outputs of the request. Before the run, tensors have shapes alone. */
static bool gather(const struct model_work *work, const struct oip_request *request, struct outcome *outcome,
                   struct oip_sent *sent)
{
    for (size_t i = 0; i < request->output_count; i++) {
        const attn_step step = request->outputs[i].step;
        if (step == OIP_TOKENS)
            gather_words(work, outcome, &sent[i]);
        else if (step == OIP_LABELS)
            gather_labels(work, outcome, &sent[i]);
        else
            sent[i] = (struct oip_sent){.tensor = output_of(&work->job, step)->tensor};
    }
    return !outcome_has_failed(outcome);
}

static bool weigh(struct call *call, void *context, struct outcome *outcome, struct weight *weight)
{
    struct whole *whole = context;
    (void)call;
    if (!gather(&whole->work, &whole->request, outcome, whole->sent))
        return false;
    *weight = model_work_weigh(&whole->work, oip_bound(&whole->request, whole->sent));
    return true;
}

static bool render(struct call *call, void *context, struct outcome *outcome)
{
    struct whole *whole = context;
    if (!gather(&whole->work, &whole->request, outcome, whole->sent))
        return false;
    model_answer(call, &whole->request, MODEL_PRESENT_VERSION, whole->sent);
    return true;
}

attn_status infer_whole_run(struct call *call)
{
    static const struct pipeline steps = {decode, plan, weigh, model_work_run, render};
    /* In the arena: a part of the answer that is written later refers to it. */
    struct whole *whole = attn_arena_take_zeroed(call->out->arena, 1, sizeof *whole);
    if (whole == NULL)
        return attn_fail_no_memory(call->err);
    whole->work.call = call;
    whole->work.version = model_version_of(call->version);
    const attn_status status = pipeline_run(&steps, call, whole);
    if (status != ATTN_OK)
        oip_translate(call->err);
    return model_work_end(&whole->work, status);
}
