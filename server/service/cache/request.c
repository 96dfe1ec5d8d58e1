/* request.c: options.cache of a request, and the endpoints under /v1/caches. */
#include "service/cache/request.h"

#include <stdio.h>
#include <string.h>

#include "service/endpoints.h"
#include "service/registry/files.h"

enum { LISTED_MAX = 1000 };

static const attn_steps PRESENT = ATTN_STEP_BIT(ATTN_STEP_PRESENT_KEY) | ATTN_STEP_BIT(ATTN_STEP_PRESENT_VALUE);

/* Refuses because there is no room. The message names the limit and what the client can do. */
static attn_status refuse_room(struct call *call, enum cache_outcome outcome, int length, const char *name)
{
    static const char remedy[] = "DELETE /v1/caches/{name} removes one that is no longer needed";
    static const char wait[] = ", and the server evicts those that are idle (--cache-idle)";
    const struct cache_share share = cache_store_share(call->in.caches, call->in.key);
    char limit[160];
    if (outcome == CACHE_TOO_MANY_OWN)
        snprintf(limit, sizeof limit, "key %s holds %zu caches, its share: half of --cache-max", call->in.key,
                 share.count);
    else if (outcome == CACHE_TOO_MANY)
        snprintf(limit, sizeof limit, "the server holds as many caches as --cache-max allows");
    else if (outcome == CACHE_TOO_LARGE_OWN)
        snprintf(limit, sizeof limit, "the caches of key %s may hold %zu bytes, its share: half of --cache-bytes",
                 call->in.key, share.bytes);
    else
        snprintf(limit, sizeof limit, "the server's caches may hold %zu bytes together (--cache-bytes)",
                 cache_store_share(call->in.caches, "").bytes);
    return call_refuse(call, CALL_STORE_FULL, "there is no room for the cache \"%.*s\": %s; %s%s", length, name, limit,
                       remedy, wait);
}

static attn_status refuse(struct call *call, enum cache_outcome outcome, int length, const char *name)
{
    switch (outcome) {
    case CACHE_OK:
        return ATTN_OK;
    case CACHE_ABSENT:
        return call_refuse(call, CALL_NOT_FOUND, "there is no cache \"%.*s\" here", length, name);
    case CACHE_GONE:
        return call_refuse(call, CALL_GONE,
                           "the cache \"%.*s\" was idle for too long and is gone: begin the sequence anew, after "
                           "DELETE /v1/caches/%.*s or under another name",
                           length, name, length, name);
    case CACHE_BUSY:
        return call_refuse(call, CALL_CONFLICT, "the cache \"%.*s\" is in use by another request", length, name);
    case CACHE_TOO_MANY:
    case CACHE_TOO_MANY_OWN:
    case CACHE_TOO_LARGE:
    case CACHE_TOO_LARGE_OWN:
        return refuse_room(call, outcome, length, name);
    case CACHE_NO_MEMORY:
        break;
    }
    return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the cache");
}

/* ---- a step ---- */

static attn_status check_request(struct call *call, const struct envelope *envelope)
{
    const char *name = envelope->cache.name;
    if (!layer_name_is_valid(name, strlen(name)))
        return attn_fail(
            call->err, ATTN_ERR_VALUE, "/options/cache",
            "\"%.64s\" cannot name a cache: 1 to %d letters, digits, dots, underscores and hyphens, with no "
            "dot first",
            name, CACHE_NAME_MAX);
    if (attn_start_of(&envelope->request.inputs) != NULL)
        return attn_fail(call->err, ATTN_ERR_FIELD, "/options/cache",
                         "options.cache keeps keys and values for the next query, and this request has no keys: it "
                         "starts at inputs.%s",
                         envelope->request.inputs.scores != NULL ? "scores" : "attention");
    if (envelope->request.options.mechanism.update_rule != ATTN_RULE_NONE)
        return attn_fail(
            call->err, ATTN_ERR_FIELD, "/options/cache",
            "options.cache keeps keys and values, and an update_rule keeps a state: send present_state back "
            "as inputs.past_state");
    if (envelope->request.inputs.past_key == NULL && envelope->request.inputs.past_value == NULL)
        return ATTN_OK;
    return attn_fail(call->err, ATTN_ERR_FIELD, "/options/cache",
                     "options.cache and inputs.past_key are two ways to say the same: give one of them");
}

static attn_status check_loan(struct call *call, const struct envelope *envelope, uint64_t layer,
                              const struct cache_loan *loan)
{
    const struct envelope_cache *cache = &envelope->cache;
    if (loan->layer != layer)
        return call_refuse(call, CALL_CONFLICT,
                           "the cache \"%s\" was begun with another layer, or with another version of it", cache->name);
    if (!cache->has_length || cache->length == loan->length)
        return ATTN_OK;
    if (loan->length == 0)
        return call_refuse(call, CALL_GONE, "the cache \"%s\" is gone: it was to hold %zu positions", cache->name,
                           cache->length);
    return call_refuse(call, CALL_CONFLICT, "the cache \"%s\" holds %zu positions, the request goes on from %zu",
                       cache->name, loan->length, cache->length);
}

