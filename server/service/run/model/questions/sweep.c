/*
 * sweep.c: makes an intervention at each place in turn, and measures what becomes of a word (metric.c). What stands before
 * the changed layer is that of the run without it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "service/run/model/item.h"

static size_t swept_stack(const struct model_job *job)
{
    return job->parts[job->sweep.edit->part].stack;
}

static const struct model_stack *stack_of(const struct model_job *job)
{
    return &job->version->model.stacks[swept_stack(job)];
}

/* Layers of the residual are one more: the last is behind all blocks. */
static size_t count_levels(const struct model_job *job)
{
    return stack_of(job)->layers + (job->request->sweep.at == MODEL_AT_HIDDEN ? 1 : 0);
}

static size_t count_heads(const struct model_job *job)
{
    return stack_of(job)->blocks[0].facts.dims.heads;
}

static bool is_over_heads(const struct model_job *job)
{
    return job->request->sweep.over == MODEL_OVER_HEAD;
}

/* ---- the plan ---- */

/* The places of the second axis of an item: its selected queries, or the selected heads. */
static bool find_places(struct model_job *job, size_t item, attn_selection *places)
{
    const struct model_edit *edit = job->sweep.edit;
    if (!is_over_heads(job))
        return model_edit_rows(job, edit, item, false, places);
    size_t *heads = outcome_take(&job->outcome, count_heads(job), sizeof *heads), count = 0;
    for (size_t head = 0; heads != NULL && head < count_heads(job); head++)
        if (edit->heads == NULL || edit->heads[head])
            heads[count++] = head;
    *places = (attn_selection){.items = heads, .count = count};
    return heads != NULL;
}

static bool check_items(struct model_job *job)
{
    struct model_sweep *own = &job->sweep;
    for (size_t item = 0; item < job->request->inputs.batch; item++) {
        attn_selection places = {.count = 0};
        if (own->edit->items[item] && !find_places(job, item, &places))
            return false;
        own->places = places.count > own->places ? places.count : own->places;
    }
    return true;
}

bool model_sweep_plan(struct model_job *job)
{
    struct model_sweep *own = &job->sweep;
    const attn_dtype compute = model_job_compute(job);
    const size_t batch = job->request->inputs.batch;
    if (!model_job_wants(job, MODEL_SWEEP))
        return true;
    if (model_head_reads_one(job) || job->version->model.head.is_of_classes)
        return outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/return",
                            "\"sweep\" measures words, and %.80s ends in a head of classes",
                            job->version->model.architecture);
    if (!model_metric_plan(job) || !check_items(job))
        return false;
    for (size_t level = 0; level < count_levels(job); level++)
        own->levels += own->edit->layers[level];
    model_add_output(job, &own->values, compute, 3, (const size_t[]){batch, own->levels, own->places}, "sweep.values");
    model_add_output(job, &own->unchanged, compute, 1, &batch, "sweep.unchanged");
    return !outcome_has_failed(&job->outcome);
}

/* Behind each place of a swept encoder runs the whole decoder. */
double model_sweep_times(const struct model_job *job, size_t stack, size_t layer)
{
    const struct model_edit *edit = job->sweep.edit;
    if (edit == NULL || stack < swept_stack(job))
        return 0;
    const bool is_behind = stack > swept_stack(job);
    double levels = 0;
    for (size_t level = 0; (is_behind || level <= layer) && level < count_levels(job); level++)
        levels += edit->layers[level];
    return levels * (double)job->sweep.places;
}

static size_t bytes_of_rows(const struct model_job *job, size_t stack, size_t count)
{
    return count * model_width(&job->version->model.stacks[stack]) * attn_dtype_bytes(model_job_compute(job));
}

/* Of the residual of the longest item. */
static size_t state_bytes(const struct model_job *job, size_t stack)
{
    return bytes_of_rows(job, stack, job->parts[stack].longest_queries);
}

