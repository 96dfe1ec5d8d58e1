/* attend_model.c: a request to a whole model from body text to answer text. */
#include "service/models/attend_model.h"

#include <string.h>

#include "base/clock.h"
#include "codec/bytes/stream.h"
#include "service/layers/keeper.h"
#include "service/limits.h"
#include "service/models/model_batch.h"
#include "service/models/model_rendering.h"
#include "service/models/models.h"
#include "service/models/run/model_plan.h"
#include "service/models/run/model_run.h"

/* One request while it is answered. */
struct attending {
    struct call *call;
    struct model_version *version;
    struct model_request request;
    struct model_batch batch;
    struct model_answer answer;
    struct model_job job;
    struct model_rendering rendering;
};

/* ---- facts beside the outputs ---- */

/* Joins the text and adds it as a fact. */
static attn_status add_fact(struct attending *attending, const char *name, struct chunks *text)
{
    const char *json = chunks_join(text);
    if (json == NULL)
        return attn_fail(attending->call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the answer");
    model_answer_add_fact(&attending->answer, name, json);
    return ATTN_OK;
}

/* The numbers of the layers: a list, or for an encoder and a decoder an object of lists. */
static attn_status add_layers(struct attending *attending)
{
    const struct model_job *job = &attending->job;
    const struct checkpoint_model *model = &attending->version->model;
    struct chunks text = chunks_begin(attending->call->out->arena);
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
    return add_fact(attending, "layers", &text);
}

static attn_status add_effective(struct attending *attending)
{
    const attn_options *options = &attending->request.common.request.options;
    const struct checkpoint_model *model = &attending->version->model;
    struct chunks text = chunks_begin(attending->call->out->arena);
    chunks_text(&text, "{\"model\":");
    chunks_json_string(&text, attending->version->name);
    chunks_text(&text, ",\"model_type\":");
    chunks_json_string(&text, model->type);
    chunks_format(&text, ",\"layers\":%zu,\"compute\":\"%s\",\"kernel\":", model->stacks[0].layers,
                  attn_dtype_name(options->compute));
    chunks_json_string(&text, attn_kernel_name(attending->call->in.runtime->kernel));
    chunks_text(&text, "}");
    return add_fact(attending, "effective", &text);
}

static attn_status add_facts(struct attending *attending)
{
    attn_arena *arena = attending->call->out->arena;
    struct chunks lengths = chunks_begin(arena), tokens = chunks_begin(arena), diagnostics = chunks_begin(arena);
    attn_status status = add_layers(attending);
    model_batch_write_lengths(&attending->batch, &lengths);
    chunks_text(&diagnostics, "{");
    (void)model_batch_write_hints(&attending->batch, &diagnostics);
    chunks_text(&diagnostics, "}");
    if (status == ATTN_OK)
        status = add_fact(attending, "lengths", &lengths);
    if (status == ATTN_OK)
        status = add_effective(attending);
    if (status == ATTN_OK)
        status = add_fact(attending, "diagnostics", &diagnostics);
    if (status != ATTN_OK || !model_batch_has_tokens(&attending->batch))
        return status;
    model_batch_write_tokens(&attending->batch, &tokens);
    return add_fact(attending, "tokens", &tokens);
}

/* ---- words ---- */

static const char *spell(const void *context, int64_t id)
{
    const struct model_version *version = context;
    return id >= 0 ? tokenizer_token(version->tokenizer, (uint32_t)id).at : NULL;
}

/* The words of predictions follow their ids, and are the same tensor. */
static void add_spelling(struct attending *attending)
{
    static const char *const names[] = {"predictions.tokens", "logit_lens.tokens"};
    const struct model_words *const words[] = {&attending->job.predictions, &attending->job.lens};
    for (size_t i = 0; i < 2; i++)
        for (size_t o = 0; o < attending->answer.output_count && attending->version->tokenizer != NULL; o++) {
            struct model_output *output = &attending->answer.outputs[o];
            if (output != words[i]->ids)
                continue;
            output->spelled_name = names[i];
            output->spell = spell;
            output->spell_context = attending->version;
        }
}

/* ---- steps ---- */

static attn_status decode(struct attending *attending)
{
    struct call *call = attending->call;
    attn_arena *arena = call->out->arena;
    attn_status status = model_rendering_begin(call, &attending->rendering);
    if (status == ATTN_OK)
        status = model_request_decode(call->in.body, call->in.body_bytes, MODEL_REQUEST_ATTENTION, arena,
                                      &attending->request, call->err);
    if (status == ATTN_OK)
        status = model_rendering_prepare(call, &attending->rendering, &attending->version->model, &attending->request);
    if (status == ATTN_OK)
        status = model_batch_make(&attending->batch, attending->version, &attending->request, MODEL_REQUEST_ATTENTION,
                                  arena, call->err);
    attending->answer =
        (struct model_answer){.form = attending->request.common.form, .digits = attending->request.common.digits};
    return status;
}

static attn_status plan(struct attending *attending)
{
    struct call *call = attending->call;
    attending->job = (struct model_job){.version = attending->version,
                                        .request = &attending->request,
                                        .prepared = layer_keeper_prepared(call->in.layers),
                                        .runtime = call->in.runtime,
                                        .arena = call->out->arena,
                                        .err = call->err,
                                        .items = attending->batch.items,
                                        .is_binary = call->in.answer_media == MEDIA_SAFETENSORS ||
                                                     attending->request.common.form == TENSOR_FORM_BASE64,
                                        .answer = &attending->answer};
    attn_status status = model_job_plan(&attending->job);
    if (status != ATTN_OK || !model_rendering_has_facts(call, &attending->request))
        return status;
    add_spelling(attending);
    return add_facts(attending);
}

static attn_status check_limits(struct attending *attending)
{
    struct call *call = attending->call;
    const struct model_output *largest = model_answer_largest(&attending->answer);
    size_t bytes;
    attn_status status = model_rendering_weigh(call, &attending->rendering, &attending->batch, &attending->request,
                                               &attending->answer, &bytes);
    if (status != ATTN_OK)
        return status;
    const struct weight weight = {.answer_bytes = bytes,
                                  .run_bytes = attending->job.run_bytes,
                                  .time_flops = attending->job.time_flops,
                                  .largest = largest != NULL ? largest->name : "",
                                  .largest_is_map = true};
    call->out->may_defer =
        call->out->may_defer && weight.answer_bytes >= STREAM_FROM_BYTES && call->in.answer_media == MEDIA_JSON;
    call->flops = attending->job.time_flops;
    return limits_check(call, &weight);
}

static attn_status attend(struct attending *attending)
{
    struct call *call = attending->call;
    double since = clock_now_ms();
    attn_status status = decode(attending);
    if (status == ATTN_OK)
        status = plan(attending);
    if (status == ATTN_OK)
        status = check_limits(attending);
    call->times.parse_ms = clock_lap_ms(&since);
    if (status == ATTN_OK)
        status = model_job_run(&attending->job);
    call->times.compute_ms = clock_lap_ms(&since);
    if (status == ATTN_OK)
        status = model_rendering_write(call, &attending->rendering, &attending->request, &attending->answer);
    call->times.write_ms = clock_lap_ms(&since);
    return limits_explain(call, status);
}

attn_status attend_model(struct call *call)
{
    /* In the arena: a part of the answer that is written later refers to it. */
    struct attending *attending = attn_arena_take_zeroed(call->out->arena, 1, sizeof *attending);
    if (attending == NULL)
        return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the request");
    attending->call = call;
    attn_status status = models_find(call->in.models, call->in.names[0], call, &attending->version);
    if (status == ATTN_OK)
        status = attend(attending);
    model_version_release(attending->version);
    return status;
}
