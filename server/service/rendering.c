/*
 * rendering.c: writes a result in the media type that the client chose.
 */
#include "service/rendering.h"

#include "codec/answer/answer_media.h"
#include "codec/picture/answer_picture.h"

static bool is_picture(const struct call *call)
{
    return call->in.answer_media == MEDIA_PNG || call->in.answer_media == MEDIA_SVG;
}

attn_status rendering_begin(struct call *call, struct rendering *rendering)
{
    *rendering = (struct rendering){.picture.options = picture_options_default(PICTURE_OF_LAYER)};
    if (is_picture(call))
        return picture_options_read(PICTURE_OF_LAYER, call->in.parameters, call->in.parameter_count,
                                    &rendering->picture.options, call->err);
    if (call->in.parameter_count == 0)
        return ATTN_OK;
    const char *name = call->in.parameters[0].name;
    return attn_fail(call->err, ATTN_ERR_FIELD, NULL,
                     picture_options_has(PICTURE_OF_LAYER, name)
                         ? "query parameter \"%.64s\" is for pictures: accept image/png or image/svg+xml"
                         : "query parameter \"%.64s\" is not known; options belong in the body",
                     name);
}

attn_status rendering_choose_steps(struct call *call, struct envelope *envelope)
{
    return is_picture(call) ? answer_picture_prepare(envelope, call->err) : ATTN_OK;
}

static attn_status weigh_picture(struct call *call, struct rendering *rendering, const struct answer *answer)
{
    struct picture *picture = &rendering->picture;
    struct picture_cost cost = {0, 0};
    attn_status status = answer_picture_make(answer, call->out->arena, picture, call->err);
    if (status == ATTN_OK)
        status = (call->in.answer_media == MEDIA_PNG ? picture_png_cost : picture_svg_cost)(picture, &cost, call->err);
    if (status == ATTN_OK && __builtin_add_overflow(cost.bytes, cost.memory_bytes, &rendering->bytes))
        rendering->bytes = SIZE_MAX;
    return status;
}

attn_status rendering_weigh(struct call *call, struct rendering *rendering, const struct work *work)
{
    const struct answer answer = {&work->envelope, &work->shown, NULL};
    if (is_picture(call))
        return weigh_picture(call, rendering, &answer);
    rendering->bytes = answer_bound(&answer, call->in.answer_media);
    return answer_check(&answer, call->in.answer_media, call->err);
}

attn_status rendering_write(struct call *call, struct rendering *rendering, const struct work *work)
{
    const struct answer answer = {&work->envelope, &work->shown, &work->result};
    if (is_picture(call)) {
        answer_picture_fill(&work->result, &rendering->picture);
        return (call->in.answer_media == MEDIA_PNG ? picture_write_png : picture_write_svg)(
            &rendering->picture, call->in.fonts, call->in.runtime, call->out, call->err);
    }
    answer_write(&answer, call->in.answer_media, call->in.runtime, call->out);
    return call_finish(call);
}
