/* plan.c: lays out the outputs of a model, and weighs its run. */
#include "service/run/model/item.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/answer/reduce.h"

enum { NAME_BYTES = 64 };

static attn_status fail_memory(const struct model_job *job)
{
    return attn_fail(job->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the outputs of the model");
}

static bool wants(const struct model_job *job, model_result_kind kind)
{
    return job->request->results >> kind & 1;
}

static size_t longest(const struct model_job *job, size_t stack)
{
    size_t count = 0;
    for (size_t i = 0; i < job->request->inputs.batch; i++)
        if (job->items[i].of[stack].count > count)
            count = job->items[i].of[stack].count;
    return count;
}

/* ---- parts ---- */

static attn_status choose_layers(struct model_job *job, struct model_part *part, size_t layers)
{
    attn_selection made = job->request->layers, *const given = &made;
    attn_status status = index_list_settle(&job->request->layer_list, "layers", layers, job->arena, &made, job->err);
    if (status != ATTN_OK)
        return status;
    const bool is_all = attn_selects_all(given);
    const size_t count = is_all ? layers : given->count;
    for (size_t i = 0; i < count && !is_all; i++)
        if (attn_selected(given, i) >= layers)
            return attn_fail(job->err, ATTN_ERR_VALUE, "/options/layers",
                             "options.layers has %zu; the last layer of the model is %zu", attn_selected(given, i),
                             layers - 1);
    if (count > layers)
        return attn_fail(job->err, ATTN_ERR_VALUE, "/options/layers", "options.layers selects %zu of %zu", count,
                         layers);
    size_t *chosen = attn_arena_take(job->arena, count, sizeof *chosen);
    if (chosen == NULL)
        return fail_memory(job);
    for (size_t i = 0; i < count; i++) {
        chosen[i] = is_all ? i : attn_selected(given, i);
        for (size_t earlier = 0; earlier < i; earlier++)
            if (chosen[earlier] == chosen[i])
                return attn_fail(job->err, ATTN_ERR_VALUE, "/options/layers", "options.layers has %zu twice",
                                 chosen[i]);
    }
    part->layers = chosen;
    part->layer_count = count;
    return ATTN_OK;
}

/* The part's own selections: its lengths may differ from those of another part. */
static attn_status choose(struct model_job *job, struct model_part *part)
{
    const struct model_stack *stack = &job->version->model.stacks[part->stack];
    struct model_selections *shown = &job->answer->shown[part - job->parts];
    attn_options options = job->request->common.request.options;
    attn_status status = choose_layers(job, part, stack->layers);
    if (status == ATTN_OK)
        status = index_lists_settle(&job->request->common.lists, stack->blocks[0].facts.dims.heads,
                                    part->longest_queries, part->longest_keys, job->arena, &options, job->err);
    *shown = (struct model_selections){.layers = {.items = part->layers, .count = part->layer_count},
                                       .heads = options.heads,
                                       .queries = options.queries,
                                       .keys = options.keys};
    part->shown = shown;
    return status;
}

static attn_status add_part(struct model_job *job, const char *prefix, size_t stack, bool is_cross)
{
    struct model_part *part = &job->parts[job->part_count++];
    const size_t q_len = longest(job, stack);
    *part = (struct model_part){.prefix = prefix,
                                .stack = stack,
                                .is_cross = is_cross,
                                .longest_queries = q_len,
                                .longest_keys = is_cross ? longest(job, 0) : q_len};
    return choose(job, part);
}

static attn_status make_parts(struct model_job *job)
{
    const struct checkpoint_model *model = &job->version->model;
    const bool has_two = model->stack_count == 2;
    job->last_stack = has_two && longest(job, 1) > 0 ? 1 : 0;
    attn_status status = add_part(job, has_two ? "encoder_" : "", 0, false);
    if (status == ATTN_OK && job->last_stack == 1)
        status = add_part(job, "decoder_", 1, false);
    if (status == ATTN_OK && job->last_stack == 1)
        status = add_part(job, "cross_", 1, true);
    return status;
}

/* ---- outputs ---- */

/* The step as the block shows it, with the layers before it: (layers, batch, …). */
static attn_status add_step(struct model_job *job, struct model_part *part, const struct model_block_run *run,
                            attn_step step)
{
    const attn_tensor *shown = &run->shown.step[step];
    size_t shape[ATTN_MAX_RANK] = {part->layer_count, job->request->inputs.batch};
    memcpy(shape + 2, shown->shape + 1, (size_t)(shown->rank - 1) * sizeof *shape);
    const bool keeps_top = reduce_keeps_top(&run->envelope.reduction, (int)step);
    char name[NAME_BYTES];
    attn_status status = ATTN_OK;
    if (keeps_top) {
        snprintf(name, sizeof name, "%s.indices", attn_step_name(step));
        status = model_add_output(job, part->prefix, name, ATTN_I64, shown->rank + 1, shape, &part->indices);
    }
    snprintf(name, sizeof name, keeps_top ? "%s.weights" : "%s", attn_step_name(step));
    if (status == ATTN_OK)
        status = model_add_output(job, part->prefix, name, shown->dtype, shown->rank + 1, shape, &part->steps[step]);
    if (status == ATTN_OK)
        part->steps[step]->has_scores = attn_step_values(step) == ATTN_VALUES_SCORES;
    return status;
}

static const struct model_block *first_block(const struct model_job *job, const struct model_part *part)
{
    const struct model_stack *stack = &job->version->model.stacks[part->stack];
    for (size_t i = 0; i < stack->block_count; i++)
        if (stack->blocks[i].is_cross == part->is_cross)
            return &stack->blocks[i];
    return NULL;
}

/* A plan for the longest item with all steps of the request, which has the shapes of all its outputs. */
static attn_status plan_longest(struct model_job *job, struct model_part *part, struct model_block_run *run)
{
    const struct model_block *block = first_block(job, part);
    *run = (struct model_block_run){.job = job, .block = block, .part = part, .place = 0, .is_longest = true};
    if (block == NULL)
        return attn_fail(job->err, ATTN_ERR_VALUE, "/options/return", "the model has no such attention");
    part->wanted = job->request->common.request.options.want & ~ATTN_STEP_BIT(ATTN_STEP_OUTPUT);
    return model_block_plan(run, part->longest_queries, part->longest_keys, true);
}

static attn_status add_steps(struct model_job *job, struct model_part *part)
{
    struct model_block_run run;
    attn_status status = plan_longest(job, part, &run);
    for (int step = 0; step < ATTN_STEP_COUNT && status == ATTN_OK; step++)
        if (part->wanted >> step & 1)
            status = add_step(job, part, &run, (attn_step)step);
    return status;
}

/* What is read from whole maps, of the attention of a stack to itself. */
static attn_status add_readings(struct model_job *job, struct model_part *part)
{
    const attn_dtype compute = job->request->common.request.options.compute;
    const struct model_stack *stack = &job->version->model.stacks[part->stack];
    const size_t n = part->longest_queries, heads = stack->blocks[0].facts.dims.heads;
    const size_t batch = job->request->inputs.batch;
    attn_status status = ATTN_OK;
    if (wants(job, MODEL_ROLLOUT))
        status = model_add_output(job, part->prefix, "rollout", compute, 4,
                                  (const size_t[]){part->layer_count, batch, n, n}, &part->rollout);
    for (int role = 0; role < ATTN_ROLE_COUNT && wants(job, MODEL_HEAD_SCORES) && status == ATTN_OK; role++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "head_scores.%s", attn_head_role_name((attn_head_role)role));
        status = model_add_output(job, part->prefix, name, compute, 3,
                                  (const size_t[]){part->layer_count, batch, heads}, &part->head_scores[role]);
    }
    return status;
}

