/* keeper.c: finds and changes kept layers for requests. */
#include "service/registry/layer/keeper.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/bytes/outcome.h"
#include "codec/bytes/pace.h"
#include "service/registry/layer/directory.h"

struct layer_keeper {
    struct layer_settings settings;
    struct layer_directory directory;
    struct prepared_store *prepared;
};

bool layer_keeper_is_durable(const struct layer_keeper *keeper)
{
    return keeper->directory.files != NULL;
}

struct registry *layer_keeper_registry(struct layer_keeper *keeper)
{
    return keeper->directory.store;
}

bool layer_keeper_is_useless(struct layer_keeper *keeper)
{
    return registry_is_useless(keeper->directory.store, keeper->settings.is_read_only);
}

struct prepared_store *layer_keeper_prepared(struct layer_keeper *keeper)
{
    return keeper->prepared;
}

/* ---- refusals ---- */

static attn_status refuse_absent(struct call *call, const char *name)
{
    return call_refuse(call, CALL_NOT_FOUND, "there is no layer \"%s\" here; GET /v1/layers lists them", name);
}

attn_status layer_refuse_errno(struct call *call, int error)
{
    char text[128];
    const char *why = strerror_r(error, text, sizeof text);
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return call_refuse(call, CALL_STORE_FULL, "the directory of layers has no room left: %s", why);
    case EROFS:
    case EACCES:
    case EPERM:
        return call_refuse(call, CALL_READ_ONLY, "the directory of layers cannot be written to: %s", why);
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "no memory to keep the layer: %s", why);
    default:
        return call_refuse(call, CALL_STORE_FAILED, "the directory of layers failed: %s", why);
    }
}

/* Decodes the raw segment of the path into a name. */
static attn_status read_name(struct text_span span, char name[LAYER_NAME_MAX + 1], struct call *call)
{
    if (layer_name_is_valid(span.at, span.length)) {
        snprintf(name, LAYER_NAME_MAX + 1, "%.*s", (int)span.length, span.at);
        return ATTN_OK;
    }
    return attn_fail(call->err, ATTN_ERR_VALUE, NULL,
                     "\"%.*s\" cannot name a layer: 1 to %d letters, digits, dots, underscores and hyphens, written as "
                     "they are, with no dot first",
                     span.length < 64 ? (int)span.length : 64, span.at, LAYER_NAME_MAX);
}

/* Two names have another meaning in paths of the inference protocol. */
static attn_status read_new_name(const struct layer_keeper *keeper, struct text_span span,
                                 char name[LAYER_NAME_MAX + 1], struct call *call)
{
    struct registry_row model;
    const attn_status status = read_name(span, name, call);
    if (status != ATTN_OK)
        return status;
    if (strcmp(name, "attention") == 0 || strcmp(name, "stats") == 0)
        return call_refuse(call, CALL_CONFLICT,
                           "\"%s\" is a name of this server's own under /v2/models: choose another", name);
    registry_look(keeper->directory.store, KIND_MODEL, name, &model);
    version_release(model.version);
    if (model.state != REGISTRY_ABSENT)
        return call_refuse(call, CALL_CONFLICT, "\"%s\" is the name of a model (GET /v1/models): choose another", name);
    return ATTN_OK;
}

/* ---- lookups ---- */

static attn_status give(const struct registry_row *row, struct call *call)
{
    switch (row->state) {
    case REGISTRY_READY:
        return ATTN_OK;
    case REGISTRY_BROKEN:
    case REGISTRY_UNREAD:
        return call_refuse(call, CALL_CONFLICT, "the file of the layer \"%s\" cannot be used: %s", row->name,
                           row->reason);
    case REGISTRY_UNLOADED:
        return call_refuse(call, CALL_CONFLICT,
                           "the layer \"%s\" is unloaded; POST /v2/repository/models/%s/load serves it again",
                           row->name, row->name);
    case REGISTRY_ABSENT:
        break;
    }
    return refuse_absent(call, row->name);
}

