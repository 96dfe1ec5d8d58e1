/* attend.c: a request to a whole model from body text to answer text. */
#include "service/endpoints.h"

#include <string.h>

#include "base/array.h"
#include "codec/answer/forms.h"
#include "codec/bytes/wav.h"
#include "codec/model/forms.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/model/list.h"
#include "service/run/model/item.h"
#include "service/run/work.h"

/* ---- what services of models share ---- */

attn_status model_work_plan(struct model_work *work, bool is_binary)
{
    struct call *call = work->call;
    attn_arena *arena = call->out->arena;
    attn_status status =
        model_batch_make(&work->batch, work->version, &work->request, MODEL_REQUEST_ATTENTION, arena, call->err);
    if (status != ATTN_OK)
        return status;
    work->answer = (struct model_answer){.form = work->request.common.form, .digits = work->request.common.digits};
    work->job = (struct model_job){.version = work->version,
                                   .request = &work->request,
                                   .prepared = layer_keeper_prepared(call->in.layers),
                                   .runtime = call->in.runtime,
                                   .outcome = {.arena = arena, .err = call->err},
                                   .items = work->batch.items,
                                   .is_binary = is_binary || work->request.common.form == TENSOR_FORM_BASE64,
                                   .answer = &work->answer};
    return model_job_plan(&work->job);
}

struct weight model_work_weigh(const struct model_work *work, size_t answer_bytes)
{
    const struct model_output *largest = model_answer_largest(&work->answer);
    return (struct weight){.answer_bytes = answer_bytes,
                           .run_bytes = work->job.run_bytes,
                           .time_flops = work->job.time_flops,
                           .largest = largest != NULL ? largest->name : "",
                           .largest_is_map = true};
}

attn_status model_work_end(struct model_work *work, attn_status status)
{
    struct call *call = work->call;
    call->batch = work->request.inputs.batch;
    status = version_confirm(call, status);
    layer_keeper_count(call, status);
    return limits_explain(call, status);
}

/* One request while it is answered. It refers to itself, and so must not be moved. */
struct attending {
    struct model_work work;
    struct picture_options options; /* of a picture */
    model_part_kind part;
    struct model_picture picture;
    struct model_view view;
    struct labels labels[2];         /* of the tokens of each stack, for pictures and views */
    char shown[TOKENIZER_SHOWN_MAX]; /* of one predicted word */
};

/* ---- the form of the answer: tensors with facts, a picture, or a view ---- */

static bool is_picture(const struct call *call)
{
    return media_is_picture(call->in.answer_media);
}

static bool is_view(const struct model_request *request)
{
    return request->common.view != ENVELOPE_VIEW_NONE;
}

/* Whether the answer has outputs and facts, rather than a picture or a view. */
static bool has_facts(const struct call *call, const struct model_request *request)
{
    return !is_picture(call) && !is_view(request);
}

static attn_status prepare_picture(struct call *call, struct attending *attending, bool has_target)
{
    const struct checkpoint_model *model = &attending->work.version->model;
    attn_status status = model_picture_choose_part(&attending->options, model->stack_count == 2, has_target,
                                                   &attending->part, call->err);
    if (status != ATTN_OK)
        return status;
    const struct model_stack *stack = &model->stacks[model_part_query_stack(attending->part)];
    return model_picture_prepare(&attending->options, stack->layers, stack->blocks[0].facts.dims.heads,
                                 &attending->work.request, call->out->arena, call->err);
}

/* Pictures and views narrow the request, which is not tokenized yet, to what they show. */
static attn_status prepare_form(struct call *call, struct attending *attending)
{
    struct model_request *request = &attending->work.request;
    const bool has_target = model_batch_has_target(attending->work.version, &request->inputs);
    if (is_picture(call))
        return prepare_picture(call, attending, has_target);
    if (!is_view(request))
        return ATTN_OK;
    if (call->in.answer_media != MEDIA_JSON)
        return attn_fail(call->err, ATTN_ERR_FIELD, "/options/view",
                         "options.view is JSON, and the request accepts another type alone");
    return model_view_prepare(request, attending->work.version->model.stack_count == 2 && has_target, call->err);
}