/* Layers may differ in what a token chooses: the shape is of the longest list. */
static attn_status add_experts(struct model_job *job, struct model_part *part)
{
    const struct model_stack *stack = &job->version->model.stacks[part->stack];
    const attn_selection *queries = &part->shown->queries;
    size_t shape[] = {part->layer_count, job->request->inputs.batch,
                      attn_selects_all(queries) ? part->longest_queries : queries->count, 0};
    for (size_t i = 0; i < stack->block_count; i++)
        if (stack->blocks[i].facts.experts_per_token > shape[3])
            shape[3] = stack->blocks[i].facts.experts_per_token;
    if (!wants(job, MODEL_EXPERTS))
        return ATTN_OK;
    if (shape[3] == 0)
        return attn_fail(job->err, ATTN_ERR_FIELD, "/options/return",
                         "\"experts\" needs a mixture of experts, and this model has none");
    attn_status status =
        model_add_output(job, part->prefix, "experts.indices", ATTN_I64, 4, shape, &part->expert_indices);
    if (status == ATTN_OK)
        status = model_add_output(job, part->prefix, "experts.weights", job->request->common.request.options.compute, 4,
                                  shape, &part->expert_weights);
    return status;
}

static attn_status add_hidden(struct model_job *job, struct model_part *part)
{
    const attn_dtype compute = job->request->common.request.options.compute;
    const size_t width = model_width(&job->version->model.stacks[part->stack]);
    const size_t shape[] = {part->layer_count + 1, job->request->inputs.batch, part->longest_queries, width};
    return wants(job, MODEL_HIDDEN) ? model_add_output(job, part->prefix, "hidden", compute, 4, shape, &part->hidden)
                                    : ATTN_OK;
}

