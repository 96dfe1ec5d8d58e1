/* endpoints.c: the endpoints under /v1/layers: attention layers that the server keeps. */
#include "service/endpoints.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "codec/bytes/outcome.h"
#include "codec/bytes/pace.h"
#include "service/limits.h"
#include "service/registry/layer/keeper.h"

enum { PAGE_USUAL = 100, PAGE_MAX = 1000 };

static attn_status set_etag(struct call *call, struct layer_version *version)
{
    const char *digest = layer_digest(version, call);
    if (digest == NULL)
        return ATTN_ERR_CANCELLED;
    snprintf(call->etag, sizeof call->etag, "\"%s\"", digest);
    return ATTN_OK;
}

/*
 * The tag of the file is its digest. The facts are another representation. Some facts, such as the time, may change
 * while the file does not. So the tag of the facts is the digest and a sum of the facts.
 */
static attn_status set_etag_of_facts(struct call *call, struct layer_version *version)
{
    const char *of_file = layer_digest(version, call);
    struct digest_sum sum;
    uint8_t digest[DIGEST_BYTES];
    char text[DIGEST_TEXT];
    if (of_file == NULL)
        return ATTN_ERR_CANCELLED;
    digest_begin(&sum);
    for (const struct chunk *chunk = call->out->first; chunk != NULL; chunk = chunk->next)
        digest_add(&sum, chunk->data, chunk->length);
    digest_end(&sum, digest);
    snprintf(call->etag, sizeof call->etag, "\"%s-json-%.16s\"", of_file, digest_write(digest, text));
    return ATTN_OK;
}

/* ---- descriptions of layers ---- */

static attn_status write_version(struct call *call, struct layer_version *version)
{
    struct chunks *out = call->out;
    char modified[CLOCK_TIME_TEXT];
    const char *digest = layer_digest(version, call);
    if (digest == NULL)
        return ATTN_ERR_CANCELLED;
    chunks_format(out, "\"name\":\"%s\",\"digest\":\"%s\",\"bytes\":%zu,\"durable\":%s,\"modified\":\"%s\",",
                  version->common.name, digest, layer_version_file_bytes(version),
                  version->common.is_fixed || layer_keeper_is_durable(call->in.layers) ? "true" : "false",
                  clock_write_time(version->modified_ns, modified));
    kept_layer_write_facts(&version->facts, out);
    return ATTN_OK;
}

/* Writes the whole answer about one layer: facts, tensors, and the rest of its request. */
static attn_status write_layer(struct call *call, struct layer_version *version)
{
    assert(version != NULL);
    const struct envelope_source *base = &version->base;
    chunks_text(call->out, "{");
    attn_status status = write_version(call, version);
    if (status != ATTN_OK)
        return status;
    chunks_text(call->out, ",\"tensors\":");
    kept_layer_write_tensors(base, call->out);
    chunks_text(call->out, ",\"request\":");
    chunks_bytes(call->out, base->length > 0 ? base->text : "{}", base->length > 0 ? base->length : strlen("{}"));
    chunks_text(call->out, "}");
    return call_finish(call);
}

/* ---- one layer ---- */

attn_status layers_get(struct call *call)
{
    struct outcome got = {.err = call->err};
    if (!outcome_note(&got, layer_keeper_find(call->in.layers, call->in.names[0], call)) ||
        !outcome_note(&got, layer_check_match(layer_version_of(call->version), call)))
        return version_confirm(call, got.status);
    struct layer_version *version = layer_version_of(call->version);
    assert(version != NULL);
    if (call->in.answer_media == MEDIA_SAFETENSORS) {
        call->sends_file = true;
        chunks_borrow(call->out, version->bytes.at, version->bytes.size);
        for (const struct chunk *piece = version->pieces; piece != NULL; piece = piece->next)
            chunks_borrow(call->out, piece->data, piece->length);
        (void)(outcome_note(&got, set_etag(call, version)) && outcome_note(&got, call_finish(call)));
    } else
        (void)(outcome_note(&got, write_layer(call, version)) && outcome_note(&got, set_etag_of_facts(call, version)));
    return version_confirm(call, got.status);
}

/* Makes the file to keep. A body that is safetensors already is kept unchanged. */
static attn_status make_file(struct call *call, struct chunks *file)
{
    if (call->in.body_media == MEDIA_SAFETENSORS) {
        struct envelope_source base;
        struct kept_layer_facts facts;
        chunks_borrow(file, call->in.body, call->in.body_bytes);
        return kept_layer_read(call->in.body, call->in.body_bytes, call->out->arena, &base, &facts, call->err);
    }
    return kept_layer_write(call->in.body, call->in.body_bytes, call->out->arena, file, call->err);
}

attn_status layers_put(struct call *call)
{
    struct chunks file = chunks_begin(call->out->arena);
    const double since = clock_now_ms();
    struct outcome put = {.err = call->err};
    if (outcome_note(&put, layer_keeper_allows_put(call->in.layers, call->in.names[0], 0, call)) &&
        outcome_note(&put, make_file(call, &file)) && !file.is_ok)
        outcome_fail(&put, ATTN_ERR_NO_MEMORY, NULL, "no memory for the file of the layer");
    call->times.parse_ms = clock_now_ms() - since;
    if (!outcome_has_failed(&put))
        outcome_note(&put, layer_keeper_put(call->in.layers, call->in.names[0], &file, call));
    call->times.write_ms = clock_now_ms() - since - call->times.parse_ms;
    if (outcome_has_failed(&put))
        return limits_explain(call, put.status);
    struct layer_version *version = layer_version_of(call->version);
    (void)(outcome_note(&put, set_etag(call, version)) && outcome_note(&put, write_layer(call, version)));
    return put.status;
}

