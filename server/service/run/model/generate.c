/* generate.c: appends the most probable tokens to the last sequence of each item, with kept keys and values. */
#include <assert.h>
#include <string.h>

#include "attn/analysis.h"
#include "codec/bytes/bound.h"
#include "service/run/model/item.h"

/* ---- what can be generated ---- */

/* Why the model, or the request to it, cannot have new tokens; NULL: it can. */
static const char *find_obstacle(const struct model_version *version, const struct model_inputs *inputs)
{
    const struct checkpoint_model *model = &version->model;
    const struct model_stack *last = &model->stacks[model->stack_count - 1];
    const bool has_target = inputs->target != NULL || inputs->target_ids != NULL;
    if (!model->has_head || model->head.is_of_classes || last->embedding.words.data == NULL)
        return "needs a head of words, and this model has none";
    if (!last->is_causal)
        return "needs a decoder, and this model reads in both directions";
    if (model->stack_count == 1 && inputs->text == NULL && inputs->ids == NULL)
        return "continues tokens: give inputs.text or inputs.ids";
    if (model->stack_count == 1 && inputs->pair != NULL)
        return "continues one text: leave out inputs.pair";
    if (model->stack_count == 2 && !has_target &&
        (model->decoder_start_id < 0 || (size_t)model->decoder_start_id >= last->embedding.words.shape[0]))
        return "needs the first tokens of the decoder, because the model's configuration has no "
               "decoder_start_token_id: give inputs.target_ids";
    return NULL;
}

static bool check_stops(const struct model_version *version, const struct model_request *request,
                        struct outcome *outcome)
{
    for (size_t i = 0; i < request->stop.count; i++)
        if (request->stop.items[i].text.at != NULL && version->tokenizer == NULL)
            return outcome_fail(outcome, ATTN_ERR_FIELD, "/options/stop",
                                "options.stop has a text, and the model \"%s\" has no tokenizer that can be used: "
                                "give ids",
                                version->common.name);
    return true;
}

/* The decoder of each item begins with decoder_start_token_id. */
static bool give_start(const struct model_version *version, struct model_inputs *inputs, struct outcome *outcome)
{
    struct model_ids *rows = outcome_take(outcome, inputs->batch, sizeof *rows);
    for (size_t i = 0; i < inputs->batch && rows != NULL; i++)
        rows[i] = (struct model_ids){&version->model.decoder_start_id, 1};
    inputs->target_ids = rows;
    return rows != NULL;
}

bool model_generation_check(const struct model_version *version, struct model_request *request, struct outcome *outcome)
{
    struct model_inputs *inputs = &request->inputs;
    const char *obstacle = find_obstacle(version, inputs);
    if (obstacle != NULL)
        return outcome_fail(outcome, ATTN_ERR_FIELD, "/options/new_tokens", "options.new_tokens %s", obstacle);
    if (!check_stops(version, request, outcome))
        return false;
    return version->model.stack_count == 1 || inputs->target != NULL || inputs->target_ids != NULL ||
           give_start(version, inputs, outcome);
}

bool model_generation_begin(struct model_generation *generation, struct model_batch *batch,
                            const struct model_request *request, struct outcome *outcome)
{
    const struct checkpoint_model *model = &batch->version->model;
    const size_t items = batch->inputs->batch, added = request->new_tokens, stack = model->stack_count - 1;
    *generation = (struct model_generation){
        .batch = batch, .stack = stack, .items = outcome_take_zeroed(outcome, items, sizeof *generation->items)};
    for (size_t i = 0; i < items && !outcome_has_failed(outcome); i++) {
        const struct model_sequence *given = &batch->items[i].of[stack];
        struct model_continuation *item = &generation->items[i];
        if (model->longest > 0 && given->count + added > model->longest)
            return outcome_fail(
                outcome, ATTN_ERR_VALUE, "/options/new_tokens",
                "options.new_tokens is %zu, item %zu has %zu tokens before them, and the model takes at "
                "most %zu",
                added, i, given->count, model->longest);
        *item = (struct model_continuation){.given = given->count, .count = given->count + added};
        item->ids = outcome_take_zeroed(outcome, item->count, sizeof *item->ids);
        if (item->ids == NULL)
            return false;
        memcpy(item->ids, given->ids, item->given * sizeof *item->ids);
        model_batch_set_ids(batch, outcome, stack, i, item->ids, item->count);
    }
    return !outcome_has_failed(outcome);
}

