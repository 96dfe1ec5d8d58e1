/* tokens.c: texts to tokens of a model, or ids to texts. */
#include "service/endpoints.h"

#include "base/clock.h"
#include "codec/bytes/bound.h"
#include "codec/bytes/outcome.h"
#include "service/limits.h"
#include "service/registry/model/list.h"
#include "service/run/batch/batch.h"

/* ---- ids to texts ---- */

/* *texts becomes one text for each item; it stays NULL when the request gives texts. */
static bool decode_ids(const struct model_batch *batch, const struct model_request *request, struct outcome *outcome,
                       struct text_span **texts)
{
    if (request->inputs.ids == NULL)
        return true;
    *texts = outcome_take(outcome, request->inputs.batch, sizeof **texts);
    for (size_t item = 0; item < request->inputs.batch && !outcome_has_failed(outcome); item++) {
        const struct model_sequence *sequence = &batch->items[item].of[0];
        uint32_t *ids = outcome_take(outcome, sequence->count, sizeof *ids);
        for (size_t i = 0; ids != NULL && i < sequence->count; i++)
            ids[i] = (uint32_t)sequence->ids[i];
        if (ids != NULL)
            outcome_note(outcome,
                         tokenizer_decode(batch->version->tokenizer, ids, sequence->count, !request->has_special_tokens,
                                          outcome->arena, outcome->arena, &(*texts)[item], outcome->err));
    }
    return !outcome_has_failed(outcome);
}

/* ---- the answer ---- */

/* Tokenizing one byte takes about the time of so many operations. */
static const double FLOPS_PER_BYTE = 1000;

static bool weigh(struct call *call, const struct model_batch *batch, const struct text_span *texts,
                  struct outcome *outcome)
{
    const char *field = texts != NULL ? "/inputs/ids" : "/inputs/text";
    const size_t limit = call->in.limits.result_bytes;
    struct weight weight = {.answer_bytes = model_batch_tokens_bound(batch),
                            .time_flops = FLOPS_PER_BYTE * (double)call->in.body_bytes,
                            .largest = "tokens"};
    for (size_t item = 0; texts != NULL && item < batch->inputs->batch; item++)
        weight.answer_bytes = bound_add(weight.answer_bytes, texts[item].length, 6);
    if (weight.answer_bytes > limit)
        return outcome_fail(
            outcome, ATTN_ERR_TOO_LARGE, field,
            "the answer could take %zu bytes, and this server's limit is %zu (--max-result): send less at "
            "a time",
            weight.answer_bytes, limit);
    return outcome_note(outcome, limits_check(call, &weight));
}

static void write_answer(const struct model_batch *batch, const struct text_span *texts, struct chunks *out)
{
    chunks_text(out, "{");
    model_batch_write_columns(batch, out);
    if (texts != NULL) {
        chunks_text(out, ",\"text\":[");
        for (size_t item = 0; item < batch->inputs->batch; item++) {
            chunks_text(out, item > 0 ? "," : "");
            chunks_json_span(out, texts[item]);
        }
        chunks_text(out, "]");
    }
    size_t hints = 0;
    chunks_text(out, ",\"diagnostics\":{");
    model_batch_add_hints(batch, &hints, out);
    chunks_text(out, hints > 0 ? "]}}" : "}}");
}

/* ---- the endpoint ---- */

static attn_status read_tokens(struct call *call, const struct model_version *version)
{
    struct model_request request;
    struct model_batch batch;
    struct text_span *texts = NULL;
    double since = clock_now_ms();
    attn_arena *arena = call->out->arena;
    struct outcome outcome = {.arena = arena, .err = call->err};
    const bool is_decoded =
        outcome_note(&outcome, model_request_decode(call->in.body, call->in.body_bytes, MODEL_REQUEST_TOKENS, arena,
                                                    &request, call->err));
    call->times.parse_ms = clock_lap_ms(&since);
    const bool is_ok =
        is_decoded &&
        outcome_note(&outcome, model_batch_make(&batch, version, &request, MODEL_REQUEST_TOKENS, arena, call->err)) &&
        decode_ids(&batch, &request, &outcome, &texts) && weigh(call, &batch, texts, &outcome);
    call->times.compute_ms = clock_lap_ms(&since);
    if (!is_ok)
        return outcome.status;
    write_answer(&batch, texts, call->out);
    call->times.write_ms = clock_lap_ms(&since);
    return call_finish(call);
}

attn_status model_tokens_read(struct call *call)
{
    const attn_status status = models_find(call->in.models, call->in.names[0], call);
    if (status != ATTN_OK)
        return status;
    return limits_explain(call, version_confirm(call, read_tokens(call, model_version_of(call->version))));
}