attn_status layer_keeper_find(struct layer_keeper *keeper, struct text_span span, struct call *call)
{
    char name[LAYER_NAME_MAX + 1];
    struct registry_row row;
    attn_status status = read_name(span, name, call);
    if (status != ATTN_OK)
        return status;
    layer_directory_look(&keeper->directory, name, &row);
    if (row.is_fixed && row.version != NULL && version_is_overwritten(row.version)) {
        version_release(row.version); /* the thread that looks at models drops it, too, and reads the files again */
        return version_refuse_overwritten(call, KIND_LAYER, name);
    }
    call->version = row.version;
    return give(&row, call);
}

/* ---- changes ---- */

static attn_status check_room(struct layer_keeper *keeper, const char *name, size_t bytes, struct call *call)
{
    if (registry_has_room(keeper->directory.store, name, bytes))
        return ATTN_OK;
    return call_refuse(call, CALL_STORE_FULL,
                       "there is no room for the layer: at most %zu layers (--layers-max) of %zu bytes in all "
                       "(--layers-bytes) are kept; delete some",
                       keeper->settings.max_count, keeper->settings.max_bytes);
}

static attn_status check_writable(const struct layer_keeper *keeper, struct call *call)
{
    if (!keeper->settings.is_read_only)
        return ATTN_OK;
    return call_refuse(call, CALL_READ_ONLY, "layers can only be read here (--layers-readonly)");
}

/* The wait for another server that changes a layer, about. That server has the lock for a rename and an fsync. */
enum { OTHERS_MS = 10000, OTHERS_STEP_MS = 1 };

/* Waits without the lock of the directory, which the threads of this server need meanwhile. */
static attn_status wait_for_others(struct layer_keeper *keeper, struct call *call, unsigned *waited_ms)
{
    if (pace_is_cancelled(call->in.runtime))
        return attn_fail(call->err, ATTN_ERR_CANCELLED, NULL, "another server was changing a layer");
    if ((*waited_ms += OTHERS_STEP_MS) > OTHERS_MS)
        return call_refuse(call, CALL_STORE_FAILED, "another process has the directory of layers locked for %d s",
                           OTHERS_MS / 1000);
    registry_end_change(keeper->directory.store);
    nanosleep(&(struct timespec){.tv_nsec = OTHERS_STEP_MS * 1000000}, NULL);
    registry_begin_change(keeper->directory.store);
    return ATTN_OK;
}

/*
 * Takes the lock of the directory in this process, and then against other servers, so that a condition still holds when
 * the file is renamed. The lock in this process is held after a failure, too; let_others_change releases both.
 */
static attn_status keep_others_from_changing(struct layer_keeper *keeper, struct call *call)
{
    struct outcome held = {.err = call->err};
    unsigned waited_ms = 0;
    registry_begin_change(keeper->directory.store);
    if (keeper->directory.files == NULL)
        return ATTN_OK;
    const int outcome = layer_directory_follow(&keeper->directory);
    if (outcome != 0)
        return layer_refuse_errno(call, outcome);
    while (!outcome_has_failed(&held) && layer_files_lock(keeper->directory.files) != 0)
        outcome_note(&held, wait_for_others(keeper, call, &waited_ms));
    return held.status;
}

static void let_others_change(struct layer_keeper *keeper)
{
    if (keeper->directory.files != NULL)
        layer_files_unlock(keeper->directory.files);
    registry_end_change(keeper->directory.store);
}

/*
 * Refreshes, checks the conditions, and sets *exists. The caller keeps others from changing layers. Computing a digest
 * for the conditions may take long, so others may change layers meanwhile. The layer may be another one afterwards, so
 * everything is checked again.
 */
