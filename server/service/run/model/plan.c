/* plan.c: lays out the outputs of a model, and weighs its run. */
#include "service/run/model/item.h"

#include <string.h>

#include "base/array.h"
#include "codec/answer/reduce.h"

static size_t longest(const struct model_job *job, size_t stack)
{
    size_t count = 0;
    for (size_t i = 0; i < job->request->inputs.batch; i++)
        if (job->items[i].of[stack].count > count)
            count = job->items[i].of[stack].count;
    return count;
}

/* ---- parts ---- */

static bool choose_layers(struct model_job *job, struct model_part *part, size_t layers)
{
    struct outcome *outcome = &job->outcome;
    attn_selection given = job->request->layers;
    if (!outcome_note(outcome, index_list_settle(&job->request->layer_list, "layers", layers, outcome->arena, &given,
                                                 outcome->err)))
        return false;
    const bool is_all = attn_selects_all(&given);
    const size_t count = is_all ? layers : given.count;
    for (size_t i = 0; i < count && !is_all; i++)
        if (attn_selected(&given, i) >= layers)
            return outcome_fail(outcome, ATTN_ERR_VALUE, "/options/layers",
                                "options.layers has %zu; the last layer of the model is %zu", attn_selected(&given, i),
                                layers - 1);
    if (count > layers)
        return outcome_fail(outcome, ATTN_ERR_VALUE, "/options/layers", "options.layers selects %zu of %zu", count,
                            layers);
    size_t *chosen = outcome_take(outcome, count, sizeof *chosen);
    for (size_t i = 0; chosen != NULL && i < count; i++) {
        chosen[i] = is_all ? i : attn_selected(&given, i);
        for (size_t earlier = 0; earlier < i; earlier++)
            if (chosen[earlier] == chosen[i])
                return outcome_fail(outcome, ATTN_ERR_VALUE, "/options/layers", "options.layers has %zu twice",
                                    chosen[i]);
    }
    part->layers = chosen;
    part->layer_count = count;
    return chosen != NULL;
}

/* The part's own selections: its lengths may differ from those of another part. */
static bool choose(struct model_job *job, struct model_part *part)
{
    const struct model_stack *stack = &job->version->model.stacks[part->stack];
    struct model_selections *shown = &job->answer->shown[part - job->parts];
    attn_options options = job->request->common.request.options;
    const bool is_ok =
        choose_layers(job, part, stack->layers) &&
        outcome_note(&job->outcome, index_lists_settle(&job->request->common.lists, stack->blocks[0].facts.dims.heads,
                                                       part->longest_queries, part->longest_keys, job->outcome.arena,
                                                       &options, job->outcome.err));
    *shown = (struct model_selections){.layers = {.items = part->layers, .count = part->layer_count},
                                       .heads = options.heads,
                                       .queries = options.queries,
                                       .keys = options.keys};
    part->shown = shown;
    return is_ok;
}

static bool add_part(struct model_job *job, const char *prefix, size_t stack, bool is_cross)
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

bool model_parts_make(struct model_job *job)
{
    const bool has_two = job->version->model.stack_count == 2;
    job->last_stack = has_two && longest(job, 1) > 0 ? 1 : 0;
    return add_part(job, has_two ? "encoder_" : "", 0, false) &&
           (job->last_stack == 0 || (add_part(job, "decoder_", 1, false) && add_part(job, "cross_", 1, true)));
}

/* ---- outputs ---- */

