/* interventions.c: what a request changes while a model runs: which items, layers and numbers, and in which order. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec/answer/forms.h"
#include "service/run/model/item.h"

enum { FIELD_BYTES = 64 };

/* "/options/interventions/2/queries". */
static const char *field_of(const struct model_job *job, const struct model_edit *edit, const char *member,
                            char field[FIELD_BYTES])
{
    const char *separator = member[0] != '\0' ? "/" : "";
    if (edit->given->is_swept)
        snprintf(field, FIELD_BYTES, "/options/sweep%s%s", separator, member);
    else
        snprintf(field, FIELD_BYTES, "/options/interventions/%zu%s%s",
                 (size_t)(edit->given - job->request->interventions.items), separator, member);
    return field;
}

static const struct model_stack *stack_of(const struct model_job *job, const struct model_edit *edit)
{
    return &job->version->model.stacks[job->parts[edit->part].stack];
}

/* ---- selections ---- */

/* The selection as indices below count, which are all different. */
static bool settle(struct model_job *job, const struct model_edit *edit, const struct index_list *list,
                   const char *member, size_t count, attn_selection *selection)
{
    char field[FIELD_BYTES];
    struct index_list checked = *list;
    *selection = (attn_selection){.count = count};
    if (list->count == 0)
        return true;
    checked.counts_from_end = true; /* so that indices that are too large are refused, too */
    field_of(job, edit, member, field);
    if (!outcome_note(&job->outcome, index_list_settle(&checked, field + strlen("/options/"), count, job->outcome.arena,
                                                       selection, job->outcome.err)))
        return false;
    bool *is_there = outcome_take_zeroed(&job->outcome, count, sizeof *is_there);
    for (size_t i = 0; is_there != NULL && i < selection->count; i++) {
        bool *const place = &is_there[attn_selected(selection, i)];
        if (*place)
            return outcome_fail(&job->outcome, ATTN_ERR_VALUE, field, "%s has %zu twice", field,
                                attn_selected(selection, i));
        *place = true;
    }
    return is_there != NULL;
}

/* *flags has true for each selected index. */
static bool mark(struct model_job *job, const struct model_edit *edit, const struct index_list *list,
                 const char *member, size_t count, const bool **flags)
{
    attn_selection selection;
    bool *made = outcome_take_zeroed(&job->outcome, count, sizeof *made);
    const bool is_ok = made != NULL && settle(job, edit, list, member, count, &selection);
    for (size_t i = 0; is_ok && i < selection.count; i++)
        made[attn_selected(&selection, i)] = true;
    *flags = made;
    return is_ok;
}

bool model_edit_rows(struct model_job *job, const struct model_edit *edit, size_t item, bool of_source,
                     attn_selection *rows)
{
    const struct model_intervention *given = edit->given;
    const bool has_own = of_source && given->from_queries.count > 0;
    return settle(job, edit, has_own ? &given->from_queries : &given->queries, has_own ? "from_queries" : "queries",
                  job->items[item].of[job->parts[edit->part].stack].count, rows);
}

/* The numbers of a row that are changed: selected keys, or all. */
bool model_edit_columns(struct model_job *job, const struct model_edit *edit, size_t width, attn_selection *columns)
{
    return settle(job, edit, &edit->given->keys, "keys", width, columns);
}

/* ---- one intervention ---- */

static bool find_part(struct model_job *job, struct model_edit *edit)
{
    static const char *const names[] = {"encoder", "decoder", "cross"};
    const struct model_intervention *given = edit->given;
    const bool has_two = job->version->model.stack_count == 2;
    char field[FIELD_BYTES];
    edit->part = 0;
    if (has_two != (given->part != NULL))
        return outcome_fail(&job->outcome, ATTN_ERR_FIELD, field_of(job, edit, has_two ? "" : "part", field),
                            has_two ? "%s has no \"part\": \"encoder\", \"decoder\" or \"cross\""
                                    : "%s is of models with an encoder and a decoder, and this one has one stack",
                            field);
    while (has_two && edit->part < 2 && strcmp(names[edit->part], given->part) != 0)
        edit->part++;
    return edit->part < job->part_count ||
           outcome_fail(&job->outcome, ATTN_ERR_FIELD, field_of(job, edit, "part", field),
                        "%s is \"%s\", which does not run: give inputs.target or inputs.target_ids", field,
                        given->part);
}

static bool find_source(struct model_job *job, struct model_edit *edit)
{
    const int64_t batch = (int64_t)job->request->inputs.batch, from = edit->given->from;
    char field[FIELD_BYTES];
    edit->from = SIZE_MAX;
    if (!edit->given->has_from)
        return true;
    if (from < -batch || from >= batch)
        return outcome_fail(&job->outcome, ATTN_ERR_VALUE, field_of(job, edit, "from", field),
                            "%s is item %" PRId64 "; they are numbered 0 to %" PRId64, field, from, batch - 1);
    edit->from = (size_t)(from < 0 ? from + batch : from);
    return true;
}

