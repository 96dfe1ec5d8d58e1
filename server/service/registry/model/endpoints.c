/* endpoints.c: describes the models that the server has. */
#include "service/endpoints.h"

#include <string.h>

#include "service/registry/layer/keeper.h"
#include "service/registry/model/list.h"

/* ---- what a model can return ---- */

enum {
    FOR_WORDS = 1,
    FOR_HEAD = 2,
    FOR_CLASSES = 4,
    FOR_POOLING = 8,
    FOR_EXPERTS = 16,
    FOR_AUDIO = 32,
    FOR_GENERATION = 64,
    LABELS_MAX = 1000
};

/* The values of options.return, and what a model needs for each. With a decoder, an answer has one output of each part. */
static const struct {
    const char *name;
    unsigned needs;
} returns[] = {
    {"attention", 0},
    {"hidden", 0},
    {"output", 0},
    {"features", FOR_AUDIO},
    {"logits", FOR_HEAD},
    {"entropy", 0},
    {"contribution", 0},
    {"attention_mean", 0},
    {"rollout", 0},
    {"head_scores", 0},
    {"experts", FOR_EXPERTS},
    {"predictions", FOR_HEAD | FOR_WORDS},
    {"logit_lens", FOR_HEAD | FOR_WORDS},
    {"word_scores", FOR_HEAD | FOR_WORDS},
    {"attribution", FOR_HEAD | FOR_WORDS},
    {"sweep", FOR_HEAD | FOR_WORDS},
    {"classes", FOR_CLASSES},
    {"embedding", FOR_POOLING},
    {"word_times", FOR_AUDIO},
    {"generated", FOR_HEAD | FOR_WORDS | FOR_GENERATION},
};

static bool has_classes(const struct checkpoint_model *model)
{
    return model->has_head && model->head.is_of_classes;
}

static bool has_experts(const struct checkpoint_model *model)
{
    bool has = false;
    for (size_t i = 0; i < model->stacks[0].block_count; i++)
        has = has || model->stacks[0].blocks[i].facts.experts > 0;
    return has;
}

static void write_returns(const struct model_version *version, struct chunks *out)
{
    const struct checkpoint_model *model = &version->model;
    const unsigned has = (model->has_head ? FOR_HEAD : 0) | (has_classes(model) ? FOR_CLASSES : FOR_WORDS) |
                         (version->pooling.is_there ? FOR_POOLING : 0) | (has_experts(model) ? FOR_EXPERTS : 0) |
                         (model->stacks[0].embedding.second_kernel.data != NULL ? FOR_AUDIO : 0) |
                         (model->stacks[model->stack_count - 1].is_causal ? FOR_GENERATION : 0);
    const char *separator = "";
    for (size_t i = 0; i < sizeof returns / sizeof *returns; i++) {
        if ((returns[i].needs & ~has) != 0)
            continue;
        chunks_format(out, "%s\"%s\"", separator, returns[i].name);
        separator = ",";
    }
}

/* ---- one model ---- */

static const char *kind_of(const struct checkpoint_model *model)
{
    if (model->stacks[0].embedding.second_kernel.data != NULL)
        return "audio";
    if (model->stack_count > 1)
        return "encoder-decoder";
    if (model->stacks[0].embedding.words.data == NULL)
        return "image";
    return model->stacks[0].is_causal ? "decoder" : "encoder";
}

static void write_count_or_null(struct chunks *out, const char *name, size_t count)
{
    if (count > 0)
        chunks_format(out, ",\"%s\":%zu", name, count);
    else
        chunks_format(out, ",\"%s\":null", name);
}

static void write_names(const char *member, const char *const *names, size_t count, struct chunks *out)
{
    chunks_format(out, ",\"%s\":[", member);
    for (size_t i = 0; i < count; i++) {
        chunks_text(out, i > 0 ? "," : "");
        chunks_json_string(out, names[i]);
    }
    chunks_text(out, "]");
}

