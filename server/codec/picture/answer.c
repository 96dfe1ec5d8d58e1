/* answer.c: turns a result into a picture of its attention maps. */
#include "codec/picture/image.h"

#include "codec/answer/forms.h"
#include "codec/bytes/outcome.h"

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
static const size_t *list_numbers(const attn_selection *selection, struct outcome *outcome)
{
    if (selection->count == 0 || selection->items != NULL)
        return selection->items;
    size_t *list = outcome_take(outcome, selection->count, sizeof *list);
    for (size_t i = 0; list != NULL && i < selection->count; i++)
        list[i] = attn_selected(selection, i);
    return list;
}

static struct picture_axis make_axis(const struct envelope_tokens *tokens, const attn_selection *selection,
                                     struct outcome *outcome)
{
    struct labels labels = {.texts = NULL};
    if (!outcome_has_failed(outcome))
        outcome_note(outcome, labels_read(tokens, outcome->arena, &labels, outcome->err));
    return (struct picture_axis){.labels = labels.texts,
                                 .count = labels.count,
                                 .is_per_item = labels.is_per_item,
                                 .numbers = list_numbers(selection, outcome)};
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
    struct outcome outcome = {.arena = arena, .err = err};
    point_to(answer->plan->step, picture);
    picture->head_numbers = list_numbers(&selected->heads, &outcome);
    picture->queries = make_axis(&envelope->query_tokens, &selected->queries, &outcome);
    picture->keys = make_axis(&envelope->key_tokens, &selected->keys, &outcome);
    return outcome.status;
}

void answer_picture_fill(const attn_result *result, struct picture *picture)
{
    point_to(result->step, picture);
}
