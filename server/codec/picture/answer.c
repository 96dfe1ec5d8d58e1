/* answer.c: turns a result into a picture of its attention maps. */
#include "codec/picture/image.h"

#include "codec/answer/token_labels.h"

attn_status answer_picture_prepare(struct envelope *envelope, attn_error *err)
{
    const char *field = envelope_form_option(envelope);
    if (field != NULL)
        return attn_fail(err, ATTN_ERR_FIELD, field,
                         "%s has no meaning for a picture, which fits its maps to its pixels itself: leave it out",
                         field + 1);
    envelope->request.options.want = ATTN_STEP_BIT(ATTN_STEP_ATTENTION) | ATTN_STEP_BIT(ATTN_STEP_MASK);
    return ATTN_OK;
}

/* Lists the numbers that a selection keeps. NULL when it keeps all. */
static attn_status list_numbers(const attn_selection *selection, attn_arena *arena, const size_t **numbers,
                                attn_error *err)
{
    *numbers = selection->items;
    if (selection->count == 0 || selection->items != NULL)
        return ATTN_OK;
    size_t *list = attn_arena_take(arena, selection->count, sizeof *list);
    for (size_t i = 0; list != NULL && i < selection->count; i++)
        list[i] = attn_selected(selection, i);
    *numbers = list;
    return list != NULL ? ATTN_OK : attn_fail_no_memory(err);
}

static attn_status make_axis(const struct envelope_tokens *tokens, const attn_selection *selection, attn_arena *arena,
                             struct picture_axis *axis, attn_error *err)
{
    struct labels labels;
    attn_status status = labels_read(tokens, arena, &labels, err);
    if (status != ATTN_OK)
        return status;
    *axis = (struct picture_axis){.labels = labels.texts, .count = labels.count, .is_per_item = labels.is_per_item};
    return list_numbers(selection, arena, &axis->numbers, err);
}

static void point_to(const attn_tensor *steps, struct picture *picture)
{
    picture->weights = &steps[ATTN_STEP_ATTENTION];
    picture->allowed = &steps[ATTN_STEP_MASK];
}

attn_status answer_picture_make(const struct answer *answer, attn_arena *arena, struct picture *picture,
                                attn_error *err)
{
    const struct envelope *envelope = answer->envelope;
    const attn_options *selected = &envelope->request.options;
    point_to(answer->plan->step, picture);
    attn_status status = list_numbers(&selected->heads, arena, &picture->head_numbers, err);
    if (status == ATTN_OK)
        status = make_axis(&envelope->query_tokens, &selected->queries, arena, &picture->queries, err);
    return status == ATTN_OK ? make_axis(&envelope->key_tokens, &selected->keys, arena, &picture->keys, err) : status;
}

void answer_picture_fill(const attn_result *result, struct picture *picture)
{
    point_to(result->step, picture);
}