/* The residual before each layer of the swept stack, and what stands beside the blocks that run again. */
double model_sweep_bytes(const struct model_job *job)
{
    if (job->sweep.edit == NULL)
        return 0;
    const double flags = (double)(count_levels(job) + count_heads(job) + job->request->inputs.batch);
    double bytes = (double)bytes_of_rows(job, job->last_stack, HEAD_ROWS) +
                   (double)stack_of(job)->layers * ((double)state_bytes(job, swept_stack(job)) + ATTN_ALIGNMENT);
    for (size_t stack = swept_stack(job); stack <= job->last_stack; stack++)
        bytes += 4 * ((double)state_bytes(job, stack) + ATTN_ALIGNMENT) +
                 model_embed_bytes(job, &job->version->model.stacks[stack], job->parts[stack].longest_queries);
    return bytes + 4 * flags + 16 * (double)job->sweep.places + (1 << 12);
}

/* ---- the run ---- */

bool model_sweep_begin(struct model_job *job)
{
    struct model_sweep *own = &job->sweep;
    if (own->edit == NULL)
        return true;
    const size_t states = stack_of(job)->layers + 1;
    own->items = own->edit->items;
    own->edit->items = outcome_take_zeroed(&job->outcome, job->request->inputs.batch, sizeof *own->edit->items);
    own->states = outcome_take(&job->outcome, states, sizeof *own->states);
    for (size_t i = 0; i < states && !outcome_has_failed(&job->outcome); i++)
        own->states[i] = outcome_take(&job->outcome, state_bytes(job, swept_stack(job)), 1);
    return !outcome_has_failed(&job->outcome);
}

void model_sweep_keep(const struct model_job *job, size_t stack, size_t layer, const attn_tensor *hidden)
{
    if (job->sweep.edit != NULL && !job->sweep.is_running && stack == swept_stack(job))
        memcpy(job->sweep.states[layer], hidden->data, attn_tensor_count(hidden) * attn_dtype_bytes(hidden->dtype));
}

bool model_sweep_restore(struct model_job *job, size_t layer, size_t item, attn_tensor *hidden)
{
    const size_t stack = swept_stack(job), shape[] = {job->items[item].of[stack].count, model_width(stack_of(job))};
    const attn_dtype compute = model_job_compute(job);
    const size_t bytes = shape[0] * shape[1] * attn_dtype_bytes(compute);
    *hidden = attn_tensor_view(outcome_take(&job->outcome, bytes, 1), compute, 2, shape);
    if (hidden->data != NULL)
        memcpy(hidden->data, job->sweep.states[layer], bytes);
    return hidden->data != NULL;
}

/* Where one row of a source begins, in the order of swept layers, of heads, and of queries. */
static char *kept_at(const struct model_job *job, const struct model_edit *whole, size_t level, size_t place)
{
    const size_t all = count_heads(job), rows = whole->kept_rows;
    const bool has_heads = whole->given->at == MODEL_AT_CONTEXT || whole->given->at == MODEL_AT_ATTENTION;
    size_t heads = has_heads ? 0 : 1;
    for (size_t head = 0; head < all && has_heads; head++)
        heads += whole->heads == NULL || whole->heads[head];
    const size_t row = level * heads * rows + (is_over_heads(job) ? place * rows : place);
    return whole->kept == NULL ? NULL
                               : whole->kept + row * whole->kept_columns * attn_dtype_bytes(model_job_compute(job));
}

struct sweep {
    struct model_job *job;
    size_t item, query;
    const struct model_sweep_calls *calls;
    struct model_edit whole;         /* as the request gives it */
    struct model_intervention given; /* at one place */
    struct index_range one;
    bool *layers, *heads, *items;
    attn_selection places;
    attn_tensor rows; /* (HEAD_ROWS, d): what the head reads of some places */
};