static attn_status fail_headless(const struct model_job *job, model_result_kind kind)
{
    const struct checkpoint_model *model = &job->version->model;
    const bool lacks_target = model->has_head;
    if (model->has_unknown_classes)
        return attn_fail(job->err, ATTN_ERR_FIELD, "/options/return",
                         "\"%s\" needs a head, and %.80s ends in one of classes that attnd does not run, or that its "
                         "files lack: ask for \"attention\", \"hidden\" or \"output\"",
                         model_result_name(kind), model->architecture);
    return attn_fail(job->err, ATTN_ERR_FIELD, "/options/return",
                     lacks_target ? "\"%s\" comes from the decoder: give inputs.target or inputs.target_ids"
                                  : "\"%s\" needs a prediction head, and this model has none",
                     model_result_name(kind));
}

/* ids and probabilities, (…, queries, k). The words themselves are added by the caller, who has the tokenizer. */
static attn_status add_words(struct model_job *job, const char *name, size_t layers, struct model_words *words)
{
    const attn_dtype compute = job->request->common.request.options.compute;
    const struct model_part *part = &job->parts[job->last_stack];
    const size_t rows = model_head_rows(job, part->longest_queries), all = job->version->model.head.words;
    const size_t k = job->request->predictions_k < all ? job->request->predictions_k : all;
    const size_t shape[] = {layers, job->request->inputs.batch, rows, k};
    const int skip = layers == 0 ? 1 : 0;
    char member[NAME_BYTES];
    snprintf(member, sizeof member, "%s.ids", name);
    const attn_status status = model_add_output(job, "", member, ATTN_I64, 4 - skip, shape + skip, &words->ids);
    snprintf(member, sizeof member, "%s.probabilities", name);
    return status == ATTN_OK ? model_add_output(job, "", member, compute, 4 - skip, shape + skip, &words->probabilities)
                             : status;
}

static attn_status add_scores(struct model_job *job)
{
    static const model_result_kind kinds[] = {MODEL_LOGITS, MODEL_PREDICTIONS, MODEL_LOGIT_LENS, MODEL_WORD_SCORES};
    const struct checkpoint_model *model = &job->version->model;
    const struct model_part *part = &job->parts[job->last_stack];
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (wants(job, kinds[i]) && (!model->has_head || job->last_stack + 1 != model->stack_count))
            return fail_headless(job, kinds[i]);
    for (size_t i = 1; i < ARRAY_LENGTH(kinds); i++)
        if (wants(job, kinds[i]) && model->head.is_of_classes && model->stacks[0].embedding.words.data != NULL)
            return attn_fail(job->err, ATTN_ERR_FIELD, "/options/return",
                             "\"%s\" are words, and %.80s ends in a head of classes: ask for \"classes\"",
                             model_result_name(kinds[i]), model->architecture);
    attn_status status = ATTN_OK;
    if (wants(job, MODEL_LOGITS)) {
        const size_t shape[] = {job->request->inputs.batch, model_head_rows(job, part->longest_queries),
                                model->head.words};
        const size_t classes[] = {shape[0], shape[2]};
        status = model_add_output(job, "", "logits", job->request->common.request.options.compute,
                                  model_head_reads_one(job) ? 2 : 3, model_head_reads_one(job) ? classes : shape,
                                  &job->logits);
    }
    if (status == ATTN_OK && wants(job, MODEL_PREDICTIONS))
        status = add_words(job, "predictions", 0, &job->predictions);
    if (status == ATTN_OK && wants(job, MODEL_LOGIT_LENS))
        status = add_words(job, "logit_lens", part->layer_count, &job->lens);
    if (status == ATTN_OK)
        status = model_words_plan(job);
    return status == ATTN_OK ? model_classes_plan(job) : status;
}