static attn_status check_change(struct layer_keeper *keeper, const char *name, struct call *call, bool *exists)
{
    struct outcome checked = {.err = call->err};
    struct registry_row row;
    layer_directory_refresh(&keeper->directory, name, &row);
    while (!outcome_has_failed(&checked) && layer_conditions_lack_digest(row.layer, call)) {
        let_others_change(keeper);
        if (layer_digest(row.layer, call) == NULL)
            outcome_note(&checked, ATTN_ERR_CANCELLED);
        layer_version_release(row.layer);
        outcome_note(&checked, keep_others_from_changing(keeper, call));
        layer_directory_refresh(&keeper->directory, name, &row);
    }
    *exists = row.state != REGISTRY_ABSENT;
    if (!outcome_has_failed(&checked) && outcome_note(&checked, layer_check_conditions(row.layer, call)) &&
        row.is_fixed)
        outcome_note(&checked, call_refuse(call, CALL_CONFLICT,
                                           "the layer \"%s\" belongs to a model and cannot be changed", name));
    layer_version_release(row.layer);
    return checked.status;
}

attn_status layer_keeper_allows_put(struct layer_keeper *keeper, struct text_span span, size_t bytes, struct call *call)
{
    struct outcome allowed = {.err = call->err};
    char name[LAYER_NAME_MAX + 1];
    bool exists;
    if (!outcome_note(&allowed, read_new_name(keeper, span, name, call)) ||
        !outcome_note(&allowed, check_writable(keeper, call)) ||
        !outcome_note(&allowed, check_room(keeper, name, bytes, call)))
        return allowed.status;
    (void)(outcome_note(&allowed, keep_others_from_changing(keeper, call)) &&
           outcome_note(&allowed, check_change(keeper, name, call, &exists)));
    let_others_change(keeper);
    return allowed.status;
}

bool layer_keeper_fails_early(struct layer_keeper *keeper, struct text_span span, struct call *call)
{
    char name[LAYER_NAME_MAX + 1];
    struct registry_row row;
    if ((call->in.if_match == NULL && call->in.if_none_match == NULL) || !layer_name_is_valid(span.at, span.length))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)span.length, span.at);
    bool is_known = layer_directory_is_current(&keeper->directory, name, &row);
    if (row.layer != NULL)
        is_known = is_known && !layer_conditions_lack_digest(row.layer, call);
    else
        is_known = is_known && row.state == REGISTRY_ABSENT;
    const bool fails = is_known && layer_check_conditions(row.layer, call) != ATTN_OK;
    layer_version_release(row.layer);
    return fails;
}

/*
 * Gives a written draft its name and installs the version, which takes over the draft's bytes. The caller calls
 * let_others_change afterwards.
 */
static attn_status commit(struct layer_keeper *keeper, struct layer_draft *draft, struct layer_version *version,
                          struct call *call, bool *exists)
{
    bool is_renamed = true;
    int outcome = 0;
    assert(version != NULL);
    struct outcome allowed = {.err = call->err};
    if (!outcome_note(&allowed, keep_others_from_changing(keeper, call)) ||
        !outcome_note(&allowed, check_change(keeper, version->common.name, call, exists)) ||
        !outcome_note(&allowed, check_room(keeper, version->common.name, version->common.kept_bytes, call))) {
        layer_keeper_give_up(keeper, draft);
        return allowed.status;
    }
    if (keeper->directory.files != NULL) {
        outcome = layer_files_commit(keeper->directory.files, draft, version->common.name, &version->common.identity,
                                     &is_renamed);
        version->modified_ns = version->common.identity.modified_ns;
    }
    if (is_renamed && registry_install(keeper->directory.store, version_keep(&version->common))) {
        (void)registry_set_loaded(keeper->directory.store, version->common.name, true);
        return outcome == 0 ? ATTN_OK : layer_refuse_errno(call, outcome);
    }
    if (is_renamed)
        layer_version_release(version);
    return layer_refuse_errno(call, outcome != 0 ? outcome : ENOMEM);
}

bool layer_keeper_write_ahead(struct layer_keeper *keeper, const struct layer_upload *upload, struct layer_draft *draft,
                              const char *data, size_t length)
{
    attn_error ignored = {.status = ATTN_OK};
    struct call call = {.err = &ignored, .in.if_match = upload->if_match, .in.if_none_match = upload->if_none_match};
    struct call unconditional = {.err = &ignored}; /* a put checks the conditions that are not known to fail */
    if (keeper->directory.files == NULL || (draft->fd < 0 && layer_keeper_fails_early(keeper, upload->name, &call)))
        return false;
    if (draft->fd < 0 &&
        (layer_keeper_allows_put(keeper, upload->name, upload->total_bytes, &unconditional) != ATTN_OK ||
         layer_files_begin(keeper->directory.files, draft) != 0))
        return false;
    if (layer_files_append(draft, data, length) == 0)
        return true;
    layer_files_discard(keeper->directory.files, draft);
    return false;
}