/* The step as the block shows it, with the layers before it: (layers, batch, …). */
static bool add_step(struct model_job *job, struct model_part *part, const struct model_block_run *run, attn_step step)
{
    const attn_tensor *shown = &run->shown.step[step];
    const char *name = attn_step_name(step);
    size_t shape[ATTN_MAX_RANK] = {part->layer_count, job->request->inputs.batch};
    memcpy(shape + 2, shown->shape + 1, (size_t)(shown->rank - 1) * sizeof *shape);
    const bool keeps_top = reduce_keeps_top(&run->envelope.reduction, (int)step);
    const bool is_ok = (!keeps_top || model_add_output(job, &part->indices, ATTN_I64, shown->rank + 1, shape,
                                                       "%s%s.indices", part->prefix, name)) &&
                       model_add_output(job, &part->steps[step], shown->dtype, shown->rank + 1, shape,
                                        keeps_top ? "%s%s.weights" : "%s%s", part->prefix, name);
    if (is_ok)
        part->steps[step]->has_scores = attn_step_values(step) == ATTN_VALUES_SCORES;
    return is_ok;
}

static const struct model_block *first_block(const struct model_job *job, const struct model_part *part)
{
    const struct model_stack *stack = &job->version->model.stacks[part->stack];
    for (size_t i = 0; i < stack->block_count; i++)
        if (stack->blocks[i].is_cross == part->is_cross)
            return &stack->blocks[i];
    return NULL;
}

bool model_part_plan(struct model_job *job, struct model_part *part, struct model_block_run *run)
{
    *run = (struct model_block_run){
        .job = job, .block = first_block(job, part), .part = part, .place = 0, .is_longest = true};
    if (run->block == NULL)
        return outcome_fail(&job->outcome, ATTN_ERR_VALUE, "/options/return", "the model has no such attention");
    return model_block_plan(run, part->longest_queries, part->longest_keys, true);
}

/* Those of a plan for the longest item with all steps of the request, which has the shapes of all its outputs. */
static bool add_steps(struct model_job *job, struct model_part *part)
{
    struct model_block_run run;
    part->wanted = job->request->common.request.options.want & ~ATTN_STEP_BIT(ATTN_STEP_OUTPUT);
    bool is_ok = model_part_plan(job, part, &run);
    for (int step = 0; step < ATTN_STEP_COUNT && is_ok; step++)
        is_ok = !(part->wanted >> step & 1) || add_step(job, part, &run, (attn_step)step);
    return is_ok;
}

/* What is read from whole maps, of the attention of a stack to itself. */
static void add_readings(struct model_job *job, struct model_part *part)
{
    const size_t n = part->longest_queries, batch = job->request->inputs.batch;
    const size_t of_heads[] = {part->layer_count, batch,
                               job->version->model.stacks[part->stack].blocks[0].facts.dims.heads};
    const attn_dtype compute = model_job_compute(job);
    if (model_job_wants(job, MODEL_ROLLOUT))
        model_add_output(job, &part->rollout, compute, 4, (const size_t[]){part->layer_count, batch, n, n}, "%srollout",
                         part->prefix);
    for (int role = 0; role < ATTN_ROLE_COUNT && model_job_wants(job, MODEL_HEAD_SCORES); role++)
        model_add_output(job, &part->head_scores[role], compute, 3, of_heads, "%shead_scores.%s", part->prefix,
                         attn_head_role_name((attn_head_role)role));
}

/* Layers may differ in what a token chooses: the shape is of the longest list. */
static void add_experts(struct model_job *job, struct model_part *part)
{
    const struct model_stack *stack = &job->version->model.stacks[part->stack];
    const attn_selection *queries = &part->shown->queries;
    size_t shape[] = {part->layer_count, job->request->inputs.batch,
                      attn_selects_all(queries) ? part->longest_queries : queries->count, 0};
    for (size_t i = 0; i < stack->block_count; i++)
        if (stack->blocks[i].facts.experts_per_token > shape[3])
            shape[3] = stack->blocks[i].facts.experts_per_token;
    if (!model_job_wants(job, MODEL_EXPERTS))
        return;
    if (shape[3] == 0)
        outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/return",
                     "\"experts\" needs a mixture of experts, and this model has none");
    model_add_output(job, &part->expert_indices, ATTN_I64, 4, shape, "%sexperts.indices", part->prefix);
    model_add_output(job, &part->expert_weights, model_job_compute(job), 4, shape, "%sexperts.weights", part->prefix);
}