/* What the encoder of a model of audio reads. */
static attn_status add_features(struct model_job *job)
{
    const struct model_embedding *embedding = &job->version->model.stacks[0].embedding;
    const struct model_inputs *inputs = &job->request->inputs;
    if (!wants(job, MODEL_FEATURES))
        return ATTN_OK;
    if (inputs->audio == NULL && inputs->features == NULL)
        return attn_fail(job->err, ATTN_ERR_FIELD, "/options/return",
                         "\"features\" are those of audio, and the request has no inputs.audio");
    const size_t shape[] = {inputs->batch, embedding->kernel.shape[1], model_audio_frames(embedding)};
    return model_add_output(job, "", "features", job->request->common.request.options.compute, 3, shape,
                            &job->features);
}

static attn_status add_results(struct model_job *job)
{
    const struct model_part *last = &job->parts[job->last_stack];
    const attn_options *options = &job->request->common.request.options;
    const size_t shape[] = {job->request->inputs.batch, last->longest_queries,
                            model_width(&job->version->model.stacks[job->last_stack])};
    attn_status status = ATTN_OK;
    if (wants(job, MODEL_OUTPUT) || options->want >> ATTN_STEP_OUTPUT & 1)
        status = model_add_output(job, "", "output", options->compute, 3, shape, &job->output);
    if (status == ATTN_OK)
        status = add_features(job);
    if (status == ATTN_OK)
        status = model_times_plan(job);
    return status == ATTN_OK ? add_scores(job) : status;
}

static attn_status add_outputs(struct model_job *job)
{
    attn_status status = ATTN_OK;
    for (size_t i = 0; i < job->part_count && status == ATTN_OK; i++) {
        struct model_part *part = &job->parts[i];
        status = add_steps(job, part);
        if (status == ATTN_OK && !part->is_cross)
            status = add_readings(job, part);
        if (status == ATTN_OK && !part->is_cross)
            status = add_experts(job, part);
        if (status == ATTN_OK && !part->is_cross)
            status = add_hidden(job, part);
    }
    return status == ATTN_OK ? add_results(job) : status;
}

/* ---- weight ---- */

/* Projections of 16 bits are read as they are in float32. */
static bool is_read_as_it_is(const attn_tensor *tensor, attn_dtype compute)
{
    return tensor->dtype == compute ||
           (compute == ATTN_F32 && tensor->rank > 1 && (tensor->dtype == ATTN_F16 || tensor->dtype == ATTN_BF16));
}

/* Weights that the run converts, if they are not prepared. */
static double converted_bytes(const struct model_job *job, const struct envelope_source *source)
{
    const attn_dtype compute = job->request->common.request.options.compute;
    double bytes = 0;
    for (size_t i = 0; i < source->count; i++)
        if (source->attachments[i].tensor.dtype == ATTN_U8) /* two numbers of 4 bits, as bfloat16 or double */
            bytes += 2 * (double)attn_tensor_count(&source->attachments[i].tensor) * (double)attn_dtype_bytes(compute);
        else if (!is_read_as_it_is(&source->attachments[i].tensor, compute))
            bytes += (double)attn_tensor_count(&source->attachments[i].tensor) * (double)attn_dtype_bytes(compute);
    return bytes;
}

/* The operations of one block for all items, and the most bytes that it takes for one of them. */
static attn_status weigh_block(struct model_job *job, const struct model_block *block, struct model_part *part,
                               double *most)
{
    const size_t threads = job->runtime->threads;
    attn_status status = ATTN_OK;
    size_t q_before = 0, kv_before = 0;
    double flops = 0;
    for (size_t i = 0; i < job->request->inputs.batch && status == ATTN_OK; i++) {
        const size_t q_len = job->items[i].of[part->stack].count;
        const size_t kv_len = part->is_cross ? job->items[i].of[0].count : q_len;
        struct model_block_run run = {
            .job = job, .block = block, .part = part, .place = model_part_place(part, block->layer), .item = i};
        if (q_len != q_before || kv_len != kv_before || job->edit_count > 0) {
            if (pace_is_cancelled(job->runtime))
                return model_job_fail_cancelled(job);
            const attn_arena_mark mark = attn_arena_mark_here(job->arena);
            status = model_block_plan(&run, q_len, kv_len, true);
            attn_arena_release(job->arena, mark);
            if (status != ATTN_OK)
                return status;
            flops = run.plan.time_flops;
            const double selected = run.selects_later ? (double)run.plan.result_bytes : 0;
            const double masked = run.envelope.request.masks.attend != NULL
                                      ? (double)block->facts.dims.heads * (double)q_len * (double)kv_len
                                      : 0;
            const double bytes = (double)attn_plan_bytes(&run.plan, threads) + selected + masked +
                                 reduce_bytes(&run.envelope, &run.shown, threads) +
                                 converted_bytes(job, &block->source);
            *most = bytes > *most ? bytes : *most;
        }
        job->time_flops += flops;
        q_before = q_len;
        kv_before = kv_len;
    }
    return status;
}