/* ---- a block, and what it keeps ---- */

struct kept_block {
    struct model_block block; /* with prepared weights, as far as there are any */
    struct prepared_weights *prepared;
    struct envelope envelope;
    attn_tensor keys, values; /* (1, kv_heads, room, d); room 0: it keeps nothing */
    size_t count;             /* of the tokens whose keys and values are there */
};

/* The longest sequences of the batch: what a stack reads in its first run, and what it may have in the end. */
static size_t longest_given(const struct model_job *job, size_t stack)
{
    const struct model_generation *generation = job->generation;
    size_t longest = 0;
    for (size_t i = 0; i < job->request->inputs.batch; i++) {
        const size_t count =
            stack == generation->stack ? generation->items[i].given : generation->batch->items[i].of[stack].count;
        longest = count > longest ? count : longest;
    }
    return longest;
}

static size_t room_of(const struct model_job *job, size_t stack, bool is_cross)
{
    if (stack != job->generation->stack)
        return 0;
    return is_cross ? longest_given(job, 0) : longest_given(job, stack) + job->request->new_tokens;
}

static bool decode_block(struct model_job *job, struct kept_block *kept, bool shapes_only)
{
    const attn_options *options = &job->request->common.request.options;
    const bool is_ok = outcome_note(
        &job->outcome, envelope_decode_base(&kept->block.source, ENVELOPE_LAYER, options->compute, shapes_only,
                                            job->outcome.arena, &kept->envelope, job->outcome.err));
    kept->envelope.request.options.bf16_products = options->bf16_products;
    kept->envelope.request.watch = job->runtime;
    return is_ok;
}

static void shape_room(const struct model_job *job, struct kept_block *kept, size_t room)
{
    const attn_dims *dims = &kept->block.facts.dims;
    const attn_dtype compute = model_job_compute(job);
    kept->keys = attn_tensor_view(NULL, compute, 4, (const size_t[]){1, dims->kv_heads, room, dims->d_k});
    kept->values = attn_tensor_view(NULL, compute, 4, (const size_t[]){1, dims->kv_heads, room, dims->d_v});
}

/* A plan of a block, and the tensors that it refers to. */
struct step_plan {
    attn_tensor query, key, past_key, past_value;
    attn_plan plan;
};

static attn_tensor first_rows(const attn_tensor *tensor, size_t count)
{
    attn_tensor rows = *tensor;
    rows.shape[2] = count;
    return rows;
}

/* Keys and values of new rows go behind those that are kept. */
static void place_rows(const struct kept_block *kept, attn_plan *plan)
{
    const struct {
        attn_step step;
        const attn_tensor *to;
    } kinds[] = {{ATTN_STEP_PRESENT_KEY, &kept->keys}, {ATTN_STEP_PRESENT_VALUE, &kept->values}};
    for (size_t i = 0; i < 2 && kept->keys.data != NULL; i++)
        if (plan->want & ATTN_STEP_BIT(kinds[i].step))
            plan->step[kinds[i].step] = first_rows(kinds[i].to, plan->step[kinds[i].step].shape[2]);
}

/* For q_len rows behind those that are kept; encoded is the length of the encoder's output, which is kept whole. */
static bool plan_block(struct model_job *job, struct kept_block *kept, size_t q_len, size_t encoded,
                       struct step_plan *step)
{
    const attn_dims *dims = &kept->block.facts.dims;
    const attn_dtype compute = model_job_compute(job);
    const bool has_past = kept->count > 0, adds = kept->keys.shape[2] > 0 && !(kept->block.is_cross && has_past);
    attn_request *request = &kept->envelope.request;
    step->query = attn_tensor_view(NULL, compute, 3, (const size_t[]){1, q_len, dims->d_query});
    step->key = attn_tensor_view(NULL, compute, 3, (const size_t[]){1, has_past ? 0 : encoded, dims->d_key});
    step->past_key = first_rows(&kept->keys, kept->count);
    step->past_value = first_rows(&kept->values, kept->count);
    request->inputs = (attn_inputs){.query = &step->query,
                                    .key = kept->block.is_cross ? &step->key : NULL,
                                    .past_key = has_past ? &step->past_key : NULL,
                                    .past_value = has_past ? &step->past_value : NULL};
    request->options.want = ATTN_STEP_BIT(ATTN_STEP_OUTPUT) |
                            (adds ? ATTN_STEP_BIT(ATTN_STEP_PRESENT_KEY) | ATTN_STEP_BIT(ATTN_STEP_PRESENT_VALUE) : 0);
    if (!outcome_note(&job->outcome, envelope_plan(&kept->envelope, &step->plan, job->outcome.err)))
        return false;
    place_rows(kept, &step->plan);
    return true;
}