attn_status caches_begin(struct call *call, struct envelope *envelope, uint64_t layer, struct cache_step *step)
{
    attn_options *options = &envelope->request.options;
    *step = (struct cache_step){.name = envelope->cache.name};
    if (step->name == NULL)
        return ATTN_OK;
    call->is_guarded = true;
    if (call->in.is_foreign)
        return call_refuse(call, CALL_FOREIGN, "options.cache is not for pages of other origins");
    attn_status status = check_request(call, envelope);
    if (status != ATTN_OK)
        return status;
    const struct cache_name name = {call->in.key, text_span_of(step->name)};
    const enum cache_outcome outcome = cache_store_begin(call->in.caches, &name, layer, &step->loan);
    if (outcome != CACHE_OK)
        return refuse(call, outcome, (int)strlen(step->name), step->name);
    status = check_loan(call, envelope, layer, &step->loan);
    if (status != ATTN_OK) {
        cache_store_give_back(call->in.caches, &step->loan);
        return status;
    }
    options->want |= PRESENT;
    if (step->loan.length == 0)
        return ATTN_OK;
    step->key = step->loan.block.key;
    step->value = step->loan.block.value;
    envelope->request.inputs.past_key = &step->key;
    envelope->request.inputs.past_value = &step->value;
    return ATTN_OK;
}

attn_status caches_reserve(struct call *call, struct cache_step *step, attn_plan *plan, attn_steps shown,
                           attn_status status)
{
    if (step->loan.entry == NULL)
        return status;
    if (status == ATTN_ERR_SHAPE && text_begins(call->err->field, "/inputs/past_")) {
        const size_t *shape = step->key.shape, *values = step->value.shape;
        return attn_fail(
            call->err, status, "/options/cache",
            "the cache \"%s\" is of %zu batch items, %zu key heads of %zu features and %zu value heads of %zu, "
            "in %s: the request is of others",
            step->name, shape[0], shape[1], shape[3], values[1], values[3], attn_dtype_name(step->key.dtype));
    }
    if (status != ATTN_OK)
        return status;
    /* These steps would lie in the cache, and the answer may be sent after the end of the loan. */
    step->is_shown = (shown & (PRESENT | ATTN_STEP_BIT(ATTN_STEP_K_ROTATED))) != 0;
    if (!step->is_shown)
        plan->result_bytes -= plan->step_bytes[ATTN_STEP_PRESENT_KEY] + plan->step_bytes[ATTN_STEP_PRESENT_VALUE];
    const enum cache_outcome outcome = cache_store_reserve(
        call->in.caches, &step->loan, &plan->step[ATTN_STEP_PRESENT_KEY], &plan->step[ATTN_STEP_PRESENT_VALUE]);
    return refuse(call, outcome, (int)strlen(step->name), step->name);
}

attn_status caches_grow(struct call *call, struct cache_step *step, attn_plan *plan)
{
    if (step->loan.entry == NULL)
        return ATTN_OK;
    const enum cache_outcome outcome = cache_store_grow(&step->loan);
    if (outcome != CACHE_OK)
        return refuse(call, outcome, (int)strlen(step->name), step->name);
    step->key = step->loan.block.key;
    step->value = step->loan.block.value;
    if (!step->is_shown) {
        plan->step[ATTN_STEP_PRESENT_KEY] = step->loan.key;
        plan->step[ATTN_STEP_PRESENT_VALUE] = step->loan.value;
    }
    return ATTN_OK;
}

void caches_end(struct call *call, struct cache_step *step, const attn_result *result, attn_status status)
{
    struct cache_loan *loan = &step->loan;
    if (loan->entry == NULL)
        return;
    if (status != ATTN_OK) {
        cache_store_give_back(call->in.caches, loan);
        return;
    }
    if (step->is_shown) {
        cache_block_write(&loan->key, &result->step[ATTN_STEP_PRESENT_KEY], loan->length);
        cache_block_write(&loan->value, &result->step[ATTN_STEP_PRESENT_VALUE], loan->length);
    }
    cache_store_keep(call->in.caches, loan);
    call->is_kept = true;
}

/* ---- /v1/caches ---- */

static void write_facts(const struct cache_facts *facts, struct chunks *out)
{
    chunks_format(out,
                  "{\"name\":\"%s\",\"batch\":%zu,\"kv_num_heads\":%zu,\"length\":%zu,\"bytes\":%zu,\"dtype\":\"%s\","
                  "\"idle_s\":%.3f}",
                  facts->name, facts->batch, facts->kv_heads, facts->length, facts->bytes,
                  attn_dtype_name(facts->dtype), facts->idle_s);
}

static int shown_length(struct text_span name)
{
    return name.length < CACHE_NAME_MAX ? (int)name.length : CACHE_NAME_MAX;
}

attn_status caches_get(struct call *call)
{
    const struct cache_name name = {call->in.key, call->in.names[0]};
    struct cache_facts facts;
    const enum cache_outcome outcome = cache_store_look(call->in.caches, &name, &facts);
    if (outcome != CACHE_OK)
        return refuse(call, outcome, shown_length(name.name), name.name.at);
    write_facts(&facts, call->out);
    return call_finish(call);
}

attn_status caches_remove(struct call *call)
{
    const struct cache_name name = {call->in.key, call->in.names[0]};
    call->outcome = CALL_DELETED;
    return refuse(call, cache_store_remove(call->in.caches, &name), shown_length(name.name), name.name.at);
}

attn_status caches_list(struct call *call)
{
    struct cache_facts *facts = attn_arena_take(call->out->arena, LISTED_MAX, sizeof *facts);
    if (facts == NULL)
        return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the list");
    const size_t count = cache_store_list(call->in.caches, call->in.key, LISTED_MAX, facts);
    chunks_text(call->out, "{\"caches\":[");
    for (size_t i = 0; i < count; i++) {
        chunks_text(call->out, i > 0 ? "," : "");
        write_facts(&facts[i], call->out);
    }
    chunks_text(call->out, "]}");
    return call_finish(call);
}