static void add_hidden(struct model_job *job, struct model_part *part)
{
    const size_t width = model_width(&job->version->model.stacks[part->stack]);
    const size_t shape[] = {part->layer_count + 1, job->request->inputs.batch, part->longest_queries, width};
    if (model_job_wants(job, MODEL_HIDDEN))
        model_add_output(job, &part->hidden, model_job_compute(job), 4, shape, "%shidden", part->prefix);
}

bool model_fail_headless(struct model_job *job, const char *pointer, const char *name)
{
    const struct checkpoint_model *model = &job->version->model;
    const bool lacks_target = model->has_head;
    if (model->has_unknown_classes)
        return outcome_fail(
            &job->outcome, ATTN_ERR_FIELD, pointer,
            "\"%s\" needs a head, and %.80s ends in one of classes that attnd cannot run%.120s: ask for "
            "\"attention\", \"hidden\" or \"output\"",
            name, model->architecture, model->head.lacks);
    return outcome_fail(&job->outcome, ATTN_ERR_FIELD, pointer,
                        lacks_target ? "\"%s\" comes from the decoder: give inputs.target or inputs.target_ids%s"
                                     : "\"%s\" needs a prediction head, and this model has none%.120s",
                        name, model->head.lacks);
}

/* ids and probabilities, (…, queries, k). The words themselves are added by the caller, who has the tokenizer. */
static void add_words(struct model_job *job, const char *name, size_t layers, struct model_words *words)
{
    const attn_dtype compute = model_job_compute(job);
    const size_t rows = model_head_rows(job, job->parts[job->last_stack].longest_queries);
    const size_t k = job->request->predictions_k, all = job->version->model.head.words;
    const size_t shape[] = {layers, job->request->inputs.batch, rows, k < all ? k : all};
    const int skip = layers == 0 ? 1 : 0;
    model_add_output(job, &words->ids, ATTN_I64, 4 - skip, shape + skip, "%s.ids", name);
    model_add_output(job, &words->probabilities, compute, 4 - skip, shape + skip, "%s.probabilities", name);
}

static void add_scores(struct model_job *job)
{
    static const model_result_kind kinds[] = {MODEL_LOGITS,      MODEL_PREDICTIONS, MODEL_LOGIT_LENS,
                                              MODEL_WORD_SCORES, MODEL_ATTRIBUTION, MODEL_SWEEP};
    const struct checkpoint_model *model = &job->version->model;
    const struct model_part *part = &job->parts[job->last_stack];
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (model_job_wants(job, kinds[i]) && (!model->has_head || job->last_stack + 1 != model->stack_count))
            model_fail_headless(job, "/options/return", model_result_name(kinds[i]));
    for (size_t i = 1; i < ARRAY_LENGTH(kinds); i++)
        if (model_job_wants(job, kinds[i]) && model->head.is_of_classes &&
            model->stacks[0].embedding.words.data != NULL)
            outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/return",
                         "\"%s\" are words, and %.80s ends in a head of classes: ask for \"classes\"",
                         model_result_name(kinds[i]), model->architecture);
    const bool reads_one = model_head_reads_one(job);
    const size_t rows = model_head_rows(job, part->longest_queries);
    const size_t shape[] = {job->request->inputs.batch, reads_one ? model->head.words : rows, model->head.words};
    if (model_job_wants(job, MODEL_LOGITS))
        model_add_output(job, &job->logits, model_job_compute(job), reads_one ? 2 : 3, shape, "logits");
    if (model_job_wants(job, MODEL_PREDICTIONS))
        add_words(job, "predictions", 0, &job->predictions);
    if (model_job_wants(job, MODEL_LOGIT_LENS))
        add_words(job, "logit_lens", part->layer_count, &job->lens);
    if (model_words_plan(job))
        model_attribution_plan(job);
    if (!outcome_has_failed(&job->outcome))
        model_sweep_plan(job);
    model_classes_plan(job);
}