/* With "from", the items are by default all others. */
static bool find_items(struct model_job *job, struct model_edit *edit)
{
    const size_t batch = job->request->inputs.batch;
    char field[FIELD_BYTES];
    if (!mark(job, edit, &edit->given->items, "items", batch, &edit->items))
        return false;
    if (edit->from == SIZE_MAX || !edit->items[edit->from])
        return true;
    if (edit->given->items.count > 0 || batch == 1)
        return outcome_fail(&job->outcome, ATTN_ERR_VALUE, field_of(job, edit, "from", field),
                            "%s is item %zu, which is changed itself: the source is another item of the batch", field,
                            edit->from);
    ((bool *)(uintptr_t)edit->items)[edit->from] = false;
    return true;
}

static bool fail_width(struct model_job *job, const struct model_edit *edit, size_t item, size_t wanted)
{
    char field[FIELD_BYTES];
    field_of(job, edit, "value", field);
    if (edit->given->at == MODEL_AT_ATTENTION)
        return outcome_fail(&job->outcome, ATTN_ERR_SHAPE, field, "%s has %zu numbers, and item %zu has %zu keys there",
                            field, edit->given->value->shape[0], item, wanted);
    return outcome_fail(&job->outcome, ATTN_ERR_SHAPE, field, "%s has %zu numbers, and \"%s\" has %zu", field,
                        edit->given->value->shape[0], model_place_name((model_place)edit->given->at), wanted);
}

/* The numbers of a row at the place. */
static size_t width_of(const struct model_job *job, const struct model_edit *edit, size_t item)
{
    const struct model_part *part = &job->parts[edit->part];
    const struct model_stack *stack = stack_of(job, edit);
    switch ((model_place)edit->given->at) {
    case MODEL_AT_CONTEXT:
        return stack->blocks[0].facts.dims.d_v;
    case MODEL_AT_ATTENTION:
        return job->items[item].of[part->is_cross ? 0 : part->stack].count;
    case MODEL_AT_HIDDEN:
    case MODEL_AT_ATTENTION_OUTPUT:
    case MODEL_AT_FEED_FORWARD:
    case MODEL_PLACE_COUNT:
        break;
    }
    return model_width(stack);
}

/* The rows and columns of an item, beside those of the source, whose count keys may take from its own length. */
static bool check_item(struct model_job *job, struct model_edit *edit, size_t item)
{
    attn_selection rows, columns, from_rows = {.count = 0}, from_columns = {.count = 0};
    char field[FIELD_BYTES];
    attn_error *err = job->outcome.err;
    if (!model_edit_rows(job, edit, item, false, &rows) ||
        !model_edit_columns(job, edit, width_of(job, edit, item), &columns) ||
        (edit->from != SIZE_MAX && (!model_edit_rows(job, edit, edit->from, true, &from_rows) ||
                                    !model_edit_columns(job, edit, width_of(job, edit, edit->from), &from_columns)))) {
        if (job->outcome.status != ATTN_ERR_NO_MEMORY && job->outcome.status != ATTN_ERR_CANCELLED)
            attn_fail(err, job->outcome.status, err->field, "%s (item %zu)", err->message, item);
        return false;
    }
    if (edit->given->value != NULL && edit->given->value->shape[0] != columns.count)
        return fail_width(job, edit, item, columns.count);
    if (edit->from == SIZE_MAX)
        return true;
    if (from_rows.count != rows.count || from_columns.count != columns.count)
        return outcome_fail(
            &job->outcome, ATTN_ERR_SHAPE, field_of(job, edit, "", field),
            "%s replaces %zu queries of item %zu by %zu of item %zu, with %zu and %zu numbers each: name "
            "queries and keys that both have",
            field, rows.count, item, from_rows.count, edit->from, columns.count, from_columns.count);
    edit->kept_rows = from_rows.count;
    edit->kept_columns = from_columns.count;
    return true;
}

static bool check_items(struct model_job *job, struct model_edit *edit)
{
    bool goes_on = true;
    for (size_t item = 0; item < job->request->inputs.batch && goes_on; item++) {
        const attn_arena_mark mark_here = attn_arena_mark_here(job->outcome.arena);
        goes_on = !edit->items[item] || (model_job_goes_on(job) && check_item(job, edit, item));
        attn_arena_release(job->outcome.arena, mark_here);
    }
    return goes_on;
}

