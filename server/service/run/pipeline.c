/* pipeline.c: takes a request through the steps of its kind. */
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