/* What the encoder of a model of audio reads. */
static void add_features(struct model_job *job)
{
    const struct model_embedding *embedding = &job->version->model.stacks[0].embedding;
    const struct model_inputs *inputs = &job->request->inputs;
    if (!model_job_wants(job, MODEL_FEATURES))
        return;
    if (inputs->audio == NULL && inputs->features == NULL) {
        outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/return",
                     "\"features\" are those of audio, and the request has no inputs.audio");
        return;
    }
    const size_t shape[] = {inputs->batch, embedding->kernel.shape[1], model_audio_frames(embedding)};
    model_add_output(job, &job->features, model_job_compute(job), 3, shape, "features");
}

static bool add_outputs(struct model_job *job)
{
    const struct model_part *last = &job->parts[job->last_stack];
    const attn_options *options = &job->request->common.request.options;
    const size_t shape[] = {job->request->inputs.batch, last->longest_queries,
                            model_width(&job->version->model.stacks[job->last_stack])};
    for (size_t i = 0; i < job->part_count && !outcome_has_failed(&job->outcome); i++) {
        struct model_part *part = &job->parts[i];
        if (!add_steps(job, part))
            return false;
        if (part->is_cross)
            continue;
        add_readings(job, part);
        add_experts(job, part);
        add_hidden(job, part);
    }
    if (model_job_wants(job, MODEL_OUTPUT) || options->want >> ATTN_STEP_OUTPUT & 1)
        model_add_output(job, &job->output, options->compute, 3, shape, "output");
    add_features(job);
    model_times_plan(job);
    add_scores(job);
    return !outcome_has_failed(&job->outcome);
}

/* ---- weight ---- */

/* The operations of one block for all items, and the most bytes that it takes for one of them. */
static bool weigh_block(struct model_job *job, const struct model_block *block, struct model_part *part, double *most)
{
    const size_t threads = job->runtime->threads;
    size_t q_before = 0, kv_before = 0;
    double flops = 0;
    for (size_t i = 0; i < job->request->inputs.batch; i++) {
        const size_t q_len = job->items[i].of[part->stack].count;
        const size_t kv_len = part->is_cross ? job->items[i].of[0].count : q_len;
        struct model_block_run run = {
            .job = job, .block = block, .part = part, .place = model_part_place(part, block->layer), .item = i};
        if (q_len != q_before || kv_len != kv_before || job->edit_count > 0) {
            const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
            const bool is_planned = model_job_goes_on(job) && model_block_plan(&run, q_len, kv_len, true);
            attn_arena_release(job->outcome.arena, mark);
            if (!is_planned)
                return false;
            flops = run.plan.time_flops;
            const double selected = run.selects_later ? (double)run.plan.result_bytes : 0;
            const double masked = run.envelope.request.masks.attend != NULL
                                      ? (double)block->facts.dims.heads * (double)q_len * (double)kv_len
                                      : 0;
            const double bytes = (double)attn_plan_bytes(&run.plan, threads) + selected + masked +
                                 reduce_bytes(&run.envelope, &run.shown, threads) +
                                 model_converted_bytes(job, &block->source, ENVELOPE_LAYER);
            *most = bytes > *most ? bytes : *most;
        }
        job->time_flops += flops * (1 + model_sweep_times(job, part->stack, block->layer));
        q_before = q_len;
        kv_before = kv_len;
    }
    return true;
}