/* A NUL in it becomes U+FFFD, as in the labels of requests. NULL without memory. */
static const char *make_label(struct text_span shown, attn_arena *arena)
{
    struct chunks text = chunks_begin(arena);
    for (size_t i = 0; i < shown.length; i++)
        chunks_bytes(&text, shown.at[i] != '\0' ? shown.at + i : "\xEF\xBF\xBD", shown.at[i] != '\0' ? 1 : 3);
    return chunks_join(&text);
}

/* The words of the first item. Positions stand for the words of a model without a tokenizer, and of an image. */
static attn_status label_stack(struct call *call, const struct model_batch *batch, size_t stack, struct labels *labels)
{
    const struct model_sequence *sequence = &batch->items[0].of[stack];
    *labels = (struct labels){.count = sequence->count};
    if (sequence->ids == NULL || batch->version->tokenizer == NULL)
        return ATTN_OK;
    const char **texts = attn_arena_take(call->out->arena, sequence->count, sizeof *texts);
    bool is_ok = texts != NULL;
    for (size_t i = 0; i < sequence->count && is_ok; i++)
        is_ok = (texts[i] = make_label(batch->shown[stack][0][i], call->out->arena)) != NULL;
    labels->texts = texts;
    return is_ok ? ATTN_OK : attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the labels");
}

static attn_status weigh_picture(struct call *call, struct attending *attending, size_t *bytes)
{
    attn_status status = model_picture_make(&attending->options, attending->part, &attending->work.answer,
                                            attending->labels, call->out->arena, &attending->picture, call->err);
    return status == ATTN_OK ? rendering_weigh_picture(call, &attending->picture.picture, bytes) : status;
}

/* *bytes is the most that the answer and its writing take. */
static attn_status weigh_form(struct call *call, struct attending *attending, size_t *bytes)
{
    const struct model_work *work = &attending->work;
    attn_status status = ATTN_OK;
    *bytes = model_answer_bound(&work->answer, call->in.answer_media);
    if (has_facts(call, &work->request))
        return ATTN_OK;
    for (size_t stack = 0; stack < 2 && status == ATTN_OK; stack++)
        status = label_stack(call, &work->batch, stack, &attending->labels[stack]);
    if (status != ATTN_OK || is_picture(call))
        return status == ATTN_OK ? weigh_picture(call, attending, bytes) : status;
    attending->view = (struct model_view){.request = &work->request,
                                          .answer = &work->answer,
                                          .labels = {attending->labels[0], attending->labels[1]},
                                          .heads = work->version->model.stacks[0].blocks[0].facts.dims.heads};
    *bytes = model_view_bound(&attending->view);
    return ATTN_OK;
}

/* ---- facts beside the outputs ---- */

