/* edit.c: makes the interventions of a request at one place of one layer of one item. */
#include <assert.h>
#include <string.h>

#include "service/run/model/item.h"

/* Numbers of the compute type, (heads, rows, width); without heads, one. */
struct place {
    struct model_job *job;
    model_place at;
    size_t part, layer, item;
    const attn_tensor *numbers; /* of rank 4, (1, heads, rows, width), or (…, rows, width) */
    bool *changed;              /* a flag for each row, or NULL */
};

/* ---- numbers ---- */

static double get(const void *data, attn_dtype dtype, size_t at)
{
    return dtype == ATTN_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

/* As C rounds: a number beyond the range of float becomes infinite. */
static void put(void *data, attn_dtype dtype, size_t at, double value)
{
    if (dtype == ATTN_F32)
        ((float *)data)[at] = (float)value;
    else
        ((double *)data)[at] = value;
}

static size_t heads_of(const struct place *place)
{
    return place->numbers->rank == 4 ? place->numbers->shape[1] : 1;
}

static size_t rows_of(const struct place *place)
{
    return place->numbers->shape[place->numbers->rank - 2];
}

static void *row_at(const struct place *place, size_t head, size_t row)
{
    const attn_tensor *numbers = place->numbers;
    const ptrdiff_t at = (numbers->rank == 4 ? (ptrdiff_t)head * numbers->stride[1] : 0) +
                         (ptrdiff_t)row * numbers->stride[numbers->rank - 2];
    return (char *)numbers->data + at * (ptrdiff_t)attn_dtype_bytes(numbers->dtype);
}

/* ---- one edit ---- */

struct change {
    const struct place *place;
    const struct model_edit *edit;
    attn_selection rows, columns;
    double *mean; /* of the columns, of the head that is changed; NULL: not asked for */
    size_t kept;  /* of edit->kept: the first number of the head that is changed */
};

static void find_mean(const struct change *change, size_t head)
{
    const struct place *place = change->place;
    const size_t rows = rows_of(place);
    for (size_t c = 0; c < change->columns.count; c++) {
        double sum = 0;
        for (size_t row = 0; row < rows; row++)
            sum += get(row_at(place, head, row), place->numbers->dtype, attn_selected(&change->columns, c));
        change->mean[c] = sum / (double)rows;
    }
}

/* The new number of row i, column c of the selected ones. */
static double changed_number(const struct change *change, double number, size_t i, size_t c)
{
    const struct model_intervention *given = change->edit->given;
    const attn_dtype dtype = change->place->numbers->dtype;
    switch ((model_act)given->act) {
    case MODEL_DO_ZERO:
        return 0;
    case MODEL_DO_MEAN:
        assert(change->mean != NULL);
        return change->mean[c];
    case MODEL_DO_SCALE:
        return given->factor * number;
    case MODEL_DO_ADD:
        return number + given->factor * get(given->value->data, dtype, c);
    case MODEL_DO_REPLACE:
        return given->value != NULL ? get(given->value->data, dtype, c)
                                    : get(change->edit->kept, dtype, change->kept + i * change->columns.count + c);
    case MODEL_DO_MASK:
    case MODEL_ACT_COUNT:
        break;
    }
    assert(false); /* masks are made before the softmax */
    return number;
}

static void change_head(const struct change *change, size_t head)
{
    const struct place *place = change->place;
    const attn_dtype dtype = place->numbers->dtype;
    for (size_t i = 0; i < change->rows.count; i++) {
        const size_t row = attn_selected(&change->rows, i);
        void *numbers = row_at(place, head, row);
        for (size_t c = 0; c < change->columns.count; c++) {
            const size_t column = attn_selected(&change->columns, c);
            put(numbers, dtype, column, changed_number(change, get(numbers, dtype, column), i, c));
        }
        if (place->changed != NULL)
            place->changed[head * rows_of(place) + row] = true;
    }
}

/* Keeps the rows of a source as they are now. */
static void keep_head(const struct change *change, size_t head)
{
    const struct place *place = change->place;
    const attn_dtype dtype = place->numbers->dtype;
    for (size_t i = 0; i < change->rows.count; i++)
        for (size_t c = 0; c < change->columns.count; c++)
            put(change->edit->kept, dtype, change->kept + i * change->columns.count + c,
                get(row_at(place, head, attn_selected(&change->rows, i)), dtype, attn_selected(&change->columns, c)));
}

/* How many heads an edit has. */
static size_t heads_of_edit(const struct place *place, const struct model_edit *edit)
{
    size_t heads = 0;
    for (size_t head = 0; head < heads_of(place); head++)
        heads += edit->heads == NULL || edit->heads[head];
    return heads;
}

/* The first number of the layer in edit->kept. */
static size_t kept_of_layer(const struct place *place, const struct model_edit *edit)
{
    size_t layers = 0;
    for (size_t layer = 0; layer < place->layer; layer++)
        layers += edit->layers[layer];
    return layers * heads_of_edit(place, edit) * edit->kept_rows * edit->kept_columns;
}

static void take_heads(struct change *change, bool keeps)
{
    const struct place *place = change->place;
    const struct model_edit *edit = change->edit;
    change->kept = edit->from != SIZE_MAX ? kept_of_layer(place, edit) : 0;
    for (size_t head = 0; head < heads_of(place); head++) {
        if (edit->heads != NULL && !edit->heads[head])
            continue;
        if (change->mean != NULL)
            find_mean(change, head);
        (keeps ? keep_head : change_head)(change, head);
        change->kept += edit->kept_rows * edit->kept_columns;
    }
}

/* Changes the numbers of an item, or keeps those of a source. */
static bool make(const struct place *place, const struct model_edit *edit, bool keeps)
{
    struct model_job *job = place->job;
    struct change change = {.place = place, .edit = edit};
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    bool is_ok = model_edit_rows(job, edit, place->item, keeps, &change.rows) &&
                 model_edit_columns(job, edit, place->numbers->shape[place->numbers->rank - 1], &change.columns);
    if (is_ok && !keeps && edit->given->act == MODEL_DO_MEAN) {
        change.mean = outcome_take(&job->outcome, change.columns.count, sizeof *change.mean);
        is_ok = change.mean != NULL;
    }
    if (is_ok)
        take_heads(&change, keeps);
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}

/* ---- all edits of a place ---- */

/* Whether the edit changes the item there, or has numbers from it. */
static bool is_there(const struct model_edit *edit, model_place at, size_t part, size_t layer, size_t item)
{
    return edit->given->at == (size_t)at && edit->part == part && edit->layers[layer] &&
           (edit->items[item] || edit->from == item);
}

static bool make_all(const struct place *place)
{
    struct model_job *job = place->job;
    for (int keeps = 0; keeps < 2; keeps++)
        for (size_t e = 0; e < job->edit_count; e++) {
            const struct model_edit *edit = &job->edits[e];
            /* The runs of a sweep keep nothing: other items read what the item had without it. */
            const bool is_meant =
                keeps ? edit->from == place->item && !job->sweep.is_running : edit->items[place->item];
            if (!model_job_goes_on(job) ||
                (is_meant && edit->given->act != MODEL_DO_MASK &&
                 is_there(edit, place->at, place->part, place->layer, place->item) && !make(place, edit, keeps)))
                return false;
        }
    return true;
}

bool model_edit_hidden(struct model_job *job, size_t stack, size_t layer, size_t item, const attn_tensor *hidden)
{
    const struct place place = {job, MODEL_AT_HIDDEN, stack, layer, item, hidden, NULL};
    return make_all(&place);
}

/* ---- a block ---- */

/* The core's places, and ours. The feed-forward network of a decoder is part of the block that looks at the encoder. */
static const model_place places[] = {[ATTN_EDIT_ATTENTION] = MODEL_AT_ATTENTION,
                                     [ATTN_EDIT_CONTEXT] = MODEL_AT_CONTEXT,
                                     [ATTN_EDIT_ATTENTION_OUTPUT] = MODEL_AT_ATTENTION_OUTPUT,
                                     [ATTN_EDIT_FEED_FORWARD] = MODEL_AT_FEED_FORWARD};

static size_t part_at(const struct model_block_run *run, model_place at)
{
    return at == MODEL_AT_FEED_FORWARD ? run->part->stack : (size_t)(run->part - run->job->parts);
}

static attn_status edit_block(void *context, attn_edit_place at, const attn_tensor *numbers, bool *changed)
{
    const struct model_block_run *run = context;
    const struct place place = {run->job, places[at], part_at(run, places[at]), run->block->layer, run->item,
                                numbers,  changed};
    if (!make_all(&place))
        return run->job->outcome.status;
    if (at == ATTN_EDIT_FEED_FORWARD && model_attribution_reads(run))
        model_attribution_keep_network(run, numbers);
    return ATTN_OK;
}

/* Hides the selected keys of the selected queries. */
static bool hide(struct model_job *job, const struct model_edit *edit, size_t item, const attn_tensor *attend)
{
    const size_t heads = attend->shape[1], q_len = attend->shape[2], kv_len = attend->shape[3];
    bool *flags = attend->data;
    attn_selection rows, columns;
    const bool is_ok =
        model_edit_rows(job, edit, item, false, &rows) && model_edit_columns(job, edit, kv_len, &columns);
    for (size_t head = 0; head < heads && is_ok; head++)
        for (size_t i = 0; i < rows.count && (edit->heads == NULL || edit->heads[head]); i++)
            for (size_t c = 0; c < columns.count; c++)
                flags[(head * q_len + attn_selected(&rows, i)) * kv_len + attn_selected(&columns, c)] = false;
    return is_ok;
}

/* A mask of each head beside those of the model. */
static bool set_mask(struct model_block_run *run, size_t q_len, size_t kv_len)
{
    struct model_job *job = run->job;
    attn_masks *masks = &run->envelope.request.masks;
    const size_t heads = run->block->facts.dims.heads, count = heads * q_len * kv_len;
    attn_tensor *attend = outcome_take(&job->outcome, 1, sizeof *attend);
    bool *flags = outcome_take(&job->outcome, count, sizeof *flags);
    assert(masks->attend == NULL); /* its size is that of a sequence, so that no kept layer has it */
    if (outcome_has_failed(&job->outcome))
        return false;
    memset(flags, true, count);
    *attend = attn_tensor_view(flags, ATTN_BOOL, 4, (const size_t[]){1, heads, q_len, kv_len});
    bool is_ok = true;
    for (size_t e = 0; e < job->edit_count && is_ok; e++)
        if (job->edits[e].given->act == MODEL_DO_MASK && job->edits[e].items[run->item] &&
            is_there(&job->edits[e], MODEL_AT_ATTENTION, part_at(run, MODEL_AT_ATTENTION), run->block->layer,
                     run->item))
            is_ok = hide(job, &job->edits[e], run->item, attend);
    masks->attend = attend;
    return is_ok;
}

bool model_edit_block(struct model_block_run *run, size_t q_len, size_t kv_len)
{
    const struct model_job *job = run->job;
    bool masks = false;
    run->edits = (attn_edits){.edit = edit_block, .context = run};
    if (model_attribution_reads(run) && !run->is_longest)
        run->edits.places = 1U << ATTN_EDIT_FEED_FORWARD;
    for (size_t e = 0; e < job->edit_count && !run->is_longest; e++)
        for (size_t at = 0; at < sizeof places / sizeof *places; at++) {
            if (!is_there(&job->edits[e], places[at], part_at(run, places[at]), run->block->layer, run->item))
                continue;
            if (job->edits[e].given->act == MODEL_DO_MASK)
                masks = true;
            else
                run->edits.places |= 1U << at;
        }
    run->envelope.request.edits = run->edits.places != 0 ? &run->edits : NULL;
    return !masks || set_mask(run, q_len, kv_len);
}
