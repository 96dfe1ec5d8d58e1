/* rendering.c: the answer of a whole model in the form that the client chose. */
#include "service/run/model/rendering.h"

#include "service/run/rendering.h"

static bool is_picture(const struct call *call)
{
    return media_is_picture(call->in.answer_media);
}

static bool is_view(const struct model_request *request)
{
    return request->common.view != ENVELOPE_VIEW_NONE;
}

bool model_rendering_has_facts(const struct call *call, const struct model_request *request)
{
    return !is_picture(call) && !is_view(request);
}

static attn_status prepare_picture(struct call *call, struct model_rendering *rendering,
                                   const struct checkpoint_model *model, bool has_target, struct model_request *request)
{
    attn_status status = model_picture_choose_part(&rendering->options, model->stack_count == 2, has_target,
                                                   &rendering->part, call->err);
    if (status != ATTN_OK)
        return status;
    const struct model_stack *stack = &model->stacks[model_part_query_stack(rendering->part)];
    return model_picture_prepare(&rendering->options, stack->layers, stack->blocks[0].facts.dims.heads, request,
                                 call->out->arena, call->err);
}

attn_status model_rendering_prepare(struct call *call, struct model_rendering *rendering,
                                    const struct checkpoint_model *model, struct model_request *request)
{
    const bool has_target = request->inputs.target != NULL || request->inputs.target_ids != NULL;
    if (is_picture(call))
        return prepare_picture(call, rendering, model, has_target, request);
    if (!is_view(request))
        return ATTN_OK;
    if (call->in.answer_media != MEDIA_JSON)
        return attn_fail(call->err, ATTN_ERR_FIELD, "/options/view",
                         "options.view is JSON, and the request accepts another type alone");
    return model_view_prepare(request, model->stack_count == 2 && has_target, call->err);
}

/* ---- labels ---- */

/* A NUL in it becomes U+FFFD, as in the labels of requests. NULL without memory. */
static const char *make_label(struct text_span shown, attn_arena *arena)
{
    struct chunks text = chunks_begin(arena);
    for (size_t i = 0; i < shown.length; i++)
        chunks_bytes(&text, shown.at[i] != '\0' ? shown.at + i : "\xEF\xBF\xBD", shown.at[i] != '\0' ? 1 : 3);
    return chunks_join(&text);
}

/* The words of the first item. Positions stand for the words of a model without a tokenizer, and of an image. */
static attn_status label_stack(struct call *call, const struct model_batch *batch, size_t stack, struct labels *labels)
{
    const struct model_sequence *sequence = &batch->items[0].of[stack];
    *labels = (struct labels){.count = sequence->count};
    if (sequence->ids == NULL || batch->version->tokenizer == NULL)
        return ATTN_OK;
    const char **texts = attn_arena_take(call->out->arena, sequence->count, sizeof *texts);
    bool is_ok = texts != NULL;
    for (size_t i = 0; i < sequence->count && is_ok; i++)
        is_ok = (texts[i] = make_label(batch->shown[stack][0][i], call->out->arena)) != NULL;
    labels->texts = texts;
    return is_ok ? ATTN_OK : attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the labels");
}

/* ---- weight and writing ---- */

static attn_status weigh_picture(struct call *call, struct model_rendering *rendering,
                                 const struct model_answer *answer, size_t *bytes)
{
    attn_status status = model_picture_make(&rendering->options, rendering->part, answer, rendering->labels,
                                            call->out->arena, &rendering->picture, call->err);
    return status == ATTN_OK ? rendering_weigh_picture(call, &rendering->picture.picture, bytes) : status;
}

attn_status model_rendering_weigh(struct call *call, struct model_rendering *rendering, const struct model_batch *batch,
                                  const struct model_request *request, const struct model_answer *answer, size_t *bytes)
{
    attn_status status = ATTN_OK;
    *bytes = model_answer_bound(answer, call->in.answer_media);
    if (model_rendering_has_facts(call, request))
        return ATTN_OK;
    for (size_t stack = 0; stack < 2 && status == ATTN_OK; stack++)
        status = label_stack(call, batch, stack, &rendering->labels[stack]);
    if (status != ATTN_OK || is_picture(call))
        return status == ATTN_OK ? weigh_picture(call, rendering, answer, bytes) : status;
    rendering->view = (struct model_view){.request = request,
                                          .answer = answer,
                                          .labels = {rendering->labels[0], rendering->labels[1]},
                                          .heads = batch->version->model.stacks[0].blocks[0].facts.dims.heads};
    *bytes = model_view_bound(&rendering->view);
    return ATTN_OK;
}

attn_status model_rendering_write(struct call *call, struct model_rendering *rendering,
                                  const struct model_request *request, const struct model_answer *answer)
{
    if (is_picture(call)) {
        model_picture_fill(&rendering->picture);
        return rendering_write_picture(call, &rendering->picture.picture);
    }
    if (is_view(request))
        model_view_write(&rendering->view, call->in.runtime, call->out);
    else
        model_answer_write(answer, call->in.answer_media, call->in.runtime, call->out);
    return call_finish(call);
}