static bool find_places(struct model_job *job, struct model_edit *edit)
{
    const struct model_stack *stack = stack_of(job, edit);
    const size_t layers = stack->layers + (edit->given->at == MODEL_AT_HIDDEN ? 1 : 0);
    edit->heads = NULL;
    return mark(job, edit, &edit->given->layers, "layers", layers, &edit->layers) &&
           (edit->given->heads.count == 0 ||
            mark(job, edit, &edit->given->heads, "heads", stack->blocks[0].facts.dims.heads, &edit->heads));
}

static bool plan_edit(struct model_job *job, struct model_edit *edit)
{
    return find_part(job, edit) && find_places(job, edit) && find_source(job, edit) && find_items(job, edit) &&
           check_items(job, edit);
}

/* ---- the short form ---- */

/* The heads of a layer that options.ablate names, if it names some: their context becomes 0. */
static bool add_ablated(struct model_job *job, size_t layer)
{
    static const struct model_intervention zero = {.at = MODEL_AT_CONTEXT, .act = MODEL_DO_ZERO, .factor = 1};
    const struct model_stack *stack = &job->version->model.stacks[0];
    const size_t batch = job->request->inputs.batch;
    bool *layers = NULL, *heads = NULL, *items = NULL;
    for (size_t i = 0; i < job->request->ablations; i++) {
        if ((size_t)job->request->ablate[i].layer != layer)
            continue;
        if (layers == NULL) {
            layers = outcome_take_zeroed(&job->outcome, stack->layers, sizeof *layers);
            heads = outcome_take_zeroed(&job->outcome, stack->blocks[0].facts.dims.heads, sizeof *heads);
            items = outcome_take(&job->outcome, batch, sizeof *items);
        }
        if (outcome_has_failed(&job->outcome))
            return false;
        layers[layer] = true;
        heads[job->request->ablate[i].head] = true;
        memset(items, true, batch);
    }
    if (layers != NULL)
        job->edits[job->edit_count++] =
            (struct model_edit){.given = &zero, .layers = layers, .heads = heads, .items = items, .from = SIZE_MAX};
    return true;
}

/* ---- the order of the items ---- */

static bool waits(const struct model_job *job, size_t item, const bool *has_run)
{
    for (size_t e = 0; e < job->edit_count; e++)
        if (job->edits[e].from != SIZE_MAX && job->edits[e].items[item] && !has_run[job->edits[e].from])
            return true;
    return false;
}

/* An item runs behind those that it has numbers from. */
static bool order_items(struct model_job *job)
{
    const size_t batch = job->request->inputs.batch;
    size_t *order = outcome_take(&job->outcome, batch, sizeof *order), count = 0, before = SIZE_MAX;
    bool *has_run = outcome_take_zeroed(&job->outcome, batch, sizeof *has_run);
    if (order == NULL || has_run == NULL)
        return false;
    for (; count < batch && count != before;) {
        before = count;
        for (size_t item = 0; item < batch; item++)
            if (!has_run[item] && !waits(job, item, has_run)) {
                has_run[item] = true;
                order[count++] = item;
            }
    }
    job->order = order;
    return count == batch || outcome_fail(&job->outcome, ATTN_ERR_VALUE, "/options/interventions",
                                          "options.interventions%s items that replace numbers by each other's: "
                                          "one of them must run first",
                                          job->sweep.edit != NULL ? " and options.sweep have" : " has");
}

bool model_edits_plan(struct model_job *job)
{
    const struct model_intervention_list *list = &job->request->interventions;
    const size_t layers = job->version->model.stacks[0].layers;
    struct model_edit *edits = outcome_take_zeroed(&job->outcome, layers + list->count + 1, sizeof *edits);
    bool is_ok = edits != NULL;
    job->edits = edits;
    for (size_t layer = 0; layer < layers && is_ok; layer++)
        is_ok = add_ablated(job, layer);
    for (size_t i = 0; i < list->count && is_ok; i++) {
        edits[job->edit_count].given = &list->items[i];
        is_ok = plan_edit(job, &edits[job->edit_count++]);
    }
    if (is_ok && model_job_wants(job, MODEL_SWEEP)) {
        job->sweep.edit = &edits[job->edit_count++];
        job->sweep.edit->given = &job->request->sweep;
        is_ok = plan_edit(job, job->sweep.edit);
    }
    return is_ok && order_items(job);
}

/* ---- memory ---- */

static size_t count_flags(const bool *flags, size_t count)
{
    size_t set = 0;
    for (size_t i = 0; i < count; i++)
        set += flags[i];
    return set;
}