/* Joins the text and adds it as a fact. */
static attn_status add_fact(struct model_work *work, const char *name, struct chunks *text)
{
    const char *json = chunks_join(text);
    if (json == NULL)
        return attn_fail(work->call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the answer");
    model_answer_add_fact(&work->answer, name, json);
    return ATTN_OK;
}

/* The numbers of the layers: a list, or for an encoder and a decoder an object of lists. */
static attn_status add_layers(struct model_work *work)
{
    const struct model_job *job = &work->job;
    const struct checkpoint_model *model = &work->version->model;
    struct chunks text = chunks_begin(work->call->out->arena);
    const bool has_two = model->stack_count == 2;
    for (size_t i = 0; i < job->part_count && !job->parts[i].is_cross; i++) {
        if (has_two)
            chunks_format(&text, "%s\"%s\":", i > 0 ? "," : "{", model->stacks[job->parts[i].stack].name);
        for (size_t l = 0; l < job->parts[i].layer_count; l++) {
            chunks_text(&text, l > 0 ? "," : "[");
            chunks_count(&text, job->parts[i].layers[l]);
        }
        chunks_text(&text, "]");
    }
    chunks_text(&text, has_two ? "}" : "");
    return add_fact(work, "layers", &text);
}

/* ,"words":"next", or their ids. */
static void write_given_words(const struct model_work *work, struct chunks *out)
{
    const struct model_given_words *given = &work->job.given;
    if (given->count == 0)
        return;
    chunks_text(out, given->ids == NULL ? ",\"words\":\"next\"" : ",\"words\":[");
    for (size_t i = 0; given->ids != NULL && i < given->count; i++) {
        chunks_text(out, i > 0 ? "," : "");
        chunks_count(out, (uint64_t)given->ids[i]);
    }
    chunks_text(out, given->ids != NULL ? "]" : "");
}

static attn_status add_effective(struct model_work *work)
{
    const attn_options *options = &work->request.common.request.options;
    const struct checkpoint_model *model = &work->version->model;
    struct chunks text = chunks_begin(work->call->out->arena);
    chunks_text(&text, "{\"model\":");
    chunks_json_string(&text, work->version->common.name);
    chunks_text(&text, ",\"model_type\":");
    chunks_json_string(&text, model->type);
    chunks_format(&text, ",\"layers\":%zu,\"compute\":\"%s\",\"kernel\":", model->stacks[0].layers,
                  envelope_compute_name(options->compute, options->bf16_products));
    chunks_json_string(&text, attn_kernel_name(work->call->in.runtime->kernel));
    write_given_words(work, &text);
    model_edits_write(&work->job, &text);
    chunks_text(&text, "}");
    return add_fact(work, "effective", &text);
}

static void write_diagnostics(const struct model_work *work, struct chunks *out)
{
    const struct index_lists *lists = &work->request.common.lists;
    const struct {
        const char *pointer;
        const struct index_list *list;
    } selections[] = {{"/options/layers", &work->request.layer_list},
                      {"/options/heads", &lists->heads},
                      {"/options/queries", &lists->queries},
                      {"/options/keys", &lists->keys}};
    char message[INDEX_HINT_MAX];
    size_t count = 0;
    chunks_text(out, "{");
    for (size_t i = 0; i < ARRAY_LENGTH(selections); i++)
        if (index_list_hint(selections[i].list, selections[i].pointer + strlen("/options/"), message))
            hints_add(selections[i].pointer, message, &count, out);
    model_batch_add_hints(&work->batch, &count, out);
    chunks_text(out, count > 0 ? "]}" : "}");
}

static attn_status add_facts(struct model_work *work)
{
    attn_arena *arena = work->call->out->arena;
    struct chunks lengths = chunks_begin(arena), tokens = chunks_begin(arena), diagnostics = chunks_begin(arena);
    attn_status status = add_layers(work);
    model_batch_write_lengths(&work->batch, &lengths);
    write_diagnostics(work, &diagnostics);
    if (status == ATTN_OK)
        status = add_fact(work, "lengths", &lengths);
    if (status == ATTN_OK)
        status = add_effective(work);
    if (status == ATTN_OK)
        status = add_fact(work, "diagnostics", &diagnostics);
    if (status != ATTN_OK || !model_batch_has_tokens(&work->batch))
        return status;
    model_batch_write_tokens(&work->batch, &tokens);
    return add_fact(work, "tokens", &tokens);
}

/* ---- words ---- */

static struct text_span spell(void *context, int64_t id)
{
    const struct attending *attending = context;
    return id >= 0 ? tokenizer_token(attending->work.version->tokenizer, (uint32_t)id) : (struct text_span){NULL, 0};
}

static struct text_span show(void *context, int64_t id)
{
    struct attending *attending = context;
    struct chunks *out = attending->work.call->out;
    struct text_span shown = {NULL, 0};
    if (id >= 0 && !tokenizer_show_id(attending->work.version->tokenizer, (uint32_t)id, false, out->arena,
                                      attending->shown, &shown))
        out->is_ok = false;
    return shown;
}

/* The words of predictions follow their ids, and are the same tensor. */
static void add_spellings(struct attending *attending)
{
    static const char *const names[][2] = {{"predictions.tokens", "predictions.shown"},
                                           {"logit_lens.tokens", "logit_lens.shown"}};
    struct model_work *work = &attending->work;
    const struct model_words *const words[] = {&work->job.predictions, &work->job.lens};
    for (size_t i = 0; i < 2; i++) {
        if (words[i]->ids == NULL || work->version->tokenizer == NULL)
            continue;
        words[i]->ids->spellings[0] = (struct model_spelling){names[i][0], spell, attending};
        words[i]->ids->spellings[1] = (struct model_spelling){names[i][1], show, attending};
    }
}

/* ---- steps ---- */

/* A WAV file is inputs.audio, and all options have their defaults. */
static attn_status decode_wav(struct call *call, struct model_request *request)
{
    attn_arena *arena = call->out->arena;
    attn_tensor *samples = attn_arena_take(arena, 1, sizeof *samples);
    if (samples == NULL)
        return attn_fail_no_memory(call->err);
    attn_error why;
    const attn_status status = wav_read(call->in.body, call->in.body_bytes, ATTN_F32, arena, samples, &why);
    if (status != ATTN_OK)
        return attn_fail(call->err, status, NULL, status == ATTN_ERR_VALUE ? "the body %s" : "%s", why.message);
    const struct model_inputs inputs = {.batch = 1, .audio = samples};
    return model_request_decode_options("{}", 2, &inputs, arena, request, call->err);
}

static attn_status decode_body(struct call *call, struct model_request *request)
{
    const struct call_input *in = &call->in;
    if (in->body_media == MEDIA_WAV)
        return decode_wav(call, request);
    if (in->body_media == MEDIA_SAFETENSORS)
        return model_request_decode_safetensors(in->body, in->body_bytes, call->out->arena, request, call->err);
    return model_request_decode(in->body, in->body_bytes, MODEL_REQUEST_ATTENTION, call->out->arena, request,
                                call->err);
}

static attn_status decode(struct call *call, void *context)
{
    struct attending *attending = context;
    attn_status status = rendering_read_options(call, PICTURE_OF_MODEL, &attending->options);
    if (status == ATTN_OK)
        status = decode_body(call, &attending->work.request);
    return status == ATTN_OK ? prepare_form(call, attending) : status;
}

static attn_status plan(struct call *call, void *context)
{
    struct attending *attending = context;
    struct model_work *work = &attending->work;
    const attn_status status = model_work_plan(work, call->in.answer_media == MEDIA_SAFETENSORS);
    if (status != ATTN_OK || !has_facts(call, &work->request))
        return status;
    add_spellings(attending);
    model_classes_name(work);
    model_times_name(work);
    return add_facts(work);
}

static attn_status weigh(struct call *call, void *context, struct weight *weight)
{
    struct attending *attending = context;
    size_t bytes;
    const attn_status status = weigh_form(call, attending, &bytes);
    *weight = model_work_weigh(&attending->work, bytes);
    return status;
}

static attn_status run(struct call *call, void *context)
{
    struct attending *attending = context;
    (void)call;
    return model_job_run(&attending->work.job);
}

static attn_status render(struct call *call, void *context)
{
    struct attending *attending = context;
    if (is_picture(call)) {
        model_picture_fill(&attending->picture);
        return rendering_write_picture(call, &attending->picture.picture);
    }
    if (is_view(&attending->work.request))
        model_view_write(&attending->view, call->in.runtime, call->out);
    else
        model_answer_write(&attending->work.answer, call->in.answer_media, call->in.runtime, call->out);
    return call_finish(call);
}

attn_status attend_model(struct call *call)
{
    static const struct pipeline steps = {decode, plan, weigh, run, render};
    /* In the arena: a part of the answer that is written later refers to it. */
    struct attending *attending = attn_arena_take_zeroed(call->out->arena, 1, sizeof *attending);
    if (attending == NULL)
        return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the request");
    const attn_status status = models_find(call->in.models, call->in.names[0], call);
    if (status != ATTN_OK)
        return status;
    attending->work.call = call;
    attending->work.version = model_version_of(call->version);
    return model_work_end(&attending->work, pipeline_run(&steps, call, attending));
}