/* Whether a sequence of that length has other rotations than its beginning, so that nothing can be kept. */
static bool is_rotated_by_length(const struct kept_block *kept, size_t length)
{
    const attn_rope *rope = &kept->envelope.request.options.rope;
    const attn_rope_scaling *scaling = &rope->scaling;
    const bool is_dynamic = scaling->type == ATTN_ROPE_DYNAMIC;
    const double unchanged = is_dynamic && scaling->max_position_embeddings != 0
                                 ? scaling->max_position_embeddings
                                 : scaling->original_max_position_embeddings;
    return rope->layout != ATTN_ROPE_NONE && (double)length > unchanged &&
           (is_dynamic || scaling->type == ATTN_ROPE_LONGROPE);
}

/* ---- weight ---- */

struct weighing {
    double first_flops, step_flops; /* of all blocks, for one item: its first run, and one with one row */
    double most, kept;              /* bytes of the largest run, and of all that stays until the end */
    bool keeps;
};

static bool weigh_plan(struct model_job *job, struct kept_block *kept, size_t q_len, struct weighing *weighing,
                       double *flops)
{
    struct step_plan step;
    if (!plan_block(job, kept, q_len, longest_given(job, 0), &step))
        return false;
    const double bytes = (double)attn_plan_bytes(&step.plan, job->runtime->threads);
    weighing->most = bytes > weighing->most ? bytes : weighing->most;
    *flops += step.plan.time_flops;
    return true;
}

static bool weigh_block(struct model_job *job, const struct model_block *block, size_t stack, struct weighing *weighing)
{
    const size_t given = longest_given(job, stack), room = room_of(job, stack, block->is_cross);
    attn_arena *arena = job->outcome.arena;
    struct kept_block kept = {.block = *block};
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    const size_t before = attn_arena_bytes(arena);
    bool is_ok = model_job_goes_on(job) && decode_block(job, &kept, true);
    weighing->kept += (double)(attn_arena_bytes(arena) - before) +
                      model_converted_bytes(job, &block->source, ENVELOPE_LAYER) + (double)sizeof kept;
    shape_room(job, &kept, room);
    weighing->kept += (double)((attn_tensor_count(&kept.keys) + attn_tensor_count(&kept.values)) *
                               attn_dtype_bytes(model_job_compute(job)));
    if (is_ok && is_rotated_by_length(&kept, room))
        weighing->keeps = false;
    is_ok = is_ok && weigh_plan(job, &kept, given, weighing, &weighing->first_flops);
    kept.count = block->is_cross ? room : room - (room > 0);
    if (is_ok && room > 0)
        is_ok = weigh_plan(job, &kept, 1, weighing, &weighing->step_flops);
    if (is_ok && room > 0 && !weighing->keeps) {
        kept.count = 0;
        is_ok = weigh_plan(job, &kept, longest_given(job, stack) + job->request->new_tokens, weighing,
                           &weighing->step_flops);
    }
    attn_arena_release(arena, mark);
    return is_ok;
}

/* Embeddings, the rows between the blocks, and the encoder's output, which stays. */
static double stack_bytes(const struct model_job *job, size_t stack, bool keeps)
{
    const struct model_stack *of = &job->version->model.stacks[stack];
    const size_t rows = longest_given(job, stack) + (keeps ? 0 : job->request->new_tokens);
    return model_embed_bytes(job, of, rows) +
           6 * (double)rows * (double)model_width(of) * (double)attn_dtype_bytes(model_job_compute(job)) +
           (double)(job->request->new_tokens * sizeof(int64_t));
}

