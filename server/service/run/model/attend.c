/* attend.c: a request to a whole model from body text to answer text. */
#include "service/endpoints.h"

#include <string.h>

#include "base/array.h"
#include "codec/answer/forms.h"
#include "codec/bytes/bound.h"
#include "codec/bytes/wav.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/model/list.h"
#include "service/run/model/item.h"
#include "service/run/work.h"

/* ---- what services of models share ---- */

/* generation NULL: the batch has its last lengths. */
static void begin_job(struct model_work *work, struct model_generation *generation, struct outcome *outcome)
{
    struct call *call = work->call;
    work->answer = (struct model_answer){.form = work->request.common.form, .digits = work->request.common.digits};
    work->job = (struct model_job){.version = work->version,
                                   .request = &work->request,
                                   .prepared = layer_keeper_prepared(call->in.layers),
                                   .runtime = call->in.runtime,
                                   .progress = call->in.progress,
                                   .outcome = {.arena = outcome->arena, .err = outcome->err},
                                   .items = work->batch.items,
                                   .generation = generation,
                                   .is_binary = work->is_binary,
                                   .answer = &work->answer};
}

static bool plan_job(struct model_work *work, struct model_generation *generation, struct outcome *outcome)
{
    begin_job(work, generation, outcome);
    return outcome_note(outcome, model_job_plan(&work->job));
}

/* Before there is a plan, because a plan makes room for each of them. */
static bool has_room_for_new_tokens(const struct model_work *work, struct outcome *outcome)
{
    const struct model_request *request = &work->request;
    const size_t most = work->call->in.limits.result_bytes, bytes = model_generation_bound(work->version, request);
    return request->new_tokens == 0 || bytes <= most ||
           outcome_fail(outcome, ATTN_ERR_TOO_LARGE, "/options/new_tokens",
                        "options.new_tokens is %zu for each of %zu items, which can be %zu bytes of the answer; this "
                        "server answers at most %zu: ask for fewer tokens, or send fewer items",
                        request->new_tokens, request->inputs.batch, bytes, most);
}

bool model_work_open(struct model_work *work, bool is_binary, struct outcome *outcome)
{
    const bool is_ok = outcome_note(outcome, model_batch_make(&work->batch, work->version, &work->request,
                                                              MODEL_REQUEST_ATTENTION, outcome->arena, outcome->err));
    work->is_binary = is_binary || work->request.common.form == TENSOR_FORM_BASE64;
    begin_job(work, NULL, outcome);
    return is_ok;
}

bool model_work_plan(struct model_work *work, bool is_binary, struct outcome *outcome)
{
    const struct model_request *request = &work->request;
    const bool generates = request->new_tokens > 0;
    const bool is_ok = has_room_for_new_tokens(work, outcome) && model_work_open(work, is_binary, outcome) &&
                       (!generates || model_generation_begin(&work->generation, &work->batch, request, outcome));
    work->planned = attn_arena_mark_here(outcome->arena);
    return is_ok && plan_job(work, generates ? &work->generation : NULL, outcome);
}

bool model_work_generate(struct model_work *work, struct outcome *outcome)
{
    attn_arena_release(outcome->arena, work->planned);
    return outcome_note(outcome, model_job_generate(&work->job)) && plan_job(work, NULL, outcome);
}

bool model_work_run(struct call *call, void *context, struct outcome *outcome)
{
    struct model_work *work = context;
    const bool is_ok = outcome_note(outcome, model_job_run(&work->job));
    if (is_ok && call->in.models != NULL)
        models_tell_prepared(call->in.models, work->version);
    return is_ok;
}