static size_t kept_numbers(const struct model_job *job, const struct model_edit *edit)
{
    const struct model_stack *stack = stack_of(job, edit);
    const bool has_heads = edit->given->at == MODEL_AT_CONTEXT || edit->given->at == MODEL_AT_ATTENTION;
    const size_t all = stack->blocks[0].facts.dims.heads, layers = stack->layers + (edit->given->at == MODEL_AT_HIDDEN);
    const size_t heads = !has_heads ? 1 : edit->heads == NULL ? all : count_flags(edit->heads, all);
    return edit->from == SIZE_MAX ? 0
                                  : count_flags(edit->layers, layers) * heads * edit->kept_rows * edit->kept_columns;
}

/* The numbers of sources; and while an edit is made, its rows, columns and a mean. */
double model_edits_bytes(const struct model_job *job)
{
    double bytes = 0, most = 0;
    for (size_t e = 0; e < job->edit_count; e++) {
        const struct model_edit *edit = &job->edits[e];
        const struct model_part *part = &job->parts[edit->part];
        const double pieces = (double)(edit->given->queries.count + edit->given->keys.count);
        const double own = 16 * pieces + 32 * (double)(part->longest_queries + part->longest_keys) +
                           8 * (double)model_width(stack_of(job, edit)) + 4096;
        bytes += (double)kept_numbers(job, edit) * (double)attn_dtype_bytes(model_job_compute(job)) + ATTN_ALIGNMENT;
        most = own > most ? own : most;
    }
    return bytes + most;
}

bool model_edits_begin(struct model_job *job)
{
    for (size_t e = 0; e < job->edit_count; e++) {
        const size_t numbers = kept_numbers(job, &job->edits[e]);
        if (numbers > 0)
            job->edits[e].kept = outcome_take(&job->outcome, numbers, attn_dtype_bytes(model_job_compute(job)));
    }
    return !outcome_has_failed(&job->outcome);
}

/* ---- the answer ---- */

static void write_flags(const char *name, const bool *flags, size_t count, struct chunks *out)
{
    const char *separator = "";
    chunks_format(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        if (flags == NULL || flags[i]) {
            chunks_format(out, "%s%zu", separator, i);
            separator = ",";
        }
    chunks_text(out, "]");
}

/* Ranges as given, or "all": negative indices count from the end of each item. */
static void write_ranges(const char *name, const struct index_list *list, struct chunks *out)
{
    chunks_format(out, ",\"%s\":%s", name, list->count == 0 ? "\"all\"" : "[");
    for (size_t i = 0; i < list->count; i++)
        chunks_format(out,
                      list->ranges[i].from == list->ranges[i].to ? "%s%" PRId64
                                                                 : "%s{\"from\":%" PRId64 ",\"to\":%" PRId64 "}",
                      i > 0 ? "," : "", list->ranges[i].from, list->ranges[i].to);
    chunks_text(out, list->count > 0 ? "]" : "");
}

void model_edit_write(const struct model_job *job, const struct model_edit *edit, struct chunks *out)
{
    const struct model_intervention *given = edit->given;
    const struct model_stack *stack = stack_of(job, edit);
    const bool is_attention = given->at == MODEL_AT_ATTENTION;
    chunks_format(out, "{\"at\":\"%s\",\"do\":\"%s\"", model_place_name((model_place)given->at),
                  model_act_name((model_act)given->act));
    if (given->part != NULL)
        chunks_format(out, ",\"part\":\"%s\"", given->part);
    write_flags("layers", edit->layers, stack->layers + (given->at == MODEL_AT_HIDDEN), out);
    if (is_attention || given->at == MODEL_AT_CONTEXT)
        write_flags("heads", edit->heads, stack->blocks[0].facts.dims.heads, out);
    write_ranges("queries", &given->queries, out);
    if (is_attention)
        write_ranges("keys", &given->keys, out);
    write_flags("items", edit->items, job->request->inputs.batch, out);
    if (given->act == MODEL_DO_SCALE || given->act == MODEL_DO_ADD)
        chunks_format(out, ",\"factor\":%.17g", given->factor);
    if (given->value != NULL)
        chunks_format(out, ",\"numbers\":%zu", given->value->shape[0]);
    if (edit->from != SIZE_MAX) {
        chunks_format(out, ",\"from\":%zu", edit->from);
        write_ranges("from_queries", given->from_queries.count > 0 ? &given->from_queries : &given->queries, out);
    }
    if (given->is_swept)
        chunks_format(out, ",\"over\":[\"layer\",\"%s\"]", model_axis_name((model_axis)given->over));
    chunks_text(out, "}");
}

void model_edits_write(const struct model_job *job, struct chunks *out)
{
    const size_t count = job->edit_count - (job->sweep.edit != NULL ? 1 : 0); /* the sweep is the last */
    for (size_t e = 0; e < count; e++) {
        chunks_text(out, e > 0 ? "," : ",\"interventions\":[");
        model_edit_write(job, &job->edits[e], out);
    }
    chunks_text(out, count > 0 ? "]" : "");
}