bool model_generation_weigh(struct model_job *job)
{
    enum { TOKEN_BYTES = 128, ITEM_BYTES = 4096, SMALL_BYTES = 1 << 20 };
    const struct checkpoint_model *model = &job->version->model;
    const double items = (double)job->request->inputs.batch, steps = (double)job->request->new_tokens;
    struct weighing weighing = {.keeps = true};
    double bytes = SMALL_BYTES + items * (steps * TOKEN_BYTES + ITEM_BYTES) + model_head_bytes(job, 1, 1);
    for (size_t stack = 0; stack < model->stack_count; stack++) {
        for (size_t i = 0; i < model->stacks[stack].block_count; i++)
            if (!weigh_block(job, &model->stacks[stack].blocks[i], stack, &weighing))
                return false;
        bytes += stack_bytes(job, stack, weighing.keeps);
        job->time_flops += items * model_embed_flops(job, &model->stacks[stack], longest_given(job, stack));
    }
    bytes += weighing.most + weighing.kept;
    job->run_bytes = bytes > job->run_bytes ? bytes : job->run_bytes;
    /* A step waits for the weights: it reads all of them for one row, which takes the time of eight times its operations. */
    job->time_flops += items * (weighing.first_flops + 8 * steps * (weighing.step_flops + model_head_flops(job, 1)));
    return true;
}

/* ---- rows through the blocks ---- */

struct generating {
    struct model_job *job;
    struct kept_block *blocks[2]; /* of each stack */
    attn_prediction_head head;
    struct prepared_weights *of_head;
    bool keeps; /* false: each step runs all rows (is_rotated_by_length) */
};

static bool begin_block(struct generating *run, struct kept_block *kept, const struct model_block *block, size_t stack)
{
    struct model_job *job = run->job;
    kept->block = *block;
    if (model_job_compute(job) == block->facts.compute)
        kept->prepared = prepared_weights_take(job->prepared, &job->version->slots[block->slot], &block->facts,
                                               job->runtime, job->outcome.arena, &kept->block.source);
    if (!model_job_goes_on(job) || !decode_block(job, kept, false))
        return false;
    shape_room(job, kept, room_of(job, stack, block->is_cross));
    const size_t element = attn_dtype_bytes(model_job_compute(job));
    if (kept->keys.shape[2] > 0) {
        kept->keys.data = outcome_take(&job->outcome, attn_tensor_count(&kept->keys), element);
        kept->values.data = outcome_take(&job->outcome, attn_tensor_count(&kept->values), element);
    }
    run->keeps = run->keeps && !is_rotated_by_length(kept, kept->keys.shape[2]);
    return !outcome_has_failed(&job->outcome);
}

static bool begin(struct generating *run)
{
    struct model_job *job = run->job;
    const struct checkpoint_model *model = &job->version->model;
    bool goes_on = true;
    for (size_t stack = 0; stack < model->stack_count && goes_on; stack++) {
        const struct model_stack *of = &model->stacks[stack];
        run->blocks[stack] = outcome_take_zeroed(&job->outcome, of->block_count, sizeof *run->blocks[stack]);
        goes_on = run->blocks[stack] != NULL;
        for (size_t i = 0; i < of->block_count && goes_on; i++)
            goes_on = begin_block(run, &run->blocks[stack][i], &of->blocks[i], stack);
    }
    return goes_on && model_head_take(job, &run->head, &run->of_head);
}

static void end(const struct generating *run)
{
    const struct checkpoint_model *model = &run->job->version->model;
    for (size_t stack = 0; stack < model->stack_count; stack++)
        for (size_t i = 0; i < model->stacks[stack].block_count && run->blocks[stack] != NULL; i++)
            prepared_weights_release(run->blocks[stack][i].prepared);
    prepared_weights_release(run->of_head);
}

/* hidden is (rows, d), and next receives the block's output. */
static bool run_block(struct model_job *job, struct kept_block *kept, const attn_tensor *hidden,
                      const attn_tensor *encoded, void *next)
{
    const bool is_cross = kept->block.is_cross;
    assert(!is_cross || encoded != NULL);
    const size_t rows = hidden->shape[0], length = is_cross ? encoded->shape[0] : 0;
    const attn_bindings inputs = {.query = hidden->data, .key = is_cross ? encoded->data : NULL};
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    struct step_plan step;
    attn_result result;
    const bool is_ok = plan_block(job, kept, rows, length, &step) &&
                       outcome_note(&job->outcome, attn_plan_run(&step.plan, &inputs, job->runtime, job->outcome.arena,
                                                                 &result, job->outcome.err));
    if (is_ok) {
        const attn_tensor *output = &result.step[ATTN_STEP_OUTPUT];
        memcpy(next, output->data, attn_tensor_count(output) * attn_dtype_bytes(output->dtype));
        if (kept->keys.data != NULL)
            kept->count = is_cross ? length : kept->count + rows;
    }
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}