void layer_keeper_give_up(struct layer_keeper *keeper, struct layer_draft *draft)
{
    if (draft->fd >= 0)
        layer_files_discard(keeper->directory.files, draft);
}

/* Puts the version of a written draft. The draft is given up in case of a failure. */
static attn_status put_version(struct layer_keeper *keeper, struct layer_draft *draft, struct layer_version *version,
                               struct call *call)
{
    bool exists = false;
    const int synced = keeper->directory.files != NULL ? layer_files_sync(draft) : 0;
    if (synced != 0) {
        layer_files_discard(keeper->directory.files, draft);
        return layer_refuse_errno(call, synced);
    }
    if (layer_digest(version, call) == NULL) /* there is no directory, and so no draft */
        return ATTN_ERR_CANCELLED;
    const attn_status status = commit(keeper, draft, version, call, &exists);
    let_others_change(keeper);
    if (status == ATTN_OK)
        call->outcome = exists ? CALL_DONE : CALL_CREATED;
    return status;
}

attn_status layer_keeper_put(struct layer_keeper *keeper, struct text_span span, const struct chunks *content,
                             struct call *call)
{
    char name[LAYER_NAME_MAX + 1], digest[DIGEST_TEXT] = "";
    struct layer_draft own = {.fd = -1}, *draft = call->in.draft != NULL ? call->in.draft : &own;
    struct outcome put = {.err = call->err};
    struct layer_version *version;
    if (!outcome_note(&put, read_new_name(keeper, span, name, call)) ||
        !outcome_note(&put, check_room(keeper, name, content->total_bytes, call)))
        return put.status;
    const int written = keeper->directory.files != NULL
                            ? layer_files_write(keeper->directory.files, content, call->in.runtime, draft, digest)
                            : file_bytes_copy(content, &draft->bytes);
    if (written != 0)
        return layer_refuse_errno(call, written);
    if (!outcome_note(&put, layer_version_read(name, draft->bytes, NULL, &version, call->err))) {
        layer_keeper_give_up(keeper, draft);
        return put.status;
    }
    assert(version != NULL);
    version->files = keeper->directory.files;
    memcpy(version->digest, digest, sizeof digest);
    if (outcome_note(&put, put_version(keeper, draft, version, call)))
        call->version = &version->common;
    else
        layer_version_release(version);
    return put.status;
}

/* The caller calls let_others_change afterwards. */
static attn_status remove_file(struct layer_keeper *keeper, const char *name, struct call *call)
{
    struct outcome allowed = {.err = call->err};
    bool exists;
    if (!outcome_note(&allowed, keep_others_from_changing(keeper, call)) ||
        !outcome_note(&allowed, check_change(keeper, name, call, &exists)))
        return allowed.status;
    if (!exists)
        return refuse_absent(call, name);
    const int outcome = keeper->directory.files != NULL ? layer_files_remove(keeper->directory.files, name) : 0;
    if (outcome != 0)
        return layer_refuse_errno(call, outcome);
    registry_remove(keeper->directory.store, KIND_LAYER, name);
    return ATTN_OK;
}

attn_status layer_keeper_remove(struct layer_keeper *keeper, struct text_span span, struct call *call)
{
    struct outcome removed = {.err = call->err};
    char name[LAYER_NAME_MAX + 1];
    if (outcome_note(&removed, read_name(span, name, call)) && outcome_note(&removed, check_writable(keeper, call))) {
        outcome_note(&removed, remove_file(keeper, name, call));
        let_others_change(keeper);
    }
    return removed.status;
}