static bool weigh_stack(struct model_job *job, size_t index)
{
    const struct model_stack *stack = &job->version->model.stacks[index];
    const size_t count = longest(job, index);
    const double element = (double)attn_dtype_bytes(model_job_compute(job));
    double most = 0;
    bool is_ok = true;
    for (size_t i = 0; i < stack->block_count && is_ok; i++) {
        const struct model_block *block = &stack->blocks[i];
        is_ok = weigh_block(job, block, &job->parts[index + (block->is_cross ? 1 : 0)], &most);
    }
    job->time_flops += (double)job->request->inputs.batch * model_embed_flops(job, stack, count);
    const double hidden = 4 * (double)count * (double)model_width(stack) * element;
    const double flow = job->parts[index].rollout != NULL ? 24 * (double)count * (double)count : 0;
    job->run_bytes += most + hidden + flow + model_embed_bytes(job, stack, count) + (1 << 20);
    return is_ok;
}

static void weigh_head(struct model_job *job)
{
    const struct model_part *part = &job->parts[job->last_stack];
    const bool has_classes = job->classes.logits != NULL || job->classes.starts != NULL;
    const size_t times = (job->logits != NULL || job->predictions.ids != NULL || job->predictions.ranks != NULL ||
                          has_classes || job->attribution.bias != NULL || job->sweep.values != NULL) +
                         (job->lens.ids != NULL ? part->layer_count : 0);
    job->run_bytes += model_classes_bytes(job) + model_times_bytes(job);
    if (times == 0)
        return;
    const size_t swept = job->sweep.places, rows = part->longest_queries > swept ? part->longest_queries : swept;
    job->run_bytes += model_head_bytes(job, rows, 1) + model_attribution_bytes(job);
    job->time_flops += model_attribution_flops(job);
    if (job->sweep.values != NULL)
        job->time_flops += model_sweep_times(job, job->last_stack, SIZE_MAX) * (double)job->request->inputs.batch *
                           model_head_flops(job, 1);
    job->time_flops +=
        (double)times * (double)job->request->inputs.batch * model_head_flops(job, part->longest_queries);
}

void model_outputs_weigh(struct model_job *job)
{
    for (size_t i = 0; i < job->answer->output_count; i++) {
        const attn_tensor *tensor = &job->answer->outputs[i].tensor;
        double bytes = (double)attn_dtype_bytes(tensor->dtype);
        for (int axis = 0; axis < tensor->rank; axis++)
            bytes *= (double)tensor->shape[axis];
        job->run_bytes += bytes + ATTN_ALIGNMENT;
    }
}

static void weigh(struct model_job *job)
{
    for (size_t i = 0; i <= job->last_stack && job->answer->output_count > 0; i++)
        if (!weigh_stack(job, i))
            return;
    weigh_head(job);
    job->run_bytes += model_edits_bytes(job) + model_sweep_bytes(job);
    model_outputs_weigh(job);
    if (job->generation != NULL)
        model_generation_weigh(job);
}

/* ---- the request beside the model ---- */

static bool check_ablations(struct model_job *job)
{
    const struct checkpoint_model *model = &job->version->model;
    if (job->request->ablations > 0 && model->stack_count == 2)
        return outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/ablate",
                            "options.ablate is for models of one stack, and this one has an encoder and a decoder: "
                            "options.interventions has a part");
    for (size_t i = 0; i < job->request->ablations; i++) {
        const struct model_ablation *ablation = &job->request->ablate[i];
        const size_t layers = model->stacks[0].layers, heads = model->stacks[0].blocks[0].facts.dims.heads;
        if (ablation->layer < 0 || ablation->head < 0 || (uint64_t)ablation->layer >= layers ||
            (uint64_t)ablation->head >= heads)
            return outcome_fail(&job->outcome, ATTN_ERR_VALUE, "/options/ablate",
                                "options.ablate has layer %lld, head %lld; the last layer is %zu, its last head %zu",
                                (long long)ablation->layer, (long long)ablation->head, layers - 1, heads - 1);
    }
    return true;
}

attn_status model_job_plan(struct model_job *job)
{
    if (check_ablations(job) && model_parts_make(job) && model_edits_plan(job) && add_outputs(job))
        weigh(job);
    return job->outcome.status;
}