/* The rows of the item from first on; *hidden becomes the output of the last block, in the arena. */
static bool run_rows(const struct generating *run, size_t stack, size_t item, size_t first, const attn_tensor *encoded,
                     attn_tensor *hidden)
{
    struct model_job *job = run->job;
    if (!model_embed(job, stack, item, first, hidden))
        return false;
    void *next = outcome_take(&job->outcome, attn_tensor_count(hidden), attn_dtype_bytes(hidden->dtype));
    bool goes_on = next != NULL;
    for (size_t i = 0; i < job->version->model.stacks[stack].block_count && goes_on; i++) {
        goes_on = model_job_goes_on(job) && run_block(job, &run->blocks[stack][i], hidden, encoded, next);
        void *const before = hidden->data;
        hidden->data = next;
        next = before;
    }
    return goes_on;
}

/* *id becomes the most probable token behind the last row; words without an embedding cannot follow. */
static bool find_next(const struct generating *run, size_t item, size_t first, const attn_tensor *encoded, int64_t *id)
{
    struct model_job *job = run->job;
    const size_t stack = job->generation->stack;
    const struct model_stack *of = &job->version->model.stacks[stack];
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    attn_tensor hidden, normed, scores;
    double probability;
    bool is_ok = run_rows(run, stack, item, first, encoded, &hidden);
    if (is_ok) {
        const size_t row_bytes = hidden.shape[1] * attn_dtype_bytes(hidden.dtype);
        const attn_tensor last = attn_tensor_view((char *)hidden.data + (hidden.shape[0] - 1) * row_bytes, hidden.dtype,
                                                  2, (const size_t[]){1, hidden.shape[1]});
        is_ok = model_norm(job, of, &last, &normed) &&
                outcome_note(&job->outcome, attn_predict(&run->head, &normed, job->runtime, job->outcome.arena, &scores,
                                                         job->outcome.err));
    }
    if (is_ok) {
        const size_t words = of->embedding.words.shape[0], scored = scores.shape[1];
        attn_top_words(scores.data, scores.dtype, scored < words ? scored : words, 1, id, &probability, job->runtime);
        is_ok = model_job_goes_on(job);
    }
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}

/* ---- the end ---- */

static bool decode_new(struct model_job *job, const struct model_continuation *item, bool skip_special,
                       struct text_span *text)
{
    struct outcome *outcome = &job->outcome;
    const size_t count = item->count - item->given;
    uint32_t *ids = outcome_take(outcome, count, sizeof *ids);
    for (size_t i = 0; i < count && ids != NULL; i++)
        ids[i] = (uint32_t)item->ids[item->given + i];
    return ids != NULL && outcome_note(outcome, tokenizer_decode(job->version->tokenizer, ids, count, skip_special,
                                                                 outcome->arena, outcome->arena, text, outcome->err));
}

/* Whether the last token is one of options.stop, or the new ones hold one of its texts. */
static bool find_stop(struct model_job *job, const struct model_continuation *item, bool *stops)
{
    const struct model_stop_list *stop = &job->request->stop;
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    struct text_span text = {NULL, 0};
    bool is_ok = true;
    *stops = false;
    for (size_t i = 0; i < stop->count && is_ok && !*stops; i++) {
        const struct model_word *word = &stop->items[i];
        if (word->text.at != NULL && text.at == NULL)
            is_ok = decode_new(job, item, false, &text);
        *stops = word->text.at == NULL
                     ? item->ids[item->count - 1] == word->id
                     : is_ok && memmem(text.at, text.length, word->text.at, word->text.length) != NULL;
    }
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}

static bool look_for_end(struct model_job *job, struct model_continuation *item)
{
    const struct checkpoint_model *model = &job->version->model;
    bool stops;
    if (!find_stop(job, item, &stops))
        return false;
    if (item->count == item->given + job->request->new_tokens)
        item->ended_by = "length";
    if (stops)
        item->ended_by = "stop";
    for (size_t i = 0; i < model->end_count; i++)
        if (item->ids[item->count - 1] == model->ends[i])
            item->ended_by = "end";
    return true;
}

/* ---- an item, and the batch ---- */

