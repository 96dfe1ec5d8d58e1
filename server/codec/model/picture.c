/* picture.c: turns the attention of a model into a picture of layers and heads. */
#include "codec/model/forms.h"

#include <assert.h>
#include <stdio.h>

#include "codec/bytes/outcome.h"
#include "codec/picture/image.h"

attn_status model_picture_choose_part(const struct picture_options *options, bool has_decoder, bool has_target,
                                      model_part_kind *part, attn_error *err)
{
    static const model_part_kind kinds[] = {[PICTURE_PART_ENCODER] = MODEL_PART_ENCODER,
                                            [PICTURE_PART_DECODER] = MODEL_PART_DECODER,
                                            [PICTURE_PART_CROSS] = MODEL_PART_CROSS};
    if (options->part == PICTURE_PART_DEFAULT) {
        *part = !has_decoder ? MODEL_PART_ONLY : has_target ? MODEL_PART_CROSS : MODEL_PART_ENCODER;
        return ATTN_OK;
    }
    *part = kinds[options->part];
    if (!has_decoder)
        return attn_fail(
            err, ATTN_ERR_VALUE, "?part",
            "part is for models with an encoder and a decoder, and this model has one stack: leave it out");
    if (*part != MODEL_PART_ENCODER && !has_target)
        return attn_fail(err, ATTN_ERR_VALUE, "?part",
                         "part is \"%s\", and without a target the encoder runs alone: give inputs.target or "
                         "inputs.target_ids",
                         model_part_name(*part));
    return ATTN_OK;
}

/* ---- what the request computes ---- */

static size_t count_selected(const attn_selection *selection, size_t all)
{
    return attn_selects_all(selection) ? all : selection->count;
}

/* Narrows the selection of layers or heads, called what, to the number that the options give. all: there are so many. */
static bool narrow(const char *what, size_t wanted, size_t all, attn_selection *selection, struct outcome *outcome)
{
    if (wanted == PICTURE_ALL)
        return true;
    const size_t count = count_selected(selection, all);
    size_t i = 0;
    while (i < count && attn_selected(selection, i) != wanted)
        i++;
    char expected[80];
    if (attn_selects_all(selection))
        snprintf(expected, sizeof expected, "a %s from 0 to %zu, or all", what, all - 1);
    else
        snprintf(expected, sizeof expected, "one of the %ss that options.%ss selects, or all", what, what);
    if (i == count)
        return outcome_note(outcome, picture_options_fail_number(what, wanted, expected, outcome->err));
    *selection = (attn_selection){.first = wanted, .count = 1};
    return true;
}

static const attn_tensor *take_item(const attn_tensor *batch, size_t item, struct outcome *outcome)
{
    attn_tensor *one = outcome_take(outcome, 1, sizeof *one);
    if (one == NULL)
        return NULL;
    *one = *batch;
    one->shape[0] = 1;
    one->data = (char *)batch->data + (ptrdiff_t)item * batch->stride[0] * (ptrdiff_t)attn_dtype_bytes(batch->dtype);
    return one;
}

/* Narrows the inputs to one item of the batch. */
static bool choose_item(size_t item, struct model_inputs *inputs, struct outcome *outcome)
{
    char expected[64];
    snprintf(expected, sizeof expected, "a batch item from 0 to %zu", inputs->batch - 1);
    if (item >= inputs->batch)
        return outcome_note(outcome, picture_options_fail_number("batch", item, expected, outcome->err));
    const struct text_span **const texts[] = {&inputs->text, &inputs->pair, &inputs->target};
    const struct model_ids **const ids[] = {&inputs->ids, &inputs->target_ids};
    const attn_tensor **const tensors[] = {&inputs->pixels, &inputs->embeddings};
    for (size_t i = 0; i < 3; i++)
        *texts[i] = *texts[i] != NULL ? *texts[i] + item : NULL;
    for (size_t i = 0; i < 2; i++)
        *ids[i] = *ids[i] != NULL ? *ids[i] + item : NULL;
    for (size_t i = 0; i < 2; i++)
        *tensors[i] = *tensors[i] != NULL ? take_item(*tensors[i], item, outcome) : NULL;
    inputs->batch = 1;
    return !outcome_has_failed(outcome);
}

/* Pools the maps, unless the request has only one. */
static void pool_maps(size_t layers, size_t heads, const struct model_request *request,
                      struct envelope_reduction *reduction)
{
    const attn_selection *chosen = &request->common.request.options.heads;
    reduction->has_pool = count_selected(&request->layers, layers) > 1 || count_selected(chosen, heads) > 1;
    if (reduction->has_pool)
        reduction->pool_rows = reduction->pool_cols = MODEL_PICTURE_SIDE;
}