static bool run_place(const struct sweep *sweep, size_t layer, size_t row)
{
    const attn_tensor *rows = &sweep->rows;
    return model_job_goes_on(sweep->job) &&
           sweep->calls->run_from(sweep->calls->context, layer, sweep->query,
                                  (char *)rows->data + row * rows->shape[1] * attn_dtype_bytes(rows->dtype));
}

/*
 * Measures the first rows, and writes the metrics. The head reads its weights once for all of them. A single row is measured
 * twice, because the BLAS sums a vector in another order than rows: places without an effect have the unchanged bits.
 */
static bool measure(const struct sweep *sweep, size_t count, attn_dtype dtype, char *to)
{
    double metrics[HEAD_ROWS];
    attn_tensor rows = sweep->rows;
    const size_t bytes = rows.shape[1] * attn_dtype_bytes(rows.dtype);
    if (count == 1)
        memcpy((char *)rows.data + bytes, rows.data, bytes);
    rows.shape[0] = count == 1 ? 2 : count;
    const bool is_ok = sweep->calls->measure(sweep->job, &rows, metrics);
    if (is_ok)
        model_put_numbers(metrics, count, dtype, to);
    return is_ok;
}

static bool sweep_layer(struct sweep *sweep, size_t layer, size_t level)
{
    struct model_job *job = sweep->job;
    struct model_edit *edit = job->sweep.edit;
    const attn_tensor *values = &job->sweep.values->tensor;
    char *to = model_copy_place(values, sweep->item, level);
    bool goes_on = true;
    sweep->layers[layer] = true;
    for (size_t i = 0, row = 0; i < sweep->places.count && goes_on; i++) {
        const size_t place = attn_selected(&sweep->places, i);
        if (is_over_heads(job))
            sweep->heads[place] = true;
        else
            sweep->one = (struct index_range){(int64_t)place, (int64_t)place};
        edit->kept = kept_at(job, &sweep->whole, level, i);
        goes_on = run_place(sweep, layer, row++);
        if (goes_on && (row == HEAD_ROWS || i + 1 == sweep->places.count)) {
            goes_on = measure(sweep, row, values->dtype, to + (i + 1 - row) * attn_dtype_bytes(values->dtype));
            row = 0;
        }
        if (is_over_heads(job))
            sweep->heads[place] = false;
    }
    sweep->layers[layer] = false;
    return goes_on;
}

static bool sweep_layers(struct sweep *sweep)
{
    struct model_job *job = sweep->job;
    struct model_edit *edit = job->sweep.edit;
    const bool *layers = edit->layers;
    bool goes_on = true;
    *edit = sweep->whole;
    edit->given = &sweep->given;
    edit->layers = sweep->layers;
    edit->heads = is_over_heads(job) ? sweep->heads : edit->heads;
    edit->items = sweep->items;
    sweep->items[sweep->item] = true;
    if (!is_over_heads(job))
        sweep->given.queries = (struct index_list){.ranges = &sweep->one, .count = 1};
    for (size_t layer = 0, level = 0; layer < count_levels(job) && goes_on; layer++)
        if (layers[layer])
            goes_on = sweep_layer(sweep, layer, level++);
    *edit = sweep->whole;
    return goes_on;
}

/* The blocks that run again show nothing. */
static void hide_part(struct model_part *part)
{
    part->layer_count = 0;
    part->hidden = part->rollout = part->head_scores[0] = NULL;
}

