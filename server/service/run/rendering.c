/* rendering.c: writes a result in the media type that the client chose. */
#include "service/run/rendering.h"

#include "codec/answer/forms.h"
#include "codec/picture/answer.h"

static bool is_picture(const struct call *call)
{
    return media_is_picture(call->in.answer_media);
}

/* ---- pictures of layers and of models ---- */

attn_status rendering_read_options(struct call *call, picture_kind kind, struct picture_options *options)
{
    *options = picture_options_default(kind);
    if (is_picture(call))
        return picture_options_read(kind, call->in.parameters, call->in.parameter_count, options, call->err);
    if (call->in.parameter_count == 0)
        return ATTN_OK;
    const char *name = call->in.parameters[0].name;
    return attn_fail(call->err, ATTN_ERR_FIELD, NULL,
                     picture_options_has(kind, name)
                         ? "query parameter \"%.64s\" is for pictures: accept image/png or image/svg+xml"
                         : "query parameter \"%.64s\" is not known; options belong in the body",
                     name);
}

attn_status rendering_weigh_picture(struct call *call, const struct picture *picture, size_t *bytes)
{
    struct picture_cost cost = {0, 0};
    const bool is_png = call->in.answer_media == MEDIA_PNG;
    attn_status status = (is_png ? picture_png_cost : picture_svg_cost)(picture, &cost, call->err);
    if (__builtin_add_overflow(cost.bytes, cost.memory_bytes, bytes))
        *bytes = SIZE_MAX;
    return status;
}

attn_status rendering_write_picture(struct call *call, const struct picture *picture)
{
    const bool is_png = call->in.answer_media == MEDIA_PNG;
    return (is_png ? picture_write_png : picture_write_svg)(picture, call->in.fonts, call->in.runtime, call->out,
                                                            call->err);
}

/* ---- answers of layers ---- */

attn_status rendering_begin(struct call *call, struct rendering *rendering)
{
    *rendering = (struct rendering){.bytes = 0};
    return rendering_read_options(call, PICTURE_OF_LAYER, &rendering->picture.options);
}

attn_status rendering_choose_steps(struct call *call, struct envelope *envelope)
{
    return is_picture(call) ? answer_picture_prepare(envelope, call->err) : ATTN_OK;
}

attn_status rendering_weigh(struct call *call, struct rendering *rendering, const struct work *work)
{
    const struct answer answer = {&work->envelope, &work->shown, NULL};
    if (is_picture(call)) {
        attn_status status = answer_picture_make(&answer, call->out->arena, &rendering->picture, call->err);
        return status == ATTN_OK ? rendering_weigh_picture(call, &rendering->picture, &rendering->bytes) : status;
    }
    rendering->bytes = answer_bound(&answer, call->in.answer_media);
    return answer_check(&answer, call->in.answer_media, call->err);
}

attn_status rendering_write(struct call *call, struct rendering *rendering, const struct work *work)
{
    const struct answer answer = {&work->envelope, &work->shown, &work->result};
    if (is_picture(call)) {
        answer_picture_fill(&work->result, &rendering->picture);
        return rendering_write_picture(call, &rendering->picture);
    }
    answer_write(&answer, call->in.answer_media, call->in.runtime, call->out);
    return call_finish(call);
}