/* The picture is of one part, whose layers and heads are known before the plan. */
static bool settle(size_t layers, size_t heads, struct model_request *request, struct outcome *outcome)
{
    struct index_list *lists[] = {&request->layer_list, &request->common.lists.heads};
    attn_selection *chosen = &request->common.request.options.heads;
    const bool is_settled =
        outcome_note(outcome,
                     index_list_settle(lists[0], "layers", layers, outcome->arena, &request->layers, outcome->err)) &&
        outcome_note(outcome, index_list_settle(lists[1], "heads", heads, outcome->arena, chosen, outcome->err));
    lists[0]->counts_from_end = lists[1]->counts_from_end = false;
    return is_settled;
}

/* The layers and heads of a sweep are those of options.sweep. */
static attn_status prepare_sweep(const struct picture_options *options, struct model_request *request, attn_error *err)
{
    if (options->layer != PICTURE_ALL || options->head != PICTURE_ALL)
        return attn_fail(err, ATTN_ERR_FIELD, options->layer != PICTURE_ALL ? "?layer" : "?head",
                         "the picture of a sweep has all its layers and heads: choose them by options.sweep");
    const attn_status status = answer_picture_prepare(&request->common, err);
    request->common.request.options.want = 0;
    request->results = 1U << MODEL_SWEEP;
    return status;
}

attn_status model_picture_prepare(const struct picture_options *options, size_t layers, size_t heads,
                                  struct model_request *request, attn_arena *arena, attn_error *err)
{
    struct outcome outcome = {.arena = arena, .err = err};
    if (request->results >> MODEL_SWEEP & 1)
        return prepare_sweep(options, request, err);
    request->results = 0;
    if (outcome_note(&outcome, answer_picture_prepare(&request->common, err)) &&
        settle(layers, heads, request, &outcome) &&
        narrow("layer", options->layer, layers, &request->layers, &outcome) &&
        narrow("head", options->head, heads, &request->common.request.options.heads, &outcome) &&
        choose_item(options->batch, &request->inputs, &outcome))
        pool_maps(layers, heads, request, &request->common.reduction);
    return outcome.status;
}

/* ---- the picture ---- */

/* The numbers of the first count elements. NULL without memory. */
static const size_t *list_numbers(const attn_selection *selection, size_t count, struct outcome *outcome)
{
    size_t *numbers = outcome_take(outcome, count, sizeof *numbers);
    for (size_t i = 0; i < count && numbers != NULL; i++)
        numbers[i] = attn_selected(selection, i);
    return numbers;
}

/* How many positions a selection takes from length positions. */
static size_t count_taken(const attn_selection *selection, size_t length)
{
    const size_t left = selection->first < length ? length - selection->first : 0;
    const bool is_range = selection->items == NULL && selection->count > 0;
    return is_range && selection->count > left ? left : count_selected(selection, length);
}

/*
 * The labels of count rows or columns. Where more positions were selected, they were pooled: cell r shows the selected
 * positions from floor(r n / count) on (reduce.h). *whole is the number of positions before the pooling; 0: they were
 * not pooled.
 */
static void make_axis(const attn_selection *selection, const struct labels *labels, size_t count,
                      struct outcome *outcome, struct picture_axis *axis, size_t *whole)
{
    const size_t selected = count_taken(selection, labels->count);
    const bool is_pooled = selected > count;
    size_t *numbers = outcome_take(outcome, count, sizeof *numbers);
    for (size_t i = 0; i < count && numbers != NULL; i++)
        numbers[i] = attn_selected(selection, is_pooled ? i * selected / count : i);
    *axis =
        (struct picture_axis){.labels = is_pooled ? NULL : labels->texts, .count = labels->count, .numbers = numbers};
    *whole = is_pooled ? selected : 0;
}

attn_status model_picture_make(const struct picture_options *options, model_part_kind part,
                               const struct model_answer *answer, const struct labels labels[2], attn_arena *arena,
                               struct model_picture *made, attn_error *err)
{
    struct outcome outcome = {.arena = arena, .err = err};
    struct picture *picture = &made->picture;
    const struct model_selections *shown = model_part_shown(answer, part);
    *made =
        (struct model_picture){.picture = {.options = *options, .weights = &made->weights, .allowed = &made->allowed},
                               .attention = model_part_output(answer, part, "attention"),
                               .mask = model_part_output(answer, part, "mask")};
    assert(made->attention != NULL && made->mask != NULL); /* model_picture_prepare asked for both */
    model_picture_fill(made);
    const size_t *shape = made->weights.shape;
    picture->layer_numbers = list_numbers(&shown->layers, shape[0], &outcome);
    picture->head_numbers = list_numbers(&shown->heads, shape[1], &outcome);
    make_axis(&shown->queries, &labels[model_part_query_stack(part)], shape[2], &outcome, &picture->queries,
              &picture->whole_rows);
    make_axis(&shown->keys, &labels[model_part_key_stack(part)], shape[3], &outcome, &picture->keys,
              &picture->whole_columns);
    return outcome.status;
}

void model_picture_fill(struct model_picture *picture)
{
    picture->weights = model_part_first_item(picture->attention);
    picture->allowed = model_part_first_item(picture->mask);
}