bool model_sweep_run(struct model_job *job, size_t item, const struct model_sweep_calls *calls)
{
    struct model_sweep *own = &job->sweep;
    if (own->edit == NULL)
        return true;
    const size_t rows[] = {HEAD_ROWS, model_width(&job->version->model.stacks[job->last_stack])};
    const attn_dtype compute = model_job_compute(job);
    void *numbers = outcome_take(&job->outcome, rows[0] * rows[1], attn_dtype_bytes(compute));
    struct sweep sweep = {.job = job,
                          .item = item,
                          .query = model_metric_query(job, item),
                          .calls = calls,
                          .whole = *own->edit,
                          .given = *own->edit->given,
                          .layers = outcome_take_zeroed(&job->outcome, count_levels(job), sizeof(bool)),
                          .heads = outcome_take_zeroed(&job->outcome, count_heads(job), sizeof(bool)),
                          .items = outcome_take_zeroed(&job->outcome, job->request->inputs.batch, sizeof(bool)),
                          .rows = attn_tensor_view(numbers, compute, 2, rows)};
    struct model_output *const bias = job->attribution.bias;
    if (outcome_has_failed(&job->outcome) || (own->items[item] && !find_places(job, item, &sweep.places)))
        return false;
    struct model_part shown[MODEL_PARTS_MAX];
    memcpy(shown, job->parts, sizeof shown);
    for (size_t i = 0; i < job->part_count; i++)
        hide_part(&job->parts[i]);
    job->attribution.bias = NULL;
    own->is_running = true;
    const attn_tensor *unchanged = &own->unchanged->tensor;
    bool goes_on =
        run_place(&sweep, SIZE_MAX, 0) &&
        measure(&sweep, 1, unchanged->dtype, (char *)unchanged->data + item * attn_dtype_bytes(unchanged->dtype));
    goes_on = goes_on && (!own->items[item] || sweep_layers(&sweep));
    own->is_running = false;
    job->attribution.bias = bias;
    memcpy(job->parts, shown, sizeof shown);
    return goes_on;
}

/* ---- the picture ---- */

static bool fail_item(struct model_job *job, size_t item)
{
    char expected[64];
    snprintf(expected, sizeof expected, "a batch item that options.sweep changes, of %zu", job->request->inputs.batch);
    return outcome_note(&job->outcome, picture_options_fail_number("batch", item, expected, job->outcome.err));
}

/* A label such as "layer 3" for each of count numbers. */
static const char **name_numbers(struct model_job *job, const char *what, const attn_selection *numbers)
{
    enum { NAME_BYTES = 32 };
    const char **names = outcome_take(&job->outcome, numbers->count, sizeof *names);
    char *room = outcome_take(&job->outcome, numbers->count, NAME_BYTES);
    for (size_t i = 0; i < numbers->count && !outcome_has_failed(&job->outcome); i++) {
        names[i] = room + i * NAME_BYTES;
        snprintf(room + i * NAME_BYTES, NAME_BYTES, "%s %zu", what, attn_selected(numbers, i));
    }
    return names;
}

static void name_layers(struct model_job *job, struct picture_axis *axis)
{
    const struct model_sweep *own = &job->sweep;
    size_t *numbers = outcome_take(&job->outcome, own->levels, sizeof *numbers), count = 0;
    for (size_t level = 0; numbers != NULL && level < count_levels(job); level++)
        if (own->edit->layers[level])
            numbers[count++] = level;
    const char **names =
        name_numbers(job, "layer", &(attn_selection){.items = numbers, .count = numbers != NULL ? count : 0});
    *axis = (struct picture_axis){.labels = names, .count = count};
    if (names != NULL && numbers != NULL && own->edit->given->at == MODEL_AT_HIDDEN && numbers[0] == 0)
        names[0] = "embeddings";
}

/* The token or the head of each place. */
static void name_places(struct model_job *job, const attn_selection *places, const struct labels *labels,
                        struct picture_axis *axis)
{
    size_t *numbers = outcome_take(&job->outcome, places->count, sizeof *numbers);
    for (size_t i = 0; numbers != NULL && i < places->count; i++)
        numbers[i] = attn_selected(places, i);
    *axis = is_over_heads(job)
                ? (struct picture_axis){.labels = name_numbers(job, "head", places), .count = places->count}
                : (struct picture_axis){.labels = labels->texts, .count = labels->count, .numbers = numbers};
}

