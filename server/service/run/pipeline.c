/* pipeline.c: takes a request through the steps of its kind, and has the steps of pictures, which kinds share. */
#include "service/run/work.h"

#include "base/clock.h"
#include "base/progress.h"

attn_status pipeline_run(const struct pipeline *kind, struct call *call, void *work)
{
    struct weight weight = {.answer_bytes = 0};
    double since = clock_now_ms();
    struct outcome outcome = {.arena = call->out->arena, .err = call->err};
    bool goes_on = kind->decode(call, work, &outcome) && kind->plan(call, work, &outcome) &&
                   kind->weigh(call, work, &outcome, &weight) && outcome_note(&outcome, limits_check(call, &weight));
    call->times.parse_ms = clock_lap_ms(&since);
    progress_set(call->in.progress, PROGRESS_TASK, 0, 0);
    goes_on = goes_on && kind->run(call, work, &outcome);
    call->times.compute_ms = clock_lap_ms(&since);
    if (goes_on && kind->render(call, work, &outcome))
        outcome_note(&outcome, call_finish(call));
    call->times.write_ms = clock_lap_ms(&since);
    return outcome.status;
}

/* ---- pictures ---- */

bool rendering_read_options(struct call *call, picture_kind kind, struct outcome *outcome,
                            struct picture_options *options)
{
    *options = picture_options_default(kind);
    if (media_is_picture(call->in.answer_media))
        return outcome_note(
            outcome, picture_options_read(kind, call->in.parameters, call->in.parameter_count, options, outcome->err));
    if (call->in.parameter_count == 0)
        return true;
    const char *name = call->in.parameters[0].name;
    return outcome_fail(outcome, ATTN_ERR_FIELD, NULL,
                        picture_options_has(kind, name)
                            ? "query parameter \"%.64s\" is for pictures: accept image/png or image/svg+xml"
                            : "query parameter \"%.64s\" is not known; options belong in the body",
                        name);
}

bool rendering_weigh_picture(struct call *call, const struct picture *picture, struct outcome *outcome, size_t *bytes)
{
    struct picture_cost cost = {0, 0};
    const bool is_png = call->in.answer_media == MEDIA_PNG;
    const bool is_ok =
        outcome_note(outcome, (is_png ? picture_png_cost : picture_svg_cost)(picture, &cost, outcome->err));
    if (__builtin_add_overflow(cost.bytes, cost.memory_bytes, bytes))
        *bytes = SIZE_MAX;
    return is_ok;
}

bool rendering_write_picture(struct call *call, const struct picture *picture, struct outcome *outcome)
{
    const bool is_png = call->in.answer_media == MEDIA_PNG;
    return outcome_note(outcome, (is_png ? picture_write_png : picture_write_svg)(
                                     picture, call->in.fonts, call->in.runtime, call->out, outcome->err));
}
