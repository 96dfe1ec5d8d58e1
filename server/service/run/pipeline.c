/* pipeline.c: takes a request through the steps of its kind, and has the steps of pictures, which kinds share. */
#include "service/run/work.h"

#include "base/clock.h"

attn_status pipeline_run(const struct pipeline *kind, struct call *call, void *work)
{
    struct weight weight = {.answer_bytes = 0};
    double since = clock_now_ms();
    attn_status status = kind->decode(call, work);
    if (status == ATTN_OK)
        status = kind->plan(call, work);
    if (status == ATTN_OK)
        status = kind->weigh(call, work, &weight);
    if (status == ATTN_OK)
        status = limits_check(call, &weight);
    call->times.parse_ms = clock_lap_ms(&since);
    if (status == ATTN_OK)
        status = kind->run(call, work);
    call->times.compute_ms = clock_lap_ms(&since);
    if (status == ATTN_OK)
        status = kind->render(call, work);
    call->times.write_ms = clock_lap_ms(&since);
    return status;
}

/* ---- pictures ---- */

attn_status rendering_read_options(struct call *call, picture_kind kind, struct picture_options *options)
{
    *options = picture_options_default(kind);
    if (media_is_picture(call->in.answer_media))
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