static void write_word(struct model_job *job, size_t word, struct chunks *out)
{
    char room[TOKENIZER_SHOWN_MAX];
    struct text_span shown;
    const struct tokenizer *tokenizer = job->version->tokenizer;
    if (tokenizer == NULL) {
        chunks_format(out, "%" PRId64, job->measured.ids[word]);
        return;
    }
    out->is_ok =
        tokenizer_show_id(tokenizer, (uint32_t)job->measured.ids[word], false, out->arena, room, &shown) && out->is_ok;
    chunks_bytes(out, shown.at, shown.length);
}

/* "log p(tea)", or "logit(tea) − logit(milk)". */
static const char *name_metric(struct model_job *job)
{
    struct chunks out = chunks_begin(job->outcome.arena);
    for (size_t word = 0; word < job->measured.count; word++) {
        chunks_text(&out, job->measured.count == 1 ? "log p(" : word == 0 ? "logit(" : " \xE2\x88\x92 logit(");
        write_word(job, word, &out);
        chunks_text(&out, ")");
    }
    const char *text = chunks_join(&out);
    const char *label = text == NULL || !out.is_ok
                            ? NULL
                            : model_batch_label((struct text_span){text, out.total_bytes}, job->outcome.arena);
    if (label == NULL)
        outcome_no_memory(&job->outcome);
    return label;
}

/* "hidden replaced", "decoder hidden replaced" */
static const char *name_act(struct model_job *job)
{
    enum { ACT_BYTES = 48 };
    static const char *const done[MODEL_ACT_COUNT] = {
        [MODEL_DO_ZERO] = "set to 0", [MODEL_DO_MEAN] = "set to its mean", [MODEL_DO_SCALE] = "scaled",
        [MODEL_DO_ADD] = "added to",  [MODEL_DO_REPLACE] = "replaced",     [MODEL_DO_MASK] = "hidden"};
    const struct model_intervention *given = job->sweep.edit->given;
    char *act = outcome_take(&job->outcome, ACT_BYTES, 1);
    if (act != NULL)
        snprintf(act, ACT_BYTES, "%s%s%s %s", given->part != NULL ? given->part : "", given->part != NULL ? " " : "",
                 model_place_name((model_place)given->at), done[given->act]);
    return act;
}

bool model_sweep_picture(struct model_job *job, const struct picture_options *options, const struct labels labels[2],
                         struct model_picture *made)
{
    const struct model_sweep *own = &job->sweep;
    attn_selection places;
    if (options->batch >= job->request->inputs.batch || !own->edit->items[options->batch])
        return fail_item(job, options->batch);
    *made = (struct model_picture){.picture = {.options = *options, .weights = &made->weights, .sweep = &made->sweep},
                                   .sweep = {.metric = name_metric(job),
                                             .act = name_act(job),
                                             .columns = is_over_heads(job) ? "heads" : "tokens"}};
    name_layers(job, &made->picture.queries);
    if (!find_places(job, options->batch, &places))
        return false;
    name_places(job, &places, &labels[swept_stack(job)], &made->picture.keys);
    made->weights =
        attn_tensor_view(NULL, own->values->tensor.dtype, 4, (const size_t[]){1, 1, own->levels, places.count});
    made->weights.stride[2] = (ptrdiff_t)own->places;
    return !outcome_has_failed(&job->outcome);
}

void model_sweep_picture_fill(const struct model_job *job, struct model_picture *made)
{
    const struct model_sweep *own = &job->sweep;
    const size_t item = made->picture.options.batch;
    const attn_tensor *unchanged = &own->unchanged->tensor;
    made->weights.data = model_copy_place(&own->values->tensor, item, 0);
    made->sweep.unchanged = unchanged->dtype == ATTN_F64 ? ((const double *)unchanged->data)[item]
                                                         : (double)((const float *)unchanged->data)[item];
}

/* ---- the answer ---- */

void model_sweep_write(const struct model_job *job, struct chunks *out)
{
    const struct model_sweep *own = &job->sweep;
    if (own->edit == NULL)
        return;
    chunks_text(out, ",\"sweep\":");
    model_edit_write(job, own->edit, out);
}