attn_status layers_remove(struct call *call)
{
    attn_status status = layer_keeper_remove(call->in.layers, call->in.names[0], call);
    call->outcome = CALL_DELETED;
    return status;
}

/* ---- the list of layers ---- */

struct page {
    const char *after;
    uint64_t limit;
};

static attn_status read_page(struct call *call, struct page *page)
{
    *page = (struct page){"", PAGE_USUAL};
    for (size_t i = 0; i < call->in.parameter_count; i++) {
        const struct text_pair *parameter = &call->in.parameters[i];
        if (strcmp(parameter->name, "after") == 0)
            page->after = parameter->value;
        else if (strcmp(parameter->name, "limit") != 0)
            return attn_fail(call->err, ATTN_ERR_FIELD, NULL,
                             "query parameter \"%.64s\" is not known; known here: after, limit", parameter->name);
        else if (!text_read_count(parameter->value, &page->limit) || page->limit < 1 || page->limit > PAGE_MAX)
            return attn_fail(call->err, ATTN_ERR_VALUE, NULL, "limit is %.32s; expected a whole number from 1 to %d",
                             parameter->value, PAGE_MAX);
    }
    return ATTN_OK;
}

/* Drops the version from the row if its file is being written to: its digest may be of two files. */
static attn_status confirm_row(struct call *call, struct registry_row *row)
{
    if (row->layer == NULL)
        return ATTN_OK;
    if (layer_digest(row->layer, call) == NULL)
        return ATTN_ERR_CANCELLED;
    if (!version_is_overwritten(row->version))
        return ATTN_OK;
    layer_version_release(row->layer);
    row->layer = NULL;
    row->state = REGISTRY_BROKEN;
    text_copy(row->reason, sizeof row->reason, "the file is being written to");
    return ATTN_OK;
}

/* Writes a row of the list. A file that was not read yet is read now. A broken file is listed with the reason. */
static attn_status write_row(struct call *call, struct registry_row *row)
{
    static const char *const states[] = {"absent", "ready", "unread", "broken", "unloaded"};
    struct chunks *out = call->out;
    if (row->state == REGISTRY_UNREAD) {
        attn_error ignored = {.status = ATTN_OK};
        struct call other = {.err = &ignored};
        const attn_status found = layer_keeper_find(call->in.layers, text_span_of(row->name), &other);
        row->version = other.version;
        if (found == ATTN_OK)
            row->state = REGISTRY_READY;
        else
            registry_look(layer_keeper_registry(call->in.layers), KIND_LAYER, row->name, row);
    }
    struct outcome written = {.err = call->err, .status = confirm_row(call, row)};
    chunks_format(out, "{\"state\":\"%s\",", states[row->state]);
    if (row->reason[0] != '\0') {
        chunks_text(out, "\"reason\":");
        chunks_json_string(out, row->reason);
        chunks_text(out, ",");
    }
    if (row->layer == NULL)
        chunks_format(out, "\"name\":\"%s\"", row->name);
    else if (!outcome_has_failed(&written))
        outcome_note(&written, write_version(call, row->layer));
    chunks_text(out, "}");
    return written.status;
}

attn_status layers_list(struct call *call)
{
    struct page page;
    size_t count, bytes;
    struct outcome listed = {.arena = call->out->arena, .err = call->err};
    if (!outcome_note(&listed, read_page(call, &page)))
        return listed.status;
    layer_keeper_rescan(call->in.layers);
    struct registry *store = layer_keeper_registry(call->in.layers);
    struct registry_row *rows = attn_arena_take(call->out->arena, page.limit, sizeof *rows);
    if (rows == NULL)
        return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the list");
    const size_t got = registry_page(store, KIND_LAYER, page.after, page.limit, rows);
    chunks_text(call->out, "{\"layers\":[");
    for (size_t i = 0; i < got; i++) {
        if (pace_is_cancelled(call->in.runtime))
            outcome_note(&listed, ATTN_ERR_CANCELLED);
        chunks_text(call->out, i > 0 ? "," : "");
        if (!outcome_has_failed(&listed))
            outcome_note(&listed, write_row(call, &rows[i]));
        layer_version_release(rows[i].layer);
    }
    if (outcome_has_failed(&listed))
        return attn_fail(call->err, listed.status, NULL, "the list was not finished");
    registry_totals(store, KIND_LAYER, &count, &bytes);
    chunks_format(call->out, "],\"count\":%zu,\"bytes\":%zu,\"durable\":%s,\"next\":", count, bytes,
                  layer_keeper_is_durable(call->in.layers) ? "true" : "false");
    if (got == page.limit)
        chunks_json_string(call->out, rows[got - 1].name);
    else
        chunks_text(call->out, "null");
    chunks_text(call->out, "}");
    return call_finish(call);
}
