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
static attn_status give_ids(struct call *call, const struct oip_model_inputs *whole, struct model_inputs *inputs)
{
    struct model_ids *rows = attn_arena_take(call->out->arena, whole->batch, sizeof *rows);
    if (rows == NULL)
        return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the request");
    for (size_t i = 0; i < whole->batch; i++)
        rows[i] = (struct model_ids){whole->ids + i * whole->length, whole->length};
    inputs->ids = rows;
    return ATTN_OK;
}

/* The protocol's inputs are texts and ids. */
static attn_status check_reads_words(const struct model_work *work)
{
    const struct model_embedding *embedding = &work->version->model.stacks[0].embedding;
    const bool is_audio = embedding->second_kernel.data != NULL;
    if (embedding->words.data != NULL)
        return ATTN_OK;
    return attn_fail(work->call->err, ATTN_ERR_VALUE, "/inputs",
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

static attn_status decode(struct call *call, void *context)
{
    struct whole *whole = context;
    struct model_work *work = &whole->work;
    struct oip_request *request = &whole->request;
    const struct oip_model_inputs *given = &request->whole;
    attn_status status = check_reads_words(work);
    if (status == ATTN_OK)
        status = oip_decode_whole(call->in.body, call->in.body_bytes,
                                  call->in.has_json_bytes ? call->in.json_bytes : OIP_ALL_JSON,
                                  outputs_of(work->version), call->out->arena, request, call->err);
    if (status == ATTN_OK)
        status = model_check_names(call, request->model, request->version);
    if (status != ATTN_OK)
        return status;
    struct model_inputs inputs = {.batch = given->batch, .text = given->texts};
    call->timeout_ms = request->timeout_ms;
    call->out->may_defer = call->out->may_defer && !oip_has_binary_output(request);
    if (given->texts == NULL)
        status = give_ids(call, given, &inputs);
    if (status == ATTN_OK)
        status = model_request_decode_options(given->options, given->options_bytes, &inputs, call->out->arena,
                                              &work->request, call->err);
    return status;
}

static attn_status plan(struct call *call, void *context)
{
    struct whole *whole = context;
    (void)call;
    return model_work_plan(&whole->work, false);
}

/* ---- answer ---- */

static size_t longest_item(const struct model_work *work)
{
    size_t longest = 0;
    for (size_t item = 0; item < work->request.inputs.batch; item++)
        if (work->batch.items[item].of[0].count > longest)
            longest = work->batch.items[item].of[0].count;
    return longest;
}

/* The words of all items, (batch, longest); the rest of a shorter item is empty. */
static attn_status gather_words(const struct model_work *work, struct oip_sent *sent)
{
    const size_t shape[] = {work->request.inputs.batch, longest_item(work)};
    struct text_span *words = attn_arena_take(work->call->out->arena, shape[0] * shape[1], sizeof *words);
    if (words == NULL)
        return attn_fail(work->call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the tokens");
    for (size_t item = 0; item < shape[0]; item++)
        for (size_t i = 0; i < shape[1]; i++) {
            const bool is_real = i < work->batch.items[item].of[0].count;
            const struct text_span word =
                is_real ? model_batch_word(&work->batch, 0, item, i) : (struct text_span){NULL, 0};
            words[item * shape[1] + i] = word.at != NULL ? word : (struct text_span){"", 0};
        }
    *sent = (struct oip_sent){.tensor = attn_tensor_view(NULL, ATTN_U8, 2, shape), .texts = words};
    return ATTN_OK;
}

static attn_status gather_labels(const struct model_work *work, struct oip_sent *sent)
{
    attn_arena *arena = work->call->out->arena;
    const struct model_head *head = &work->version->model.head;
    struct text_span *labels = attn_arena_take(arena, head->words, sizeof *labels);
    bool is_ok = labels != NULL;
    for (size_t i = 0; i < head->words && is_ok; i++) {
        const char *label = model_label(head, i, arena);
        is_ok = label != NULL;
        labels[i] = (struct text_span){label, is_ok ? strlen(label) : 0};
    }
    *sent = (struct oip_sent){.tensor = attn_tensor_view(NULL, ATTN_U8, 1, &head->words), .texts = labels};
    return is_ok ? ATTN_OK : attn_fail(work->call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the labels");
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
static attn_status gather(const struct model_work *work, const struct oip_request *request, struct oip_sent *sent)
{
    const struct model_job *job = &work->job;
    attn_status status = ATTN_OK;
    for (size_t i = 0; i < request->output_count && status == ATTN_OK; i++) {
        const attn_step step = request->outputs[i].step;
        if (step == OIP_TOKENS)
            status = gather_words(work, &sent[i]);
        else if (step == OIP_LABELS)
            status = gather_labels(work, &sent[i]);
        else
            sent[i] = (struct oip_sent){.tensor = output_of(job, step)->tensor};
    }
    return status;
}

static attn_status weigh(struct call *call, void *context, struct weight *weight)
{
    struct whole *whole = context;
    (void)call;
    const attn_status status = gather(&whole->work, &whole->request, whole->sent);
    if (status == ATTN_OK)
        *weight = model_work_weigh(&whole->work, oip_sent_bound(&whole->request, whole->sent));
    return status;
}

/* ---- run ---- */

static attn_status run(struct call *call, void *context)
{
    struct whole *whole = context;
    (void)call;
    return model_job_run(&whole->work.job);
}

static attn_status render(struct call *call, void *context)
{
    struct whole *whole = context;
    attn_status status = gather(&whole->work, &whole->request, whole->sent);
    if (status != ATTN_OK)
        return status;
    const size_t json_bytes = oip_write_sent(&whole->request, model_name(call), MODEL_PRESENT_VERSION, whole->sent,
                                             call->in.runtime, call->out);
    if (json_bytes != OIP_ALL_JSON)
        call->answer_json_bytes = json_bytes;
    return call_finish(call);
}

attn_status infer_whole_run(struct call *call)
{
    static const struct pipeline steps = {decode, plan, weigh, run, render};
    /* In the arena: a part of the answer that is written later refers to it. */
    struct whole *whole = attn_arena_take_zeroed(call->out->arena, 1, sizeof *whole);
    if (whole == NULL)
        return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the request");
    whole->work.call = call;
    whole->work.version = model_version_of(call->version);
    const attn_status status = pipeline_run(&steps, call, whole);
    if (status != ATTN_OK)
        oip_translate(call->err);
    return model_work_end(&whole->work, status);
}