static void write_facts(const struct model_version *version, struct chunks *out)
{
    const struct checkpoint_model *model = &version->model;
    const struct model_stack *first = &model->stacks[0], *last = &model->stacks[model->stack_count - 1];
    const struct model_embedding *embedding = &first->embedding;
    const attn_dims *dims = &first->blocks[0].facts.dims;
    chunks_text(out, ",\"type\":");
    chunks_json_string(out, model->type);
    chunks_text(out, ",\"architecture\":");
    chunks_json_string(out, model->architecture);
    chunks_format(out, ",\"kind\":\"%s\",\"layers\":%zu", kind_of(model), first->layers);
    if (last != first)
        chunks_format(out, ",\"decoder_layers\":%zu", last->layers);
    chunks_format(out, ",\"heads\":%zu", dims->heads);
    if (last != first)
        chunks_format(out, ",\"decoder_heads\":%zu", last->blocks[0].facts.dims.heads);
    chunks_format(out, ",\"d_model\":%zu", dims->d_query);
    const attn_tensor *words = &last->embedding.words;
    write_count_or_null(out, "vocabulary", words->data != NULL ? words->shape[0] : 0);
    write_count_or_null(out, "longest", model->longest);
    if (embedding->second_kernel.data != NULL)
        chunks_format(out, ",\"mels\":%zu,\"frames\":%zu", embedding->kernel.shape[1], model_audio_frames(embedding));
    else if (embedding->words.data == NULL)
        chunks_format(out, ",\"image\":%zu", embedding->image);
    chunks_format(out, ",\"parameters\":%zu,\"dtype\":\"%s\",\"bytes\":%zu,\"tokenizer\":%s", model->parameters,
                  attn_dtype_name(first->blocks[0].facts.dtype), version->files.bytes + version->tokenizer_bytes,
                  version->tokenizer != NULL ? "true" : "false");
    if (version->tokenizer_reason[0] != '\0') {
        chunks_text(out, ",\"tokenizer_reason\":");
        chunks_json_string(out, version->tokenizer_reason);
    }
    chunks_text(out, ",\"returns\":[");
    write_returns(version, out);
    chunks_text(out, "]");
    if (has_classes(model) && !model->head.is_of_spans && model->head.words <= LABELS_MAX) {
        chunks_text(out, ",\"labels\":");
        model_write_labels(&model->head, out);
    }
    write_names("ignored", model->ignored, model->ignored_count, out);
    write_names("absent", model->absent, model->absent_count, out);
}

/* Writes the model. Releases the row's version. */
static void write_row(struct registry_row *row, struct chunks *out)
{
    static const char *const states[] = {"absent", "ready", "loading", "broken", "unloaded"};
    chunks_text(out, "{\"name\":");
    chunks_json_string(out, row->name);
    chunks_format(out, ",\"state\":\"%s\"", states[row->state]);
    if (row->reason[0] != '\0') {
        chunks_text(out, ",\"reason\":");
        chunks_json_string(out, row->reason);
    }
    if (row->model != NULL)
        write_facts(row->model, out);
    chunks_text(out, "}");
    version_release(row->version);
}

attn_status model_list_one(struct call *call)
{
    struct registry_row row;
    models_look(call->in.models, call->in.names[0], &row);
    if (row.state == REGISTRY_ABSENT)
        return models_find(call->in.models, call->in.names[0], call);
    write_row(&row, call->out);
    return call_finish(call);
}

attn_status model_list_all(struct call *call)
{
    struct registry *registry = layer_keeper_registry(call->in.layers);
    struct registry_row row = {.name = ""};
    size_t count = 0;
    chunks_text(call->out, "{\"models\":[");
    while (registry_page(registry, KIND_MODEL, row.name, 1, &row) == 1) {
        chunks_text(call->out, count++ > 0 ? "," : "");
        write_row(&row, call->out);
    }
    chunks_format(call->out, "],\"count\":%zu}", count);
    return call_finish(call);
}