static attn_status weigh_stack(struct model_job *job, size_t index)
{
    const struct model_stack *stack = &job->version->model.stacks[index];
    const size_t count = longest(job, index);
    const double element = (double)attn_dtype_bytes(job->request->common.request.options.compute);
    double most = 0;
    attn_status status = ATTN_OK;
    for (size_t i = 0; i < stack->block_count && status == ATTN_OK; i++) {
        const struct model_block *block = &stack->blocks[i];
        status = weigh_block(job, block, &job->parts[index + (block->is_cross ? 1 : 0)], &most);
    }
    job->time_flops += (double)job->request->inputs.batch * model_embed_flops(job, stack, count);
    const double hidden = 4 * (double)count * (double)model_width(stack) * element;
    const double flow = job->parts[index].rollout != NULL ? 24 * (double)count * (double)count : 0;
    job->run_bytes += most + hidden + flow + model_embed_bytes(job, stack, count) + (1 << 20);
    return status;
}

static void weigh_head(struct model_job *job)
{
    const struct model_part *part = &job->parts[job->last_stack];
    const bool has_classes = job->classes.logits != NULL || job->classes.starts != NULL;
    const size_t times =
        (job->logits != NULL || job->predictions.ids != NULL || job->predictions.ranks != NULL || has_classes) +
        (job->lens.ids != NULL ? part->layer_count : 0);
    job->run_bytes += model_classes_bytes(job) + model_times_bytes(job);
    if (times == 0)
        return;
    job->run_bytes += model_head_bytes(job, part->longest_queries);
    job->time_flops +=
        (double)times * (double)job->request->inputs.batch * model_head_flops(job, part->longest_queries);
}

static attn_status weigh(struct model_job *job)
{
    attn_status status = ATTN_OK;
    for (size_t i = 0; i <= job->last_stack && status == ATTN_OK; i++)
        status = weigh_stack(job, i);
    weigh_head(job);
    job->run_bytes += model_edits_bytes(job);
    for (size_t i = 0; i < job->answer->output_count; i++) {
        const attn_tensor *tensor = &job->answer->outputs[i].tensor;
        double bytes = (double)attn_dtype_bytes(tensor->dtype);
        for (int axis = 0; axis < tensor->rank; axis++)
            bytes *= (double)tensor->shape[axis];
        job->run_bytes += bytes + ATTN_ALIGNMENT;
    }
    return status;
}

/* ---- the request beside the model ---- */

static attn_status check_ablations(const struct model_job *job)
{
    const struct checkpoint_model *model = &job->version->model;
    if (job->request->ablations > 0 && model->stack_count == 2)
        return attn_fail(job->err, ATTN_ERR_FIELD, "/options/ablate",
                         "options.ablate is for models of one stack, and this one has an encoder and a decoder: "
                         "options.interventions has a part");
    for (size_t i = 0; i < job->request->ablations; i++) {
        const struct model_ablation *ablation = &job->request->ablate[i];
        const size_t layers = model->stacks[0].layers, heads = model->stacks[0].blocks[0].facts.dims.heads;
        if (ablation->layer < 0 || ablation->head < 0 || (uint64_t)ablation->layer >= layers ||
            (uint64_t)ablation->head >= heads)
            return attn_fail(job->err, ATTN_ERR_VALUE, "/options/ablate",
                             "options.ablate has layer %lld, head %lld; the last layer is %zu, its last head %zu",
                             (long long)ablation->layer, (long long)ablation->head, layers - 1, heads - 1);
    }
    return ATTN_OK;
}

attn_status model_job_plan(struct model_job *job)
{
    attn_status status = check_ablations(job);
    if (status == ATTN_OK)
        status = make_parts(job);
    if (status == ATTN_OK)
        status = model_edits_plan(job);
    if (status == ATTN_OK)
        status = add_outputs(job);
    return status == ATTN_OK ? weigh(job) : status;
}