attn_status layer_keeper_load(struct layer_keeper *keeper, struct text_span span, struct call *call)
{
    char name[LAYER_NAME_MAX + 1];
    struct outcome loaded = {.err = call->err};
    struct registry_row row;
    if (!outcome_note(&loaded, read_name(span, name, call)))
        return loaded.status;
    registry_begin_change(keeper->directory.store);
    (void)registry_set_loaded(keeper->directory.store, name, true);
    layer_directory_refresh(&keeper->directory, name, &row);
    registry_end_change(keeper->directory.store);
    if (outcome_note(&loaded, give(&row, call)) && row.reason[0] != '\0')
        outcome_note(&loaded, call_refuse(call, CALL_CONFLICT,
                                          "the file of the layer \"%s\" cannot be used, the version before it is: %s",
                                          name, row.reason));
    version_release(row.version);
    return loaded.status;
}

attn_status layer_keeper_unload(struct layer_keeper *keeper, struct text_span span, struct call *call)
{
    char name[LAYER_NAME_MAX + 1];
    attn_status status = read_name(span, name, call);
    if (status != ATTN_OK)
        return status;
    return registry_set_loaded(keeper->directory.store, name, false) ? ATTN_OK : refuse_absent(call, name);
}

/* ---- statistics ---- */

static struct registry_statistics measure(const struct call *call, attn_status status)
{
    struct timespec now;
    const struct call_times *times = &call->times;
    const double total_ms = call->in.queue_ms + times->parse_ms + times->compute_ms + times->write_ms;
    const bool is_ok = status == ATTN_OK;
    clock_gettime(CLOCK_REALTIME, &now);
    return (struct registry_statistics){
        .successes = is_ok,
        .failures = !is_ok,
        .items = is_ok ? call->batch : 0,
        .success_ms = is_ok ? total_ms : 0,
        .failure_ms = is_ok ? 0 : total_ms,
        .queue_ms = is_ok ? call->in.queue_ms : 0,
        .parse_ms = is_ok ? times->parse_ms : 0,
        .compute_ms = is_ok ? times->compute_ms : 0,
        .write_ms = is_ok ? times->write_ms : 0,
        .last_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000,
    };
}

void layer_keeper_count(const struct call *call, attn_status status)
{
    const struct version *version = call->version;
    const struct registry_statistics more = measure(call, status);
    registry_count(layer_keeper_registry(call->in.layers), version != NULL ? version->of->kind : KIND_LAYER,
                   version != NULL ? version->name : NULL, &more);
}

/* ---- open and close ---- */

struct layer_keeper *layer_keeper_open(const struct layer_settings *settings, const struct log *log, char *message,
                                       size_t size)
{
    char text[128];
    struct layer_keeper *keeper = calloc(1, sizeof *keeper);
    struct registry *store = registry_create(settings->max_count, settings->max_bytes, settings->older);
    struct prepared_store *prepared = prepared_store_create(settings->prepared_bytes);
    if (keeper == NULL || store == NULL || prepared == NULL) {
        snprintf(message, size, "no memory for layers");
        registry_destroy(store);
        prepared_store_destroy(prepared);
        free(keeper);
        return NULL;
    }
    keeper->settings = *settings;
    keeper->prepared = prepared;
    keeper->directory = (struct layer_directory){
        .store = store, .log = log, .reads_all = settings->verifies_at_start, .look_ms = settings->look_ms};
    const int outcome = layer_directory_open(&keeper->directory, settings->directory, settings->is_read_only);
    if (outcome == 0)
        return keeper;
    snprintf(message, size, "layers: %s: %s", settings->directory, strerror_r(outcome, text, sizeof text));
    layer_keeper_close(keeper);
    return NULL;
}

void layer_keeper_close(struct layer_keeper *keeper)
{
    if (keeper == NULL)
        return;
    layer_directory_close(&keeper->directory);
    registry_destroy(keeper->directory.store);
    prepared_store_destroy(keeper->prepared);
    free(keeper);
}

void layer_keeper_rescan(struct layer_keeper *keeper)
{
    layer_directory_rescan(&keeper->directory);
}