struct weight model_work_weigh(const struct model_work *work, size_t answer_bytes)
{
    const struct model_output *largest = model_answer_largest(&work->answer);
    return (struct weight){.answer_bytes = answer_bytes,
                           .run_bytes = work->job.run_bytes,
                           .time_flops = work->job.time_flops,
                           .largest = largest != NULL ? largest->name : model_result_name(MODEL_GENERATED),
                           .largest_is_map = largest != NULL};
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

static bool is_view(const struct model_request *request)
{
    return request->common.view != ENVELOPE_VIEW_NONE;
}

/* Whether the answer has outputs and facts, rather than a picture or a view. */
static bool has_facts(const struct call *call, const struct model_request *request)
{
    return !media_is_picture(call->in.answer_media) && !is_view(request);
}

static bool prepare_picture(struct attending *attending, bool has_target, struct outcome *outcome)
{
    const struct checkpoint_model *model = &attending->work.version->model;
    if (!outcome_note(outcome, model_picture_choose_part(&attending->options, model->stack_count == 2, has_target,
                                                         &attending->part, outcome->err)))
        return false;
    const struct model_stack *stack = &model->stacks[model_part_query_stack(attending->part)];
    return outcome_note(outcome,
                        model_picture_prepare(&attending->options, stack->layers, stack->blocks[0].facts.dims.heads,
                                              &attending->work.request, outcome->arena, outcome->err));
}

/* Pictures and views narrow the request, which is not tokenized yet, to what they show. */
static bool prepare_form(struct call *call, struct attending *attending, struct outcome *outcome)
{
    struct model_request *request = &attending->work.request;
    const bool has_target = model_batch_has_target(attending->work.version, &request->inputs);
    if (media_is_picture(call->in.answer_media))
        return prepare_picture(attending, has_target, outcome);
    if (!is_view(request))
        return true;
    if (call->in.answer_media != MEDIA_JSON)
        return outcome_fail(outcome, ATTN_ERR_FIELD, "/options/view",
                            "options.view is JSON, and the request accepts another type alone");
    return outcome_note(
        outcome,
        model_view_prepare(request, attending->work.version->model.stack_count == 2 && has_target, outcome->err));
}

/* The words of an item. Positions stand for the words of a model without a tokenizer, and of an image. */
static void label_stack(const struct model_batch *batch, size_t item, size_t stack, struct outcome *outcome,
                        struct labels *labels)
{
    const struct model_sequence *sequence = &batch->items[item].of[stack];
    *labels = (struct labels){.count = sequence->count};
    if (sequence->ids == NULL || batch->version->tokenizer == NULL)
        return;
    const char **texts = outcome_take(outcome, sequence->count, sizeof *texts);
    for (size_t i = 0; i < sequence->count && texts != NULL; i++)
        if ((texts[i] = model_batch_label(batch->shown[stack][item][i], outcome->arena)) == NULL)
            outcome_no_memory(outcome);
    labels->texts = texts;
}

static bool shows_sweep(const struct attending *attending)
{
    return media_is_picture(attending->work.call->in.answer_media) &&
           model_job_wants(&attending->work.job, MODEL_SWEEP);
}

/* Of maps, the first item is the one to show. */
static bool label_item(struct attending *attending, struct outcome *outcome)
{
    const struct model_batch *batch = &attending->work.batch;
    const size_t item = shows_sweep(attending) ? attending->options.batch : 0;
    for (size_t stack = 0; stack < 2 && item < attending->work.request.inputs.batch; stack++)
        label_stack(batch, item, stack, outcome, &attending->labels[stack]);
    return !outcome_has_failed(outcome);
}

static bool make_picture(struct attending *attending, struct outcome *outcome)
{
    const struct model_work *work = &attending->work;
    if (shows_sweep(attending))
        return model_sweep_picture(&attending->work.job, &attending->options, attending->labels, &attending->picture) ||
               outcome_note(outcome, work->job.outcome.status);
    return outcome_note(outcome,
                        model_picture_make(&attending->options, attending->part, &work->answer, attending->labels,
                                           outcome->arena, &attending->picture, outcome->err));
}

/* *bytes is the most that the answer and its writing take. */
static bool weigh_form(struct call *call, struct attending *attending, struct outcome *outcome, size_t *bytes)
{
    const struct model_work *work = &attending->work;
    *bytes = model_answer_bound(&work->answer, call->in.answer_media);
    if (has_facts(call, &work->request))
        return true;
    if (!label_item(attending, outcome))
        return false;
    if (media_is_picture(call->in.answer_media))
        return make_picture(attending, outcome) &&
               rendering_weigh_picture(call, &attending->picture.picture, outcome, bytes);
    attending->view = (struct model_view){.request = &work->request,
                                          .answer = &work->answer,
                                          .labels = {attending->labels[0], attending->labels[1]},
                                          .heads = work->version->model.stacks[0].blocks[0].facts.dims.heads};
    *bytes = model_view_bound(&attending->view);
    return true;
}

/* ---- facts beside the outputs ---- */

/* Joins the text and adds it as a fact. */
static void add_fact(struct model_work *work, struct outcome *outcome, const char *name, struct chunks *text)
{
    const char *json = chunks_join(text);
    if (json != NULL)
        model_answer_add_fact(&work->answer, name, json);
    else
        outcome_no_memory(outcome);
}

/* The numbers of the layers: a list, or for an encoder and a decoder an object of lists. */
static void add_layers(struct model_work *work, struct outcome *outcome)
{
    const struct model_job *job = &work->job;
    const struct checkpoint_model *model = &work->version->model;
    struct chunks text = chunks_begin(outcome->arena);
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
    add_fact(work, outcome, "layers", &text);
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

static void add_effective(struct model_work *work, struct outcome *outcome)
{
    const attn_options *options = &work->request.common.request.options;
    const struct checkpoint_model *model = &work->version->model;
    struct chunks text = chunks_begin(outcome->arena);
    chunks_text(&text, "{\"model\":");
    chunks_json_string(&text, work->version->common.name);
    chunks_text(&text, ",\"model_type\":");
    chunks_json_string(&text, model->type);
    chunks_format(&text, ",\"layers\":%zu,\"compute\":\"%s\",\"kernel\":", model->stacks[0].layers,
                  envelope_compute_name(options->compute, options->bf16_products));
    chunks_json_string(&text, attn_kernel_name(work->call->in.runtime->kernel));
    write_given_words(work, &text);
    if (work->request.new_tokens > 0)
        chunks_format(&text, ",\"new_tokens\":%zu", work->request.new_tokens);
    model_edits_write(&work->job, &text);
    model_sweep_write(&work->job, &text);
    model_metric_write(&work->job, &text);
    if (work->request.results >> MODEL_INTEGRATED & 1)
        chunks_format(&text, ",\"steps\":%zu,\"baseline\":\"%s\"", work->request.steps,
                      model_baseline_name((model_baseline)work->request.baseline));
    chunks_text(&text, "}");
    add_fact(work, outcome, "effective", &text);
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

bool model_work_add_facts(struct model_work *work, struct outcome *outcome)
{
    struct chunks lengths = chunks_begin(outcome->arena), tokens = lengths, diagnostics = lengths, generated = lengths;
    add_layers(work, outcome);
    model_batch_write_lengths(&work->batch, &lengths);
    add_fact(work, outcome, "lengths", &lengths);
    add_effective(work, outcome);
    write_diagnostics(work, &diagnostics);
    add_fact(work, outcome, "diagnostics", &diagnostics);
    if (model_batch_has_tokens(&work->batch)) {
        model_batch_write_tokens(&work->batch, &tokens);
        add_fact(work, outcome, "tokens", &tokens);
    }
    if (work->request.new_tokens > 0 && work->job.generation == NULL) {
        model_generation_write(&work->generation, &generated);
        add_fact(work, outcome, model_result_name(MODEL_GENERATED), &generated);
    }
    return !outcome_has_failed(outcome);
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
        for (size_t s = 0; s < 2; s++)
            words[i]->ids->spellings[s] = (struct model_spelling){
                names[i][s], s == 0 ? spell : show, attending,
                tokenizer_words_bound(work->version->tokenizer, s == 1, work->request.predictions_k)};
    }
}

/* ---- steps ---- */

/* A WAV file is inputs.audio, and all options have their defaults. */
static bool decode_wav(const struct call_input *in, struct outcome *outcome, struct model_request *request)
{
    attn_tensor *samples = outcome_take(outcome, 1, sizeof *samples);
    attn_error why;
    if (samples == NULL)
        return false;
    const attn_status status = wav_read(in->body, in->body_bytes, ATTN_F32, outcome->arena, samples, &why);
    if (status != ATTN_OK)
        return outcome_fail(outcome, status, NULL, status == ATTN_ERR_VALUE ? "the body %s" : "%s", why.message);
    const struct model_inputs inputs = {.batch = 1, .audio = samples};
    return outcome_note(outcome, model_request_decode_options("{}", 2, &inputs, outcome->arena, request, outcome->err));
}

bool model_work_decode(struct model_work *work, model_request_kind kind, struct outcome *outcome)
{
    const struct call_input *in = &work->call->in;
    return outcome_note(outcome,
                        (in->body_media == MEDIA_SAFETENSORS ? model_request_decode_safetensors : model_request_decode)(
                            in->body, in->body_bytes, kind, outcome->arena, &work->request, outcome->err));
}

static bool decode_body(struct model_work *work, struct outcome *outcome)
{
    return work->call->in.body_media == MEDIA_WAV ? decode_wav(&work->call->in, outcome, &work->request)
                                                  : model_work_decode(work, MODEL_REQUEST_ATTENTION, outcome);
}

static bool decode(struct call *call, void *context, struct outcome *outcome)
{
    struct attending *attending = context;
    struct model_request *request = &attending->work.request;
    return rendering_read_options(call, PICTURE_OF_MODEL, outcome, &attending->options) &&
           decode_body(&attending->work, outcome) &&
           (request->new_tokens == 0 || model_generation_check(attending->work.version, request, outcome)) &&
           prepare_form(call, attending, outcome);
}

static bool add_names_and_facts(struct call *call, struct attending *attending, struct outcome *outcome)
{
    struct model_work *work = &attending->work;
    if (!has_facts(call, &work->request))
        return true;
    add_spellings(attending);
    model_classes_name(work);
    model_times_name(work);
    return model_work_add_facts(work, outcome);
}

static bool plan(struct call *call, void *context, struct outcome *outcome)
{
    struct attending *attending = context;
    return model_work_plan(&attending->work, call->in.answer_media == MEDIA_SAFETENSORS, outcome) &&
           add_names_and_facts(call, attending, outcome);
}

static bool weigh(struct call *call, void *context, struct outcome *outcome, struct weight *weight)
{
    struct attending *attending = context;
    size_t bytes;
    const bool is_ok = weigh_form(call, attending, outcome, &bytes);
    *weight = model_work_weigh(
        &attending->work,
        bound_add(bytes, 1, model_generation_bound(attending->work.version, &attending->work.request)));
    return is_ok;
}

/* The form of the answer is made again for the ids that were found. */
static bool run(struct call *call, void *context, struct outcome *outcome)
{
    struct attending *attending = context;
    size_t bytes;
    if (attending->work.request.new_tokens > 0 &&
        !(model_work_generate(&attending->work, outcome) && add_names_and_facts(call, attending, outcome) &&
          weigh_form(call, attending, outcome, &bytes)))
        return false;
    return model_work_run(call, context, outcome);
}

static bool render(struct call *call, void *context, struct outcome *outcome)
{
    struct attending *attending = context;
    if (media_is_picture(call->in.answer_media)) {
        if (shows_sweep(attending))
            model_sweep_picture_fill(&attending->work.job, &attending->picture);
        else
            model_picture_fill(&attending->picture);
        return rendering_write_picture(call, &attending->picture.picture, outcome);
    }
    if (is_view(&attending->work.request))
        model_view_write(&attending->view, call->in.runtime, call->out);
    else
        model_answer_write(&attending->work.answer, call->in.answer_media, call->in.runtime, call->out);
    return true;
}

attn_status attend_model(struct call *call)
{
    static const struct pipeline steps = {decode, plan, weigh, run, render};
    /* In the arena: a part of the answer that is written later refers to it. */
    struct attending *attending = attn_arena_take_zeroed(call->out->arena, 1, sizeof *attending);
    if (attending == NULL)
        return attn_fail_no_memory(call->err);
    const attn_status status = models_find(call->in.models, call->in.names[0], call);
    if (status != ATTN_OK)
        return status;
    attending->work.call = call;
    attending->work.version = model_version_of(call->version);
    return model_work_end(&attending->work, pipeline_run(&steps, call, attending));
}