static bool encode(const struct generating *run, size_t item, attn_tensor *encoded)
{
    attn_tensor hidden;
    return run_rows(run, 0, item, 0, NULL, &hidden) &&
           model_norm(run->job, &run->job->version->model.stacks[0], &hidden, encoded);
}

static void forget(const struct generating *run, bool of_encoder)
{
    const size_t stack = run->job->generation->stack;
    for (size_t i = 0; i < run->job->version->model.stacks[stack].block_count; i++)
        if (of_encoder || !run->blocks[stack][i].block.is_cross)
            run->blocks[stack][i].count = 0;
}

static bool continue_item(const struct generating *run, size_t index)
{
    struct model_job *job = run->job;
    const size_t stack = job->generation->stack;
    struct model_continuation *item = &job->generation->items[index];
    struct model_sequence *sequence = &job->generation->batch->items[index].of[stack];
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    attn_tensor encoded = {.data = NULL};
    size_t first = 0;
    item->count = item->given;
    forget(run, true);
    bool goes_on = stack == 0 || encode(run, index, &encoded);
    while (goes_on && item->ended_by == NULL) {
        sequence->count = item->count;
        goes_on = find_next(run, index, first, &encoded, &item->ids[item->count]);
        first = run->keeps ? item->count : 0;
        item->count++;
        progress_add(job->progress, PROGRESS_TOKEN, 1, 0);
        if (!run->keeps)
            forget(run, false);
        goes_on = goes_on && look_for_end(job, item);
    }
    attn_arena_release(job->outcome.arena, mark);
    return goes_on;
}

attn_status model_job_generate(struct model_job *job)
{
    struct model_generation *generation = job->generation;
    const size_t items = job->request->inputs.batch;
    struct generating run = {.job = job, .keeps = true};
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    job->features = NULL; /* the run behind it shows them */
    progress_set(job->progress, PROGRESS_PREPARING, 0, items * job->request->new_tokens);
    bool goes_on = begin(&run);
    for (size_t i = 0; i < items && goes_on; i++) {
        progress_set(job->progress, PROGRESS_TOKEN, i * job->request->new_tokens, items * job->request->new_tokens);
        goes_on = continue_item(&run, i);
    }
    end(&run);
    attn_arena_release(job->outcome.arena, mark);
    for (size_t i = 0; i < items && goes_on; i++) {
        struct model_continuation *item = &generation->items[i];
        goes_on = (job->version->tokenizer == NULL || decode_new(job, item, true, &item->text)) &&
                  model_batch_set_ids(generation->batch, &job->outcome, generation->stack, i, item->ids, item->count);
    }
    return job->outcome.status;
}

/* ---- the answer ---- */

size_t model_generation_bound(const struct model_version *version, const struct model_request *request)
{
    enum {
        ITEM_BYTES = 64,
        ID_BYTES = 2 * 21,        /* among the new ones, and in tokens.ids */
        TEXT_BYTES = 3 * 6 * 256, /* its text, what a reader sees, and its part of the whole text */
    };
    return bound_add(bound_add(0, request->inputs.batch, ITEM_BYTES), request->inputs.batch * request->new_tokens,
                     version->tokenizer != NULL ? TEXT_BYTES + ID_BYTES : ID_BYTES);
}

void model_generation_write(const struct model_generation *generation, struct chunks *out)
{
    const size_t items = generation->batch->inputs->batch;
    chunks_text(out, "{\"ids\":[");
    for (size_t i = 0; i < items; i++) {
        const struct model_continuation *item = &generation->items[i];
        chunks_text(out, i > 0 ? ",[" : "[");
        for (size_t n = item->given; n < item->count; n++) {
            chunks_text(out, n > item->given ? "," : "");
            chunks_count(out, (uint64_t)item->ids[n]);
        }
        chunks_text(out, "]");
    }
    chunks_text(out, generation->items[0].text.at != NULL ? "],\"text\":[" : "]");
    for (size_t i = 0; i < items && generation->items[0].text.at != NULL; i++) {
        chunks_text(out, i > 0 ? "," : "");
        chunks_json_span(out, generation->items[i].text);
    }
    chunks_text(out, generation->items[0].text.at != NULL ? "],\"ended_by\":[" : ",\"ended_by\":[");
    for (size_t i = 0; i < items; i++)
        chunks_format(out, "%s\"%s\"", i > 0 ? "," : "", generation->items[i].ended_by);
    chunks_text(out, "]}");
}
