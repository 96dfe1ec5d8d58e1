/* attend.c: a request to a whole model from body text to answer text. */
#include "service/endpoints.h"

#include <string.h>

#include "base/array.h"
#include "codec/answer/hints.h"
#include "service/registry/model/list.h"
#include "service/run/model/rendering.h"
#include "service/run/model/work.h"
#include "service/run/pipeline.h"
#include "service/run/rendering.h"

/* One request while it is answered. */
struct attending {
    struct model_work work;
    struct model_rendering rendering;
    char shown[TOKENIZER_SHOWN_MAX]; /* of one predicted word */
};

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

static attn_status decode(struct call *call, void *context)
{
    struct attending *attending = context;
    struct model_work *work = &attending->work;
    attn_status status = rendering_read_options(call, PICTURE_OF_MODEL, &attending->rendering.options);
    if (status == ATTN_OK)
        status = model_request_decode(call->in.body, call->in.body_bytes, MODEL_REQUEST_ATTENTION, call->out->arena,
                                      &work->request, call->err);
    if (status == ATTN_OK)
        status = model_rendering_prepare(call, &attending->rendering, &work->version->model, &work->request);
    return status;
}

static attn_status plan(struct call *call, void *context)
{
    struct attending *attending = context;
    struct model_work *work = &attending->work;
    const attn_status status = model_work_plan(work, call->in.answer_media == MEDIA_SAFETENSORS);
    if (status != ATTN_OK || !model_rendering_has_facts(call, &work->request))
        return status;
    add_spellings(attending);
    return add_facts(work);
}

static attn_status weigh(struct call *call, void *context, struct weight *weight)
{
    struct attending *attending = context;
    struct model_work *work = &attending->work;
    size_t bytes;
    const attn_status status =
        model_rendering_weigh(call, &attending->rendering, &work->batch, &work->request, &work->answer, &bytes);
    *weight = model_work_weigh(work, bytes);
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
    return model_rendering_write(call, &attending->rendering, &attending->work.request, &attending->work.answer);
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
